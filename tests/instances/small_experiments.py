"""Experiments that run in a second: S at one end of a line, D at the other."""

from __future__ import annotations

import datacollect as dc
from datacollect.study.columns import TIMES
from datacollect.study.kept_runs import ROW, ROWS, parts_of
from datacollect.study.parts import records_of
from datacollect.study.store import RunStore

SCENARIO = {
    "name": "line",
    "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6, "delay_s": 0.0},
    "hosts": {
        "access": {"rate_bytes_per_s": 1e8, "delay_s": 0.0},
        "destination": {"at": "N1"},
        "sources": [{"name": "S", "at": "N0"}],
    },
    "backlog": {"least_bytes": 1_000_000, "most_bytes": 9_000_000},
    "transport": {"header_bytes": 0},
    "run": {"warm_up_s": 0.0},
}
METHOD = {
    "name": "method",
    "key": "method.name",
    "paired": True,
    "values": ["direct", "coordinated"],
}
RATE = {"name": "rate", "key": "topology.rate_bytes_per_s", "values": [500_000.0, 1_000_000.0]}
TREE = {
    "name": "small",
    "engine": "fluid",
    "seeds": {"batch": 3, "least": 3, "most": 3},
    "axes": [METHOD, RATE],
}


def experiment_of(tree=TREE, scenario=SCENARIO, **changes):
    return dc.Experiment.from_dict({**tree, **changes}, scenario=scenario)


def many_seeds():
    """2 methods x 2 rates x 16 seeds: 16 small jobs, of which few are under way at a time."""
    return experiment_of(seeds={"least": 16})


def without_times(table):
    return table.drop(columns=list(TIMES))


def rows_in_parts(folder):
    """How many rows stand in the parts of a sweep that has not ended."""
    records = [record for part in parts_of(folder, ROWS) for _, record in records_of(part)]
    return sum(record.name == ROW for record in records if record is not None)


def failures_of(folder, axes=("method",)):
    """Why runs failed, as a folder says."""
    return RunStore(folder, "any", tuple(axes)).read().failures


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# Fluid runs of a job, and seconds between two calls of `progress`: by default a fast machine may be
# done with the whole of a small sweep before it is asked for the first time. Not shorter: where
# jobs take long, the sweep would do nothing but look at them.
SMALL_JOBS = 4, 0.05


def set_small_jobs(monkeypatch):
    """Let a small sweep be told of, and hurt, while most of its jobs are still to come."""
    n_runs, tell_s = SMALL_JOBS
    monkeypatch.setattr("datacollect.study.plan.FLUID_RUNS", n_runs)
    monkeypatch.setattr("datacollect.study.sweep.REPORT_S", tell_s)
