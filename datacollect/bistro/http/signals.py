"""Signals of a server: to end, and to read its certificate again."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def given_back() -> Generator[None]:
    """Let signals do afterwards what they did before, be it nothing, as SIGHUP under `nohup`.

    A loop that ends puts all that it handled back to the default, which ends a process.
    """
    before = {number: signal.getsignal(number) for number in HANDLED}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # what C has set up Python cannot
                signal.signal(number, handler)


class Told:
    """SIGTERM and SIGINT set `to_end`, SIGHUP has the certificate reread; in the running loop.

    Parameters
    ----------
    reread : function
        Raises `ProblemError` where that cannot be.
    report : function
        Takes each line of the log, in words.
    """

    def __init__(self, reread: Callable[[], None], report: Callable[[str], None]) -> None:
        self.to_end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.to_end.set)
        loop.add_signal_handler(signal.SIGHUP, saying, reread, report)


def saying(reread: Callable[[], None], report: Callable[[str], None]) -> None:
    """Reread a certificate; say where that cannot be."""
    try:
        reread()
    except ProblemError as error:
        report(f"the certificate could not be read again, the old one stays in use: {error}")
