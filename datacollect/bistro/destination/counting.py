"""Drafts of a ticket, and which of them count, by the times that logs prove."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Draft(NamedTuple):
    """Draft that was collected.

    Attributes
    ----------
    time_s : int
        By when it stood in a log.
    entry : bytes
    ticket : str or None
        The number that lies inside the seal; None where the event admits everybody.
    content : bytes
        The code of the content, which nobody has twice but who copies a ciphertext.
    since_s : int or None
        By when its content stood in a log, by this entry or another one, collected or not; None: by
        none before this one.
    """

    time_s: int
    entry: bytes
    ticket: str | None
    content: bytes
    since_s: int | None = None

    @property
    def order(self) -> tuple[int, bytes]:
        """Return which of a ticket's drafts is the later one: a copy is as old as its original."""
        return self.time_s if self.since_s is None else self.since_s, self.entry


class Quota(NamedTuple):
    """Part of a ticket's entries that may count: the first in all logs, as many as it is good for.

    Attributes
    ----------
    entries : tuple of (int, bytes)
        By when each stood in a log, and the entry; rising.
    absent : frozenset of bytes
        Those of them that never came, as was said.
    is_settled : bool
        Whether all that comes of them has come.
    """

    entries: tuple[tuple[int, bytes], ...]
    absent: frozenset[bytes] = frozenset()
    is_settled: bool = True

    def holds(self, entry: bytes) -> bool:
        """Return whether an entry may count."""
        return any(each == entry for _, each in self.entries)


class Changes(NamedTuple):
    """Verdicts that are to be said now.

    Attributes
    ----------
    again : list of bytes
        Entries that were superseded, and count again.
    beaten : dict of bytes to bytes
        Collected entries that do not count, each with the one that counts instead.
    """

    again: list[bytes]
    beaten: dict[bytes, bytes]


def changes(
    superseded_already: Mapping[Draft, bool],
    counts: str,
    quotas: Mapping[str | None, Quota] | None = None,
    never_came: str = "another",
) -> Changes:
    """Return what is to be said now that these drafts are here: one kind, then, said, the other.

    A draft that arrives late may take the place of others, also by showing that the one that
    counts is a copy of it. Whoever reads the verdicts in their order must never be led in a
    circle: an entry is superseded only by one that is said to be collected, and by nothing since;
    or by one of which it is said that it will never be. So what counts again is said first. An
    entry that is superseded stays so by the same one, whatever becomes of that, until it counts
    again itself. As long as times stay, no verdict ever comes back, for who has lost a place to an
    earlier commitment of the same content never counts again.

    Parameters
    ----------
    superseded_already : mapping of Draft to bool
        Of all drafts that were collected and in time: whether that was said of them, last.
    counts, quotas, never_came
        As for `superseded`.

    Examples
    --------
    >>> one, copy = Draft(5, b"a", "1", b"p"), Draft(9, b"b", "1", b"p")
    >>> changes({one: False, copy: False}, "last").beaten
    {b'b': b'a'}
    >>> changes({one: True, copy: False}, "last")
    Changes(again=[b'a'], beaten={})
    """
    found = superseded(superseded_already, counts, quotas, never_came)
    again = [
        draft.entry
        for draft, is_superseded in superseded_already.items()
        if is_superseded and draft.entry not in found
    ]
    standing = {draft.entry for draft, is_superseded in superseded_already.items() if is_superseded}
    beaten = {entry: by for entry, by in found.items() if entry not in standing}
    return Changes(again, {} if again else beaten)


def superseded(
    drafts: Iterable[Draft],
    counts: str,
    quotas: Mapping[str | None, Quota] | None = None,
    never_came: str = "another",
) -> dict[bytes, bytes]:
    """Return which entries do not count, each with the one that counts instead.

    Only what was collected supersedes: where the last draft does not open, the one before counts.
    Who commits to a copy of somebody's sealed draft makes it no later one: the first such entry
    stands for all, and where it never came, a copy is as old as it. Of two in the same second the
    greater entry is the later one, for everybody alike.

    What a ticket is not good for any more never counts. Where nothing has come of all that it is
    good for, that counts instead.

    Parameters
    ----------
    drafts : iterable of Draft
        Collected and in time.
    counts : str
        ``"last"``, ``"first"`` or ``"all"``, as the event says.
    quotas : mapping of str to Quota, optional
        By the ticket's number; of others all may count.
    never_came : str
        ``"another"``: where the draft that would count never came, another one does;
        ``"none"``: none does.

    Examples
    --------
    >>> drafts = [Draft(10, b"a", "1", b"p"), Draft(20, b"b", "1", b"q"), Draft(5, b"c", "2", b"r")]
    >>> superseded(drafts, "last")
    {b'a': b'b'}
    >>> superseded(drafts, "last", {"1": Quota(((10, b"a"),))})
    {b'b': b'a'}
    """
    quotas = quotas or {}
    ordered = sorted(drafts)
    originals: dict[bytes, Draft] = {}
    for draft in ordered:
        originals.setdefault(draft.content, draft)
    came: dict[str | None, list[tuple[int, bytes]]] = {}
    for draft in originals.values():
        if draft.ticket not in quotas or quotas[draft.ticket].holds(draft.entry):
            came.setdefault(draft.ticket, []).append(draft.order)
    instead = {
        ticket: _counting(came.get(ticket, []), quotas.get(ticket), counts, never_came)
        for ticket in {*came, *quotas} - {None}
    }
    found: dict[bytes, bytes] = {}
    for draft in ordered:
        original = originals[draft.content]
        counted = instead.get(original.ticket)
        quota = quotas.get(original.ticket)
        if counts == "all" and (quota is None or quota.holds(original.entry)):
            counted = original.entry
        counted = original.entry if counted is None else counted
        if counted != draft.entry:
            found[draft.entry] = counted
    return found


def _counting(
    came: list[tuple[int, bytes]], quota: Quota | None, counts: str, never_came: str
) -> bytes | None:
    """Return which entry of a ticket stands for all that do not count; None: there is none."""
    pick = min if counts == "first" else max
    some = [*came]
    if quota is not None and never_came == "none" and counts != "all":
        some += [each for each in quota.entries if each[1] in quota.absent]
    if quota is not None and not some:
        some = [*quota.entries]
    return pick(some)[1] if some else None
