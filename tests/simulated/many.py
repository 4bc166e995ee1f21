"""Carry many simulated collections out, on all processors; say which seeds fail, and how.

    python tests/simulated/many.py [--first 0] [--count 10000] [--processes N] [--small] [--web]

About 0.06 s each on one processor, small ones 0.03 s: a million of those takes eight hours on one.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulated.pulls import SimulatedPull


def failure_of(seed: int, *, is_small: bool, web: bool) -> tuple[int, str | None]:
    """Carry a seed out; return what is wrong with it."""
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        try:
            SimulatedPull(seed, Path(folder), is_small=is_small, web=web).run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is to be looked at
            return seed, f"{type(error).__name__}: {error}"
    return seed, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--small", action="store_true", help="few files of few pieces")
    parser.add_argument("--web", action="store_true", help="some sources are web servers")
    options = parser.parse_args()
    carry_out = functools.partial(failure_of, is_small=options.small, web=options.web)
    seeds = range(options.first, options.first + options.count)
    n_failed = 0
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for n_done, (seed, why) in enumerate(pool.imap_unordered(carry_out, seeds, 20), 1):
            if why is not None:
                n_failed += 1
                sys.stdout.write(f"{seed}: {why}\n")
            if n_done % 1000 == 0:
                sys.stdout.write(f"{n_done} of {len(seeds)}, {n_failed} failed\n")
                sys.stdout.flush()
    sys.stdout.write(f"{len(seeds)} collections, {n_failed} failed\n")
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
