"""Chance in settings: those in which nothing is random, counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from datacollect.study.axes import Axis, AxisValue
from datacollect.study.chance import chance_in

METHOD = Axis("method", True, (AxisValue("direct", {}), AxisValue("coordinated", {})))
FLOWS = Axis("flows", False, (AxisValue("0", {}), AxisValue("5", {})))


def table_of(makespans):
    """Two seeds; makespans by flows and method. Times and keys always differ."""
    rows = [
        {"flows": flows, "method": method, "seed": seed, "makespan_s": makespan_s}
        for (flows, method), several in makespans.items()
        for seed, makespan_s in enumerate(several)
    ]
    return pd.DataFrame(rows).assign(key=range(len(rows)), cpu_s=range(len(rows)))


@pytest.mark.parametrize(
    ("others", "alike", "words"),
    [
        ([3.0, 3.0], 2, "Nothing is random here: 2 seeds are the same. One is enough: --seeds 1."),
        # Of one method of a setting the seeds differ: chance has a part in that setting.
        ([3.0, 4.0], 1, "Nothing is random here in 1 of 2 settings: 2 seeds are the same."),
        # Runs that never end are alike too.
        ([float("nan")] * 2, 2, None),
    ],
)
def test_settings_whose_seeds_are_all_the_same(others, alike, words):
    quiet = {("0", "direct"): [9.0, 9.0], ("0", "coordinated"): [7.0, 7.0]}
    table = table_of({**quiet, ("5", "direct"): [8.0, 8.0], ("5", "coordinated"): others})
    chance = chance_in(table, [METHOD, FLOWS])
    assert (chance.settings, chance.alike, chance.most_seeds) == (2, alike, 2)
    assert chance.words == words or words is None


def test_single_seeds_say_nothing_about_chance():
    table = table_of({("0", "direct"): [9.0], ("5", "direct"): [9.0]})
    chance = chance_in(table, [METHOD, FLOWS])
    assert (chance.settings, chance.alike, chance.words) == (0, 0, "")
