"""Persistent state of a collection: one SQLite file, one connection that writes.

Everything in it is on disk before it is acted upon: write-ahead log, synchronous=FULL.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from datacollect.errors import ProblemError
from datacollect.transfer.protocol.patterns import ALL, Narrowing, WantedFiles
from datacollect.transfer.protocol.source import GONE
from datacollect.transfer.store.state.failures import StateErrors
from datacollect.transfer.store.state.holes import data_bytes, hole_starts
from datacollect.transfer.store.state.reading import (
    COLUMNS,
    GIGA,
    FileRow,
    FileState,
    Missing,
    Reading,
    Stamp,
    Wanted,
    listed_of,
)
from datacollect.transfer.store.state.relisting import END_OF_LISTING, NOT_LISTED
from datacollect.transfer.store.state.schema import LISTED, VERSION, bring_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from datacollect.transfer.protocol.source import LeftOut, Listed, ListedFolder
    from datacollect.transfer.store.state.pieces import Layout

__all__ = ["FileRow", "FileState", "Missing", "Settled", "SpanHash", "Stamp", "State", "Wanted"]

# So many files are kept in mind between requests.
MOST_LISTED = 64

NARROWED_BY_NOTHING = Narrowing()


class Settled(NamedTuple):
    """End of a file; of one that is done what it looks like, and the mode it got."""

    number: int
    state: FileState
    why: str | None = None
    stamp: Stamp | None = None
    set_mode: int | None = None


class SpanHash(NamedTuple):
    """The BLAKE3 of a part of a file; empty where it is nothing but zeros."""

    file: int
    offset_bytes: int
    n_bytes: int
    digest: bytes


class State(Reading):
    """The remembered collection. Its methods may be called by any thread.

    Parameters
    ----------
    path : Path
        Of the SQLite file, made where it is absent.
    synced : bool, optional
        Whether its file system knows how to sync a file: SQLite takes it for broken otherwise.

    Raises
    ------
    ProblemError
        The file is no state of a collection, or of another version.
    StoreError
        The disk is full, or fails.
    """

    def __init__(self, path: Path, *, synced: bool = True) -> None:
        errors = StateErrors(path)
        is_open_ended = has_log(path)
        self._listed: dict[int, Listed] = {}  # those that were asked for last
        with errors:
            super().__init__(apsw.Connection(str(path)), threading.RLock(), errors)
        errors.db = self._db
        try:
            with errors:  # which asks the open connection what the system said
                self._begin(path, "FULL" if synced else "OFF", is_open_ended=is_open_ended)
        except BaseException:
            with suppress(apsw.Error):
                self._db.close()
            raise

    def _begin(self, path: Path, synchronous: str, *, is_open_ended: bool) -> None:
        self._db.set_busy_timeout(5000)
        # A folder has one pull at a time, by its lock: nobody else is to have the file open, and
        # no file for sharing it is needed, which would be one more that a full disk breaks.
        kept = f"synchronous={synchronous}"
        for pragma in ("locking_mode=EXCLUSIVE", kept, "journal_mode=WAL"):
            self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._db.execute("PRAGMA temp_store=FILE").fetchall()
        if is_open_ended:
            self._errors.require_whole(self._db)
        with self._transaction() as db:
            version = bring_up(db)
        if not isinstance(version, int):
            raise self._errors.damaged("it holds no collection")
        if version != VERSION:
            raise ProblemError(
                f"{path}: must be state of version {VERSION}, got {version!r}; continue with the "
                "version of datacollect that began this pull"
            )
        self._db.execute(LISTED)

    def copied_to(self, path: Path) -> State:
        """Return a copy of all that is remembered, in another file, which is made again."""
        remove_state(path)
        with self._lock, self._errors:
            copy = apsw.Connection(str(path))
            try:
                with copy.backup("main", self._db, "main") as backup:
                    backup.step()
            finally:
                copy.close()
        return State(path)

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        """All or nothing; one inside another is a part of it."""
        with self._lock, self._errors:
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk has rolled it back already.
                with suppress(apsw.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                raise

    def set_fact(self, key: str, value: Any) -> None:
        """Note something under a key."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, value))

    # What is wanted ---------------------------------------------------------------------------

    def begin_start(
        self,
        names: Iterable[str],
        view: Narrowing = NARROWED_BY_NOTHING,
        wants: Callable[[str], WantedFiles] | None = None,
    ) -> None:
        """Note what is wanted, exactly these sources, and what this start asks for of them.

        None of them is listed yet. A start that asks for a part leaves alone what is known of the
        rest, as long as the collection wants of a source what it wanted when all was listed.

        Parameters
        ----------
        names : iterable of str
        view : Narrowing, optional
        wants : callable, optional
            Returns which files of a source the collection wants.
        """
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO facts VALUES ('starts', "
                "ifnull((SELECT value FROM facts WHERE key = 'starts'), 0) + 1)"
            )
            told = None if view.is_all else json.dumps([view.include, view.exclude])
            self.set_fact("view", told)
            self.look_through(view)
            listed_before = set() if view.is_all else self._listed_as_wanted(wants or _all_of)
            db.execute("UPDATE sources SET is_wanted = 0, is_listed = 0, is_viewed = 0, why = NULL")
            for name in listed_before:
                db.execute("UPDATE sources SET is_listed = 1 WHERE name = ?", (name,))
            # Named once: what its source does not have any more is not for ever missing.
            db.execute(
                f"UPDATE files SET state = ? WHERE state = ? AND why = ?{self._asked}",
                (int(FileState.OLD), int(FileState.MISSING), GONE),
            )
            for name in names:
                self.set_wanted(name, True)

    def _listed_as_wanted(self, wants: Callable[[str], WantedFiles]) -> set[str]:
        """Return the sources all of which was listed that is wanted of them now."""
        rows = self._rows("SELECT name, wants FROM sources WHERE is_listed")
        return {name for name, text in rows if text == _told(wants(name))}

    def is_listed_for(self, name: str, wanted: WantedFiles) -> bool:
        """Return whether a source was listed last, all of it, for what is wanted of it now."""
        return self._rows("SELECT wants FROM sources WHERE name = ?", (name,)) == [(_told(wanted),)]

    def set_wanted(self, name: str, is_wanted: bool) -> None:
        """Note whether a source's files are wanted, as far as that is known by now."""
        with self._transaction() as db:
            number = self.source_id(name)
            db.execute("UPDATE sources SET is_wanted = ? WHERE id = ?", (is_wanted, number))

    def note_trouble(self, name: str, why: str | None) -> None:
        """Note what was wrong with a source the last time; None: nothing."""
        text = None if why is None else storable(why)
        with self._transaction() as db:
            db.execute("UPDATE sources SET why = ? WHERE id = ?", (text, self.source_id(name)))

    def source_id(self, name: str) -> int:
        """Return a source's number, made where it is new."""
        known = "SELECT id FROM sources WHERE name = ?"
        rows = self._rows(known, (name,))
        if not rows:
            with self._transaction() as db:
                db.execute("INSERT OR IGNORE INTO sources (name) VALUES (?)", (name,))
            rows = self._rows(known, (name,))
        with self._errors.interpreting():
            return int(rows[0][0])

    # Listings ---------------------------------------------------------------------------------

    def begin_listing(self, source: int) -> None:
        """Forget what an earlier, broken listing of a source said."""
        with self._transaction() as db:
            for table in ("listed", "listed_out", "listed_folders"):
                db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))

    def add_page(
        self,
        source: int,
        files: Iterable[Listed],
        left_out: Iterable[LeftOut] = (),
        folders: Iterable[ListedFolder] = (),
        unconfirmed: Iterable[LeftOut] = (),
    ) -> None:
        """Take a page of a listing in; what is not confirmed is named where it is done."""
        with self._transaction() as db:
            db.executemany(
                f"INSERT INTO listed VALUES ({','.join('?' * 11)})",
                ((source, *_cells(file)) for file in files),
            )
            db.executemany(
                "INSERT INTO listed_out VALUES (?, ?, ?, ?, ?)",
                (
                    (source, each.name, each.why, each.name_hex, is_kept)
                    for is_kept, entries in enumerate((left_out, unconfirmed))
                    for each in entries
                ),
            )
            db.executemany(
                "INSERT OR REPLACE INTO listed_folders VALUES (?, ?, ?, ?, ?)",
                ((source, each.path, each.mode, *_time(each.mtime_ns)) for each in folders),
            )

    def end_listing(self, source: int, wanted: WantedFiles = ALL) -> None:
        """Compare a whole listing with what is known, and note that the source is listed.

        Files that are listed as before stay as they are, those that changed are fetched again, and
        those that are gone are missing, unless they have been collected. What is not
        wanted any more is not gone. What a start does not ask for stays as it is.
        """
        view = wanted.narrowing
        with self._transaction() as db:
            db.execute("DELETE FROM out_of_view")
            if not view.is_all:
                self._note_out_of_view(source, view)
            if not wanted.is_all:
                rows = self._rows(NOT_LISTED, (source,))
                db.executemany(
                    "UPDATE files SET state = 2 WHERE id = ?",
                    ((number,) for number, path in rows if not wanted.fits(path)),
                )
            for sql in END_OF_LISTING:
                db.execute(sql, {"source": source} if ":source" in sql else None)
            if self._view is not None:
                db.execute("UPDATE sources SET is_viewed = 1 WHERE id = ?", (source,))
            if view.is_all:
                db.execute(
                    "UPDATE sources SET is_listed = 1, wants = ? WHERE id = ?",
                    (_told(wanted), source),
                )
            self._listed = {}

    def _note_out_of_view(self, source: int, view: Narrowing) -> None:
        """Note what of a source a start does not ask for: its listing says nothing of that."""
        kinds = (
            ("file", "SELECT id, path FROM files WHERE source = ? AND state != 2", view.fits),
            ("name", "SELECT rowid, path FROM left_out WHERE source = ?", view.may_matter),
            (
                "folder",
                "SELECT path, path FROM folders WHERE source = ?",
                lambda path: view.may_hold(f"{path}/"),
            ),
        )
        with self._transaction() as db:
            for kind, rows, is_asked in kinds:
                db.executemany(
                    "INSERT INTO out_of_view VALUES (?, ?)",
                    (
                        (kind, what)
                        for what, path in db.execute(rows, (source,))
                        if not is_asked(path)
                    ),
                )

    def lay_new_files(self, source: int, piece_bytes: int, *, apart: bool = False) -> Layout:
        """Lay files that lie nowhere yet behind the others, and cut them into pieces.

        Pieces that are nothing but holes are recorded with it.
        """
        layout = self.layout(source)
        rows = self._rows(
            "SELECT id, bytes, extents FROM files WHERE source = ? AND bytes > 0 "
            f"AND offset IS NULL AND state = 0 AND why IS NULL{self._asked} ORDER BY id",
            (source,),
        )
        if not rows:
            return layout
        new = np.array([row[:2] for row in rows], dtype=np.int64)
        sparse = {number: json.loads(text) for number, _, text in rows if text is not None}
        n_files, n_pieces = len(layout.files), len(layout.pieces)
        layout = layout.extended(new[:, 0], new[:, 1], piece_bytes, apart=apart, sparse=sparse)
        starts = dict(
            zip(layout.files[n_files:].tolist(), layout.starts[n_files:].tolist(), strict=True)
        )
        holes: dict[int, int] = {}  # the piece's start, the file
        sizes = dict(new.tolist())
        for number, extents in sparse.items():
            for at in hole_starts(sizes[number], extents, piece_bytes):
                holes[starts[number] + at] = number
        with self._transaction() as db:
            db.executemany(
                "UPDATE files SET offset = ? WHERE id = ?",
                ((start, number) for number, start in starts.items()),
            )
            cut = zip(
                layout.pieces[n_pieces:].tolist(),
                layout.piece_bytes[n_pieces:].tolist(),
                strict=True,
            )
            db.executemany(
                "INSERT INTO pieces (source, piece, offset, bytes, hash) VALUES (?, ?, ?, ?, ?)",
                (
                    (source, n_pieces + i, begin, n, b"" if begin in holes else None)
                    for i, (begin, n) in enumerate(cut)
                ),
            )
            size_of = dict(zip(layout.pieces.tolist(), layout.piece_bytes.tolist(), strict=True))
            db.executemany(
                "INSERT OR REPLACE INTO hashes VALUES (?, ?, ?, x'')",
                ((file, at - starts[file], size_of[at]) for at, file in holes.items()),
            )
        return layout

    def known_files(self, source: str) -> dict[str, Listed]:
        """Return the files of a source that are waited for or done, by their paths."""
        rows = self.files_in(
            self.source_id(source), FileState.WAITING, FileState.DONE, FileState.KEPT
        )
        return {row.listed.path: row.listed for row in rows}

    # Files and pieces -------------------------------------------------------------------------

    def file_rows(self, numbers: Sequence[int]) -> dict[int, Listed]:
        """Return some files by their numbers."""
        known = self._listed
        found = {number: known[number] for number in numbers if number in known}
        unknown = [number for number in numbers if number not in found]
        for i in range(0, len(unknown), 500):
            part = unknown[i : i + 500]
            marks = ",".join("?" * len(part))
            rows = self._rows(f"SELECT id, {COLUMNS} FROM files WHERE id IN ({marks})", part)
            with self._errors.interpreting():
                found |= {row[0]: listed_of(row[1:]) for row in rows}
        # Large files are asked for piece after piece; what a number stands for hardly changes.
        if unknown and len(found) <= MOST_LISTED:
            self._listed = found
        return found

    def record(
        self,
        pieces: Iterable[tuple[int, int, bytes]],
        spans: Iterable[SpanHash] = (),
        whole: Iterable[Settled] = (),
        looks: Iterable[tuple[int, str | None]] = (),
    ) -> None:
        """Note pieces (source, piece, hash) that are verified and on disk, and their parts.

        Files that are whole are noted with what they look like, before they get their names; of
        others `looks` are noted, None where they are not to be trusted.
        """
        with self._transaction() as db:
            db.executemany(
                "UPDATE pieces SET hash = ? WHERE source = ? AND piece = ?",
                ((digest, source, piece) for source, piece, digest in pieces),
            )
            db.executemany("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?, ?)", spans)
            self.settle(whole)
            self.note_looks(looks)

    def note_looks(self, looks: Iterable[tuple[int, str | None]]) -> None:
        """Note how unfinished files are left with all that is recorded of them; None: unknown."""
        with self._transaction() as db:
            for file, text in looks:
                if text is None:
                    db.execute("DELETE FROM unfinished WHERE file = ?", (file,))
                else:
                    db.execute("INSERT OR REPLACE INTO unfinished VALUES (?, ?)", (file, text))

    def forget_parts(self, file: int, offsets: Iterable[int]) -> None:
        """Note that parts of a file are not there: they are to be fetched again."""
        with self._transaction() as db:
            db.execute("DELETE FROM unfinished WHERE file = ?", (file,))
            db.executemany(
                "DELETE FROM hashes WHERE file = ? AND offset = ?", ((file, at) for at in offsets)
            )

    def settle(self, files: Iterable[Settled]) -> None:
        """Note what has become of files."""
        with self._transaction() as db:
            for each in files:
                why = None if each.why is None else storable(each.why)
                db.execute(
                    "UPDATE files SET state = ?, why = ? WHERE id = ?",
                    (int(each.state), why, each.number),
                )
                if each.stamp is not None:
                    db.execute(
                        "UPDATE files SET placed_bytes = ?, placed_s = ?, placed_ns = ?, "
                        "set_mode = ? WHERE id = ?",
                        (
                            each.stamp.n_bytes,
                            *_time(each.stamp.mtime_ns),
                            each.set_mode,
                            each.number,
                        ),
                    )

    def forget_stamp(self, file: int) -> None:
        """Note that a file that was about to get its name has not got it."""
        with self._transaction() as db:
            db.execute("UPDATE files SET placed_bytes = NULL WHERE id = ?", (file,))

    def make_way(self, source: int, path: str) -> None:
        """Forget files that are done at a name, or below it: something else takes their place."""
        with self._transaction() as db:
            db.execute(
                "UPDATE files SET state = 2 WHERE source = ? AND state = 1 AND is_gone AND "
                "(path = ? OR (path > ? AND path < ?))",
                (source, path, f"{path}/", f"{path}0"),
            )

    def put_off(self, source: int, why: str) -> None:
        """Let a source's files wait, with the reason."""
        with self._transaction() as db:
            db.execute(
                f"UPDATE files SET why = ? WHERE source = ? AND state = 0{self._asked}",
                (storable(why), source),
            )

    def again(self, files: Sequence[int]) -> list[int]:
        """Let files that were lost here be fetched again; return their new numbers."""
        numbers = []
        with self._transaction() as db:
            for number in files:
                db.execute(
                    "INSERT INTO files (source, path, bytes, mtime_s, mtime_ns, inode, tag, "
                    "sha256, mode, extents, data_bytes) SELECT source, path, bytes, mtime_s, "
                    "mtime_ns, inode, tag, sha256, mode, extents, data_bytes FROM files "
                    "WHERE id = ?",
                    (number,),
                )
                numbers.append(db.last_insert_rowid())
                if self._asked:
                    db.execute(
                        "INSERT INTO unasked SELECT ? WHERE ? IN (SELECT file FROM unasked)",
                        (numbers[-1], number),
                    )
                db.execute("UPDATE files SET state = 2 WHERE id = ?", (number,))
        return numbers

    def forget_holes(self, files: Sequence[int]) -> None:
        """Let files that lie nowhere yet have data where holes were listed."""
        with self._transaction() as db:
            db.executemany(
                "UPDATE files SET extents = NULL, data_bytes = bytes WHERE id = ?",
                ((number,) for number in files),
            )

    def release(self, files: Sequence[int]) -> None:
        """Wait for files again whose place was taken; those that had come are fetched again."""
        with self._transaction() as db:
            laid = []
            for number in files:
                if self._rows("SELECT offset IS NULL FROM files WHERE id = ?", (number,))[0][0]:
                    db.execute("UPDATE files SET state = 0, why = NULL WHERE id = ?", (number,))
                else:
                    laid.append(number)
            self.again(laid)

    # Folders ----------------------------------------------------------------------------------

    def folders(self, source: int) -> list[tuple[str, int | None, int | None]]:
        """Return the folders that a source has listed: path, mode, time; deepest first."""
        rows = self._rows(
            "SELECT path, mode, mtime_s, mtime_ns FROM folders WHERE source = ?", (source,)
        )
        found = [
            (path, mode, None if at_s is None else at_s * GIGA + rest_ns)
            for path, mode, at_s, rest_ns in rows
        ]
        return sorted(found, key=lambda each: (-each[0].count("/"), each[0]))

    def refuse_folders(self, source: int, whys: dict[str, str]) -> None:
        """Note which folders cannot be made, and why; all others can."""
        with self._transaction() as db:
            db.execute(
                "UPDATE folders SET why = NULL WHERE source = ? AND why IS NOT NULL", (source,)
            )
            db.executemany(
                "UPDATE folders SET why = ? WHERE source = ? AND path = ?",
                ((storable(why), source, path) for path, why in whys.items()),
            )

    # Rates ------------------------------------------------------------------------------------

    def set_rates(self, rates: dict[tuple[str, ...], float]) -> None:
        """Note observed rates of chains."""
        now = time.time()
        with self._transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO rates VALUES (?, ?, ?)",
                ((" ".join(hosts), rate, now) for hosts, rate in rates.items()),
            )


def has_log(path: Path) -> bool:
    """Return whether a log lies beside a state: whoever had it open has not closed it."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def remove_state(path: Path) -> None:
    """Remove a state, and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


def storable(text: str) -> str:
    r"""Return a text that is UTF-8 whatever it was.

    >>> storable(chr(0xD800) + "a")
    '\\ud800a'
    """
    return text.encode(errors="backslashreplace").decode()


def _all_of(_: str) -> WantedFiles:
    return ALL


def _told(wanted: WantedFiles) -> str:
    """Return what a collection wants of a source as text, for comparison."""
    said = [] if wanted.said is None else [wanted.said]
    return json.dumps([wanted.files, wanted.largest_bytes, *said])


def _time(mtime_ns: int | None) -> tuple[int, int] | tuple[None, None]:
    return (None, None) if mtime_ns is None else divmod(mtime_ns, GIGA)


def _cells(file: Listed) -> tuple[Any, ...]:
    extents = None if file.extents is None else json.dumps(file.extents, separators=(",", ":"))
    return (
        file.path,
        file.n_bytes,
        *_time(file.mtime_ns),
        file.inode,
        file.tag,
        file.sha256,
        file.mode,
        extents,
        data_bytes(file),
    )
