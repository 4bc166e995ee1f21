"""The arrival curve: the most bytes that can have arrived at the destination by each instant.

By max-flow min-cut for flows over time, the most that can have arrived by an instant is the least
that any cut lets through by then (Ford and Fulkerson, Operations Research 6, 1958). While
capacities are constant each cut is a line in that instant, so the curve is concave there: the
lower envelope of lines. Its breakpoints are found exactly: take the line of a minimum cut at both
ends, evaluate the curve where the two cross, and recurse if a third line lies below (Eisner and
Severance, J. ACM 23, 1976; for flows Gallo, Grigoriadis and Tarjan, SIAM J. Computing 18, 1989).

Each point is the most for that instant; one plan can attain all of them together.

Held data that have not left yet take up storage that the network does not count. That changes
nothing: where others' data would need that room, held data can leave in their place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.arrival_bounds import Timeline, bound_of_cut, tight_bounds
from datacollect.flow.makers import makers_of
from datacollect.flow.nested_cuts import leaving_s
from datacollect.flow.network.layered import breakpoints_s, layered_network
from datacollect.flow.network.tolerances import SAME_BOUND, SAME_BREAKPOINT, SAME_PROGRAM_BOUND
from datacollect.flow.on_demand import OnDemand
from datacollect.flow.optimum import fluid_optimum
from datacollect.flow.quickest.bottleneck import cut_bottleneck, linear_bottleneck, name_hosts
from datacollect.flow.quickest.quickest import Quickest
from datacollect.schedule.data.transfers import Bottleneck

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.flow.arrival_bounds import Bound
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.network.pools import Pool
    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


@dataclass(frozen=True, eq=False)
class ArrivalCurve:
    """The most that can have arrived by each instant: piecewise linear.

    Attributes
    ----------
    time_s : ndarray of float, shape (n_points,)
        Breakpoints; the first is 0, the last the earliest instant by which all can have arrived.
    arrived_bytes : ndarray of float, shape (n_points,)
        The most that can have arrived by each of them.
    bottlenecks : sequence of Bottleneck, length n_points - 1
        What binds between two breakpoints, put into words when asked for. Kind ``"release"``: all
        that has been released has arrived; otherwise as in `Bottleneck`.
    network : LayeredNetwork or None
        What the curve was found on; None where there is nothing to move.
    bounds : sequence of Bound, length n_points - 1
        The resources behind each bottleneck, by the network's numbers.
    """

    time_s: FloatArray
    arrived_bytes: FloatArray
    bottlenecks: Sequence[Bottleneck]
    network: LayeredNetwork | None
    bounds: Sequence[Bound]

    @property
    def rates_bytes_per_s(self) -> FloatArray:
        """Rate of arrival between two breakpoints, shape (n_points - 1,)."""
        return np.diff(self.arrived_bytes) / np.diff(self.time_s)


def arrival_curve(problem: Problem, budget: Budget) -> ArrivalCurve:
    """Find the most bytes that can have arrived by each instant, and what forbids more.

    Parameters
    ----------
    problem : Problem
    budget : Budget
        Choice of solver, and time left. With shared bottlenecks each point costs a linear
        program, otherwise a maximum flow.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination.

    Examples
    --------
    A source that is done early leaves the other with its own link:

    >>> import datacollect as dc
    >>> from datacollect.solvers.budget import Budget
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"], [[0, 0, 5.0], [0, 0, 1.0], [0, 0, 0]], [10, 10, 0], "D"
    ... )
    >>> curve = arrival_curve(problem, Budget())
    >>> curve.time_s.tolist(), curve.arrived_bytes.tolist()
    ([0.0, 2.0, 10.0], [0.0, 12.0, 20.0])
    """
    makers = makers_of(problem)
    if makers is not None:
        curve = arrival_curve(makers.expanded, budget)
        return replace(curve, bottlenecks=tuple(map(makers.bottleneck, curve.bottlenecks)))
    if problem.total_bytes == 0:
        return ArrivalCurve(np.zeros(1), np.zeros(1), (), None, ())
    end_s = fluid_optimum(problem, budget).makespan_s
    starts = breakpoints_s(problem)
    # What is released last may have arrived before a float can tell the next instant.
    last_s = max(parcel.release_s for parcel in problem.parcels)
    timeline = Timeline(starts[(starts < end_s) | (starts <= last_s)], end_s)
    network = layered_network(problem, timeline.starts_s)
    if network.n_pieces == 1 and not problem.shared:
        stretches = _nested(problem, network, end_s, budget)
    else:
        tight_at = tight_bounds(problem, network, timeline, budget)
        stretches = _lower_envelope(problem, network, timeline, tight_at)
    return _curve(problem, network, timeline, stretches)


def most_arrived_bytes(problem: Problem, by_s: float, budget: Budget) -> float:
    """Return the most bytes that can have arrived by an instant: one point of the curve.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.solvers.budget import Budget
    >>> problem = dc.Problem.from_matrix(
    ...     ["A", "B", "D"], [[0, 0, 5.0], [0, 0, 1.0], [0, 0, 0]], [10, 10, 0], "D"
    ... )
    >>> most_arrived_bytes(problem, 3.0, Budget())
    13.0
    """
    makers = makers_of(problem)
    if makers is not None:
        return most_arrived_bytes(makers.expanded, by_s, budget)
    total = float(problem.total_bytes)
    if total == 0 or by_s >= fluid_optimum(problem, budget).makespan_s:
        return total
    starts = breakpoints_s(problem)
    # What is released later has its nodes in later pieces, which last for no time.
    last_s = max(parcel.release_s for parcel in problem.parcels)
    timeline = Timeline(starts[(starts < by_s) | (starts <= last_s)], np.inf)
    network = layered_network(problem, timeline.starts_s)
    bound = tight_bounds(problem, network, timeline, budget)(by_s)
    return min(bound.bytes_through(timeline.lengths_until(by_s)), total)


# The envelope ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stretch:
    """A part of the curve that one bound describes, which is made when asked for."""

    start_s: float
    end_s: float
    piece: int
    rate_bytes_per_s: float
    end_bytes: float
    bound_of: Callable[[], Bound]
    behind_of: Callable[[], BoolArray] | None = None

    @cached_property
    def bound(self) -> Bound:
        return self.bound_of()


def _nested(
    problem: Problem, network: LayeredNetwork, end_s: float, budget: Budget
) -> list[_Stretch]:
    """Find the stretches where nothing changes: each ends when nodes leave the sources' side."""
    leave_s = leaving_s(network, end_s, _tolerance(problem), budget.flow_solver())
    rate, tail_s, head_s = network.rate_bytes_per_s, leave_s[network.tail], leave_s[network.head]
    pool_s, pool_bytes = leave_s[network.pool_nodes], network.pool_bytes
    stretches = []
    for start, end in pairwise(np.unique(np.append(leave_s, [0.0, end_s])).tolist()):
        through = float(rate @ ((tail_s >= end) & (head_s < end)))
        end_bytes = float(pool_bytes @ (pool_s < end)) + through * end
        behind_of = partial(np.greater_equal, leave_s, end)
        bound_of = partial(_bound_behind, network, behind_of)
        stretches.append(_Stretch(start, end, 0, through, end_bytes, bound_of, behind_of))
    return stretches


def _bound_behind(network: LayeredNetwork, behind_of: Callable[[], BoolArray]) -> Bound:
    return bound_of_cut(network, behind_of())


def _lower_envelope(
    problem: Problem,
    network: LayeredNetwork,
    timeline: Timeline,
    tight_at: Callable[[float], Bound],
) -> list[_Stretch]:
    """Find the stretches of the curve, from 0 to the last arrival."""
    tolerance = _tolerance(problem)
    ends = np.append(timeline.starts_s, timeline.end_s).tolist()
    tight = [tight_at(end) for end in ends]
    found: list[tuple[float, float, int, Bound]] = []
    for piece in range(network.n_pieces):
        todo = [(ends[piece], tight[piece], ends[piece + 1], tight[piece + 1])]
        while todo:
            start, first, end, last = todo.pop()
            at_start, at_end = timeline.lengths_until(start), timeline.lengths_until(end)
            above = last.bytes_through(at_start) - first.bytes_through(at_start)
            if above <= tolerance:  # tight at both ends, and the curve is concave
                found.append((start, end, piece, last))
                continue
            if first.bytes_through(at_end) <= last.bytes_through(at_end) + tolerance:
                found.append((start, end, piece, first))
                continue
            closing = first.rate_bytes_per_s[piece] - last.rate_bytes_per_s[piece]
            crossing = start + above / float(closing)
            if min(crossing - start, end - crossing) <= SAME_BREAKPOINT * timeline.end_s:
                # Between rates of very different sizes rounding would go on splitting for ever.
                found.append(
                    (start, end, piece, last if crossing - start < end - crossing else first)
                )
                continue
            lengths = timeline.lengths_until(crossing)
            below = tight_at(crossing)
            if below.bytes_through(lengths) >= first.bytes_through(lengths) - tolerance:
                found.append((start, crossing, piece, first))
                found.append((crossing, end, piece, last))
            else:
                todo += [(crossing, below, end, last), (start, first, crossing, below)]
    return [_stretch(timeline, *each) for each in found]


def _stretch(
    timeline: Timeline, start_s: float, end_s: float, piece: int, bound: Bound
) -> _Stretch:
    rate = float(bound.rate_bytes_per_s[piece])
    end_bytes = bound.bytes_through(timeline.lengths_until(end_s))
    return _Stretch(start_s, end_s, piece, rate, end_bytes, lambda: bound)


def _tolerance(problem: Problem) -> float:
    """Bytes by which bounds differ that are the same one."""
    return (SAME_PROGRAM_BOUND if problem.shared else SAME_BOUND) * problem.total_bytes


def _curve(
    problem: Problem, network: LayeredNetwork, timeline: Timeline, stretches: list[_Stretch]
) -> ArrivalCurve:
    """Join stretches between which nothing changes: capacities may, and not matter."""

    @cache
    def in_words(stretch: _Stretch) -> Bottleneck:
        return _bottleneck(problem, network, stretch)

    times, arrived = [0.0], [0.0]
    found: list[_Stretch] = []
    rate = 0.0
    for stretch in stretches:
        if stretch.end_s <= stretch.start_s:
            continue
        own, (before, rate) = stretch, (rate, stretch.rate_bytes_per_s)
        same_rate = abs(rate - before) <= SAME_PROGRAM_BOUND * max(rate, before)
        if same_rate and found and _alike(in_words(own), in_words(found[-1])):
            ends = ((times[-2], arrived[-2]), (stretch.end_s, stretch.end_bytes))
            both = [b for b in (found[-1], own) if _is_tight(problem, timeline, b.bound, ends)]
            if both:
                times.pop()
                arrived.pop()
                found.pop()
                own = both[0]
        found.append(own)
        times.append(stretch.end_s)
        arrived.append(stretch.end_bytes)
    return ArrivalCurve(
        np.array(times),
        np.array(arrived),
        OnDemand(lambda number: in_words(found[number]), len(found)),
        network,
        OnDemand(lambda number: found[number].bound, len(found)),
    )


def _is_tight(
    problem: Problem, timeline: Timeline, bound: Bound, points: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a bound lets no more through by some instants than has arrived then.

    What binds in one stretch may have room to spare in the next, though both have the same rate.
    """
    tolerance = _tolerance(problem)
    return all(
        bound.bytes_through(timeline.lengths_until(time_s)) <= n_bytes + tolerance
        for time_s, n_bytes in points
    )


# In words -------------------------------------------------------------------------------------


def _alike(one: Bottleneck, other: Bottleneck) -> bool:
    return (one.kind, one.hosts) == (other.kind, other.hosts)


def _bottleneck(problem: Problem, network: LayeredNetwork, stretch: _Stretch) -> Bottleneck:
    piece, is_standing = stretch.piece, stretch.rate_bytes_per_s <= 0
    start_s = float(network.starts_s[piece])
    is_cut = stretch.behind_of is not None or stretch.bound.is_cut
    behind = stretch.bound.behind if stretch.behind_of is None else stretch.behind_of()
    if is_cut and not is_standing:
        until = _network_until(network, piece)
        lengths = np.diff(until.starts_s, append=stretch.end_s)
        return cut_bottleneck(problem, Quickest(until, lengths, behind))
    must_cross = [p for p in network.pools if behind[p.node] and p.release_s <= start_s]
    if is_standing:
        return _standstill(problem, network, must_cross, start_s)
    bound = stretch.bound
    shared = sorted(number for number, in_piece in bound.shared if in_piece == piece)
    arcs = bound.arcs[network.piece[bound.arcs] == piece]
    arcs = arcs[np.isfinite(network.rate_bytes_per_s[arcs])]
    return linear_bottleneck(problem, network, shared, arcs, must_cross)


def _network_until(network: LayeredNetwork, piece: int) -> LayeredNetwork:
    """Leave out later pieces, the way into them, and what is released later."""
    if network.n_pieces == 1:
        return network
    start_s = float(network.starts_s[piece])
    kept = (network.piece < piece) | (
        (network.piece == piece) & np.isfinite(network.rate_bytes_per_s)
    )
    columns = ("tail", "head", "rate_bytes_per_s", "room_bytes", "piece", "link", "stored")
    return replace(
        network,
        starts_s=network.starts_s[: piece + 1],
        pools=tuple(pool for pool in network.pools if pool.release_s <= start_s),
        **{column: getattr(network, column)[kept] for column in columns},
    )


def _standstill(
    problem: Problem, network: LayeredNetwork, waiting: Sequence[Pool], start_s: float
) -> Bottleneck:
    """Say why nothing arrives in a piece of time."""
    if waiting:
        sources = sorted({parcel.source for pool in waiting for parcel in pool.parcels})
        hosts = tuple(problem.names[source] for source in sources)
        text = f"Nothing more of {name_hosts(hosts)} can arrive: no bandwidth leads there then."
        return Bottleneck("source" if len(hosts) == 1 else "hosts", hosts, text)
    late = sorted(pool.host for pool in network.pools if pool.release_s > start_s)
    hosts = tuple(problem.names[host] for host in late)
    text = f"All that is released has arrived; data of {name_hosts(hosts)} are released later."
    return Bottleneck("release", hosts, text)
