"""Turns on machines of 1 to 64 processors, in a model: they never make a pull slower.

Threads share processors and Python's one lock. Each of them pulls pieces: it reads records, which
takes the lock for a moment and then decrypts and copies without it, then hashes and writes. As on a
real machine, whoever finds the lock taken sleeps, and pays for being woken.
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import pairwise

import pytest

from datacollect.net.turns import turns_on

# Milliseconds for each MiB of a pull, measured on two processors: with the lock, reading without
# it, and hashing and writing.
LOCKED, READ, KEPT = 0.1, 0.8, 1.2
# A MiB is read in so many steps, four of them in a turn; a wake-up in milliseconds.
STEPS, TURN_MIB, PIECES, WAKE = 4, 4, 16, 0.01


def piece():
    """Yield what a thread does for a piece: what it needs, and for how long."""
    yield "turn", 0.0
    for _ in range(STEPS * TURN_MIB):
        yield "lock", LOCKED / STEPS
        yield "processor", READ / STEPS
    yield "turn is over", 0.0
    for _ in range(STEPS * TURN_MIB):
        yield "processor", KEPT / STEPS


class Machine:
    """Threads on processors, first come, first served; what is begun runs to its end."""

    def __init__(self, processors: int, turns: int, threads: int) -> None:
        self.free, self.turns, self.is_locked = processors, turns, False
        self.ready, self.for_lock, self.for_turn = deque(), deque(), deque()
        self.running, self.now, self.n = [], 0.0, 0
        for _ in range(threads):
            self.go_on(step for _ in range(PIECES) for step in piece())

    def go_on(self, work) -> None:
        """Have a thread ask for what it needs next."""
        for need, ms in work:
            if need == "turn":
                if not self.turns:
                    self.for_turn.append(work)
                    return
                self.turns -= 1
            elif need == "turn is over":
                if self.for_turn:
                    self.go_on(self.for_turn.popleft())
                else:
                    self.turns += 1
            elif need == "lock" and self.is_locked:
                self.for_lock.append((work, need, ms + WAKE))
                return
            else:
                self.is_locked = self.is_locked or need == "lock"
                self.ready.append((work, need, ms))
                return

    def took(self) -> float:
        """Run until all is done; return the milliseconds."""
        while self.ready or self.running:
            while self.ready and self.free:
                work, need, ms = self.ready.popleft()
                self.free, self.n = self.free - 1, self.n + 1
                heapq.heappush(self.running, (self.now + ms, self.n, work, need))
            self.now, _, work, need = heapq.heappop(self.running)
            self.free += 1
            if need == "lock":
                self.is_locked = bool(self.for_lock)
                if self.for_lock:
                    self.ready.append(self.for_lock.popleft())
            self.go_on(work)
        return self.now


PROCESSORS = (1, 2, 3, 4, 6, 8, 16, 32, 64)


@pytest.mark.parametrize("connections", [1, 2, 4, 16, 32])
def test_with_turns_no_number_of_processors_is_slower(connections):
    """3 parts of 100 are the beginning, when all want to read at once, and who is last."""
    took = []
    for processors in PROCESSORS:
        free = Machine(processors, connections, connections).took()
        took.append(Machine(processors, turns_on(processors), connections).took())
        assert took[-1] <= 1.03 * free, processors
    assert all(more <= 1.03 * fewer for fewer, more in pairwise(took)), took


def test_one_turn_on_three_processors_leaves_them_without_work():
    """Half of them, rounded down: reading takes 0.9 of 2.1, one of three is less than that."""
    assert Machine(3, 1, 16).took() > 1.2 * Machine(3, turns_on(3), 16).took()
