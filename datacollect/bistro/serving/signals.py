"""What signals tell a server: to end, and to take its certificate anew."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable


class Told:
    """SIGTERM and SIGINT set `to_end`, SIGHUP has the certificate reread; in the running loop.

    Parameters
    ----------
    reread : function
        Raises `ProblemError` where that cannot be.
    say : function
        Takes each line of the log, in words.
    """

    def __init__(self, reread: Callable[[], None], say: Callable[[str], None]) -> None:
        self.to_end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.to_end.set)
        loop.add_signal_handler(signal.SIGHUP, saying, reread, say)


def saying(reread: Callable[[], None], say: Callable[[str], None]) -> None:
    """Reread a certificate; say where that cannot be."""
    try:
        reread()
    except ProblemError as error:
        say(f"the certificate is not reread, the old one stays: {error}")
