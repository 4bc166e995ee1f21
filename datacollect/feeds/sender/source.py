"""Source of a feed's bytes: a pipe or device as it gives them, a file at the feed's rate."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ_BYTES = 64 * 1024
# What is made up at once: whoever takes it and whoever sends it wait for each other less often.
MADE_BYTES = 2 * 2**20
SECTION = 2**15
# How long what is made up, or read from a file, may be late or come together.
STEP_S = 0.01
# So often whoever reads a source that says nothing goes on.
LOOK_S = 0.2


def opened_source(path: Path) -> int:
    """Open what a feed is read from; return its descriptor.

    Raises
    ------
    ProblemError
        There is no such file, or it is not for this user.
    """
    try:
        # Of a named pipe nobody waits here for who writes into it.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ProblemError(
            f"{shown(str(path))}: {error.strerror}; name a file, pipe or device that this user "
            "can read"
        ) from None
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise ProblemError(
            f"{shown(str(path))}: is a folder, and a feed is one file, pipe or device; name one"
        )
    return fd


def read_blocks(fd: int, rate_bytes_per_s: float, skip_bytes: int) -> Iterator[bytes]:
    """Yield what comes from a descriptor until its end; nothing now and then, where nothing comes.

    Parameters
    ----------
    fd : int
    rate_bytes_per_s : float
        At which a file, which could come at once, is read.
    skip_bytes : int
        Of a file, what was read before.
    """
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        yield from _what_comes(fd)
        return
    os.lseek(fd, skip_bytes, os.SEEK_CUR)
    for n_bytes in _in_time(rate_bytes_per_s):
        left = n_bytes
        while left and (block := os.read(fd, min(left, READ_BYTES))):
            left -= len(block)
            yield block
        if left:
            return


def _what_comes(fd: int) -> Iterator[bytes]:
    """Yield what comes from a pipe or device: whoever takes it may end it, though nothing comes."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        if not poll.poll(LOOK_S * 1000):
            yield b""
            continue
        try:
            block = os.read(fd, READ_BYTES)
        except BlockingIOError:  # somebody else has read it
            continue
        if not block:
            return
        yield block


def generated_blocks(
    rate_bytes_per_s: float, seconds: float, skip_bytes: int = 0, message_bytes: int = 1
) -> Iterator[memoryview]:
    r"""Yield bytes at a rate, for so long: each eight of them are their place, divided by eight.

    They are whole messages, but for the last; and are there until the next ones are asked for.

    Examples
    --------
    >>> b"".join(map(bytes, generated_blocks(1000, 0.016)))
    b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01'
    """
    at, stop = skip_bytes, skip_bytes + round(rate_bytes_per_s * seconds)
    most = max(MADE_BYTES // message_bytes, 1) * message_bytes
    counted, in_time = _Counted(most), skip_bytes
    for n_bytes in _in_time(rate_bytes_per_s):
        in_time += n_bytes
        due = stop if in_time >= stop else in_time - in_time % message_bytes
        while at < due:
            end = min(at + most, due)
            yield counted.between(at, end)
            at = end
        if at == stop:
            return


class _Counted:
    """Makes bytes up, each time in the same memory: new memory costs more than to fill it."""

    def __init__(self, most_bytes: int) -> None:
        import numpy as np

        self._or = np.bitwise_or
        # Numbers of one section of eight bytes each, the highest byte first; others have the same
        # lowest bytes.
        self._section = np.arange(SECTION, dtype=">u8").view(np.uint64)
        self._numbers = np.empty(most_bytes // 8 + 2, np.uint64)
        self._bytes = self._numbers.data.cast("B")

    def between(self, first: int, stop: int) -> memoryview:
        """Return what is made up between two places."""
        begin, end = first // 8, (stop + 7) // 8
        at = begin
        while at < end:
            place = at % SECTION
            n = min(SECTION - place, end - at)
            highest = int.from_bytes((at - place).to_bytes(8, "big"), sys.byteorder)
            made = self._numbers[at - begin : at - begin + n]
            self._or(self._section[place : place + n], self._section.dtype.type(highest), out=made)
            at += n
        return self._bytes[first % 8 : first % 8 + stop - first]


def counted_bytes(first: int, stop: int) -> bytes:
    """Return what is made up between two places."""
    return bytes(_Counted(stop - first).between(first, stop))


def _in_time(rate_bytes_per_s: float) -> Iterator[int]:
    """Yield how many bytes are due, again and again, as time goes by."""
    begun_s, done = time.monotonic(), 0
    while True:
        with suppress(InterruptedError):
            time.sleep(STEP_S)
        due = int((time.monotonic() - begun_s) * rate_bytes_per_s)
        if due > done:
            yield due - done
        done = max(done, due)
