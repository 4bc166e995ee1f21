"""The hashes of tickets' secrets, read anew where more people have been given tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.destination.keys import ticket_secrets
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from datacollect.bistro.formats.event.event import Event


class TicketSecrets:
    """Reads the organiser's folder of tickets when it has changed.

    Parameters
    ----------
    folder : Path or None
        None: the event admits everybody.
    say : callable
        Told what is wrong with a ticket that came later: those known before are gone on with.
    """

    def __init__(self, folder: Path | None, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        self._written_ns = -1
        self._found: dict[str, bytes] | None = None

    def of(self, event: Event) -> dict[str, bytes] | None:
        """Return them by number; None: the event admits everybody.

        Raises
        ------
        ProblemError
            The first time: there are none, or one is of another event, or damaged.
        """
        if self._folder is None:
            return None
        written_ns = self._folder.stat().st_mtime_ns if self._folder.is_dir() else -2
        if written_ns != self._written_ns:
            try:
                self._found = ticket_secrets(self._folder, event)
                self._written_ns = written_ns
            except ProblemError as error:
                if self._found is None:
                    raise
                self._say(f"{error}; the tickets that were known before count")
        return self._found
