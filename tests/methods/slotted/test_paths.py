"""Path decomposition of flows through a time-expanded graph."""

from __future__ import annotations

import numpy as np
import pytest
from instances.hand_made import links
from instances.slotted_plans import overlay, plan_slots, slots_of

import datacollect as dc
from datacollect.flow.network.preference import PREFERENCES
from datacollect.methods.slotted.paths import _injections, slotted_pieces
from datacollect.methods.slotted.search import partial_graph, saturating
from datacollect.problem.hosts import Held, Host
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def test_first_in_first_out_at_a_relay_that_has_data_of_its_own():
    """K -> D carries 3 a slot: slot 0 takes K's own 2 bytes, slots 1 and 2 S's 4 bytes as 3 + 1.

    S sends each byte in the slot before, so that none waits at K.
    """
    problem = Problem.from_hosts(
        [Host("S", 4), Host("K", 2), Host("D")], links("S -> K 4, K -> D 3"), "D"
    )
    plan = plan_slots(problem, "earliest-arrival")
    moved = {}
    for row in plan.transfers.itertuples():
        moved.setdefault((row.source, row.hop), []).append((row.start_s, row.bytes))
    assert moved == {
        ("K", 0): [(0.0, 2)],
        ("S", 0): [(0.0, 3), (1.0, 1)],
        ("S", 1): [(1.0, 3), (2.0, 1)],
    }


def test_pieces_of_a_job_move_the_same_bytes_on_every_hop():
    problem = overlay(14, 3, 5, held=())
    budget = Budget()
    part = partial_graph(problem, 1.0, 30, np.arange(problem.n_links))
    part, flow = saturating(part, budget)
    jobs, pieces = slotted_pieces(part.graph, flow)
    moved = {}
    for job, hop, slot, n_bytes in pieces.tolist():
        assert n_bytes > 0
        moved.setdefault(job, {}).setdefault(hop, []).append((slot, n_bytes))
    assert sum(sum(n for _, n in hops[0]) for hops in moved.values()) == problem.total_bytes
    for job, hops in moved.items():
        assert len(hops) == len(jobs[job][1]) - 1
        assert len({sum(n for _, n in rows) for rows in hops.values()}) == 1


def test_held_data_leave_from_their_holder_and_own_data_from_their_source():
    """K holds 3 of S's 5 bytes; everything goes over K -> D at 4 a slot."""
    problem = Problem.from_hosts(
        [Host("S", 5), Host("K", storage_bytes=3), Host("D")],
        links("S -> K 2, K -> D 4"),
        "D",
        held=[Held("K", "S", 2, 3)],
    )
    plan = plan_slots(problem)
    assert slots_of(plan) == 2
    begun = {
        (plan.routes[route].hosts, offset, n_bytes)
        for route, hop, offset, n_bytes in zip(
            *(getattr(plan.columns, name).tolist() for name in ("route", "hop", "offset_bytes")),
            plan.columns.n_bytes.tolist(),
            strict=True,
        )
        if hop == 0
    }
    assert begun == {(("S", "K", "D"), 0, 2), (("K", "D"), 2, 3)}


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_no_route_visits_a_host_twice_without_storage_limits(few_arcs, prefer):
    plan = plan_slots(overlay(16, 3, 2), prefer)
    assert all(len(set(route.hosts)) == len(route.hosts) for route in plan.routes)


def test_bytes_beyond_2_to_the_53_are_counted_to_the_last():
    """Nothing is held elsewhere: of an empty list numpy once made floats, which round."""
    n_bytes = 2**54 + 1
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 2.0**55], [0, 0]], [n_bytes, 0], "D")
    graph = partial_graph(problem, 1.0, 1, np.arange(1)).graph
    flow = np.where(graph.link < 0, 0, n_bytes)
    own = [pool.node for pool in graph.pools]
    flow[np.isin(graph.tail, own)] = n_bytes
    *_, entering = _injections(graph, flow)
    assert entering.tolist() == [n_bytes]
