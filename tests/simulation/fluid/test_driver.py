"""The fluid engine's driver: lost hosts, stalls, room, and what cannot be done."""

import math

import pytest
from instances.hand_made_plans import line_in_pieces, line_problem, plan_of
from instances.tiny_controllers import OneByOne, Scripted
from judges.run_judge import stored_at

from datacollect.control.connections import Recovery
from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import ConnectionHasRoom, ConnectionStalled, RangeArrived, Timer
from datacollect.control.planned.direct import DirectController
from datacollect.control.planned.scheduled import AsapController
from datacollect.errors import SimulationError
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.driver import FluidDriver
from datacollect.simulation.fluid.engine import simulate_problem
from datacollect.simulation.fluid.problem_network import ProblemNetwork
from datacollect.simulation.fluid.state import MOST_CLOSED_ROWS


def test_lost_relay_costs_what_it_held():
    """S sends to K at 10 bytes/s, K to D at 5; S -> D carries 10. K is lost at 4 s: 40 bytes have
    come to it, 20 of them to D. The other 80 go straight in 8 s: what D has is not sent again."""
    problem = Problem.from_matrix(
        ["S", "K", "D"], [[0, 10.0, 10.0], [0, 0, 5.0], [0, 0, 0]], [100, 0, 0], "D"
    )
    plan = plan_of([("S", "K", "D")], [(0, 0, 0, 100, 0.0, 10.0), (0, 1, 0, 100, 0.0, 20.0)])
    run = simulate_problem(problem, AsapController(plan), lost_hosts_s={"K": 4.0})
    assert run.makespan_s == pytest.approx(12.0)
    assert run.collected_bytes == 100
    assert stored_at(run, "K", 5.0) == 0.0
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


def test_stall_is_reported_and_the_connection_replaced():
    """Nothing passes from 2 s until 100 s; after 30 s without movement a new one is opened. Its
    range goes on where it was cut off: 80 bytes at 10 per second."""
    problem = Problem.from_hosts(
        [Host("S", 100), Host("D")], [Link("S", "D", [10.0, 0.0, 10.0])], "D", periods_s=[0, 2, 100]
    )
    controller = DirectController(problem, recovery=Recovery(most_retries=1))
    run = simulate_problem(problem, controller, stall_s=30.0)
    assert run.makespan_s == pytest.approx(108.0)
    assert run.connections["stalls"].tolist() == [1, 1]
    assert run.connections["asked_s"].tolist() == [0.0, 32.0]
    assert run.routes["bytes"].tolist() == [100]
    assert run.collected_bytes == 100


def test_a_range_that_was_cut_off_arrives_as_it_was_asked_for():
    """At 3 s 30 of 100 bytes are there; the new connection brings 70, and reports all 100. Then
    come 50 more."""
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [150, 0], "D")

    class CutOff(Scripted):
        def handle(self, event):
            self.events.append(event)
            if not isinstance(event, Timer):
                return []
            sends = [Send(1, "S", 0, 100), Send(1, "S", 100, 50)]
            return [Close(0, drop_queue=True), Open(1, ("S", "D")), *sends]

    script = CutOff(Open(0, ("S", "D")), Send(0, "S", 0, 100), WakeMe(3.0, 0))
    run = simulate_problem(problem, script)
    assert run.makespan_s == pytest.approx(15.0)
    assert run.connections["bytes"].tolist() == [30, 120]
    arrived = [e for e in script.events if isinstance(e, RangeArrived)]
    assert [(e.connection, e.offset_bytes, e.n_bytes) for e in arrived] == [(1, 0, 100)]


@pytest.mark.parametrize(("n_bytes", "end_s"), [(20, 2.0), (21, 100 + 1.02 / 9.99)])
def test_what_a_plan_rounds_does_not_wait_for_the_next_period(n_bytes, end_s):
    """19.98 bytes pass in 2 s, and nothing then until 100 s: a plan counts on 20, not on 21."""
    names, rates = ["S", "K", "D"], [9.99, 0.0, 9.99]
    problem = Problem.from_hosts(
        [Host("S", n_bytes), *map(Host, names[1:])],
        [Link("S", "K", rates), Link("K", "D", rates)],
        "D",
        periods_s=[0, 2, 100],
    )
    hops = [Open(i, (names[i], names[i + 1])) for i in range(2)]
    run = simulate_problem(problem, Scripted(*hops, *(Send(i, "S", 0, n_bytes) for i in range(2))))
    assert run.makespan_s == pytest.approx(end_s)
    assert run.routes["bytes"].tolist() == [n_bytes, n_bytes]


def test_connection_that_cannot_be_had_is_retried_then_given_up():
    problem = line_problem()  # has no link S -> D
    controller = DirectController(problem, recovery=Recovery(retry_s=1.0, most_retries=2))
    run = simulate_problem(problem, controller)
    assert not run.complete
    assert run.connections["asked_s"].tolist() == [0.0, 1.0, 3.0]


def test_room_is_reported_as_the_queue_empties():
    """A window of 50 with 30 + 30 queued: room for 20 when the first has left, at 3 s."""
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [90, 0], "D")
    script = Scripted(
        Open(0, ("S", "D"), window_bytes=50), Send(0, "S", 0, 30), Send(0, "S", 30, 30)
    )
    run = simulate_problem(problem, script)
    rooms = [(e.time_s, e.room_bytes) for e in script.events if isinstance(e, ConnectionHasRoom)]
    assert rooms == [(pytest.approx(3.0), 20), (pytest.approx(6.0), 50)]
    assert [e.time_s for e in script.events if isinstance(e, RangeArrived)] == pytest.approx([3, 6])
    assert not any(isinstance(e, ConnectionStalled) for e in script.events)
    assert not run.complete


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ([Send(4, "S", 0, 10)], "connection 4 was never opened"),
        ([Open(0, ("S", "D")), Open(0, ("S", "D"))], "number 0 has been used before"),
        ([Open(0, ("S", "X"))], "host 'X' is not in the network"),
        ([Open(0, ("S", "D")), Send(0, "S", 5, 10)], "must lie within the source's 10 bytes"),
    ],
)
def test_impossible_decisions_are_refused(decisions, message):
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [10, 0], "D")
    with pytest.raises(SimulationError, match=message):
        simulate_problem(problem, Scripted(*decisions))


class Impatient(Scripted):
    """Has seen enough once the first range is there."""

    def handle(self, event):
        self.finished = isinstance(event, RangeArrived)
        return super().handle(event)


def test_a_controller_that_has_finished_ends_the_run():
    """At 3 s, with 30 of 90 bytes there and an alarm that has yet to ring."""
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [90, 0], "D")
    sends = [Send(0, "S", 30 * i, 30) for i in range(3)]
    script = Impatient(Open(0, ("S", "D")), *sends, WakeMe(50.0, 0))
    run = simulate_problem(problem, script, time_limit_s=100.0)
    assert (run.complete, run.collected_bytes) == (False, 30)
    assert run.connections["last_byte_s"].tolist() == pytest.approx([3.0])


def test_schedule_for_another_problem_is_refused():
    smaller = line_problem().replace(backlog_bytes=[1000, 0, 0])
    with pytest.raises(SimulationError, match="is this a schedule for another problem"):
        simulate_problem(smaller, AsapController(line_in_pieces(1)))


def test_connections_that_are_closed_cost_nothing_any_more():
    """A thousand connections, two at a time: as long as one would take, and few rows."""
    problem = Problem.from_matrix(["S", "D"], [[0, 10.0], [0, 0]], [10_000, 0], "D")
    driver = FluidDriver(
        ProblemNetwork(problem), {"S": 10_000}, "D", OneByOne(10_000, 1000), 30.0, math.inf
    )
    driver.prepare({}, (), {})
    driver.run(math.inf, 10**6, None)
    assert driver.end_s == pytest.approx(1000.0)
    assert driver.recorder.is_complete
    assert len(driver.state.left) <= MOST_CLOSED_ROWS + 3
    assert driver.state.carried_bytes() == pytest.approx([10_000.0])
    run = simulate_problem(problem, OneByOne(10_000, 1000))
    assert len(run.connections) == 1000
    assert run.wires["utilisation"].tolist() == pytest.approx([1.0])
