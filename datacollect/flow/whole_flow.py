"""Flows in whole bytes where storage is full: there nothing may be rounded afterwards.

Paths of a fluid flow become whole bytes one by one, each off by less than a byte. Where several
meet in storage that is full to the byte, one byte is too many, and at the earliest end no room can
be left for it. But where capacities and supplies are whole, a whole flow costs no more than any
other (Ford and Fulkerson, Flows in Networks, 1962). So what a cheapest flow carries, rounded up, is
the capacity of each of its arcs, and of storage what it has room for: the cheapest flow in there
needs no rounding, and keeps what no network knows of, shared bottlenecks, to a byte for each arc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.flow.network.few_arcs import SupplyNetwork, cheapest_flow, suffice
from datacollect.flow.network.preference import arc_costs, path_costs
from datacollect.flow.network.ties import settled
from datacollect.flow.network.tolerances import PROGRAM_SLACK
from datacollect.solvers.networks import FlowNetwork

if TYPE_CHECKING:
    from datacollect.files.choices import Preference
    from datacollect.flow.network.layered import LayeredNetwork
    from datacollect.flow.quickest.cheapest import CheapestFlow
    from datacollect.numbers.arrays import IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget

# Floats count bytes one by one up to here.
MOST_COUNTED = 2**52

# Less than this part of a byte is none: a flow in floats is off by that.
NO_BYTES = 1e-6

# Linear programs lose and invent data within their tolerances: then arcs may carry a part more.
SLACK = (0.0, *PROGRAM_SLACK)


def in_whole_bytes(
    problem: Problem, found: CheapestFlow, prefer: Preference, budget: Budget
) -> CheapestFlow | None:
    """Return a flow as cheap, on the same arcs, whose units are bytes; None where none is needed.

    None, too, where bytes are too many to count, or a linear program is off by too much.

    Parameters
    ----------
    problem : Problem
    found : CheapestFlow
    prefer : str
        By which it is the cheapest.
    budget : Budget
    """
    network = found.network
    arcs = np.flatnonzero(found.flow_bytes > 0)
    flow_bytes, room_bytes = found.flow_bytes[arcs], network.room_bytes[arcs]
    # Rounding may put a byte too many there for each path, of which there are about as many.
    is_full = flow_bytes + len(arcs) > room_bytes
    if not is_full.any() or sum(pool.n_bytes for pool in network.pools) > MOST_COUNTED:
        return None
    solver = budget.flow_solver()
    costs = path_costs(problem, prefer, found.lengths_s, network.n_nodes)
    cost = arc_costs(costs, network, network.piece)[arcs]
    for slack in SLACK:
        most = np.ceil(flow_bytes * (1 + slack) - NO_BYTES)
        capacity = np.where(is_full, room_bytes, most).astype(np.int64)
        part = _on(network, arcs, capacity)
        if suffice(part, solver, np.arange(len(arcs))):
            break
    else:
        return None
    units = cheapest_flow(part, cost, solver, np.ones(len(arcs), dtype=bool))
    if budget.settle_ties:
        columns = (part.tail, part.head, part.capacity, cost)
        units = settled(FlowNetwork(network.n_nodes, *columns), units, solver)
    whole = np.zeros(network.n_arcs, dtype=np.int64)
    whole[arcs] = units
    return replace(found, flow_bytes=whole.astype(float), units=whole, unit_bytes=1.0)


def _on(network: LayeredNetwork, arcs: IntArray, capacity: IntArray) -> SupplyNetwork:
    """Return some arcs with these capacities, and all bytes that enter."""
    supply = np.zeros(network.n_nodes, dtype=np.int64)
    for pool in network.pools:
        supply[pool.node] += pool.n_bytes
    return SupplyNetwork(
        network.n_nodes, network.sink, network.tail[arcs], network.head[arcs], capacity, supply
    )
