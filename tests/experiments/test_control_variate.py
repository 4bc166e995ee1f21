"""The script that tells whether a control variate is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd


def test_methods_are_judged_each_by_its_own_runs(scripts):
    """Of one method the control explains all, of the other nothing; a third has too few runs."""
    random = np.random.default_rng(5)
    rows = [
        {"method": method, "seed": seed, "control": control, "noise": random.standard_normal()}
        for method, n in (("a", 700), ("b", 700), ("few", 5))
        for seed, control in enumerate(100 + 10 * random.standard_normal(n), start=1)
    ]
    both = pd.DataFrame(rows)
    alike = both["method"] != "b"
    runs = both.assign(makespan_s=both["control"].where(alike, 100 + 10 * both["noise"]))
    control = both.assign(makespan_s=both["control"])
    script, small = scripts("control_variate"), control["seed"] <= 30
    means = script.found(runs[runs["seed"] <= 30], control[small], control[~small], ["method"])
    lines = script.table(means).splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in lines[2:]}
    assert set(cells) == {"a", "b"}
    assert (cells["a"][1], cells["a"][-1]) == ("30", "yes |")
    assert cells["b"][-1] == "no |"
