"""The page on the study of measuring: what it calls ours was run so, and gave that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datacollect.measuring.probes.window_scan import ENOUGH

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measuring" / "study.md"


@pytest.fixture(scope="module")
def study(scripts):
    return scripts("measuring_study")


@pytest.fixture(scope="module")
def ours():
    """What the page's tables beside the paper say of ours, by the row's name."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    return {cells[0]: cells[2] for cells in rows}


def between(values):
    return f"{min(values):.2f} to {max(values):.2f}"


def test_a_scan_is_told_as_it_was_run(study, ours):
    *sizes, kernels = study.WINDOWS
    assert ours["windows"].startswith(f"{sizes[0]} to {sizes[-1]}, and `{kernels}`")
    assert ours["streams"] == f"{study.STREAMS[0]} to {study.STREAMS[-1]}"
    assert ours["choice"].endswith(f" {100 * ENOUGH:.0f} % of the most")


@pytest.mark.parametrize(
    ("row", "case"), [("chosen on the idle wire", "idle"), ("chosen beside eight flows", "8 flows")]
)
def test_choices_of_scans_are_those_of_all_runs(study, ours, row, case):
    runs = study.Kept().of("scan")[case]
    parts = [round(100 * run["chosen part"]) for run in runs]
    streams = sorted({int(run["chosen streams"]) for run in runs})
    windows = sorted({run["chosen window"] for run in runs})
    named = " or ".join(f"{size / 1000:.0f} kB" if size else "`auto`" for size in windows)
    plural = "" if streams == [1] else "s"
    expected = f"{named}, {' or '.join(map(str, streams))} stream{plural}"
    assert ours[row] == f"{expected}: {min(parts)} to {max(parts)} % of the most"


def test_pairs_explain_tcp_as_in_all_runs(study, ours):
    runs = next(iter(study.Kept().of("calibration").values()))
    assert ours["paths"].startswith(f"{len(study.PATHS)} wires")
    assert ours["pairs of each"].startswith(f"`{' '.join(map(str, study.QUICK))}`")
    assert ours["line"].endswith(f" {between([run['slope'] for run in runs])}")
    assert ours["R² of the line"] == between([run["R2"] for run in runs])
    assert ours["R², the square of the correlation"] == between([*map(correlation_squared, runs)])


def correlation_squared(run):
    """The paper's R², of the paths that have both."""
    by_pairs, by_tcp = (
        {name.removeprefix(tool) for name in run if name.startswith(tool)}
        for tool in ("pairs", "tcp")
    )
    paths = sorted(by_pairs & by_tcp)
    both = [[run[f"{tool}{path}"] for path in paths] for tool in ("pairs", "tcp")]
    return float(np.corrcoef(both)[0, 1] ** 2)
