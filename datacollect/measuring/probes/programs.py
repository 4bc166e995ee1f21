"""Programs of this host that tests run, and end with them."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

# How often it is looked whether the test is over.
LOOKED_AFTER_S = 0.2


class Bounded(Protocol):
    """A test that ends by a monotonic time, or when `over` is set."""

    until_s: float
    over: threading.Event


@dataclass(frozen=True)
class Said:
    """Output of a program until its end.

    Attributes
    ----------
    out, errors : str
    is_cut : bool
        Whether it was ended with the test, or by its time.
    """

    out: str
    errors: str
    is_cut: bool

    @property
    def first_error(self) -> str:
        """The first line that it has written to standard error, or that there is none."""
        return (self.errors.strip().splitlines() or ["it says nothing"])[0][:200]


def said_by(command: Sequence[str], test: Bounded, until_s: float) -> Said:
    """Run a program in English, until it ends, the test is over, or a monotonic time has come.

    Raises
    ------
    OSError
        It cannot be run.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    ) as process:
        while True:
            try:
                return Said(*process.communicate(timeout=LOOKED_AFTER_S), is_cut=False)
            except subprocess.TimeoutExpired:
                if test.over.is_set() or time.monotonic() >= min(until_s, test.until_s):
                    process.kill()
                    return Said(*process.communicate(), is_cut=True)
