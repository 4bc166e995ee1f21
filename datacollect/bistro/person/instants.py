"""Instants in words, for people: whose clock it is, is always said."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(time_s: float | None) -> str | None:
    """Return an instant as ISO 8601 in UTC.

    >>> utc_text(1_807_847_999)
    '2027-04-16T03:59:59Z'
    """
    if time_s is None:
        return None
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds")[:-6] + "Z"


def both_clocks(time_s: float) -> str:
    """Return an instant by the clock of this host's zone, and in UTC where that is another one."""
    utc = datetime.fromtimestamp(time_s, UTC)
    here = utc.astimezone()
    if not here.utcoffset():
        return f"{utc:%a %Y-%m-%d %H:%M:%S} UTC"
    offset = here.isoformat(timespec="seconds")[19:]
    return f"{here:%a %Y-%m-%d %H:%M:%S} {offset} ({utc:%Y-%m-%d %H:%M:%S} UTC)"
