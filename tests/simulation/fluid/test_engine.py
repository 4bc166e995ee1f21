"""The fluid engine against arithmetic: transfers, relays, pieces, plans, bad input."""

import math

import pytest
from instances.hand_made_plans import LINE_BYTES, RATE, line_in_pieces, line_problem, plan_of
from instances.small_networks import line_network
from instances.small_problems import figure_1, relay, shared_relay
from instances.tiny_controllers import Scripted, sends_of
from judges.run_judge import stored_at

import datacollect as dc
from datacollect.control.planned.direct import DirectController
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.errors import ProblemError
from datacollect.problem.hosts import Held, Host, Link
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_fluid, simulate_problem
from datacollect.simulation.fluid.problem_network import ProblemNetwork
from datacollect.simulation.network import Transport


def test_one_transfer_takes_its_bytes_over_the_rate_and_the_set_up():
    """10 wires of 0.01 s: round trip 0.2 s to open, 1000 / 100 s to send, 0.1 s to arrive."""
    network = line_network([100.0] * 10, {"S": 0, "D": 10}, delay_s=0.01)
    run = simulate_fluid(network, {"S": 1000}, "D", sends_of(backlog={"S": 1000}))
    assert run.makespan_s == pytest.approx(0.2 + 10.0 + 0.1)
    (log,) = run.connections.to_dict("records")
    assert log["opened_s"] == pytest.approx(0.2)
    assert log["first_byte_s"] == pytest.approx(0.2)
    assert log["bytes"] == 1000


def test_headers_take_their_share_of_the_wire():
    """1448 of 1502 bytes on the wire are data."""
    network = line_network([1502.0], {"S": 0, "D": 1})
    run = simulate_fluid(
        network, {"S": 14_480}, "D", sends_of(backlog={"S": 14_480}), header_bytes=54
    )
    assert run.makespan_s == pytest.approx(10.0)


def test_window_over_round_trip_bounds_a_connection():
    """1000 bytes per round trip of 2 s on a wire of 1e6: 500 bytes per second, after 2 s."""
    network = line_network(
        [1e6], {"S": 0, "D": 1}, delay_s=1.0, transport=Transport(buffer_bytes=1000)
    )
    run = simulate_fluid(network, {"S": 5000}, "D", sends_of(backlog={"S": 5000}))
    assert run.makespan_s == pytest.approx(2.0 + 10.0 + 1.0)


def test_two_equal_flows_share_a_wire():
    """A and B behind one wire of 100 bytes/s: 50 each until A's 500 are there at 10 s; B's other
    500 take 5 s more."""
    network = line_network([1e6, 100.0], {"A": 0, "B": 1, "D": 2})
    backlog = {"A": 500, "B": 1000}
    run = simulate_fluid(network, backlog, "D", sends_of(backlog=backlog))
    assert run.source_finish_s["A"] == pytest.approx(10.0)
    assert run.source_finish_s["B"] == pytest.approx(15.0)


def test_streams_weigh():
    """Three streams against one: 75 and 25 bytes/s; A's 750 and B's 250 end together."""
    network = line_network([1e6, 100.0], {"A": 0, "B": 1, "D": 2})
    backlog = {"A": 750, "B": 250}
    run = simulate_fluid(network, backlog, "D", sends_of(backlog=backlog, streams={"A": 3}))
    assert run.source_finish_s == pytest.approx({"A": 10.0, "B": 10.0})


@pytest.mark.parametrize("controller", [PlannedController, AsapController])
@pytest.mark.parametrize(("n", "makespan_s"), [(1, 32.0), (5, 19.2), (20, 16.8)])
def test_store_and_forward_in_pieces(controller, n, makespan_s):
    """5 MB over two hops of 2.5 Mbit/s: 16 s, and a piece's 16/n s more."""
    run = simulate_problem(line_problem(), controller(line_in_pieces(n)))
    assert run.makespan_s == pytest.approx(makespan_s)


def test_pipelined_relay_costs_a_chunk_or_nothing():
    plan = dc.coordinated(line_problem(), chunk_s=0.016)
    planned = simulate_problem(line_problem(), PlannedController(plan))
    assert planned.makespan_s == pytest.approx(16.016)
    assert simulate_problem(line_problem(), AsapController(plan)).makespan_s == pytest.approx(16.0)


def test_relay_stores_what_the_schedule_says():
    """In one piece: K fills evenly until 16 s and empties until 32 s."""
    run = simulate_problem(line_problem(), PlannedController(line_in_pieces(1)))
    for time_s, stored in ((8.0, 0.5), (16.0, 1.0), (24.0, 0.5), (32.0, 0.0)):
        assert stored_at(run, "K", time_s) == pytest.approx(stored * LINE_BYTES)
    assert stored_at(run, "S", 4.0, "own_bytes") == pytest.approx(0.75 * LINE_BYTES)
    assert stored_at(run, "D", 24.0) == pytest.approx(0.5 * LINE_BYTES)


def test_relay_slower_than_what_comes_in_stores_the_difference():
    """20 bytes/s in, 10 out, 100 bytes: at 5 s all has come and 50 have left."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 20.0, 0], [0, 0, 10.0], [0, 0, 0]], [100, 0, 0], "D"
    )
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 100, 0.0, 5.0), (0, 1, 0, 100, 0.0, 10.0)])
    run = simulate_problem(problem, AsapController(plan))
    assert run.makespan_s == pytest.approx(10.0)
    assert stored_at(run, "K", 5.0) == pytest.approx(50.0)


def test_relay_faster_than_what_comes_in_uses_no_more_than_it_gets():
    """S -> K carries 10, K -> D 30 bytes/s. K's own data get the 20 that S's leave: 200 bytes
    of K in 10 s, beside 100 of S."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 10.0, 0], [0, 0, 30.0], [0, 0, 0]], [100, 200, 0], "D"
    )
    plan = plan_of(
        [("S", "K", "D"), ("K", "D")],
        [(0, 0, 0, 100, 0.0, 10.0), (0, 1, 0, 100, 0.0, 10.0), (1, 0, 0, 200, 0.0, 10.0)],
    )
    run = simulate_problem(problem, AsapController(plan))
    assert run.source_finish_s == pytest.approx({"S": 10.0, "K": 10.0})


def test_pace_caps_a_connection():
    plan = plan_of([("S", "D")], [(0, 0, 0, 100, 0.0, 20.0)])
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [100, 0], "D")
    free = simulate_problem(problem, PlannedController(plan))
    paced = simulate_problem(problem, PlannedController(plan, pace=True))
    assert (free.makespan_s, paced.makespan_s) == pytest.approx((10.0, 20.0))


def test_periods_change_the_rates():
    """10 bytes/s for 2 s, nothing until 5 s, then 20: 20 bytes, then 80 in 4 s."""
    problem = Problem.from_hosts(
        [Host("S", 100), Host("D")], [Link("S", "D", [10.0, 0.0, 20.0])], "D", periods_s=[0, 2, 5]
    )
    run = simulate_problem(problem, DirectController(problem))
    assert run.makespan_s == pytest.approx(9.0)


def test_release_and_held_data():
    """K holds half of S's data; S's own half is there at 3 s. Both send at 10 bytes/s."""
    problem = Problem.from_hosts(
        [Host("S", 100, release_s=3.0), Host("K"), Host("D")],
        [Link("S", "D", 10.0), Link("K", "D", 10.0)],
        "D",
        held=[Held("K", "S", 50, 50)],
    )
    for controller in (DirectController(problem), AsapController(dc.direct(problem))):
        run = simulate_problem(problem, controller)
        assert run.makespan_s == pytest.approx(8.0)
        assert stored_at(run, "S", 1.0, "own_bytes") == 0
        assert stored_at(run, "K", 2.5) == pytest.approx(25.0)


@pytest.mark.parametrize("problem", [figure_1(), relay(), shared_relay(), line_problem()])
@pytest.mark.parametrize("options", [{}, {"pace": True}, {"lanes": 3}])
def test_plans_take_as_long_as_they_say(problem, options):
    plan = dc.coordinated(problem)
    for controller in (PlannedController(plan, **options), AsapController(plan, **options)):
        run = simulate_problem(problem, controller)
        assert run.makespan_s == pytest.approx(plan.makespan_s, rel=0.03)


def test_plan_is_judged_on_other_bandwidths():
    problem = line_problem()
    truth = problem.replace(bandwidth_bytes_per_s=[[RATE, RATE / 2]])
    run = simulate_problem(problem, AsapController(dc.coordinated(problem)), truth=truth)
    assert run.makespan_s == pytest.approx(32.0)


def test_thousands_of_pieces_cost_no_more_than_in_proportion():
    """Events, not seconds, are counted: 2000 pieces over two hops, at most four events each."""
    problem, n = line_problem(), 2000
    piece, slot_s = LINE_BYTES // n, 16.0 / n
    rows = [
        (0, hop, i * piece, piece, (i + hop) * slot_s, (i + hop + 1) * slot_s)
        for i in range(n)
        for hop in (0, 1)
    ]
    plan = plan_of([("S", "K", "D")], rows)
    run = simulate_problem(problem, AsapController(plan))
    assert run.makespan_s == pytest.approx(16.0)
    assert run.events <= 4 * n
    assert len(run.storage) <= 8 * n


def test_time_limit_returns_what_there_is():
    run = simulate_problem(line_problem(), PlannedController(line_in_pieces(1)), time_limit_s=24.0)
    assert not run.complete
    assert run.collected_bytes == LINE_BYTES // 2
    assert math.isnan(run.makespan_s)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"backlog_bytes": {"X": 1}}, "host 'X' is not in the problem"),
        ({"backlog_bytes": {"S": -1}}, "backlog_bytes must be >= 0, got -1"),
        ({"destination": "E"}, "host 'E' is not in the problem"),
        ({"time_limit_s": -1.0}, "time_limit_s must be > 0, got -1"),
        ({"warm_up_s": -1.0}, "warm_up_s must be >= 0"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"backlog_bytes": {"S": 10}, "destination": "D"} | change
    with pytest.raises(ProblemError, match=message):
        simulate_fluid(
            ProblemNetwork(line_problem()), controller=AsapController(line_in_pieces(1)), **given
        )


def test_host_without_a_place_is_refused():
    with pytest.raises(ProblemError, match="host 'X' is at no node"):
        simulate_fluid(line_network([1.0], {"D": 0}), {"X": 5}, "D", Scripted())


def test_nothing_to_collect_ends_at_once():
    run = simulate_fluid(line_network([1.0], {"D": 0}), {}, "D", Scripted())
    assert (run.complete, run.makespan_s, run.collected_bytes) == (True, 0.0, 0)


def test_progress_is_told():
    seen = []
    plan = line_in_pieces(400)
    simulate_problem(line_problem(), AsapController(plan), progress=lambda *now: seen.append(now))
    assert seen
    assert seen == sorted(seen)
    assert 0 < seen[0][1] < LINE_BYTES
