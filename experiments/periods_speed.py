"""Growth of planning time with periods: few hosts, whose bandwidths change very often.

    python experiments/periods_speed.py [--hosts 10] [--repeats 3]

Prints a table in Markdown, docs/tables/speed_periods.md: processor time of whole plans, the best of
repetitions, each on a fresh problem. The exponent is that of a straight line in logarithms.
"""

from __future__ import annotations

import argparse

import numpy as np
import timed_calls
from growth import exponent
from synthetic_problems import changing_mesh, forecast_mesh
from timed_calls import in_words, timed

import datacollect as dc

HEAD = ("full mesh", "100 periods", "300 periods", "1000 periods", "exponent")
SIZES = (100, 300, 1000)
PERIOD_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    dc.coordinated(forecast_mesh(5, 5))  # imports do not count
    rows = []
    for what, build in (
        ("storage limits", lambda n: forecast_mesh(arguments.hosts, n)),
        ("storage without limit", lambda n: changing_mesh(arguments.hosts, n, PERIOD_S)),
    ):
        best = []
        for problem in map(build, SIZES):
            taken = (
                timed(lambda each=problem: dc.coordinated(each.replace()))[0]
                for _ in range(arguments.repeats)
            )
            best.append(min(taken))
        grown, _ = exponent(np.array(SIZES, dtype=float), np.array(best))
        rows.append((what, *map(in_words, best), f"{grown:.2f}"))
    print(timed_calls.markdown(HEAD, rows))


if __name__ == "__main__":
    main()
