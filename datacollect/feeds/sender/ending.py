"""Check of a receiver's report at the end of a feed, by what its sender knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from datacollect.feeds.formats.report import FeedCounts


def require_end(there: FeedCounts, here: FeedCounts, *, is_ended: bool, receiver: str) -> None:
    """Raise `ProblemError` unless a feed may have ended so: it is let go of then.

    Parameters
    ----------
    there : FeedCounts
        As the receiver says.
    here : FeedCounts
        What was made, and what was lost before it was sent, at least.
    is_ended : bool
        Whether the sender has ended it.
    receiver : str

    Examples
    --------
    >>> from datacollect.feeds.formats.report import FeedCounts
    >>> made = FeedCounts(made=3, made_bytes=12, lost=1)
    >>> there = FeedCounts(made=3, made_bytes=12, received=3, received_bytes=12)
    >>> require_end(there, made, is_ended=True, receiver="D")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: D: says that 3 messages of 3 came and 0 are missing, where...
    """
    if not is_ended or (there.made, there.made_bytes) != (here.made, here.made_bytes):
        raise ProblemError(
            f"{receiver}: has ended this feed after {there.made} messages, where {here.made} were "
            f"made{'' if is_ended else ' so far'}; check its files, and begin another feed"
        )
    if (
        there.received + there.lost != there.made
        or there.received_bytes + there.lost_bytes != there.made_bytes
        or there.lost < here.lost
    ):
        raise ProblemError(
            f"{receiver}: says that {there.received} messages of {there.made} came and "
            f"{there.lost} are missing, where {here.lost} "
            f"{'was' if here.lost == 1 else 'were'} not sent; its report cannot be trusted, check "
            "its files"
        )
