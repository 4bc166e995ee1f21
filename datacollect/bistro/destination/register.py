"""Register of the destination, durable: each call is one transaction.

Killed at any step, it goes on: a batch or an index that is taken twice changes nothing, an entry
whose verdict is not kept is opened again, a verdict that is not known to be logged is logged again,
which the log takes once.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.bistro.destination.batch_faults import chain_lies, rows_handed_in
from datacollect.bistro.destination.counting import Draft, changes
from datacollect.bistro.destination.databases import open_database
from datacollect.bistro.destination.missing import Known
from datacollect.bistro.destination.pieces import Piece, segments_to_fetch, whole_uploads
from datacollect.bistro.formats.custody.batch_chain import Link
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    REASONS,
    REFUSED,
    SUPERSEDED,
    Verdict,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.evidence import Lie

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from datacollect.bistro.destination.place import Place
    from datacollect.bistro.formats.custody.batches import Batch
    from datacollect.bistro.formats.event.event import Event

# Where the bytes that a bistro shows are not those that it has signed for.
LOST = "lost"
# What may still come, or come sealed anew.
NOT_HERE = f"(word IS NULL OR why = '{DOES_NOT_OPEN}')"
# `outcome`: what opening it has shown; NULL: not tried yet. `word`, `why`: the last verdict, and
# whether the log of verdicts holds it. `ticket`: the number inside the seal; `told_ticket`: that
# which the bistro was shown; `beaten_by`: all entries by which it was ever superseded.
# `files`: what was read of those that bistros serve, and by which stamp each is known again.
SCHEMA = f"""
CREATE TABLE batches (bistro TEXT, number BIGINT, digest BLOB, previous BLOB, note BLOB,
    PRIMARY KEY (bistro, number, digest));
CREATE TABLE entries (entry BLOB PRIMARY KEY, salt BLOB, content_p BLOB, committed_size BIGINT,
    committed_sha256 BLOB, owner BLOB, time_s BIGINT, word TEXT, why TEXT, is_logged INTEGER,
    ticket TEXT, file TEXT, beaten_by TEXT);
CREATE TABLE uploads (entry BLOB, bistro TEXT, sha256 BLOB, size BIGINT, batch BIGINT,
    told_ticket TEXT, outcome TEXT, PRIMARY KEY (entry, bistro, sha256));
CREATE TABLE segments (bistro TEXT, number BIGINT, n_bytes BIGINT, is_fetched INTEGER,
    is_covered INTEGER, PRIMARY KEY (bistro, number));
CREATE TABLE pieces (bistro TEXT, segment BIGINT, segment_offset BIGINT, entry BLOB,
    upload_offset BIGINT, n_bytes BIGINT, PRIMARY KEY (bistro, segment, segment_offset));
CREATE INDEX pieces_of_entries ON pieces (entry);
CREATE INDEX not_tried ON uploads (entry) WHERE outcome IS NULL;
CREATE INDEX lost ON uploads (bistro, entry) WHERE outcome = '{LOST}';
CREATE INDEX not_logged ON entries (entry) WHERE is_logged = 0;
CREATE INDEX without_time ON entries (entry) WHERE time_s IS NULL;
CREATE INDEX not_here ON entries (entry) WHERE {NOT_HERE};
CREATE INDEX of_tickets ON entries (ticket);
CREATE INDEX of_contents ON entries (content_p);
CREATE TABLE files (bistro TEXT, name TEXT, stamp TEXT, PRIMARY KEY (bistro, name));
CREATE TABLE lies (who TEXT, text TEXT, PRIMARY KEY (who, text));
"""
# Where the files lie that were collected, each with what was written; registers of earlier versions
# lack it, and know no size of theirs.
KEPT = """CREATE TABLE IF NOT EXISTS kept (entry BLOB, host TEXT, machine TEXT, folder TEXT,
    file TEXT, n_bytes BIGINT, sha256 BLOB, PRIMARY KEY (entry, host, machine, folder))"""
# What the log of verdicts said of entries before what was here was lost: the last word on each.
SAID = """CREATE TABLE IF NOT EXISTS said (entry BLOB PRIMARY KEY, word TEXT, why TEXT)"""
# Nearly all drafts are alone with their ticket and their content: those are not looked at.
_SHARED = "SELECT {0} FROM entries GROUP BY {0} HAVING count(*) > 1"
MOST_AT_ONCE = 10_000


class Upload(NamedTuple):
    """What a bistro says that it holds of an entry, and what was committed to."""

    bistro: str
    size: int
    sha256: bytes
    commitment: Commitment

    @property
    def is_committed(self) -> bool:
        """Whether it is the ciphertext committed to, and none that was sealed anew."""
        return _is_committed(self.size, self.sha256, self.commitment)


class Opening(NamedTuple):
    """An upload that is here whole: the ways in which its pieces may be put together."""

    upload: Upload
    ways: list[tuple[Piece, ...]]


class Counts(NamedTuple):
    """How far an event is: entries by what is known of them."""

    in_time: int
    late: int
    collected: int
    refused: int
    superseded: int
    waiting: int


class KeptFile(NamedTuple):
    """A file that was collected: below which folder's ``files``, how long, its hash."""

    file: str
    n_bytes: int
    sha256: bytes | None


def owner_of(event: str) -> str:
    """Return whose register it is of which an event's id is given."""
    return f"event {event}"


class Register:
    """What is known of an event's uploads.

    Parameters
    ----------
    place : str
        A folder, for SQLite; or ``postgresql://…``.
    event : Event
    here : Place, optional
        Of the destination's folder: what is opened lies there.

    Raises
    ------
    ProblemError
        It is the register of another event.
    StoreError
        The disk or the database fails; so does every call.
    """

    def __init__(self, place: str, event: Event, here: Place | None = None) -> None:
        self._event, self._here = event, here
        self._db = open_database(place, SCHEMA, owner_of(event.id.hex()))
        try:
            self._db.add(KEPT)
            self._db.add(SAID)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let others have it."""
        self._db.close()

    # What bistros say -------------------------------------------------------------------------

    def take_batch(self, batch: Batch) -> bool:
        """Take a batch's rows that somebody has handed in; return whether it was new."""
        seen = self._db.rows(
            "SELECT 1 FROM batches WHERE bistro = ? AND number = ? AND digest = ?",
            (batch.bistro, batch.number, batch.digest),
        )
        if seen:
            return False
        rows, lies = rows_handed_in(batch, self._event)
        entries = [*_entry_rows(rows)]
        uploads = [*_upload_rows(rows, batch)]
        chain = (batch.bistro, batch.number, batch.digest, batch.previous, batch.note.data)
        with self._db.transaction():
            self._db.insert("entries", entries)
            self._db.insert("uploads", uploads)
            self._db.insert("lies", [(lie.who, lie.text) for lie in lies])
            self._db.insert("batches", [chain])
        return True

    def take_index(self, bistro: str, number: int, pieces: np.ndarray) -> bool:
        """Take what lies in a segment of a bistro; return whether it was new.

        What was not as its bistro has signed may be made of these pieces: it is tried again.

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
            _hashes(pieces, "entry"),
            pieces["upload_offset"].tolist(),
            pieces["segment_offset"].tolist(),
            pieces["n_bytes"].tolist(),
        )
        rows = [
            (bistro, number, at, entry, upload_offset, n)
            for entry, upload_offset, at, n in zip(*columns, strict=True)
            if n
        ]
        with self._db.transaction():
            self._db.insert("pieces", rows)
            self._db.insert("segments", [(bistro, number, int(pieces["n_bytes"].sum()), 0, 0)])
            self._db.rows(
                f"UPDATE uploads SET outcome = NULL WHERE bistro = ? AND outcome = '{LOST}' "
                "AND entry IN (SELECT entry FROM pieces WHERE bistro = ? AND segment = ?)",
                (bistro, bistro, number),
            )
        return True

    def take_segment(self, bistro: str, number: int, n_bytes: int) -> bool:
        """Take note that a segment is here, and so long; return whether it is as its index says."""
        ((expected,),) = self._db.rows(
            "SELECT n_bytes FROM segments WHERE bistro = ? AND number = ?", (bistro, number)
        )
        if n_bytes != expected:
            text = f"Its segment {number} has {n_bytes} bytes, and by its index {expected}."
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
        found += [
            Lie(bistro, f"It shows other bytes of {entry.hex()} than it has signed for.")
            for bistro, entry in self._db.rows(
                f"SELECT bistro, entry FROM uploads WHERE outcome = '{LOST}' ORDER BY 1, 2"
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

    # What logs say ----------------------------------------------------------------------------

    def without_time(self) -> Iterator[bytes]:
        """Yield entries whose time logs have not proved yet, all of them once, some at a time."""
        last = b""
        while rows := self._db.rows(
            "SELECT entry FROM entries WHERE time_s IS NULL AND entry > ? ORDER BY entry LIMIT ?",
            (last, MOST_AT_ONCE),
        ):
            yield from (entry for (entry,) in rows)
            last = rows[-1][0]

    def unsure(self, late_by_s: int = 0) -> list[bytes]:
        """Return the entries whose least time matters, should it not be known yet.

        Of those in time, those that share a ticket or a content with others, and those that may;
        and those that are late by so little.

        Parameters
        ----------
        late_by_s : int
        """
        latest_s = self._event.latest_s
        rows = self._db.rows(
            "SELECT entry FROM entries WHERE time_s <= ? AND (word IS NULL OR word = ? OR "
            f"ticket IN ({_SHARED.format('ticket')}) "
            f"OR content_p IN ({_SHARED.format('content_p')})) "
            "UNION ALL SELECT entry FROM entries WHERE time_s > ? AND time_s <= ?",
            (latest_s, REFUSED, latest_s, latest_s + late_by_s),
        )
        return [entry for (entry,) in rows]

    def take_times(self, times_s: Iterable[tuple[bytes, int]]) -> None:
        """Keep by when entries stood in a log; the least counts."""
        with self._db.transaction():
            self._db.many(
                "UPDATE entries SET time_s = ? WHERE entry = ? AND (time_s IS NULL OR time_s > ?)",
                ((time_s, entry, time_s) for entry, time_s in times_s),
            )

    def judge_times(self) -> None:
        """Refuse what is late, unless it was judged; take that back where it is late no more.

        To be called after times were taken, and after the deadline was moved.
        """
        latest_s = self._event.latest_s
        with self._db.transaction():
            self._db.rows(
                "UPDATE entries SET word = ?, why = ?, is_logged = 0 "
                "WHERE word IS NULL AND time_s > ?",
                (REFUSED, LATE, latest_s),
            )
            self._db.rows(
                "UPDATE entries SET word = NULL, why = NULL, is_logged = NULL "
                "WHERE word = ? AND why = ? AND time_s <= ?",
                (REFUSED, LATE, latest_s),
            )

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
            segments = {part.segment for parts in opening.ways for part in parts}
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
            ways = [parts for parts in opening.ways if all(part.segment in known for part in parts)]
            if ways:
                yield Opening(opening.upload, ways)

    def _fetched(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for bistro, number in self._db.rows(
            "SELECT bistro, number FROM segments WHERE is_fetched = 1"
        ):
            found.setdefault(bistro, set()).add(number)
        return {bistro: frozenset(numbers) for bistro, numbers in found.items()}

    def _whole(self, condition: str) -> Iterator[Opening]:
        """Yield uploads that were not tried yet and whose pieces are known, some entries at once.

        What is judged meanwhile is not yielded again.
        """
        last = b""
        while True:
            page = self._db.rows(
                "SELECT DISTINCT entry FROM uploads JOIN entries USING (entry) "
                "WHERE outcome IS NULL AND (word IS NULL OR word = ?) AND entry > ? "
                f"AND {condition} ORDER BY entry LIMIT {MOST_AT_ONCE}",
                (REFUSED, last),
            )
            if not page:
                return
            first, last = page[0][0], page[-1][0]
            rows = self._db.rows(
                "SELECT bistro, size, sha256, salt, committed_size, committed_sha256, content_p, "
                "owner, segment, segment_offset, upload_offset, n_bytes "
                "FROM uploads JOIN entries USING (entry) JOIN pieces USING (entry, bistro) "
                "WHERE outcome IS NULL AND (word IS NULL OR word = ?) AND entry >= ? "
                f"AND entry <= ? AND {condition} ORDER BY entry, batch, bistro, sha256",
                (REFUSED, first, last),
            )
            for values, some in groupby(rows, lambda row: row[:8]):
                bistro, size, digest, *committed = values
                upload = Upload(bistro, size, digest, Commitment(self._event.id, *committed))
                ways = whole_uploads((Piece(*row[8:]) for row in some), upload.size)
                if ways:
                    yield Opening(upload, ways)

    # Verdicts ---------------------------------------------------------------------------------

    def opened(
        self,
        upload: Upload,
        why: str,
        ticket: str | None = None,
        file: str | None = None,
        n_bytes: int | None = None,
        sha256: bytes | None = None,
    ) -> None:
        """Keep what opening an upload has shown, and the verdict that follows.

        A person is refused for the ciphertext that was committed to. Another one is its bistro's
        word alone: it refuses nobody as long as some copy was not seen yet, and takes the place of
        no other verdict.

        Parameters
        ----------
        upload : Upload
        why : str
            One of ``REASONS`` in `datacollect.bistro.formats.custody.verdicts`; empty: collected;
            `LOST`: the bistro shows other bytes, which says nothing of the entry.
        ticket : str, optional
            The number inside the seal.
        file : str, optional
            Where it was written.
        n_bytes, sha256 : int and bytes, optional
            Of what was written.
        """
        entry = upload.commitment.entry
        with self._db.transaction():
            self._db.rows(
                "UPDATE uploads SET outcome = ? WHERE entry = ? AND bistro = ? AND sha256 = ?",
                (why or COLLECTED, entry, upload.bistro, upload.sha256),
            )
            if why == LOST or (why and not self._is_refused_by(upload)):
                return
            self._db.rows(
                "UPDATE entries SET word = ?, why = ?, is_logged = 0, ticket = ?, file = ? "
                "WHERE entry = ? AND (word IS NULL OR word NOT IN (?, ?))",
                (*_word(why), ticket, file, entry, COLLECTED, SUPERSEDED),
            )
            if file is not None and n_bytes is not None and self._here is not None:
                self._keep(entry, self._here, KeptFile(file, n_bytes, sha256))

    def _keep(self, entry: bytes, place: Place, file: KeptFile) -> None:
        at = (place.host, place.machine, place.folder)
        self._db.insert("kept", [(entry, *at, *file)])

    def take_over(self, is_whole: Callable[[KeptFile], bool]) -> int:
        """Take note of files that lie here now, and were collected elsewhere; return how many.

        Parameters
        ----------
        is_whole : function
            Whether a file lies here as it was written.
        """
        if self._here is None:
            return 0
        at, n, last = (self._here.host, self._here.machine, self._here.folder), 0, b""
        while page := self._db.rows(
            "SELECT entry, file, n_bytes, sha256 FROM kept AS k WHERE entry > ? AND NOT EXISTS "
            "(SELECT 1 FROM kept WHERE entry = k.entry AND host = ? AND machine = ? "
            "AND folder = ?) ORDER BY entry LIMIT ?",
            (last, *at, MOST_AT_ONCE),
        ):
            found = {entry: KeptFile(*row) for entry, *row in page if is_whole(KeptFile(*row))}
            with self._db.transaction():
                for entry, file in found.items():
                    self._keep(entry, self._here, file)
            n, last = n + len(found), page[-1][0]
        return n

    def _is_refused_by(self, upload: Upload) -> bool:
        """Whether an upload that was refused decides on its entry."""
        commitment = upload.commitment
        others = self._db.rows(
            "SELECT size, sha256, outcome FROM uploads "
            "WHERE entry = ? AND NOT (bistro = ? AND sha256 = ?)",
            (commitment.entry, upload.bistro, upload.sha256),
        )
        if not upload.is_committed:
            is_seen = all(outcome not in (None, LOST) for _, _, outcome in others)
            return is_seen and self.known(commitment.entry).word == ""
        # One copy has decided for all: no verdict ever comes back.
        return not any(
            _is_committed(size, sha256, commitment) and outcome in REASONS
            for size, sha256, outcome in others
        )

    def supersede(self) -> int:
        """Keep verdicts on which drafts of tickets count; return how many are new.

        To be called once no more entries can be in time, and, each time that some are new, again
        once the log holds them. While it does not hold all verdicts, there are no new ones.

        Times of drafts may still be proved to be less. The log holds no verdict twice: where one
        would have to come back by that, the draft counts as well.
        """
        if self.to_log(1):
            return 0
        rows = self._db.rows(
            "WITH contents AS (SELECT content_p, min(time_s) AS since_s FROM entries "
            "GROUP BY content_p HAVING count(*) > 1) "
            "SELECT time_s, entry, ticket, content_p, since_s, word, coalesce(beaten_by, '') "
            "FROM entries LEFT JOIN contents USING (content_p) "
            "WHERE word IN (?, ?) AND time_s <= ? AND ("
            f"ticket IN ({_SHARED.format('ticket')}) "
            f"OR content_p IN ({_SHARED.format('content_p')}))",
            (COLLECTED, SUPERSEDED, self._event.latest_s),
        )
        standing = {Draft(*row[:5]): row[5] == SUPERSEDED for row in rows}
        before = {row[1]: row[6] for row in rows}
        again, beaten = changes(standing, self._event.counts)
        new = {each: by.hex() for each, by in beaten.items() if by.hex() not in before[each]}
        with self._db.transaction():
            self._db.many(
                "UPDATE entries SET word = ?, is_logged = 0 WHERE entry = ?",
                ((COLLECTED, entry) for entry in again),
            )
            self._db.many(
                "UPDATE entries SET word = ?, why = ?, is_logged = 0, "
                "beaten_by = coalesce(beaten_by, '') || ? WHERE entry = ?",
                ((SUPERSEDED, by, by, entry) for entry, by in new.items()),
            )
        return len(again) + len(new)

    def to_log(self, n_most: int = MOST_AT_ONCE) -> list[Verdict]:
        """Return the verdicts that the log of verdicts is not known to hold."""
        rows = self._db.rows(
            "SELECT entry, word, why FROM entries WHERE is_logged = 0 ORDER BY entry LIMIT ?",
            (n_most,),
        )
        return [Verdict(self._event.id, *row) for row in rows]

    def logged(self, verdicts: Iterable[Verdict]) -> None:
        """Keep that the log holds verdicts, unless they have changed since."""
        with self._db.transaction():
            self._db.many(
                "UPDATE entries SET is_logged = 1 WHERE entry = ? AND word = ? AND why = ?",
                ((each.entry, each.word, each.why) for each in verdicts),
            )

    def covered(self, bistro: str, now_s: int) -> list[int]:
        """Return the segments of a bistro whose data may go: verdicts on all of it are logged.

        Of what was refused more may come, sealed anew: a segment stays where pieces of it lie that
        were not opened yet, and where an upload goes on that no batch names. What is late stays as
        long as the deadline may be moved. Data that may go once are not looked at again.

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
                "SELECT 1 FROM pieces LEFT JOIN entries ON entries.entry = pieces.entry "
                "WHERE pieces.bistro = segments.bistro AND segment = number "
                "AND (is_logged IS NULL OR is_logged = 0 OR (word = ? AND why = ? AND ? = 1) "
                "OR (word = ? AND why <> ? AND (SELECT sum(n_bytes) FROM pieces AS p "
                "WHERE p.entry = pieces.entry AND p.bistro = pieces.bistro) > "
                "(SELECT coalesce(sum(size), 0) FROM uploads "
                "WHERE uploads.entry = pieces.entry AND uploads.bistro = pieces.bistro "
                f"AND outcome <> '{LOST}'))))",
                (bistro, REFUSED, LATE, int(may_move), REFUSED, LATE),
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

    def drop_segments(self, bistro: str, numbers: Iterable[int]) -> None:
        """Take note that segments are not here any more."""
        with self._db.transaction():
            self._db.many(
                "UPDATE segments SET is_fetched = 0 WHERE bistro = ? AND number = ?",
                ((bistro, number) for number in numbers),
            )

    # What was lost ----------------------------------------------------------------------------

    def forget_absent(
        self, is_here: Callable[[str, KeptFile | None], bool], has_segment: Callable[..., bool]
    ) -> int:
        """Forget verdicts on what does not lie here, so that it is fetched again; return how many.

        The log of verdicts takes each verdict once: one that comes again changes nothing there.

        Parameters
        ----------
        is_here : function
            Takes a file's place below ``files``, and what was written, if that is known; returns
            whether it lies here.
        has_segment : function
            Takes a bistro and a number; returns whether that segment lies here.
        """
        n, last = 0, b""
        while page := self._db.rows(
            "SELECT entry, file FROM entries WHERE word IN (?, ?) AND entry > ? ORDER BY entry "
            "LIMIT ?",
            (COLLECTED, SUPERSEDED, last, MOST_AT_ONCE),
        ):
            last = page[-1][0]
            gone = [entry for entry, file in page if not self._is_here(entry, file, is_here)]
            with self._db.transaction():
                for entry in gone:
                    self._db.rows(
                        "UPDATE entries SET word = NULL, why = NULL, is_logged = NULL, "
                        "file = NULL, beaten_by = NULL WHERE entry = ?",
                        (entry,),
                    )
                    self._db.rows("UPDATE uploads SET outcome = NULL WHERE entry = ?", (entry,))
                    self._db.rows("DELETE FROM kept WHERE entry = ?", (entry,))
            n += len(gone)
        segments = self._db.rows("SELECT bistro, number, is_fetched FROM segments")
        with self._db.transaction():
            self._db.rows("UPDATE segments SET is_covered = 0")
            self._db.many(
                "UPDATE segments SET is_fetched = 0 WHERE bistro = ? AND number = ?",
                ((b, i) for b, i, fetched in segments if fetched and not has_segment(b, i)),
            )
        return n

    def _is_here(
        self, entry: bytes, file: str | None, is_here: Callable[[str, KeptFile | None], bool]
    ) -> bool:
        kept = self._db.rows(
            "SELECT DISTINCT file, n_bytes, sha256 FROM kept WHERE entry = ?", (entry,)
        )
        if kept:
            return any(is_here(row[0], KeptFile(*row)) for row in kept)
        return file is not None and is_here(file, None)

    def take_said(self, verdicts: Iterable[Verdict]) -> None:
        """Keep the last words of the log of verdicts on entries, as they were said before."""
        left = iter(verdicts)
        while some := [*islice(left, MOST_AT_ONCE)]:
            with self._db.transaction():
                self._db.many(
                    "INSERT INTO said VALUES (?, ?, ?) ON CONFLICT (entry) DO UPDATE "
                    "SET word = excluded.word, why = excluded.why",
                    ((each.entry, each.word, each.why) for each in some),
                )

    def log_again(self, last: Mapping[bytes, Verdict]) -> int:
        """Have verdicts logged again that the log does not hold; return how many.

        Parameters
        ----------
        last : mapping of bytes to Verdict
            The last word of the log on each entry.
        """
        n, after = 0, b""
        while page := self._db.rows(
            "SELECT entry, word, why FROM entries WHERE is_logged = 1 AND entry > ? ORDER BY entry "
            "LIMIT ?",
            (after, MOST_AT_ONCE),
        ):
            after = page[-1][0]
            absent = [row[0] for row in page if last.get(row[0]) != Verdict(self._event.id, *row)]
            with self._db.transaction():
                self._db.many(
                    "UPDATE entries SET is_logged = 0 WHERE entry = ?",
                    ((entry,) for entry in absent),
                )
            n += len(absent)
        return n

    def judge_said(self, *, is_final: bool) -> None:
        """Let stand what was said before of entries that were not judged again.

        Parameters
        ----------
        is_final : bool
            Whether all was fetched that could be: a draft that was superseded stays so, where what
            counts instead is here.
        """
        with self._db.transaction():
            self._db.rows(
                "UPDATE entries SET word = ?, why = said.why, is_logged = 1 FROM said "
                "WHERE said.entry = entries.entry AND entries.word IS NULL AND said.word = ? "
                "AND said.why <> ?",
                (REFUSED, REFUSED, LATE),
            )
        if is_final:
            rows = self._db.rows(
                "SELECT said.entry, said.why FROM said JOIN entries USING (entry) "
                "WHERE entries.word IS NULL AND said.word = ?",
                (SUPERSEDED,),
            )
            stands = [
                (SUPERSEDED, why, why, entry)
                for entry, why in rows
                if self.known(bytes.fromhex(why)).word == COLLECTED
            ]
            with self._db.transaction():
                self._db.many(
                    "UPDATE entries SET word = ?, why = ?, is_logged = 1, beaten_by = ? "
                    "WHERE entry = ?",
                    iter(stands),
                )

    def lost_since(self) -> set[bytes]:
        """Return what was collected by the log of verdicts, was lost, and has not come again."""
        rows = self._db.rows(
            "SELECT entry FROM said WHERE word = ? AND NOT EXISTS "
            "(SELECT 1 FROM entries WHERE entries.entry = said.entry AND word IS NOT NULL)",
            (COLLECTED,),
        )
        return {entry for (entry,) in rows}

    # What is known ----------------------------------------------------------------------------

    def known(self, entry: bytes) -> Known:
        """Return what is known of an entry; of one that no batch names, nothing."""
        rows = self._db.rows("SELECT time_s, word, why FROM entries WHERE entry = ?", (entry,))
        if not rows:
            return Known(entry)
        bistros = self._db.rows(
            "SELECT DISTINCT bistro FROM uploads WHERE entry = ? ORDER BY bistro", (entry,)
        )
        time_s, word, why = rows[0]
        return Known(entry, time_s, tuple(name for (name,) in bistros), word or "", why or "")

    def incomplete(self) -> Iterator[Known]:
        """Yield what is known of the entries that are not here, by entry.

        They have no verdict, or do not open and may come sealed anew.
        """
        last = b""
        while rows := self._db.rows(
            "SELECT entry, time_s, word, why, bistro, told_ticket "
            "FROM (SELECT entry, time_s, word, why "
            f"FROM entries WHERE {NOT_HERE} AND entry > ? ORDER BY entry LIMIT ?) AS page "
            "JOIN uploads USING (entry) ORDER BY entry, bistro",
            (last, MOST_AT_ONCE),
        ):
            for (entry, time_s, word, why), some in groupby(rows, lambda row: row[:4]):
                of_entry = [*some]
                bistros = dict.fromkeys(row[4] for row in of_entry)
                ticket = next((row[5] for row in of_entry if row[5]), None)
                yield Known(entry, time_s, tuple(bistros), word or "", why or "", ticket)
            last = rows[-1][0]

    def known_among(self, entries: Iterable[bytes]) -> set[bytes]:
        """Return which of some entries batches name."""
        found: set[bytes] = set()
        left = iter(entries)
        while some := [*islice(left, 1000)]:
            marks = ",".join("?" * len(some))
            rows = self._db.rows(f"SELECT entry FROM entries WHERE entry IN ({marks})", some)
            found.update(entry for (entry,) in rows)
        return found

    def waiting(self) -> list[tuple[bytes, str, int]]:
        """Return what waits to be fetched: entries, the bistros that hold them, their bytes."""
        return self._db.rows(
            "SELECT entry, bistro, size FROM uploads JOIN entries USING (entry) "
            "WHERE outcome IS NULL AND word IS NULL"
        )

    def arrivals(self, n_most: int = 120) -> tuple[int, list[tuple[int, int]]]:
        """Return when entries stood in a log, counted for stretches of one length.

        Returns
        -------
        int
            The length, in seconds; at most `n_most` stretches are between first and last.
        list of (int, int)
            When a stretch begins, seconds since 1970, and how many entries are of it; none of 0.
        """
        first_s, last_s = self._db.rows("SELECT min(time_s), max(time_s) FROM entries")[0]
        if first_s is None:
            return 1, []
        each_s = -(-(last_s - first_s + 1) // n_most)
        rows = self._db.rows(
            "SELECT (time_s - ?) / ? AS stretch, count(*) FROM entries "
            "WHERE time_s IS NOT NULL GROUP BY 1 ORDER BY 1",
            (first_s, each_s),
        )
        return each_s, [(first_s + stretch * each_s, n) for stretch, n in rows]

    def counts(self) -> Counts:
        """Return how far the event is."""
        latest_s = self._event.latest_s
        numbers = {
            (word, is_late): n
            for word, is_late, n in self._db.rows(
                "SELECT word, time_s > ?, count(*) FROM entries GROUP BY 1, 2", (latest_s,)
            )
        }

        def n_of(word: str | None) -> int:
            return sum(n for (found, _), n in numbers.items() if found == word)

        late = sum(n for (_, is_late), n in numbers.items() if is_late)
        in_time = sum(n for (_, is_late), n in numbers.items() if is_late is not None) - late
        return Counts(in_time, late, n_of(COLLECTED), n_of(REFUSED), n_of(SUPERSEDED), n_of(None))


def _is_committed(size: int, sha256: bytes, commitment: Commitment) -> bool:
    return (size, sha256) == (commitment.size, commitment.ciphertext_sha256)


def _word(why: str) -> tuple[str, str]:
    return (REFUSED, why) if why else (COLLECTED, "")


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
        rows["size"].tolist(),
        _hashes(rows, "ticket"),
    )
    return (
        (
            entry,
            batch.bistro,
            sha256,
            size,
            batch.number,
            ticket.hex() if any(ticket) else None,
            None,
        )
        for entry, sha256, size, ticket in zip(*columns, strict=True)
    )
