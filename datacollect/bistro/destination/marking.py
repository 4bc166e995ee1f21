"""Marks of all tickets, for who has the private key of the log of verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.marks import marking
from datacollect.errors import ProblemError
from datacollect.net.keys import public_key_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.marks import MarkKey
    from datacollect.bistro.http.config import DestinationConfig
    from datacollect.net.keys import PrivateKey

# So many keys are made at once, whether all are wanted or not.
TOGETHER = 100


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
        return next(self.each_of([ticket_key]))

    def each_of(self, ticket_keys: Iterable[str | None]) -> Iterator[MarkKey | None]:
        """Yield what marks the entries of each of many tickets, as `of` does."""
        keys_with, left = marking(self.event, self.key), iter(ticket_keys)
        while some := [_raw(each) for each in islice(left, TOGETHER)]:
            made = keys_with([raw for raw in some if raw is not None])
            yield from (None if raw is None else next(made) for raw in some)


def _raw(ticket_key: str | None) -> bytes | None:
    """Return the bytes of a key; None: nobody holds it."""
    if ticket_key is None:
        return None
    try:
        return public_key_bytes(ticket_key)
    except ProblemError:
        return None


def mark_keys(event: Event, config: DestinationConfig, name: str) -> MarkKeys | None:
    """Return what makes marks; None: entries have none, or the key for them is lost.

    Parameters
    ----------
    event : Event
        As its file says, without amendments.
    config : DestinationConfig
    name : str
        Of the destination's file.

    Raises
    ------
    ProblemError
        Another key is given than the one by which people mark their entries.
    """
    if not event.has_marks or event.verdicts is None or config.mark_key is None:
        return None
    if config.mark_key.public != event.verdicts.key:
        raise ProblemError(
            f"{name}: mark_key must be the key of the first log of verdicts, "
            f"{event.verdicts.text}, by which people mark their entries; take the file of its "
            'private key, or, if nobody has it any longer, write mark_key = "lost"'
        )
    return MarkKeys(event, config.mark_key)
