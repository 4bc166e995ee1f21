"""Variance of ns-3's means that the fluid engine takes away as a control variate.

    python experiments/control_variate.py experiments/precision.toml results/precision -o DIR

Carries the seeds of a sweep in ns-3 out in the fluid engine too and, for the control's own mean, as
many times more seeds as --more says. Plans of both are made on the bandwidths that the fluid engine
itself measures: to probe further seeds in ns-3 costs more than to run them there. Prints for each
setting and method the mean without and with the control, the part of the variance that it takes
away, and whether it is kept: where it takes a third and more.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.study.experiment import Experiment


def main() -> None:
    """Run what is missing in the fluid engine, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", type=Path)
    parser.add_argument("ns3", type=Path, help="folder of the sweep in ns-3")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder of the fluid sweep"
    )
    parser.add_argument("--more", type=int, default=20, help="further seeds for each seed")
    parser.add_argument("--publish", metavar="NAME", help="keep the table as one of the study's")
    options = parser.parse_args()
    runs, experiment = runs_of(options.ns3), twin_of(options.experiment, options.ns3)
    seeds = int(runs["seed"].max())
    control = fluid(experiment, options.output, seeds * (1 + options.more))
    axes = [axis.name for axis in experiment.axes]
    same, further = control[control["seed"] <= seeds], control[control["seed"] > seeds]
    means = found(runs, same, further, axes)
    print(table(means))
    if options.publish is not None:
        import published_tables

        published_tables.keep(
            published_tables.RESULTS, f"{options.publish}_control.csv", means.to_csv(index=False)
        )


def runs_of(folder: Path) -> pd.DataFrame:
    """Return the complete runs of a sweep."""
    from datacollect.study.report.folders import read_sweeps

    (sweep,) = read_sweeps(folder)
    return sweep.table[sweep.table["complete"]]


def twin_of(file: Path, folder: Path) -> Experiment:
    """Return the experiment as it was run, scale and labels and all, for the fluid engine."""
    from datacollect.study.experiment import Experiment
    from datacollect.study.report.folders import read_sweeps

    (sweep,) = read_sweeps(folder)
    experiment = Experiment.from_file(file).with_scale(sweep.scale)
    probe_scale = sweep.tree["scenario"].get("probe_scale")
    if probe_scale is not None:
        experiment = experiment.with_probe_scale(probe_scale)
    run = {
        axis.name: [label for label in axis.labels if (sweep.table[axis.name] == label).any()]
        for axis in sweep.axes
    }
    return replace(experiment.only(run), engine="fluid", precision=None)


def fluid(experiment: Experiment, folder: Path, seeds: int) -> pd.DataFrame:
    """Return the runs of a number of seeds in the fluid engine; what is there is not run again."""
    from datacollect.study.sweep import sweep

    scenario = experiment.scenario.with_values({"estimates.kind": "exact"})
    return sweep(replace(experiment, scenario=scenario).with_seeds(seeds), folder, workers=1)


def found(
    runs: pd.DataFrame, control: pd.DataFrame, more: pd.DataFrame, axes: list[str]
) -> pd.DataFrame:
    """Return means without and with the control, a row for each setting and method."""
    import pandas as pd

    from paper.control_variate import FOLDS, controlled_mean

    by_labels = {labels: part.set_index("seed")["makespan_s"] for labels, part in
                 control.groupby(axes)}  # fmt: skip
    further = {labels: part["makespan_s"].dropna() for labels, part in more.groupby(axes)}
    rows = []
    for labels, part in runs.groupby(axes):
        ours = part.set_index("seed")["makespan_s"]
        same = by_labels[labels].reindex(ours.index).dropna()
        ours = ours.reindex(same.index)
        if len(ours) < 2 * FOLDS:
            continue
        means = controlled_mean(ours.tolist(), same.tolist(), further[labels].tolist())
        row = dict(zip(axes, map(str, labels), strict=True)) | {"runs": len(ours)}
        for name, one in (("plain", means.plain), ("controlled", means.controlled)):
            row[f"{name}_s"] = f"{one.mean:.4g} ± {(one.high - one.low) / 2:.2g}"
        rows.append(
            {**row, "cut": f"{100 * means.cut:.0f} %", "kept": "yes" if means.is_kept else "no"}
        )
    return pd.DataFrame(rows)


def table(means: pd.DataFrame) -> str:
    """Return means without and with the control, in Markdown."""
    names = {"plain_s": "mean, s", "controlled_s": "with control, s", "cut": "variance taken away"}
    lines = [[names.get(name, name) for name in means], ["---"] * means.shape[1]]
    lines += means.astype(str).to_numpy().tolist()
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    main()
