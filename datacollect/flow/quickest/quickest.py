"""The quickest flow through a layered network: discrete Newton on its minimum cuts.

With zero transit times and one sink, the earliest instant T* by which all can have arrived is
the largest, over all cuts, of the instant at which that cut has let everything behind it through
(max-flow min-cut for flows over time; Ford and Fulkerson, Operations Research 6, 1958). Start
from a length of the last piece of time; while a maximum flow leaves something behind, its
minimum cut gives the next, larger length (Dinkelbach, Management Science 13, 1967; for
parametric flows Gallo, Grigoriadis and Tarjan, SIAM J. Computing 18, 1989). The last cut is the
binding bottleneck, and T* follows from its capacities alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import SolverError
from datacollect.flow.network.few_arcs import SupplyNetwork, largest_flow
from datacollect.flow.network.layered import (
    NO_LINK,
    LayeredNetwork,
    full_lengths_s,
    layered_network,
    nodes_in,
)
from datacollect.flow.network.smallest_sufficient import smallest
from datacollect.flow.network.tolerances import CAPACITY_ROUNDING, SURELY
from datacollect.solvers.networks import CAPACITY_SUM_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.networks import FlowSolver


# Networks with fewer arcs than this per node are solved as they are.
FEW_PER_NODE = 24

# Relays that each host with data begins with, in each piece of time.
FIRST_RELAYS = 12

# Hosts with data that each relay begins with, in each of several pieces: where all that leads into
# the destination is filled, relays that pass on little are, too.
FIRST_FEEDERS = 4

# Newton's method takes a handful of cuts; this many mean that rounding keeps it from ending.
MOST_ITERATIONS = 1000

# Cuts that are followed to find in which piece all has arrived; then bisection takes over.
MOST_CUTS = 8


@dataclass(frozen=True, eq=False)
class Quickest:
    """The earliest end: lengths of the pieces used, and the cut that forbids an earlier one.

    ``cut`` marks the nodes on the sources' side, None where no cut was needed; ``scaled`` knows the
    arcs that fastest flows need, where some were computed.
    """

    network: LayeredNetwork
    lengths_s: FloatArray
    cut: BoolArray | None
    scaled: ScaledFlow | None = None

    @property
    def makespan_s(self) -> float:
        """The end of the last piece."""
        return float(self.network.starts_s[-1] + self.lengths_s[-1])

    @property
    def passes_on_at_once(self) -> bool:
        """Say whether all flows this fast surely pass data on in the piece that they arrived in.

        Such flows fill every arc across the binding cut. What leaves a host without data in the
        first piece of time arrived there in that piece.
        """
        if self.cut is None:
            return False
        network = self.network
        first = np.flatnonzero((network.piece == 0) & (network.link != NO_LINK))
        tail, head = network.tail[first], network.head[first]
        has_data = np.isin(network.node_host[tail], [pool.host for pool in network.pools])
        onward = first[self.cut[tail] & ~self.cut[head] & ~has_data]
        filled_bytes = float(network.capacity_bytes(self.lengths_s, onward).sum())
        all_bytes = sum(pool.n_bytes for pool in network.pools)
        return filled_bytes > SURELY * all_bytes


class NeverArrives(Exception):
    """Infeasibility for every length of the last piece; carries a cut that nothing more crosses."""

    def __init__(self, network: LayeredNetwork, cut: BoolArray) -> None:
        super().__init__()
        self.network = network
        self.cut = cut


class ScaledFlow:
    """Maximum flows on one layered network, in integer units that cannot overflow.

    The scale is a power of two, so multiplying by it is exact. ``active`` marks the arcs that
    flows have needed so far: see `datacollect.flow.network.few_arcs`.
    """

    def __init__(
        self, network: LayeredNetwork, solver: FlowSolver, known: ScaledFlow | None = None
    ) -> None:
        self.network = network
        self.solver = solver
        self.supply_bytes = network.pool_bytes
        self.total_bytes = float(self.supply_bytes.sum())
        degree = 1 + max(
            int(np.bincount(end, minlength=network.n_nodes).max(initial=0))
            for end in (network.tail, network.head)
        )
        self.scale = 2.0 ** math.floor(
            math.log2(CAPACITY_SUM_LIMIT / (2 * (degree + len(network.pools)) * self.total_bytes))
        )
        units = np.rint(self.supply_bytes * self.scale).astype(np.int64)
        self.supply_units = np.maximum(units, 1)  # few bytes among very many are not lost
        self.node_supply_units = np.zeros(network.n_nodes, dtype=np.int64)
        np.add.at(self.node_supply_units, network.pool_nodes, self.supply_units)
        self.active = _first_arcs(network, known)
        limited = network.stored & (network.room_bytes < self.total_bytes)
        self.limited_stores = np.flatnonzero(limited)

    def capacity_units(self, lengths_s: FloatArray) -> IntArray:
        """Capacity of the network's arcs; more than the total is never needed."""
        capacity = self.network.capacity_bytes(lengths_s)
        np.minimum(capacity, self.total_bytes, out=capacity)
        capacity *= (1 + CAPACITY_ROUNDING) * self.scale
        # Rounded up, by far less than a byte or 1e-14 of all data: a narrow link stays one.
        np.ceil(capacity, out=capacity)
        # Storage is not: what is stored is judged to the byte, not with a tolerance.
        capacity[self.limited_stores] = np.floor(
            self.network.room_bytes[self.limited_stores] * self.scale
        )
        return capacity.astype(np.int64)

    def supplied(self, lengths_s: FloatArray) -> SupplyNetwork:
        """Return the network in whole units."""
        network = self.network
        return SupplyNetwork(
            network.n_nodes,
            network.sink,
            network.tail,
            network.head,
            self.capacity_units(lengths_s),
            self.node_supply_units,
        )

    def saturate(self, lengths_s: FloatArray) -> tuple[IntArray, BoolArray | None]:
        """Return a maximum flow per arc, in units, and the minimum cut if it leaves some behind."""
        return largest_flow(self.supplied(lengths_s), self.solver, self.active)

    def supply_behind(self, cut: BoolArray) -> float:
        """Bytes that enter on the sources' side of a cut."""
        return float(self.supply_bytes[cut[self.network.pool_nodes]].sum())


def _first_arcs(network: LayeredNetwork, known: ScaledFlow | None) -> BoolArray:
    if known is None:
        return promising_arcs(network)
    if known.network is network:
        return known.active.copy()  # threads may share what is known
    return promising_arcs(network) | _same_links(network, known.network, known.active)


def promising_arcs(network: LayeredNetwork) -> BoolArray:
    """Mark arcs that fast flows with few hops are likely to need; all where there are few.

    All that is no link, all links into the destination, and of each host with data, in each
    piece, those to the relays that can pass on the most; in several pieces wide links into each
    relay, too.
    """
    n_hosts = int(network.node_host.max()) + 1
    if network.n_arcs <= FEW_PER_NODE * network.n_nodes:
        return np.ones(network.n_arcs, dtype=bool)
    host_to = network.node_host[network.head]
    active: BoolArray = (network.link == NO_LINK) | (host_to == network.sink)
    into = np.flatnonzero((network.link != NO_LINK) & (host_to == network.sink))
    onward = np.zeros((network.n_pieces, n_hosts))
    onward[network.piece[into], network.node_host[network.tail[into]]] = network.rate_bytes_per_s[
        into
    ]
    holders = np.unique([pool.host for pool in network.pools])
    if network.n_pieces > 1:  # in one piece relays seldom bind: `two_hops` has met that case
        active[_feeders(network, holders, n_hosts)] = True
    for piece, links in enumerate(_links_of_pieces(network)):
        host_from = network.node_host[network.tail[links]]
        bounds = np.searchsorted(host_from, np.array([holders, holders + 1]))
        for begin, end in bounds.T.tolist():
            arcs = links[begin:end]
            passed_on = np.minimum(network.rate_bytes_per_s[arcs], onward[piece, host_to[arcs]])
            if len(arcs) > FIRST_RELAYS:
                arcs = arcs[np.argpartition(passed_on, -FIRST_RELAYS)[-FIRST_RELAYS:]]
            active[arcs] = True
    return active


def _feeders(network: LayeredNetwork, holders: IntArray, n_hosts: int) -> IntArray:
    """Return for each host, in each piece, wide links from the hosts with data, `holders`.

    These are dealt to groups: the widest link from each is quick to find, and the links found come
    from different hosts.
    """
    group_of = np.full(n_hosts, -1)
    group_of[holders] = np.arange(len(holders)) % FIRST_FEEDERS
    group = group_of[network.node_host[network.tail]]
    links = np.flatnonzero((group >= 0) & (network.link != NO_LINK))
    key = network.head[links] * FIRST_FEEDERS + group[links]
    rate = network.rate_bytes_per_s[links]
    widest = np.zeros(network.n_nodes * FIRST_FEEDERS)
    np.maximum.at(widest, key, rate)
    found: IntArray = links[rate == widest[key]]
    return found


def _same_links(network: LayeredNetwork, other: LayeredNetwork, marked: BoolArray) -> BoolArray:
    """Mark the links that are marked in another network of the same problem, piece by piece."""
    links = np.flatnonzero(marked & (other.link != NO_LINK))
    n_links = 1 + max(int(net.link.max(initial=0)) for net in (network, other))
    known = np.zeros((max(network.n_pieces, other.n_pieces), n_links), dtype=bool)
    known[other.piece[links], other.link[links]] = True
    same: BoolArray = (network.link != NO_LINK) & known[network.piece, network.link]
    return same


def _links_of_pieces(network: LayeredNetwork) -> Iterator[IntArray]:
    """Arcs of links, piece by piece; within each they are sorted by the host that they leave."""
    links = np.flatnonzero(network.link != NO_LINK)
    bounds = np.searchsorted(network.piece[links], np.arange(network.n_pieces + 1))
    for begin, end in pairwise(bounds.tolist()):
        yield links[begin:end]


def newton(scaled: ScaledFlow, lengths_s: FloatArray) -> Quickest:
    """Find the least length of the last piece; ``lengths_s[-1]`` is ignored.

    Raises
    ------
    NeverArrives
        Some cut stays too small however long the last piece is.
    """
    network = scaled.network
    lengths = np.array(lengths_s, dtype=float)
    lengths[-1] = 0.0
    binding: BoolArray | None = None
    # Cuts around one node are cheap to try and often the answer.
    for simple in _single_node_cuts(scaled):
        length, _ = _length_through(scaled, simple, lengths)
        if length > lengths[-1]:
            lengths[-1], binding = length, simple
    for _ in range(MOST_ITERATIONS):
        _, cut = scaled.saturate(lengths)
        if cut is None:
            return Quickest(network, lengths, binding, scaled)
        length, rounding_s = _length_through(scaled, cut, lengths)
        # Rounding could return the same length for ever.
        lengths[-1], binding = max(length, lengths[-1] + rounding_s), cut
    raise SolverError(
        f"Newton's method did not converge in {MOST_ITERATIONS} cuts; capacities may span too many "
        "orders of magnitude: leave out links that carry next to nothing"
    )


def _single_node_cuts(scaled: ScaledFlow) -> Iterator[BoolArray]:
    """The cut before the sink, and the one behind the pool that needs longest by itself.

    Of several pieces only the first, and only where something arrives in the last: who is to blame
    where nothing does, a flow decides.
    """
    network = scaled.network
    before_sink = np.ones(network.n_nodes, dtype=bool)
    before_sink[network.sink] = False
    if network.n_pieces > 1:
        arriving = (network.head == network.sink) & (network.piece == network.n_pieces - 1)
        if network.rate_bytes_per_s[arriving].sum() > 0:
            yield before_sink
        return
    yield before_sink
    nodes = network.pool_nodes
    rate = np.bincount(network.tail, network.rate_bytes_per_s, network.n_nodes)[nodes]
    with np.errstate(divide="ignore"):
        slowest = nodes[np.argmax(scaled.supply_bytes / rate)]
    yield np.arange(network.n_nodes) == slowest


def _length_through(
    scaled: ScaledFlow, cut: BoolArray, lengths_s: FloatArray
) -> tuple[float, float]:
    """Say how long the last piece must be for all supply to cross `cut`, and what rounding adds."""
    network = scaled.network
    crossing = cut[network.tail] & ~cut[network.head]
    last = network.n_pieces - 1
    variable = crossing & (network.piece == last)
    rate = float(network.rate_bytes_per_s[variable].sum())
    if rate <= 0:
        raise NeverArrives(network, cut)
    before = np.flatnonzero(crossing & ~variable)
    fixed = float(network.capacity_bytes(lengths_s, before).sum())
    supply = scaled.supply_behind(cut)
    return (supply - fixed) / rate, CAPACITY_ROUNDING * (supply / rate + float(lengths_s[-1]))


def quickest(
    problem: Problem,
    starts_s: FloatArray,
    guard_s: float,
    solver: FlowSolver,
    known: ScaledFlow | None = None,
    likely: BoolArray | None = None,
) -> Quickest:
    """Find the earliest end over pieces that start at `starts_s`.

    Every piece but the last loses `guard_s`, which pipelines need to drain before it ends.
    `known` are flows of the same problem that need no drain: nothing ends in an earlier piece than
    theirs, and their arcs are a hint which matter. `likely` is a cut of their network: what binds
    where pieces are a little longer binds in most cases where they are shorter, too. Then one flow
    proves it.

    Raises
    ------
    NeverArrives
        Some data cannot arrive at all.
    """
    full = full_lengths_s(starts_s, guard_s)
    scaled: ScaledFlow | None = None

    def flows(n_pieces: int) -> ScaledFlow:
        nonlocal scaled
        if scaled is None or scaled.network.n_pieces != n_pieces:
            scaled = _scaled_flow(problem, starts_s[:n_pieces], solver, scaled or known)
        return scaled

    def behind(n_pieces: int) -> BoolArray | None:
        """Return the minimum cut if these pieces are too few."""
        if n_pieces == len(starts_s):
            return None  # the last piece has no end: Newton's method finds how much is needed
        return flows(n_pieces).saturate(full[:n_pieces])[1]

    def sufficient(n_pieces: int) -> int | None:
        return n_pieces if behind(n_pieces) is None else None

    n_pieces = _fewest_pieces(problem, starts_s, full, known)
    if known is not None and likely is not None and _begin_alike(known.network, n_pieces, starts_s):
        # What may cross the cut says without a flow how many pieces that takes; then one flow.
        tried = 0
        while n_pieces > tried:
            tried, scaled = n_pieces, flows(n_pieces)
            longer = _longer_cut(known.network, scaled.network, likely)
            found, n_pieces = _at_cut(problem, scaled, longer, starts_s, full)
            if found is not None:
                return found
    for _ in range(MOST_CUTS):
        cut = behind(n_pieces)
        if cut is None:
            break
        n_pieces = _pieces_through(problem, flows(n_pieces), cut, starts_s, full)
    else:
        n_pieces = smallest(sufficient, n_pieces, most=len(starts_s))
    return newton(flows(n_pieces), np.append(full[: n_pieces - 1], 0.0))


def _begin_alike(network: LayeredNetwork, n_pieces: int, starts_s: FloatArray) -> bool:
    """Say whether so many pieces begin as those of a network do, which has no more."""
    n_known = network.n_pieces
    return n_pieces >= n_known and np.array_equal(network.starts_s, starts_s[:n_known])


def _longer_cut(network: LayeredNetwork, longer: LayeredNetwork, cut: BoolArray) -> BoolArray:
    """Return a cut of more pieces, in which hosts are on the side that they are on in the last."""
    last = cut[: network.n_hosts * network.n_pieces][-network.n_hosts :]
    found: BoolArray = last[longer.node_host]
    found[nodes_in(network, longer)] = cut
    found[longer.sink] = False
    return found


def _at_cut(
    problem: Problem, scaled: ScaledFlow, cut: BoolArray, starts_s: FloatArray, full_s: FloatArray
) -> tuple[Quickest | None, int]:
    """Return the earliest end if a cut is what binds, and how many pieces that takes at least."""
    network, n_pieces = scaled.network, scaled.network.n_pieces
    lengths = np.append(full_s[: n_pieces - 1], 0.0)
    try:
        lengths[-1], _ = _length_through(scaled, cut, lengths)
    except NeverArrives:
        return None, n_pieces
    if lengths[-1] <= 0:
        return None, n_pieces
    if n_pieces < len(starts_s) and lengths[-1] > full_s[n_pieces - 1]:
        return None, _pieces_through(problem, scaled, cut, starts_s, full_s)
    _, behind = scaled.saturate(lengths)
    return Quickest(network, lengths, cut, scaled) if behind is None else None, n_pieces


def _pieces_through(
    problem: Problem, scaled: ScaledFlow, cut: BoolArray, starts_s: FloatArray, full_s: FloatArray
) -> int:
    """Return how many pieces it takes at least until all can have crossed a cut.

    More than it is cut in.

    In later pieces hosts are on the same side of it as in its last one. With the limits of those
    that send across, or of those that receive, each is a cut of more pieces.
    """
    network, n_pieces = scaled.network, scaled.network.n_pieces
    crossing = np.flatnonzero(cut[network.tail] & ~cut[network.head])
    crossed = float(network.capacity_bytes(full_s[:n_pieces], crossing).sum())
    hosts = np.arange(problem.n_hosts) + (n_pieces - 1) * problem.n_hosts
    is_behind = cut[hosts]
    is_behind[problem.destination_index] = False
    links = np.flatnonzero(is_behind[problem.link_from] & ~is_behind[problem.link_to])
    period = np.searchsorted(problem.periods_s, starts_s[n_pieces:-1], side="right") - 1
    rate = problem.bandwidth_bytes_per_s[:, links]
    sent = _within(rate, problem.link_from[links], problem.uplink_bytes_per_s)
    received = _within(rate, problem.link_to[links], problem.downlink_bytes_per_s)
    later = np.cumsum(np.minimum(sent, received)[period] * full_s[n_pieces:])
    through = (crossed + later) * (1 + SURELY)
    return n_pieces + 1 + int(np.searchsorted(through, scaled.supply_behind(cut)))


def _within(
    rate_bytes_per_s: FloatArray, host: npt.NDArray[np.integer], limit_bytes_per_s: FloatArray
) -> FloatArray:
    """Sum the rates of links, of each host no more than its limit; shape (n_periods,)."""
    total = np.zeros(len(rate_bytes_per_s))
    for each in np.unique(host).tolist():
        together = rate_bytes_per_s[:, host == each].sum(axis=1)
        total += np.minimum(together, limit_bytes_per_s[:, each])
    return total


def _fewest_pieces(
    problem: Problem, starts_s: FloatArray, full_s: FloatArray, known: ScaledFlow | None
) -> int:
    """Return how many pieces it takes at least, by what needs no flow; often the answer.

    The last data must be released, and all bytes cross the links into the destination.
    """
    latest_s = max(parcel.release_s for parcel in problem.parcels)
    fewest = 1 + int(np.searchsorted(starts_s, latest_s))
    if known is not None:
        begun = np.searchsorted(starts_s, known.network.starts_s[-1], side="right")
        fewest = max(fewest, int(begun))
    destination = problem.destination_index
    into = np.flatnonzero(problem.link_to == destination)
    rate = problem.bandwidth_bytes_per_s[:, into].sum(axis=1)
    rate = np.minimum(rate, problem.downlink_bytes_per_s[:, destination])
    period = np.searchsorted(problem.periods_s, starts_s[:-1], side="right") - 1
    arrived = np.cumsum(rate[period] * full_s) * (1 + SURELY)
    return max(fewest, 1 + int(np.searchsorted(arrived, problem.total_bytes)))


def _scaled_flow(
    problem: Problem, starts_s: FloatArray, solver: FlowSolver, known: ScaledFlow | None
) -> ScaledFlow:
    """Return flows over these pieces, on the known network where it is the same."""
    if known is not None and np.array_equal(known.network.starts_s, starts_s):
        return ScaledFlow(known.network, solver, known)
    return ScaledFlow(layered_network(problem, starts_s), solver, known)
