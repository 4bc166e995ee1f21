"""The numbers of a report: means with intervals, ratios of paired runs, what plans promised.

Each row stands for all seeds of one combination of labels. Every table has a column of connection
counts, and a ratio to direct with as many connections where there are such runs: what more
connections gain is not what coordination gains.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from datacollect.numbers.intervals import Interval, mean_interval, ratio_interval
from datacollect.study.report.setting_runs import (
    REFERENCES,
    paired_ratio,
    settings_run,
    storage_ratio,
)

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.study.report.folders import SweepFolder

# A prediction is off where the interval of predicted over measured lies outside.
NEAR = 1.1


def summary_table(sweep: SweepFolder) -> pd.DataFrame:
    """Return makespan, ratios, storage and background of each combination of labels.

    Ratios are geometric means over seeds of paired runs: this one's makespan over the reference's
    (`REFERENCES`), with the bounds of a 95 % interval. They are NaN where there is no such
    reference. ``storage_over_direct`` is a ratio of means (`storage_ratio`), ``storage_mean`` the
    mean of single sources' ratios to their backlogs. ``tcp_over_direct`` is a ratio as
    those of makespans, for the throughput of background TCP.
    """
    import pandas as pd

    rows = []
    for setting in settings_run(sweep):
        for treatment, runs in setting.treatments.items():
            row: dict[str, Any] = {**setting.labels(treatment), **_counts(runs)}
            makespan = mean_interval(runs["makespan_s"])
            row |= named("makespan_s", makespan.from_zero())
            row["relative_half_width"] = finite(makespan.relative_half_width)
            for name in REFERENCES:
                other = setting.reference(treatment, name)
                row |= named(f"over_{name}", paired_ratio(runs, other, "makespan_s"))
            direct = setting.reference(treatment, "direct")
            row |= named("storage_over_direct", storage_ratio(runs, direct))
            row |= named("storage_mean", mean_interval(runs["storage_mean"]).from_zero())
            row["storage_max"] = float(runs["storage_max"].max())
            row |= named("tcp_over_direct", paired_ratio(runs, direct, "tcp_during_bytes_per_s"))
            row["cpu_s"] = float(runs["cpu_s"].sum())
            rows.append(row)
    return pd.DataFrame(rows)


def prediction_table(sweep: SweepFolder) -> pd.DataFrame:
    """Return predicted and measured makespans, and the wire that was busiest.

    ``predicted_over_measured`` is the geometric mean over seeds; ``is_off`` says that its 95 %
    interval lies further than 10 % from 1. ``busiest_wire`` is the wire that was the busiest in
    most runs, ``busiest_share`` in which part of them. ``over_as_many`` is the measured makespan
    over that of direct with as many connections.
    """
    import pandas as pd

    rows = []
    for setting in settings_run(sweep):
        for treatment, runs in setting.treatments.items():
            ratio = ratio_interval(runs["predicted_s"], runs["makespan_s"])
            as_many = setting.reference(treatment, "as_many")
            wires = runs.loc[runs["busiest_wire"] != "", "busiest_wire"].value_counts()
            rows.append(
                {
                    **setting.labels(treatment),
                    **_counts(runs),
                    "predicted_s": float(runs["predicted_s"].mean()),
                    "makespan_s": float(runs["makespan_s"].mean()),
                    "lower_bound_s": float(runs["lower_bound_s"].mean()),
                    **named("over_as_many", paired_ratio(runs, as_many, "makespan_s")),
                    **named("predicted_over_measured", ratio),
                    "is_off": is_off(ratio),
                    "busiest_wire": "" if wires.empty else str(wires.index[0]),
                    "busiest_share": math.nan if wires.empty else int(wires.iloc[0]) / len(runs),
                }
            )
    return pd.DataFrame(rows)


def is_off(ratio: Interval) -> bool:
    """Return whether predictions are wrong by more than 10 %, as far as the runs settle it.

    >>> is_off(Interval(0.5, 0.4, 0.6, 5)), is_off(Interval(0.95, 0.91, 1.0, 5))
    (True, False)
    """
    return ratio.is_known and (ratio.high < 1 / NEAR or ratio.low > NEAR)


def _counts(runs: pd.DataFrame) -> dict[str, Any]:
    return {
        "connections": float(runs["connections"].mean()),
        "seeds": int(runs["complete"].sum()),
        "incomplete": int((~runs["complete"]).sum()),
    }


def finite(value: float) -> float:
    """Return a number, NaN where it is infinite: files show neither."""
    return value if math.isfinite(value) else math.nan


def named(name: str, interval: Interval) -> dict[str, float]:
    """Return an interval as three columns: the mean by its name, and the bounds."""
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}
