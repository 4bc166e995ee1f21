"""Methods over all settings of a sweep together."""

from __future__ import annotations

import pytest
from instances.made_sweeps import SMALL, gains, write_sweep

from datacollect.study.report.across import across_table
from datacollect.study.report.folders import read_sweeps


def test_over_all_settings_each_counts_alike(tmp_path):
    """Direct takes 2, 4, 2 and 4 times coordinated's time: the geometric mean is 8 ** 0.5."""

    def truth(labels):
        factor = {"0": 2.0, "60": 4.0}[labels["flows"]]
        return {"makespan_s": 100.0 * (factor if labels["method"] == "direct" else 1.0)}

    write_sweep(tmp_path / "a", "figure3", truth, only=SMALL, noise=0.0)
    (sweep,) = read_sweeps(tmp_path)
    table = across_table(sweep).set_index("method")
    row = table.loc["direct"]
    assert row["over_coordinated"] == pytest.approx(8**0.5)
    # Student's t of four logarithms, log 2 apart two by two: 3.182 * log(2) / 12 ** 0.5.
    assert row["over_coordinated_high"] == pytest.approx(8**0.5 * 2 ** (3.1824 / 12**0.5), 1e-4)
    assert (row["over_coordinated_smallest"], row["over_coordinated_largest"]) == (2.0, 4.0)
    assert (row["over_coordinated_settings"], row["over_coordinated_slower"]) == (4, 4)
    assert table.loc["coordinated", "over_direct_faster"] == 4
    assert table.loc["best-path", "over_coordinated"] == pytest.approx(1.0)


def test_one_setting_has_no_table_over_all(tmp_path):
    write_sweep(tmp_path / "a", "figure3", gains, only={**SMALL, "flows": ["0"], "ratio": ["1:1"]})
    (sweep,) = read_sweeps(tmp_path)
    assert across_table(sweep).empty
