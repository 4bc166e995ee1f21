"""Notices of hosts that cannot be had at present: within three seconds, each reason once."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.net.safe_text import without_secrets
from datacollect.transfer.pull.words import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.transfer.pull.config.file import Limits
    from datacollect.transfer.pull.core.core import CollectorCore

# A host that has not answered for this time is named: within 3 s, with the time between two looks.
# Of sessions bytes are looked at more often, and a packet that is lost twice is no reason.
SILENT_S, STOPPED_S = 1.5, 2.0
# What is asked of a host, of which nobody knows the number of steps.
LIST = "list of its files"


@dataclass
class Notices:
    """Says what is tried again, and for how long.

    Attributes
    ----------
    limits : Limits
        Of the collection.
    report : callable
        Takes lines that a user wants to know at once.
    failed : set of str
        Hosts of which it was said that a try has failed.
    """

    limits: Limits
    report: Callable[[str], None]
    failed: set[str] = field(default_factory=set)
    _asked: dict[str, tuple[float, str]] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    @contextmanager
    def asking(self, name: str, what: str) -> Iterator[None]:
        """Ask a host, from its own thread; `what` is to come of it, as ``answer``."""
        self._asked[name] = time.monotonic(), what
        try:
            yield
        finally:
            del self._asked[name]

    def has_failed(self, name: str, why: str) -> None:
        """A try to reach a host, or to list it, has failed; the first is reported."""
        if name not in self.failed:
            self.failed.add(name)
            self.report(
                f"note: {named(name, why)}; the pull tries it again for "
                f"{self.limits.patience_s:g} s"
            )

    def kept(self, name: str, n_files: int, why: str, *, is_asked: bool) -> None:
        """Verified files are kept that their source does not confirm, and why the first; said once.

        `is_asked`: the user has said that this will do.
        """
        files = (
            "1 file is kept as it was" if n_files == 1 else f"{n_files} files are kept as they were"
        )
        then = (
            "they count, because of --keep"
            if is_asked
            else "if the kept copies are good enough, start with --keep"
        )
        self._tell_once(name, f"{files} verified, since it does not confirm them: {why}", then)

    def look(self, core: CollectorCore | None) -> None:
        """Say who has not answered yet, and from whom nothing comes any more."""
        for name, (asked_s, what) in list(self._asked.items()):
            if time.monotonic() - asked_s >= SILENT_S and name not in self.failed:
                self._tell_once(name, f"no {what} yet", self._how_long(what))
        if core is None:
            return
        until = f"given up after {self.limits.patience_s:g} s without data"
        for name, why in sorted(core.troubles(SILENT_S).items()):
            self._tell_once(name, without_secrets(why), f"it is tried again, and {until}")
        for name, what in sorted(core.awaited(STOPPED_S).items()):
            self._tell_once(
                name,
                f"no {what} for {STOPPED_S:g} s",
                f"it is tried again after {self.limits.timeout_s:g} s at most, and {until}",
            )

    def troubles(self, core: CollectorCore | None) -> dict[str, str]:
        """Return whom nothing comes from at present, or no answer, and why."""
        now_s = time.monotonic()
        found = {
            name: f"no {what} for {now_s - asked_s:.0f} s"
            for name, (asked_s, what) in list(self._asked.items())
            if now_s - asked_s >= SILENT_S
        }
        if core is not None:
            awaited = core.awaited(STOPPED_S).items()
            found |= {name: f"no {what} for some seconds" for name, what in awaited}
            found |= core.troubles(SILENT_S)
        return {name: without_secrets(why) for name, why in found.items()}

    def _how_long(self, what: str) -> str:
        timeout_s, patience_s = self.limits.timeout_s, self.limits.patience_s
        if what == LIST:
            words = f"each part of it may take {timeout_s:g} s, and it is given up where too little"
            return f"{words} comes for {patience_s:g} s"
        return f"a try may take {timeout_s:g} s, and it is tried for {patience_s:g} s"

    def _tell_once(self, name: str, why: str, then: str) -> None:
        if (name, why) not in self._told:
            self._told.add((name, why))
            self.report(f"note: {named(name, why)}; {then}")
