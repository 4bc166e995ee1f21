"""Time to explain beside time to plan: many sources with own links, or behind relays.

    python experiments/explaining_speed.py [--sources 3000] [--repeats 5]

Prints a table in Markdown, docs/tables/speed_explaining.md: processor time, the best of
repetitions, each on a fresh problem, of `dc.coordinated`, of `dc.explain` without a plan, and with
that plan. The ratios are over planning.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

import timed_calls
from synthetic_problems import relayed_star, star
from timed_calls import in_words, timed

import datacollect as dc

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = ("sources", "", "bends", "planning", "explaining", "ratio", "explaining a plan", "ratio")

CASES: tuple[tuple[str, Callable[[int], dc.Problem]], ...] = (
    ("direct links", star),
    ("1 relay", partial(relayed_star, n_relays=1)),
    ("10 relays", partial(relayed_star, n_relays=10)),
    ("100 relays", partial(relayed_star, n_relays=100)),
)


def row(what: str, problem: dc.Problem, repeats: int) -> tuple[object, ...]:
    """Measure the three in turn."""
    plan = dc.coordinated(problem)
    n_bends = len(dc.explain(problem).binds)
    calls = (
        lambda: dc.coordinated(problem.replace()),
        lambda: dc.explain(problem.replace()),
        lambda: dc.explain(problem.replace(), plan),
    )
    seconds = [[timed(call)[0] for call in calls] for _ in range(repeats)]
    planning, alone, with_plan = map(min, zip(*seconds, strict=True))
    ratios = (f"{each / planning:.1f}" for each in (alone, with_plan))
    return (
        *(len(problem.sources), what, n_bends, in_words(planning)),
        *(in_words(alone), next(ratios), in_words(with_plan), next(ratios)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sources", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    small = star(5)
    dc.explain(small, dc.coordinated(small))  # imports do not count
    rows = [row(what, build(arguments.sources), arguments.repeats) for what, build in CASES]
    print(timed_calls.markdown(HEAD, rows, n_left=2))


if __name__ == "__main__":
    main()
