"""Responses to requests for a file by its path, whole or in part (RFC 9110, 2022: ranges, ETag)."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError, TransferError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.transfer.agent.core.actions import SendFile
    from datacollect.transfer.agent.shell.files import Folder

_RANGE = re.compile(r"bytes=(?:(\d{1,19})-(\d{1,19})?|-(\d{1,19}))", re.ASCII)


class FileAnswer:
    """A file that is open, and what of it is to be sent.

    Attributes
    ----------
    status : int
        200 or 206.
    offset_bytes, n_bytes : int
        What is sent.

    Raises
    ------
    RefusedError
        There is no such file (404), the range lies outside (416), or it is more than the ticket
        allows (403).
    """

    def __init__(self, folder: Folder, action: SendFile) -> None:
        self._number = _opened(folder, action.path)
        try:
            found = os.fstat(self._number)
            self._file_bytes = found.st_size
            self._etag = etag_of(found)
            # A range is of the file that was meant, or of none.
            counts = action.if_range is None or action.if_range.strip() == self._etag
            part = range_of(action.ranges, found.st_size) if counts else None
            self.status = 200 if part is None else 206
            self.offset_bytes, self.n_bytes = part or (0, found.st_size)
            if action.most_bytes is not None and self.n_bytes > action.most_bytes:
                raise RefusedError("the ticket's bytes are used up", 403)
        except BaseException:
            os.close(self._number)
            raise

    def __enter__(self) -> FileAnswer:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._number)

    def headers(self) -> list[tuple[str, str]]:
        """Return what the answer says about the file."""
        headers = [
            ("Content-Type", "application/octet-stream"),
            ("ETag", self._etag),
            ("Accept-Ranges", "bytes"),
        ]
        if self.status == 206:
            last = self.offset_bytes + self.n_bytes - 1
            span = f"bytes {self.offset_bytes}-{last}/{self._file_bytes}"
            headers.append(("Content-Range", span))
        return headers

    def blocks(self, buffer: memoryview) -> Iterator[memoryview]:
        """Yield the bytes in blocks, each in the buffer; the last only of an unchanged file.

        Raises
        ------
        TransferError
            It has changed meanwhile; the answer stays incomplete, which the receiver notices.
        """
        sent = 0
        while sent < self.n_bytes:
            part = buffer[: min(len(buffer), self.n_bytes - sent)]
            n_bytes = os.preadv(self._number, [part], self.offset_bytes + sent)
            last = sent + n_bytes == self.n_bytes
            if not n_bytes or (last and etag_of(os.fstat(self._number)) != self._etag):
                raise TransferError("the file has changed while it was sent")
            yield part[:n_bytes]
            sent += n_bytes


def etag_of(found: os.stat_result) -> str:
    """Return a strong ETag: another for every file, size and time of change."""
    return f'"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"'


def range_of(text: str | None, file_bytes: int) -> tuple[int, int] | None:
    """Return offset and number of bytes that a Range header asks for; None: the whole file.

    Several ranges at once, and what is no range, count as none, as the standard allows.

    Examples
    --------
    >>> [range_of(text, 10) for text in ("bytes=2-4", "bytes=8-", "bytes=-3", "bytes=0-1,3-4")]
    [(2, 3), (8, 2), (7, 3), None]
    """
    found = _RANGE.fullmatch((text or "").strip())
    if not found:
        return None
    if found[3]:
        n_bytes = min(int(found[3]), file_bytes)
        first, last = file_bytes - n_bytes, file_bytes - 1
    else:
        first, last = int(found[1]), min(int(found[2] or file_bytes), file_bytes - 1)
        if found[2] and int(found[2]) < first:
            return None
    if first > last:
        raise RefusedError(f"the range must lie within the file's {file_bytes} bytes", 416)
    return first, last - first + 1


def _opened(folder: Folder, path: str) -> int:
    try:
        # Looked at first: opening a device, or a pipe, may do something.
        if not stat.S_ISREG(folder.stat(path).st_mode):
            raise RefusedError("there is no such file", 404)
        number = folder.open(path)
    except OSError:
        raise RefusedError("there is no such file", 404) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise RefusedError("there is no such file", 404)
    return number
