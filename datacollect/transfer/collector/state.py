"""What a collection remembers across its starts: one SQLite file, one connection that writes.

Everything in it is on disk before it is acted upon: write-ahead log, synchronous=FULL.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datacollect.errors import ProblemError
from datacollect.transfer.collector.pieces import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import apsw

    from datacollect.arrays import IntArray

VERSION = 1
# So many files are kept in mind between requests.
MOST_LISTED = 64
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, tag TEXT,
    offset INTEGER, state INTEGER NOT NULL DEFAULT 0, why TEXT
);
CREATE INDEX IF NOT EXISTS files_by_path ON files (source, path);
CREATE TABLE IF NOT EXISTS pieces (
    source INTEGER NOT NULL, piece INTEGER NOT NULL, offset INTEGER NOT NULL,
    bytes INTEGER NOT NULL, hash BLOB, PRIMARY KEY (source, piece)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS left_out (
    source INTEGER NOT NULL, path TEXT NOT NULL, why TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS rates (
    hosts TEXT PRIMARY KEY, bytes_per_s REAL NOT NULL, at_unix_s REAL NOT NULL
) WITHOUT ROWID;
CREATE TEMP TABLE listed (
    source INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, tag TEXT, PRIMARY KEY (source, path)
) WITHOUT ROWID;
"""


class FileState(IntEnum):
    """What has become of a listed file."""

    WAITING = 0
    DONE = 1  # whole, verified, under its final name
    OLD = 2  # another version has taken its place
    MISSING = 3  # cannot be had


class Listed(NamedTuple):
    """A file as its source lists it; ``tag`` is what a foreign server knows its version by."""

    path: str
    n_bytes: int
    mtime_ns: int
    inode: int
    tag: str | None = None


class FileRow(NamedTuple):
    """A file as it is remembered."""

    number: int
    listed: Listed


class Missing(NamedTuple):
    """What could not be had, and why."""

    source: str
    path: str
    why: str


class State:
    """The remembered collection. Its methods may be called by any thread.

    Parameters
    ----------
    path : Path
        Of the SQLite file, made where it is absent.

    Raises
    ------
    ProblemError
        The file is no state of a collection, or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        import apsw

        self._lock = threading.RLock()
        self._listed: dict[int, Listed] = {}  # those that were asked for last
        try:
            self._db: apsw.Connection = apsw.Connection(str(path))
            self._db.set_busy_timeout(5000)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "temp_store=FILE"):
                self._db.execute(f"PRAGMA {pragma}").fetchall()
            self._db.execute(_SCHEMA)
            version = self._fact("version")
        except apsw.Error as error:
            raise ProblemError(
                f"{path}: is not the state of a collection, or damaged: {error}; move the folder "
                f"{path.parent} away to begin anew"
            ) from None
        if version is None:
            self.set_fact("version", VERSION)
        elif version != VERSION:
            raise ProblemError(
                f"{path}: must be state of version {VERSION}, got {version!r}; go on with the "
                "datacollect that began it"
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with self._lock, self._db:
            yield self._db

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def _fact(self, key: str) -> Any:
        rows = self._rows("SELECT value FROM facts WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def fact(self, key: str) -> Any:
        """Return what was noted under a key; None where nothing was."""
        return self._fact(key)

    def set_fact(self, key: str, value: Any) -> None:
        """Note something under a key."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, value))

    # Listings ---------------------------------------------------------------------------------

    def source_id(self, name: str) -> int:
        """Return a source's number, made where it is new."""
        known = "SELECT id FROM sources WHERE name = ?"
        rows = self._rows(known, (name,))
        if not rows:
            with self._transaction() as db:
                db.execute("INSERT OR IGNORE INTO sources (name) VALUES (?)", (name,))
            rows = self._rows(known, (name,))
        return int(rows[0][0])

    def source_names(self) -> dict[int, str]:
        """Return the names of all sources by their numbers."""
        return dict(self._rows("SELECT id, name FROM sources"))

    def begin_listing(self, source: int) -> None:
        """Forget what an earlier, broken listing of a source said."""
        with self._transaction() as db:
            db.execute("DELETE FROM listed WHERE source = ?", (source,))
            db.execute("DELETE FROM left_out WHERE source = ?", (source,))

    def add_page(
        self, source: int, files: Iterable[Listed], left_out: Iterable[tuple[str, str]]
    ) -> None:
        """Take a page of a listing in."""
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO listed VALUES (?, ?, ?, ?, ?, ?)", ((source, *f) for f in files)
            )
            db.executemany(
                "INSERT INTO left_out VALUES (?, ?, ?)", ((source, *entry) for entry in left_out)
            )

    def listed_bytes(self, source: int) -> tuple[int, int]:
        """Return the number of listed files, and their bytes."""
        ((n, total),) = self._rows(
            "SELECT count(*), ifnull(sum(bytes), 0) FROM listed WHERE source = ?", (source,)
        )
        return int(n), int(total)

    def end_listing(self, source: int) -> None:
        """Compare a whole listing with what is known.

        Files that are listed as before stay as they are, those that changed are fetched anew, and
        those that are gone are missing, unless they have been collected.
        """
        same = """
            EXISTS (SELECT 1 FROM listed AS l WHERE l.source = files.source AND l.path = files.path
                AND l.bytes = files.bytes AND l.mtime_ns = files.mtime_ns
                AND l.inode = files.inode AND l.tag IS files.tag)"""
        named = """
            EXISTS (SELECT 1 FROM listed AS l WHERE l.source = files.source
                AND l.path = files.path)"""
        with self._transaction() as db:
            here = {"source": source}
            db.execute(
                "UPDATE files SET state = 2 WHERE source = :source AND "
                f"((state IN (0, 1) AND {named} AND NOT {same}) OR (state = 3 AND {named}))",
                here,
            )
            db.execute(
                "UPDATE files SET state = 3, why = 'gone from the source' WHERE source = :source "
                f"AND state = 0 AND NOT {named}",
                here,
            )
            db.execute(
                """INSERT INTO files (source, path, bytes, mtime_ns, inode, tag)
                SELECT source, path, bytes, mtime_ns, inode, tag FROM listed AS l
                WHERE source = :source AND NOT EXISTS (SELECT 1 FROM files AS f WHERE
                    f.source = l.source AND f.path = l.path AND f.state IN (0, 1))
                ORDER BY path""",
                here,
            )
            db.execute("UPDATE files SET why = NULL WHERE source = :source AND state = 0", here)
            db.execute("DELETE FROM listed WHERE source = :source", here)

    def lay_new_files(self, source: int, piece_bytes: int, *, apart: bool = False) -> Layout:
        """Lay files that lie nowhere yet behind the others, and cut them into pieces."""
        layout = self.layout(source)
        rows = self._rows(
            "SELECT id, bytes FROM files WHERE source = ? AND bytes > 0 AND offset IS NULL "
            "AND state = 0 ORDER BY id",
            (source,),
        )
        if not rows:
            return layout
        new = np.array(rows, dtype=np.int64)
        n_files, n_pieces = len(layout.files), len(layout.pieces)
        layout = layout.extended(new[:, 0], new[:, 1], piece_bytes, apart=apart)
        with self._transaction() as db:
            db.executemany(
                "UPDATE files SET offset = ? WHERE id = ?",
                zip(layout.starts[n_files:].tolist(), layout.files[n_files:].tolist(), strict=True),
            )
            db.executemany(
                "INSERT INTO pieces (source, piece, offset, bytes) VALUES (?, ?, ?, ?)",
                (
                    (source, n_pieces + i, begin, n)
                    for i, (begin, n) in enumerate(
                        zip(
                            layout.pieces[n_pieces:].tolist(),
                            layout.piece_bytes[n_pieces:].tolist(),
                            strict=True,
                        )
                    )
                ),
            )
        return layout

    def layout(self, source: int) -> Layout:
        """Return how a source's files lie end to end."""
        files = self._columns(
            "SELECT id, offset, bytes FROM files WHERE source = ? AND offset IS NOT NULL "
            "ORDER BY offset",
            source,
            3,
        )
        pieces = self._columns(
            "SELECT offset, bytes FROM pieces WHERE source = ? ORDER BY piece", source, 2
        )
        return Layout(files[0], files[1], files[2], pieces[0], pieces[1])

    def _columns(self, sql: str, source: int, width: int) -> IntArray:
        rows = self._rows(sql, (source,))
        return np.array(rows, dtype=np.int64).reshape(len(rows), width).T.copy()

    # Files and pieces -------------------------------------------------------------------------

    def recorded(self, source: int) -> list[int]:
        """Return the pieces of a source whose bytes are verified and on disk."""
        rows = self._rows(
            "SELECT piece FROM pieces WHERE source = ? AND hash IS NOT NULL", (source,)
        )
        return [piece for (piece,) in rows]

    def hashes(self, source: int) -> list[bytes]:
        """Return the hashes of all recorded pieces in their order."""
        rows = self._rows(
            "SELECT hash FROM pieces WHERE source = ? AND hash IS NOT NULL ORDER BY piece",
            (source,),
        )
        return [bytes(found) for (found,) in rows]

    def files_in(self, source: int, state: FileState) -> list[FileRow]:
        """Return the files of a source that are in a state."""
        rows = self._rows(
            "SELECT id, path, bytes, mtime_ns, inode, tag FROM files "
            "WHERE source = ? AND state = ? ORDER BY id",
            (source, int(state)),
        )
        return [FileRow(number, Listed(*rest)) for number, *rest in rows]

    def file_rows(self, numbers: Sequence[int]) -> dict[int, Listed]:
        """Return some files by their numbers."""
        found = {number: self._listed[number] for number in numbers if number in self._listed}
        unknown = [number for number in numbers if number not in found]
        for i in range(0, len(unknown), 500):
            part = unknown[i : i + 500]
            marks = ",".join("?" * len(part))
            rows = self._rows(
                f"SELECT id, path, bytes, mtime_ns, inode, tag FROM files WHERE id IN ({marks})",
                part,
            )
            found |= {number: Listed(*rest) for number, *rest in rows}
        # Large files are asked for piece after piece; what a number stands for never changes.
        if unknown and len(found) <= MOST_LISTED:
            self._listed = found
        return found

    def record(self, pieces: Iterable[tuple[int, int, bytes]]) -> None:
        """Note pieces (source, piece, hash) whose bytes are verified and on disk."""
        with self._transaction() as db:
            db.executemany(
                "UPDATE pieces SET hash = ? WHERE source = ? AND piece = ?",
                ((digest, source, piece) for source, piece, digest in pieces),
            )

    def settle(self, files: Iterable[tuple[int, FileState, str | None]]) -> None:
        """Note what has become of files (number, state, why)."""
        with self._transaction() as db:
            db.executemany(
                "UPDATE files SET state = ?, why = ? WHERE id = ?",
                ((int(state), why, number) for number, state, why in files),
            )

    def again(self, files: Sequence[int]) -> None:
        """Let files that were lost here be fetched anew."""
        with self._transaction() as db:
            for number in files:
                db.execute(
                    "INSERT INTO files (source, path, bytes, mtime_ns, inode, tag) "
                    "SELECT source, path, bytes, mtime_ns, inode, tag FROM files WHERE id = ?",
                    (number,),
                )
                db.execute("UPDATE files SET state = 2 WHERE id = ?", (number,))

    # What it says -----------------------------------------------------------------------------

    def counts(self) -> dict[str, dict[FileState, tuple[int, int]]]:
        """Return files and bytes in each state, by source; old versions are left out."""
        found: dict[str, dict[FileState, tuple[int, int]]] = {}
        for name, state, n, total in self._rows(
            "SELECT name, state, count(*), sum(bytes) FROM files JOIN sources ON "
            "sources.id = files.source WHERE state != 2 GROUP BY name, state"
        ):
            found.setdefault(name, {})[FileState(state)] = (n, total)
        return found

    def recorded_bytes(self) -> int:
        """Return the bytes of all recorded pieces."""
        return int(
            self._rows("SELECT ifnull(sum(bytes), 0) FROM pieces WHERE hash IS NOT NULL")[0][0]
        )

    def missing(self) -> list[Missing]:
        """Return what cannot be had, or was left out by its source."""
        return [
            Missing(*row)
            for row in self._rows(
                "SELECT name, path, why FROM files JOIN sources ON sources.id = files.source "
                "WHERE state = 3 OR (state = 0 AND why IS NOT NULL) UNION ALL "
                "SELECT name, path, why FROM left_out JOIN sources ON "
                "sources.id = left_out.source ORDER BY 1, 2"
            )
        ]

    def waiting(self) -> list[tuple[str, int, int]]:
        """Return sources with files that have yet to come: name, files, bytes.

        Those that cannot be had now are not among them; `missing` says why.
        """
        return self._rows(
            "SELECT name, count(*), sum(bytes) FROM files JOIN sources ON "
            "sources.id = files.source WHERE state = 0 AND why IS NULL GROUP BY name ORDER BY name"
        )

    def known_files(self, source: str) -> dict[str, Listed]:
        """Return the files of a source that are waited for or done, by their paths."""
        number = self.source_id(source)
        rows = [*self.files_in(number, FileState.WAITING), *self.files_in(number, FileState.DONE)]
        return {row.listed.path: row.listed for row in rows}

    def tags(self) -> list[tuple[str, str | None, int]]:
        """Return what versions of files that are done were known by: source, tag, files.

        Empty ones are the same in all versions.
        """
        return self._rows(
            "SELECT name, tag, count(*) FROM files JOIN sources ON sources.id = files.source "
            "WHERE state = 1 AND bytes > 0 GROUP BY name, tag"
        )

    def rates(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """Return observed rates of chains: bytes per second, and seconds since then."""
        now = time.time()
        return {
            tuple(hosts.split(" ")): (rate, max(0.0, now - at))
            for hosts, rate, at in self._rows("SELECT hosts, bytes_per_s, at_unix_s FROM rates")
        }

    def set_rates(self, rates: dict[tuple[str, ...], float]) -> None:
        """Note observed rates of chains."""
        now = time.time()
        with self._transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO rates VALUES (?, ?, ?)",
                ((" ".join(hosts), rate, now) for hosts, rate in rates.items()),
            )
