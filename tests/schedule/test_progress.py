"""Progress: where data lie, and the problem that remains."""

from __future__ import annotations

import dataclasses

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from instances.replanned import MANY_DISCARDED, ends, mesh, plan_over_k, planned, relay_problem
from instances.small_problems import MB
from instances.strategies import problems

import datacollect as dc

# What lies where -----------------------------------------------------------------------------


def test_what_the_plan_says_lies_where():
    """After 3 of 4 s, with chunks of 1 s: K got 3 MB and passed 2 MB on; 3 MB came directly."""
    plan = plan_over_k(chunk_s=1.0)
    held = dc.Progress.from_schedule(relay_problem(), plan, 3.0).held
    at = {name: sum(h.n_bytes for h in held if h.host == name) for name in "DKS"}
    assert at == {"D": 5 * MB, "K": 1 * MB, "S": 0}


def test_what_never_moves_again_stays_collected():
    problem = relay_problem(held=(dc.Held("D", "S", 0, MB), dc.Held("K", "S", MB, MB)))
    plan = dc.coordinated(problem, chunk_s=0.0)
    held = dc.Progress.from_schedule(problem, plan, 0.0).held
    assert set(held) == set(problem.held)
    done = dc.Progress.from_schedule(problem, plan, plan.makespan_s)
    assert dc.remaining_problem(problem, done).total_bytes == 0


@given(problems(), st.floats(0.0, 1.2), st.sampled_from([None, 0.0, 0.25]))
@MANY_DISCARDED
def test_bytes_delivered_and_the_rest_are_all(problem, part, chunk_s):
    plan = planned(problem, chunk_s=chunk_s)
    progress = dc.Progress.from_schedule(problem, plan, part * plan.makespan_s)
    remaining = dc.remaining_problem(problem, progress)
    delivered = sum(h.n_bytes for h in progress.held if h.host == "D")
    own = int(problem.backlog_bytes[problem.destination_index])
    assert delivered + remaining.total_bytes + own == int(problem.backlog_bytes.sum())


# What remains --------------------------------------------------------------------------------


def test_releases_and_periods_are_counted_from_now():
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 10, release_s=5.0), dc.Host("R", 10, release_s=1.0), dc.Host("D")],
        [dc.Link("S", "D", [1.0, 2.0, 3.0]), dc.Link("R", "D", [4.0, 5.0, 6.0])],
        "D",
        periods_s=[0.0, 3.0, 7.0],
    )
    rest = dc.remaining_problem(problem, dc.Progress(3.5))
    assert rest.release_s.tolist() == [1.5, 0.0, 0.0]
    assert rest.periods_s.tolist() == [0.0, 3.5]
    assert rest.bandwidth_bytes_per_s.tolist() == [[2.0, 5.0], [3.0, 6.0]]


def test_new_estimates_replace_add_and_keep():
    """Of two periods one is over; the new forecast changes after 1 s, the old one after 2 s."""
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 10), dc.Host("K"), dc.Host("D")],
        [dc.Link("S", "D", [1.0, 2.0, 3.0], 5.0), dc.Link("K", "D", [4.0, 5.0, 6.0], 7.0)],
        "D",
        periods_s=[0.0, 3.0, 6.0],
    )
    tree = {
        "format": "datacollect-progress/1",
        "at_s": 4.0,
        "periods_s": [0.0, 1.0],
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": [10.0, 20.0]},
            {"from": "S", "to": "K", "bandwidth_bytes_per_s": 30.0, "price_per_gb": 9.0},
        ],
    }
    rest = dc.remaining_problem(problem, dc.Progress.from_dict(tree, problem))
    assert rest.periods_s.tolist() == [0.0, 1.0, 2.0]
    bandwidth = {ends(rest, i): rest.bandwidth_bytes_per_s[:, i].tolist() for i in range(3)}
    assert bandwidth == {
        ("S", "D"): [10.0, 20.0, 20.0],
        ("K", "D"): [5.0, 5.0, 6.0],
        ("S", "K"): [30.0, 30.0, 30.0],
    }
    prices = {ends(rest, i): float(rest.price_per_gb[i]) for i in range(3)}
    assert prices == {("S", "D"): 5.0, ("K", "D"): 7.0, ("S", "K"): 9.0}


def test_new_estimates_of_all_links_leave_the_links_as_they_are():
    problem = mesh(9, 1, limits=True)
    kept = np.full(problem.n_links, np.nan)
    faster = 2 * problem.bandwidth_bytes_per_s
    new = dc.NewLinks(problem.link_from, problem.link_to, faster, kept, np.zeros(1))
    rest = dc.remaining_problem(problem, dc.Progress(0.0, links=new))
    assert np.shares_memory(rest.link_from, problem.link_from)
    assert rest.bandwidth_bytes_per_s.tolist() == faster.tolist()
    some = np.array([40, 3, 17])
    new = dc.NewLinks(
        problem.link_from[some], problem.link_to[some], faster[:, some], kept[some], np.zeros(1)
    )
    rest = dc.remaining_problem(problem, dc.Progress(0.0, links=new))
    changed = rest.bandwidth_bytes_per_s[0] / problem.bandwidth_bytes_per_s[0]
    assert np.flatnonzero(changed == 2).tolist() == [3, 17, 40]


def test_links_of_lost_hosts_vanish_and_what_they_held_starts_again():
    shared = (
        dc.SharedBottleneck("both", 1e6, [("S", "K"), ("S", "J")]),
        dc.SharedBottleneck("one", 1e6, [("S", "K")]),
    )
    problem = relay_problem(shared=shared)
    lost = dc.Held("K", "S", 0, MB)
    progress = dc.Progress(1.0, held=(lost, dc.Held("D", "S", MB, MB)), lost_hosts=("K",))
    rest = dc.remaining_problem(problem, progress)
    assert progress.lost_data == (lost,)
    assert {ends(rest, i) for i in range(rest.n_links)} == {("S", "D"), ("S", "J"), ("J", "D")}
    assert [(s.name, tuple(s.links)) for s in rest.shared] == [("both", (("S", "J"),))]
    assert [(p.host, p.offset_bytes, p.n_bytes) for p in rest.parcels] == [
        (0, 0, MB),
        (0, 2 * MB, 6 * MB),
    ]


def test_a_relay_has_room_for_what_it_holds():
    problem = relay_problem(storage_bytes=np.zeros(4))
    rest = dc.remaining_problem(problem, dc.Progress(1.0, held=(dc.Held("K", "S", 0, MB),)))
    assert rest.storage_bytes.tolist() == [0.0, MB, 0.0, 0.0]


def test_where_only_hosts_change_links_are_neither_copied_nor_forgotten():
    problem = mesh(9, 1, limits=True)
    assert problem.sha256
    assert problem.parcels
    half = int(problem.backlog_bytes[1]) // 2
    rest = dc.remaining_problem(problem, dc.Progress(0.0, held=(dc.Held("h0", "h1", 0, half),)))
    assert np.shares_memory(rest.bandwidth_bytes_per_s, problem.bandwidth_bytes_per_s)
    assert rest.total_bytes == problem.total_bytes - half
    in_full = dataclasses.replace(rest)  # checks and computes all of it again
    assert rest.sha256 == in_full.sha256 != problem.sha256
    assert rest.parcels == in_full.parcels
    with pytest.raises(dc.ProblemError, match="storage_bytes must be >= 0, got -1"):
        rest.replace(storage_bytes=np.full(9, -1.0))


@pytest.mark.parametrize(("offset", "n_bytes"), [(2**70, 1), (0, 2**70), (-(2**70), 1), (1, -1)])
def test_numbers_beyond_64_bits_are_refused_as_ranges(offset, n_bytes):
    progress = dc.Progress(0.0, held=(dc.Held("K", "S", offset, n_bytes),))
    with pytest.raises(dc.ProblemError, match="the range must lie within the backlog of 8000000"):
        dc.remaining_problem(relay_problem(), progress)
