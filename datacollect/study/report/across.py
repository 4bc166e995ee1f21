"""Comparison of methods over all settings of a sweep together: one row for each method.

Where the settings are networks drawn alike, this says what to expect of another such network.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from datacollect.numbers.intervals import ratio_interval, side_of_one
from datacollect.study.axes import paired
from datacollect.study.report.setting_runs import REFERENCES, paired_ratio, settings_run
from datacollect.study.report.tables import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.numbers.intervals import Interval
    from datacollect.study.axes import Labels
    from datacollect.study.report.folders import SweepFolder


def across_table(sweep: SweepFolder) -> pd.DataFrame:
    """Return each method's makespan over that of others, over all settings together.

    In each setting the ratio is the geometric mean of paired runs, as in
    `datacollect.study.report.tables.summary_table`; here settings count alike, however many seeds
    they have. For each reference (`REFERENCES`) there are the geometric mean of the settings'
    ratios, its 95 % interval as if settings had been drawn at random, the smallest and the
    largest, how many settings there are, and in how many the setting's own interval lies wholly
    below 1 (``faster``) or above (``slower``). Empty where only one setting has been run.
    """
    import pandas as pd

    ratios: dict[Labels, dict[str, list[Interval]]] = {}
    connections: dict[Labels, list[float]] = {}
    settings = list(settings_run(sweep))
    for setting in settings:
        for treatment, runs in setting.treatments.items():
            of_treatment = ratios.setdefault(treatment, {name: [] for name in REFERENCES})
            connections.setdefault(treatment, []).append(float(runs["connections"].mean()))
            for name in REFERENCES:
                ratio = paired_ratio(runs, setting.reference(treatment, name), "makespan_s")
                if ratio.n:
                    of_treatment[name].append(ratio)
    if len(settings) < 2:
        return pd.DataFrame()
    names = [axis.name for axis in paired(sweep.axes)]
    rows = []
    for treatment, of_treatment in ratios.items():
        row: dict[str, Any] = dict(zip(names, treatment, strict=True))
        row["settings"] = len(connections[treatment])
        row["connections"] = sum(connections[treatment]) / len(connections[treatment])
        for name, found in of_treatment.items():
            row |= _over(f"over_{name}", found)
        rows.append(row)
    return pd.DataFrame(rows)


def _over(name: str, ratios: Sequence[Interval]) -> dict[str, float]:
    means = [ratio.mean for ratio in ratios]
    sides = [side_of_one(ratio) for ratio in ratios]
    return {
        **named(name, ratio_interval(means, [1.0] * len(means))),
        f"{name}_smallest": min(means, default=math.nan),
        f"{name}_largest": max(means, default=math.nan),
        f"{name}_settings": len(means),
        f"{name}_faster": sides.count(-1),
        f"{name}_slower": sides.count(1),
    }
