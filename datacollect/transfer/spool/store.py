"""Store of a spool: sealed pieces of many collections, in segments of each its own.

Who asks to keep pieces waits until they are on the disk: their bytes synced, then their rows
committed. While one group is synced, the next one gathers. Nothing of a collection is left after
its end: neither segments nor rows.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.errors import RefusedError, StoreError
from datacollect.files.held_folder import Database, reader_of
from datacollect.transfer.pieces.room import Room
from datacollect.transfer.pieces.segments import MOST_SEGMENT_BYTES, SegmentFiles, segment_name
from datacollect.transfer.spool.sealing import OVERHEAD_BYTES, SealedPiece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import apsw

    from datacollect.files.held_folder import Held

SCHEMA = """
CREATE TABLE collections (number INTEGER PRIMARY KEY AUTOINCREMENT, issuer TEXT NOT NULL,
    name TEXT NOT NULL, until_s REAL NOT NULL,
    expired_pieces INTEGER NOT NULL DEFAULT 0, expired_bytes INTEGER NOT NULL DEFAULT 0,
    dropped_pieces INTEGER NOT NULL DEFAULT 0, dropped_bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (issuer, name));
CREATE TABLE pieces (collection INTEGER NOT NULL, source TEXT NOT NULL, piece INTEGER NOT NULL,
    root BLOB NOT NULL, n_bytes INTEGER NOT NULL, segment INTEGER NOT NULL,
    segment_offset INTEGER NOT NULL, kept_s REAL NOT NULL,
    PRIMARY KEY (collection, source, piece)) WITHOUT ROWID;
CREATE INDEX of_segment ON pieces (segment);
"""
FILE = "spool.sqlite"
OPEN, CLOSED = "open", "kept"
# Nothing waits for longer, whatever an order says, and whatever a clock does.
MOST_KEEP_S = 31 * 86_400.0
MOST_COLLECTIONS = 1000
NO_ROOM, GONE, FAILED = 507, 404, 503
EXPIRED, DROPPED = "expired", "dropped"
# Orders that want to keep a collection for less longer than it is kept change nothing.
LATER_S = 60.0
# So long after its time a collection is forgotten whose collector has not asked what was lost.
FORGOTTEN_S = 31 * 86_400.0


class Lost(NamedTuple):
    """Pieces that are not kept any more though nobody fetched them, and their bytes."""

    pieces: int = 0
    n_bytes: int = 0


@dataclass(frozen=True)
class SpooledCollection:
    """A collection at a spool.

    Attributes
    ----------
    issuer, name : str
        The collector's public key, and what it calls the collection.
    until_s : float
        When what is left of it is dropped, in seconds since 1970.
    expired, dropped : Lost
        What was, because its time was over, and by the operator.
    pieces, n_bytes : int
        What is kept.
    oldest_s : float or None
        Since when the oldest of it is, in seconds since 1970.
    """

    issuer: str
    name: str
    until_s: float
    expired: Lost
    dropped: Lost
    pieces: int
    n_bytes: int
    oldest_s: float | None


class Added(NamedTuple):
    """A piece that is written, and kept once it has been waited for: see `SpoolStore.wait`."""

    collection: int
    number: int
    era: int


class _Placed(NamedTuple):
    """A piece that is written and not committed."""

    collection: int
    piece: SealedPiece
    segment: int
    offset: int


class SpoolStore:
    """The folder of a spool, held by one process; for many threads.

    Parameters
    ----------
    held : Held
        The folder, which `close` lets go.
    owner : str
        The agent's name.
    most_bytes : int
        Room for everything.

    Raises
    ------
    ProblemError
        The folder is another agent's.
    StoreError
        The disk is full, or fails.
    """

    def __init__(self, held: Held, owner: str, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        # For all that is known and for the database. While a group is synced it is let go.
        self._changed = threading.Condition()
        self._reading = threading.Lock()
        # Grows each time the disk has failed: what was under way before is lost.
        self._era = 0
        self._is_broken = self._is_committing = False
        with ExitStack() as undo:
            undo.callback(held.close)
            whose = f"the spool of {owner}"
            self._db = Database(held.folder, FILE, SCHEMA, whose, is_read_beside=True)
            undo.callback(self._db.close)
            self._files = SegmentFiles(held.folder / OPEN, held.folder / CLOSED)
            undo.callback(self._files.close)
            self._closed_folder = held.folder / CLOSED / "segments"
            self._reader = self._db.reader()
            undo.callback(self._reader.close)
            self._begin()
            self._closing = undo.pop_all()

    def close(self) -> None:
        """Let others have the folder."""
        with self._changed:
            self._settle()
            self._closing.close()

    def _begin(self) -> None:
        """Go by what is on the disk alone; finish what was begun."""
        self._files.close()
        rows = self._db.rows(
            "SELECT segment, collection, max(segment_offset + n_bytes) FROM pieces GROUP BY segment"
        )
        there = self._closed_bytes().keys()
        for number, _, n_bytes in rows:
            if number not in there:
                self._files.close_segment(number, n_bytes)
        self._files.forget_open()
        # Of some all rows are gone: they were fetched, or their collection has ended.
        self._files.remove(map(segment_name, sorted(there - {number for number, _, _ in rows})))
        sizes = self._closed_bytes()
        self._room = Room(self._most_bytes, {n: (n_bytes, 0.0) for n, n_bytes in sizes.items()}, {})
        self._segments: dict[int, set[int]] = {}  # by collection
        for number, collection, _ in rows:
            self._segments.setdefault(collection, set()).add(number)
        self._next_segment = max(sizes, default=-1) + 1
        # By collection: its open segment, and how long that is.
        self._open: dict[int, tuple[int, int]] = {}
        self._full: list[tuple[int, int]] = []
        self._waiting: list[_Placed] = []
        self._n_added = self._n_kept = 0
        found = self._db.rows("SELECT issuer, name, number, until_s FROM collections")
        self._known: dict[tuple[str, str], int] = {
            (issuer, name): number for issuer, name, number, _ in found
        }
        self._until_s: dict[int, float] = {row[2]: row[3] for row in found}
        self._is_broken = False

    def _closed_bytes(self) -> dict[int, int]:
        with self._db.errors():
            return {int(path.stem): path.stat().st_size for path in self._closed_folder.iterdir()}

    # One at a time --------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Wait until no group is being synced: what it syncs may be closed then."""
        while self._is_committing:
            self._changed.wait()

    def _fail(self) -> None:
        """Go back to what is on the disk, as soon as somebody asks; who waits is told."""
        self._era += 1
        self._is_broken = True
        self._waiting, self._full = [], []
        self._changed.notify_all()

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Have the store for oneself; what its disk refuses is a refusal."""
        with self._changed:
            try:
                if self._is_broken:
                    self._settle()
                    self._begin()
                yield
            except StoreError as error:
                self._fail()
                raise RefusedError(str(error), NO_ROOM) from None

    # What is to be kept ---------------------------------------------------------------------------

    def order(self, issuer: str, name: str, until_s: float, now_s: float) -> int:
        """Return the number of a collection of which pieces are to be kept until an instant."""
        until_s = min(until_s, now_s + MOST_KEEP_S)
        with self._disk():
            number: int | None = self._known.get((issuer, name))
            if number is None and len(self._known) >= MOST_COLLECTIONS:
                raise RefusedError(
                    "this agent keeps pieces of too many collections already", NO_ROOM
                )
            # Not for each order by some seconds: that would be a sync each time.
            if number is not None and self._until_s[number] >= until_s - LATER_S:
                return number
            with self._db.transaction():
                self._db.rows(
                    "INSERT INTO collections (issuer, name, until_s) VALUES (?, ?, ?) "
                    "ON CONFLICT DO UPDATE SET until_s = excluded.until_s",
                    (issuer, name, until_s),
                )
                find = "SELECT number FROM collections WHERE issuer = ? AND name = ?"
                made = int(self._db.rows(find, (issuer, name))[0][0])
            self._known[issuer, name], self._until_s[made] = made, until_s
            return made

    def number_of(self, issuer: str, name: str) -> int | None:
        """Return the number of a collection; None where there is none of that name."""
        with self._changed:
            return self._known.get((issuer, name))

    def numbers_of(self, name: str | None) -> list[int]:
        """Return the numbers of all collections of a name, whoever's; None: of all."""
        with self._changed:
            return [n for (_, each), n in self._known.items() if name in (None, each)]

    def reserve(self, n_bytes: int) -> None:
        """Promise room, before a byte of it comes.

        Raises
        ------
        RefusedError
            There is none: what was to come stays where it is.
        """
        with self._disk():
            free_bytes = self._room.free_bytes(self._files.free_bytes())
            if n_bytes > free_bytes:
                raise RefusedError(
                    f"no room in the spool for {n_bytes} bytes: of its {self._most_bytes} bytes "
                    f"{free_bytes} are free",
                    NO_ROOM,
                )
            self._room.reserved_bytes += n_bytes

    def let_go(self, n_bytes: int) -> None:
        """Free room that was promised, and is not needed."""
        with self._changed:
            self._room.reserved_bytes = max(self._room.reserved_bytes - n_bytes, 0)

    def add(self, collection: int, piece: SealedPiece, sealed: bytes) -> Added:
        """Write a piece whose room is reserved; it is not kept before it was waited for.

        Raises
        ------
        RefusedError
            The disk is full, or fails, or the collection has ended.
        """
        with self._disk():
            self._require(collection)
            number, offset = self._open.get(collection, (-1, 0))
            if number < 0 or offset + len(sealed) > MOST_SEGMENT_BYTES:
                if number >= 0:
                    self._full.append((number, offset))
                number, offset = self._next_segment, 0
                self._next_segment += 1
                self._segments.setdefault(collection, set()).add(number)
            self._files.write(number, offset, sealed)
            self._open[collection] = number, offset + len(sealed)
            self._room.reserved_bytes = max(self._room.reserved_bytes - len(sealed), 0)
            self._room.open_bytes += len(sealed)
            self._waiting.append(_Placed(collection, piece, number, offset))
            self._n_added += 1
            return Added(collection, self._n_added, self._era)

    def _require(self, collection: int) -> None:
        if collection not in self._until_s:
            raise RefusedError("the collection of this piece has ended at this agent", GONE)

    def wait(self, added: Added, now_s: float) -> None:
        """Wait until a piece that was added is on the disk, and all before it: then it is kept.

        Raises
        ------
        RefusedError
            The disk is full, or fails, or its collection has ended: it is not kept.
        """
        with self._changed:
            while self._n_kept < added.number and self._era == added.era:
                if self._is_committing:
                    self._changed.wait()
                else:
                    self._commit(now_s)
            if self._era != added.era:
                raise RefusedError("the disk is full or failing: the piece is not kept", NO_ROOM)
            self._require(added.collection)

    def _commit(self, now_s: float) -> None:
        """Have all that waits on the disk; meanwhile others may add."""
        era, upto = self._era, self._n_added
        group, full = self._waiting, self._full
        self._waiting, self._full = [], []
        self._is_committing = True
        self._changed.release()
        failed = False
        try:
            self._files.sync({each.segment for each in group})
        except StoreError:
            failed = True
        finally:
            self._changed.acquire()
            self._is_committing = False
        try:
            if not failed and self._era == era:
                self._commit_rows(group, now_s)
                for number, n_bytes in full:
                    self._files.close_segment(number, n_bytes)
                    self._room.close(number, now_s, n_bytes)
                self._n_kept = upto
        except StoreError:
            failed = True
        if failed:
            self._fail()
        self._changed.notify_all()

    def _commit_rows(self, group: Sequence[_Placed], now_s: float) -> None:
        rows = (
            (
                *(each.collection, each.piece.source, each.piece.index, each.piece.root),
                *(each.piece.sealed_bytes, each.segment, each.offset, now_s),
            )
            for each in group
            if each.collection in self._until_s
        )
        with self._db.transaction():
            self._db.many("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    # What is kept ---------------------------------------------------------------------------------

    def fetch(self, collection: int, source: str, index: int, root: bytes) -> bytes:
        """Return a sealed piece.

        Raises
        ------
        RefusedError
            It is not here, or cannot be read.
        """
        place = self._place(collection, source, index, root)
        try:
            return self._files.read(*place)
        except StoreError as error:
            self._place(collection, source, index, root)  # it may have been fetched, and be gone
            raise RefusedError(str(error), FAILED) from None

    def _place(self, collection: int, source: str, index: int, root: bytes) -> tuple[int, int, int]:
        rows = self._read(
            "SELECT segment, segment_offset, n_bytes FROM pieces "
            "WHERE collection = ? AND source = ? AND piece = ? AND root = ?",
            (collection, source, index, root),
        )
        if not rows:
            raise RefusedError("this agent has no such piece, or no longer", GONE)
        segment, offset, n_bytes = rows[0]
        return segment, offset, n_bytes

    def pieces(
        self, collection: int, after: tuple[str, int] = ("", -1), most: int = 10_000
    ) -> list[SealedPiece]:
        """Return the pieces of a collection behind one of them, in the order of their names."""
        rows = self._read(
            "SELECT source, piece, root, n_bytes FROM pieces WHERE collection = ? "
            "AND (source, piece) > (?, ?) ORDER BY source, piece LIMIT ?",
            (collection, *after, most),
        )
        return [
            SealedPiece(source, index, root, n_bytes - OVERHEAD_BYTES)
            for source, index, root, n_bytes in rows
        ]

    def collection(self, number: int) -> SpooledCollection | None:
        """Return what is known of a collection."""
        with self._reading, self._db.errors():
            found = collections_in(self._reader, number)
        return found[0] if found else None

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """Return what a question finds that is committed."""
        with self._reading, self._db.errors():
            return self._reader.execute(sql, values).fetchall()

    # What goes ------------------------------------------------------------------------------------

    def forget(self, collection: int, pieces: Iterable[tuple[str, int]]) -> None:
        """Let pieces go, by source and number: the destination has them."""
        with self._disk():
            with self._db.transaction():
                self._db.many(
                    "DELETE FROM pieces WHERE collection = ? AND source = ? AND piece = ?",
                    ((collection, *piece) for piece in pieces),
                )
            is_open = {number for number, _ in (*self._open.values(), *self._full)}
            for number in sorted(self._segments.get(collection, set()) - is_open):
                if not self._db.rows("SELECT 1 FROM pieces WHERE segment = ? LIMIT 1", (number,)):
                    self._remove(collection, [number])

    def end(self, collection: int) -> None:
        """Keep nothing of a collection, not that it was here either."""
        self._drop_all(collection, None)

    def drop(self, collection: int, why: str) -> None:
        """Drop all pieces of a collection, and count them: `EXPIRED` or `DROPPED`."""
        self._drop_all(collection, why)

    def _drop_all(self, collection: int, why: str | None) -> None:
        with self._disk():
            self._settle()
            if self._is_broken:
                self._begin()
            self._waiting = [each for each in self._waiting if each.collection != collection]
            ours = self._segments.get(collection, set())
            with self._db.transaction():
                if why is None:
                    self._db.rows("DELETE FROM collections WHERE number = ?", (collection,))
                else:
                    self._db.rows(
                        f"UPDATE collections SET {why}_pieces = {why}_pieces + lost.n, "
                        f"{why}_bytes = {why}_bytes + lost.n_bytes FROM (SELECT count(*) AS n, "
                        f"coalesce(sum(n_bytes - {OVERHEAD_BYTES}), 0) AS n_bytes FROM pieces "
                        "WHERE collection = ?) AS lost WHERE number = ?",
                        (collection, collection),
                    )
                self._db.rows("DELETE FROM pieces WHERE collection = ?", (collection,))
            if why is None:
                self._known = {k: n for k, n in self._known.items() if n != collection}
                self._until_s.pop(collection, None)
            self._full = [each for each in self._full if each[0] not in ours]
            self._open.pop(collection, None)
            self._remove(collection, sorted(ours))

    def _remove(self, collection: int, numbers: Sequence[int]) -> None:
        """Remove segments of which no row is left."""
        for number in numbers:
            n_bytes = self._files.discard(number)
            if number in self._room.closed:
                self._room.drop([number])
            else:
                self._room.open_bytes -= n_bytes
        self._segments[collection] = self._segments.get(collection, set()).difference(numbers)

    def expire(self, now_s: float) -> list[int]:
        """Drop what nobody has fetched in its time; return of which collections."""
        with self._changed:
            until_s = dict(self._until_s)
        over = []
        for number, each_s in until_s.items():
            if each_s > now_s + MOST_KEEP_S:  # a clock that was set back must not keep it for ever
                self._keep_until(number, now_s + MOST_KEEP_S)
            elif each_s + FORGOTTEN_S <= now_s:
                self.end(number)
            elif each_s <= now_s and self.pieces(number, most=1):
                self.drop(number, EXPIRED)
                over.append(number)
        return over

    def _keep_until(self, number: int, until_s: float) -> None:
        with self._disk():
            with self._db.transaction():
                sql = "UPDATE collections SET until_s = ? WHERE number = ?"
                self._db.rows(sql, (until_s, number))
            self._until_s[number] = until_s


def collections_in(reader: apsw.Connection, number: int | None = None) -> list[SpooledCollection]:
    """Return the collections of which a spool keeps something, or has lost something.

    Parameters
    ----------
    reader : apsw.Connection
    number : int, optional
        Of one of them alone.
    """
    rows = reader.execute(
        "SELECT issuer, name, until_s, expired_pieces, expired_bytes, dropped_pieces, "
        "dropped_bytes, count(piece), coalesce(sum(n_bytes), 0), min(kept_s) FROM collections "
        "LEFT JOIN pieces ON pieces.collection = collections.number "
        "WHERE ? IS NULL OR collections.number = ? GROUP BY collections.number ORDER BY number",
        (number, number),
    )
    return [
        SpooledCollection(issuer, name, until_s, Lost(*lost[:2]), Lost(*lost[2:]), *kept)
        for issuer, name, until_s, *lost, n, n_bytes, oldest_s in rows
        for kept in [(n, n_bytes, oldest_s)]
    ]


def collections_of(folder: Path) -> list[SpooledCollection]:
    """Return the same of a folder that another process may hold; none where it is no spool yet."""
    path = folder / FILE
    if not path.is_file():
        return []
    reader = reader_of(path)
    try:
        return collections_in(reader)
    finally:
        reader.close()
