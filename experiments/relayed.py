"""Distance of the adaptive method from the exact optimum where relays carry most.

    python experiments/relayed.py [--seeds 101 120]

Sources with slow links to the destination, relays that have nothing and fast links: 2 to 6 sources
with 20 to 100 MB, links of 0.2 to 1 MB/s straight and of 2 to 8 MB/s to and from 1 to 3 relays.
Rates are fixed and no wires are shared, so that the coordinated plan is the least time possible;
two connections for each host, and the coordinated plan for as many stands beside. Runs are the
fluid engine's. A second kind has links between all hosts, lognormal ones, over which the optimum
sends data along three and more hops. Writes relayed_optimum.csv in
results/study/tables.txt, and docs/tables/study_*.md from it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import published_tables
from adaptive_tables import RESULTS, geometric
from study_tables import fill

import datacollect as dc
from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.relaying import RELAYING
from datacollect.simulation.fluid.engine import simulate_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Kinds = Mapping[str, Callable[[int], dict[str, float]]]

MB = 1_000_000
# A plan of chains: each hop of a route takes connections of its own.
AS_MANY = "coordinated, with as many connections"
LABELS = {"queues": "adaptive", "chains": "adaptive, chains alone"}


def relayed(seed: int) -> dc.Problem:
    """Return sources whose fast ways lead over relays."""
    random = np.random.default_rng(seed)
    n_sources, n_relays = (int(n) for n in random.integers((2, 1), (7, 4)))
    n = n_sources + n_relays + 1
    links = np.zeros((n, n))
    links[:n_sources, -1] = random.uniform(0.2, 1.0, n_sources) * MB
    links[:n_sources, n_sources:-1] = random.uniform(2, 8, (n_sources, n_relays)) * MB
    links[n_sources:-1, -1] = random.uniform(2, 8, n_relays) * MB
    backlog = np.zeros(n, dtype=int)
    backlog[:n_sources] = random.uniform(20, 100, n_sources) * MB
    return dc.Problem.from_matrix(_names(n_sources, n_relays), links, backlog.tolist(), "D")


def meshed(seed: int) -> dc.Problem:
    """Return sources and relays with links between nearly all, most of them slow straight."""
    random = np.random.default_rng(seed)
    n_sources, n_relays = int(random.integers(2, 7)), int(random.integers(0, 4))
    n = n_sources + n_relays + 1
    links = np.exp(random.normal(0, 1.0, (n, n))) * MB
    links[random.random((n, n)) < 0.2] = 0
    np.fill_diagonal(links, 0)
    links[-1] = 0
    straight = links[:n_sources, -1]
    straight[straight == 0] = 0.3 * MB
    straight[random.random(n_sources) < 0.5] *= 0.2
    backlog = (np.exp(random.normal(0, 0.7, n)) * 60 * MB).astype(int)
    backlog[n_sources:] = 0
    return dc.Problem.from_matrix(_names(n_sources, n_relays), links, backlog.tolist(), "D")


def _names(n_sources: int, n_relays: int) -> list[str]:
    return [*(f"S{i}" for i in range(n_sources)), *(f"R{i}" for i in range(n_relays)), "D"]


def over_optimum(problem: dc.Problem) -> dict[str, float]:
    """Return what methods take over the coordinated plan's time."""
    best_s = dc.coordinated(problem, settle_ties=False).makespan_s
    found = {
        "direct": dc.direct(problem).makespan_s / best_s,
        "best-path": dc.best_path(problem).makespan_s / best_s,
        AS_MANY: dc.coordinated(problem, connections=2 * problem.n_hosts).makespan_s / best_s,
    }
    for relays in RELAYING:
        controller = AdaptiveController(problem, 2 * problem.n_hosts, relays=relays)
        found[LABELS[relays]] = simulate_problem(problem, controller).makespan_s / best_s
    return found


def table(kinds: Kinds, seeds: Iterable[int]) -> pd.DataFrame:
    """Return the geometric mean of each method over the optimum, its interval and its worst.

    Of each kind is given what methods take over the optimum, by seed.
    """
    rows = []
    for kind, measure in kinds.items():
        runs = pd.DataFrame([measure(seed) for seed in seeds])
        for method in runs:
            mean, low, high = geometric(runs[method])
            rows.append(
                {
                    "kind": kind,
                    "method": method,
                    "seeds": len(runs),
                    "over_optimum": round(mean, 3),
                    "over_optimum_low": round(low, 3),
                    "over_optimum_high": round(high, 3),
                    "most": round(float(runs[method].max()), 3),
                }
            )
    return pd.DataFrame(rows)


def publish(name: str, about: str, kinds: Kinds) -> None:
    """Measure kinds with the seeds that are asked for, write the table, also for the page."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(101, 120), metavar="N")
    first, last = parser.parse_args().seeds
    found = table(kinds, range(first, last + 1))
    published_tables.keep(RESULTS, f"{name}_optimum.csv", found.to_csv(index=False))
    print(found.to_string(index=False))
    fill()


def main() -> None:
    """Write the table, also as the page shows it."""
    kinds: Kinds = {
        "over relays": lambda seed: over_optimum(relayed(seed)),
        "all to all": lambda seed: over_optimum(meshed(seed)),
    }
    publish("relayed", __doc__ or "", kinds)


if __name__ == "__main__":
    main()
