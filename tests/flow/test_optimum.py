"""The fluid optimum against hand-derived answers and an independent linear program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from instances.hand_made import links
from instances.how_many import many
from instances.small_problems import MB, figure_1, relay, returning, shared_relay
from instances.strategies import problems
from judges.bound_judge import bound_agrees
from judges.oracle import fluid_makespan_s

import datacollect as dc
from datacollect.flow.optimum import fluid_optimum
from datacollect.problem.hosts import Held, Host, Link
from datacollect.problem.problem import Problem
from datacollect.solvers.budget import Budget


def bound(problem, solver="auto"):
    return dc.lower_bound(problem, solver=solver)


def test_one_link_takes_bytes_over_bandwidth(solver):
    """10 bytes at 4 bytes/s: 2.5 s."""
    problem = Problem.from_hosts([Host("S", 10), Host("D")], links("S -> D 4"), "D")
    seconds, bottleneck = bound(problem, solver)
    assert seconds == pytest.approx(2.5, rel=1e-12)
    assert bottleneck.kind == "destination"
    assert bottleneck.hosts == ("S",)


def test_a_relay_adds_its_route(solver):
    """1 MB/s directly and 2 MB/s through K: 6 MB take 2 s; all that leaves S is full."""
    seconds, bottleneck = bound(relay(), solver)
    assert seconds == pytest.approx(2.0, rel=1e-12)
    assert bottleneck.kind == "source"
    assert bottleneck.hosts == ("S",)
    assert "'S'" in bottleneck.text
    assert "24 Mbit/s" in bottleneck.text


def test_hosts_limits_bind_before_links(solver):
    """K's uplink of 1 MB/s leaves 1 + 1 MB/s: 3 s. With S's uplink of 1.5 MB/s: 4 s."""
    assert bound(relay(K={"uplink_bytes_per_s": 1e6}), solver)[0] == pytest.approx(3.0)
    seconds, bottleneck = bound(relay(S={"uplink_bytes_per_s": 1.5e6}), solver)
    assert seconds == pytest.approx(4.0)
    assert "uplink of 'S'" in bottleneck.text


def test_the_destinations_downlink_is_named(solver):
    """6 MB into 1 MB/s: 6 s whatever the relays do."""
    seconds, bottleneck = bound(relay(D={"downlink_bytes_per_s": 1e6}), solver)
    assert seconds == pytest.approx(6.0)
    assert bottleneck.kind == "destination"
    assert "downlink" in bottleneck.text
    assert "relays cannot help" in bottleneck.text


def test_an_interior_cut_binds_several_sources(solver):
    """A and B reach D only through one link each to K: 8 MB through K -> D at 2 MB/s, 4 s.

    With K -> D widened to 9 MB/s their own links of 2 MB/s bind: 2 s. With a second relay behind
    a link K -> L of 1 MB/s between them and D, the cut {A, B, K} binds: 8 s.
    """
    seconds, bottleneck = bound(shared_relay(), solver)
    assert (seconds, bottleneck.kind) == (pytest.approx(4.0), "destination")
    chain = Problem.from_hosts(
        [Host("A", 4 * MB), Host("B", 4 * MB), Host("K"), Host("L"), Host("D")],
        links("A -> K 2e6, B -> K 2e6, K -> L 1e6, L -> D 9e6"),
        "D",
    )
    seconds, bottleneck = bound(chain, solver)
    assert seconds == pytest.approx(8.0)
    assert (bottleneck.kind, bottleneck.hosts) == ("hosts", ("A", "B"))
    assert "'K' -> 'L'" in bottleneck.text


def test_figure_1_takes_one_unit_of_time(linear_solver):
    """2 units over 1 unit/s to N1 and 1 unit/s through K: 1 s (Chou et al. 2002, Figure 1)."""
    seconds, bottleneck = bound(figure_1(), linear_solver)
    assert seconds == pytest.approx(1.0, rel=1e-9)
    assert bottleneck.kind == "shared"
    assert bottleneck.hosts == ("S1", "S2")
    assert "'N1-D'" in bottleneck.text


def test_a_forecast_is_integrated(solver):
    """1 byte/s for 2 s, then 4 bytes/s: 10 bytes take 2 + 8 / 4 = 4 s."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("D")], links("S -> D 1 4"), "D", periods_s=[0.0, 2.0]
    )
    assert bound(problem, solver)[0] == pytest.approx(4.0, rel=1e-9)


def test_released_data_wait(solver):
    """Nothing before 5 s, then 10 bytes at 5 bytes/s: 7 s."""
    problem = Problem.from_hosts([Host("S", 10, release_s=5.0), Host("D")], links("S -> D 5"), "D")
    seconds, bottleneck = bound(problem, solver)
    assert seconds == pytest.approx(7.0, rel=1e-9)
    assert bottleneck.hosts == ("S",)


def test_storage_limits_what_waits_for_a_better_period(solver):
    """S -> K carries 5 bytes/s for 2 s and 1 byte/s after; K -> D opens at 2 s with 10 bytes/s.

    12 bytes. Unlimited storage: 10 wait at K, 2 follow at 1 byte/s: 4 s. Storage for 4: 4 wait,
    8 follow at 1 byte/s: 10 s.
    """

    def problem(storage):
        return Problem.from_hosts(
            [Host("S", 12), Host("K", storage_bytes=storage), Host("D")],
            links("S -> K 5 1, K -> D 0 10"),
            "D",
            periods_s=[0.0, 2.0],
        )

    assert bound(problem(math.inf), solver)[0] == pytest.approx(4.0, rel=1e-9)
    seconds, bottleneck = bound(problem(4), solver)
    assert seconds == pytest.approx(10.0, rel=1e-9)
    assert "storage at 'K'" in bottleneck.text


def test_held_data_start_where_they_lie(solver):
    """8 of S's 10 bytes lie at K, 1 at D. S sends 1 byte at 1 byte/s, K 8 at 4: 2 s."""
    problem = Problem.from_hosts(
        [Host("S", 10), Host("K"), Host("D")],
        links("S -> D 1, K -> D 4"),
        "D",
        held=[Held("K", "S", 2, 8), Held("D", "S", 0, 1)],
    )
    assert problem.total_bytes == 9
    assert bound(problem, solver)[0] == pytest.approx(2.0, rel=1e-12)


def test_nothing_to_move_takes_no_time():
    for problem in (
        Problem.from_hosts([Host("D", 5)], [], "D"),
        Problem.from_hosts([Host("S"), Host("D")], links("S -> D 1"), "D"),
        Problem.from_hosts([Host("S", 5), Host("D")], [], "D", held=[Held("D", "S", 0, 5)]),
    ):
        seconds, bottleneck = bound(problem)
        assert seconds == 0.0
        assert (bottleneck.kind, bottleneck.hosts) == ("none", ())


def test_all_hosts_that_cannot_reach_the_destination_are_named(solver):
    problem = Problem.from_hosts(
        [Host("A", 1), Host("B", 2), Host("C", 3), Host("K"), Host("D")],
        links("A -> D 1, B -> K 1, C -> K 1"),
        "D",
    )
    with pytest.raises(dc.InfeasibleError, match="'B' and 'C'") as caught:
        bound(problem, solver)
    assert caught.value.hosts == ("B", "C")


def test_bandwidth_that_ends_too_soon_is_infeasible(solver):
    """3 bytes/s for 2 s carry 6 of 7 bytes, then nothing."""
    problem = Problem.from_hosts(
        [Host("S", 7), Host("D")], links("S -> D 3 0"), "D", periods_s=[0.0, 2.0]
    )
    with pytest.raises(dc.InfeasibleError, match="'S'"):
        bound(problem, solver)


@pytest.mark.parametrize("unit", [1, 10**15])
def test_large_and_small_numbers_are_exact(solver, unit):
    """A petabyte at a petabyte/s, or a byte at a byte/s: always the numbers of `relay`."""
    problem = Problem.from_hosts(
        [Host("S", 6 * unit), Host("K"), Host("D")],
        [Link("S", "D", unit), Link("S", "K", 2.0 * unit), Link("K", "D", 3.0 * unit)],
        "D",
    )
    assert bound(problem, solver)[0] == pytest.approx(2.0, rel=1e-12)


def test_nine_orders_of_magnitude_in_one_problem():
    """A holds 1e15 bytes behind 1e9 bytes/s, B one byte behind 1 byte/s: A's 1e6 s bind."""
    problem = Problem.from_hosts(
        [Host("A", 10**15), Host("B", 1), Host("D")], links("A -> D 1e9, B -> D 1"), "D"
    )
    plan = dc.coordinated(problem)
    assert plan.makespan_s == pytest.approx(1e6, rel=1e-9)
    plan.check(problem)


def test_a_full_mesh_needs_no_look_at_every_route(solver):
    """Random meshes: the two-hop proof and Newton's method on the whole network agree."""
    rng = np.random.default_rng(1)
    n = 12
    for _ in range(5):
        bandwidth = rng.lognormal(0, 1, (n, n)) * 1e6
        backlog = np.where(rng.random(n) < 0.4, rng.integers(1e8, 1e9, n), 0)
        backlog[0] = 0
        names = [f"h{i}" for i in range(n)]
        plain = Problem.from_matrix(names, bandwidth, backlog, "h0")
        # A limit that never binds sends the same problem down the general path.
        limited = plain.replace(uplink_bytes_per_s=np.full(n, 1e12))
        assert bound(plain, solver)[0] == pytest.approx(bound(limited, solver)[0], rel=1e-9)


def test_the_optimum_is_found_once_per_problem_and_solver():
    problem = relay()
    assert fluid_optimum(problem, Budget()) is fluid_optimum(problem, Budget())


def test_data_that_return_to_their_owner_need_no_room_there_and_the_bound_knows():
    """By T, K -> D has carried T and S -> D 8 (T - 1), together 8: T = 16 / 9.

    The plan gives S's room for 4 bytes of others to the data: 4 by way of S, and 4 over K -> D
    in 4 s. It says that it may not be fastest.
    """
    problem = returning(storage_bytes=4)
    expected = fluid_makespan_s(problem)
    assert expected == pytest.approx(1 + 7 / 9)
    assert bound(problem)[0] == pytest.approx(expected)
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert (plan.status, plan.makespan_s) == ("heuristic", pytest.approx(4.0, rel=0.01))
    assert dc.coordinated(returning()).status == "optimal"


def owner_as_relay() -> Problem:
    """S2 has 300 bytes, 50 of them at S1 now; S1 has 3000, which reach D over S2 after second 1.

    S2 has no room for others' data, so behind second 1 S1's pass it as they come, at 1 byte/s.
    """
    hosts = [Host("D"), Host("S2", 300, storage_bytes=0), Host("S1", 3000)]
    flows = links("S2 -> D 1000 1000, S1 -> D 500 0, S1 -> S2 3000 1")
    return Problem.from_hosts(
        hosts, flows, "D", periods_s=[0.0, 1.0], held=[Held("S1", "S2", 0, 50)]
    )


def test_an_owner_has_room_for_its_own_data_that_return_not_for_others():
    """In second 1 D gets 500 bytes of S1's directly and 1000 over S2, whose own 300 wait.

    So 1500 of S1's remain, at 1 byte/s: 1501 s. With room for anything at S2 all of S1's would be
    there after a second, and at D 1.8 s later.
    """
    problem = owner_as_relay()
    assert fluid_makespan_s(problem) == pytest.approx(1501.0)
    assert bound(problem)[0] == pytest.approx(1501.0)


def test_a_front_goes_by_plans_where_the_bound_may_be_too_early():
    problem = owner_as_relay()
    priced = problem.replace(price_per_gb=np.array([0.0, 0.1, 0.2]))
    table = dc.front(priced, slack=[0.0, 0.5])
    fastest = dc.coordinated(priced, chunk_s=0.0).makespan_s
    assert table["makespan_s"].iloc[0] == pytest.approx(fastest)
    assert fastest > bound(priced)[0]


def test_where_only_the_owners_limit_forbids_a_plan_the_message_says_so():
    problem = returning(storage_bytes=0).replace(
        bandwidth_bytes_per_s=np.array([[0.0, 8.0, 0.0], [8.0, 0.0, 0.0]])
    )
    with pytest.raises(
        dc.InfeasibleError, match=r"with additional room for these data, all data can arrive by 2 s"
    ):
        dc.coordinated(problem)


@given(problems())
def test_any_mix_of_constraints_agrees_with_one_commodity_per_source(problem):
    assert bound_agrees(problem)
    try:
        _, bottleneck = bound(problem)
    except dc.InfeasibleError:
        return
    assert set(bottleneck.hosts) <= set(problem.sources)
    assert bool(bottleneck.hosts) == bool(problem.total_bytes)


@pytest.mark.slow
@given(problems(most_hosts=5))
@settings(max_examples=many(1000))
def test_many_mixes_of_constraints_agree(problem):
    assert bound_agrees(problem)
