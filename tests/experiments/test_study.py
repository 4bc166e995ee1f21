"""`make study` repeats what is published: the same sweeps, in the same worlds."""

from __future__ import annotations

import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PUBLISHED = REPOSITORY / "experiments" / "results" / "study" / "sweeps.csv"


@pytest.fixture
def study(scripts, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    return scripts("study")


def options_of(words):
    """Options with all that was said of each."""
    found = {}
    for name, value in pairwise(words):
        if name.startswith("-"):
            found.setdefault(name, set()).add(value)
    return found


def published_commands():
    table = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    table = table[table["fact"] == "to add or tighten"]
    return dict(zip(table["sweep"], table["value"], strict=True))


@pytest.mark.parametrize(("name", "command"), published_commands().items())
def test_each_published_sweep_is_repeated_in_its_world(study, name, command):
    """Some settings may not have been published yet; files, sizes and probes are the same."""
    (sweep,) = (sweep for sweep in study.SWEEPS if sweep.name == name)
    made = sweep.command(Path("results"), 0.1, 3, Path("DATA"))
    words = shlex.split(command)[1:]
    assert made[:4] == words[:4]
    made, words = options_of(made), options_of(words)
    if not sweep.as_is:
        assert made["--scale"] == words["--scale"]
    assert made.get("--only", set()) <= words.get("--only", set())
    if "--probe-scale" in words:
        assert made.get("--probe-scale", {"1"}) == words["--probe-scale"]


def test_what_needs_data_is_left_out_without(study):
    left_out = [s.name for s in study.SWEEPS if not s.command(Path("results"), 0.1, None, None)]
    assert left_out == ["topologies", "drift"]


def test_sweeps_take_from_each_other_and_the_report_compares_what_they_ask(study, tmp_path):
    sweeps = {sweep.name: sweep for sweep in study.SWEEPS}
    for name in ("figure3", "probes"):
        (tmp_path / name).mkdir()
    assert study.reused(tmp_path, sweeps["figure3"]) == ["--reuse", str(tmp_path / "probes")]
    options = ["--verdicts", "experiments/paper", "--over", "probes=5 MB"]
    assert study.report(tmp_path, tmp_path / "report")[5:] == options
    assert {name for names in study.OVER.values() for name in names} < sweeps.keys()


@pytest.mark.slow
def test_it_runs_goes_on_and_reports(tmp_path):
    """The cheapest of its sweeps, for real."""
    command = [sys.executable, "experiments/study.py", "halves_fluid", "-o", str(tmp_path / "o")]
    command += ["--report", str(tmp_path / "report")]
    for already in ("0 runs done", "kept from before"):
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        assert already in done.stdout + done.stderr
    assert (tmp_path / "report" / "index.html").is_file()


def test_a_sweep_that_is_not_known_is_refused(study, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["study.py", "figure7"])
    with pytest.raises(SystemExit):
        study.main()
    assert "no sweep is called 'figure7'; there are figure3, " in capsys.readouterr().err
