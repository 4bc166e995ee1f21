"""Nonces of used tickets: kept until they expire, across restarts."""

from __future__ import annotations

import fcntl
import os
import re
import threading
from typing import TYPE_CHECKING

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import document_name
from datacollect.files.locks import take_lock
from datacollect.files.refusals import refusal_of

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r"(\d+(?:\.\d+)?) (\S+)")

# The file is rewritten once it has this many lines, and twice as many as after the last time.
MOST_LINES = 10_000


class UsedNonces:
    """A file of nonces, one per line with the time at which its ticket expires.

    Lines are appended and handed to the kernel before a ticket is acted upon: they survive the end
    of this process, however it ends. A crash of the whole host within a minute of a ticket's use
    can lose its line; who replays the ticket then gets a connection to a host that asks for
    another ticket, which never crosses a relay in the clear.

    Raises
    ------
    NotWrittenError
        The file cannot be written.
    ProblemError
        Another process holds it: an agent for the same file is running.
    """

    def __init__(self, path: Path, now_s: float) -> None:
        self._path = path
        self._keeping = threading.Lock()
        try:
            self._number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._not_written(error) from None
        try:
            is_free = take_lock(self._number)
        except OSError as error:
            os.close(self._number)
            raise self._not_written(error) from None
        if not is_free:
            os.close(self._number)
            raise ProblemError(
                f"{document_name(path)}: another agent that is running uses this file; stop that "
                "agent first, or give this agent another `state` in its own file"
            )
        self._until_s: dict[str, float] = {}
        self._lines = self._most_lines = 0
        try:
            self._read()
            self._rewrite_if_long(now_s)
        except OSError as error:
            os.close(self._number)
            raise self._not_written(error) from None

    def _read(self) -> None:
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                # A torn last line counts as nothing.
                found = _LINE.fullmatch(line.rstrip("\n")) if line.endswith("\n") else None
                if found:
                    self._until_s[found[2]] = float(found[1])

    def _not_written(self, error: OSError) -> NotWrittenError:
        reason, remedy = refusal_of(error)
        return NotWrittenError(
            f"{document_name(self._path)}: cannot be written: {reason}; used tickets are kept "
            f"there: {remedy or 'name another folder as state'}",
            error.errno,
        )

    def still_counting(self, now_s: float) -> dict[str, float]:
        """Return the nonces of tickets that have not expired, and when they will."""
        return {nonce: until_s for nonce, until_s in self._until_s.items() if until_s > now_s}

    def keep(self, nonce: str, until_s: float, now_s: float) -> None:
        """Keep a nonce until its ticket has expired; from any thread."""
        with self._keeping:
            try:
                _write_whole(self._number, f"{until_s:.3f} {nonce}\n".encode())
                self._until_s[nonce] = until_s
                self._lines += 1
                self._rewrite_if_long(now_s)
            except OSError as error:
                # What was written of a line would spoil the next one: all are written again.
                self._lines = self._most_lines = 0
                raise self._not_written(error) from None

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._number)

    def _rewrite_if_long(self, now_s: float) -> None:
        if self._lines < self._most_lines:
            return
        self._until_s = self.still_counting(now_s)
        lines = [f"{until_s:.3f} {nonce}\n" for nonce, until_s in self._until_s.items()]
        self._replace("".join(lines).encode())
        self._lines = len(lines)
        self._most_lines = max(MOST_LINES, 2 * len(lines))

    def _replace(self, data: bytes) -> None:
        beside = self._path.with_name(f".{self._path.name}.new")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        number = os.open(beside, flags, 0o600)
        try:
            _write_whole(number, data)
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            beside.rename(self._path)
        except OSError:
            os.close(number)
            raise
        os.close(self._number)
        self._number = number


def _write_whole(number: int, data: bytes) -> None:
    """Write all of it; a part, as where the disk is nearly full, is a failure or goes on."""
    while data:
        data = data[os.write(number, data) :]
