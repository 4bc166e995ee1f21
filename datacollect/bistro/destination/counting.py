"""Which of a ticket's drafts count, by the times that logs prove."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Draft(NamedTuple):
    """What was collected: whose it is, by when it stood in a log, its entry.

    `ticket` is the number that lies inside the seal; None where the event admits everybody.
    """

    ticket: str | None
    time_s: int
    entry: bytes


def superseded(drafts: Iterable[Draft], counts: str) -> dict[bytes, bytes]:
    """Return which entries do not count, each with the one that counts instead.

    Only what was collected supersedes: where the last draft does not open, the one before counts.
    Of two in the same second the greater entry is the later one, for everybody alike.

    Parameters
    ----------
    drafts : iterable of Draft
        Collected and in time.
    counts : str
        ``"last"``, ``"first"`` or ``"all"``, as the event says.

    Examples
    --------
    >>> superseded([Draft("1", 10, b"a"), Draft("1", 20, b"b"), Draft("2", 5, b"c")], "last")
    {b'a': b'b'}
    """
    if counts == "all":
        return {}
    choose = max if counts == "last" else min
    of_ticket: dict[str, list[Draft]] = {}
    for draft in drafts:
        if draft.ticket is not None:
            of_ticket.setdefault(draft.ticket, []).append(draft)
    found: dict[bytes, bytes] = {}
    for some in of_ticket.values():
        counted = choose(some).entry
        found |= {draft.entry: counted for draft in some if draft.entry != counted}
    return found
