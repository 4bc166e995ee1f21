"""The clocks of this host, for cores."""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import Any

from datacollect.bistro.now import Now

# What adjtimex answers where the kernel knows no better source (adjtimex(2)).
TIME_ERROR = 5
# More than the kernel's struct timex has; zeros ask and change nothing.
_TIMEX_BYTES = 512
# It goes on while the host sleeps; macOS's usual one does, too.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now(*, is_trusted: bool = True) -> Now:
    """Return this instant; not `is_trusted`: whether it is synchronised the kernel is asked."""
    return Now(time.clock_gettime(_CLOCK), time.time(), is_trusted or is_synchronised())


def is_synchronised() -> bool:
    """Return whether the kernel says that its clock follows a better one.

    False where it cannot say.
    """
    adjtimex = getattr(_libc(), "adjtimex", None)
    if adjtimex is None:
        return False
    state: int = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return 0 <= state != TIME_ERROR


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
