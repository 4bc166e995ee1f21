"""Beginning as the planner of connections says, beside beginning by hosts' data."""

import pytest

from datacollect.scenario.scenario import Scenario


@pytest.fixture
def planned_start(scripts):
    return scripts("planned_start")


@pytest.mark.slow
def test_both_collect_all_and_plan_as_often_as_they_say(planned_start):
    """Who knows all wires is near adaptive, and no method here is below the bound by much."""
    base = Scenario.from_file(planned_start.HERE / "base.toml")
    found = planned_start.over_adaptive(base, 0, [1, 1], 1)
    assert 0.8 < found["begins as planned"] < 1.25
    assert 0.8 < found["plans anew"] < 1.25
    assert found["plans"] > 1


def test_the_first_connections_are_the_plans(planned_start):
    """Two sources, one wire each of 5 and of 1: five sixths of the connections have most data."""
    import datacollect as dc

    hosts = [dc.Host("A", 500), dc.Host("B", 100), dc.Host("D")]
    links = [
        dc.Link("A", "D", 1.0, capacity_bytes_per_s=60.0),
        dc.Link("B", "D", 1.0, capacity_bytes_per_s=60.0),
    ]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    planned = dc.coordinated(problem, connections=6).transfers
    controller = planned_start.AsPlanned(problem, problem, 6, plans_anew=False)
    opened = [d.hosts for d in controller.start() if type(d).__name__ == "Open"]
    counts = planned.groupby("from")["streams"].max().to_dict()
    assert {host: opened.count((host, "D")) for host in "AB"} == counts
    assert counts["A"] > counts["B"]
    assert controller.plans == 1
