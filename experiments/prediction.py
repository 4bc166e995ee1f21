"""Predictions before the start: what simulated runs take over what was predicted.

    python experiments/prediction.py learn     # seeds 1 to 100: the factors of the predictions
    python experiments/prediction.py           # seeds 101 to 300: medians, and coverage

Runs of the base scenario at a tenth in the fluid engine, capacities of peering and access wires
known; seeds go in turn through 0, 20 and 60 flows, divided 1:1, 2:1 and 1:3.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.scenario import Scenario

HERE = Path(__file__).resolve().parent
SETTINGS = list(product((0, 20, 60), ([1, 1], [2, 1], [1, 3])))
WIRES = [{"wire": "B0-A0"}, {"wire": "B1-A1"}]
KNOWN = {"scale": 0.1, "probe_scale": 0.1, "estimates.shared": WIRES, "estimates.know_access": True}
METHODS = {
    "direct": {"method.name": "direct", "method.streams": 4},
    "coordinated": {"method.name": "coordinated"},
    "adaptive": {"method.name": "adaptive", "method.connections": 28},
}


def ratios(method: str, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Makespans over predicted ones, and whether they lie in the range."""
    base = Scenario.from_file(HERE / "base.toml")
    found, within = [], []
    for seed in seeds:
        flows, split = SETTINGS[seed % len(SETTINGS)]
        values = {"run.seed": seed, "background.flows": flows, "background.split": split}
        outcome = carry_out(base.with_values(values | KNOWN | METHODS[method]), engine="fluid")
        prediction, makespan_s = outcome.prediction, outcome.run.makespan_s
        if prediction is not None:
            found.append(makespan_s / prediction.makespan_s)
            within.append(prediction.low_s <= makespan_s <= prediction.high_s)
    return np.array(found), np.array(within)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("learn", "report"), default="report")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    given = parser.parse_args()
    first, runs = (1, 100) if given.what == "learn" else (101, 200)
    for name in given.methods:
        over, inside = ratios(name, range(first, first + (given.runs or runs)))
        low, middle, high = np.quantile(over, [0.05, 0.5, 0.95])
        print(
            f"{name}: {len(over)} runs, makespan over prediction: median {middle:.3f}, 5 % "
            f"{low:.3f}, 95 % {high:.3f}; {inside.mean():.0%} within the range",
            flush=True,
        )
