"""What a pull shows on a terminal while it is at work: a line for each source."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacollect.units import format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.transfer.pull.core import CollectorCore


@contextmanager
def watching() -> Iterator[Callable[[CollectorCore], None] | None]:
    """Yield what shows a core on standard error, if that is a terminal; else None."""
    if sys.stderr is None or not sys.stderr.isatty():  # None: started with 2>&-
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False, markup=False)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        pace = Pace()
        yield lambda core: live.update(pace.line(core, time.monotonic()))


class Pace:
    """Says how far a collection is, how fast, and how long it will take.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> pace = Pace()
    >>> pace.line(SimpleNamespace(left_bytes=3_000_000, given_up={}), 0.0)
    '3 MB left'
    >>> pace.line(SimpleNamespace(left_bytes=2_000_000, given_up={}), 1.0)
    '2 MB left, 8 Mbit/s, about 2 s'
    """

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None
        self._rate = 0.0

    def line(self, core: CollectorCore, now_s: float) -> str:
        """Return a line about a core at an instant."""
        left = core.left_bytes
        if self._before is not None and now_s > self._before[0]:
            rate = max(0, self._before[1] - left) / (now_s - self._before[0])
            self._rate = rate if not self._rate else 0.9 * self._rate + 0.1 * rate
        self._before = now_s, left
        words = [f"{format_bytes(left)} left"]
        if self._rate > 0:
            words += [format_rate(self._rate), f"about {format_duration(left / self._rate)}"]
        if core.given_up:
            words.append(f"given up: {', '.join(core.given_up)}")
        return ", ".join(words)
