"""Runs of scenarios."""

from __future__ import annotations

import numpy as np
import pytest
from instances.ns3_networks import needs_ns3
from instances.small_scenarios import line_of, shipped

import datacollect as dc
from datacollect.scenario.carry_out import carry_out


def test_one_transfer_takes_bytes_over_rate():
    """5 MB at 1 MB/s; connections are there at once, as there is no delay."""
    run = dc.simulate(line_of(), engine="fluid", method="direct")
    assert run.complete
    assert run.makespan_s == pytest.approx(5.0)
    assert run.settings["predicted_makespan_s"] == pytest.approx(5.0)
    assert run.settings["scenario"]["run"]["seed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["direct", "best-path", "coordinated"])
@pytest.mark.parametrize("timing", ["asap", "planned"])
def test_every_method_collects_every_byte(method, timing, paper):
    run = dc.simulate(paper.with_values({"method.timing": timing}), engine="fluid", method=method)
    assert run.complete
    assert run.collected_bytes == 35_000_000
    into = run.routes[run.routes["to"] == "D"].groupby("source")["bytes"].sum()
    assert into.sum() == pytest.approx(35_000_000, abs=100)
    assert set(into.index) == set(run.source_finish_s)
    again = dc.simulate(paper.with_values({"method.timing": timing}), engine="fluid", method=method)
    assert again.makespan_s == run.makespan_s


def test_in_time_slots_sources_wait_for_their_turn():
    """S1 and S2 with 3 MB each over 1 MB/s, one at a time for 2 s each: S1 S2 S1 S2 till 7 s."""
    sources = [{"name": f"S{i}", "at": "N0", "backlog_bytes": 3_000_000} for i in (1, 2)]
    access = {"rate_bytes_per_s": 1e8, "delay_s": 0.0}
    hosts = {"access": access, "destination": {"at": "N1"}, "sources": sources}
    turns = {"name": "direct", "at_a_time": 1, "time_slot_s": 2.0}
    for timing, end_s in (("planned", 7.0), ("asap", 6.0)):
        run = dc.simulate(line_of(hosts=hosts, method=turns | {"timing": timing}), engine="fluid")
        assert run.complete
        assert run.makespan_s == pytest.approx(end_s, rel=1e-3)


def test_no_flows_equal_no_background(paper):
    tree = paper.to_dict()
    tree["background"]["flows"] = 0
    without = {key: value for key, value in tree.items() if key != "background"}
    runs = [dc.simulate(t, engine="fluid") for t in (tree, without)]
    assert runs[0].makespan_s == runs[1].makespan_s
    assert runs[0].background.empty


def test_a_store_and_forward_plan_runs_too(paper):
    run = dc.simulate(paper.with_values({"method.slot_s": 5.0}), engine="fluid")
    assert run.complete


def test_the_time_limit_leaves_a_partial_run():
    """At 1 MB/s 2 of 5 MB are there after 2 s."""
    run = dc.simulate(line_of(), engine="fluid", method="direct", time_limit_s=2.0)
    assert not run.complete
    assert np.isnan(run.makespan_s)
    assert run.collected_bytes == pytest.approx(2_000_000, abs=2000)


def test_a_given_schedule_is_carried_out_if_it_is_for_the_same_data(paper):
    outcome = carry_out(paper, engine="fluid")
    again = dc.simulate(paper, engine="fluid", schedule=outcome.schedule)
    assert again.makespan_s == outcome.run.makespan_s
    other = paper.with_values({"backlog.seed": 3})
    with pytest.raises(dc.ProblemError, match=r"another problem: it collects \d+ bytes of 'S1'"):
        dc.simulate(other, engine="fluid", schedule=outcome.schedule)
    with pytest.raises(dc.ProblemError, match="host 'S1' takes no part"):
        dc.simulate(line_of(), engine="fluid", schedule=outcome.schedule)


def test_wrong_engines_are_refused(paper):
    with pytest.raises(dc.ProblemError, match="engine must be one of ns3, fluid, got 'ns2'"):
        dc.simulate(paper, engine="ns2")


PROBLEM = """
destination = "D"
[hosts.S]
backlog_bytes = 1000
release_s = 1.0
[hosts.D]
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 100.0
"""


@pytest.fixture
def problem_scenario(tmp_path):
    (tmp_path / "p.toml").write_text(PROBLEM)
    (tmp_path / "truth.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,50\n")
    (tmp_path / "s.toml").write_text('problem = "p.toml"\ntruth_csv = "truth.csv"\n')
    return tmp_path / "s.toml"


def test_a_plan_is_made_on_one_grid_and_judged_on_another(problem_scenario):
    """1000 bytes, there after 1 s, at 100 bytes/s promised and 50 found: 11 s and 21 s."""
    run = dc.simulate(problem_scenario, engine="fluid")
    assert run.settings["predicted_makespan_s"] == pytest.approx(11.0)
    assert run.makespan_s == pytest.approx(21.0)


@needs_ns3
def test_what_wires_cannot_is_refused_before_anything_is_planned(problem_scenario):
    """S's data are released at 1 s."""
    with pytest.raises(dc.ProblemError, match=r"'S': its data are released .*--engine fluid"):
        dc.simulate(problem_scenario)


def test_bandwidths_that_were_found_leave_windows_and_limits_of_hosts_what_they_are(tmp_path):
    """S is closed for 10 s, has 50 bytes/s until 30 s, and from Saturday's 20:00:20 on 20."""
    (tmp_path / "p.toml").write_text(
        'destination = "D"\nstart = 2026-11-28T19:59:50\ntimezone = "Europe/Zurich"\n'
        '[hosts.S]\nbacklog_bytes = 1500\nopen = "20:00-06:00"\n'
        'uplink_bytes_per_s = "Sa 20:00:20 20 B/s, Mo-Sa 0:00 1 kB/s"\n[hosts.D]\n'
        '[[links]]\nfrom = "S"\nto = "D"\nbandwidth_bytes_per_s = 100.0\n'
    )
    (tmp_path / "truth.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,50\n")
    scenario = dc.Scenario.from_dict({"problem": "p.toml", "truth_csv": "truth.csv"}, tmp_path)
    run = dc.simulate(scenario, engine="fluid", method="direct")
    assert run.makespan_s == pytest.approx(30 + 500 / 20)


def test_scaling_a_problem_is_refused(problem_scenario):
    scenario = dc.Scenario.from_file(problem_scenario).with_values({"scale": 0.5})
    with pytest.raises(dc.ProblemError, match="scale must be 1 with a problem"):
        dc.simulate(scenario, engine="fluid")


def test_a_plan_in_slots_needs_room_for_what_it_stores(paper):
    """Pieces go on once they are entirely there: with less room the run would stand still."""
    slotted = paper.with_values({"method.slot_s": 5.0})
    with pytest.raises(
        dc.ProblemError, match=r"run: relay_buffer_bytes must be >= (\d+)"
    ) as caught:
        dc.simulate(slotted.with_values({"run.relay_buffer_bytes": 3000}), engine="fluid")
    needed = int(str(caught.value).split(">= ")[1].split(",")[0])
    enough = slotted.with_values({"run.relay_buffer_bytes": needed, "method.timing": "planned"})
    assert carry_out(enough, engine="fluid").schedule.slot_s == 5.0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fluid", pytest.param("ns3", marks=needs_ns3)])
def test_a_window_bounds_what_is_on_its_way(engine):
    """20 kB each round trip of 0.2 s are 100 kB/s, whatever the wire carries: 5 s for 500 kB.

    ns-3 has 13 whole segments on their way, and opens slowly.
    """
    scenario = line_of(
        topology={"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6, "delay_s": 0.1},
        hosts={
            "access": {"rate_bytes_per_s": 1e8, "delay_s": 0.0},
            "destination": {"at": "N1"},
            "sources": [{"name": "S", "at": "N0", "backlog_bytes": 500_000}],
        },
        estimates={"kind": "exact"},
        method={"name": "direct", "window_bytes": 20_000},
    )
    assert dc.simulate(scenario, engine=engine).makespan_s == pytest.approx(5.5, rel=0.12)


# Planning again -----------------------------------------------------------------------------------

ENGINES = ["fluid", pytest.param("ns3", marks=needs_ns3)]


def detour(replan_s=None, **sections):
    """S reaches D over a wire of 0.125 MB/s, or through K over two of 0.25; the planner takes the
    first to carry 0.5. Nobody else is there: beside others, runs of TCP differ by a quarter."""
    wires = [
        {"a": "A", "b": "B", "rate_bytes_per_s": 1.25e5},
        {"a": "A", "b": "C", "rate_bytes_per_s": 2.5e5},
        {"a": "C", "b": "B", "rate_bytes_per_s": 2.5e5},
    ]
    tree = {
        "topology": {"kind": "explicit", "wires": wires},
        "hosts": {
            "access": {"rate_bytes_per_s": 1.25e6, "delay_s": 0.001},
            "destination": {"at": "B"},
            "sources": [{"name": "S", "at": "A", "backlog_bytes": 4_000_000}],
            "relays": [{"name": "K", "at": "C"}],
        },
        "estimates": {"kind": "given", "file": "grid.csv"},
        "method": {} if replan_s is None else {"replan_s": replan_s},
        "run": {"warm_up_s": 0.0},
    }
    return {name: {**table, **sections.get(name, {})} for name, table in tree.items()}


@pytest.fixture
def scenario_of(tmp_path):
    rates = {"S,D": 480_000, "S,K": 240_000, "K,D": 240_000}
    rows = "".join(f"{ends},{rate}\n" for ends, rate in rates.items())
    (tmp_path / "grid.csv").write_text(f"from,to,bandwidth_bytes_per_s\n{rows}")
    return lambda *args, **sections: dc.Scenario.from_dict(detour(*args, **sections), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_with_an_interval_longer_than_the_run_it_is_the_blind_plan(engine, scenario_of):
    blind = dc.simulate(scenario_of(), engine=engine)
    assert blind.settings["replanning"] is None
    run = dc.simulate(scenario_of(1000.0), engine=engine)
    assert run.makespan_s == pytest.approx(blind.makespan_s, rel=0.02)
    assert run.settings["replanning"] == {
        "replans": 0,
        "at_s": [],
        "predicted_end_s": [],
        "connections_opened": 3,
    }
    assert run.settings["connections"] == blind.settings["connections"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_planned_anew_data_leave_a_link_that_turns_out_slow(engine, scenario_of):
    """4 MB: blind two thirds go straight, at 0.12 instead of 0.48 MB/s: 22 s. With what is observed
    the rest is divided as 1 to 2: 0.36 MB/s together need 11 s."""
    blind = dc.simulate(scenario_of(), engine=engine)
    run = dc.simulate(scenario_of(2.0), engine=engine)
    assert run.complete
    assert blind.makespan_s == pytest.approx(22.2, rel=0.1)
    assert run.makespan_s == pytest.approx(11.1, rel=0.2)
    made = run.settings["replanning"]
    assert made["replans"] >= 3
    assert made["at_s"] == pytest.approx([2.0 * (i + 1) for i in range(made["replans"])])
    assert made["predicted_end_s"][-1] == pytest.approx(run.makespan_s, rel=0.25)
    # Nothing was sent twice: what came to D is the backlog, over both ways together.
    assert run.connections["stalls"].sum() == 0
    into = run.routes[run.routes["to"] == "D"]["bytes"].sum()
    assert into == pytest.approx(4_000_000, abs=10)
    again = dc.simulate(scenario_of(2.0), engine=engine)
    assert (again.makespan_s, again.events) == (run.makespan_s, run.events)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("control", "more"), [("free", 1), ("delayed", 1448)])
def test_planned_anew_a_relay_stores_no_more_than_it_may(engine, control, more, scenario_of):
    """Told late, K is full for a moment: ns-3's curve, a line through several segments, may be a
    part of one off there."""
    room = 20_000
    limits = {"relay_buffer_bytes": room, "control": control}
    run = dc.simulate(scenario_of(2.0, run=limits), engine=engine)
    assert run.complete
    others = run.storage[run.storage["host"] == "K"]["others_bytes"]
    assert 0 < others.max() <= room + more


@pytest.mark.parametrize("values", [{"method.lanes": 3}, {"method.shared_connections": True}])
def test_planned_anew_with_many_lanes_and_shared_connections(values):
    outcome = carry_out(shipped(**{"method.replan_s": 1.0, **values}), engine="fluid")
    assert outcome.run.complete
    assert outcome.run.collected_bytes == 2_400_000
    assert outcome.replanning.replans >= 1
