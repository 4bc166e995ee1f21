"""Measurements of speed: what they compare with is right, and finds out what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


def test_the_maximum_flow_sees_every_period(speed, references, relay_problem):
    """In the second period, from 1 s on, everything is twice as fast: 3 MB, then 6 MB/s."""
    from datacollect.flow.network.layered import layered_network

    rates = relay_problem.bandwidth_bytes_per_s[0]
    problem = relay_problem.replace(
        periods_s=np.array([0.0, 1.0]), bandwidth_bytes_per_s=np.stack([rates, 2 * rates])
    )
    network = layered_network(problem, problem.periods_s)
    # A byte more may pass where capacities are rounded up.
    assert references.MaxFlow.within(network, 2.0).solve() == pytest.approx(9_000_000, abs=10)
    assert speed.one_max_flow(problem, 2.5)() == 12_000_000
    with pytest.raises(AssertionError):
        speed.one_max_flow(problem, 2.49)()


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["networkx", "OR-Tools", "max-flow"])
@pytest.mark.parametrize("prefer", ["relay-bytes", "earliest-arrival"])
def test_slotted_plans_are_compared_with_the_whole_graph(speed, reference, prefer):
    task = speed.Task("slotted", speed.MESH, 12, reference, 5, prefer=prefer)
    row = speed.slotted(task)
    assert row["slots"] >= 6
    assert row["ratio"] == row["median_s"] / row["reference_median_s"]


@pytest.mark.parametrize("reference", ["GLOP", "HiGHS"])
def test_plans_with_shared_bottlenecks_are_compared_with_all_links_at_once(speed, reference):
    row = speed.shared(speed.Task("shared", speed.RANDOM, 40, reference))
    assert row["reference_stopped"] == ""


@pytest.mark.slow
def test_every_kind_of_problem_is_measured(speed):
    """Each row's problem and reference, at a size that takes no time."""
    tasks = speed.tasks(1)
    assert {task.measurement for task in tasks} == set(speed.MEASUREMENTS)
    assert {task.what for task in tasks} >= set(speed.PROBLEMS)
    for what in sorted({task.what for task in tasks if task.measurement == "planning"}):
        row = speed.planning(speed.Task("planning", what, 40))
        assert 1 <= row["over_lower_bound"] < 1.1


def test_what_a_command_takes_is_its_own_time(speed, scripts, monkeypatch):
    """A fifth of a second of sleep takes no time of the processor; as much work does."""
    work = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.2: pass"
    monkeypatch.setattr(
        speed, "COMMANDS", {"sleep": ("import time; time.sleep(0.2)",), "work": (work,)}
    )
    took = {
        what: speed.start_up(speed.Task("start_up", what))["median_s"] for what in ("sleep", "work")
    }
    assert took["sleep"] < 0.2 <= took["work"]


def test_published_results_have_the_tables_columns(speed, scripts):
    read = scripts("timed_calls").read
    growth = scripts("growth")
    notes, rows = read(speed.RESULTS)
    growth_notes, growth_rows = read(growth.RESULTS)
    assert set(rows[0]) == set(speed.COLUMNS)
    made = {**speed.tables(rows), "growth": growth.table(growth_rows)}
    for name, lines in {"speed_notes": notes, "growth_notes": growth_notes}.items():
        made[name] = scripts("timed_calls").block(lines)
    shown = scripts("shown_tables").shown
    assert {name: shown(name) for name in made} == made


def test_published_results_are_what_the_text_says_of_them(speed, scripts):
    """The largest mesh takes less than a maximum flow; 30 times: beside one network, not ours."""
    _, rows = scripts("timed_calls").read(speed.RESULTS)
    mesh = [row for row in rows if (row["section"], row["what"]) == ("planning", speed.MESH)]
    assert float(max(mesh, key=lambda row: int(row["hosts"]))["ratio"]) < 1
    ratios = {
        row["reference"]: float(row["ratio"])
        for row in rows
        if (row["section"], row["what"], row["hosts"]) == ("slotted", speed.MESH, "100")
    }
    ours, textbook = (speed.SLOTTED_REFERENCES[name][0] for name in ("OR-Tools", "textbook"))
    assert ratios[ours] > 1 / 30 >= ratios[textbook]


def test_certainty_is_measured_beside_planning(scripts):
    """Five hosts with twenty links, tested twice: forty tests, and ratios over planning."""
    script = scripts("certainty_speed")
    n_hosts, what, n_tests, *_, ratio = script.row("mesh", script.mesh_problem(5), 2, 1)
    assert (n_hosts, what, n_tests) == (5, "mesh", 40)
    assert float(ratio) > 0


def test_explaining_is_measured_beside_planning(scripts):
    """Twenty sources, each with a link of its own: as many bends, and ratios over planning."""
    script = scripts("explaining_speed")
    n_sources, what, n_bends, *_, ratio = script.row("direct links", script.star(20), 1)
    assert (n_sources, what, n_bends) == (20, "direct links", 20)
    assert float(ratio) > 0
    behind = scripts("synthetic_problems").relayed_star(20, n_relays=2)
    assert sorted(set(behind.link_to.tolist())) == [0, 1, 2]
    assert script.row("2 relays", behind, 1)[0] == 20
