"""What feeds have to reach, a row each: what is short is measured, of what is long the last result.

    python experiments/feed_goals.py [--last]

Needs root. Measures UDP to a file for a minute, and a drop set (`feed_speed.py`). The other rows
are those that stand in the documentation, each with the command that measures it again; with
--last, so are these two.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEED = ("feed_speed.py", "--only")
BED = "feed_bed.py results/feed_bed.jsonl --only losses"


@dataclass(frozen=True)
class Goal:
    """Goal of feeds.

    Attributes
    ----------
    what, least : str
        What has to be reached.
    page : str
        Of docs/; where the last result stands.
    begins : str or tuple of str
        How its rows begin there.
    command : str
        Of experiments/.
    is_short : bool
        Whether it takes a minute or so.
    """

    what: str
    least: str
    page: str
    begins: str | tuple[str, ...]
    command: str
    is_short: bool = False


GOALS = (
    Goal(
        "UDP to a file, 900 Mbit/s, 60 s, under SCHED_FIFO, idle",
        "lost <= 1e-5; processor <= 1.5 s/GiB a side",
        "feeds_udp.md",
        "| 900 Mbit/s to a file, 60 s",
        " ".join((*SPEED, "file")),
        is_short=True,
    ),
    Goal(
        "drop set of 6.5 %, 10^6 messages",
        "exactly that set",
        "feeds_udp.md",
        "| drop set",
        " ".join((*SPEED, "dropset")),
        is_short=True,
    ),
    Goal(
        "one rate for an hour, to no file: means of 30 s",
        "within 1:1000",
        "feeds_udp.md",
        ("| 4 Mbit/s to no file", "| 100 Mbit/s to no file"),
        " ".join((*SPEED, "means --means 3600")) + " (a day: 86400)",
    ),
    Goal(
        "16 over 20 Mbit/s, Reno: mean lateness over two relays / direct",
        "<= 1/3",
        "tables/feed_bed_asked.md",
        "| Reno, 16 over 20",
        BED,
    ),
    Goal(
        "worst delays in the bed <= those of `feed plan`, Reno and Cubic",
        "95 %",
        "tables/feed_bed_asked.md",
        "| worst delays",
        BED,
    ),
    Goal(
        "bed: 16 over 20 Mbit/s, Cubic",
        "delay <= 2 round trips + 20 ms",
        "tables/feed_bed_asked.md",
        "| Cubic, 16 over 20",
        BED,
    ),
    Goal(
        "guard, simulated: path halved; 0.9 x most_loss in bunches of 1, 5, 10",
        "<= 1 s; no false alarm in 10 h",
        "tables/feed_guard.md",
        "| ",
        "feed_guard.py",
    ),
)


def last_rows(goal: Goal) -> list[str]:
    """Return the last result's rows, as the documentation has them.

    Raises
    ------
    SystemExit
        It has none.
    """
    lines = (ROOT / "docs" / goal.page).read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith(goal.begins)]
    if not found:
        raise SystemExit(f"docs/{goal.page} has no row that begins with {goal.begins!r}")
    return found


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--last", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    for goal in GOALS:
        print(f"{goal.what}: {goal.least}", flush=True)
        if goal.is_short and not asked.last:
            words = [sys.executable, *goal.command.split()]
            subprocess.run(words, check=True, cwd=ROOT / "experiments")
        else:
            print(f"  last, by python experiments/{goal.command}:")
            for row in last_rows(goal):
                print(f"  {row}")


if __name__ == "__main__":
    main()
