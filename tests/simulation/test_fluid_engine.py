"""The fluid engine against arithmetic."""

import math
from itertools import pairwise

import pandas as pd
import pytest
from hand_made_plans import LINE_BYTES, RATE, line_in_pieces, line_problem, plan_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_networks import line_network
from small_problems import MB, figure_1, relay, shared_relay
from strategies import problems

import datacollect as dc
from datacollect.control import ConnectionHasRoom, ConnectionStalled, Open, RangeArrived, Send
from datacollect.controllers import (
    AsapController,
    DirectController,
    PlannedController,
    Recovery,
)
from datacollect.errors import InfeasibleError, ProblemError, SimulationError
from datacollect.hosts import Held, Host, Link
from datacollect.problem import Problem
from datacollect.simulation.fluid import simulate_fluid, simulate_problem
from datacollect.simulation.network import BackgroundFlow, Transport
from datacollect.simulation.problem_network import ProblemNetwork

TWO_HOPS = {"S": 0, "K": 1, "D": 2}


def sends_of(*pairs, backlog, destination="D", streams=1):
    """Direct from each source to the destination, whatever the network's capacities."""
    sources = sorted(backlog)
    problem = Problem.from_hosts(
        [*(Host(name, backlog[name]) for name in sources), Host(destination)],
        [Link(name, destination, 1.0) for name in sources],
        destination,
    )
    return DirectController(problem, streams)


def at(run, host, time_s, column="others_bytes"):
    """Linear interpolation in a storage curve."""
    rows = run.storage[run.storage["host"] == host][["time_s", column]].to_numpy().tolist()
    for (t0, v0), (t1, v1) in pairwise(rows):
        if t0 <= time_s <= t1 and t1 > t0:
            return v0 + (v1 - v0) * (time_s - t0) / (t1 - t0)
    return rows[-1][1]


# Arithmetic -----------------------------------------------------------------------------------


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
        assert at(run, "K", time_s) == pytest.approx(stored * LINE_BYTES)
    assert at(run, "S", 4.0, "own_bytes") == pytest.approx(0.75 * LINE_BYTES)
    assert at(run, "D", 24.0) == pytest.approx(0.5 * LINE_BYTES)


def test_relay_slower_than_what_comes_in_stores_the_difference():
    """20 bytes/s in, 10 out, 100 bytes: at 5 s all has come and 50 have left."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 20.0, 0], [0, 0, 10.0], [0, 0, 0]], [100, 0, 0], "D"
    )
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 100, 0.0, 5.0), (0, 1, 0, 100, 0.0, 10.0)])
    run = simulate_problem(problem, AsapController(plan))
    assert run.makespan_s == pytest.approx(10.0)
    assert at(run, "K", 5.0) == pytest.approx(50.0)


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


def test_bounded_relay_never_stores_more():
    """20 in, 10 out, room for 30: full at 3 s; the makespan is the outgoing link's all the same."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 20.0, 0], [0, 0, 10.0], [0, 0, 0]], [200, 0, 0], "D"
    )
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 200, 0.0, 5.0), (0, 1, 0, 200, 0.0, 10.0)])
    run = simulate_problem(problem, AsapController(plan), relay_buffer_bytes=30)
    assert run.makespan_s == pytest.approx(20.0)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(30.0)
    assert at(run, "K", 3.0) == pytest.approx(30.0)
    assert run.connections["stalls"].sum() == 0


def bounded_line(room, others=math.inf):
    """S sends 200 bytes to K at 20 bytes/s, K on to D at 10; K has `room`."""
    problem = Problem.from_hosts(
        [Host("S", 200), Host("K", storage_bytes=room), Host("D", storage_bytes=others)],
        [Link("S", "K", 20.0), Link("K", "D", 10.0)],
        "D",
    )
    rows = [(0, 0, 0, 200, 0.0, 10.0), (0, 1, 0, 200, 0.0, 20.0)]
    return problem, plan_of([("S", "K", "D")], rows)


@pytest.mark.parametrize("room", [0, 1, 30, 99])
@pytest.mark.parametrize("buffer", [math.inf, 30.0])
def test_host_s_own_storage_limit_bounds_it(room, buffer):
    """K passes on 10 bytes/s however little it stores; without a limit it would store 100. The
    destination's limit is not meant: it is where all has to go."""
    problem, plan = bounded_line(room, others=5)
    run = simulate_problem(problem, AsapController(plan), relay_buffer_bytes=buffer)
    assert run.makespan_s == pytest.approx(20.0)
    most = min(room, buffer)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(most, abs=0.5)
    assert run.settings["storage_bytes"] == {"K": room}
    assert run.connections["stalls"].sum() == 0


def test_limit_that_is_never_reached_changes_nothing():
    """K stores 100 bytes at most."""
    runs = []
    for room in (math.inf, 101):
        problem, plan = bounded_line(room)
        runs.append(simulate_problem(problem, AsapController(plan)))
    free, bound = runs
    assert (free.makespan_s, free.events) == (bound.makespan_s, bound.events)
    for name in ("storage", "routes", "wires", "connections"):
        pd.testing.assert_frame_equal(getattr(free, name), getattr(bound, name))


def test_limit_is_the_true_problem_s():
    problem, plan = bounded_line(math.inf)
    truth = problem.replace(storage_bytes=[math.inf, 30.0, math.inf])
    run = simulate_problem(problem, AsapController(plan), truth=truth)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(30.0)


def test_data_held_at_the_start_take_room():
    """K holds 25 of A's bytes and has room for 30; B's come at 10 bytes/s and leave at 1 after
    A's, which leave at 1: 5 more fit beside what leaves in the meantime."""
    problem = Problem.from_hosts(
        [Host("A", 25), Host("B", 40), Host("K", storage_bytes=30), Host("D")],
        [Link("A", "D", 1.0), Link("B", "K", 10.0), Link("K", "D", 1.0)],
        "D",
        held=[Held("K", "A", 0, 25)],
    )
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(0, 1, 0, 25, 0.0, 25.0), (1, 0, 0, 40, 0.0, 4.0), (1, 1, 0, 40, 25.0, 65.0)],
    )
    run = simulate_problem(problem, AsapController(plan))
    assert run.makespan_s == pytest.approx(65.0)
    assert at(run, "K", 5.0) == pytest.approx(30.0)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(30.0)


def test_slot_s_bytes_leave_in_the_next_slot_though_the_transfer_lasts_longer():
    """20 bytes in two slots of 1 s over a relay with room for 10: a transfer of two slots is
    not one range of 20 bytes, which would not fit."""
    problem = Problem.from_hosts(
        [Host("S", 20), Host("K", storage_bytes=10), Host("D")],
        [Link("S", "K", 10.0), Link("K", "D", 10.0)],
        "D",
    )
    plan = dc.coordinated(problem, slot_s=1.0)
    assert plan.makespan_s == 3.0
    for controller in (PlannedController(plan), AsapController(plan)):
        run = simulate_problem(problem, controller)
        assert run.makespan_s == pytest.approx(3.0)
        assert run.peak_storage_bytes().loc["K", "others_bytes"] == pytest.approx(10.0)


def test_relay_with_room_left_takes_the_rest_of_what_it_waits_for():
    """Ranges of 10 bytes at 12 bytes/s in and 18 out, room for 10: when the first has left, more
    than half of the room holds a part of the second, which is of no use without the rest."""
    problem = Problem.from_hosts(
        [Host("S", 20), Host("K", storage_bytes=10), Host("D")],
        [Link("S", "K", 12.0), Link("K", "D", 18.0)],
        "D",
    )
    rows = [(0, hop, 10 * i, 10, float(i + hop), i + hop + 1.0) for i in (0, 1) for hop in (0, 1)]
    run = simulate_problem(problem, AsapController(plan_of([("S", "K", "D")], rows, slot_s=1.0)))
    assert run.makespan_s == pytest.approx(20 / 12 + 10 / 18)


# Full relays ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("shared", "makespan_s"), [(False, 11.0), (True, 20.0)])
def test_full_relay_lets_through_what_leaves_first(shared, makespan_s):
    """A sends 10 bytes to K at 1 per second, B 100 at 10; K sends 10 per second to D. On one
    connection to D A's 10 bytes go first: B's fill K's room of 30 at 3 s, and A's must still get
    in. At 10 s they are through, and B's take 10 s. On two connections B's fill the gaps."""
    problem = Problem.from_matrix(
        ["A", "B", "K", "D"],
        [[0, 0, 1.0, 0], [0, 0, 10.0, 0], [0, 0, 0, 10.0], [0] * 4],
        [10, 100, 0, 0],
        "D",
    )
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(r, hop, 0, n, float(r * hop), 10.0) for r, n in ((0, 10), (1, 100)) for hop in (0, 1)],
    )
    controller = AsapController(plan, shared_connections=shared)
    run = simulate_problem(problem, controller, relay_buffer_bytes=30)
    assert run.makespan_s == pytest.approx(makespan_s)
    assert run.peak_storage_bytes().loc["K", "others_bytes"] <= 30.5


def test_shared_connections_do_not_wait_for_each_other():
    """A's and B's 100 bytes each over L and K at 10 bytes/s. By the plan's starts B's go first from
    L to K, A's first from K to D: B's would fill K, behind A's on the one connection, before
    them on the other, for ever. In one order they take 20 s."""
    names, links = ["A", "B", "L", "K", "D"], [("A", "L"), ("B", "L"), ("L", "K"), ("K", "D")]
    problem = Problem.from_hosts(
        [Host(name, 100 if name in "AB" else 0) for name in names],
        [Link(*pair, 10.0) for pair in links],
        "D",
    )
    starts_s = {(0, 0): 0.0, (1, 0): 0.0, (1, 1): 1.0, (0, 1): 11.0, (0, 2): 12.0, (1, 2): 22.0}
    plan = plan_of(
        [("A", "L", "K", "D"), ("B", "L", "K", "D")],
        [(r, hop, 0, 100, at_s, at_s + 10.0) for (r, hop), at_s in starts_s.items()],
    )
    for room in (30, 1):
        controller = AsapController(plan, shared_connections=True)
        run = simulate_problem(problem, controller, relay_buffer_bytes=room)
        assert run.makespan_s == pytest.approx(20.0)
        assert run.peak_storage_bytes().loc[["K", "L"], "others_bytes"].max() <= room + 0.5


def test_two_full_relays_with_data_for_each_other_exchange_them():
    """A's 100 bytes go over K and L to D, B's over L and K. K and L exchange 5 bytes/s, and send
    1 each to D: both fill up with data for each other. All the same D gets 2 bytes/s."""
    problem = Problem.from_hosts(
        [Host("A", 100), Host("B", 100), Host("K"), Host("L"), Host("D")],
        [
            *(Link(*pair, 10.0) for pair in (("A", "K"), ("B", "L"))),
            *(Link(*pair, 5.0) for pair in (("K", "L"), ("L", "K"))),
            *(Link(*pair, 1.0) for pair in (("K", "D"), ("L", "D"))),
        ],
        "D",
    )
    plan = plan_of(
        [("A", "K", "L", "D"), ("B", "L", "K", "D")],
        [(r, hop, 0, 100, float(hop), 100.0) for r in (0, 1) for hop in (0, 1, 2)],
    )
    run = simulate_problem(problem, AsapController(plan), relay_buffer_bytes=30)
    assert run.makespan_s == pytest.approx(100.0)
    assert run.peak_storage_bytes().loc[["K", "L"], "others_bytes"].max() <= 30.5


def test_full_relay_shares_what_it_frees():
    """K has room for 30 and sends 3 bytes/s of A's and of B's. Both bring up to 10 per second, and
    take even shares of what K frees: neither starves, and both end at 600 / 3."""
    problem = Problem.from_hosts(
        [Host("A", 600), Host("B", 600), Host("K", storage_bytes=30), Host("D")],
        [Link("A", "K", 10.0), Link("B", "K", 10.0), Link("K", "D", 6.0)],
        "D",
    )
    plan = plan_of(
        [("A", "K", "D"), ("B", "K", "D")],
        [(r, hop, 0, 600, 0.0, 200.0) for r in (0, 1) for hop in (0, 1)],
    )
    run = simulate_problem(problem, AsapController(plan))
    assert run.source_finish_s == pytest.approx({"A": 200.0, "B": 200.0})


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
        assert at(run, "S", 1.0, "own_bytes") == 0
        assert at(run, "K", 2.5) == pytest.approx(25.0)


# Plans ----------------------------------------------------------------------------------------


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


def conserved(run, problem):
    """Every byte is collected once, and every relay passes on exactly what it gets."""
    total = int(problem.backlog_bytes.sum() - problem.backlog_bytes[problem.destination_index])
    assert run.complete
    assert run.collected_bytes == total
    last = run.storage.groupby("host").last()
    assert last.loc[problem.destination, "others_bytes"] == pytest.approx(total)
    left = last.drop(problem.destination)[["own_bytes", "others_bytes"]].to_numpy()
    assert left.max(initial=0.0) <= 1e-9 * total + 0.01
    assert (run.wires["utilisation"] <= 1.0).all()
    there = sum(h.n_bytes for h in problem.held if h.host == problem.destination)
    for source, n in zip(problem.names, problem.backlog_bytes.tolist(), strict=True):
        # In and out at each host: what stays is the source's at first, the destination's at last.
        routes = run.routes[run.routes["source"] == source]
        gain = (
            routes.groupby("to")["bytes"]
            .sum()
            .sub(routes.groupby("from")["bytes"].sum(), fill_value=0)
        )
        held = {h.host: h.n_bytes for h in problem.held if h.source == source}
        at_first = {source: n - sum(held.values())} | held
        at_last = {source: 0} if source != problem.destination else {}
        at_last[problem.destination] = n
        for host in {*gain.index, *at_first}:
            assert at_first.get(host, 0) + gain.get(host, 0) == at_last.get(host, 0)
    assert run.routes.loc[run.routes["to"] == problem.destination, "bytes"].sum() == total - there


SCHEDULES = st.tuples(
    problems(frozenset({"limits", "shared", "release", "held"})),
    st.sampled_from([None, 0.5, 1.0]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(SCHEDULES)
def test_any_schedule_is_carried_out_byte_for_byte(case):
    problem, slot_s, shared = case
    assume(problem.total_bytes >= MB or not problem.total_bytes)
    try:
        plan = dc.coordinated(problem, slot_s=slot_s)
    except InfeasibleError:
        return
    for controller in (
        PlannedController(plan, pace=True, shared_connections=shared),
        AsapController(plan, shared_connections=shared),
        AsapController(plan, lanes=2),
    ):
        run = simulate_problem(problem, controller, event_limit=20_000)
        conserved(run, problem)
        # Fair shares are not the plan's rates, but no link idles that has work.
        assert run.makespan_s <= 1.5 * plan.makespan_s + 1e-6


@settings(max_examples=60, deadline=None)
@given(
    problems(frozenset({"limits", "shared", "release", "held", "storage"}), most_hosts=5),
    st.booleans(),
    st.sampled_from([1.0, 0.5]),
)
def test_no_pipelined_collection_comes_to_a_standstill_at_storage_limits(problem, shared, true):
    """Nor is any limit exceeded, though the links turn out to carry less than the plan's."""
    assume(problem.total_bytes >= MB or not problem.total_bytes)
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    truth = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * true)
    for controller in (
        PlannedController(plan),
        AsapController(plan, shared_connections=shared),
        AsapController(plan, shared_connections=shared, lanes=2),
    ):
        run = simulate_problem(problem, controller, truth=truth, event_limit=20_000)
        conserved(run, problem)
        peaks = run.peak_storage_bytes()["others_bytes"]
        for name, room in zip(problem.names, problem.storage_bytes.tolist(), strict=True):
            if name != problem.destination:
                assert peaks.get(name, 0.0) <= room * (1 + 1e-6) + 1


@settings(max_examples=60, deadline=None)
@given(problems(frozenset({"limits"})))
def test_paced_plan_takes_as_long_as_it_says(problem):
    """Rates are constant on every route, and sum to no more than any capacity: all are had."""
    assume(problem.total_bytes >= MB or not problem.total_bytes)  # plans are in whole bytes
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    run = simulate_problem(problem, PlannedController(plan, pace=True))
    assert run.makespan_s <= plan.makespan_s * (1 + 1e-6)
    assert run.makespan_s >= plan.lower_bound_s * (1 - 1e-6)


@settings(max_examples=60, deadline=None)
@given(problems(frozenset({"limits", "shared"})), st.integers(1, 3))
def test_nothing_beats_the_lower_bound(problem, lanes):
    assume(problem.total_bytes >= MB or not problem.total_bytes)
    try:
        plan = dc.coordinated(problem)
    except InfeasibleError:
        return
    run = simulate_problem(problem, AsapController(plan, lanes=lanes))
    assert run.makespan_s >= plan.lower_bound_s * (1 - 1e-6)


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


# Others' traffic ------------------------------------------------------------------------------


def background(kind, **options):
    return BackgroundFlow(kind, 0, 2, **options)


def goodput(run):
    return run.background.set_index(["flow", "phase"])["goodput_bytes_per_s"]


def test_others_lose_while_the_collection_lasts_and_recover():
    """One TCP flow on a wire of 100 bytes/s: 100 before, 50 beside the collection, 100 after."""
    network = line_network([100.0, 1e6], TWO_HOPS, background=[background("tcp")])
    run = simulate_fluid(network, {"S": 500}, "D", sends_of(backlog={"S": 500}))
    assert run.makespan_s == pytest.approx(10.0)
    flow = goodput(run)[0]
    assert (flow["before"], flow["during"], flow["after"]) == pytest.approx((100, 50, 100))
    used = run.wires.set_index(["from", "to"])["utilisation"]
    assert used["n0", "n1"] == pytest.approx(1.0)
    assert used["n1", "n0"] == 0


def test_late_flow_leaves_the_wire_until_it_starts():
    """100 bytes/s alone until 4 s, then 50: 1000 bytes take 4 + 12 s; it gets 600 / 16."""
    network = line_network([100.0, 1e6], TWO_HOPS, background=[background("tcp", start_s=4.0)])
    run = simulate_fluid(network, {"S": 1000}, "D", sends_of(backlog={"S": 1000}))
    assert run.makespan_s == pytest.approx(16.0)
    assert goodput(run)[0, "during"] == pytest.approx(600 / 16)


def test_warm_up_counts_from_the_background_s_start():
    network = line_network([100.0, 1e6], TWO_HOPS, background=[background("tcp", start_s=4.0)])
    run = simulate_fluid(network, {"S": 500}, "D", sends_of(backlog={"S": 500}), warm_up_s=8.0)
    assert run.makespan_s == pytest.approx(10.0)
    assert goodput(run)[0, "before"] == pytest.approx(50.0)


UDP = {"rate_bytes_per_s": 80.0, "mean_on_s": 1.0, "mean_off_s": 3.0}


def test_udp_takes_its_mean_first():
    """80 bytes/s a quarter of the time: 20 of 100."""
    network = line_network([100.0, 1e6], TWO_HOPS, background=[background("udp", **UDP)])
    run = simulate_fluid(network, {"S": 800}, "D", sends_of(backlog={"S": 800}))
    assert run.makespan_s == pytest.approx(10.0)
    assert goodput(run)[0, "during"] == pytest.approx(20.0)


def test_udp_on_and_off_takes_its_mean_in_the_long_run():
    """Over 1000 cycles the share of on-time is within 10 % of a quarter (3 standard deviations)."""
    network = line_network([100.0, 1e6], TWO_HOPS, background=[background("udp", **UDP)])
    runs = [
        simulate_fluid(
            network, {"S": 320_000}, "D", sends_of(backlog={"S": 320_000}), udp_on_off=True, seed=s
        )
        for s in (1, 1, 2)
    ]
    for run in runs:
        assert goodput(run)[0, "during"] == pytest.approx(20.0, rel=0.1)
        # What the one does not take the other does.
        assert 320_000 / run.makespan_s + goodput(run)[0, "during"] == pytest.approx(100.0)
    assert runs[0].makespan_s == runs[1].makespan_s != runs[2].makespan_s


def test_overload_by_udp_leaves_one_percent():
    flow = background("udp", rate_bytes_per_s=500.0, mean_on_s=1.0, mean_off_s=0.0)
    network = line_network([100.0, 1e6], TWO_HOPS, background=[flow])
    run = simulate_fluid(network, {"S": 10}, "D", sends_of(backlog={"S": 10}))
    assert run.makespan_s == pytest.approx(10.0)
    assert goodput(run)[0, "during"] == pytest.approx(99.0)


def test_no_flows_is_no_background():
    runs = [
        simulate_fluid(
            line_network([100.0, 50.0], TWO_HOPS, background=flows),
            {"S": 500},
            "D",
            sends_of(backlog={"S": 500}),
        )
        for flows in ([], ())
    ]
    assert runs[0].makespan_s == runs[1].makespan_s == pytest.approx(10.0)
    assert len(runs[0].background) == 0


def test_same_seed_same_result():
    def run():
        flows = [background("tcp"), background("udp", **UDP)]
        network = line_network([100.0, 60.0], TWO_HOPS, background=flows)
        plan = plan_of([("S", "K", "D")], [(0, 0, 0, 500, 0.0, 5.0), (0, 1, 0, 500, 0.0, 5.0)])
        return simulate_fluid(
            network, {"S": 500}, "D", AsapController(plan), seed=3, udp_on_off=True
        )

    first, second = run(), run()
    assert first.makespan_s == second.makespan_s
    for name in ("storage", "routes", "background", "wires", "connections"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name))


# Trouble --------------------------------------------------------------------------------------


def test_lost_relay_costs_what_it_held():
    """S sends to K at 10 bytes/s, K to D at 5; S -> D carries 10. K is lost at 4 s: 40 bytes have
    come to it, 20 of them to D. The other 80 go straight in 8 s. The range was one piece, so all
    100 are sent anew: the plan's range is known to have arrived only as a whole."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 10.0, 10.0], [0, 0, 5.0], [0, 0, 0]], [100, 0, 0], "D"
    )
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 100, 0.0, 10.0), (0, 1, 0, 100, 0.0, 20.0)])
    run = simulate_problem(problem, AsapController(plan), lost_hosts_s={"K": 4.0})
    assert run.makespan_s == pytest.approx(14.0)
    assert run.collected_bytes == 100
    assert at(run, "K", 5.0) == 0.0
    assert run.storage.groupby("host")["others_bytes"].last()["D"] == pytest.approx(100.0)


def test_lost_source_leaves_the_run_incomplete():
    problem = Problem.from_matrix(
        ["A", "B", "D"], [[0, 0, 10.0], [0, 0, 10.0], [0, 0, 0]], [100, 100, 0], "D"
    )
    run = simulate_problem(problem, DirectController(problem), lost_hosts_s={"A": 5.0})
    assert not run.complete
    assert run.collected_bytes == 150
    assert run.source_finish_s["B"] == pytest.approx(10.0)
    assert math.isnan(run.source_finish_s["A"])


def test_run_ends_when_only_others_go_on():
    """With its only source lost at 1 s, on and off times for a day are not worth following."""
    network = line_network([100.0, 1e6], TWO_HOPS, background=[background("udp", **UDP)])
    run = simulate_fluid(
        network,
        {"S": 500},
        "D",
        sends_of(backlog={"S": 500}),
        lost_hosts_s={"S": 1.0},
        time_limit_s=86_400.0,
        udp_on_off=True,
    )
    assert not run.complete
    assert run.events < 100


def test_stall_is_reported_and_the_connection_replaced():
    """Nothing passes from 2 s until 100 s; after 30 s without movement a new one is opened. Its
    range starts anew: 100 bytes at 10 per second, the first 20 of them twice."""
    problem = Problem.from_hosts(
        [Host("S", 100), Host("D")], [Link("S", "D", [10.0, 0.0, 10.0])], "D", periods_s=[0, 2, 100]
    )
    controller = DirectController(problem, recovery=Recovery(most_retries=1))
    run = simulate_problem(problem, controller, stall_s=30.0)
    assert run.makespan_s == pytest.approx(110.0)
    assert run.connections["stalls"].tolist() == [1, 1]
    assert run.connections["asked_s"].tolist() == [0.0, 32.0]
    assert run.routes["bytes"].tolist() == [120]
    assert run.collected_bytes == 100


def test_time_limit_returns_what_there_is():
    run = simulate_problem(line_problem(), PlannedController(line_in_pieces(1)), time_limit_s=24.0)
    assert not run.complete
    assert run.collected_bytes == LINE_BYTES // 2
    assert math.isnan(run.makespan_s)


def test_connection_that_cannot_be_had_is_retried_then_given_up():
    problem = line_problem()  # has no link S -> D
    controller = DirectController(problem, recovery=Recovery(retry_s=1.0, most_retries=2))
    run = simulate_problem(problem, controller)
    assert not run.complete
    assert run.connections["asked_s"].tolist() == [0.0, 1.0, 3.0]


class Scripted:
    """Decides at the start only, and keeps the events."""

    def __init__(self, *decisions):
        self.decisions, self.events = list(decisions), []

    def start(self):
        return self.decisions

    def handle(self, event):
        self.events.append(event)
        return []


def test_room_is_reported_as_the_queue_empties():
    """A window of 50 with 30 + 30 queued: room for 20 when the first has left, at 3 s."""
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [90, 0], "D")
    script = Scripted(Open(0, "S", "D", window_bytes=50), Send(0, "S", 0, 30), Send(0, "S", 30, 30))
    run = simulate_problem(problem, script)
    rooms = [(e.time_s, e.room_bytes) for e in script.events if isinstance(e, ConnectionHasRoom)]
    assert rooms == [(pytest.approx(3.0), 20), (pytest.approx(6.0), 50)]
    assert [e.time_s for e in script.events if isinstance(e, RangeArrived)] == pytest.approx([3, 6])
    assert not any(isinstance(e, ConnectionStalled) for e in script.events)
    assert not run.complete


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ([Send(4, "S", 0, 10)], "no connection 4"),
        ([Open(0, "S", "D"), Open(0, "S", "D")], "connection 0 is opened twice"),
        ([Open(0, "S", "D"), Send(0, "S", 5, 10)], "bytes 5 to 15 of 'S' are not a range"),
        ([Open(0, "S", "D"), Send(0, "X", 0, 1)], "of 'X' are not a range"),
    ],
)
def test_impossible_decisions_are_refused(decisions, message):
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [10, 0], "D")
    with pytest.raises(SimulationError, match=message):
        simulate_problem(problem, Scripted(*decisions))


def test_schedule_for_another_problem_is_refused():
    smaller = line_problem().replace(backlog_bytes=[1000, 0, 0])
    with pytest.raises(SimulationError, match="is this a schedule for another problem"):
        simulate_problem(smaller, AsapController(line_in_pieces(1)))


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
