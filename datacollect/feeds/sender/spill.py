"""Keeps what was made in a folder: what is there outlasts the sender's process.

What `add` has returned from is in the database, and survives the end of the process, however that
comes. A loss of power may cost what was made since the last sync, which is done once a second: each
commit would have to wait for the disk. What of the rest is damaged all the same is found by check
sums, and is missing; of a database that cannot be read at all the feed's name on the wire is kept
beside it, so that the feed goes on with what the receiver has.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from zlib import crc32

from datacollect.errors import ProblemError, StoreError
from datacollect.feeds.formats.clock import boot_id
from datacollect.feeds.sender.missing import Run
from datacollect.feeds.sender.store import Begun, Message
from datacollect.files.documents import peer_json
from datacollect.files.durability import name_durably
from datacollect.files.held_folder import Database, Held, is_damage, not_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FILE, IDENTITY = "feed.db", "feed.json"
ENDINGS = ("", "-wal", "-shm")
SYNC_S = 1.0
SCHEMA = """
CREATE TABLE message (
    number INTEGER PRIMARY KEY, made_ns INTEGER NOT NULL, content BLOB NOT NULL,
    crc INTEGER NOT NULL
);
CREATE TABLE missing (first INTEGER PRIMARY KEY, n INTEGER NOT NULL, n_bytes INTEGER NOT NULL);
CREATE TABLE feed (
    stream TEXT NOT NULL, message_bytes INTEGER NOT NULL, made INTEGER NOT NULL,
    made_bytes INTEGER NOT NULL, tail BLOB NOT NULL, lost INTEGER NOT NULL,
    lost_bytes INTEGER NOT NULL, written INTEGER NOT NULL, is_ended INTEGER NOT NULL,
    restarts INTEGER NOT NULL, boot TEXT NOT NULL, unplaced INTEGER
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
        self._has_news, self._is_closed = False, threading.Event()
        self._failure: OSError | None = None
        self._syncing: threading.Thread | None = None
        try:
            stream = _identity(folder, name)
            self._db = self._opened(name, is_known=stream is not None)
        except BaseException:
            self._held.close()
            raise
        try:
            self.begun = self._begin(name, stream)
            self.kept_bytes = self._sum_bytes("number >= 0")
        except BaseException:
            self.close(is_done=False)
            raise
        self._syncing = threading.Thread(target=self._sync_all, name="feed spill", daemon=True)
        self._syncing.start()

    def _opened(self, name: str, *, is_known: bool) -> Database:
        """Return the database; of a feed that is known, a new one where it is damaged."""
        try:
            return self._readable(name)
        except (ProblemError, StoreError) as error:
            if not is_known or not is_damage(error):
                raise
        try:
            for ending in ENDINGS:
                with suppress(FileNotFoundError):
                    path = self._folder / f"{FILE}{ending}"
                    path.replace(self._folder / f"damaged-{FILE}{ending}")
        except OSError as error:
            raise not_written(self._folder, error) from error
        return self._readable(name)

    def _readable(self, name: str) -> Database:
        db = Database(self._folder, FILE, SCHEMA, f"feed {name}")
        try:
            db.rows("PRAGMA synchronous=NORMAL")
            boots = db.rows("SELECT boot FROM feed")
            if boots and boots != [(boot_id(),)]:
                db.require_whole()
        except BaseException:
            db.close()
            raise
        return db

    def _begin(self, name: str, stream: str | None) -> Begun:
        rows = self._db.rows("SELECT * FROM feed")
        if not rows:
            # Of a feed that had begun, whatever was here is lost.
            is_lost = stream is not None
            begun = Begun(unplaced=0 if is_lost else None, restarts=int(is_lost))
            begun.stream = stream or begun.stream
            _write_identity(self._folder, name, begun.stream)
            new = (begun.stream, self._message_bytes, 0, 0, b"", 0, 0, 0, 0, begun.restarts)
            with self._changing():
                self._db.rows(
                    "INSERT INTO feed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*new, boot_id(), begun.unplaced),
                )
            return begun
        (row,) = rows
        found_bytes = row[1]
        if found_bytes != self._message_bytes:
            raise ProblemError(
                f"spill: {self._folder} has this feed with message_bytes = {found_bytes}, got "
                f"{self._message_bytes}; write message_bytes = {found_bytes}, or name another "
                "folder"
            )
        _write_identity(self._folder, name, row[0])
        if row[-2] != boot_id():
            self._mend()
        return self._go_on()

    def _mend(self) -> None:
        """After a loss of power: note as missing what is not whole, and that more may be."""
        bad = [
            number
            for number, content, crc in self._db.each("SELECT number, content, crc FROM message")
            if crc32(content) != crc
        ]
        with self._changing():
            for number in bad:
                self._db.rows("DELETE FROM message WHERE number = ?", (number,))
            ((made, made_bytes, written),) = self._db.rows(
                "SELECT made, made_bytes, written FROM feed"
            )
            there = [*self._db.rows("SELECT number, 1 FROM message")]
            there += self._db.rows("SELECT first, n FROM missing")
            at, size = written, self._message_bytes
            for first, n in sorted([*there, (made, 0)]):
                stop = min(first, made)
                if stop > at:
                    short = made * size - made_bytes if stop == made else 0
                    # The receiver may have it: what it is told, it counts.
                    run = (at, stop - at, (stop - at) * size - short)
                    self._db.rows("INSERT INTO missing VALUES (?, ?, ?)", run)
                at = max(at, first + n)
            self._change("boot = ?, tail = x''", (boot_id(),))
            self._change("unplaced = made WHERE unplaced IS NULL AND NOT is_ended", ())

    def _go_on(self) -> Begun:
        (row,) = self._db.rows("SELECT * FROM feed")
        stream, _, made, made_bytes, tail, lost, lost_bytes, written, ended, again, _, place = row
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
            unplaced=place,
        )
        if (not begun.is_new or place is not None) and not begun.is_ended:
            begun.restarts += 1
            with self._changing():
                self._db.rows("UPDATE feed SET restarts = ?", (begun.restarts,))
        return begun

    def _sum_bytes(self, which: str, values: Sequence[Any] = ()) -> int:
        sql = f"SELECT total(length(content)) FROM message WHERE {which}"
        return int(self._db.rows(sql, values)[0][0])

    # What a loss of power leaves ---------------------------------------------------------------

    def _sync_all(self) -> None:
        """Sync what was committed, once a second; where that fails, the next `add` says so."""
        while not self._is_closed.wait(SYNC_S) and self._failure is None:
            if self._has_news:
                self._has_news = False
                self._sync_now()

    def _sync_now(self) -> None:
        try:
            _sync(self._folder / f"{FILE}-wal")
        except OSError as error:
            self._failure = error

    def place(self, number: int) -> None:
        """Take note that the receiver wants the message `number` next, after a loss of power.

        Messages from `unplaced` on, which were made since, move behind those that it has got.
        """
        first = self.begun.unplaced
        assert first is not None
        n = max(number - first, 0)
        with self._changing():
            if n:
                # Of a run that goes across it, the receiver has all before it.
                self._db.rows(
                    "UPDATE missing SET first = ?1, n = first + n - ?1, "
                    "n_bytes = n_bytes - (?1 - first) * ?2 WHERE first < ?1 AND first + n > ?1",
                    (first, self._message_bytes),
                )
                for table, column in (("message", "number"), ("missing", "first")):
                    # Numbers are unique at each step.
                    self._db.rows(
                        f"UPDATE {table} SET {column} = -({column} + ?) WHERE {column} >= ?",
                        (n, first),
                    )
                    self._db.rows(f"UPDATE {table} SET {column} = -{column} WHERE {column} < 0")
                self._change(
                    "made = made + ?, made_bytes = made_bytes + ?", (n, n * self._message_bytes)
                )
            self._change("unplaced = NULL", ())
        # What is sent from now on would move once more after another loss of power, and come twice.
        self._sync_now()

    def add(self, messages: Sequence[Message], tail: bytes, *, ends: bool) -> None:
        """Keep messages, and what was made behind them."""
        n_bytes = sum(len(each.content) for each in messages)
        if self._failure is not None:
            raise not_written(self._folder, self._failure)
        rows = ((*each, crc32(each.content)) for each in messages)
        with self._changing():
            self._db.many("INSERT INTO message VALUES (?, ?, ?, ?)", rows)
            self._change(
                "made = made + ?, made_bytes = made_bytes + ?, tail = ?, is_ended = ?",
                (len(messages), n_bytes, tail, ends),
            )
        self.kept_bytes += n_bytes

    def drop(self, run: Run, tail: bytes, *, ends: bool) -> None:
        """Note that messages are missing that come next, and what was made behind them."""
        with self._changing():
            self._note_missing(run)
            self._change(
                "made = made + ?, made_bytes = made_bytes + ?, tail = ?, is_ended = ?",
                (run.n, run.n_bytes, tail, ends),
            )

    def drop_kept(self, run: Run) -> None:
        """Let go of messages that are kept: they are missing."""
        with self._changing():
            self._db.rows(
                "DELETE FROM message WHERE number >= ? AND number < ?", (run.first, run.stop)
            )
            self._note_missing(run)
        self.kept_bytes -= run.n_bytes

    def _note_missing(self, run: Run) -> None:
        self._db.rows("INSERT INTO missing VALUES (?, ?, ?)", (run.first, run.n, run.n_bytes))
        self._change("lost = lost + ?, lost_bytes = lost_bytes + ?", (run.n, run.n_bytes))

    def take_back(self, n: int, n_bytes: int) -> None:
        """Note that messages are not lost that were dropped: the receiver has them."""
        with self._changing():
            self._change("lost = lost - ?, lost_bytes = lost_bytes - ?", (n, n_bytes))

    def end(self) -> None:
        """Note that the source has ended."""
        with self._changing():
            self._change("is_ended = 1, tail = x''", ())

    def read(self, first: int, stop: int, most_bytes: int) -> list[Message]:
        """Return messages from one on, without a gap."""
        n = max(most_bytes // self._message_bytes, 1)
        rows = self._db.rows(
            "SELECT number, made_ns, content FROM message WHERE number >= ? AND number < ? "
            "ORDER BY number LIMIT ?",
            (first, stop, n),
        )
        return [Message(*row) for i, row in enumerate(rows) if row[0] == first + i]

    def release(self, number: int) -> None:
        """Let go of all before a message."""
        with self._changing():
            kept_bytes = self._sum_bytes("number < ?", (number,))
            self._db.rows("DELETE FROM message WHERE number < ?", (number,))
            self._db.rows("DELETE FROM missing WHERE first + n <= ?", (number,))
            self._change("written = ?", (number,))
        self.kept_bytes -= kept_bytes

    def close(self, *, is_done: bool) -> None:
        """Let go of the folder; where the feed is done, nothing of it is kept."""
        self._is_closed.set()
        if self._syncing is not None:
            self._syncing.join()
        self._db.close()
        if is_done:
            with suppress(OSError):
                for name in (IDENTITY, *(f"{FILE}{ending}" for ending in ENDINGS)):
                    (self._folder / name).unlink(missing_ok=True)
        self._held.close()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """All or nothing; it is synced from the commit on: a sync before that would miss it."""
        with self._db.transaction():
            yield
        self._has_news = True

    def _change(self, what: str, values: Sequence[Any]) -> None:
        self._db.rows(f"UPDATE feed SET {what}", values)


def _sync(path: Path) -> None:
    """Have on the disk what was written into a file so far."""
    with suppress(FileNotFoundError):  # nothing was
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)


def _identity(folder: Path, name: str) -> str | None:
    """Return by which stream the receiver knows the feed of a folder; None: nothing says so.

    Raises
    ------
    ProblemError
        The folder is that of another feed.
    """
    try:
        tree = peer_json((folder / IDENTITY).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise not_written(folder, error) from error
    if not isinstance(tree, dict) or not isinstance(tree.get("stream"), str):
        return None
    if tree.get("name") != name:
        raise ProblemError(
            f"{folder}: is the folder of feed {tree.get('name')}, not of feed {name}; name "
            "another folder"
        )
    return str(tree["stream"])


def _write_identity(folder: Path, name: str, stream: str) -> None:
    """Write it down beside the database, before that says anything of the feed."""
    if _identity(folder, name) == stream:
        return
    beside = folder / f".{IDENTITY}.new"
    try:
        beside.write_text(json.dumps({"name": name, "stream": stream}) + "\n", encoding="utf-8")
        name_durably(beside, folder / IDENTITY)
    except OSError as error:
        raise not_written(folder, error) from error
