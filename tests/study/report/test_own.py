"""A sweep's own results: means and ratios derived by hand, in the terminal and as JSON."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest
from instances.made_sweeps import SMALL, cells_in, gains, write_sweep
from instances.small_experiments import METHOD, RATE, SCENARIO, TREE, experiment_of

import datacollect as dc
from datacollect.commands.main import run
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.own import own_results

pytestmark = pytest.mark.usefixtures("empty_pictures")

FIXED = {**SCENARIO, "backlog": {"least_bytes": 4_000_000, "most_bytes": 4_000_000}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Direct takes 200 s, coordinated 100 s, times 1.01, 1.02, 1.03 by seed; no other noise."""
    folder = tmp_path_factory.mktemp("made")
    write_sweep(folder, "figure3", gains, only=SMALL, seeds=3, noise=0.0)
    return folder


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    """Three seeds in which nothing is random, at two rates by two methods."""
    folder = tmp_path_factory.mktemp("fixed") / "swept"
    dc.sweep(experiment_of(scenario=FIXED), folder, workers=0)
    return folder


def rows_of(folder, **options):
    table = own_results(*read_sweeps(folder), **options).table
    return {(row["method"], row["ratio"], row["flows"]): row for row in table.to_dict("records")}


def test_means_and_ratios_are_those_of_the_runs(made):
    rows = rows_of(made)
    direct, coordinated = rows["direct", "1:1", "0"], rows["coordinated", "1:1", "0"]
    assert direct["makespan_s"] == pytest.approx(204)
    # Three values 2 apart: s = 2, Student's t of 2 degrees of freedom 4.303.
    assert direct["makespan_s_high"] == pytest.approx(204 + 4.303 * 2 / math.sqrt(3), rel=1e-4)
    assert coordinated["base"] == "direct"
    ratio = [coordinated[f"over_base{end}"] for end in ("", "_low", "_high")]
    assert ratio == pytest.approx([0.5, 0.5, 0.5])
    assert direct["over_base"] == 1
    assert (direct["seeds"], direct["connections"]) == (3, 7)


def test_another_base_can_be_chosen(made):
    rows = rows_of(made, over={"method": "coordinated"})
    assert rows["direct", "2:1", "60"]["over_base"] == pytest.approx(2)
    assert rows["coordinated", "2:1", "60"]["over_base"] == 1


def test_without_direct_the_first_of_the_file_is_the_base(tmp_path):
    def slower(labels):
        return {"makespan_s": 150.0 if labels["method"] == "best-path" else 100.0}

    only = {**SMALL, "method": ["best-path", "coordinated"]}
    write_sweep(tmp_path, "figure3", slower, only=only, seeds=2, noise=0.0)
    row = rows_of(tmp_path)["coordinated", "1:1", "0"]
    assert row["base"] == "best-path"
    assert row["over_base"] == pytest.approx(2 / 3)


def test_runs_that_did_not_end_are_counted_apart(tmp_path):
    def half(labels):
        ended = labels["method"] != "direct"
        return {"makespan_s": 100.0 if ended else math.nan, "complete": ended}

    write_sweep(tmp_path, "figure3", half, only=SMALL, seeds=2, noise=0.0)
    row = rows_of(tmp_path)["direct", "1:1", "0"]
    assert (row["seeds"], row["incomplete"]) == (0, 2)
    assert math.isnan(row["makespan_s"])


@pytest.mark.slow
def test_a_ratio_tells_of_how_many_pairs_it_is(tmp_path, capsys, monkeypatch):
    """Direct did not end for one of three seeds: of coordinated three count, beside two pairs."""
    write_sweep(tmp_path, "figure3", gains, only=SMALL, seeds=3, noise=0.0)
    file = tmp_path / "results.parquet"
    table = pd.read_parquet(file)
    lost = (table["method"] == "direct") & (table["seed"] == 1)
    table.loc[lost, "makespan_s"], table.loc[lost, "complete"] = math.nan, False
    table.to_parquet(file, index=False)
    rows = rows_of(tmp_path)
    coordinated, direct = rows["coordinated", "1:1", "0"], rows["direct", "1:1", "0"]
    assert (coordinated["seeds"], coordinated["pairs"]) == (3, 2)
    assert (direct["seeds"], direct["pairs"]) == (2, 2)
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["report", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "0.5 (2 pairs)" in printed
    assert "1 (2 pairs)" not in printed


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("method=direkt", "has no label 'direkt'; did you mean 'direct'"),
        ("rate=500000", "the axis 'rate' is not paired: its values meet other networks"),
        ("speed=1", "no axis is called 'speed'; of the paired axes there are method"),
        ("direct", "must be AXIS=LABEL, got 'direct'"),
    ],
)
def test_bases_that_there_are_not(fixed, tmp_path, capsys, over, message):
    assert run(["report", str(fixed), "-o", str(tmp_path / "out"), "--over", over]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# What people and programs see ---------------------------------------------------------------


def test_the_terminal_has_them_first_and_no_claim_that_was_not_run(fixed, capsys, monkeypatch):
    """4 MB at 0.5 and 1 MB/s take 8 and 4 s."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["report", str(fixed)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "sweep  small: 12 runs, fluid engine"
    assert "Nothing is random here: 3 seeds are the same. One is enough: --seeds 1." in lines
    (head,) = (i for i, line in enumerate(lines) if line.startswith("rate, bytes/s"))
    assert [line.split() for line in lines[head : head + 5]] == [
        ["rate,", "bytes/s", "method", "seeds", "makespan,", "s", "over", "direct"],
        ["500000", "direct", "3", "8", "1"],
        ["500000", "coordinated", "3", "8", "1"],
        ["1e+06", "direct", "3", "4", "1"],
        ["1e+06", "coordinated", "3", "4", "1"],
    ]
    assert "claim" not in "\n".join(lines)
    assert max(map(len, lines[: head + 5])) <= 80


def test_a_report_without_claims_takes_away_those_of_before(fixed, tmp_path):
    (tmp_path / "claims.csv").write_text("claim\nC1\n")
    found = dc.report(fixed, tmp_path)
    assert found.claims.empty
    assert "claims.csv" not in found.files
    assert not (tmp_path / "claims.csv").exists()
    assert list(found.claims.columns)[:2] == ["claim", "part"]


@pytest.mark.slow
def test_processor_times_are_the_same_wherever_they_stand(fixed, tmp_path, capsys):
    """The sweep, its report, its tables: runs, and a measurement for each setting and seed."""
    experiment = tmp_path / "small.json"
    (tmp_path / "line.json").write_text(json.dumps(SCENARIO))
    experiment.write_text(json.dumps({**TREE, "scenario": "line.json"}))
    out = str(tmp_path / "out")
    assert run(["sweep", str(experiment), "-o", out, "--workers", "0", "--json"]) == 0
    swept = json.loads(capsys.readouterr().out)
    assert run(["report", out, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    (told,) = tree["sweeps"]
    runs = cells_in(tmp_path / "out" / "report" / "small_runs.csv")
    measured = {(row["rate"], row["seed"]): float(row["probes_cpu_s"]) for row in runs}
    expected = {
        "runs_cpu_s": sum(float(row["cpu_s"]) for row in runs),
        "measurements_cpu_s": sum(measured.values()),
    }
    expected["cpu_s"] = sum(expected.values())
    for name, seconds in expected.items():
        assert swept[name] == told[name] == pytest.approx(seconds, rel=1e-4), name
    assert run(["report", out]) == 0
    time = next(s for s in capsys.readouterr().out.splitlines() if s.startswith("time "))
    facts = cells_in(tmp_path / "out" / "report" / "sweeps.csv")
    (fact,) = (row["value"] for row in facts if row["fact"] == "processor time")
    assert fact in time
    assert [row["seeds"] for row in tree["results"]] == [3] * 4


@pytest.mark.slow
def test_more_values_say_what_was_kept(tmp_path, capsys):
    (tmp_path / "line.json").write_text(json.dumps(SCENARIO))
    experiment, out = tmp_path / "small.json", str(tmp_path / "out")
    for rates in ([5e5], [5e5, 1e6]):
        axes = [METHOD, {**RATE, "values": rates}]
        experiment.write_text(json.dumps({**TREE, "axes": axes, "scenario": "line.json"}))
        assert run(["sweep", str(experiment), "-o", out, "--workers", "0"]) == 0
        found = capsys.readouterr()
    assert " ".join(found.out.split()).startswith(f"runs 12 in {out}: 6 kept, 6 new")
    assert "6 of 12 runs done, 6 kept from before" in found.err
