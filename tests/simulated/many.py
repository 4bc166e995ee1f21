"""Carry many simulated collections out, on all processors; say which seeds fail, and how.

    python tests/simulated/many.py [--of pulls|web|agents|spools] [--first 0] [--count 10000]
                                   [--processes N] [--small]

On one processor some 0.03 s each, small ones 0.01 s, agents among few clients 0.004 s, a spool
0.1 s.
"""

from __future__ import annotations

import argparse
import functools
import gc
import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulated.agents import FEW_STEPS, SimulatedAgent
from simulated.pulls import SimulatedPull
from simulated.spools import SimulatedSpool

if TYPE_CHECKING:
    from collections.abc import Callable

PULLS, WEB, AGENTS, SPOOLS = "pulls", "web", "agents", "spools"


def failure_of(seed: int, *, of: str = PULLS, is_small: bool = False) -> tuple[int, str | None]:
    """Carry a seed out; return what is wrong with it."""
    try:
        if of == AGENTS:
            SimulatedAgent(seed).run(*([FEW_STEPS] if is_small else []))
        elif of == SPOOLS:
            _in_memory(lambda folder: SimulatedSpool(seed, folder).run())
        else:
            _in_memory(
                lambda folder: SimulatedPull(seed, folder, is_small=is_small, web=of == WEB).run()
            )
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed is to be looked at
        return seed, f"{type(error).__name__}: {error}"
    return seed, None


def _in_memory(carry_out: Callable[[Path], None]) -> None:
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        carry_out(Path(folder))


def _prepare() -> None:
    """Keep what is imported out of every later collection of garbage, a twentieth of the time."""
    gc.collect()
    gc.freeze()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--of",
        choices=(PULLS, WEB, AGENTS, SPOOLS),
        default=PULLS,
        help="collections, some sources of them web servers, an agent's clients, a relay's spool",
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--small", action="store_true", help="few files of few pieces, few clients")
    options = parser.parse_args()
    carry_out = functools.partial(failure_of, of=options.of, is_small=options.small)
    seeds = range(options.first, options.first + options.count)
    n_failed = 0
    with multiprocessing.get_context("spawn").Pool(options.processes, _prepare) as pool:
        for n_done, (seed, why) in enumerate(pool.imap_unordered(carry_out, seeds, 20), 1):
            if why is not None:
                n_failed += 1
                sys.stdout.write(f"{seed}: {why}\n")
            if n_done % 1000 == 0:
                sys.stdout.write(f"{n_done} of {len(seeds)}, {n_failed} failed\n")
                sys.stdout.flush()
    sys.stdout.write(f"{options.of}: {len(seeds)} carried out, {n_failed} failed\n")
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
