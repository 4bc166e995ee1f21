"""Store of a bistro's uploads: rows in groups; segments and batches as files.

The order makes every step safe to end at. A group's bytes are synced, then its rows are committed:
what a row does not name is cut off at the next start. A closed segment is renamed into the served
folder, then its index; a batch after all of its rows are committed. What was begun is finished by
the next start, from the rows alone, with the same bytes.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.bistro.formats.custody.batches import FIRST, ROW, read_batch, row_of, sign_batch
from datacollect.bistro.formats.custody.segments import (
    NOBODYS,
    PIECE,
    batch_name,
    index_name,
    segment_name,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.upload_wish import Wish
from datacollect.bistro.upload_server.messages import (
    Append,
    Carry,
    CloseBatch,
    CloseSegment,
    Drop,
    Forget,
    Keep,
    Kept,
    Release,
    Unlink,
    Upload,
)
from datacollect.errors import StoreError
from datacollect.files.held_folder import Database
from datacollect.transfer.pieces.segments import SegmentFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.bistro.formats.event.event import Bistro, Event
    from datacollect.bistro.upload_server.messages import Action
    from datacollect.files.held_folder import Held
    from datacollect.net.keys import PrivateKey

SCHEMA = """
CREATE TABLE uploads (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    entry BLOB NOT NULL, sealed_anew INTEGER NOT NULL,
    salt BLOB NOT NULL, committed_size INTEGER NOT NULL, committed_sha256 BLOB NOT NULL,
    content BLOB NOT NULL, owner BLOB NOT NULL, size INTEGER NOT NULL, pushed_sha256 BLOB NOT NULL,
    signature BLOB NOT NULL, ticket BLOB NOT NULL, ticket_signature BLOB NOT NULL,
    expires_s REAL NOT NULL, position INTEGER NOT NULL, sha256 BLOB, batch INTEGER, time_s INTEGER,
    UNIQUE (entry, sealed_anew));
CREATE INDEX of_ticket ON uploads (ticket);
CREATE INDEX of_batch ON uploads (batch) WHERE batch IS NOT NULL;
CREATE INDEX unfinished ON uploads (number) WHERE sha256 IS NULL;
CREATE TABLE pieces (
    number INTEGER PRIMARY KEY, upload TEXT, entry BLOB NOT NULL, ticket BLOB NOT NULL,
    upload_offset INTEGER NOT NULL,
    segment INTEGER NOT NULL, segment_offset INTEGER NOT NULL, n_bytes INTEGER NOT NULL);
CREATE INDEX of_upload ON pieces (upload);
CREATE INDEX of_segment ON pieces (segment);
CREATE TABLE segments (number INTEGER PRIMARY KEY, n_bytes INTEGER NOT NULL, closed_s REAL NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0);
CREATE INDEX held ON segments (number) WHERE NOT is_gone;
CREATE TABLE batches (number INTEGER PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE released (number INTEGER PRIMARY KEY, since_s REAL NOT NULL);
CREATE TABLE contact (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), time_s REAL NOT NULL,
    told_s INTEGER NOT NULL);
"""
OPEN, SERVED = "open", "served"
COLUMNS = (
    "id, entry, sealed_anew, salt, committed_size, committed_sha256, content, owner, size, "
    "pushed_sha256, signature, ticket, ticket_signature, expires_s, position, sha256, batch, time_s"
)
SHA256 = COLUMNS.split(", ").index("sha256")
MARKS = ", ".join("?" * len(COLUMNS.split(", ")))
KEEP = f"""INSERT INTO uploads ({COLUMNS}) VALUES ({MARKS})
    ON CONFLICT (id) DO UPDATE SET expires_s = excluded.expires_s, position = excluded.position,
    sha256 = excluded.sha256, batch = excluded.batch, time_s = excluded.time_s"""


class UploadStore:
    """The folder of a bistro, held by one process; as `Known` it tells what is on the disk.

    Parameters
    ----------
    held : Held
        The folder, which `close` lets go.
    event : Event
    bistro : Bistro
    key : PrivateKey
        The bistro's, which signs its batches.

    Raises
    ------
    ProblemError
        The folder is another bistro's.
    StoreError
        The disk is full, or fails.
    """

    def __init__(self, held: Held, event: Event, bistro: Bistro, key: PrivateKey) -> None:
        self._event, self._bistro, self._key = event, bistro, key
        self._served = held.folder / SERVED
        self._waiting: list[tuple[Action, Any]] = []
        with ExitStack() as undo:
            undo.callback(held.close)
            owner = f"{bistro.name} {bistro.key} {event.id.hex()}"
            self._db = Database(held.folder, "uploads.sqlite", SCHEMA, owner, is_read_beside=True)
            undo.callback(self._db.close)
            with self._db.errors():
                (self._served / "batches").mkdir(mode=0o700, parents=True, exist_ok=True)
            self._files = SegmentFiles(held.folder / OPEN, self._served)
            # Many threads ask, and a connection is one thread's at a time.
            self._reader, self._reading = self._db.reader(), threading.Lock()
            undo.callback(self._reader.close)
            self._closing = undo.pop_all()

    def close(self) -> None:
        """Let others have the folder."""
        self._files.close()
        self._closing.close()

    # What is written --------------------------------------------------------------------------

    def add(self, action: Action, data: bytes | bytearray = b"") -> None:
        """Take what is to be done at the next `commit`; bytes of an `Append` are written at once.

        Raises
        ------
        StoreError
            They cannot be written.
        """
        more: Any = None
        if isinstance(action, Append):
            self._files.write(action.segment, action.segment_offset, data)
        elif isinstance(action, Carry):
            more = self._carried(action)
        elif isinstance(action, Keep):
            more = _row_of(action.upload)
        self._waiting.append((action, more))

    def _carried(self, action: Carry) -> list[tuple[int, int]]:
        """Copy what an upload has in a closed segment; return the new places of its pieces."""
        found = self._read(
            "SELECT number, segment_offset, n_bytes FROM pieces WHERE upload = ? AND segment = ? "
            "ORDER BY number",
            (action.upload, action.source),
        )
        places, blocks, at = [], [], action.segment_offset
        for number, offset, n_bytes in found:
            blocks.append(self._files.read(action.source, offset, n_bytes))
            places.append((at, number))
            at += n_bytes
        data = b"".join(blocks)
        if len(data) != action.n_bytes:
            raise StoreError(
                f"{self._served}: the segment {action.source} has changed since the bistro wrote it"
            )
        self._files.write(action.segment, action.segment_offset, data)
        return places

    def take(self) -> list[tuple[Action, Any]]:
        """Return what waits for `commit`, which waits no more."""
        group, self._waiting = self._waiting, []
        return group

    def commit(self, group: Sequence[tuple[Action, Any]]) -> tuple[str, ...]:
        """Have a group on the disk, then do what follows from it; meanwhile others may `add`.

        Returns
        -------
        tuple of str
            Ids of uploads that are whole with it.

        Raises
        ------
        StoreError
            What of it is kept only `kept` tells.
        """
        self._files.sync({each.segment for each, _ in group if isinstance(each, Append | Carry)})
        kept = [(i, row) for i, (action, row) in enumerate(group) if isinstance(action, Keep)]
        last = {row[0]: i for i, row in kept}
        with self._db.transaction():
            for i, (action, more) in enumerate(group):
                if not isinstance(action, Keep):
                    self._do(action, more)
                elif last[more[0]] == i:
                    self._db.rows(KEEP, more)
        for action, _ in group:
            if isinstance(action, CloseSegment):
                self._close_segment(action.number, action.now_s)
            elif isinstance(action, CloseBatch):
                self._close_batch(action.number, action.now_s, action.n_segments)
            elif isinstance(action, Drop):
                self._remove(action.numbers)
        return tuple(row[0] for _, row in kept if row[SHA256] is not None)

    def _do(self, action: Action, more: Any) -> None:
        match action:
            case Carry(_, _, segment, _, _):
                self._db.many(
                    "UPDATE pieces SET segment = ?, segment_offset = ? WHERE number = ?",
                    ((segment, at, number) for at, number in more),
                )
            case Append(upload, upload_offset, segment, segment_offset, n_bytes):
                ticket, entry = upload.wish.budget
                self._db.rows(
                    "INSERT INTO pieces VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)",
                    (upload.id, entry, ticket, upload_offset, segment, segment_offset, n_bytes),
                )
            case Unlink(upload_id, offset):
                self._db.rows(
                    "UPDATE pieces SET upload = NULL WHERE upload = ? AND upload_offset >= ?",
                    (upload_id, offset),
                )
            case Forget(upload_id):
                self._db.rows("DELETE FROM uploads WHERE id = ?", (upload_id,))
                self._db.rows("UPDATE pieces SET upload = NULL WHERE upload = ?", (upload_id,))
            case Release(numbers, needed_again, contact_s, told_s):
                for number in numbers:
                    self._db.rows("INSERT INTO released VALUES (?, ?)", (number, contact_s))
                for number in needed_again:
                    self._db.rows("DELETE FROM released WHERE number = ?", (number,))
                self._db.rows(
                    "INSERT OR REPLACE INTO contact VALUES (1, ?, ?)", (contact_s, told_s)
                )
            case Drop(numbers):
                for number in numbers:
                    self._db.rows("UPDATE segments SET is_gone = 1 WHERE number = ?", (number,))
                    self._db.rows("DELETE FROM pieces WHERE segment = ?", (number,))
                    self._db.rows("DELETE FROM released WHERE number = ?", (number,))

    def _close_segment(self, number: int, now_s: float) -> None:
        """Serve a segment, whose rows are committed; again after any interruption."""
        pieces = self._pieces_of(number)
        n_bytes = int(pieces["n_bytes"].sum())
        self._files.close_segment(number, n_bytes, {index_name(number): pieces.tobytes()})
        with self._db.transaction():
            self._db.rows(
                "INSERT INTO segments (number, n_bytes, closed_s) VALUES (?, ?, ?)",
                (number, n_bytes, now_s),
            )

    def _pieces_of(self, segment: int) -> np.ndarray:
        rows = self._db.rows(
            "SELECT coalesce(uploads.number, ?), upload_offset, segment_offset, n_bytes "
            "FROM pieces LEFT JOIN uploads ON uploads.id = pieces.upload WHERE segment = ? "
            "ORDER BY segment_offset",
            (NOBODYS, segment),
        )
        return np.array(rows, PIECE)

    def _close_batch(self, number: int, now_s: float, n_segments: int) -> None:
        """Sign and serve a batch, whose rows are committed; again after any interruption."""
        path = self._served / batch_name(number)
        with self._db.errors():
            if path.exists():
                batch = read_batch(path.read_bytes(), self._event, str(path))
            else:
                previous = self._db.rows(
                    "SELECT digest FROM batches WHERE number = ?", (number - 1,)
                )
                found = self._db.rows(
                    f"SELECT number, {COLUMNS} FROM uploads WHERE batch = ? ORDER BY number",
                    (number,),
                )
                rows = np.array(
                    [_batch_row(of, _upload_of(each, self._event)) for of, *each in found], ROW
                )
                batch = sign_batch(
                    self._event,
                    self._bistro.name,
                    number,
                    previous[0][0] if previous else FIRST,
                    int(now_s),
                    rows,
                    self._key,
                    n_segments,
                )
                self._files.publish(batch_name(number), batch.data)
        with self._db.transaction():
            self._db.rows("INSERT INTO batches VALUES (?, ?)", (number, batch.digest))

    def _remove(self, numbers: Sequence[int]) -> None:
        # No index names what is not there.
        self._files.remove(
            name(number) for number in numbers for name in (index_name, segment_name)
        )

    # What is read -----------------------------------------------------------------------------

    def kept(self, now_s: float) -> Kept:
        """Finish what was begun, forget what is not on the disk, return what a bistro starts with.

        Raises
        ------
        StoreError
            The disk is full, or fails.
        """
        self._files.close()
        self._waiting.clear()
        for (number,) in self._db.rows(
            "SELECT DISTINCT segment FROM pieces WHERE segment NOT IN "
            "(SELECT number FROM segments) ORDER BY segment"
        ):
            self._close_segment(number, now_s)
        last = self._db.rows("SELECT max(number) FROM segments")[0][0]
        n_segments = 0 if last is None else last + 1
        for (number,) in self._db.rows(
            "SELECT DISTINCT batch FROM uploads WHERE batch IS NOT NULL "
            "AND batch NOT IN (SELECT number FROM batches) ORDER BY batch"
        ):
            self._close_batch(number, now_s, n_segments)
        self._files.forget_open()
        self._remove([n for (n,) in self._db.rows("SELECT number FROM segments WHERE is_gone")])
        unfinished = [
            _upload_of(row, self._event)
            for row in self._db.rows(f"SELECT {COLUMNS} FROM uploads WHERE sha256 IS NULL")
        ]
        for upload in unfinished:
            found = self._db.rows(
                "SELECT segment, sum(n_bytes), count(*) FROM pieces WHERE upload = ? "
                "GROUP BY segment",
                (upload.id,),
            )
            upload.segments = {segment: n_bytes for segment, n_bytes, _ in found}
            upload.n_pieces = sum(n for _, _, n in found)
        closed = self._db.rows("SELECT number, n_bytes, closed_s FROM segments WHERE NOT is_gone")
        batch = self._db.rows("SELECT max(number) FROM batches")[0][0]
        contact = self._db.rows("SELECT time_s, told_s FROM contact")
        spoilt = self._db.rows(
            "SELECT ticket, entry, sum(n_bytes), count(*) FROM pieces WHERE upload IS NULL "
            "GROUP BY ticket, entry"
        )
        named = self._db.rows(
            "SELECT segment, max(batch) FROM pieces JOIN uploads ON uploads.id = pieces.upload "
            "WHERE batch IS NOT NULL GROUP BY segment"
        )
        return Kept(
            unfinished=unfinished,
            segment=n_segments,
            closed={number: (n_bytes, closed_s) for number, n_bytes, closed_s in closed},
            batch=0 if batch is None else batch + 1,
            last_contact_s=contact[0][0] if contact else None,
            told_s=contact[0][1] if contact else 0,
            spoilt_bytes={(ticket, entry): n_bytes for ticket, entry, n_bytes, _ in spoilt},
            spoilt_pieces={(ticket, entry): n for ticket, entry, _, n in spoilt},
            released=dict(self._db.rows("SELECT number, since_s FROM released")),
            named=dict(named),
        )

    def whole(self, entry: bytes, *, sealed_anew: bool) -> Upload | None:
        """Return the upload of an entry, if it is whole."""
        return self._whole("entry = ? AND sealed_anew = ?", (entry, sealed_anew))

    def by_id(self, upload: str) -> Upload | None:
        """Return an upload by its id, if it is whole."""
        return self._whole("id = ?", (upload,))

    def _whole(self, where: str, values: tuple[Any, ...]) -> Upload | None:
        sql = f"SELECT {COLUMNS} FROM uploads WHERE {where} AND sha256 IS NOT NULL"
        rows = self._read(sql, values)
        return _upload_of(rows[0], self._event) if rows else None

    def entries_of(self, ticket: bytes) -> set[bytes]:
        """Return what was handed in with a ticket, whole."""
        sql = "SELECT entry FROM uploads WHERE ticket = ? AND sha256 IS NOT NULL"
        return {entry for (entry,) in self._read(sql, (ticket,))}

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """Return what a question finds that is committed."""
        with self._reading, self._db.errors():
            return self._reader.execute(sql, values).fetchall()

    def bytes_of(self, upload: str, start: int = 0) -> Iterator[bytes]:
        """Yield what is on the disk of an upload, in order, from where a piece of it starts.

        Raises
        ------
        StoreError
            It cannot be read.
        """
        sql = (
            "SELECT segment, segment_offset, n_bytes FROM pieces WHERE upload = ? "
            "AND upload_offset >= ? ORDER BY upload_offset"
        )
        rows = self._read(sql, (upload, start))
        for segment, offset, n_bytes in rows:
            # Where the disk has lost some, the hash of it all tells: these are other bytes.
            yield self._files.read(segment, offset, n_bytes, may_be_less=True)

    def free_bytes(self) -> int:
        """Return how much the disk has left.

        Raises
        ------
        StoreError
        """
        return self._files.free_bytes()


def _row_of(upload: Upload) -> tuple[Any, ...]:
    wish, commitment = upload.wish, upload.wish.commitment
    return (
        *(upload.id, commitment.entry, wish.sealed_anew, commitment.salt, commitment.size),
        *(commitment.ciphertext_sha256, commitment.content, commitment.owner, wish.size),
        *(wish.sha256, wish.signature, wish.ticket, wish.ticket_signature),
        *(upload.expires_s, upload.offset, upload.sha256, upload.batch, upload.time_s),
    )


def _batch_row(number: int, upload: Upload) -> tuple[bytes | int, ...]:
    assert upload.sha256 is not None
    assert upload.time_s is not None
    wish = upload.wish
    return row_of(
        *(wish.commitment, wish.size, upload.sha256, wish.ticket, upload.time_s, wish.signature),
        *(wish.ticket_signature, number),
    )


def _upload_of(row: Sequence[Any], event: Event) -> Upload:
    upload, entry, _, salt, c_size, c_sha256, content, owner, size, *rest = row
    pushed_sha256, *signed, expires_s, position, sha256, batch, time_s = rest
    commitment = Commitment(event.id, salt, c_size, c_sha256, content, owner, event.mark_in(entry))
    return Upload(
        upload,
        Wish(commitment, size, pushed_sha256, *signed),
        expires_s,
        position,
        {},
        0,
        sha256,
        batch,
        time_s,
    )
