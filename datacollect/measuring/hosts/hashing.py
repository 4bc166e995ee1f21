"""BLAKE3, as pulls and agents hash pieces: what a byte takes of a processor."""

from __future__ import annotations

import time

from datacollect.machine.parts import BLAKE3, BOTH, Cost
from datacollect.measuring.hosts.repeats import per_gib

REPEATS = 8
PIECE_BYTES = 16 * 2**20


def measure_blake3(load: float) -> Cost:
    """Return what hashing costs: a piece at a time, at either end."""
    from blake3 import blake3

    piece = bytes(PIECE_BYTES)
    taken = []
    for _ in range(REPEATS):
        begun_s = time.thread_time()
        blake3(piece).digest()
        taken.append((time.thread_time() - begun_s) / PIECE_BYTES)
    return Cost(BLAKE3, BOTH, "memory", *per_gib(taken), load=load)
