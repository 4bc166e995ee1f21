"""What the head of an answer is worth: to a request for a range, or for a file's size.

After RFC 9110 (2022): ranges, ETag, If-Range, Retry-After.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from datacollect.kinds import BYTES_STOP
from datacollect.net.safe_text import safe_text
from datacollect.transfer.sources.web.messages import Answer, AskRange, AskSize, Worth
from datacollect.transfer.sources.web.urls import expiry_unix_s
from datacollect.transfer.sources.web.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.transfer.sources.web.urls import Target

_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19}|\*)", re.ASCII)
# To wait where a server says that it cannot now, and not how long.
BUSY_S, LONGEST_RETRY_S = 2.0, 24 * 3600.0
BUSY = (408, 425, 429, 502, 503, 504)


class Head(NamedTuple):
    """Status and headers of an answer, names in lowercase, the last of each name."""

    status: int
    headers: Mapping[str, str]

    @property
    def length(self) -> int | None:
        """Bytes of the body, where it says so, and nothing else says where it ends."""
        if "transfer-encoding" in self.headers:
            return None
        text = self.headers.get("content-length", "")
        return int(text) if re.fullmatch(r"\d{1,19}", text, re.ASCII) else None

    @property
    def version(self) -> Version:
        """Which version it is of."""
        return Version(self.headers.get("etag"), self.headers.get("last-modified"))


def judged(asked: AskRange | AskSize, head: Head, target: Target, now_unix_s: float) -> Answer:
    """Return what an answer is worth, redirects and waiting aside.

    A good answer to a request for a range still has to bring its bytes.

    Parameters
    ----------
    asked : AskRange or AskSize
    head : Head
    target : Target
        What was asked in the end.
    now_unix_s : float
        To tell which presigned URL has expired.
    """
    status = head.status
    encoding = head.headers.get("content-encoding", "identity").strip().lower()
    if status in (200, 206) and encoding not in ("identity", ""):
        return Answer(
            Worth.REFUSED,
            f"the server sends it encoded ({safe_text(encoding)}), though it was asked not to; "
            "turn compression off for these files",
        )
    if status in (404, 410):
        return Answer(Worth.GONE, f"the server has no such file ({status})")
    if status in (401, 403, 407):
        return Answer(Worth.REFUSED, _not_allowed(status, target, now_unix_s))
    if isinstance(asked, AskSize):
        return _size(head)
    return _range(asked, head)


def tells_no_size(head: Head) -> bool:
    """Whether a server refuses a file's first byte and does not say how many there are.

    It may be an empty file, or a server that refuses all ranges: to be asked without one.
    """
    return head.status == 416 and "content-range" not in head.headers


def _size(head: Head) -> Answer:
    """Judge the answer to a request for a file's first byte: empty is what is said to be empty."""
    found = _CONTENT_RANGE.fullmatch(head.headers.get("content-range", ""))
    if head.status == 206:
        is_first = found is not None and (found[1], found[2]) == ("0", "0")
        if not found or not is_first or found[3] == "*" or int(found[3]) == 0:
            return Answer(Worth.REFUSED, _wrong_range(head, "0-0"))
        if int(found[3]) >= BYTES_STOP:
            return Answer(Worth.REFUSED, f"{safe_text(found[3])} bytes are more than there can be")
        return Answer(Worth.GOOD, "", int(found[3]), head.version)
    if head.status == 416 and found and found[1] is None and found[3] != "*":
        if int(found[3]) == 0:
            return Answer(Worth.GOOD, "", 0, head.version)
        why = f"the server says that it has {int(found[3])} bytes, and refuses the first (416)"
        return Answer(Worth.REFUSED, why)
    if head.status == 200 and head.length in (0, 1):
        return Answer(Worth.GOOD, "", head.length, head.version)
    if head.status == 200:
        return Answer(Worth.REFUSED, NO_RANGES)
    return Answer(Worth.UNREADABLE, f"the server answers with status {head.status}")


NO_RANGES = "the server sends whole files only: it must know ranges (Accept-Ranges: bytes)"


def _range(asked: AskRange, head: Head) -> Answer:
    last = asked.offset_bytes + asked.n_bytes - 1
    if head.status in (412, 416):
        return Answer(Worth.CHANGED, f"the server does not have these bytes ({head.status})")
    if head.status not in (200, 206):
        return Answer(Worth.UNREADABLE, f"the server answers with status {head.status}")
    if asked.version.is_other(head.version):
        return Answer(Worth.CHANGED, "the server has another version by now")
    if head.status == 200:
        return _whole(asked, head)
    found = _CONTENT_RANGE.fullmatch(head.headers.get("content-range", ""))
    if found and found[3] not in ("*", str(asked.file_bytes)):
        return Answer(Worth.CHANGED, f"it has {found[3]} bytes by now, not {asked.file_bytes}")
    is_right = found and (found[1], found[2]) == (str(asked.offset_bytes), str(last))
    if not is_right or head.length not in (None, asked.n_bytes):
        return Answer(Worth.UNREADABLE, _wrong_range(head, f"{asked.offset_bytes}-{last}"))
    return Answer(Worth.GOOD)


def _whole(asked: AskRange, head: Head) -> Answer:
    """Judge a whole file where a range was wanted: as good, if the range is all of it."""
    if asked.n_bytes == asked.file_bytes == head.length:
        return Answer(Worth.GOOD)
    if asked.version.strong_etag is not None and head.version.etag is None:
        return Answer(Worth.CHANGED, "the server has another version by now")
    if head.length is not None and head.length != asked.file_bytes:
        return Answer(Worth.CHANGED, f"it has {head.length} bytes by now, not {asked.file_bytes}")
    return Answer(Worth.REFUSED, NO_RANGES)


def _wrong_range(head: Head, wanted: str) -> str:
    given = safe_text(head.headers.get("content-range", "nothing"))
    return f"the server was asked for bytes {wanted}, and says that it sends {given}"


def _not_allowed(status: int, target: Target, now_unix_s: float) -> str:
    expires_s = expiry_unix_s(target)
    if expires_s is not None and expires_s <= now_unix_s:
        when = datetime.fromtimestamp(expires_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"its URL expired at {when} ({status}); have it signed anew"
    if "?" in target.path:
        return (
            f"the server does not let us have it ({status}): its URL may have expired, or be for "
            "another method than GET; have it signed anew"
        )
    return f"the server does not let us have it ({status})"


def wait_s(head: Head, now_unix_s: float) -> float | None:
    """Return how long to leave a server alone; None where it does not ask for that.

    >>> wait_s(Head(503, {"retry-after": "30"}), 0.0), wait_s(Head(200, {}), 0.0)
    (30.0, None)
    """
    if head.status not in BUSY:
        return None
    text = head.headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", text, re.ASCII):
        return min(float(text), LONGEST_RETRY_S)
    try:
        later_s = parsedate_to_datetime(text).timestamp() - now_unix_s
    except (TypeError, ValueError, OverflowError):
        return BUSY_S
    return min(max(later_s, 0.0), LONGEST_RETRY_S)
