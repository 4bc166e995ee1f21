"""The study's rows as this repository keeps them: from them alone all its tables come out again."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from instances.made_sweeps import EXPERIMENTS, cells_in
from scipy import stats

from datacollect.study.report.across import across_table
from datacollect.study.report.cells import cells_of
from datacollect.study.report.folders import read_sweeps
from datacollect.study.report.own import own_results
from datacollect.study.report.tables import prediction_table, summary_table
from paper import judge
from paper.runs import paper_runs

# As `make study` asks for them (experiments/study.py).
OVER = {"probes": "5 MB", "error": "0 %"}
TABLES = {
    "summary": summary_table,
    "across": across_table,
    "prediction": prediction_table,
    "own": lambda sweep: own_results(sweep, OVER).table,
}
PUBLISHED = EXPERIMENTS / "results" / "study" / "rows"
FOLDERS = sorted(PUBLISHED.glob("*/results.parquet")) if PUBLISHED.is_dir() else []


def published_differences(file, published_tables):
    """Yield each table of a published sweep that its published rows do not give again."""
    (sweep,) = read_sweeps(file.parent)
    for name, make in TABLES.items():
        published = f"{file.parent.name}_{name}.csv"
        made = make(sweep)
        cells = cells_of(made, published)
        rows = [dict(zip(cells.columns, row, strict=True)) for row in cells.rows]
        text = published_tables.text_of(PUBLISHED.parent, published) or ""
        if rows != list(csv.DictReader(io.StringIO(text))):
            yield published


@pytest.mark.slow
def test_what_is_published_comes_out_of_published_rows(monkeypatch):
    """docs/simulation_engines.md shows what experiments/results/base_study.csv has; the
    study's tables what experiments/results/study/rows has, as far as its sweeps have been run.
    """
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import base_study
    import published_tables
    import shown_tables

    made = base_study.tables(base_study.read(base_study.RESULTS))
    assert made == {name: shown_tables.shown(name) for name in made}
    differ = [name for file in FOLDERS for name in published_differences(file, published_tables)]
    assert differ == []


@pytest.mark.slow
def test_all_verdicts_come_out_of_published_rows_and_nothing_else_is_published():
    """What claims.csv and readings.csv say, and which sweeps there are, from the rows alone."""
    sweeps = read_sweeps(PUBLISHED)
    found = judge(sweeps)
    for name, table in (
        ("claims.csv", found.claims),
        ("readings.csv", found.tables["readings"]),
    ):
        cells = cells_of(table, name)
        rows = [dict(zip(cells.columns, row, strict=True)) for row in cells.rows]
        assert rows == cells_in(PUBLISHED.parent / name)
    published = {row["sweep"] for row in cells_in(PUBLISHED.parent / "sweeps.csv")}
    assert published == {sweep.name for sweep in sweeps}


@pytest.mark.parametrize(("claim", "ratio"), [("C1", "1:1"), ("C2", "2:1")])
@pytest.mark.parametrize("method", ["direct", "best-path"])
def test_a_sample_of_published_ratios_from_first_principles(claim, ratio, method):
    """Geometric means of paired makespans, by numpy and scipy alone, from the rows' file alone.

    Intervals are Student's of the logarithms, or the bootstrap's where that reaches further.
    """
    rows = pd.read_parquet(PUBLISHED / "figure3_paper" / "results.parquet")
    seconds = rows[rows["ratio"] == ratio].pivot_table(
        index="seed", columns="method", values="makespan_s"
    )
    logarithms = np.log(seconds[method] / seconds["coordinated"])
    half_width = stats.t.ppf(0.975, len(logarithms) - 1) * stats.sem(logarithms)
    (row,) = (
        row
        for row in cells_in(PUBLISHED.parent / "claims.csv")
        if (row["claim"], row["part"]) == (claim, method)
        and row["method"] == "the paper's: slots of 10 s at planned times"
        and row["where"] == "ns-3, scale 0.1, probes of 5 MB, mean"
    )
    assert int(row["seeds"]) == len(logarithms) >= 10
    assert float(row["value"]) == pytest.approx(np.exp(logarithms.mean()), rel=1e-5)
    assert float(row["low"]) <= np.exp(logarithms.mean() - half_width) * (1 + 1e-5)
    assert float(row["high"]) >= np.exp(logarithms.mean() + half_width) * (1 - 1e-5)


# Which method's runs over which other's, and what of them, by claim and part.
RATIOS = {
    "C3": ("direct", "best-path"),
    "C4": ("direct", "best-path"),
    "C6": ("coordinated", "coordinated"),
    "C7": ("best-path", "best-path"),
    "C9": ("coordinated", "direct"),
    "C14": ("best-path", "coordinated"),
    "C15": ("best-path", "direct"),
    "C16": ("best-path", "best-path"),
}
COLUMN = {"C8": "storage_bytes", "C9": "tcp_during_bytes_per_s"}
SHOWN = re.compile(r"(?:furthest from 1|largest|speaks most for it) at (.+?); means")


def ratio_of(row):
    """Both methods of a published claim."""
    claim, part = row["claim"], row["part"].partition(", ")[0]
    if claim in ("C1", "C2", "C5"):
        return part, "coordinated"
    if claim == "C8":
        return part, "direct"
    if claim == "C13":
        return f"direct, {part}", "direct"
    return ("best-path", "coordinated") if part == "over coordinated" else RATIOS[claim]


def setting_of(row):
    """Split, flows, share of UDP and both errors where the published interval was found."""
    shared, _, names = row["setting"].partition(": ")
    shown = SHOWN.search(row["why"])
    text = f"{shared}, {shown[1] if shown else names}, {row['part']}"
    error = re.search(r"([+-]\d+) %", text)
    error = float(error[1]) / 100 if error else 0.0
    return (
        re.search(r"\d+:\d+", text)[0],
        int(re.search(r"(\d+) flows", text)[1]),
        float(re.search(r"(\d+) % UDP", text)[1]) / 100,
        error,
        0.0 if "one-sided" in row["part"] else 0.0 - error,
    )


def values_of(runs, way, setting, column):
    """One method's values by seed; direct knows no estimates, so none are wrong."""
    split, flows, udp, error, other = setting
    if way.startswith("direct"):
        error = other = 0.0
    found = runs[
        (runs["way"] == way)
        & (runs["split"] == split)
        & (runs["flows"] == flows)
        & (runs["udp"] == udp)
        & (runs["error"] == error)
        & (runs["other_error"] == other)
    ]
    return found.drop_duplicates("seed").set_index("seed")[column].dropna()


@pytest.mark.slow
def test_seeds_of_every_claim_are_those_that_made_its_interval():
    """Pairs are counted here, and their mean is the published one: no others made it."""
    worlds = {
        (runs.words, runs.world.method): runs.table for runs in paper_runs(read_sweeps(PUBLISHED))
    }
    counted = 0
    for row in cells_in(PUBLISHED.parent / "claims.csv"):
        if row["claim"] == "C12":
            continue
        runs = worlds[row["where"], row["method"]]
        if row["claim"] == "C11":
            assert int(row["seeds"]) == (runs["way"] == "coordinated").sum()
            continue
        if row["claim"] == "C10":
            means = runs.groupby(["way", "split", "flows", "udp", "error", "other_error"])
            seconds = means["makespan_s"]
            n = seconds.count()
            widest = (stats.t.ppf(0.975, n - 1) * seconds.sem() / seconds.mean()).idxmax()
            assert int(row["seeds"]) == n[widest]
            continue
        above_way, below_way = ratio_of(row)
        column, setting = COLUMN.get(row["claim"], "makespan_s"), setting_of(row)
        right = (*setting[:3], 0.0, 0.0)
        above = values_of(runs, above_way, setting, column)
        below = values_of(runs, below_way, right if above_way == below_way else setting, column)
        pairs = pd.concat([above, below], axis=1, join="inner", keys=["above", "below"])
        mean = np.exp(np.log(pairs["above"] / pairs["below"]).mean())
        if row["claim"] == "C8":
            mean = pairs["above"].mean() / pairs["below"].mean()
        assert float(row["value"]) == pytest.approx(mean, rel=1e-5), row
        assert int(row["seeds"]) == len(pairs), row
        counted += 1
    assert counted > 100
