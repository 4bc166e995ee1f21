"""Controllers that carry a schedule out, and their numbers of connections."""

from __future__ import annotations

import pytest
from instances.ns3_networks import needs_ns3
from instances.small_scenarios import line_of, shipped

import datacollect as dc
from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.chained.controller import ChainedController
from datacollect.control.chained.learning import LearningController
from datacollect.control.planned.direct import DirectController
from datacollect.control.planned.replanning import ReplanningController
from datacollect.control.planned.scheduled import AsapController, PlannedController
from datacollect.methods.execution import ExecutionOptions, execution_of, n_connections
from datacollect.methods.planning_options import PlanningOptions
from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.options import execution_options
from datacollect.transfer.pull.planning import planned

# S has 0.5 B/s to D, and 1 B/s through K.
PROBLEM = dc.Problem.from_matrix(
    ["S", "K", "D"], [[0, 1.0, 0.5], [0, 0, 1.0], [0, 0, 0]], [30, 0, 0], "D"
)


def how(**options):
    return ExecutionOptions(**options)


@pytest.mark.parametrize(
    ("section", "controller", "connections"),
    [
        ({}, AsapController, 3),
        ({"timing": "planned"}, PlannedController, 3),
        ({"lanes": 2}, AsapController, 6),
        ({"replan_s": 5.0}, ReplanningController, 3),
        ({"name": "direct"}, DirectController, 1),
        ({"name": "direct", "streams": 4}, DirectController, 4),
        ({"name": "direct", "total_streams": 5}, DirectController, 5),
        ({"name": "direct", "streams_as": "coordinated"}, DirectController, 3),
        ({"name": "best-path"}, AsapController, 2),
        ({"name": "adaptive"}, AdaptiveController, 3),
        ({"name": "adaptive", "connections_as": "coordinated"}, AdaptiveController, 3),
        ({"name": "adaptive", "connections": 5}, AdaptiveController, 5),
        ({"name": "adaptive", "as_many_times": 3}, AdaptiveController, 9),
        ({"relays": "chains"}, ChainedController, 3),
        ({"relays": "chains", "connections": 8}, ChainedController, 8),
        ({"relays": "chains", "connections_as": "coordinated"}, ChainedController, 3),
        ({"name": "best-path", "relays": "chains"}, ChainedController, 2),
        (
            {"name": "direct", "relays": "chains", "connections_as": "coordinated"},
            ChainedController,
            3,
        ),
        ({"name": "adaptive", "relays": "chains", "connections": 5}, AdaptiveController, 5),
        # Fewer connections than its chain has hops: nothing can move.
        ({"name": "adaptive", "relays": "chains", "connections": 1}, ChainedController, 1),
        (
            {"name": "direct", "streams_as": "coordinated", "as_many_times": 2},
            DirectController,
            6,
        ),
    ],
)
def test_the_section_decides_who_carries_the_plan_out(section, controller, connections):
    """The coordinated plan takes both ways, three hops; best-path the one through K."""
    methods = {"direct": dc.direct, "best-path": dc.best_path}
    schedule = methods.get(section.get("name"), dc.coordinated)(PROBLEM)
    found = execution_of(PROBLEM, how(**section))
    assert (type(found.controller), found.connections) == (controller, connections)
    assert found.schedule.to_dict()["transfers"] == schedule.to_dict()["transfers"]
    assert (found.plan_remaining is not None) == ("replan_s" in section)


@pytest.mark.parametrize("method", ["adaptive", "coordinated", "best-path", "direct"])
def test_what_a_scenario_says_as_pull_does_is_what_pull_does(method):
    """The keys are those of docs/simulation_engines.md; the data and the links are a pull's."""
    for known in (True, False):
        pulled = planned(
            PROBLEM, PlanningOptions(method), connections=16, piece_bytes=8, is_known=known
        )
        said = {"piece_bytes": 8, "retry_s": 0.5, "longest_wait_s": 5.0, "most_retries": 2**30}
        said |= {"name": method, "relays": "chains", "connections": 16, "is_known": known}
        found = execution_of(PROBLEM, how(**said))
        assert type(found.controller) is type(pulled.controller)
        assert found.controller.start() == pulled.controller.start()
        assert found.schedule.to_dict()["transfers"] == pulled.schedule.to_dict()["transfers"]
        assert found.predicted_s == pulled.predicted_s
        is_learned = not known and method != "direct"
        assert isinstance(found.controller, LearningController) == is_learned
        assert (
            (found.plan_remaining is not None) == (pulled.plan_remaining is not None) == is_learned
        )
        assert (found.predicted_s is None) == (not known)


def test_data_at_a_relay_are_not_carried_out_over_chains():
    held = PROBLEM.replace(held=(dc.Held("K", "S", 0, 10),))
    with pytest.raises(dc.ProblemError, match="10 bytes of 'S' lie at 'K', and chains begin at"):
        execution_of(held, how(relays="chains"))


def test_a_plan_in_slots_is_not_carried_out_over_chains():
    slotted = dc.coordinated(PROBLEM, slot_s=1.0)
    with pytest.raises(dc.ProblemError, match="must be pipelined to be carried out over chains"):
        execution_of(PROBLEM, how(relays="chains"), schedule=slotted)


def test_routes_that_share_connections_need_one_for_each_hop():
    """All of A's data and of S's pass K."""
    grid = [[0, 0, 1.0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0], [0, 0, 0, 0]]
    schedule = dc.coordinated(dc.Problem.from_matrix([*"ASKD"], grid, [9, 9, 0, 0], "D"))
    assert n_connections(schedule, how()) == 4
    assert n_connections(schedule, how(shared_connections=True)) == 3
    assert n_connections(schedule, how(shared_connections=True, lanes=2)) == 6


def test_fewer_streams_than_sources_are_refused():
    with pytest.raises(dc.ProblemError, match="total_streams must be >= 3, one for each source"):
        dc.simulate(shipped(**{"method.total_streams": 2}), engine="fluid", method="direct")


def test_direct_with_as_many_streams_as_the_coordinated_plan():
    scenario = shipped()
    coordinated = carry_out(scenario, engine="fluid")
    n = coordinated.connections
    assert len(coordinated.run.connections) == n > 3
    assert n == n_connections(coordinated.schedule, execution_options(scenario))
    for shared in ("by-data", "evenly"):
        values = {"method.streams_as": "coordinated", "method.streams_shared": shared}
        run = dc.simulate(scenario.with_values(values), engine="fluid", method="direct")
        assert len(run.connections) == n
        per_source = run.connections.groupby("from")["connection"].count()
        if shared == "evenly":
            assert per_source.max() - per_source.min() <= 1


def test_parallel_streams_get_a_larger_share():
    """Beside one endless transfer one stream gets a half, three get three quarters."""
    background = {"pairs": [{"from": "N0", "to": "N1"}]}
    scenario = line_of(background=background)
    for streams, share in ((1, 1 / 2), (3, 3 / 4)):
        run = dc.simulate(
            scenario.with_values({"method.streams": streams}), engine="fluid", method="direct"
        )
        assert run.makespan_s == pytest.approx(5.0 / share, rel=1e-3)


def test_a_plan_in_slots_cannot_be_planned_anew():
    slotted = dc.coordinated(PROBLEM, slot_s=1.0)
    with pytest.raises(dc.ProblemError, match="the schedule must be pipelined"):
        execution_of(PROBLEM, how(replan_s=20.0), schedule=slotted)


@pytest.mark.parametrize("control", ["delayed", "free"])
def test_adaptive_keeps_its_budget_in_the_fluid_engine(control):
    """At most as many at a time as the coordinated plan has, each until its end is known."""
    values = {"method.name": "adaptive", "run.control": control}
    outcome = carry_out(shipped(**values), engine="fluid")
    plan = carry_out(shipped(**{"method.name": "coordinated"}), engine="fluid")
    assert outcome.run.complete
    assert outcome.connections <= plan.connections
    assert outcome.run.settings["connections"] == outcome.connections
    assert outcome.schedule.method == "adaptive"
    assert outcome.run.settings["replanning"] is None


@pytest.mark.slow
@needs_ns3
def test_adaptive_runs_packet_by_packet():
    outcome = carry_out(line_of(method={"name": "adaptive", "connections": 3}), engine="ns3")
    assert outcome.run.complete
    assert outcome.connections <= 3
