"""Duration of a plan with fixed routes and bytes, where links carry other than planned.

A plan divides bytes, not rates: whoever carries it out sends as fast as it can. Of a coordinated
plan the fullest link, host's limit or shared wire works all the time until its bytes are through,
as routes can be held in proportion; the plan takes as long as that one, no less and no more. Direct
and best-path hold nothing in proportion: theirs are the max-min fair rates that they promise.
Where time matters (data that come later, bandwidths by the hour, slots, turns) a plan is carried
out in step, with all its shares held, or by the library's fluid simulation, at its times and with
fair shares: it takes what the sooner of both takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError
from datacollect.flow.network.pools import Pool
from datacollect.methods.choice import is_max_min_fair
from datacollect.methods.fair.transfers import AllAtOnce, RouteJob, fair_transfers
from datacollect.problem.connection_rates import link_rates, wire_rates
from datacollect.problem.hosts import Parcel
from datacollect.problem.other_rates import with_link_rates
from datacollect.problem.production import last_made_s
from datacollect.schedule.data.use import connections_by_link
from datacollect.uncertainty.in_step import InStep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class RouteBytes:
    """Bytes of a plan over its routes, and over all that they use.

    Attributes
    ----------
    route_bytes : ndarray of int, shape (n_routes,)
    links : ndarray of int, shape (n_used,)
        The links that carry some, in order.
    link_bytes : ndarray of int, shape (n_used,)
    out_bytes, in_bytes : ndarray of int, shape (n_hosts,)
        What each host sends, and receives.
    """

    route_bytes: IntArray
    links: IntArray
    link_bytes: IntArray
    out_bytes: IntArray
    in_bytes: IntArray


def bytes_of(problem: Problem, plan: Schedule) -> RouteBytes:
    """Return what a plan for a problem sends over what.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> bytes_of(problem, dc.direct(problem)).link_bytes.tolist()
    [10]
    """
    columns = plan.columns
    first = columns.hop == 0
    moved = np.zeros(plan.n_routes, dtype=np.int64)
    np.add.at(moved, columns.route[first], columns.n_bytes[first])
    index = problem.host_index
    hops = [
        (index[tail], index[head], number)
        for number, route in enumerate(plan.routes)
        for tail, head in pairwise(route.hosts)
    ]
    tail, head, number = np.array(hops, dtype=np.int64).reshape(-1, 3).T
    links, place = np.unique(problem.link_indices(tail, head), return_inverse=True)
    of_links, out, into = (np.zeros(n, np.int64) for n in (len(links), *[problem.n_hosts] * 2))
    for total, at in ((of_links, place.ravel()), (out, tail), (into, head)):
        np.add.at(total, at, moved[number])
    return RouteBytes(moved, links, of_links, out, into)


class FixedPlan:
    """A plan, carried out where links carry other than it counts on.

    Parameters
    ----------
    problem : Problem
        For which it was made.
    plan : Schedule

    Attributes
    ----------
    links : ndarray of int, shape (n_used,)
        The links that it uses.
    is_quick : bool
        Whether thousands of scenarios cost no time to speak of.
    """

    def __init__(self, problem: Problem, plan: Schedule) -> None:
        self._problem, self._plan = problem, plan
        self._bytes = bytes_of(problem, plan)
        self.links = self._bytes.links
        has_time = (
            problem.n_periods > 1
            or plan.slot_s is not None
            or plan.turns is not None
            or any(parcel.release_s > 0 for parcel in problem.parcels)
            or len(problem.makers) > 0
        )
        self._is_fair = is_max_min_fair(plan.method) and plan.slot_s is None and plan.turns is None
        self.is_quick = not (has_time or self._is_fair)

    def makespans_s(
        self, links: IntArray, factors: FloatArray, limits: Mapping[str, FloatArray] | None = None
    ) -> FloatArray:
        """Return what it takes in scenarios; infinite where some data never arrive.

        Parameters
        ----------
        links : ndarray of int, shape (n_links,)
        factors : ndarray of float, shape (n_scenarios, n_links)
            Of these links' bandwidths; all others are as the problem says.
        limits : mapping, optional
            By ``uplink_bytes_per_s`` and ``downlink_bytes_per_s``, shape (n_scenarios, n_hosts):
            further limits of hosts, alike where factors are.
        """
        limits = limits or {}
        if self.is_quick:
            return self._of_the_fullest(links, factors, limits)
        one = self._fair_s if self._is_fair else self._in_time_s
        _, first, which = np.unique(factors, axis=0, return_index=True, return_inverse=True)
        found = [
            one(self._changed(links, factors[i], {key: most[i] for key, most in limits.items()}))
            for i in first.tolist()
        ]
        # However fast links are, nothing arrives before it is made.
        ends_s: FloatArray = np.array(found)[which.ravel()]
        return np.maximum(ends_s, last_made_s(self._problem))

    def _changed(
        self, links: IntArray, factors: FloatArray, limits: Mapping[str, FloatArray]
    ) -> Problem:
        of_all = np.ones(self._problem.n_links)
        of_all[links] = factors
        changed = with_link_rates(self._problem, lambda rates: rates * of_all)
        for key, most in limits.items():
            changed = changed.replace(
                **{key: np.minimum(getattr(changed, key), most)}, daily=changed.daily
            )
        return changed

    # By the fullest of all that it uses -------------------------------------------------------

    def _of_the_fullest(
        self, links: IntArray, factors: FloatArray, limits: Mapping[str, FloatArray]
    ) -> FloatArray:
        mine = np.ones((len(factors), len(self.links)))
        place = np.full(self._problem.n_links, -1, dtype=np.int64)
        place[self.links] = np.arange(len(self.links))
        known = place[links] >= 0
        mine[:, place[links[known]]] = factors[:, known]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_links = self._bytes.link_bytes / (self._link_rates() * mine)
        of_links = np.where(self._bytes.link_bytes > 0, of_links, 0.0)
        slowest = of_links.max(axis=1, initial=0.0)
        found: FloatArray = np.maximum(slowest, self._of_others_s(limits)) + self._filling_s()
        return found

    def _link_rates(self) -> FloatArray:
        """Return what the links that are used carry by as many connections as the plan has."""
        known = link_rates(self._problem).at(self.links)
        if not known.grows.any():
            return known.bandwidth_bytes_per_s
        names = self._problem.names
        counts = connections_by_link(self._plan)
        ends = zip(
            self._problem.link_from[self.links], self._problem.link_to[self.links], strict=True
        )
        return known.rate(np.array([counts.get((names[a], names[b]), 1) for a, b in ends]))

    def _of_others_s(self, limits: Mapping[str, FloatArray]) -> FloatArray | float:
        """Return how long the fullest host's limit or shared wire works, scenario by scenario."""
        problem, found = self._problem, _longest_s(self._of_wires(), self._wire_rates())
        for key, n_bytes in (
            ("uplink_bytes_per_s", self._bytes.out_bytes),
            ("downlink_bytes_per_s", self._bytes.in_bytes),
        ):
            rate = np.minimum(getattr(problem, key)[0], limits.get(key, np.inf))
            found = np.maximum(found, _longest_s(n_bytes, rate))
        return found

    def _of_wires(self) -> IntArray:
        """Return the bytes that cross each shared wire."""
        crossing = [
            self._bytes.link_bytes[np.isin(self.links, members)].sum()
            for members in self._problem.shared_links
        ]
        return np.array(crossing, dtype=np.int64)

    def _wire_rates(self) -> FloatArray:
        problem = self._problem
        known = wire_rates(problem)
        if not known.grows.any():
            return known.bandwidth_bytes_per_s
        counts = connections_by_link(self._plan)
        names = problem.names
        ours = [
            sum(
                counts.get((names[problem.link_from[link]], names[problem.link_to[link]]), 0)
                for link in members.tolist()
            )
            for members in problem.shared_links
        ]
        return known.rate(np.maximum(ours, 1))

    def _filling_s(self) -> float:
        """Return how long the longest pipeline takes to fill."""
        most_hops = max((route.n_hops for route in self._plan.routes), default=1)
        return (most_hops - 1) * (self._plan.chunk_s or 0.0)

    # By events --------------------------------------------------------------------------------

    def _fair_s(self, problem: Problem) -> float:
        """Return when all routes end at max-min fair rates."""
        release = problem.release_s
        loads: dict[tuple[tuple[int, ...], bool], list[Parcel]] = {}
        index = problem.host_index
        for route, n_bytes in zip(self._plan.routes, self._bytes.route_bytes.tolist(), strict=True):
            hosts, source = tuple(index[name] for name in route.hosts), index[route.source]
            if n_bytes:
                is_own = hosts[0] == source
                since_s = float(release[source]) if is_own else 0.0
                parcel = Parcel(hosts[0], source, 0, n_bytes, since_s)
                loads.setdefault((hosts, is_own), []).append(parcel)
        jobs = [
            RouteJob(Pool(hosts[0], hosts[0], tuple(parcels)), hosts)
            for (hosts, _), parcels in loads.items()
        ]
        chunk_s = self._plan.chunk_s or 0.0
        try:
            _, sent = fair_transfers(problem, jobs, chunk_s, AllAtOnce())
        except InfeasibleError:
            return math.inf
        return float(sent.finish_s.max(initial=0.0))

    def _in_time_s(self, problem: Problem) -> float:
        """Return when it ends where time matters, by the sooner of two ways to carry it out."""
        return min(self._in_step.makespan_s(problem), self._simulated_s(problem))

    @cached_property
    def _in_step(self) -> InStep:
        one = link_rates(self._problem).bandwidth_bytes_per_s[self.links]
        growth = np.divide(self._link_rates(), one, out=np.ones(len(one)), where=one > 0)
        return InStep(self._problem, self._plan, self.links, growth, self._wire_rates())

    def _simulated_s(self, problem: Problem) -> float:
        """Return when the library's fluid simulation has carried the plan out, at its times."""
        from datacollect.control.planned.scheduled import PlannedController
        from datacollect.simulation.fluid.engine import simulate_problem

        run = simulate_problem(self._problem, PlannedController(self._plan), truth=problem)
        return run.makespan_s if run.complete else math.inf


def _longest_s(n_bytes: IntArray, rate: FloatArray) -> FloatArray:
    """Return how long the fullest of some takes; rates of scenarios stand in rows."""
    used = n_bytes > 0
    with np.errstate(divide="ignore"):
        found: FloatArray = n_bytes[used] / rate[..., used]
    return np.asarray(found.max(axis=-1, initial=0.0))
