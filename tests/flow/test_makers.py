"""Sources that make their data: bounds, plans and messages without a trace of hidden hosts."""

import json

import numpy as np
import pytest
from explore.production import case
from instances.how_many import many

import datacollect as dc

MB = 1_000_000


def problem_of(*, made=0, release_s=0.0, **hosts):
    """S makes 10 MB at 1 MB/s; links of 0.5 MB/s lead to D and to the relay K."""
    source = {"backlog_bytes": 10 * MB, "produces_bytes_per_s": 1e6, "release_s": release_s}
    rates = {("S", "D"): 0.5e6, ("S", "K"): 0.5e6, ("K", "D"): 5e6}
    return dc.Problem.from_dict(
        {
            "destination": "D",
            "hosts": {"S": source | {"made_bytes": made}, "K": {}, "D": {}} | hosts,
            "links": [
                {"from": a, "to": b, "bandwidth_bytes_per_s": rate}
                for (a, b), rate in rates.items()
            ],
        }
    )


def test_no_plan_ends_before_all_is_made():
    """10 MB at 1 MB/s take 10 s, wherever they go; both links together carry just as much."""
    bound_s, bottleneck = dc.lower_bound(problem_of())
    assert bound_s == pytest.approx(10.0, rel=1e-9)
    assert bottleneck.hosts == ("S",)
    assert bottleneck.text == "Host 'S' makes no more than 8 Mbit/s."


def test_what_is_there_need_not_be_made():
    """Of 10 MB 4 are there: the rest is made in 6 s, but the links take 10 s for all."""
    assert dc.lower_bound(problem_of(made=4 * MB))[0] == pytest.approx(10.0, rel=1e-9)
    wide = problem_of(made=4 * MB).replace(bandwidth_bytes_per_s=[[5e6, 5e6, 5e6]])
    assert dc.lower_bound(wide)[0] == pytest.approx(6.0, rel=1e-9)


def test_plans_over_two_routes_send_what_was_made_first_first():
    """Two routes leave S at once and take stripes by turns: no byte leaves before it is made."""
    problem = problem_of()
    plan = dc.coordinated(problem, chunk_s=0.5)
    plan.check(problem)
    assert {route.hosts for route in plan.routes} == {("S", "D"), ("S", "K", "D")}
    left = plan.transfers.query("`from` == 'S'")
    assert (left["offset_bytes"] <= left["start_s"] * 1e6 + 2).all()
    # A chunk after it is made a byte leaves, and K passes it on another chunk later.
    assert plan.makespan_s == pytest.approx(11.0)


def test_in_slots_what_is_made_in_one_leaves_in_the_next():
    problem = problem_of()
    plan = dc.coordinated(problem, slot_s=1.0)
    plan.check(problem)
    # Made in ten slots, at K in the eleventh, at D in the twelfth; or less over K.
    assert plan.makespan_s in (11.0, 12.0)


@pytest.mark.parametrize("room", [0, MB])
def test_a_source_with_little_room_for_others_has_room_for_its_own(room):
    """Its own data wait at S, whatever its storage: the links open only after all is made."""
    later = {
        "destination": "D",
        "periods_s": [0.0, 10.0],
        "hosts": {
            "S": {"backlog_bytes": 10 * MB, "produces_bytes_per_s": 1e6, "storage_bytes": room},
            "D": {},
        },
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [0.0, 5e6]}],
    }
    problem = dc.Problem.from_dict(later)
    assert dc.lower_bound(problem)[0] == pytest.approx(12.0, rel=1e-9)
    for plan in (dc.coordinated(problem), dc.coordinated(problem, slot_s=1.0)):
        plan.check(problem)
        assert plan.makespan_s == pytest.approx(12.0, rel=2e-3)


def test_windows_close_no_source():
    """What is closed goes on making data, and sends them all when it opens."""
    hosts = [
        dc.Host("S", 36 * MB, produces_bytes_per_s=1e4, open="13:00-24:00"),
        dc.Host("D"),
    ]
    problem = dc.Problem.from_hosts(
        hosts, [dc.Link("S", "D", 1e6)], "D", start="2026-06-01T12:00", timezone="UTC"
    )
    plan = dc.coordinated(problem)
    plan.check(problem)
    # All is made after an hour, just when S opens, and takes 36 s.
    assert dc.lower_bound(problem)[0] == pytest.approx(3636.0, rel=1e-9)


def test_hidden_hosts_show_nowhere():
    problem = problem_of()
    plan = dc.coordinated(problem)
    shown = [
        json.dumps(plan.to_dict()),
        plan.pulls("D").to_string(),
        dc.explain(problem, plan).text,
        json.dumps(dc.compare(problem).to_dict()),
        plan.storage().to_string(),
    ]
    for text in shown:
        assert "what S makes" not in text
    assert "'S' makes no more" in dc.explain(problem).text
    with pytest.raises(dc.InfeasibleError, match="'S' makes no more than 8 Mbit/s") as caught:
        dc.coordinated(problem, deadline_s=9.0)
    assert caught.value.hosts == ("S",)


def test_a_name_that_a_hidden_host_would_have_is_free():
    problem = problem_of(**{"what S makes": {}})
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert plan.makespan_s == pytest.approx(10.0, rel=3e-3)


def test_faster_making_is_what_helps():
    found = dc.explain(problem_of().replace(bandwidth_bytes_per_s=[[5e6, 5e6, 5e6]]))
    [relaxed] = found.advice.alone[0].relaxed
    assert (relaxed.resource.kind, relaxed.name) == ("production", "production of 'S'")
    # One Mbit/s of eight more: 10 s become 80/9.
    assert found.advice.alone[0].saves_s == pytest.approx(10 - 80 / 9)


def test_the_rest_is_planned_from_what_has_been_made():
    problem = problem_of()
    plan = dc.coordinated(problem)
    progress = {"format": "datacollect-progress/1", "at_s": 4.0}
    rest = dc.replan(problem, plan, progress)
    # Nothing has arrived: 10 MB over 1 MB/s.
    assert rest.lower_bound_s == pytest.approx(10.0, rel=1e-9)
    held = [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 4 * MB}]
    rest = dc.replan(problem, plan, progress | {"held": held})
    assert rest.lower_bound_s == pytest.approx(6.0, rel=1e-9)


def test_connections_are_shared_out_among_routes_that_send_no_faster_than_is_made():
    links = [
        dc.Link("S", "D", 3e5, capacity_bytes_per_s=8e5),
        dc.Link("S", "K", 5e5, capacity_bytes_per_s=2e6),
        dc.Link("K", "D", 5e5, capacity_bytes_per_s=2e6),
    ]
    hosts = [dc.Host("S", 10 * MB, produces_bytes_per_s=1e6), dc.Host("K"), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    plan = dc.coordinated(problem, connections=10)
    plan.check(problem)
    assert 10.0 <= plan.makespan_s <= 10.1


def test_a_simulation_shows_the_source_alone(tmp_path):
    file = tmp_path / "makes.json"
    file.write_text(json.dumps(problem_of().to_dict()), encoding="utf-8")
    run = dc.simulate({"problem": str(file)}, engine="fluid", method="direct")
    # Direct, 0.5 MB/s for 10 MB.
    assert run.makespan_s == pytest.approx(20.0, rel=1e-6)
    assert run.source_finish_s == {"S": pytest.approx(20.0, rel=1e-6)}
    assert "what S makes" not in {*run.storage["host"], *run.routes["from"]}
    # S has made 5 MB more than it has sent after 10 s.
    stored = run.storage.query("host == 'S'")
    assert stored["own_bytes"].max() == pytest.approx(5 * MB, rel=0.01)
    with pytest.raises(dc.ProblemError, match="'S' makes its data"):
        dc.simulate({"problem": str(file)}, engine="fluid", method="adaptive")


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_those_of_a_program_that_knows_what_is_made(seed):
    assert case(seed) is None


@pytest.mark.slow
def test_bounds_are_those_of_a_program_for_more_problems():
    assert [fault for i in range(many(200)) if (fault := case(1000 + i))] == []


def test_a_direct_source_sends_what_has_waited_as_fast_as_it_can():
    """S and T share 1.5 MB/s: S has made 1 MB more than it sent after 4 s, when T ends.

    Then it sends 1.5 MB/s until it has caught up, 1 MB at 0.5 MB/s more than it makes, and then
    what it makes.
    """
    problem = dc.Problem.from_matrix(
        ["S", "T", "D"],
        [[0, 0, 5e6], [0, 0, 5e6], [0, 0, 0]],
        [10 * MB, 3 * MB, 0],
        "D",
        produces_bytes_per_s=[1e6, np.inf, np.inf],
        downlink_bytes_per_s=[np.inf, np.inf, 1.5e6],
    )
    plan = dc.direct(problem)
    plan.check(problem)
    rows = plan.transfers.query("source == 'S'")
    assert rows["finish_s"].tolist() == pytest.approx([4.0, 6.0, 10.0])
    assert rows["bytes"].tolist() == [3 * MB, 3 * MB, 4 * MB]
