"""Folders of sweeps whose numbers are made up: makespans of a known truth, with known noise."""

from __future__ import annotations

import csv
import json
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from datacollect.study.experiment import Experiment
from datacollect.study.folded import write_documents
from datacollect.study.rows import RUN_FORMAT, table_of

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"

# A part of Figure 3: two numbers of flows, two ratios.
SMALL = {"flows": ["0", "60"], "ratio": ["1:1", "2:1"], "udp": ["5 %"]}

# Labels of the axes where an experiment does not vary them.
USUAL = {"udp": "5 %", "error": "0 %", "flows": "60", "ratio": "1:1"}


def write_sweep(
    folder,
    name="figure3",
    truth=lambda _: {},
    *,
    seeds=6,
    noise=0.01,
    only=None,
    scale=0.1,
    engine="ns3",
    numpy="2",
    documents=False,
):
    """Write a sweep of a shipped experiment; return its table.

    `truth` gives columns of the results by the labels of a run. Makespans also have a factor that
    all runs of a seed share, and one of their own, log-normal with spread `noise`.
    """
    experiment = shipped(name).with_scale(scale).only(only or {})
    tree = {**experiment.to_dict(), "engine": engine, "versions": {"numpy": numpy}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.json").write_text(json.dumps({**tree, "sha256": experiment.sha256}))
    rows = [
        row_of(experiment.labels(setting, treatment), seed, truth, noise, engine, scale, numpy)
        for setting in experiment.settings()
        for treatment in experiment.treatments()
        for seed in range(1, seeds + 1)
    ]
    table = table_of(rows, [axis.name for axis in experiment.axes])
    table.to_parquet(folder / "results.parquet", index=False)
    if documents:
        kept = [(f"runs/{row['key']}.json", json.dumps(document_of(row))) for row in rows]
        write_documents(folder / "documents.parquet", kept)
    return table


@cache
def shipped(name):
    """Return a shipped experiment."""
    return Experiment.from_file(EXPERIMENTS / f"{name}.toml")


def gains(labels):
    """A truth: direct takes twice coordinated's time, 40 connections make up for half of that."""
    method = labels["method"].removesuffix(", ours")
    return {
        "makespan_s": {"direct": 200.0, "direct-as-many": 100.0}.get(method, 100.0),
        "connections": 40 if method in ("coordinated", "direct-as-many") else 7,
        "storage_mean": 1.5 if method == "best-path" else 1.0,
    }


def row_of(labels, seed, truth, noise, engine="ns3", scale=0.1, numpy="2"):
    """Return a row of the results."""
    key = sha256(repr((labels, seed, engine, scale, numpy)).encode()).hexdigest()
    own = np.random.default_rng(int(key[:8], 16)).lognormal(0, noise)
    found = {"makespan_s": 100.0, "connections": 7} | truth({**USUAL, **labels})
    makespan_s = found.pop("makespan_s") * (1 + seed / 100) * own
    rates = {f"{k}_{p}_bytes_per_s": 1e6 for k in ("tcp", "udp") for p in PHASES}
    return (
        {
            **labels,
            "key": key,
            "seed": seed,
            "engine": engine,
            "method": labels.get("method", "coordinated"),
            "complete": True,
            "makespan_s": makespan_s,
            "predicted_s": makespan_s / 2,
            "lower_bound_s": makespan_s / 4,
            "collected_bytes": 35_000_000,
            "storage_mean": 1.0,
            "storage_max": 1.0,
            "peering_bytes": '{"B0 -> A0": 17500000, "B1 -> A1": 17500000}',
            "planned_peering_bytes": '{"B0 -> A0": 17500000, "B1 -> A1": 17500000}',
            **rates,
            "dropped_packets": 10.0,
            "retransmissions": 1.0,
            "stalls": 0.0,
            "busiest_wire": "B0 -> A0",
            "events": 1000,
            "plan_time_s": 0.5,
            "cpu_s": 5.0,
            "probes_cpu_s": 40.0,
            "finished_at": "2026-01-01T00:00:00+00:00",
        }
        | {"storage_bytes": 5e6 * found.get("storage_mean", 1.0)}
        | found
    )


PHASES = ("before", "during", "after")


def document_of(row):
    """Return what is kept of a run: S2 sends through S1, which stores 5 MB for a while."""
    transfers = {
        "route": [0, 0, 1, 1],
        "hop": [0, 0, 0, 1],
        "n_bytes": [5_000_000, 5_000_000, 5_000_000, 5_000_000],
        "start_s": [0.0, 10.0, 0.0, 10.0],
        "finish_s": [10.0, 20.0, 10.0, 20.0],
        "streams": [1, 1, 1, 1],
    }
    return {
        "format": RUN_FORMAT,
        "row": row,
        "scenario": {},
        "settings": {},
        "schedule": {
            "method": row["method"],
            "routes": [["S1", ["S1", "D"]], ["S2", ["S2", "S1", "D"]]],
            "transfers": transfers,
            "bottleneck": "</script> binds",
        },
        "storage": {"S1": {"time_s": [0.0, 10.0, 20.0], "others_bytes": [0.0, 5e6, 0.0]}},
    }


def cells_in(file):
    """Return the rows of a CSV, each by column."""
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))
