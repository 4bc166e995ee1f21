"""Evidence in the head of a response: a file's size and version, and which range follows.

After RFC 9110 (2022): ranges (14), 206 (15.3.7), 416 (15.5.17), ETag (8.8.3), If-Range (13.1.5).
`docs/collecting_details.md` has the same as a table. No status alone proves a size.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from datacollect.files.kinds import BYTES_STOP
from datacollect.files.media import ContentKind, is_promised
from datacollect.net.safe_text import safe_text
from datacollect.transfer.sources.web.core.messages import AskRange, AskSize, FileAnswer, Worth
from datacollect.transfer.sources.web.core.refusals import (
    MISDIRECTED,
    NO_RANGES,
    encoded,
    login_page,
    moved_without_a_word,
    not_allowed,
    not_relayed,
)
from datacollect.transfer.sources.web.core.urls import expiry_unix_s, name_in

if TYPE_CHECKING:
    from datacollect.transfer.sources.web.core.heads import Head
    from datacollect.transfer.sources.web.core.urls import Target

# Units are the same in any case (14.1).
_CONTENT_RANGE = re.compile(
    r"bytes (?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19}|\*)", re.ASCII | re.IGNORECASE
)


class ContentRange(NamedTuple):
    """Value of the header Content-Range; None: that it does not know, or that there is none."""

    first: int | None
    last: int | None
    total: int | None


def content_range(head: Head) -> ContentRange | None:
    """Return what it says of bytes; None where it is absent, given twice, or no such thing.

    >>> from datacollect.transfer.sources.web.core.heads import Head
    >>> content_range(Head(206, {"content-range": "bytes 0-0/7"}))
    ContentRange(first=0, last=0, total=7)
    >>> content_range(Head(206, {"content-range": "bytes 0-0/7, bytes 0-0/8"})) is None
    True
    """
    found = _CONTENT_RANGE.fullmatch(head.headers.get("content-range", ""))
    if found is None:
        return None
    first, last = (None, None) if found[1] is None else (int(found[1]), int(found[2]))
    return ContentRange(first, last, None if found[3] == "*" else int(found[3]))


# Sizes ----------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """Evidence of one response on a file's size.

    Attributes
    ----------
    answer : FileAnswer
        What it is worth by itself.
    n_bytes : int or None
        The size that it speaks of; None: of none.
    is_proof : bool
        Whether no other question is needed.
    """

    answer: FileAnswer
    n_bytes: int | None = None
    is_proof: bool = True

    @property
    def may_be_doubted(self) -> bool:
        """Return whether it says something of the file that another answer could contradict."""
        return self.answer.worth in (Worth.GOOD, Worth.GONE)


def by_first_byte(asked: AskSize, head: Head, target: Target, now_unix_s: float) -> Evidence:
    """Return what the answer to a request for a file's first byte says.

    Parameters
    ----------
    asked : AskSize
    head : Head
    target : Target
        What was asked in the end.
    now_unix_s : float
        To find out whether a presigned URL has expired.
    """
    if (answer := _refusal(asked, head, target, now_unix_s)) is not None:
        return Evidence(answer)
    if head.status == 206:
        return _by_part(head)
    if head.status == 416:
        found = content_range(head)
        total = None if found is None or found.first is not None else found.total
        if total == 0:
            return Evidence(_good(0, head), 0, is_proof=False)
        says = "" if total is None else f"says that it has {total} bytes, and "
        why = f"the server {says}refuses the first (416): it {NO_RANGES}"
        return Evidence(FileAnswer(Worth.REFUSED, why), total, is_proof=False)
    if head.length in (0, 1):
        return Evidence(_good(head.length, head), head.length, is_proof=False)
    return Evidence(FileAnswer(Worth.REFUSED, f"the server {NO_RANGES}", head.length or 0))


def by_whole(asked: AskSize, head: Head, target: Target, now_unix_s: float) -> Evidence:
    """Return what the head of the whole file says, which was asked for without a range."""
    if (answer := _refusal(asked, head, target, now_unix_s)) is not None:
        return Evidence(answer)
    if head.status != 200:
        why = f"the server answers with status {head.status}, though no range was asked for"
        return Evidence(FileAnswer(Worth.REFUSED, why))
    return Evidence(_good(head.length or 0, head), head.length)


def settled(first: Evidence, whole: Evidence) -> FileAnswer:
    """Return what two questions prove together: nothing where they contradict each other."""
    one, other = first.answer, whole.answer
    if Worth.GONE in (one.worth, other.worth) and one.worth is not Worth.REFUSED:
        return one if one.worth is other.worth else _contradiction(first, whole)
    if one.worth is Worth.REFUSED:
        return _judged_by_whole(first, whole)
    if other.worth is not Worth.GOOD or one.version.is_other(other.version):
        return _contradiction(first, whole)
    if whole.n_bytes is None:
        # Where a part has come of a file that has more, this is no contradiction.
        return one if first.is_proof else FileAnswer(Worth.REFUSED, SIZE_UNKNOWN)
    return one if first.n_bytes == whole.n_bytes else _contradiction(first, whole)


SIZE_UNKNOWN = "the server does not say how many bytes it has"


def _judged_by_whole(first: Evidence, whole: Evidence) -> FileAnswer:
    """Judge where a first byte was refused, or came of a file of no known size."""
    has_come = first.answer.n_bytes == 1
    if whole.answer.worth is not Worth.GOOD:
        both = f"{first.answer.why}; {whole.answer.why}"
        return FileAnswer(whole.answer.worth, whole.answer.why if has_come else both)
    if whole.n_bytes is None:
        return FileAnswer(Worth.REFUSED, SIZE_UNKNOWN)
    if has_come:
        return whole.answer if whole.n_bytes else _contradiction(first, whole)
    if first.n_bytes not in (None, whole.n_bytes):
        return _contradiction(first, whole)
    if whole.n_bytes == 0:
        return whole.answer
    why = f"the server has {whole.n_bytes} bytes, and refuses the first (416): it {NO_RANGES}"
    return FileAnswer(Worth.REFUSED, why)


def _by_part(head: Head) -> Evidence:
    found = content_range(head)
    is_first = found is not None and (found.first, found.last) == (0, 0)
    if found is None or not is_first or found.total == 0 or head.length not in (None, 1):
        return Evidence(FileAnswer(Worth.REFUSED, _wrong_range(head, "0-0")))
    if found.total is None:  # it need not know (14.4): the whole may show it
        return Evidence(FileAnswer(Worth.REFUSED, SIZE_UNKNOWN, 1), is_proof=False)
    if found.total >= BYTES_STOP:
        return Evidence(
            FileAnswer(
                Worth.REFUSED,
                f"the server says that it has {found.total} bytes, more than a file can have",
            )
        )
    # Caches have been seen that call the byte that they have all of it.
    return Evidence(_good(found.total, head), found.total, is_proof=found.total > 1)


def _contradiction(first: Evidence, whole: Evidence) -> FileAnswer:
    both = f"{_in_short(first)} when asked for its first byte, {_in_short(whole)} for all of it"
    why = f"the server contradicts itself: {both}"
    return FileAnswer(Worth.REFUSED, why, version=whole.answer.version)


def _in_short(evidence: Evidence) -> str:
    if evidence.n_bytes is None:
        return f"'{evidence.answer.why or SIZE_UNKNOWN}'"
    etag = evidence.answer.version.etag
    return f"{evidence.n_bytes} bytes" + ("" if etag is None else f" of version {safe_text(etag)}")


def _good(n_bytes: int, head: Head) -> FileAnswer:
    return FileAnswer(Worth.GOOD, "", n_bytes, head.version)


# Ranges ---------------------------------------------------------------------------------------


def by_range(asked: AskRange, head: Head, target: Target, now_unix_s: float) -> FileAnswer:
    """Return what an answer to a request for a range is worth; it still has to bring its bytes.

    `n_bytes` of a good one are those that its body has: fewer than were asked for where the server
    does not send more at a time.
    """
    if (answer := _refusal(asked, head, target, now_unix_s)) is not None:
        return answer
    if head.status in (412, 416):
        return FileAnswer(Worth.CHANGED, f"the server does not have these bytes ({head.status})")
    # A known hash shows every change; nodes of a farm may call the same bytes by other names.
    if asked.version.sha256 is None and asked.version.is_other(head.version):
        why = "the server has another version now"
        return FileAnswer(Worth.CHANGED, why, version=head.version)
    total, found = _total(head), content_range(head)
    if found and found.last is not None and total is not None and found.last >= total:
        return _unfit(asked, head)  # a part that ends behind the whole is of nothing
    if total not in (None, asked.file_bytes):
        return FileAnswer(Worth.CHANGED, f"it has {total} bytes now, not {asked.file_bytes}")
    if head.status == 200:
        return _by_whole_file(asked, head)
    last = asked.offset_bytes + asked.n_bytes - 1
    if found is None or found.first != asked.offset_bytes or found.last is None:
        return _unfit(asked, head)
    n_bytes = found.last + 1 - found.first
    if not asked.offset_bytes <= found.last <= last or head.length not in (None, n_bytes):
        return _unfit(asked, head)
    return FileAnswer(Worth.GOOD, "", n_bytes)


def _unfit(asked: AskRange, head: Head) -> FileAnswer:
    last = asked.offset_bytes + asked.n_bytes - 1
    return FileAnswer(Worth.UNREADABLE, _wrong_range(head, f"{asked.offset_bytes}-{last}"))


def _by_whole_file(asked: AskRange, head: Head) -> FileAnswer:
    """Judge a whole file where a range was wanted: as good, if the range is all of it."""
    if asked.n_bytes == asked.file_bytes == head.length:
        return FileAnswer(Worth.GOOD, "", asked.n_bytes)
    version = asked.version
    if version.sha256 is None and version.strong_etag is not None and head.version.etag is None:
        return FileAnswer(Worth.CHANGED, "the server has another version now")
    return FileAnswer(Worth.REFUSED, f"the server {NO_RANGES}")


def _wrong_range(head: Head, wanted: str) -> str:
    given = safe_text(head.headers.get("content-range", "nothing"))
    length = "" if head.length is None else f", {head.length} bytes"
    return f"the server was asked for bytes {wanted}, and says that it sends {given}{length}"


# Both -----------------------------------------------------------------------------------------


def _refusal(
    asked: AskRange | AskSize, head: Head, target: Target, now_unix_s: float
) -> FileAnswer | None:
    """Return what an answer is worth that has nothing of a file; None where it may have."""
    status = head.status
    if status in (404, 410):
        return FileAnswer(Worth.GONE, f"the server has no such file ({status})")
    if status in (401, 403, 407) or (status == 400 and expiry_unix_s(target) is not None):
        return FileAnswer(Worth.REFUSED, not_allowed(status, target, now_unix_s))
    if status in (301, 302, 303, 307, 308):
        return FileAnswer(Worth.REFUSED, moved_without_a_word(head))
    if status in (200, 206):
        if head.encoding is not None and not _is_proved_by_hash(asked, head):
            return FileAnswer(Worth.REFUSED, encoded(head, head.encoding))
        if isinstance(asked, AskRange) and _is_page(asked, head, target):
            return FileAnswer(Worth.REFUSED, login_page(target))
        return None
    if status == 416 or (status == 412 and isinstance(asked, AskRange)):
        return None
    if status == MISDIRECTED:
        return FileAnswer(Worth.UNREADABLE, not_relayed())
    return FileAnswer(Worth.UNREADABLE, f"the server answers with status {status}")


def _is_proved_by_hash(asked: AskRange | AskSize, head: Head) -> bool:
    """Return whether bytes are stored encoded, and are those that a manifest has, by its hash."""
    return (
        isinstance(asked, AskRange)
        and asked.version.sha256 is not None
        and _total(head) == asked.file_bytes
    )


def _is_page(asked: AskRange, head: Head, target: Target) -> bool:
    """Say whether redirects have led to HTML of another name and size, where none is called so."""
    if head.media is not ContentKind.HTML or name_in(target) == name_in(asked.target):
        return False
    return not is_promised(asked.path, ContentKind.HTML) and _total(head) != asked.file_bytes


def _total(head: Head) -> int | None:
    """Return the size of the file that an answer has a part of, or all."""
    if head.status == 200:
        return head.length
    found = content_range(head)
    return None if found is None else found.total
