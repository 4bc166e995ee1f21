"""Keeps what was made in a folder: what is there outlasts the sender's process.

What `add` has returned from is in the database, and survives the end of the process, however that
comes. A loss of power may cost the last seconds: each commit would have to wait for the disk.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.feeds.sender.missing import Run
from datacollect.feeds.sender.store import Begun, Message
from datacollect.files.held_folder import Database, Held

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE = "feed.db"
SCHEMA = """
CREATE TABLE message (number INTEGER PRIMARY KEY, made_ns INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE missing (first INTEGER PRIMARY KEY, n INTEGER NOT NULL, n_bytes INTEGER NOT NULL);
CREATE TABLE feed (
    stream TEXT NOT NULL, message_bytes INTEGER NOT NULL, made INTEGER NOT NULL,
    made_bytes INTEGER NOT NULL, tail BLOB NOT NULL, lost INTEGER NOT NULL,
    lost_bytes INTEGER NOT NULL, written INTEGER NOT NULL, is_ended INTEGER NOT NULL,
    restarts INTEGER NOT NULL
);
"""


class Spill:
    """A folder that one feed has, while it is sent.

    Parameters
    ----------
    folder : Path
    name : str
        Of the feed.
    message_bytes : int

    Raises
    ------
    ProblemError
        It is that of another feed, or of one with other messages; or another process has it.
    StoreError
        The disk is full, or fails.
    """

    def __init__(self, folder: Path, name: str, message_bytes: int) -> None:
        self._folder, self._message_bytes = folder, message_bytes
        self._held = Held(folder)
        try:
            self._db = Database(folder, FILE, SCHEMA, f"feed {name}")
        except BaseException:
            self._held.close()
            raise
        try:
            self._db.rows("PRAGMA synchronous=NORMAL")
            self.begun = self._begin(message_bytes)
            found = self._db.rows("SELECT total(length(content)) FROM message")
            self.kept_bytes = int(found[0][0])
        except BaseException:
            self.close(is_done=False)
            raise

    def _begin(self, message_bytes: int) -> Begun:
        rows = self._db.rows("SELECT * FROM feed")
        if not rows:
            begun = Begun()
            new = (begun.stream, message_bytes, 0, 0, b"", 0, 0, 0, 0, 0)
            with self._db.transaction():
                self._db.rows("INSERT INTO feed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", new)
            return begun
        (row,) = rows
        stream, found_bytes, made, made_bytes, tail, lost, lost_bytes, written, ended, again = row
        if found_bytes != message_bytes:
            raise ProblemError(
                f"spill: {self._folder} has this feed with message_bytes = {found_bytes}, got "
                f"{message_bytes}; write that, or name another folder"
            )
        runs = self._db.rows("SELECT first, n, n_bytes FROM missing ORDER BY first")
        begun = Begun(
            stream=stream,
            made=made,
            made_bytes=made_bytes,
            tail=tail,
            lost=lost,
            lost_bytes=lost_bytes,
            missing=[Run(*row) for row in runs],
            written=written,
            is_ended=bool(ended),
            restarts=again,
        )
        if not begun.is_new and not begun.is_ended:
            begun.restarts += 1
            with self._db.transaction():
                self._db.rows("UPDATE feed SET restarts = ?", (begun.restarts,))
        return begun

    def add(self, messages: Sequence[Message], tail: bytes, *, ends: bool) -> None:
        """Keep messages, and what was made behind them."""
        n_bytes = sum(len(each.content) for each in messages)
        with self._db.transaction():
            self._db.many("INSERT INTO message VALUES (?, ?, ?)", iter(messages))
            self._change(
                "made = made + ?, made_bytes = made_bytes + ?, tail = ?, is_ended = ?",
                (len(messages), n_bytes, tail, ends),
            )
        self.kept_bytes += n_bytes

    def drop(self, run: Run, tail: bytes, *, ends: bool) -> None:
        """Note that messages are missing that come next, and what was made behind them."""
        with self._db.transaction():
            self._note_missing(run)
            self._change(
                "made = made + ?, made_bytes = made_bytes + ?, tail = ?, is_ended = ?",
                (run.n, run.n_bytes, tail, ends),
            )

    def drop_kept(self, run: Run) -> None:
        """Let go of messages that are kept: they are missing."""
        with self._db.transaction():
            self._db.rows(
                "DELETE FROM message WHERE number >= ? AND number < ?", (run.first, run.stop)
            )
            self._note_missing(run)
        self.kept_bytes -= run.n_bytes

    def _note_missing(self, run: Run) -> None:
        self._db.rows("INSERT INTO missing VALUES (?, ?, ?)", (run.first, run.n, run.n_bytes))
        self._change("lost = lost + ?, lost_bytes = lost_bytes + ?", (run.n, run.n_bytes))

    def end(self) -> None:
        """Note that the source has ended."""
        with self._db.transaction():
            self._change("is_ended = 1, tail = x''", ())

    def read(self, first: int, stop: int, most_bytes: int) -> list[Message]:
        """Return messages from one on, without a gap."""
        n = max(most_bytes // self._message_bytes, 1)
        rows = self._db.rows(
            "SELECT * FROM message WHERE number >= ? AND number < ? ORDER BY number LIMIT ?",
            (first, stop, n),
        )
        return [Message(*row) for i, row in enumerate(rows) if row[0] == first + i]

    def release(self, number: int) -> None:
        """Let go of all before a message."""
        with self._db.transaction():
            kept_bytes = self._db.rows(
                "SELECT total(length(content)) FROM message WHERE number < ?", (number,)
            )[0][0]
            self._db.rows("DELETE FROM message WHERE number < ?", (number,))
            self._db.rows("DELETE FROM missing WHERE first + n <= ?", (number,))
            self._change("written = ?", (number,))
        self.kept_bytes -= int(kept_bytes)

    def close(self, *, is_done: bool) -> None:
        """Let go of the folder; where the feed is done, nothing of it is kept."""
        self._db.close()
        if is_done:
            with suppress(OSError):
                for ending in ("", "-wal", "-shm"):
                    (self._folder / f"{FILE}{ending}").unlink(missing_ok=True)
        self._held.close()

    def _change(self, what: str, values: Sequence[Any]) -> None:
        self._db.rows(f"UPDATE feed SET {what}", values)
