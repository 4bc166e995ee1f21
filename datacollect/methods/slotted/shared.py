"""Slotted plans with shared bottlenecks: a linear program on the time-expanded graph.

As for plain flows few arcs are built. Among these the program finds the optimum; its prices tell
which absent arcs are attractive, and these are added until there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, SolverError
from datacollect.flow.network.arc_copies import with_copies
from datacollect.flow.network.preference import Costs
from datacollect.flow.network.tolerances import ATTAINED
from datacollect.flow.shared.network import SharedNetwork, arcs_to_sink
from datacollect.flow.shared.pricing import cheapest, largest_share
from datacollect.methods.slotted.graph import slot_costs
from datacollect.methods.slotted.pricing import attractive, least_cost_flow, most_worth, priced
from datacollect.methods.slotted.whole_bytes import Bottlenecks, WholeFlow
from datacollect.methods.timing.slots import whole_slot_bytes
from datacollect.methods.timing.tolerances import TOLERATED

if TYPE_CHECKING:
    from datacollect.flow.shared.pricing import PricedFlow
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.methods.slotted.pricing import Discount
    from datacollect.methods.slotted.search import Found, PartialGraph
    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


def shared_suffices(
    problem: Problem, part: PartialGraph, budget: Budget, undecided: list[int] | None = None
) -> Found | None:
    """Return a graph, and a flow of whole bytes that empties all pools; None if none is found.

    Parameters
    ----------
    undecided : list of int, optional
        The number of slots is added where there may be such a flow nevertheless.
    """
    n_slots = part.graph.n_slots
    link, stored, arrival = (np.zeros(n, np.int64) for n in (problem.n_links, n_slots, n_slots))
    free = Costs(link, stored, arrival)
    while True:
        network = _program(problem, part.graph)
        found = largest_share(network, budget, np.arange(network.n_arcs))
        cost = slot_costs(free, part.graph)
        if found.share >= 1 - ATTAINED:
            flow, is_decided = _some_whole(problem, part, cost, network, found, budget)
            if flow is not None:
                return part, flow
            if not is_decided and undecided is not None:
                undecided.append(n_slots)
            return None
        if part.is_complete:
            return None
        more = _worth_adding(part, free, cost, network, found)
        if len(more) == 0:
            return None
        part = part.extended(more)


def cheapest_shared(
    problem: Problem,
    enough: Found,
    costs: Costs,
    budget: Budget,
    discount: Discount | None = None,
) -> tuple[Found, bool]:
    """Return a graph, the cheapest flow of whole bytes found, and whether it is proved cheapest.

    The program's optimum may split bytes. A network flow within its arcs, each rounded up to a
    whole byte, exists and is whole (flows on integer capacities are integral), and costs no more.
    Where it is too much for a shared bottleneck, see `datacollect.methods.slotted.whole_bytes`.

    Parameters
    ----------
    enough : Found
        A flow that empties all pools, as `shared_suffices` returns; the answer where no cheaper one
        is found.

    Raises
    ------
    SolverError
        Numbers too far apart for the solver's tolerances.
    """
    part = enough[0]
    while True:
        graph, cost, copies = priced(part, costs, discount)
        network = _program(problem, graph)
        every, full = np.arange(network.n_arcs), np.arange(part.graph.n_arcs, network.n_arcs)
        try:
            found = cheapest(network, cost.astype(float), budget, every, full)
        except InfeasibleError as report:
            raise _too_wide(problem, graph, budget) from report
        more = every[:0] if part.is_complete else _worth_adding(part, costs, cost, network, found)
        if len(more) == 0:
            break
        part = part.extended(more)
    limits = _bottlenecks(problem, graph, network)
    whole = _rounded(problem, graph, cost, found, budget)
    is_proved = limits.respected_by(whole)
    if not is_proved:
        best = limits.best(cost, budget)
        is_proved = best.is_proved and part.is_complete
        near = best.flow
        if near is None:
            near = limits.shared_out(found.flow_bytes, cost, budget)
        if near is None:
            return enough, False
        whole = near
    return (part, with_copies(whole, part.graph.n_arcs, copies)), is_proved


def _some_whole(
    problem: Problem,
    part: PartialGraph,
    cost: IntArray,
    network: SharedNetwork,
    found: PricedFlow,
    budget: Budget,
) -> WholeFlow:
    """Return a flow of whole bytes where the program has one that splits them.

    That it is decided means: there is one, or it is proved that there is none.
    """
    limits = _bottlenecks(problem, part.graph, network)
    flow = _rounded(problem, part.graph, cost, found, budget)
    if limits.respected_by(flow):
        return WholeFlow(flow, is_proved=True)
    near = limits.shared_out(found.flow_bytes, cost, budget)
    if near is not None:
        return WholeFlow(near, is_proved=True)
    best = limits.best(cost, budget)
    if best.flow is None and not best.is_proved:
        return WholeFlow(limits.by_turns(cost, budget), is_proved=False)
    return WholeFlow(best.flow, best.is_proved and part.is_complete)


def _bottlenecks(problem: Problem, graph: TimeExpandedGraph, network: SharedNetwork) -> Bottlenecks:
    """Say what fits: whole bytes, and what rates may be above, which are bytes where many pass."""
    rate = np.array([bottleneck.bandwidth_bytes_per_s for bottleneck in problem.shared])
    room = whole_slot_bytes(rate * (1 + TOLERATED), graph.slot_s, max(problem.total_bytes, 1))
    return Bottlenecks(graph, network, np.repeat(room, graph.n_slots))


def _program(problem: Problem, graph: TimeExpandedGraph) -> SharedNetwork:
    """Say what the linear program needs to know: a side constraint per bottleneck and slot."""
    supply = np.zeros(graph.n_nodes)
    for pool in graph.pools:
        supply[pool.node] += pool.n_bytes
    rows, arcs = [], []
    for number, members in enumerate(problem.shared_links):
        users = np.flatnonzero((graph.link >= 0) & np.isin(graph.link, members))
        rows.append(number * graph.n_slots + graph.slot[users])
        arcs.append(users)
    rate = np.array([bottleneck.bandwidth_bytes_per_s for bottleneck in problem.shared])
    room = whole_slot_bytes(rate, graph.slot_s, problem.total_bytes)
    return SharedNetwork(
        n_nodes=graph.n_nodes,
        sink=graph.sink,
        tail=graph.tail,
        head=graph.head,
        capacity_bytes=graph.capacity_bytes.astype(float),
        supply_bytes=supply,
        member_row=np.concatenate(rows),
        member_arc=np.concatenate(arcs),
        room_bytes=np.repeat(room, graph.n_slots).astype(float),
    )


def _worth_adding(
    part: PartialGraph, costs: Costs, cost: IntArray, network: SharedNetwork, found: PricedFlow
) -> IntArray:
    """Keys of the most attractive absent arcs; none if they promise less than solvers attain."""
    graph = part.graph
    price = found.node_price.copy()
    tolls = -found.row_price.reshape(-1, graph.n_slots)
    # Nodes from which nothing can get on, for want of arcs or of room, have no price of their own:
    # too high to send there, so that onward arcs are attractive, whatever they cost and whichever
    # tolls they pay.
    _, width_bytes = arcs_to_sink(network)
    lost = width_bytes <= 0
    largest_cost = float(max(costs.link.max(initial=0), 1)) + float(costs.arrival.max(initial=0))
    largest_toll = float(tolls.max(axis=1, initial=0.0).sum())
    price[lost] = float(price[~lost].max()) + largest_cost + largest_toll
    keys, worth = attractive(part, costs, price, tolls)
    value = abs(float(found.flow_bytes @ cost)) or network.total_bytes
    if float(worth.sum()) <= ATTAINED * value:
        return keys[:0]
    return most_worth(part, keys, worth)


def _rounded(
    problem: Problem, graph: TimeExpandedGraph, cost: IntArray, found: PricedFlow, budget: Budget
) -> IntArray:
    """Return the cheapest flow of whole bytes within the program's, rounded up."""
    noise = ATTAINED * float(sum(pool.n_bytes for pool in graph.pools))

    def within(allowance_bytes: float) -> IntArray:
        room = np.minimum(found.flow_bytes + allowance_bytes, graph.capacity_bytes)
        whole = np.ceil(np.maximum(room, 0.0)).astype(np.int64)
        return least_cost_flow(graph, whole, cost, budget)

    try:
        # What should be whole may be a hair more; a tenth of a byte never matters.
        return within(-min(noise, 0.1))
    except InfeasibleError:
        pass
    try:
        return within(noise)
    except InfeasibleError as report:
        raise _too_wide(problem, graph, budget) from report


def _too_wide(problem: Problem, graph: TimeExpandedGraph, budget: Budget) -> SolverError:
    """Say that a program known to have a solution was too much for the solver's tolerances."""
    smallest = min(pool.n_bytes for pool in graph.pools if pool.n_bytes > 0)
    return SolverError(
        f"{budget.linear_solver().name}: amounts span too many orders of magnitude for its "
        f"tolerances; of {problem.total_bytes} bytes in all a source holds {smallest}; use a "
        f"slot longer than {graph.slot_s:g} s, leave out backlogs and links of next to nothing, "
        "or plan without slots"
    )
