"""Which of a ticket's drafts count, by the times that logs prove."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    """

    time_s: int
    entry: bytes
    ticket: str | None
    content: bytes


def superseded(drafts: Iterable[Draft], counts: str) -> dict[bytes, bytes]:
    """Return which entries do not count, each with the one that counts instead.

    Only what was collected supersedes: where the last draft does not open, the one before counts.
    Who commits to a copy of somebody's sealed draft makes it no later one: the first such entry
    stands for all. Of two in the same second the greater entry is the later one, for everybody
    alike.

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
    for draft in originals.values() if counts != "all" else ():
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
