"""Measurements of speed: what they compare with is right, and finds out what is not."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import datacollect as dc

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


@pytest.fixture(scope="module")
def scripts():
    """Import a script by name; scripts import each other from their own folder."""
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(EXPERIMENTS))


@pytest.fixture
def speed(scripts):
    return scripts("planning_speed")


@pytest.fixture
def references(scripts):
    return scripts("reference_solvers")


@pytest.fixture
def relay_problem():
    """S holds 12 MB; 1 MB/s to D, 2 MB/s to K and on to D: 3 MB/s in all, 4 s."""
    rates = [[0, 2e6, 1e6], [0, 0, 2e6], [0, 0, 0]]
    return dc.Problem.from_matrix(["S", "K", "D"], rates, [12_000_000, 0, 0], "D")


END_BY = ("end_by_glop", "end_by_highs")


@pytest.mark.parametrize("name", END_BY)
@pytest.mark.parametrize(
    ("changes", "end_s"),
    [
        ({}, 4.0),
        # S sends 2 MB/s, or D receives 1.5 MB/s.
        ({"uplink_bytes_per_s": np.array([2e6, np.inf, np.inf])}, 6.0),
        ({"downlink_bytes_per_s": np.array([np.inf, np.inf, 1.5e6])}, 8.0),
        # K passes on 1 MB/s through the shared wire, 1 MB/s go to D beside it.
        ({"shared": [dc.SharedBottleneck("w", 1e6, [("K", "D")])]}, 6.0),
        # Both ways into D share 1 MB/s.
        ({"shared": [dc.SharedBottleneck("w", 1e6, [("S", "D"), ("K", "D")])]}, 12.0),
    ],
)
def test_the_linear_program_ends_when_arithmetic_says(
    references, relay_problem, name, changes, end_s
):
    program = references.ConcurrentFlow.build(relay_problem.replace(**changes))
    assert getattr(program, name)() == pytest.approx(end_s, rel=1e-9)


@pytest.mark.parametrize("name", END_BY)
def test_what_enters_the_destination_cannot_pass_through_it(references, name):
    """S reaches D only by K, at 1 MB/s; a link from D back to K carries nothing of use."""
    rates = [[0, 3e6, 0], [0, 0, 1e6], [0, 5e6, 0]]
    problem = dc.Problem.from_matrix(["S", "K", "D"], rates, [12_000_000, 0, 0], "D")
    program = references.ConcurrentFlow.build(problem)
    assert getattr(program, name)() == pytest.approx(12.0, rel=1e-9)


@pytest.mark.parametrize("name", END_BY)
def test_a_stopped_program_has_no_answer(references, scripts, monkeypatch, name):
    program = references.ConcurrentFlow.build(scripts("synthetic_problems").shared_at_random(100))
    monkeypatch.setattr(references, "TIME_LIMIT_S", 1e-9)
    assert getattr(program, name)() is None


def test_the_maximum_flow_sees_every_period(speed, references, relay_problem):
    """In the second period, from 1 s on, everything is twice as fast: 3 MB, then 6 MB/s."""
    from datacollect.layered import layered_network

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


def test_cost_of_a_plan_in_slots(speed, relay_problem):
    """4 MB directly, 8 MB by K, in slots of 1 s and as early as possible: 5 slots.

    Directly 1 MB arrives in each of slots 0 to 3; by K 2 MB in each of slots 1 to 4, and each
    leaves K in the slot after it arrived there.
    """
    from datacollect.preference import Costs

    plan = dc.coordinated(relay_problem, slot_s=1.0, prefer="earliest-arrival")
    assert speed.slots_of(plan) == 5

    def cost(link, stored, arrival):
        slots = np.arange(5)
        return speed.cost_of(
            plan, Costs(np.full(3, link), np.full(5, stored), np.asarray(arrival * slots))
        )

    table = plan.transfers
    relayed = int(table.query("to == 'K'")["bytes"].sum())
    assert cost(1, 0, 0) == 12_000_000 + relayed
    assert cost(0, 1, 0) == relayed
    # Most that can have arrived: 1 MB by the end of slot 0, then 3 MB more per slot.
    assert cost(0, 0, 1) == 10**6 * (3 * 1 + 3 * 2 + 3 * 3 + 2 * 4)


@pytest.mark.parametrize("reference", ["networkx", "OR-Tools", "max-flow"])
@pytest.mark.parametrize("prefer", ["relay-bytes", "earliest-arrival"])
def test_slotted_plans_are_compared_with_the_whole_graph(speed, reference, prefer):
    task = speed.Task("slotted", speed.MESH, 12, reference, 5, prefer=prefer)
    row = speed.slotted(task)
    assert row["slots"] >= 6
    assert row["ratio"] == row["median_s"] / row["reference_median_s"]


def test_a_plan_with_a_slot_too_many_is_found_out(speed, relay_problem):
    plan = dc.coordinated(relay_problem, slot_s=1.0)
    late = plan.replace(makespan_s=plan.makespan_s + 1.0)
    for _, prepare in list(speed.SLOTTED_REFERENCES.values())[1:]:
        prepare(relay_problem, plan, "relay-bytes")()
        with pytest.raises(AssertionError):
            prepare(relay_problem, late, "relay-bytes")


def test_a_plan_that_is_not_the_cheapest_is_found_out(speed):
    """T takes 5 slots whatever S does, who needs no relay but arrives sooner with one."""
    rates = np.zeros((4, 4))
    rates[[0, 0, 1, 2], [3, 1, 3, 3]] = 1e6, 2e6, 2e6, 1e6
    problem = dc.Problem.from_matrix(["S", "K", "T", "D"], rates, [5 * 10**6, 0, 5 * 10**6, 0], "D")
    plan = dc.coordinated(problem, slot_s=1.0, prefer="earliest-arrival")
    for name in ("networkx", "OR-Tools"):
        _, prepare = speed.SLOTTED_REFERENCES[name]
        prepare(problem, plan, "earliest-arrival")()
        with pytest.raises(AssertionError):
            prepare(problem, plan, "relay-bytes")()


@pytest.mark.parametrize("reference", ["GLOP", "HiGHS"])
def test_plans_with_shared_bottlenecks_are_compared_with_all_links_at_once(speed, reference):
    row = speed.shared(speed.Task("shared", speed.RANDOM, 40, reference))
    assert row["reference_stopped"] == ""


def test_every_kind_of_problem_is_measured(speed):
    """Each row's problem and reference, at a size that takes no time."""
    tasks = speed.tasks(1)
    assert {task.measurement for task in tasks} == set(speed.MEASUREMENTS)
    assert {task.what for task in tasks} >= set(speed.PROBLEMS)
    for what in sorted({task.what for task in tasks if task.measurement == "planning"}):
        row = speed.planning(speed.Task("planning", what, 40))
        assert 1 <= row["over_lower_bound"] < 1.1


def test_what_a_command_takes_is_its_own_time(speed, scripts, monkeypatch):
    """Half a second of sleep takes no time of the processor; half a second of work does."""
    work = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.5: pass"
    monkeypatch.setattr(
        speed, "COMMANDS", {"sleep": ("import time; time.sleep(0.5)",), "work": (work,)}
    )
    took = {
        what: speed.start_up(speed.Task("start_up", what))["median_s"] for what in ("sleep", "work")
    }
    assert took["sleep"] < 0.5 <= took["work"]


def test_tables_show_what_was_stopped_and_leave_out_what_is_not_there(speed):
    row = dict.fromkeys(speed.COLUMNS, "")
    row |= {"section": "shared", "what": "mesh", "reference": "GLOP", "hosts": "9"}
    row |= {"arcs": "72", "median_s": "0.5", "peak_memory_mb": "64.2"}
    row |= {"reference_median_s": "30", "ratio": "0.01667"}
    stopped = row | {"reference_stopped": "yes"}
    alone = row | {"section": "slotted", "reference": "", "reference_median_s": "", "ratio": ""}
    lines = speed.tables([row, stopped, alone]).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0][5:9] == ["500 ms", "30 s", "60", "64 MB"]
    assert cells[1][5:9] == ["500 ms", "30 s", "≥ 60", "64 MB"]
    assert cells[2][5:9] == ["500 ms", "", "", "64 MB"]


def test_tables_say_what_was_measured_once(speed):
    row = dict.fromkeys(speed.COLUMNS, "")
    row |= {"section": "slotted", "what": "mesh", "reference": "none", "median_s": "17.2"}
    row |= {"repeats": "1"}
    line = speed.tables([row]).splitlines()[2]
    assert "| none |" in line
    assert "| 17.2 s (once) |" in line
    assert "| 17.2 s |" in speed.tables([row | {"repeats": "5"}])


def test_both_whole_networks_are_named_beside_each_other(speed):
    """A flow of 9 s and one of 3 s beside plans of 0.1 s; another plan has one comparison only."""
    row = dict.fromkeys(speed.COLUMNS, "") | {"section": "slotted", "what": "mesh"}
    row |= {"hosts": "5", "slots": "7", "median_s": "0.1", "reference_median_s": "3"}
    ours = row | {"reference": "OR-Tools min-cost flow", "ratio": "0.03333"}
    other = row | {"reference": f"OR-Tools min-cost flow, {speed.TEXTBOOK}", "ratio": "0.01111"}
    alone = ours | {"slots": "9"}
    said = speed.tables([ours, other, alone]).split("\n\n")[1]
    assert said == (
        "- mesh, 5 hosts, 7 slots: 90 times with one node per host and boundary, 30 times with own "
        "data in nodes of their own."
    )
    assert len(speed.tables([ours, alone]).split("\n\n")) == 1


def test_published_results_have_the_tables_columns(speed, scripts):
    read = scripts("measuring").read
    growth = scripts("growth")
    notes, rows = read(speed.RESULTS)
    growth_notes, growth_rows = read(growth.RESULTS)
    assert set(rows[0]) == set(speed.COLUMNS)
    document = (EXPERIMENTS.parent / "docs/speed.md").read_text(encoding="utf-8")
    for table in (*speed.tables(rows).split("\n\n"), growth.table(growth_rows)):
        assert table in document
    for lines in (notes, growth_notes):
        assert "\n".join(lines) in document


def test_published_results_are_what_the_text_says_of_them(speed, scripts):
    """The largest mesh takes less than a maximum flow; 30 times: beside one network, not ours."""
    _, rows = scripts("measuring").read(speed.RESULTS)
    mesh = [row for row in rows if (row["section"], row["what"]) == ("planning", speed.MESH)]
    assert float(max(mesh, key=lambda row: int(row["hosts"]))["ratio"]) < 1
    ratios = {
        row["reference"]: float(row["ratio"])
        for row in rows
        if (row["section"], row["what"], row["hosts"]) == ("slotted", speed.MESH, "100")
    }
    ours, textbook = (speed.SLOTTED_REFERENCES[name][0] for name in ("OR-Tools", "textbook"))
    assert ratios[ours] > 1 / 30 >= ratios[textbook]


def test_exponent_of_the_largest_sizes(scripts):
    """0.02 s times the square of the size, after a first point that is all overhead."""
    slope, factor = scripts("growth").exponent(
        np.array([1.0, 10.0, 100.0, 1000.0]), np.array([5.0, 2.0, 200.0, 20000.0])
    )
    assert (slope, factor) == (pytest.approx(2.0), pytest.approx(0.02))


@pytest.mark.parametrize("series", ["hosts", "links", "slots", "periods"])
def test_every_series_is_measured(scripts, series):
    growth = scripts("growth")
    size = growth.SERIES[series].sizes[1]
    row = growth.point(series, size, 1)
    assert row["median_s"] > 0
    assert (
        size
        == {
            "hosts": row["hosts"],
            "links": row["links"],
            "slots": 30,
            "periods": 3,
        }[series]
    )
