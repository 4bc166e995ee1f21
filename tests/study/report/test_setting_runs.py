"""Runs of a setting with which each method is compared."""

from __future__ import annotations

import pytest
from instances.made_sweeps import SMALL, write_sweep

from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.tables import summary_table


@pytest.mark.slow
def test_each_has_the_reference_of_as_many_connections_that_is_meant_for_it(tmp_path):
    """Two lanes compare with direct as many as two lanes, best-path with as many as best-path."""

    def truth(labels):
        n = {"coordinated, ours, 2 lanes": 80, "direct as many as ours, 2 lanes": 40}
        return {"makespan_s": float(n.get(labels["method"], 100))}

    write_sweep(tmp_path / "a", "streams", truth, only={"ratio": ["1:1"]}, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep)
    ratios = table[table["flows"] == "60"].set_index("method")["over_as_many"]
    assert ratios["coordinated, ours, 2 lanes"] == pytest.approx(2.0)
    assert ratios["coordinated"] == ratios["best-path, 4 lanes"] == pytest.approx(1.0)
    assert ratios.isna()["direct, 8 each"]


def test_variants_of_coordinated_are_compared_with_the_first(tmp_path):
    def truth(labels):
        return {"makespan_s": 300.0 if labels["execution"].startswith("slots of 50 s") else 100.0}

    write_sweep(tmp_path / "a", "execution", truth, only={"ratio": ["1:1"]}, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep)
    ratios = table[table["flows"] == "60"].set_index("execution")["over_coordinated"]
    assert ratios["slots of 50 s, planned times"] == pytest.approx(3.0)
    assert ratios["pipelined, ours"] == pytest.approx(1.0)


def test_under_wrong_estimates_methods_are_compared_under_the_same(tmp_path):
    def truth(labels):
        factor = 2.0 if labels["error"] == "+70 %" else 1.0
        return {"makespan_s": 100.0 * factor * (3.0 if labels["method"] == "best-path" else 1.0)}

    only = {"flows": ["60"], "ratio": ["1:3"]}
    write_sweep(tmp_path / "a", "figure4", truth, only=only, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep).set_index(["method", "error"])
    assert table.loc[("best-path", "+70 %"), "over_coordinated"] == pytest.approx(3.0)


@pytest.mark.slow
@pytest.mark.parametrize(("connections", "is_equal"), [(40, True), (43, True), (45, False)])
def test_as_many_means_within_a_tenth(tmp_path, connections, is_equal):
    """Re-planned plans open more than direct was given: then there is nothing to compare with."""

    def truth(labels):
        n = {"coordinated": connections, "direct-as-many": 40}.get(labels["method"], 7)
        return {"connections": n}

    write_sweep(tmp_path / "a", "figure3", truth, only=SMALL)
    (sweep,) = read_sweeps(tmp_path)
    table = summary_table(sweep).set_index(["method", "flows", "ratio"])
    assert table["over_as_many"].notna()["coordinated", "60", "2:1"] == is_equal
    # Best-path has as many as plain direct here.
    assert table["over_as_many"].notna()["best-path", "60", "2:1"]
