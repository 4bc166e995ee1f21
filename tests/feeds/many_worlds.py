"""Let many feeds come to their end, each in a world of its own: ``many_worlds.py [N] [FIRST]``."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from instances.kept_lines import say
from instances.simulated_feeds import judged


def main(n: int = 10_000, first: int = 0) -> int:
    """Judge `n` of them; return the exit code."""
    n_faulty = 0
    for seed in range(first, first + n):
        try:
            judged(seed, has_spill=seed % 4 != 0)
        except Exception:  # noqa: BLE001 - whatever it raises is a fault
            n_faulty += 1
            say(f"seed {seed}:\n{traceback.format_exc()}")
    say(f"{n} feeds, {n_faulty} faulty")
    return 1 if n_faulty else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
