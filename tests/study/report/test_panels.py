"""Points of a picture's panels."""

from __future__ import annotations

import json

import pytest
from instances.made_sweeps import SMALL, write_sweep

from datacollect.study.report.figures import draw_panels
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.panels import panels_of


@pytest.mark.slow
def test_a_series_that_was_run_once_for_all_is_in_every_panel(tmp_path):
    """Direct plans on no estimates: its runs at 0 % are shown where estimates are wrong, too."""
    write_sweep(tmp_path / "a", "figure4", only={"flows": ["60"], "error": ["0 %", "+70 %"]})
    tree = json.loads((tmp_path / "a" / "experiment.json").read_text())
    assert len(tree["panels"]) > 2
    (sweep,) = read_sweeps(tmp_path)
    by_label = {panel.label: panel.points for panel in panels_of(sweep) if panel.label in "ad"}
    wrong, right = (by_label[label].set_index("series") for label in "ad")
    methods = {"direct", "direct-as-many", "best-path", "coordinated"}
    assert set(wrong.index) == methods | {"direct-as-many, ours", "coordinated, ours"}
    assert wrong.loc["direct", "run"] == right.loc["direct", "run"]
    assert wrong.loc["coordinated", "run"] != right.loc["coordinated", "run"]


def test_what_a_panel_leaves_open_is_not_mixed(tmp_path):
    folder = tmp_path / "a"
    write_sweep(folder, "figure3", only=SMALL)
    tree = json.loads((folder / "experiment.json").read_text())
    tree["panels"] = [{**tree["panels"][0], "where": {}}]
    (folder / "experiment.json").write_text(json.dumps(tree))
    (sweep,) = read_sweeps(folder)
    assert [panel.title for panel in panels_of(sweep)] == ["(a1) ratio 1:1", "(a2) ratio 2:1"]


def test_without_panels_methods_are_drawn(tmp_path):
    folder = tmp_path / "a"
    write_sweep(folder, "figure3", only=SMALL)
    tree = json.loads((folder / "experiment.json").read_text())
    (folder / "experiment.json").write_text(json.dumps({**tree, "panels": []}))
    (sweep,) = read_sweeps(folder)
    panels = panels_of(sweep)
    assert {panel.series for panel in panels} == {"method"}
    # Over the axis with most labels; each combination of the others has a panel and a letter.
    assert [panel.title for panel in panels] == ["(a) ratio 1:1", "(b) ratio 2:1"]


def test_one_axis_alone_is_drawn_once_and_named(tmp_path):
    """Each method stands over its own name, not over those of all others as well."""
    folder = tmp_path / "a"
    write_sweep(folder, "figure3", only={**SMALL, "ratio": ["1:1"]})
    tree = json.loads((folder / "experiment.json").read_text())
    tree["axes"] = [axis for axis in tree["axes"] if axis["name"] == "method"]
    (folder / "experiment.json").write_text(json.dumps({**tree, "panels": []}))
    (sweep,) = read_sweeps(folder)
    (panel,) = panels_of(sweep)
    assert panel.title == "(a) makespan by method"
    assert list(panel.points["x"]) == list(panel.points["series"]) == list(sweep.axes[0].labels)
    (axes,) = draw_panels([panel], "").axes
    assert len(axes.patches) == len(panel.points)
