"""Time to say how certain a plan is, beside time to plan: 200 scenarios of full meshes.

    python experiments/certainty_speed.py [--hosts 30] [--cycles 20] [--repeats 5]

Prints a table in Markdown, docs/tables/speed_certainty.md: processor time, the best of
repetitions, of `dc.coordinated`, of `dc.certainty` from a table of tests (each link once a cycle,
lognormal(0, 0.3) around its bandwidth, seed 1), and of the same with what costs most. Ratios are
over planning.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np
import timed_calls
from synthetic_problems import SEED, limited_mesh, mesh_problem
from timed_calls import in_words, timed

import datacollect as dc

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

HEAD = ("hosts", "", "tests", "planning", "certainty", "ratio", "with costs", "ratio")

CASES: tuple[tuple[str, Callable[[int], dc.Problem]], ...] = (
    ("full mesh", mesh_problem),
    ("hosts limited", limited_mesh),
)


def tests_of(problem: dc.Problem, n_cycles: int) -> pd.DataFrame:
    """Test every link once a cycle, a second after the other."""
    import pandas as pd

    rng = np.random.default_rng(SEED)
    names = np.array(problem.names, dtype=object)
    n = problem.n_links
    rate = problem.bandwidth_bytes_per_s[0] * rng.lognormal(0.0, 0.3, (n_cycles, n))
    return pd.DataFrame(
        {
            "from": np.tile(names[problem.link_from], n_cycles),
            "to": np.tile(names[problem.link_to], n_cycles),
            "time_s": 1.7e9 + np.arange(n_cycles * n),
            "bandwidth_bytes_per_s": rate.ravel(),
        }
    )


def row(what: str, problem: dc.Problem, n_cycles: int, repeats: int) -> tuple[object, ...]:
    """Measure the three in turn."""
    plan, samples = dc.coordinated(problem), tests_of(problem, n_cycles)
    calls = (
        lambda: dc.coordinated(problem.replace()),
        lambda: dc.certainty(problem, plan, samples),
        lambda: dc.certainty(problem, plan, samples, costs=True),
    )
    seconds = [[timed(call)[0] for call in calls] for _ in range(repeats)]
    planning, alone, with_costs = map(min, zip(*seconds, strict=True))
    ratios = (f"{each / planning:.1f}" for each in (alone, with_costs))
    return (
        *(problem.n_hosts, what, len(samples), in_words(planning)),
        *(in_words(alone), next(ratios), in_words(with_costs), next(ratios)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=30)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    row("", mesh_problem(4), 2, 1)  # imports do not count
    rows = [
        row(what, build(arguments.hosts), arguments.cycles, arguments.repeats)
        for what, build in CASES
    ]
    print(timed_calls.markdown(HEAD, rows, n_left=2))


if __name__ == "__main__":
    main()
