"""A problem's links and limits as a network: no topology, no delays, no other traffic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.simulation.fluid.wires import FluidPath

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem


class ProblemNetwork:
    """Links, hosts' limits and shared bottlenecks of a problem, with its periods.

    A plan made for one problem may so be judged on another: with the bandwidths that turned out
    to be true, or with bottlenecks that the plan did not know. Backlogs of the problem play no
    part. A connection along a pair that is no link cannot be had.

    Parameters
    ----------
    problem : Problem

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", uplink_bytes_per_s=[4.0, 1.0]
    ... )
    >>> network = ProblemNetwork(problem)
    >>> network.capacity_bytes_per_s(0.0).tolist(), network.path("S", "D").resources
    ([5.0, 4.0, 1.0], (0, 1))
    """

    background_paths: tuple[FluidPath, ...] = ()

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.storage_bytes = {
            name: room
            for name, room in zip(problem.names, problem.storage_bytes.tolist(), strict=True)
            if room < math.inf and name != problem.destination
        }
        n_links = problem.n_links
        limits: list[tuple[str, str]] = []
        self._uplink: dict[int, int] = {}
        self._downlink: dict[int, int] = {}
        for i in np.flatnonzero(np.isfinite(problem.uplink_bytes_per_s[0])).tolist():
            self._uplink[i] = n_links + len(limits)
            limits.append((problem.names[i], ""))
        for i in np.flatnonzero(np.isfinite(problem.downlink_bytes_per_s[0])).tolist():
            self._downlink[i] = n_links + len(limits)
            limits.append(("", problem.names[i]))
        self._shared: dict[int, list[int]] = {}
        for bottleneck, links in zip(problem.shared, problem.shared_links, strict=True):
            for link in links.tolist():
                self._shared.setdefault(link, []).append(n_links + len(limits))
            limits.append((bottleneck.name, ""))
        self._limits = limits
        self._capacity = self._capacities()

    def _capacities(self) -> list[FloatArray]:
        """Return the capacities of each period: links, then hosts' limits, then shared ones."""
        problem = self._problem
        shared = [bottleneck.bandwidth_bytes_per_s for bottleneck in problem.shared]
        uplink = problem.uplink_bytes_per_s[:, list(self._uplink)]
        downlink = problem.downlink_bytes_per_s[:, list(self._downlink)]
        rows = zip(problem.bandwidth_bytes_per_s, uplink, downlink, strict=True)
        return [np.concatenate([*row, shared]) for row in rows]

    def _list_until(self, time_s: float) -> None:
        """List more days where bandwidths recur and the simulation takes longer."""
        longer = self._problem.until(time_s)
        if longer is not self._problem:
            self._problem = longer
            self._capacity = self._capacities()

    @property
    def problem(self) -> Problem:
        """The problem whose links and limits these are."""
        return self._problem

    @property
    def n_resources(self) -> int:
        """Number of links, host limits and shared bottlenecks."""
        return self._problem.n_links + len(self._limits)

    @property
    def hosts(self) -> Collection[str]:
        """Names of the problem's hosts."""
        return self._problem.host_index.keys()

    def require_host(self, host: str) -> None:
        """Raise ProblemError for a host that is not in the problem."""
        if host not in self.hosts:
            hint = nearest_hint(host, self._problem.names)
            raise ProblemError(f"host {host!r} is not in the problem that is simulated{hint}")

    def path(self, from_host: str, to_host: str) -> FluidPath | None:
        """Return the link and the limits that it falls under, None where there is no link."""
        index = self._problem.host_index
        tail, head = index[from_host], index[to_host]
        link = int(self._problem.link_indices(tail, head))
        if link < 0:
            return None
        resources = [link, *self._shared.get(link, [])]
        resources += [limits[host] for limits, host in self._ends(tail, head) if host in limits]
        return FluidPath(tuple(resources))

    def _ends(self, tail: int, head: int) -> tuple[tuple[dict[int, int], int], ...]:
        return ((self._uplink, tail), (self._downlink, head))

    def _period(self, time_s: float) -> int:
        self._list_until(time_s)
        return max(0, int(np.searchsorted(self._problem.periods_s, time_s, side="right")) - 1)

    def capacity_bytes_per_s(self, time_s: float) -> FloatArray:
        """Return the capacities of the period."""
        return self._capacity[self._period(time_s)]

    def background_active(self, time_s: float) -> BoolArray:
        """Return nobody."""
        return np.zeros(0, dtype=bool)

    def next_change_s(self, time_s: float) -> float:
        """Return when the next period begins."""
        following = self._period(time_s) + 1
        daily = self._problem.daily
        if daily is not None and following == self._problem.n_periods:
            self._list_until(2 * daily.until_s)
        starts = self._problem.periods_s
        return float(starts[following]) if following < len(starts) else math.inf

    def background_table(
        self, before: FloatArray, during: FloatArray, after: FloatArray, from_s: float, to_s: float
    ) -> pd.DataFrame:
        """Return an empty table: there are no flows of others."""
        import pandas as pd

        return pd.DataFrame(columns=["flow", "kind", "phase", "goodput_bytes_per_s"])

    def wire_table(self, carried_bytes: FloatArray, from_s: float, to_s: float) -> pd.DataFrame:
        """Return the utilisation of each link, then of each limit.

        A host's uplink has an empty `to`, its downlink an empty `from`; a shared bottleneck has
        its name as `from`.
        """
        import pandas as pd

        problem = self._problem
        ends = np.clip(np.append(problem.periods_s[1:], math.inf), from_s, to_s)
        lengths = ends - np.clip(problem.periods_s, from_s, to_s)
        could = np.asarray(lengths @ np.array(self._capacity))
        share = np.divide(carried_bytes, could, out=np.zeros(len(could)), where=could > 0)
        names = np.array(problem.names, dtype=object)
        tails = [*names[problem.link_from].tolist(), *(tail for tail, _ in self._limits)]
        heads = [*names[problem.link_to].tolist(), *(head for _, head in self._limits)]
        return pd.DataFrame(
            {
                "wire": np.arange(self.n_resources),
                "from": tails,
                "to": heads,
                "utilisation": np.minimum(share, 1.0),
                "dropped_packets": np.full(self.n_resources, np.nan),
            }
        )
