"""What is said of hosts that cannot be had at present: within three seconds, each reason once."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.transfer.pull.words import named
from datacollect.transfer.store.folder.log import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from datacollect.transfer.pull.config.file import Limits
    from datacollect.transfer.pull.core.core import CollectorCore

# Who has not answered for so long is named: within three seconds, with the time between two looks.
SILENT_S = 1.5


@dataclass
class Telling:
    """Says what is tried again, and for how long.

    Attributes
    ----------
    limits : Limits
        Of the collection.
    tell : callable
        Takes lines that a user wants to know at once.
    failed : set of str
        Hosts of which it was said that a try has failed.
    """

    limits: Limits
    tell: Callable[[str], None]
    failed: set[str] = field(default_factory=set)
    _asked_s: dict[str, float] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)

    def asks(self, name: str) -> None:
        """A host is asked for the first time, or again from the beginning."""
        self._asked_s[name] = time.monotonic()

    def has_failed(self, name: str, why: str) -> None:
        """A try to reach a host, or to list it, has failed; the first is told."""
        if name not in self.failed:
            self.failed.add(name)
            self.tell(
                f"note: {named(name, why)}; it is tried again for {self.limits.patience_s:g} s"
            )

    def look(self, reached: Collection[str], core: CollectorCore | None) -> None:
        """Say who has not answered yet, and from whom nothing comes any more."""
        for name, asked_s in list(self._asked_s.items()):
            if name in reached or name in self.failed:
                del self._asked_s[name]
            elif time.monotonic() - asked_s >= SILENT_S:
                del self._asked_s[name]
                self.tell(
                    f"note: {name}: no answer yet; a try may take {self.limits.timeout_s:g} s, and "
                    f"it is tried for {self.limits.patience_s:g} s"
                )
        troubles = {} if core is None else core.troubles(SILENT_S)
        for name, why in sorted(troubles.items() - self._told):
            self._told.add((name, why))
            self.tell(
                f"note: {named(name, without_secrets(why))}; it is tried again, and given up when "
                f"nothing has come for {self.limits.patience_s:g} s"
            )
