"""Queries of a state: a pull reads its own state, `status` a copy in memory."""

from __future__ import annotations

import json
import time
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datacollect.transfer.protocol.patterns import Narrowing
from datacollect.transfer.protocol.source import Listed
from datacollect.transfer.store.state.pieces import Layout

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Sequence

    import apsw

    from datacollect.numbers.arrays import IntArray
    from datacollect.transfer.store.state.failures import StateErrors

GIGA = 10**9
COLUMNS = "path, bytes, mtime_s, mtime_ns, inode, tag, sha256, mode, extents"
_OF_SOURCES = "FROM files JOIN sources ON sources.id = files.source"


class FileState(IntEnum):
    """State of a listed file."""

    WAITING = 0
    DONE = 1  # whole, verified, under its final name
    OLD = 2  # another version has taken its place
    MISSING = 3  # cannot be had
    KEPT = 4  # its place at the destination is taken by something that is not to be replaced


class FileRow(NamedTuple):
    """A file as it is remembered."""

    number: int
    listed: Listed


class Stamp(NamedTuple):
    """Stamp of a file of ours when it got its name; no time: it was not noted then."""

    n_bytes: int
    mtime_ns: int | None


class PlacedRow(NamedTuple):
    """A file that is done: as listed, as it was placed, the mode it got, whether it is gone."""

    number: int
    listed: Listed
    placed: Stamp
    set_mode: int | None
    is_gone: bool


class UnplacedRow(NamedTuple):
    """A file that is not at its place: number, path, size, and whether it is kept from there."""

    number: int
    path: str
    n_bytes: int
    state: FileState


class Missing(NamedTuple):
    """File that could not be had, and why; `path_hex`: its name's bytes where it is not UTF-8."""

    source: str
    path: str
    why: str
    path_hex: str | None = None


class Wanted(NamedTuple):
    """A source that the collection wants: listed to its end or not, its last trouble."""

    name: str
    is_listed: bool
    why: str | None


def listed_of(row: Sequence[Any]) -> Listed:
    """Return a file of a row's `COLUMNS`."""
    path, n_bytes, mtime_s, rest_ns, inode, tag, sha256, mode, extents = row
    ranges = None if extents is None else tuple((a, n) for a, n in json.loads(extents))
    return Listed(path, n_bytes, mtime_s * GIGA + rest_ns, inode, tag, sha256, mode, ranges)


class Reading:
    """Questions to a state; its methods may be called by any thread.

    They are about all that the collection wants or, with a view, about what that start asks for
    of it. What lies outside the view is neither waited for nor missing then.

    Parameters
    ----------
    db : apsw.Connection
    lock : threading.RLock
    errors : StateErrors
    """

    def __init__(self, db: apsw.Connection, lock: threading.RLock, errors: StateErrors) -> None:
        self._db, self._lock, self._errors = db, lock, errors
        self._view: Narrowing | None = None
        # What SQL adds where files are asked for; empty without a view that leaves anything out.
        self._asked = ""

    def look_through(self, view: Narrowing) -> None:
        """Ask about what a start asks for from now on, and about that alone."""
        with self._lock, self._errors:
            self._view, self._asked = view, ""
            self._db.execute("DROP TABLE IF EXISTS temp.unasked")
            if view.is_all:
                return
            self._db.execute("CREATE TEMP TABLE unasked (file INTEGER PRIMARY KEY)")
            rows = self._db.execute("SELECT id, path FROM files WHERE state != 2")
            self._db.executemany(
                "INSERT INTO unasked VALUES (?)",
                ((number,) for number, path in rows if not view.fits(path)),
            )
            self._asked = " AND files.id NOT IN (SELECT file FROM unasked)"

    def last_view(self) -> Narrowing:
        """Return what the last start asked for, of all that the collection wants."""
        text = self.fact("view")
        if text is None:
            return Narrowing()
        with self._errors.interpreting():
            include, exclude = json.loads(text)
            return Narrowing(None if include is None else tuple(include), tuple(exclude))

    def close(self) -> None:
        """Close the file."""
        with self._lock, self._errors:
            self._db.close()

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._errors:
            return self._db.execute(sql, values).fetchall()

    def fact(self, key: str) -> Any:
        """Return what was noted under a key; None where nothing was."""
        rows = self._rows("SELECT value FROM facts WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    # Sources ----------------------------------------------------------------------------------

    def source_names(self) -> dict[int, str]:
        """Return the names of all sources by their numbers."""
        return dict(self._rows("SELECT id, name FROM sources"))

    def n_starts(self) -> int:
        """Return how often a pull was started."""
        with self._errors.interpreting():
            return int(self.fact("starts") or 0)

    def wanted(self) -> list[Wanted]:
        """Return the sources that the last collection file wants."""
        is_listed = "is_listed" if self._view is None else "is_viewed"
        rows = self._rows(
            f"SELECT name, {is_listed}, why FROM sources WHERE is_wanted ORDER BY name"
        )
        return [Wanted(name, bool(is_listed), why) for name, is_listed, why in rows]

    def is_complete(self) -> bool:
        """Return whether all is there that is wanted: a fact, not the lack of others.

        Each wanted source was listed to its end, and no file of theirs is waited for, missing,
        displaced or left out.
        """
        if self.n_starts() == 0:
            return False
        with self._lock:
            if any(not each.is_listed for each in self.wanted()):
                return False
            open_files = self._rows(
                f"SELECT 1 {_OF_SOURCES} WHERE is_wanted AND state IN (0, 3, 4){self._asked} "
                "LIMIT 1"
            )
            return not open_files and not self.missing(most=1)

    # Files and pieces -------------------------------------------------------------------------

    def files_in(self, source: int, *states: FileState) -> list[FileRow]:
        """Return the files of a source that are in one of some states."""
        marks = ",".join(str(int(state)) for state in states)
        rows = self._rows(
            f"SELECT id, {COLUMNS} FROM files WHERE source = ? AND state IN ({marks}) ORDER BY id",
            (source,),
        )
        with self._errors.interpreting():
            return [FileRow(row[0], listed_of(row[1:])) for row in rows]

    def unplaced(self, source: int) -> Iterator[UnplacedRow]:
        """Yield the files of a source that are waited for, or kept from their places, by path."""
        after = ""
        while rows := self._rows(
            "SELECT id, path, bytes, state FROM files WHERE source = ? AND path > ? "
            f"AND state IN (0, 4){self._asked} ORDER BY path LIMIT 1000",
            (source, after),
        ):
            for number, path, n_bytes, state in rows:
                yield UnplacedRow(number, path, n_bytes, FileState(state))
            after = rows[-1][1]

    def waited_for(self, source: int) -> list[tuple[int, int, bool]]:
        """Return the files of a source that are waited for: number, bytes, whether with holes."""
        return self._rows(
            "SELECT id, bytes, extents IS NOT NULL FROM files WHERE source = ? AND state = 0"
            f"{self._asked} ORDER BY id",
            (source,),
        )

    def placed(self, source: int) -> Iterator[PlacedRow]:
        """Yield the files of a source that are done and in view, in the order of their paths."""
        after = ""
        while rows := self._rows(
            f"SELECT id, {COLUMNS}, placed_bytes, placed_s, placed_ns, set_mode, is_gone "
            f"FROM files WHERE source = ? AND path > ? AND state = 1{self._asked} "
            "ORDER BY path LIMIT 1000",
            (source, after),
        ):
            with self._errors.interpreting():
                placed = [_placed_row(row) for row in rows]
            yield from placed
            after = rows[-1][1]

    def stamps(self, source: int, path: str) -> list[Stamp]:
        """Return what files of ours under a name looked like when they got it, the last first.

        One that is about to get it is not among them: what looks like it is somebody else's.
        """
        rows = self._rows(
            "SELECT placed_bytes, placed_s, placed_ns FROM files WHERE source = ? AND path = ? "
            "AND placed_bytes IS NOT NULL AND state != 0 ORDER BY id DESC",
            (source, path),
        )
        with self._errors.interpreting():
            return [_stamp(*row) for row in rows]

    def about_to_be_placed(self, source: int) -> dict[int, Stamp]:
        """Return what files looked like that were whole, and are not known to have their names."""
        rows = self._rows(
            "SELECT id, placed_bytes, placed_s, placed_ns FROM files WHERE source = ? "
            "AND state = 0 AND placed_bytes IS NOT NULL",
            (source,),
        )
        with self._errors.interpreting():
            return {number: _stamp(*rest) for number, *rest in rows}

    def still_waiting(self, files: Iterable[int]) -> set[int]:
        """Return which of some files are waited for."""
        rows = self._rows(
            "SELECT id FROM files WHERE state = 0 AND id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(files)),),
        )
        return {number for (number,) in rows}

    def is_expected(self, source: int, path: str) -> bool:
        """Return whether a source lists a file of this name, as far as is known."""
        return bool(
            self._rows(
                "SELECT 1 FROM files WHERE source = ? AND path = ? AND state IN (0, 1, 4) "
                "AND NOT is_gone",
                (source, path),
            )
        )

    def recorded(self, source: int) -> list[int]:
        """Return the pieces of a source that have come, or are nothing but holes.

        Of which files' parts they were `parts_bytes` and `hashes_of` say.
        """
        rows = self._rows(
            "SELECT piece FROM pieces WHERE source = ? AND hash IS NOT NULL", (source,)
        )
        return [piece for (piece,) in rows]

    def parts_bytes(self, source: int) -> dict[int, tuple[int, int]]:
        """Return how much of a source's waiting files has come, by number.

        Returns
        -------
        dict of int to (int, int)
            Bytes of all parts with a hash, and of those that are not nothing but zeros.
        """
        rows = self._rows(
            "SELECT file, sum(hashes.bytes), sum(hashes.bytes * (hash != x'')) FROM hashes "
            "JOIN files ON files.id = hashes.file WHERE source = ? AND state = 0 GROUP BY file",
            (source,),
        )
        with self._errors.interpreting():
            return {int(number): (int(n_all), int(n_data)) for number, n_all, n_data in rows}

    def looks(self, source: int) -> dict[int, str]:
        """Return how unfinished files of a source were left, by number."""
        return dict(
            self._rows(
                "SELECT file, looks FROM unfinished JOIN files ON files.id = file "
                "WHERE source = ? AND state = 0",
                (source,),
            )
        )

    def hashes_of(self, file: int) -> list[tuple[int, int, bytes]]:
        """Return the hashes of a file's parts: offset, bytes, hash; empty for nothing but zeros."""
        return self._rows(
            "SELECT offset, bytes, hash FROM hashes WHERE file = ? ORDER BY offset", (file,)
        )

    def state_of(self, file: int) -> FileState:
        """Return what has become of a file."""
        ((found,),) = self._rows("SELECT state FROM files WHERE id = ?", (file,))
        with self._errors.interpreting():
            return FileState(found)

    def layout(self, source: int) -> Layout:
        """Return how a source's files lie end to end."""
        with self._lock:
            files = self._columns(
                "SELECT id, offset, bytes FROM files WHERE source = ? AND offset IS NOT NULL "
                "ORDER BY offset",
                source,
            )
            pieces = self._columns(
                "SELECT piece, offset, bytes FROM pieces WHERE source = ? ORDER BY piece", source
            )
        layout = Layout(*files, *pieces[1:])
        if (pieces[0] != np.arange(len(pieces[0]))).any() or not layout.is_whole:
            raise self._errors.damaged("the pieces in it do not cover the files")
        return layout

    def _columns(self, sql: str, source: int) -> IntArray:
        rows = self._rows(sql, (source,))
        with self._errors.interpreting():
            return np.array(rows, dtype=np.int64).reshape(len(rows), 3).T.copy()

    # In all -----------------------------------------------------------------------------------

    def counts(self) -> dict[str, dict[FileState, tuple[int, int]]]:
        """Return files and bytes in each state, by source; old versions are left out."""
        found: dict[str, dict[FileState, tuple[int, int]]] = {}
        for name, state, n, total in self._rows(
            f"SELECT name, state, count(*), sum(bytes) {_OF_SOURCES} "
            f"WHERE state != 2{self._asked} GROUP BY name, state"
        ):
            with self._errors.interpreting():
                found.setdefault(name, {})[FileState(state)] = (n, total)
        return found

    def recorded_bytes(self) -> int:
        """Return the bytes that are verified and on disk, holes left out.

        Of files that are done all, however they came; of those that are waited for what has come.
        """
        ((done,),) = self._rows("SELECT ifnull(sum(data_bytes), 0) FROM files WHERE state = 1")
        ((come,),) = self._rows(
            "SELECT ifnull(sum(hashes.bytes), 0) FROM hashes JOIN files ON files.id = hashes.file "
            "WHERE state = 0 AND hash != x''"
        )
        return int(done) + int(come)

    def missing(self, most: int = -1) -> list[Missing]:
        """Return what cannot be had of wanted sources, or was left out by them."""
        rows = self._rows(
            f"SELECT name, path, files.why, NULL, 'file' {_OF_SOURCES} WHERE is_wanted AND "
            f"(state IN (3, 4) OR (state = 0 AND files.why IS NOT NULL)){self._asked} UNION ALL "
            "SELECT name, path, left_out.why, path_hex, 'name' FROM left_out JOIN sources ON "
            "sources.id = left_out.source WHERE is_wanted UNION ALL "
            "SELECT name, path, folders.why, NULL, 'folder' FROM folders JOIN sources ON "
            "sources.id = folders.source WHERE is_wanted AND folders.why IS NOT NULL "
            "ORDER BY 1, 2 LIMIT ?",
            (-1 if self._asked else most,),
        )
        found = [Missing(*row[:4]) for row in rows if self._is_asked(row[1], row[4])]
        return found if most < 0 else found[:most]

    def _is_asked(self, path: str, kind: str) -> bool:
        """Return whether what is missing is in view; files in SQL are."""
        if not self._asked or kind == "file":
            return True
        assert self._view is not None
        return self._view.may_matter(path) if kind == "name" else self._view.may_hold(f"{path}/")

    def waiting(self) -> list[tuple[str, int, int]]:
        """Return wanted sources with files that have yet to come: name, files, bytes.

        Those that cannot be had now are not among them; `missing` says why.
        """
        return self._rows(
            f"SELECT name, count(*), sum(bytes) {_OF_SOURCES} WHERE is_wanted AND state = 0 AND "
            f"files.why IS NULL{self._asked} GROUP BY name ORDER BY name"
        )

    def waiting_files(self, source: str, most: int) -> list[tuple[int, str]]:
        """Return files of a source that have yet to come: number and path, by path."""
        return self._rows(
            f"SELECT files.id, path {_OF_SOURCES} WHERE name = ? AND state = 0 AND "
            f"files.why IS NULL{self._asked} ORDER BY path LIMIT ?",
            (source, most),
        )

    def done_paths(self, source: str) -> set[str]:
        """Return the paths of a source's files that are done."""
        rows = self._rows(f"SELECT path {_OF_SOURCES} WHERE name = ? AND state = 1", (source,))
        return {path for (path,) in rows}

    def wanted_bytes(self, source: str) -> int:
        """Return the bytes of a source's files that are there or waited for, holes left out."""
        ((total,),) = self._rows(
            f"SELECT ifnull(sum(data_bytes), 0) {_OF_SOURCES} WHERE name = ? "
            "AND state IN (0, 1, 4)",
            (source,),
        )
        return int(total)

    def needs(self, sources: Iterable[str]) -> tuple[int, int]:
        """Return how many files of sources are waited for, and the room that they take in all."""
        names = json.dumps(list(sources))
        ((n, total),) = self._rows(
            f"SELECT count(*), ifnull(sum(data_bytes), 0) {_OF_SOURCES} WHERE "
            f"name IN (SELECT value FROM json_each(?)) AND state = 0 AND files.why IS NULL"
            f"{self._asked}",
            (names,),
        )
        return int(n), int(total)

    def begun(self, sources: Iterable[str], names: Iterable[str]) -> list[int]:
        """Return which numbers, among names of unfinished files, are of sources' waiting files."""
        rows = self._rows(
            f"SELECT files.id {_OF_SOURCES} WHERE state = 0 "
            "AND files.id IN (SELECT value FROM json_each(?)) "
            "AND name IN (SELECT value FROM json_each(?))",
            (json.dumps([int(n) for n in names if n.isdecimal()]), json.dumps(list(sources))),
        )
        return [number for (number,) in rows]

    def tags(self) -> list[tuple[str, str | None, int]]:
        """Return what versions of files that are done were known by: source, tag, files.

        Empty ones are the same in all versions.
        """
        return self._rows(
            f"SELECT name, tag, count(*) {_OF_SOURCES} "
            "WHERE state = 1 AND bytes > 0 GROUP BY name, tag"
        )

    def rates(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """Return observed rates of chains: bytes per second, and seconds since then."""
        now = time.time()
        return {
            tuple(hosts.split(" ")): (rate, max(0.0, now - at))
            for hosts, rate, at in self._rows("SELECT hosts, bytes_per_s, at_unix_s FROM rates")
        }


def _placed_row(row: Sequence[Any]) -> PlacedRow:
    n_bytes, at_s, rest_ns, set_mode, is_gone = row[10:]
    stamp = _stamp(row[2] if n_bytes is None else n_bytes, at_s, rest_ns)
    return PlacedRow(row[0], listed_of(row[1:10]), stamp, set_mode, bool(is_gone))


def _stamp(n_bytes: int, at_s: int | None, rest_ns: int | None) -> Stamp:
    if at_s is None or rest_ns is None:
        return Stamp(n_bytes, None)
    return Stamp(n_bytes, at_s * GIGA + rest_ns)
