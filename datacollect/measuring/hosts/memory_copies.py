"""Copies of memory, by the size of what is copied: caches show, and main memory."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from datacollect.machine.parts import MEMORY, Rate
from datacollect.measuring.hosts.processor_times import allowed_processors
from datacollect.measuring.hosts.repeats import interval_of

if TYPE_CHECKING:
    from collections.abc import Callable

# Within the first cache, the second, and far beyond the last one of most machines.
BLOCKS_BYTES = (16 * 2**10, 256 * 2**10, 64 * 2**20)
REPEATS = 5
# All threads together take no more memory for their two blocks each.
MOST_BYTES = 512 * 2**20


def measure_memory(
    seconds: float, load: Callable[[], float], n_cores: int | None = None
) -> list[Rate]:
    """Return what one thread copies, for each size of blocks, and all cores of main memory.

    Parameters
    ----------
    seconds : float
        For all of it.
    load : callable
        Returns what others keep busy, a part of all processors.
    n_cores : int, optional
        By default as many as this process may use.
    """
    n_cores = len(allowed_processors()) if n_cores is None else n_cores
    cases = [(block, 1) for block in BLOCKS_BYTES]
    largest = BLOCKS_BYTES[-1]
    if n_cores > 1:
        cases.append((largest, n_cores))
    each_s = seconds / (len(cases) * REPEATS)
    rates = []
    for block_bytes, at_once in cases:
        n_bytes = min(block_bytes, MOST_BYTES // (2 * at_once))
        found = interval_of([_copied(n_bytes, at_once, each_s) for _ in range(REPEATS)])
        rates.append(Rate(MEMORY, *found, at_once=at_once, block_bytes=n_bytes, load=load()))
    return rates


def _copied(block_bytes: int, at_once: int, seconds: float) -> float:
    """Copy in so many threads; return bytes of all per second of a processor each."""
    rates = [0.0] * at_once
    begins = threading.Barrier(at_once)

    def copy(number: int) -> None:
        source = np.ones(block_bytes, dtype=np.uint8)
        target = np.zeros(block_bytes, dtype=np.uint8)
        # So many at a time that looking at the clock takes no part of it.
        times = max(1, 2**22 // block_bytes)
        begins.wait()
        n_bytes, begun_s = 0, time.thread_time()
        while time.thread_time() - begun_s < seconds or not n_bytes:
            for _ in range(times):
                np.copyto(target, source)
            n_bytes += times * block_bytes
        rates[number] = n_bytes / (time.thread_time() - begun_s)

    threads = [threading.Thread(target=copy, args=(i,)) for i in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)
