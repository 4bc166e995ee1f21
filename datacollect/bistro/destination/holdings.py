"""Holdings of bistros, as they have signed: batches, segments, the pieces of uploads.

A part of a register: what was reported, what is to be fetched of it, what is whole here and may be
opened, and what bistros may let go.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datacollect.bistro.destination.batch_faults import chain_lies, rows_handed_in
from datacollect.bistro.destination.pieces import (
    PIECE_OF_UPLOAD,
    assembled,
    segments_to_fetch,
)
from datacollect.bistro.formats.custody.batch_chain import Link
from datacollect.bistro.formats.custody.segments import NOBODYS, most_pieces_of
from datacollect.bistro.formats.custody.verdicts import (
    LATE,
    NEVER_CAME,
    OTHER_TICKET,
    REFUSED,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from datacollect.bistro.destination.databases import RegisterDatabase
    from datacollect.bistro.formats.custody.batches import Batch
    from datacollect.bistro.formats.event.event import Event

# Where the bytes that a bistro shows are not those that it has signed for.
LOST = "lost"
# What may be opened: no verdict forbids it, or another copy may take its place. What never came
# while there was time comes no more.
MAY_OPEN = f"(word IS NULL OR (word = '{REFUSED}' AND why <> '{NEVER_CAME}'))"
# When a round began after which all was here that a bistro reports, or a service says that has
# changed the event.
HEARD = "CREATE TABLE IF NOT EXISTS heard (name TEXT PRIMARY KEY, since_s BIGINT)"
# By when a log had published that a ticket, by its number, was revoked.
REVOKED = "CREATE TABLE IF NOT EXISTS revoked (ticket TEXT PRIMARY KEY, since_s BIGINT)"
# Uploads that are looked at together, and pieces: whoever has more has them read alone, and of an
# upload no more than make 1 TB of a bistro's blocks.
UPLOADS_TOGETHER, PIECES_TOGETHER, MOST_PIECES = 1000, 50_000, 2**22
# Whether the indices of all segments are known in which an upload lies by its bistro's signature.
_ALL_KNOWN = """n_segments <= (SELECT count(*) FROM segments
    WHERE segments.bistro = uploads.bistro AND segments.number < n_segments)"""
# So often it is looked whether pieces that come later make what a bistro has signed.
MOST_TRIES = 8
# So many sentences on one who has served what cannot be are enough.
MOST_LIES = 1000


class Upload(NamedTuple):
    """Upload that a bistro says it holds of an entry, and what was committed to."""

    bistro: str
    size: int
    sha256: bytes
    commitment: Commitment
    ticket: str | None = None

    @property
    def is_committed(self) -> bool:
        """Return whether it is the ciphertext committed to, and none that was sealed anew."""
        return is_committed(self.size, self.sha256, self.commitment)


class Opening(NamedTuple):
    """An upload that is here whole.

    Attributes
    ----------
    upload : Upload
    parts : ndarray of dtype ``PIECE_OF_UPLOAD`` in `datacollect.bistro.destination.pieces`
        That make it, one after the other.
    time_s : int or None
        By when its entry stood in a log; None: not known yet.
    """

    upload: Upload
    parts: np.ndarray
    time_s: int | None = None


class Holdings:
    """The part of a register that is about bistros.

    Parameters
    ----------
    db : RegisterDatabase
        With the tables of a register; its own is made where it is absent.
    event : Event
    """

    def __init__(self, db: RegisterDatabase, event: Event) -> None:
        self._db, self._event = db, event
        db.add(HEARD)
        db.add(REVOKED)

    # What bistros say -------------------------------------------------------------------------

    def take_batch(self, batch: Batch, ticket_keys: Mapping[str, str] | None = None) -> bool:
        """Take a batch's rows that somebody has handed in; return whether it was new.

        Parameters
        ----------
        batch : Batch
        ticket_keys : mapping of str to str or None
            Public keys of tickets, by number; None: the event admits everybody.
        """
        seen = self._db.rows(
            "SELECT 1 FROM batches WHERE bistro = ? AND number = ? AND digest = ?",
            (batch.bistro, batch.number, batch.digest),
        )
        if seen:
            return False
        rows, lies = rows_handed_in(batch, self._event, ticket_keys)
        entries = [*_entry_rows(rows)]
        uploads = [*_upload_rows(rows, batch)]
        chain = (batch.bistro, batch.number, batch.digest, batch.previous, batch.note.data)
        with self._db.transaction():
            self._db.insert("entries", entries)
            self._db.insert("uploads", uploads)
            lies += self._not_kept(batch, uploads)
            self._db.insert("lies", [(lie.who, lie.text) for lie in lies])
            self._db.insert("batches", [chain])
            # Nothing was known of these uploads when it was said what may go.
            self._db.rows(
                "UPDATE segments SET is_covered = 0 WHERE bistro = ? AND is_covered = 1 "
                "AND number IN (SELECT segment FROM pieces JOIN uploads "
                "ON uploads.bistro = pieces.bistro AND uploads.number = pieces.upload "
                "WHERE uploads.bistro = ? AND uploads.batch = ?)",
                (batch.bistro, batch.bistro, batch.number),
            )
        return True

    def _not_kept(self, batch: Batch, uploads: Sequence[tuple[Any, ...]]) -> list[Lie]:
        """Return what a bistro has signed besides what it may hold of an entry, or by one number.

        It has no place here: a bistro and an owner would have as much looked at as they like.
        """
        n_other = 0
        for i in range(0, len(uploads), UPLOADS_TOGETHER):
            some = uploads[i : i + UPLOADS_TOGETHER]
            marks = ",".join("?" * len(some))
            kept = self._db.rows(
                "SELECT entry, is_anew, sha256, number FROM uploads WHERE bistro = ? "
                f"AND entry IN ({marks})",
                (batch.bistro, *(row[0] for row in some)),
            )
            n_other += len({(row[0], row[2], row[3], row[6]) for row in some} - {*kept})
        if not n_other:
            return []
        text = (
            f"Its batch {batch.number} names {counted(n_other, 'upload')} besides those that it "
            "has signed before: of an entry it holds what was committed to and one that was sealed "
            "anew, and each has a number of its own."
        )
        return [Lie(batch.bistro, text)]

    def take_index(self, bistro: str, number: int, pieces: np.ndarray) -> bool:
        """Take what lies in a segment of a bistro; return whether it was new.

        What was not as its bistro has signed may be made of these pieces: it is tried again, some
        times.

        Parameters
        ----------
        bistro : str
        number : int
            Of the segment.
        pieces : ndarray of dtype ``PIECE`` in `datacollect.bistro.formats.custody.segments`
            That fill it.
        """
        if self._db.rows(
            "SELECT 1 FROM segments WHERE bistro = ? AND number = ?", (bistro, number)
        ):
            return False
        columns = (
            pieces[name].tolist()
            for name in ("segment_offset", "upload", "upload_offset", "n_bytes")
        )
        rows = [
            (bistro, number, *values)
            for values in zip(*columns, strict=True)
            if values[1] != NOBODYS and values[3]
        ]
        with self._db.transaction():
            self._db.insert("pieces", rows)
            self._db.insert("segments", [(bistro, number, int(pieces["n_bytes"].sum()), 0, 0)])
            self._db.rows(
                f"UPDATE uploads SET outcome = NULL WHERE bistro = ? AND outcome = '{LOST}' "
                f"AND n_tried < {MOST_TRIES} "
                "AND number IN (SELECT upload FROM pieces WHERE bistro = ? AND segment = ?)",
                (bistro, bistro, number),
            )
        return True

    def take_segment(self, bistro: str, number: int, n_bytes: int) -> bool:
        """Take note that a segment is here, and so long; return whether it is as its index says."""
        ((expected,),) = self._db.rows(
            "SELECT n_bytes FROM segments WHERE bistro = ? AND number = ?", (bistro, number)
        )
        if n_bytes != expected:
            text = f"Its segment {number} has {n_bytes} bytes, but its index says {expected}."
            self.take_lie(bistro, text)
            return False
        with self._db.transaction():
            self._db.rows(
                "UPDATE segments SET is_fetched = 1 WHERE bistro = ? AND number = ?",
                (bistro, number),
            )
        return True

    def take_lie(self, who: str, text: str) -> None:
        """Keep what somebody has served that cannot be, as a sentence."""
        ((n,),) = self._db.rows("SELECT count(*) FROM lies WHERE who = ?", (who,))
        if n < MOST_LIES:
            with self._db.transaction():
                self._db.insert("lies", [(who, text)])

    def files_of(self, bistro: str) -> dict[str, str]:
        """Return the files of a bistro that were read, each with its stamp, by name."""
        return dict(self._db.rows("SELECT name, stamp FROM files WHERE bistro = ?", (bistro,)))

    def take_files(self, bistro: str, stamps: Mapping[str, str]) -> None:
        """Keep that files of a bistro were read, by name, each with what tells it from others."""
        with self._db.transaction():
            self._db.many(
                "INSERT INTO files VALUES (?, ?, ?) "
                "ON CONFLICT (bistro, name) DO UPDATE SET stamp = excluded.stamp",
                ((bistro, name, stamp) for name, stamp in stamps.items()),
            )

    def take_heard(self, names: Iterable[str], since_s: int) -> None:
        """Keep that all is here which some say: batches of bistros, amendments of services.

        As long as there is time that is not kept: more may come.

        Parameters
        ----------
        names : iterable of str
            Names of bistros, URLs of services.
        since_s : int
            Before they were asked, seconds since 1970.
        """
        if since_s <= self._event.collect_until_s:
            return
        with self._db.transaction():
            self._db.many(
                "INSERT INTO heard VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET since_s = excluded.since_s",
                ((name, since_s) for name in names),
            )

    def have_all_said(self, names: Iterable[str], since_s: int) -> bool:
        """Return whether all is here that each of some said when it was asked after an instant.

        Parameters
        ----------
        names : iterable of str
            Names of bistros, URLs of services.
        since_s : int
            Seconds since 1970.
        """
        rows = self._db.rows("SELECT name FROM heard WHERE since_s > ?", (since_s,))
        return {*names} <= {name for (name,) in rows}

    def last_batch(self, bistro: str) -> int:
        """Return the number of the last batch of a bistro that was taken; -1: none was."""
        rows = self._db.rows("SELECT max(number) FROM batches WHERE bistro = ?", (bistro,))
        return -1 if rows[0][0] is None else rows[0][0]

    def lies(self) -> list[Lie]:
        """Return who has signed what cannot be, in words."""
        found = [
            Lie(who, text)
            for who, text in self._db.rows("SELECT who, text FROM lies ORDER BY who, text")
        ]
        # As long as some of these segments are not known, it may be what was pushed before.
        found += [
            Lie(bistro, f"It shows other bytes of {entry.hex()} than it has signed for.")
            for bistro, entry in self._db.rows(
                f"SELECT bistro, entry FROM uploads WHERE outcome = '{LOST}' AND {_ALL_KNOWN} "
                "ORDER BY 1, 2"
            )
        ]
        links: dict[str, list[Link]] = {}
        for bistro, *link in self._db.rows(
            "SELECT bistro, number, digest, previous FROM batches ORDER BY bistro, number"
        ):
            links.setdefault(bistro, []).append(Link(*link))
        for bistro, some in links.items():
            found += chain_lies(bistro, some, partial(self._note, bistro))
        return found

    def _note(self, bistro: str, digest: bytes) -> bytes:
        """Return a batch's note as it was signed."""
        rows = self._db.rows(
            "SELECT note FROM batches WHERE bistro = ? AND digest = ?", (bistro, digest)
        )
        note: bytes = rows[0][0]
        return note

    # What is to be done -----------------------------------------------------------------------

    def to_fetch(self, absent: Collection[tuple[str, int]] = ()) -> dict[str, set[int]]:
        """Return the segments that hold what was not opened yet and is not late, by bistro.

        Parameters
        ----------
        absent : collection of (str, int)
            Bistros and segments that cannot be had now: copies elsewhere are taken.
        """
        needed: dict[bytes, dict[str, frozenset[int]]] = {}
        for opening in self._whole(f"(time_s IS NULL OR time_s <= {self._event.latest_s})"):
            entry, bistro = opening.upload.commitment.entry, opening.upload.bistro
            segments = {*opening.parts["segment"].tolist()}
            if any((bistro, number) in absent for number in segments):
                continue
            of_entry = needed.setdefault(entry, {})
            of_entry[bistro] = of_entry.get(bistro, frozenset()) | segments
        return segments_to_fetch(needed, self._fetched())

    def to_open(self) -> Iterator[Opening]:
        """Yield the uploads that are here whole, in time, and were not opened yet, by entry."""
        here = self._fetched()
        for opening in self._whole(f"time_s <= {self._event.latest_s}"):
            known = here.get(opening.upload.bistro, frozenset())
            if known.issuperset(opening.parts["segment"].tolist()):
                yield opening

    def _fetched(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for bistro, number in self._db.rows(
            "SELECT bistro, number FROM segments WHERE is_fetched = 1"
        ):
            found.setdefault(bistro, set()).add(number)
        return {bistro: frozenset(numbers) for bistro, numbers in found.items()}

    def _whole(self, condition: str) -> Iterator[Opening]:
        """Yield uploads that were not tried yet and whose pieces are known, some at once, by entry.

        What is judged meanwhile is not yielded again.
        """
        last: tuple[object, ...] = (b"", "", 0)
        while True:
            page = self._db.rows(
                "SELECT entry, bistro, is_anew, number, time_s, told_ticket, size, sha256, "
                "salt, committed_size, committed_sha256, content_p, owner "
                "FROM uploads JOIN entries USING (entry) "
                f"WHERE outcome IS NULL AND {MAY_OPEN} "
                "AND entry NOT IN (SELECT entry FROM forgotten) "
                f"AND (entry, bistro, is_anew) > (?, ?, ?) AND {condition} "
                f"ORDER BY entry, bistro, is_anew LIMIT {UPLOADS_TOGETHER}",
                last,
            )
            if not page:
                return
            pieces = self._pieces_between(page[0][0], page[-1][0])
            for entry, bistro, _, number, time_s, ticket, size, digest, *committed in page:
                if pieces is None:
                    of_upload = self._pieces_of(bistro, number)
                else:
                    of_upload = np.array(pieces.get((bistro, number), []), PIECE_OF_UPLOAD)
                parts = assembled(of_upload, size)
                if parts is not None and len(parts) <= most_pieces_of(size):
                    committed.append(self._event.mark_in(entry))
                    commitment = Commitment(self._event.id, *committed)
                    yield Opening(Upload(bistro, size, digest, commitment, ticket), parts, time_s)
            last = page[-1][:3]

    def _pieces_between(
        self, first: bytes, last: bytes
    ) -> dict[tuple[str, int], list[tuple[int, ...]]] | None:
        """Return the pieces of uploads of some entries, by bistro and number; None: too many."""
        rows = self._db.rows(
            "SELECT pieces.bistro, upload, segment, segment_offset, upload_offset, n_bytes "
            "FROM uploads JOIN pieces ON pieces.bistro = uploads.bistro AND upload = number "
            "WHERE outcome IS NULL AND entry >= ? AND entry <= ? LIMIT ?",
            (first, last, PIECES_TOGETHER),
        )
        if len(rows) == PIECES_TOGETHER:
            return None
        found: dict[tuple[str, int], list[tuple[int, ...]]] = {}
        for row in sorted(rows):
            found.setdefault(row[:2], []).append(row[2:])
        return found

    def _pieces_of(self, bistro: str, number: int) -> np.ndarray:
        """Return the pieces of an upload in order, as numbers without objects around each."""
        found, n, last = [np.zeros(0, PIECE_OF_UPLOAD)], 0, (-1, -1)
        while n < MOST_PIECES:
            rows = self._db.rows(
                "SELECT segment, segment_offset, upload_offset, n_bytes FROM pieces "
                "WHERE bistro = ? AND upload = ? AND (segment, segment_offset) > (?, ?) "
                "ORDER BY segment, segment_offset LIMIT ?",
                (bistro, number, *last, PIECES_TOGETHER),
            )
            if not rows:
                break
            found.append(np.array(rows, PIECE_OF_UPLOAD))
            n, last = n + len(rows), rows[-1][:2]
        return np.concatenate(found)

    # What may go ------------------------------------------------------------------------------

    def n_batches(self, bistro: str) -> int:
        """Return how many batches of a bistro were taken, from the first on, without a gap."""
        rows = self._db.rows(
            "SELECT min(number) FROM (SELECT -1 AS number UNION ALL "
            "SELECT number FROM batches WHERE bistro = ?) AS known WHERE NOT EXISTS "
            "(SELECT 1 FROM batches WHERE bistro = ? AND batches.number = known.number + 1)",
            (bistro, bistro),
        )
        n: int = rows[0][0] + 1
        return n

    def covered(self, bistro: str, now_s: int) -> list[int]:
        """Return the segments of a bistro whose data may go: verdicts on all of it are logged.

        Of what was refused more may come, sealed anew: a segment stays where something lies that
        was not opened yet. What no batch names is the bistro's to keep. As long as the deadline may
        be moved, what is late stays, and what was refused because its ticket was revoked before:
        logs that were silent may prove a lesser time. What may go is not looked at again, unless
        a batch names more there.

        Parameters
        ----------
        bistro : str
        now_s : int
            Seconds since 1970.
        """
        may_move = now_s <= self._event.collect_until_s
        with self._db.transaction():
            self._db.rows(
                "UPDATE segments SET is_covered = 1 "
                "WHERE bistro = ? AND is_covered = 0 AND NOT EXISTS ("
                "SELECT 1 FROM pieces JOIN uploads "
                "ON uploads.bistro = pieces.bistro AND uploads.number = pieces.upload "
                "JOIN entries ON entries.entry = uploads.entry "
                "WHERE pieces.bistro = segments.bistro AND segment = segments.number "
                "AND (is_logged IS NULL OR is_logged = 0 OR (word = ? AND why = ? AND ? = 1) "
                "OR (outcome = ? AND ? = 1 AND EXISTS (SELECT 1 FROM revoked "
                "WHERE revoked.ticket = told_ticket AND since_s < time_s)) "
                f"OR (word = ? AND why <> ? AND (outcome IS NULL OR outcome = '{LOST}'))))",
                (
                    *(bistro, REFUSED, LATE, int(may_move), OTHER_TICKET, int(may_move)),
                    *(REFUSED, LATE),
                ),
            )
        rows = self._db.rows(
            "SELECT number FROM segments WHERE bistro = ? AND is_covered = 1 ORDER BY number",
            (bistro,),
        )
        return [number for (number,) in rows]

    def done_with(self, bistro: str) -> list[int]:
        """Return the fetched segments of a bistro of which nothing is needed any more."""
        rows = self._db.rows(
            "SELECT number FROM segments WHERE bistro = ? AND is_covered = 1 AND is_fetched = 1",
            (bistro,),
        )
        return [number for (number,) in rows]

    def segments_of(self, entries: Iterable[bytes]) -> list[tuple[str, int, bool, bool]]:
        """Return in which segments bytes of entries lie: bistro, number, is it here, may it go."""
        found: set[tuple[str, int, bool, bool]] = set()
        for entry in entries:
            rows = self._db.rows(
                "SELECT DISTINCT segments.bistro, segments.number, is_fetched, is_covered "
                "FROM uploads JOIN pieces ON pieces.bistro = uploads.bistro "
                "AND pieces.upload = uploads.number JOIN segments "
                "ON segments.bistro = pieces.bistro AND segments.number = pieces.segment "
                "WHERE uploads.entry = ?",
                (entry,),
            )
            found.update((name, n, bool(here), bool(covered)) for name, n, here, covered in rows)
        return sorted(found)

    def drop_segments(self, bistro: str, numbers: Iterable[int]) -> None:
        """Take note that segments are not here any more."""
        with self._db.transaction():
            self._db.many(
                "UPDATE segments SET is_fetched = 0 WHERE bistro = ? AND number = ?",
                ((bistro, number) for number in numbers),
            )


def is_committed(size: int, sha256: bytes, commitment: Commitment) -> bool:
    """Return whether some bytes are the ciphertext committed to."""
    return (size, sha256) == (commitment.size, commitment.ciphertext_sha256)


def _hashes(rows: np.ndarray, name: str) -> list[bytes]:
    data, n_bytes = np.ascontiguousarray(rows[name]).tobytes(), rows.dtype[name].itemsize
    return [data[i : i + n_bytes] for i in range(0, len(data), n_bytes)]


def _entry_rows(rows: np.ndarray) -> Iterator[tuple[object, ...]]:
    columns = (
        _hashes(rows, "entry"),
        _hashes(rows, "salt"),
        _hashes(rows, "content_p"),
        rows["committed_size"].tolist(),
        _hashes(rows, "committed_sha256"),
        _hashes(rows, "owner"),
    )
    empty = (None,) * 7
    return ((*values, *empty) for values in zip(*columns, strict=True))


def _upload_rows(rows: np.ndarray, batch: Batch) -> Iterator[tuple[object, ...]]:
    columns = (
        _hashes(rows, "entry"),
        _hashes(rows, "sha256"),
        _hashes(rows, "committed_sha256"),
        rows["size"].tolist(),
        rows["committed_size"].tolist(),
        rows["upload"].tolist(),
        _hashes(rows, "ticket"),
    )
    return (
        (
            *(entry, batch.bistro, int((sha256, size) != (committed, committed_size))),
            *(sha256, size, batch.number, number, batch.n_segments),
            *(ticket.hex() if any(ticket) else None, None, 0),
        )
        for entry, sha256, committed, size, committed_size, number, ticket in zip(
            *columns, strict=True
        )
    )
