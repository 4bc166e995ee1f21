"""Append-only parts: what processes keep while they work, readable whenever they are killed.

Each process appends to files of its own, so that many write at once, on other machines too. A
record is a line: checksum, name, text. What is appended is on the disk when `append` returns. The
last line of a process that was killed may be torn: it counts as never written. A line that is torn
elsewhere was damaged later: it is left out, and named.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError
from datacollect.files.durability import sync, synchronise
from datacollect.files.refusals import MAKE_ROOM, refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Record:
    """Contents of one line: a name without blanks, and a text without line breaks."""

    name: str
    text: str


@dataclass(frozen=True)
class RecordLine:
    """Position of a record in a part: which line, counted from 1, and which bytes."""

    number: int
    offset: int
    n_bytes: int


def part_file(folder: Path, kind: str) -> Path:
    """Return this process's part of a kind; a folder has one of each process and kind."""
    return folder / f"{_own_name(os.getpid())}.{kind}"


@lru_cache(maxsize=8)
def _own_name(_pid: int) -> str:
    """Name of a process; one that was forked draws its own."""
    return secrets.token_hex(8)


def append(file: Path, records: Iterable[Record]) -> None:
    """Add records to a part, all of them or none.

    Raises
    ------
    NotWrittenError
        They cannot be written, such as where the disk is full; what was there before stays.
    """
    data = b"".join(map(_encoded, records))
    try:
        with _held(file, os.O_RDWR | os.O_APPEND | os.O_CREAT) as number:
            size_bytes = os.fstat(number).st_size
            if size_bytes and os.pread(number, 1, size_bytes - 1) != b"\n":
                data = b"\n" + data  # a torn line stays one of its own
            try:
                _write(number, data)
                sync(number)
            except OSError:
                os.ftruncate(number, size_bytes)
                raise
            if not size_bytes:
                synchronise(file.parent)
    except OSError as error:
        reason, remedy = refusal_of(error)
        raise NotWrittenError(
            f"{file}: cannot be written: {reason}; what was kept before stays: "
            f"{remedy or MAKE_ROOM}, and start again to continue",
            error.errno,
        ) from None


def records_of(file: Path) -> Iterator[tuple[RecordLine, Record | None]]:
    """Yield a part's records but for a last one that is torn; None for one that is damaged.

    None at all where the part is gone: it was folded.
    """
    try:
        with file.open("rb") as part:
            offset = 0
            for number, line in enumerate(part, start=1):
                if not line.endswith(b"\n"):
                    return
                yield RecordLine(number, offset, len(line)), _decoded(line)
                offset += len(line)
    except FileNotFoundError:
        return


def read_line(file: Path, line: RecordLine) -> Record | None:
    """Return a part's record; None where it is damaged, or the part gone."""
    try:
        with file.open("rb") as part:
            part.seek(line.offset)
            return _decoded(part.read(line.n_bytes))
    except FileNotFoundError:
        return None


def remove(file: Path, n_bytes: int) -> None:
    """Remove a part whose first bytes are kept elsewhere by now, unless it has grown since."""
    try:
        with _held(file, os.O_RDWR) as number:
            if os.fstat(number).st_size == n_bytes:
                file.unlink()
    except FileNotFoundError:
        return


@contextmanager
def _held(file: Path, flags: int) -> Iterator[int]:
    """Open a part for one process alone; not one that was removed while it was waited for."""
    while True:
        number = os.open(file, flags, 0o666)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            if os.fstat(number).st_nlink:
                yield number
                return
        finally:
            os.close(number)


def _write(number: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(number, left) :]


def _encoded(record: Record) -> bytes:
    content = f"{record.name} {record.text}".encode()
    return b"%08x %s\n" % (zlib.crc32(content), content)


def _decoded(line: bytes) -> Record | None:
    checksum, _, content = line[:-1].partition(b" ")
    if checksum != b"%08x" % zlib.crc32(content):
        return None
    name, _, text = content.decode().partition(" ")
    return Record(name, text)
