"""All methods side by side."""

from __future__ import annotations

import json
import math

import pytest
from instances.hand_made import links
from instances.small_problems import MB, figure_1, relay

import datacollect as dc
from datacollect.problem.hosts import Host
from datacollect.problem.problem import Problem

METHODS = ["direct", "best-path", "coordinated"]

# The keys that programs read: `plan --json` and each method of `compare --json`.
CONTRACT_KEYS = {
    "method",
    "makespan_s",
    "lower_bound_s",
    "bottleneck",
    "n_transfers",
    "n_routes",
    "plan_time_s",
    "peak_storage_bytes",
}


def three_hops() -> Problem:
    """S reaches D over K and L only: neither directly nor by one relay."""
    return Problem.from_hosts(
        [Host("S", 2 * MB), Host("K"), Host("L"), Host("D")],
        links("S -> K 1e6, K -> L 1e6, L -> D 1e6"),
        "D",
    )


def test_methods_bound_and_bottleneck_stand_side_by_side():
    """`relay`: directly 6 s; best-path by K 6 / 2 = 3 s; both together 2 s; a chunk is 2 ms."""
    problem = relay()
    found = dc.compare(problem)
    assert list(found.schedules) == METHODS
    assert found.errors == {}
    assert found.lower_bound_s == pytest.approx(2.0)
    assert found.bottleneck.hosts == ("S",)
    makespans = {name: plan.makespan_s for name, plan in found.schedules.items()}
    assert makespans == pytest.approx({"direct": 6.0, "best-path": 3.002, "coordinated": 2.002})
    for name, plan in found.schedules.items():
        plan.check(problem)
        assert plan.method == name


def test_the_table_has_a_row_per_method():
    table = dc.compare(relay()).table
    assert table.index.tolist() == METHODS
    assert table.index.name == "method"
    assert table.columns.tolist() == [
        "makespan_s",
        "over_lower_bound",
        "n_routes",
        "n_transfers",
        "peak_storage_bytes",
        "plan_time_s",
    ]
    assert table["over_lower_bound"].tolist() == pytest.approx([3.0, 1.501, 1.001])
    assert table["n_routes"].tolist() == [1, 1, 2]
    assert table["n_transfers"].tolist() == [1, 2, 3]
    # One chunk of 2 ms at K's 2 MB/s.
    assert table["peak_storage_bytes"].tolist() == [0, 4000, 4000]
    assert (table["plan_time_s"] > 0).all()


def test_slots_and_chunks_shape_relayed_routes_only():
    """Slots of 0.5 s. Best-path: 1 MB a slot to K, the last of six leaves K in the 7th: 3.5 s."""
    slotted = dc.compare(relay(), slot_s=0.5)
    makespans = [plan.makespan_s for plan in slotted.schedules.values()]
    assert makespans == pytest.approx([6.0, 3.5, 2.5])
    chunked = dc.compare(relay(), chunk_s=0.25)
    makespans = [plan.makespan_s for plan in chunked.schedules.values()]
    assert makespans == pytest.approx([6.0, 3.25, 2.25])


def test_a_method_without_a_schedule_says_why():
    found = dc.compare(three_hops())
    assert list(found.schedules) == ["coordinated"]
    assert set(found.errors) == {"direct", "best-path"}
    assert "'S'" in found.errors["direct"]
    assert "at most two hops" in found.errors["best-path"]
    assert found.table.index.tolist() == ["coordinated"]
    tree = found.to_dict()
    assert list(tree["methods"]) == ["coordinated", "direct", "best-path"]
    assert tree["methods"]["direct"]["makespan_s"] is None
    assert tree["methods"]["direct"]["error"] == found.errors["direct"]
    assert tree["methods"]["best-path"]["method"] == "best-path"


@pytest.mark.parametrize("problem", [relay(), figure_1(), three_hops()])
def test_the_tree_is_json_with_the_keys_that_programs_read(problem):
    found = dc.compare(problem)
    tree = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(tree) == {"lower_bound_s", "bottleneck", "methods"}
    assert tree["lower_bound_s"] == found.lower_bound_s
    assert set(tree["bottleneck"]) == {"kind", "hosts", "text"}
    assert tree["bottleneck"]["hosts"] == list(found.bottleneck.hosts)
    assert set(tree["methods"]) == set(METHODS)
    for name, method in tree["methods"].items():
        assert set(method) >= CONTRACT_KEYS
        assert method["method"] == name
    best = tree["methods"]["coordinated"]
    plan = found.schedules["coordinated"]
    assert best["makespan_s"] == plan.makespan_s
    assert best["n_transfers"] == plan.n_transfers
    assert best["n_routes"] == plan.n_routes
    assert best["peak_storage_bytes"] == plan.peak_storage_bytes
    assert best["bottleneck"] == tree["bottleneck"]
    assert best["status"] == "optimal"


def test_nothing_to_move_is_optimal_by_every_method():
    problem = Problem.from_hosts([Host("S"), Host("D", 3)], links("S -> D 1"), "D")
    found = dc.compare(problem)
    assert found.lower_bound_s == 0.0
    assert found.bottleneck.kind == "none"
    assert found.table["over_lower_bound"].tolist() == [1.0, 1.0, 1.0]
    assert found.table["makespan_s"].tolist() == [0.0, 0.0, 0.0]


def test_data_that_cannot_arrive_at_all_are_an_error():
    problem = Problem.from_hosts([Host("S", 1), Host("D")], links("D -> S 1"), "D")
    with pytest.raises(dc.InfeasibleError, match="'S'"):
        dc.compare(problem)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slot_s": -1.0}, "slot_s must be > 0"),
        ({"chunk_s": math.nan}, "chunk_s must be >= 0"),
        ({"slot_s": 1.0, "chunk_s": 1.0}, "cannot be combined"),
        ({"time_limit_s": 0.0}, "time_limit_s must be > 0"),
        ({"solver": "gurobi"}, "solver"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.compare(relay(), **options)
