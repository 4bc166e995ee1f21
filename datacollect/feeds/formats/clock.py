"""A clock that nobody sets: its stamps compare within one host, and after a comparison between two.

It counts on from the time of day at which its program began, whatever becomes of that.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return which start of which host this is; "": the system does not say."""
    with suppress(OSError, ValueError):
        return BOOT.read_text(encoding="ascii").strip()
    return ""


class SteadyClock:
    """Nanoseconds since 1970, as this host had them when the program began.

    Attributes
    ----------
    boot : str
        Which start of which host; where the system does not say, of which program.
    base_ns : int
        What `now_ns` says beyond the clock that all programs of one start share.
    """

    def __init__(self) -> None:
        self.base_ns = time.time_ns() - time.monotonic_ns()
        self.boot = boot_id() or secrets.token_hex(16)

    def now_ns(self) -> int:
        """Return this instant."""
        return self.base_ns + time.monotonic_ns()
