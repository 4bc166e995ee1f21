"""Marks of all tickets, for who has the private key of the log of verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.marks import mark_key
from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.marks import MarkKey
    from datacollect.net.keys import PrivateKey


@dataclass(frozen=True)
class MarkKeys:
    """Makes what marks the entries of a ticket.

    Attributes
    ----------
    event : Event
    key : PrivateKey
        That of the log of verdicts which the event's file names.
    """

    event: Event
    key: PrivateKey = field(repr=False)

    def of(self, ticket_key: str | None) -> MarkKey | None:
        """Return what marks a ticket's entries, by its public key; None: nobody holds that."""
        try:
            return None if ticket_key is None else mark_key(self.event, self.key, ticket_key)
        except ProblemError:
            return None
