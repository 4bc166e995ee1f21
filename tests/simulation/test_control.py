"""Messages of a controller that decides at the destination, in both engines."""

from __future__ import annotations

import pandas as pd
import pytest
from instances.ns3_networks import needs_ns3
from instances.planned_anew import triangle
from instances.small_networks import PLACES, line_network

import datacollect as dc
from datacollect.control.controller import Controller
from datacollect.control.decisions import Open, Send
from datacollect.control.events import RangeArrived
from datacollect.control.planned.direct import DirectController
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.errors import ProblemError
from datacollect.methods.remaining_planner import RemainingPlanner
from datacollect.simulation.control import control_delays, controlled
from datacollect.simulation.fluid.engine import simulate_fluid, simulate_problem
from datacollect.simulation.network import Transport

# S - K - D, a tenth of a second each.
NETWORK = line_network([1e5, 1e5], PLACES, delay_s=0.1, transport=Transport())
ENGINES = ["fluid", pytest.param("ns3", marks=needs_ns3)]
TABLES = ("storage", "routes", "background", "wires", "connections")


def run_in(engine, controller, n_bytes, **options):
    if engine == "fluid":
        return simulate_fluid(NETWORK, {"S": n_bytes}, "D", controller, **options)
    from datacollect.simulation.ns3.engine import simulate_ns3

    return simulate_ns3(NETWORK, {"S": n_bytes}, "D", controller, **options)


class OneByOne(Controller):
    """S sends pieces to D, the next one when it is known that one is there."""

    decides_at_destination = True

    def start(self):
        self.answer = {"at_s": []}
        return [Open(0, ("S", "D")), Send(0, "S", 0, 1000)]

    def handle(self, event):
        if not isinstance(event, RangeArrived):
            return []
        self.answer["at_s"].append(event.time_s)
        return [Send(0, "S", event.offset_bytes + event.n_bytes, 1000)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("control", "message_s"), [("free", 0.0), ("delayed", 0.2)])
def test_each_decision_has_a_way_to_go(engine, control, message_s):
    """A message takes 0.2 s from D to S, a piece about as long from S to D; opening takes 0.4 s.
    The first piece is there after message + 0.6 s, each further one after message + 0.2 s."""
    run = run_in(engine, OneByOne(), 4000, control=control)
    (connection,) = run.connections.to_dict("records")
    assert connection["asked_s"] == pytest.approx(message_s)
    at_s = run.settings["controller"]["at_s"]
    assert at_s[0] == pytest.approx(message_s + 0.6, abs=0.05)
    assert at_s[2] - at_s[1] == pytest.approx(message_s + 0.2, abs=0.05)
    assert run.complete
    assert ("most_connections" in run.settings["controller"]) == (control == "delayed")


PROBLEM = dc.Problem.from_matrix(
    ["S", "K", "D"], [[0, 1e5, 2e4], [0, 0, 1e5], [0, 0, 0]], [200_000, 0, 0], "D"
)
PLAN = dc.coordinated(PROBLEM)
KNOW_BEFOREHAND = {
    "direct": lambda: DirectController(PROBLEM, streams=2),
    "asap": lambda: AsapController(PLAN),
    "planned": lambda: PlannedController(PLAN, pace=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KNOW_BEFOREHAND)
def test_nothing_changes_where_hosts_know_beforehand_what_to_do(engine, name):
    free, told = (
        run_in(engine, KNOW_BEFOREHAND[name](), 200_000, control=control)
        for control in ("free", "delayed")
    )
    assert (free.makespan_s, free.events) == (told.makespan_s, told.events)
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(free, table), getattr(told, table), check_exact=True)
    clocks = {"peak_memory_bytes"}
    assert {k: v for k, v in free.settings.items() if k not in clocks} == {
        k: v for k, v in told.settings.items() if k not in clocks
    }


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_planning_anew_from_afar_takes_longer_and_loses_nothing(engine):
    """A piece that has come to K goes on after 0.1 s to D and 0.1 s back."""
    runs = {}
    for control in ("free", "delayed"):
        controller = ReplanningController(PROBLEM, PLAN, replan_s=1.0)
        options = {"control": control, "plan_remaining": RemainingPlanner(PROBLEM, PLAN)}
        runs[control] = run_in(engine, controller, 200_000, **options)
    free, told = runs["free"], runs["delayed"]
    assert (free.complete, told.complete) == (True, True)
    assert told.connections["asked_s"].min() == pytest.approx(0.1)
    assert free.connections["asked_s"].min() == 0.0
    assert told.makespan_s > free.makespan_s + 0.1
    assert told.routes[told.routes["to"] == "D"]["bytes"].sum() == pytest.approx(200_000, abs=4)


def test_delays_are_those_of_the_routes():
    delays = control_delays(NETWORK, "D")
    assert delays.to_s == delays.from_s == pytest.approx({"S": 0.2, "K": 0.1, "D": 0.0})


def test_links_of_a_problem_have_no_delays():
    problem = triangle(150)
    plan = dc.coordinated(problem)
    ends = [
        simulate_problem(
            problem,
            ReplanningController(problem, plan, replan_s=2.0, piece_bytes=1),
            plan_remaining=RemainingPlanner(problem, plan),
            control=control,
        ).makespan_s
        for control in ("free", "delayed")
    ]
    assert ends[0] == ends[1]


def test_another_word_is_refused():
    with pytest.raises(ProblemError, match="control must be one of delayed, free, got 'fre'"):
        controlled(OneByOne(), NETWORK, "D", "fre")
