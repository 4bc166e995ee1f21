"""Quotas of tickets over all logs: who reads the logs finds the entries of each ticket.

No service tells another one what it has taken. After the deadline the destination reads all logs to
their signed ends, and finds by their marks all entries of each ticket, none forged and none hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from datacollect.bistro.destination.run.standing import SETTLES_AFTER_S
from datacollect.bistro.formats.event.marks import MarkedEntries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from datacollect.bistro.destination.marking import MarkKeys
    from datacollect.bistro.destination.run.log_table import LogTable
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.marks import MarkKey


class Logs(Protocol):
    """The logs of an event: `datacollect.bistro.destination.run.logged_entries.LoggedEntries`."""

    def table(self, event: Event, now_s: float) -> LogTable:
        """Return the entries in time that are known, with their times."""

    def unread(self, event: Event) -> tuple[str, ...]:
        """Return the services whose logs were not read to their ends."""


class Counted(NamedTuple):
    """Facts in logs that decide which drafts count.

    Attributes
    ----------
    logged : dict of str to list of (int, bytes), or None
        By the number of a ticket: its entries in time, and by when each stood in a log. None:
        entries of this event have no marks.
    is_over : bool
        Whether nothing more comes.
    """

    logged: dict[str, list[tuple[int, bytes]]] | None
    is_over: bool


@dataclass
class Quotas:
    """Says which entries are whose, and which never came, as far as logs were read.

    Attributes
    ----------
    event : Event
        As amendments have left it.
    logs : Logs
    marks : MarkKeys or None
        None: entries of the event have no marks.
    ticket_keys : mapping of str to str
        Public keys by the tickets' numbers.
    may_hold : function
        Takes an instant; returns whether any bistro, known or not, may hold what has not been heard
        of it since.
    shown : function
        Returns the entries of which people have shown that a bistro has signed for them.
    revoked_s : mapping of str to int
        By the numbers of tickets that were revoked: by when a log had published it. What others
        mark by such a ticket afterwards is none of its entries.
    proved : function
        Returns entries in time that did not come to count, with the times by which logs had them:
        what a log that cannot be read any more has proved before. Drafts that came are known to
        who asks.
    """

    event: Event
    logs: Logs
    marks: MarkKeys | None = None
    ticket_keys: Mapping[str, str] = field(default_factory=dict)
    may_hold: Callable[[int], bool] = lambda _: False
    shown: Callable[[], Collection[bytes]] = frozenset
    revoked_s: Mapping[str, int] = field(default_factory=dict)
    proved: Callable[[], Collection[tuple[int, bytes]]] = tuple
    _table: LogTable | None = None
    _marked: MarkedEntries | None = None
    _found: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    _keys: dict[str | None, MarkKey | None] = field(default_factory=dict)

    def counted(self, tickets: Iterable[str], now_s: int) -> Counted | None:
        """Return what is known of tickets; None: too little, some log was not read.

        Once nothing more comes, what can be read decides: a service that is silent stops nothing.

        Parameters
        ----------
        tickets : iterable of str
            Their numbers.
        now_s : int
            Seconds since 1970.
        """
        is_over = self.is_over(now_s)
        if self.marks is None:
            return Counted(None, is_over)
        table = self.logs.table(self.event, now_s)
        unread = self.logs.unread(self.event)
        if unread and not is_over:
            return None
        if table is not self._table or self._marked is None:
            self._table, self._marked, self._found = table, MarkedEntries(table.entries), {}
        logged = {each: self._entries_of(each) for each in tickets}
        if unread and (proved := self.proved()):
            self._add(proved, logged)
        return Counted(logged, is_over)

    def _add(
        self, proved: Collection[tuple[int, bytes]], logged: dict[str, list[tuple[int, bytes]]]
    ) -> None:
        """Add what was proved before to the entries of tickets, as far as it bears their marks."""
        times_s = {entry: time_s for time_s, entry in proved}
        items = [*times_s.items()]
        marked = MarkedEntries(np.array([*times_s], dtype="S32"))
        for ticket, known in logged.items():
            key = self._key_of(ticket)
            own = [] if key is None else [items[i] for i in marked.of(key).tolist()]
            found = {entry: time_s for time_s, entry in known}
            found |= {entry: min(time_s, found.get(entry, time_s)) for entry, time_s in own}
            rows = [(time_s, entry) for entry, time_s in found.items()]
            logged[ticket] = self._not_revoked(ticket, rows)

    def _entries_of(self, ticket: str) -> list[tuple[int, bytes]]:
        found = self._found.get(ticket)
        if found is None:
            assert self._marked is not None
            assert self._table is not None
            key = self._key_of(ticket)
            found = [] if key is None else self._table.rows(self._marked.of(key))
            self._found[ticket] = found
        return self._not_revoked(ticket, found)

    def _key_of(self, ticket: str) -> MarkKey | None:
        """Return what marks a ticket's entries, made once: a log may be silent for many rounds."""
        assert self.marks is not None
        public = self.ticket_keys.get(ticket)
        if public not in self._keys:
            self._keys[public] = self.marks.of(public)
        return self._keys[public]

    def _not_revoked(self, ticket: str, found: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        revoked_s = self.revoked_s.get(ticket)
        return found if revoked_s is None else [row for row in found if row[0] <= revoked_s]

    def absent(
        self, known_among: Callable[[Iterable[bytes]], set[bytes]], now_s: int
    ) -> list[tuple[bytes, int]]:
        """Return the entries in time that never came, each with its time.

        None as long as something may still come, or some bistro may hold them: one whose batches
        have not come whole since nothing more may come, or one that has signed for them.

        Parameters
        ----------
        known_among : function
            Which of some entries batches name.
        now_s : int
            Seconds since 1970.
        """
        if not self.is_over(now_s) or self.may_hold(self._over_s):
            return []
        table = self.logs.table(self.event, now_s)
        times_s = {entry: time_s for time_s, entry in table.rows(np.arange(len(table.entries)))}
        left = times_s.keys() - known_among(times_s) - {*self.shown()}
        return [(entry, times_s[entry]) for entry in sorted(left)]

    def is_over(self, now_s: int) -> bool:
        """Return whether nothing more comes.

        Bistros have reported all that came while there was time.
        """
        return now_s > self._over_s

    @property
    def _over_s(self) -> int:
        return self.event.collect_until_s + SETTLES_AFTER_S
