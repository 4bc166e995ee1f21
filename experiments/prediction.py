"""Predictions before the start, and forecasts on the way: what simulated runs take over them.

    python experiments/prediction.py learn     # seeds 1 to 100: the factors of the predictions
    python experiments/prediction.py           # seeds 101 to 200: medians, and coverage
    python experiments/prediction.py learn --engine ns3 --seeds 20 --cache DIR

Runs of the base scenario at a tenth, capacities of peering and access wires known; in the fluid
engine each seed has two of the settings in turn: 0, 20 and 60 flows, divided 1:1, 2:1 and 1:3. In
ns-3, where others' flows cost time, each has one without them and one with, in turn. Of n
runs the range goes from the k-th shortest to the k-th longest ratio, k being the whole part of
(n + 1)/20: a new run of the same kind lies within with a probability of 0.9 or a little more,
whatever the ratios' distribution (split conformal prediction: Lei, G'Sell, Rinaldo, Tibshirani,
Wasserman, JASA 113, 2018).
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.control.adaptive.outlook import PARTS
from datacollect.methods.prediction import (
    MOSTLY_FREE,
    RouteLoad,
    bare_adaptive_s,
    bare_makespan_s,
    free_part,
    jobs_of,
)
from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.files.choices import Engine
    from datacollect.scenario.outcome import Outcome

HERE = Path(__file__).resolve().parent
SETTINGS = list(product((0, 20, 60), ([1, 1], [2, 1], [1, 3])))
# Of the two settings of a seed the second is so many further on.
FURTHER = 4
WIRES = [{"wire": "B0-A0"}, {"wire": "B1-A1"}]
KNOWN = {"scale": 0.1, "probe_scale": 0.1, "estimates.shared": WIRES, "estimates.know_access": True}
STREAMS, CONNECTIONS = 4, 28
METHODS = {
    "direct": {"method.name": "direct", "method.streams": STREAMS},
    "coordinated": {"method.name": "coordinated"},
    "adaptive": {"method.name": "adaptive", "method.connections": CONNECTIONS},
}
TENTH = 0.1


class Found(NamedTuple):
    """Result of one run: over what wires say, over the prediction; how free wires were."""

    over_bare: float
    over_prediction: float
    is_within: bool
    is_free: bool
    forecasts: list[dict[str, float]]
    makespan_s: float


def settings_of(seed: int, engine: Engine) -> Iterable[tuple[int, list[int]]]:
    """Return flows and their split of the two settings of a seed."""
    if engine == "ns3":
        loaded = [(flows, split) for flows, split in SETTINGS if flows]
        return SETTINGS[0], loaded[seed % len(loaded)]
    return (SETTINGS[(seed + further) % len(SETTINGS)] for further in (0, FURTHER))


def runs(method: str, seeds: Iterable[int], engine: Engine, cache: str | None) -> list[Found]:
    """Carry a method out, two settings for each seed."""
    base = Scenario.from_file(HERE / "base.toml")
    found = []
    for seed in seeds:
        for flows, split in settings_of(seed, engine):
            values = {"run.seed": seed, "background.flows": flows, "background.split": split}
            scenario = base.with_values(values | KNOWN | METHODS[method])
            outcome = carry_out(scenario, engine=engine, cache_dir=cache)
            found.append(of_run(method, outcome))
    return found


def of_run(method: str, outcome: Outcome) -> Found:
    """Return what a run took over what was predicted."""
    problem, end, makespan_s = outcome.problem, outcome.problem.destination, outcome.run.makespan_s
    straight = [
        RouteLoad((s, end), n, STREAMS) for s, n in outcome.setting.backlog_bytes.items() if n
    ]
    jobs = jobs_of(outcome.schedule, 1) if method == "coordinated" else straight
    if method == "adaptive":
        bare_s = bare_adaptive_s(problem, CONNECTIONS)
    else:
        bare_s = bare_makespan_s(problem, jobs)
    prediction = outcome.prediction
    assert bare_s is not None
    assert prediction is not None
    settings = outcome.run.settings.get("fluid_settings") or {}
    return Found(
        makespan_s / bare_s,
        makespan_s / prediction.makespan_s,
        prediction.low_s <= makespan_s <= prediction.high_s,
        free_part(problem, [job.hosts for job in jobs]) > MOSTLY_FREE,
        (settings.get("controller") or {}).get("forecasts", []),
        makespan_s,
    )


def nine_of_ten(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the ends of the range that holds for nine new runs of ten, and the middle.

    >>> nine_of_ten([float(n) for n in range(1, 40)])
    (2.0, 20.0, 38.0)
    """
    ordered = np.sort(ratios)
    k = max(1, (len(ordered) + 1) // 20)
    return float(ordered[k - 1]), float(np.median(ordered)), float(ordered[-k])


def show_learned(name: str, found: list[Found]) -> None:
    """Print the factors of a method, for datacollect/control/learned.json."""
    for is_free, where in ((False, "beside others"), (True, "mostly free")):
        ratios = [run.over_bare for run in found if run.is_free == is_free]
        low, middle, high = nine_of_ten(ratios)
        print(f"{name}, {where}: {len(ratios)} runs, [{low:.3f}, {middle:.3f}, {high:.3f}]")
    rows: list[list[float]] = [[] for _ in PARTS]
    for run in found:
        for noted in run.forecasts:
            left_s = noted["makespan_s"] - noted["at_s"]
            if left_s > 0:
                row = int(np.searchsorted(PARTS, noted["done"], side="right")) - 1
                rows[row].append((run.makespan_s - noted["at_s"]) / left_s)
    for part, ratios in zip(PARTS, rows, strict=True):
        if ratios:
            low, middle, high = nine_of_ten(ratios)
            print(f"  from {part:.0%} on: low {low:.3f}, middle {middle:.3f}, high {high:.3f}")


def show(name: str, found: list[Found]) -> None:
    """Print how predictions and forecasts did, as rows of a table."""
    over = np.array([run.over_prediction for run in found])
    within = np.array([run.is_within for run in found])
    low, middle, high = np.quantile(over, [0.05, 0.5, 0.95])
    print(
        f"| {name}, before the start | {len(over)} | {middle:.3f} | {low:.3f} … {high:.3f} "
        f"| {within.mean():.1%} |"
    )
    if not any(run.forecasts for run in found):
        return
    for tenth in range(1, 10):
        noted = [(run.makespan_s, at) for run in found if (at := _first(run, tenth * TENTH))]
        over = np.array([makespan_s / at["makespan_s"] for makespan_s, at in noted])
        within = np.array([at["low_s"] <= makespan_s <= at["high_s"] for makespan_s, at in noted])
        low, middle, high = np.quantile(over, [0.05, 0.5, 0.95])
        print(
            f"| {name}, {tenth} of 10 there | {len(over)} | {middle:.3f} | {low:.3f} … {high:.3f} "
            f"| {within.mean():.1%} |"
        )


def _first(run: Found, done: float) -> dict[str, float] | None:
    """Return the first forecast of a run with so much there."""
    return next((noted for noted in run.forecasts if noted["done"] >= done), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("learn", "report"), default="report")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--engine", choices=("fluid", "ns3"), default="fluid")
    parser.add_argument("--cache", help="folder of ns-3's probes, which methods share")
    given = parser.parse_args()
    first = 1 if given.what == "learn" else 101
    if given.what == "report":
        print("| | runs | makespan over it: median | 5 % … 95 % | within the range |")
        print("|---|--:|--:|--:|--:|")
    for method in given.methods:
        (show_learned if given.what == "learn" else show)(
            method, runs(method, range(first, first + given.seeds), given.engine, given.cache)
        )
