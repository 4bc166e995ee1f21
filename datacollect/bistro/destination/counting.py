"""Drafts of a ticket, and which of them count, by the times that logs prove."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Draft(NamedTuple):
    """What was collected.

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
        """Which of a ticket's drafts is the later one: a copy is as old as its original."""
        return self.time_s if self.since_s is None else self.since_s, self.entry


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


def changes(superseded_already: Mapping[Draft, bool], counts: str) -> Changes:
    """Return what is to be said now that these drafts are here: one kind, then, said, the other.

    A draft that arrives late may take the place of others, also by showing that the one that
    counts is a copy of it. Whoever reads the verdicts in their order must never be led in a
    circle: an entry is superseded only by one that is said to be collected, and by nothing since.
    So what counts again is said first. An entry that is superseded stays so by the same one,
    whatever becomes of that, until it counts again itself. As long as times stay, no verdict ever
    comes back, for who has lost a place to an earlier commitment of the same content never counts
    again.

    Parameters
    ----------
    superseded_already : mapping of Draft to bool
        Of all drafts that were collected and in time: whether that was said of them, last.
    counts : str
        As the event says.

    Examples
    --------
    >>> one, copy = Draft(5, b"a", "1", b"p"), Draft(9, b"b", "1", b"p")
    >>> changes({one: False, copy: False}, "last").beaten
    {b'b': b'a'}
    >>> changes({one: True, copy: False}, "last")
    Changes(again=[b'a'], beaten={})
    """
    found = superseded(superseded_already, counts)
    again = [
        draft.entry
        for draft, is_superseded in superseded_already.items()
        if is_superseded and draft.entry not in found
    ]
    standing = {draft.entry for draft, is_superseded in superseded_already.items() if is_superseded}
    beaten = {entry: by for entry, by in found.items() if entry not in standing}
    return Changes(again, {} if again else beaten)


def superseded(drafts: Iterable[Draft], counts: str) -> dict[bytes, bytes]:
    """Return which entries do not count, each with the one that counts instead.

    Only what was collected supersedes: where the last draft does not open, the one before counts.
    Who commits to a copy of somebody's sealed draft makes it no later one: the first such entry
    stands for all, and where it never came, a copy is as old as it. Of two in the same second the
    greater entry is the later one, for everybody alike.

    Parameters
    ----------
    drafts : iterable of Draft
        Collected and in time.
    counts : str
        ``"last"``, ``"first"`` or ``"all"``, as the event says.

    Examples
    --------
    >>> drafts = [Draft(10, b"a", "1", b"p"), Draft(20, b"b", "1", b"q"), Draft(5, b"c", "2", b"r")]
    >>> superseded(drafts, "last")
    {b'a': b'b'}
    """
    ordered = sorted(drafts)
    originals: dict[bytes, Draft] = {}
    for draft in ordered:
        originals.setdefault(draft.content, draft)
    counted: dict[str | None, Draft] = {}
    for draft in sorted(originals.values(), key=lambda each: each.order) if counts != "all" else ():
        if counts == "last" or draft.ticket not in counted:
            counted[draft.ticket] = draft
    counted.pop(None, None)
    found: dict[bytes, bytes] = {}
    for draft in ordered:
        original = originals[draft.content]
        instead = counted.get(original.ticket, original)
        if instead.entry != draft.entry:
            found[draft.entry] = instead.entry
    return found
