"""The schedule: all transfers that empty every backlog, as columns.

A transfer moves a contiguous range of one source's backlog over one hop of one route, between
two instants, at constant rate. Everything else (storage, use of links, pull lists) follows from
the transfers and is computed when asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd

    from datacollect.problem import Problem

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]

OPTIMAL = "optimal"  # in the fluid model or in slots fastest, then best by preference, to 1e-6
HEURISTIC = "heuristic"  # direct and best-path: valid, no claim to be fastest
TIME_LIMIT = "time_limit"  # complete and valid, stopped before it was proved or made best


@dataclass(frozen=True)
class Route:
    """Hosts from where a source's data lie to the destination.

    ``source`` owns the data; ``hosts[0]`` is the source, or the host that holds them.
    """

    source: str
    hosts: tuple[str, ...]

    @property
    def n_hops(self) -> int:
        """Number of links on the route."""
        return len(self.hosts) - 1


@dataclass(frozen=True)
class Bottleneck:
    """Why a plan cannot be faster.

    Attributes
    ----------
    kind : str
        ``"destination"``: all that leads into the destination; ``"source"``: what leads out of
        one source; ``"hosts"``: what leads out of several hosts together; ``"shared"``: a shared
        bottleneck takes part; ``"none"``: nothing is to be moved.
    hosts : tuple of str
        The sources whose backlog must cross it.
    text : str
        The same in words.
    """

    kind: str
    hosts: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Turns:
    """How a direct plan's hosts take turns.

    Attributes
    ----------
    order : tuple of str
        Hosts that come first, in this order; all others follow in the problem's order.
    at_a_time : int
        So many send at once.
    time_slot_s : float or None
        How long a turn lasts; None: until the host has sent everything.
    """

    order: tuple[str, ...]
    at_a_time: int
    time_slot_s: float | None = None


@dataclass(frozen=True, eq=False)
class Transfers:
    """Columns of the transfers' table; all of shape (n_transfers,).

    Attributes
    ----------
    route : ndarray of int64
        Index into `Schedule.routes`.
    hop : ndarray of int64
        The transfer uses the link ``hosts[hop] -> hosts[hop + 1]`` of its route.
    offset_bytes, n_bytes : ndarray of int64
        Range within the source's backlog.
    start_s, finish_s : ndarray of float
    streams : ndarray of int64
        Parallel connections.
    """

    route: IntArray
    hop: IntArray
    offset_bytes: IntArray
    n_bytes: IntArray
    start_s: FloatArray
    finish_s: FloatArray
    streams: IntArray

    def __post_init__(self) -> None:
        for name, kind in self._kinds().items():
            column: npt.NDArray[Any] = np.asarray(getattr(self, name), dtype=kind)
            if column.shape != (len(self.route),):
                raise ProblemError(
                    f"transfers: column {name} must have {len(self.route)} rows, got {column.shape}"
                )
            column = column.view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @staticmethod
    def _kinds() -> dict[str, type]:
        times = ("start_s", "finish_s")
        whole = ("route", "hop", "offset_bytes", "n_bytes", "streams")
        return dict.fromkeys(whole, np.int64) | dict.fromkeys(times, np.float64)

    @classmethod
    def build(cls, **columns: npt.ArrayLike) -> Transfers:
        """Build from columns; ``streams`` defaults to 1. Rows are sorted by start, route, hop."""
        kinds = cls._kinds()
        columns = {"streams": np.ones(len(np.asarray(columns["route"])))} | columns
        if columns.keys() != kinds.keys():
            raise ProblemError(
                f"transfers: columns must be {', '.join(kinds)}, got {', '.join(columns)}"
            )
        arrays: dict[str, npt.NDArray[Any]] = {
            name: np.asarray(columns[name], dtype=kind) for name, kind in kinds.items()
        }
        order = np.lexsort(
            (arrays["offset_bytes"], arrays["hop"], arrays["route"], arrays["start_s"])
        )
        return cls(**{name: array[order] for name, array in arrays.items()})

    def __len__(self) -> int:
        return len(self.route)


@dataclass(frozen=True, eq=False)
class Schedule:
    """A plan of transfers, with what is known about its quality.

    Attributes
    ----------
    method : str
        ``"direct"``, ``"best-path"`` or ``"coordinated"``.
    destination : str
    makespan_s : float
        When the last byte reaches the destination, from time 0.
    lower_bound_s : float
        The fluid optimum: no schedule under the same bandwidths is faster.
    slot_s, chunk_s : float or None
        Slot of a store-and-forward schedule; chunk of a pipelined one.
    solver : str
        The solvers that made it.
    problem_sha256 : str
        `Problem.sha256` of the problem that it solves.
    routes : tuple of Route
    columns : Transfers
    status : str
        ``"optimal"``, ``"heuristic"`` or ``"time_limit"``.
    bottleneck : Bottleneck or None
    plan_time_s : float
        Wall-clock time that planning took.
    prefer : str or None
        What a coordinated plan minimises among the fastest, or among those in time; None where
        that is not known, or means nothing to the method. So are the following ones.
    deadline_s : float or None
        What it was planned to end by; None: as soon as possible.
    turns : Turns or None
        How the hosts of a direct plan take turns; None: all send at once.
    hysteresis : float or None
        How many times better than the best so far a route of best-path had to be.
    """

    method: str
    destination: str
    makespan_s: float
    lower_bound_s: float
    slot_s: float | None
    chunk_s: float | None
    solver: str
    problem_sha256: str
    routes: tuple[Route, ...]
    columns: Transfers
    status: str = OPTIMAL
    bottleneck: Bottleneck | None = None
    plan_time_s: float = 0.0
    prefer: str | None = None
    deadline_s: float | None = None
    turns: Turns | None = None
    hysteresis: float | None = None

    @property
    def gap(self) -> float:
        """By what part the makespan exceeds the lower bound: chunks, slots, or a slower method."""
        if self.lower_bound_s <= 0:
            return 0.0
        return max(0.0, self.makespan_s / self.lower_bound_s - 1.0)

    @property
    def n_transfers(self) -> int:
        """Number of transfers."""
        return len(self.columns)

    @property
    def n_routes(self) -> int:
        """Number of routes in use: a source and the hosts that its data pass."""
        return len(self.routes)

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """The transfers as a table, a row each, sorted by start.

        Columns: source, route (tuple of names), hop, from, to, offset_bytes, bytes, start_s,
        finish_s, streams.
        """
        import pandas as pd

        columns = self.columns
        routes = [self.routes[i] for i in columns.route.tolist()]
        hops = columns.hop.tolist()
        return pd.DataFrame(
            {
                "source": [route.source for route in routes],
                "route": [route.hosts for route in routes],
                "hop": columns.hop,
                "from": [route.hosts[hop] for route, hop in zip(routes, hops, strict=True)],
                "to": [route.hosts[hop + 1] for route, hop in zip(routes, hops, strict=True)],
                "offset_bytes": columns.offset_bytes,
                "bytes": columns.n_bytes,
                "start_s": columns.start_s,
                "finish_s": columns.finish_s,
                "streams": columns.streams,
            }
        )

    def check(self, problem: Problem) -> None:
        """Prove that the schedule is valid, from first principles.

        Raises
        ------
        ScheduleError
            The first broken rule: what, where, when and by how much.
        """
        from datacollect.check import check_schedule

        check_schedule(problem, self)

    @cached_property
    def peak_storage_bytes(self) -> dict[str, int]:
        """Most bytes of others' data at each host that stores any, chunks in flight included."""
        from datacollect.measures import peak_storage_bytes

        return peak_storage_bytes(self)

    def storage(self) -> pd.DataFrame:
        """Others' data at each host over time: columns host, time_s, stored_bytes.

        Between two rows of a host the amount changes linearly.
        """
        from datacollect.measures import storage

        return storage(self)

    def link_use(self) -> pd.DataFrame:
        """Rate on each used link over time: columns from, to, start_s, finish_s, bytes_per_s."""
        from datacollect.measures import link_use

        return link_use(self)

    def source_completion_s(self) -> dict[str, float]:
        """When the last byte of each source reaches the destination."""
        from datacollect.measures import source_completion_s

        return source_completion_s(self)

    def pulls(self, host: str | None = None) -> pd.DataFrame:
        """What a host (or every host) has to request: see `datacollect.pulls.pull_list`."""
        from datacollect.pulls import pull_list

        return pull_list(self, host)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of a schedule file (see the docs, File formats)."""
        from datacollect.files import schedule_to_tree

        return schedule_to_tree(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Schedule:
        """Build a schedule from the tree of a schedule file.

        Raises
        ------
        ProblemError
            Malformed. A well-formed schedule that breaks a rule is found by `check`.
        """
        from datacollect.files import schedule_from_tree

        return schedule_from_tree(tree)

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write JSON, or Parquet where the name ends in ``.parquet``."""
        from datacollect.files import write_schedule

        write_schedule(self, path)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Schedule:
        """Read what `to_file` wrote."""
        from datacollect.files import read_schedule

        return read_schedule(path)

    def replace(self, **changes: Any) -> Schedule:
        """Return a copy with other values for some attributes."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        return (
            f"<Schedule: {self.method}, makespan {self.makespan_s:g} s, {self.n_transfers} "
            f"transfers on {self.n_routes} routes, {self.status}>"
        )
