"""Limits of time of experiments: what exceeds one is tried again, alone, with ten times as much.

Work that is slow beside other work ends by then; work that hangs does not. Nothing of the program
is imported here, for a copy of it loads this, too.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FACTOR = 10.0
# A run without a fault may fail so often beside other work, before any experiment can be planned.
CLEAN_TRIES = 5
# Whoever waits looks more often than this, if the machine lets it.
MOST_BETWEEN_LOOKS_S = 0.1
LOOKS_EVERY_S = 0.02
_factors = [1.0]


class Late(AssertionError):
    """Something has not come in time: no verdict before it was tried with more time."""


def limit_s(seconds: float) -> float:
    """Return a limit as it is at present."""
    return seconds * _factors[-1]


def are_longer() -> bool:
    """Whether limits are ten times as long at present."""
    return len(_factors) > 1


@contextmanager
def longer() -> Iterator[None]:
    """Have all limits ten times as long."""
    _factors.append(FACTOR)
    try:
        yield
    finally:
        _factors.pop()


class Waiting:
    """Time that somebody waits: pauses in which nobody could look do not count.

    Parameters
    ----------
    limit_s : float
        As it is: who waits longer by `limit_s` has it multiplied.
    """

    def __init__(self, limit_s: float) -> None:
        self._left_s = limit_s
        self._looked_s = time.monotonic()

    def is_over(self) -> bool:
        """Look at the clock: whether the limit is reached."""
        now_s = time.monotonic()
        self._left_s -= min(now_s - self._looked_s, MOST_BETWEEN_LOOKS_S)
        self._looked_s = now_s
        return self._left_s <= 0


def said(child: subprocess.Popen[str], seconds: float) -> tuple[str, str] | None:
    """Return what a process said until its end; None where it goes on after a limit."""
    waiting = Waiting(limit_s(seconds))
    while not waiting.is_over():
        try:
            return child.communicate(timeout=LOOKS_EVERY_S)
        except subprocess.TimeoutExpired:
            pass
    return None


def carried_out(command: list[str], seconds: float, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a command and return how it ended; `Late` where it does not."""
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **how,
    )
    texts = said(child, seconds)
    if texts is None:
        child.kill()
        child.communicate()
        raise Late(f"{command} has not ended after {limit_s(seconds):g} s")
    return subprocess.CompletedProcess(command, child.returncode, *texts)
