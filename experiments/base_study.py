"""The core paper's base scenario at a tenth of its size, by every method, in both engines.

    python experiments/base_study.py [--seeds 5] [--flows 0 20 60] [--ratios 1:1] [--figure]

Every seed draws the hosts' places, backlogs and background again. Bandwidths are measured once for
each setting, by probes in ns-3, and shared by all methods and both engines. "direct-as-many" is
direct with as many TCP connections in all as the coordinated plan opens, shared out in proportion
to data: it separates the gain of coordination from the gain of more connections.

Each run appends one row to results/base_study.csv; a second start runs what is missing. Storage
over time of the first seed with most flows goes to results/base_study_storage.csv. --figure draws
docs/figures/base_study.png from both and runs nothing; --table writes the tables of
docs/simulation_engines.md, docs/tables/base_study*.md.

Needs `pip install '.[ns3]'` in a clone; about 3 minutes of CPU time and 500 MB per seed.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import io
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pandas as pd
from shown_tables import show

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "base_study.csv"
FIGURE = HERE.parent / "docs" / "figures" / "base_study.png"
SCALE = 0.1
METHODS = {
    "direct": {"method.name": "direct"},
    "direct-as-many": {"method.name": "direct", "method.streams_as": "coordinated"},
    "best-path": {"method.name": "best-path"},
    "coordinated": {"method.name": "coordinated"},
}
KEY = ["seed", "flows", "ratio", "method", "engine"]
COLUMNS = [
    *KEY,
    "complete",
    "connections",
    "makespan_s",
    "predicted_s",
    # Most that a source host stores, its own data included, over what direct stores there (which
    # is its backlog): mean and largest of the sources.
    "storage_mean",
    "storage_max",
    "tcp_before_bytes_per_s",
    "tcp_during_bytes_per_s",
    "dropped_packets",
    "events",
    "cpu_s",
    # Of the setting's measurement; the same for all its methods.
    "probes_cpu_s",
]
STORAGE_COLUMNS = ["seed", "flows", "ratio", "method", "time_s", "others_bytes"]


def main() -> None:
    """Run what is missing, or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1 to this")
    parser.add_argument("--flows", type=int, nargs="+", default=[0, 20, 60])
    parser.add_argument("--ratios", nargs="+", default=["1:1", "2:1"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, help="folder of measurements")
    parser.add_argument("--figure", action="store_true", help="draw from the results; run nothing")
    parser.add_argument("--table", action="store_true", help="write tables; run nothing")
    options = parser.parse_args()
    if options.table:
        for name, text in tables(read(options.output)).items():
            show(name, text)
    if options.figure:
        draw(read(options.output), storage_file(options.output), FIGURE)
    if options.table or options.figure:
        return
    done = prepare(options.output)
    tasks = [
        (seed, flows, ratio)
        for seed in range(1, options.seeds + 1)
        for flows in options.flows
        for ratio in options.ratios
        if flows or ratio == options.ratios[0]  # no flows: nothing to split
    ]
    curves = (1, max(options.flows), options.ratios[0])
    # Each process has an ns-3 worker of its own; threads would share one.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        jobs = [
            pool.submit(run_setting, task, done, options.output, options.cache, task == curves)
            for task in tasks
        ]
        for job in as_completed(jobs):
            print(job.result(), flush=True)


# One setting ------------------------------------------------------------------------------------


def run_setting(task, done, output, cache, with_curves):
    """Run the methods and engines that are missing, and append a row for each."""
    from datacollect.scenario.carry_out import carry_out
    from datacollect.scenario.probe_cache import cache_folder
    from datacollect.scenario.scenario import Scenario

    seed, flows, ratio = task
    cache = cache or cache_folder()
    base = Scenario.from_file(HERE / "base.toml").with_values(
        {
            "scale": SCALE,
            "probe_scale": SCALE,
            "run.seed": seed,
            "background.flows": flows,
            "background.split": [int(part) for part in ratio.split(":")],
            # One measurement for all, so that both engines carry out the same plans.
            "estimates.engine": "ns3",
            "estimates.how": "ewma",
        }
    )
    n_runs = 0
    for engine in ("ns3", "fluid"):
        for method, values in METHODS.items():
            if (seed, flows, ratio, method, engine) in done:
                continue
            outcome = carry_out(base.with_values(values), engine=engine, cache_dir=cache)
            row = dict(zip(KEY, (seed, flows, ratio, method, engine), strict=True))
            append(output, [row | measured(outcome)], COLUMNS)
            if with_curves and engine == "ns3":
                rows = storage_curve(outcome)
                place = dict(zip(KEY, (seed, flows, ratio, method), strict=False))
                append(storage_file(output), [place | r for r in rows], STORAGE_COLUMNS)
            n_runs += 1
    return f"seed {seed}, {flows} flows, {ratio}: {n_runs} runs"


def measured(outcome):
    """Return what a run's row says."""
    from datacollect.scenario.outcome_files import background_by_kind

    run, backlog = outcome.run, outcome.setting.backlog_bytes
    stored = run.storage.assign(bytes=run.storage["own_bytes"] + run.storage["others_bytes"])
    peak = stored.groupby("host")["bytes"].max()
    over = [peak[host] / n_bytes for host, n_bytes in backlog.items() if n_bytes]
    tcp = background_by_kind(run).get("tcp", {})
    drops = run.wires["dropped_packets"]
    return {
        "complete": int(run.complete),
        "connections": outcome.connections,
        "makespan_s": round(run.makespan_s, 3),
        "predicted_s": round(outcome.schedule.makespan_s, 3),
        "storage_mean": round(float(np.mean(over)), 4),
        "storage_max": round(float(np.max(over)), 4),
        "tcp_before_bytes_per_s": round(tcp.get("before", 0.0)),
        "tcp_during_bytes_per_s": round(tcp.get("during", 0.0)),
        "dropped_packets": "" if drops.isna().any() else int(drops.sum()),
        "events": run.events,
        "cpu_s": round(run.cpu_s, 3),
        "probes_cpu_s": round(outcome.measurement.cost["cpu_s"], 1),
    }


def storage_curve(outcome, n_points=120):
    """Return what all hosts but the destination store of others' data, over time."""
    run = outcome.run
    at = np.linspace(0.0, run.makespan_s, n_points)
    total = np.zeros(n_points)
    for host, rows in run.storage.groupby("host"):
        if host != outcome.setting.destination:
            total += np.interp(at, rows["time_s"], rows["others_bytes"], left=0.0)
    return [
        {"time_s": round(float(t), 2), "others_bytes": round(float(n))}
        for t, n in zip(at, total, strict=True)
    ]


# The files --------------------------------------------------------------------------------------


def storage_file(output):
    """Return the file of storage curves beside the results."""
    return output.with_name(f"{output.stem}_storage.csv")


def prepare(output):
    """Make the files if need be; return the runs that are there. A row cut short is dropped."""
    output.parent.mkdir(parents=True, exist_ok=True)
    for file, columns in ((output, COLUMNS), (storage_file(output), STORAGE_COLUMNS)):
        if not file.exists():
            file.write_text(f"{heading()}{','.join(columns)}\n", encoding="utf-8")
        text = file.read_text(encoding="utf-8")
        if not text.endswith("\n"):
            file.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    return set(read(output)[KEY].itertuples(index=False, name=None))


def heading():
    """Return comment lines: how and with what the results were made."""
    versions = [f"python {sys.version.split()[0]}"]
    for package in ("ns3", "numpy", "ortools"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    command = "python experiments/base_study.py"
    date = dt.datetime.now(dt.UTC).date().isoformat()
    return f"# {command}; begun {date}\n# {', '.join(versions)}; {os.cpu_count()} cores\n"


def append(file, rows, columns):
    """Append rows with one write, which other processes' writes do not come between."""
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(rows)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, text.getvalue().encode())
    finally:
        os.close(descriptor)


def read(file):
    """Return the results as a table, sorted."""
    table = pd.read_csv(file, comment="#", dtype={"ratio": str})
    return table.sort_values(KEY if "engine" in table else list(table), ignore_index=True)


# Tables and figure ------------------------------------------------------------------------------


def half_width(values):
    """Return half the width of the 95 % confidence interval of the mean; NaN for one value."""
    from datacollect.numbers.intervals import mean_interval

    interval = mean_interval(values)
    return (interval.high - interval.low) / 2


def whole_seeds(table):
    """Keep the seeds of each setting that every method and engine has finished."""
    setting = ["seed", "flows", "ratio"]
    size = table.groupby(setting)["method"].transform("size")
    return table[size == 2 * len(METHODS)]


def tables(table):
    """Return the tables of docs/simulation_engines.md, by the names of their files."""
    table = whole_seeds(table)
    index = ["flows", "ratio", "seed"]
    measured_rows, engine_rows = [], []
    for (flows, ratio), part in table.groupby(["flows", "ratio"]):
        where = (
            f"{flows}, {ratio} (n = {part['seed'].nunique()})"
            if flows
            else (f"0 (n = {part['seed'].nunique()})")
        )
        runs = {key: rows.set_index(index) for key, rows in part.groupby(["engine", "method"])}
        coordinated, direct = runs["ns3", "coordinated"], runs["ns3", "direct"]
        for method in METHODS:
            ns3, fluid = runs["ns3", method], runs["fluid", method]
            tcp = ns3["tcp_during_bytes_per_s"]
            cells = [
                where,
                method,
                f"{ns3['connections'].mean():.0f}",
                spread(ns3["makespan_s"], 0),
                spread(ns3["makespan_s"] / coordinated["makespan_s"], 2),
                f"{ns3['storage_mean'].mean():.2f}",
                f"{ns3['storage_max'].max():.1f}",
                spread(tcp / ns3["tcp_before_bytes_per_s"], 2) if flows else "",
                spread(tcp / direct["tcp_during_bytes_per_s"], 2) if flows else "",
            ]
            measured_rows.append(cells)
            # The prediction for direct knows of one connection per source only.
            known = method != "direct-as-many"
            engine_rows.append(
                [
                    where,
                    method,
                    f"{ns3['makespan_s'].mean():.0f}",
                    f"{fluid['makespan_s'].mean():.0f}",
                    spread(fluid["makespan_s"] / ns3["makespan_s"], 2),
                    f"{ns3['predicted_s'].mean():.0f}" if known else "",
                    spread(ns3["predicted_s"] / ns3["makespan_s"], 2) if known else "",
                ]
            )
    return {
        "base_study": markdown(
            "flows|method|connections|makespan, s|over coordinated's|storage, mean"
            "|storage, largest|background TCP, of before|of direct's",
            measured_rows,
        ),
        "base_study_engines": markdown(
            "flows|method|ns-3, s|fluid, s|fluid over ns-3|predicted, s|predicted over ns-3",
            engine_rows,
        ),
    }


def markdown(head, rows):
    """Return a table; what a setting's first row says is left out below it."""
    columns = head.split("|")
    lines = [columns, ["---"] * 2 + ["--:"] * (len(columns) - 2)]
    last = None
    for first, *others in rows:
        lines.append(["" if first == last else first, *others])
        last = first
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def spread(values, digits):
    """Return mean ± half-width; the mean alone where there is one seed."""
    if len(values) < 2:
        return f"{values.mean():.{digits}f}"
    return f"{values.mean():.{digits}f} ± {half_width(values):.{digits}f}"


def draw(table, storage, target):
    """Draw makespans with confidence intervals, and storage over time of one run."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    table = whole_seeds(table)
    table = table[table["ratio"] == "1:1"]
    colours = dict(zip(METHODS, ("#888888", "#444444", "#e69f00", "#0072b2"), strict=True))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    flows = sorted(table["flows"].unique())
    for i, (method, colour) in enumerate(colours.items()):
        for engine, marker in (("ns3", None), ("fluid", "x")):
            rows = table[(table["method"] == method) & (table["engine"] == engine)]
            found = [rows[rows["flows"] == n]["makespan_s"] for n in flows]
            x = np.arange(len(flows)) + (i - 1.5) * 0.2
            mean = [values.mean() for values in found]
            if marker:
                left.plot(x, mean, marker, color="black", ms=5, ls="", zorder=3)
            else:
                left.bar(x, mean, 0.18, color=colour, label=method)
                error = [half_width(values) for values in found]
                left.errorbar(x, mean, error, fmt="none", ecolor="black", capsize=3, lw=1)
    left.plot([], [], "x", color="black", ls="", label="fluid engine")
    left.set_xticks(range(len(flows)), [str(n) for n in flows])
    left.set(xlabel="background flows", ylabel="makespan, seconds", ylim=(0, None))
    left.legend(frameon=False, fontsize=8, loc="upper left")
    curves = pd.read_csv(storage, comment="#", dtype={"ratio": str})
    curves = curves[(curves["ratio"] == "1:1") & (curves["flows"] == curves["flows"].max())]
    for method in ("best-path", "coordinated"):
        rows = curves[curves["method"] == method]
        stored = rows["others_bytes"] / 1e6
        right.plot(rows["time_s"], stored, color=colours[method], label=method)
    right.set(xlabel="time, seconds", ylabel="others' data at all relays, MB")
    right.set_ylim(0, None)
    right.set_xlim(0, None)
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
