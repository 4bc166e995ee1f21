"""Parts of a schedule: routes, transfers as columns, why it cannot be faster, turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.files.units import counted
from datacollect.files.with_units import (
    INSTANT,
    counted_fields,
    in_units,
    in_whole,
    values_in_units,
)
from datacollect.problem.numbers import floats_of
from datacollect.schedule.data.fields import TRANSFER

if TYPE_CHECKING:
    from datacollect.numbers.arrays import FloatArray, IntArray, InUnitsLike

_COUNTED = counted_fields(TRANSFER)
_COUNTED["n_bytes"] = _COUNTED.pop("bytes")


@dataclass(frozen=True)
class Route:
    """Hosts from where a source's data lie to the destination.

    Attributes
    ----------
    source : str
        Who owns the data.
    hosts : tuple of str
        The first is the source, or the host that holds its data; the last is the destination.
    """

    source: str
    hosts: tuple[str, ...]

    @property
    def n_hops(self) -> int:
        """Number of links on the route."""
        return len(self.hosts) - 1


@dataclass(frozen=True)
class Bottleneck:
    """Reason why a plan cannot be faster.

    Attributes
    ----------
    kind : str
        ``"destination"``: all that leads into the destination; ``"source"``: what leads out of
        one source; ``"hosts"``: what leads out of several hosts together; ``"shared"``: a shared
        bottleneck takes part; ``"none"``: there is nothing to move; ``"unknown"``: a schedule file
        that does not say.
    hosts : tuple of str
        The sources whose backlog must cross it.
    text : str
        The same in words.
    """

    kind: str
    hosts: tuple[str, ...]
    text: str

    def __repr__(self) -> str:
        return f"<Bottleneck {self.kind!r}, {counted(len(self.hosts), 'host')}: {self.text}>"


# Of schedules that were read from files without one.
UNKNOWN = Bottleneck("unknown", (), "not recorded")


def bottleneck_tree(bottleneck: Bottleneck) -> dict[str, Any]:
    """Return a bottleneck as files and ``--json`` show it.

    >>> bottleneck_tree(Bottleneck("source", ("S",), "what leads out of S"))
    {'kind': 'source', 'hosts': ['S'], 'text': 'what leads out of S'}
    """
    return {"kind": bottleneck.kind, "hosts": list(bottleneck.hosts), "text": bottleneck.text}


@dataclass(frozen=True)
class Turns:
    """Turns of a direct plan's hosts.

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


def _column(name: str, values: Any) -> Any:
    """Return a column's numbers; those that count are whole."""
    if name in ("start_s", "finish_s"):
        return floats_of(name, in_units(values, INSTANT, name))
    found = np.asarray(in_whole(values, name))
    if found.ndim != 1:
        raise ProblemError(f"transfers: column {name} must have a number for each transfer")
    return found


class TransferColumns(TypedDict, total=False):
    """Arguments of `Transfers.build`: all columns, of which only ``streams`` may be left out."""

    route: Required[npt.ArrayLike]
    hop: Required[npt.ArrayLike]
    offset_bytes: Required[InUnitsLike]
    n_bytes: Required[InUnitsLike]
    start_s: Required[InUnitsLike]
    finish_s: Required[InUnitsLike]
    streams: npt.ArrayLike


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
            # A copy: who made the array may go on writing to it.
            column: npt.NDArray[Any] = np.array(_column(name, getattr(self, name)), dtype=kind)
            if column.shape != (len(self.route),):
                raise ProblemError(
                    f"transfers: column {name} must have {len(self.route)} rows, got {column.shape}"
                )
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @staticmethod
    def _kinds() -> dict[str, type]:
        times = ("start_s", "finish_s")
        whole = ("route", "hop", "offset_bytes", "n_bytes", "streams")
        return dict.fromkeys(whole, np.int64) | dict.fromkeys(times, np.float64)

    @classmethod
    def build(cls, **columns: Unpack[TransferColumns]) -> Transfers:
        """Build a table from columns; rows are sorted by start, route, hop and offset.

        Parameters
        ----------
        **columns : array_like, shape (n_transfers,)
            The attributes of `Transfers` by name; ``streams`` is 1 where left out. Bytes and
            instants may be texts with units.

        Returns
        -------
        Transfers

        Raises
        ------
        ProblemError
            A column is missing, unknown, or of another length, or a text has no such unit.

        Examples
        --------
        >>> built = Transfers.build(
        ...     route=[1, 0],
        ...     hop=[0, 0],
        ...     offset_bytes=[0, 0],
        ...     n_bytes=["5 B", 7],
        ...     start_s=[2.0, 1.0],
        ...     finish_s=[3.0, 2.0],
        ... )
        >>> built.n_bytes.tolist(), built.streams.tolist()
        ([7, 5], [1, 1])
        """
        kinds = cls._kinds()
        given = values_in_units(columns, _COUNTED)
        if given.keys() | {"streams"} != kinds.keys():
            raise ProblemError(
                f"transfers: columns must be {', '.join(kinds)}, got {', '.join(given)}"
            )
        given.setdefault("streams", np.ones(len(_column("route", given["route"]))))
        arrays: dict[str, npt.NDArray[Any]] = {
            name: np.asarray(_column(name, given[name]), dtype=kind) for name, kind in kinds.items()
        }
        order = np.lexsort(
            (arrays["offset_bytes"], arrays["hop"], arrays["route"], arrays["start_s"])
        )
        return cls(**{name: array[order] for name, array in arrays.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transfers):
            return NotImplemented
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in self._kinds())

    def __hash__(self) -> int:
        return hash((len(self), self.n_bytes.tobytes(), self.start_s.tobytes()))

    def __len__(self) -> int:
        return len(self.route)

    def __repr__(self) -> str:
        n_bytes = int(self.n_bytes.sum())
        return f"<Transfers: {counted(len(self), 'transfer')}, {counted(n_bytes, 'byte')}>"
