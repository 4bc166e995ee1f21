"""Register of the destination, durable: each call is one transaction.

Killed at any step, it goes on: a batch or an index that is taken twice changes nothing, an entry
whose verdict is not kept is opened again, a verdict that is not known to be logged is logged again,
which the log takes once.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.bistro.destination.counting import Draft, Quota, changes
from datacollect.bistro.destination.databases import open_database
from datacollect.bistro.destination.holdings import LOST, MAY_OPEN, Holdings, is_committed
from datacollect.bistro.destination.kept_logs import KeptLogs
from datacollect.bistro.destination.losses import MOST_AT_ONCE, MOST_IN_QUERY, KeptFile, Losses
from datacollect.bistro.destination.missing import Known
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    LATE,
    NEVER_CAME,
    OTHER_TICKET,
    REASONS,
    REFUSED,
    SUPERSEDED,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from datacollect.bistro.destination.holdings import Upload
    from datacollect.bistro.destination.place import Place
    from datacollect.bistro.formats.event.event import Event

# What may still come, or come sealed anew.
NOT_HERE = f"(word IS NULL OR why = '{DOES_NOT_OPEN}')"
# `outcome`: what opening it has shown; NULL: not tried yet. `word`, `why`: the last verdict, and
# whether the log of verdicts holds it. `ticket`: the number inside the seal; `told_ticket`: that
# which has pushed it; `beaten_by`: all entries by which it was ever superseded. `number`: of the
# upload at its bistro; `n_segments`: its bistro has signed that it lies in the first so many.
# Of an entry a bistro has what was committed to and one that was sealed anew.
# `files`: what was read of those that bistros serve, and by which stamp each is known again.
SCHEMA = f"""
CREATE TABLE batches (bistro TEXT, number BIGINT, digest BLOB, previous BLOB, note BLOB,
    PRIMARY KEY (bistro, number, digest));
CREATE TABLE entries (entry BLOB PRIMARY KEY, salt BLOB, content_p BLOB, committed_size BIGINT,
    committed_sha256 BLOB, owner BLOB, time_s BIGINT, word TEXT, why TEXT, is_logged INTEGER,
    ticket TEXT, file TEXT, beaten_by TEXT);
CREATE TABLE uploads (entry BLOB, bistro TEXT, is_anew INTEGER, sha256 BLOB, size BIGINT,
    batch BIGINT, number BIGINT, n_segments BIGINT, told_ticket TEXT, outcome TEXT,
    n_tried INTEGER NOT NULL,
    PRIMARY KEY (entry, bistro, is_anew), UNIQUE (bistro, number));
CREATE TABLE segments (bistro TEXT, number BIGINT, n_bytes BIGINT, is_fetched INTEGER,
    is_covered INTEGER, PRIMARY KEY (bistro, number));
CREATE TABLE pieces (bistro TEXT, segment BIGINT, segment_offset BIGINT, upload BIGINT,
    upload_offset BIGINT, n_bytes BIGINT, PRIMARY KEY (bistro, segment, segment_offset));
CREATE INDEX pieces_of_uploads ON pieces (bistro, upload);
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
# What people have named their files, where that is no name of a file here.
NAMES = "CREATE TABLE IF NOT EXISTS names (entry BLOB PRIMARY KEY, name TEXT)"
# Whether the ticket of an upload was revoked before the time that is known, and after a lesser one.
_REVOKED_SINCE = """EXISTS (SELECT 1 FROM revoked JOIN entries ON since_s < time_s
    WHERE revoked.ticket = told_ticket AND entries.entry = uploads.entry AND since_s >= ?)"""
# Nearly all drafts are alone with their ticket and their content: those are not looked at.
_SHARED = "SELECT {0} FROM entries GROUP BY {0} HAVING count(*) > 1"


class Counts(NamedTuple):
    """Progress of an event: entries by what is known of them."""

    in_time: int
    late: int
    collected: int
    refused: int
    superseded: int
    waiting: int


def owner_of(event: str) -> str:
    """Return whose register it is of which an event's id is given."""
    return f"event {event}"


class Register:
    """Register of an event's uploads.

    Parameters
    ----------
    place : str
        A folder, for SQLite; or ``postgresql://…``.
    event : Event
    here : Place, optional
        Of the destination's folder: what is opened lies there.

    Attributes
    ----------
    held : Holdings
        Its part that is about bistros.
    losses : Losses
        Its part that is at work after a loss.
    logs : KeptLogs
        Its part that knows what was read of logs.

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
            self._db.add(NAMES)
            self.losses = Losses(self._db)
            self.held = Holdings(self._db, event)
            self.logs = KeptLogs(self._db)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let others have it."""
        self._db.close()

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
        """Keep by when entries stood in a log; the least counts.

        What was refused for its ticket is tried again where that was revoked, and it turns out to
        be of before that.

        Parameters
        ----------
        times_s : iterable of (bytes, int)
        """
        times_s = [*times_s]
        with self._db.transaction():
            of_before = [(OTHER_TICKET, entry, time_s) for entry, time_s in times_s]
            self._db.many(
                "UPDATE segments SET is_covered = 0 WHERE (bistro, number) IN "
                "(SELECT pieces.bistro, segment FROM uploads JOIN pieces "
                "ON pieces.bistro = uploads.bistro AND upload = uploads.number "
                f"WHERE outcome = ? AND entry = ? AND {_REVOKED_SINCE})",
                iter(of_before),
            )
            self._db.many(
                "UPDATE uploads SET outcome = NULL "
                f"WHERE outcome = ? AND entry = ? AND {_REVOKED_SINCE}",
                iter(of_before),
            )
            self._db.many(
                "UPDATE entries SET time_s = ? WHERE entry = ? AND (time_s IS NULL OR time_s > ?)",
                ((time_s, entry, time_s) for entry, time_s in times_s),
            )

    def take_revoked(self, since_s: Mapping[str, int]) -> None:
        """Keep which tickets were revoked, by number, each with when a log had published that."""
        with self._db.transaction():
            self._db.many(
                "INSERT INTO revoked VALUES (?, ?) "
                "ON CONFLICT (ticket) DO UPDATE SET since_s = excluded.since_s",
                iter(since_s.items()),
            )

    def judge_times(self) -> None:
        """Refuse what is late, unless it was judged; take that back where it is no longer late.

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

    # Verdicts ---------------------------------------------------------------------------------

    def opened(
        self,
        upload: Upload,
        why: str,
        ticket: str | None = None,
        file: str | None = None,
        n_bytes: int | None = None,
        sha256: bytes | None = None,
        name: str = "",
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
        name : str, optional
            What the person has named it, where `file` cannot be named so.
        """
        entry = upload.commitment.entry
        with self._db.transaction():
            self._db.rows(
                "UPDATE uploads SET outcome = ?, n_tried = n_tried + 1 "
                "WHERE entry = ? AND bistro = ? AND sha256 = ?",
                (why or COLLECTED, entry, upload.bistro, upload.sha256),
            )
            if why == LOST or (why and not self._is_refused_by(upload)):
                return
            self._db.rows(
                "UPDATE entries SET word = ?, why = ?, is_logged = 0, ticket = ?, file = ? "
                f"WHERE entry = ? AND {MAY_OPEN}",
                (*_word(why), ticket, file, entry),
            )
            if file is not None and n_bytes is not None and self._here is not None:
                self._keep(entry, self._here, KeptFile(file, n_bytes, sha256))
            if name:
                self._db.insert("names", [(entry, name)])

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

    def forget(self, entries: Iterable[bytes]) -> None:
        """Name no file of some entries any more, which were removed for good; verdicts stay."""
        with self._db.transaction():
            for entry in entries:
                self._db.rows("INSERT INTO forgotten VALUES (?) ON CONFLICT DO NOTHING", (entry,))
                self._db.rows("UPDATE entries SET file = NULL WHERE entry = ?", (entry,))
                self._db.rows("DELETE FROM kept WHERE entry = ?", (entry,))
                self._db.rows("DELETE FROM names WHERE entry = ?", (entry,))

    def _is_refused_by(self, upload: Upload) -> bool:
        """Return whether an upload that was refused decides on its entry."""
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
            is_committed(size, sha256, commitment) and outcome in REASONS
            for size, sha256, outcome in others
        )

    def tickets(self) -> list[str]:
        """Return the numbers of the tickets of which something was collected."""
        rows = self._db.rows(
            "SELECT DISTINCT ticket FROM entries WHERE word IN (?, ?) AND ticket IS NOT NULL "
            "ORDER BY ticket",
            (COLLECTED, SUPERSEDED),
        )
        return [ticket for (ticket,) in rows]

    def supersede(
        self,
        logged: Mapping[str, Collection[tuple[int, bytes]]] | None = None,
        *,
        is_over: bool = True,
    ) -> int:
        """Keep verdicts on which drafts of tickets count; return how many are new.

        To be called once no more entries can be in time, and, each time that some are new, again
        once the log holds them. While it does not hold all verdicts, there are no new ones.

        Times of drafts may still be proved to be less. The log holds no verdict twice: where one
        would have to come back by that, the draft counts as well.

        Parameters
        ----------
        logged : mapping of str to collection of (int, bytes), optional
            By the number of a ticket of which something was collected: all its entries in time in
            logs, and by when each stood there. None: entries say nobody whose they are, and each
            service alone has kept to the quota.
        is_over : bool
            Whether nothing more comes. Before, nothing is said of a ticket of which something may.
        """
        if self.to_log(1):
            return 0
        rows = {row[1]: row for row in self._drafts_sharing()}
        several = self._having_several(logged or {})
        several |= {row[2] for row in rows.values()} & (logged or {}).keys()
        rows |= {row[1]: row for row in self._drafts_of(several)}
        quotas = self._quotas(several, logged or {}, rows.values(), is_over=is_over)
        held_back = {ticket for ticket, each in quotas.items() if not each.is_settled}
        drafts = {entry: row for entry, row in rows.items() if row[2] not in held_back}
        standing = {Draft(*row[:5]): row[5] == SUPERSEDED for row in drafts.values()}
        before = {entry: row[6] for entry, row in drafts.items()}
        told: dict[str | None, Quota] = {
            ticket: each for ticket, each in quotas.items() if ticket not in held_back
        }
        again, beaten = changes(standing, self._event.counts, told, self._event.never_came)
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

    def _having_several(self, logged: Mapping[str, Collection[tuple[int, bytes]]]) -> set[str]:
        """Return the tickets of which more than what was collected is known.

        Of nearly all one entry is, which came and counts: nothing counts instead. What was
        superseded counts again where the other one turns out to be none of the ticket's.
        """
        only = {t: next(iter(each))[1] for t, each in logged.items() if len(each) == 1}
        words = self._words(only.values())
        return {
            ticket
            for ticket in logged
            if ticket not in only or words.get(only[ticket]) != COLLECTED
        }

    def _drafts_sharing(self) -> list[Any]:
        """Return the drafts that are not alone with their ticket or their content."""
        return self._drafts(
            f"(ticket IN ({_SHARED.format('ticket')}) "
            f"OR content_p IN ({_SHARED.format('content_p')}))",
            (),
        )

    def _drafts_of(self, tickets: Iterable[str]) -> Iterator[Any]:
        for some in _in_parts(tickets):
            yield from self._drafts(f"ticket IN ({','.join('?' * len(some))})", some)

    def _drafts(self, condition: str, values: Sequence[Any]) -> list[Any]:
        """Return what `Draft` takes of those collected and in time, their word, who beat them."""
        return self._db.rows(
            "SELECT time_s, entry, ticket, content_p, (SELECT min(time_s) FROM entries AS e "
            "WHERE e.content_p = entries.content_p HAVING count(*) > 1), "
            "word, coalesce(beaten_by, '') FROM entries "
            f"WHERE word IN (?, ?) AND time_s <= ? AND {condition}",
            (COLLECTED, SUPERSEDED, self._event.latest_s, *values),
        )

    def _quotas(
        self,
        tickets: Iterable[str],
        logged: Mapping[str, Collection[tuple[int, bytes]]],
        drafts: Iterable[Any],
        *,
        is_over: bool,
    ) -> dict[str, Quota]:
        """Return what of each ticket may count, of all that is known to be in time of it.

        That is what logs say, and what a log that was not read has proved before: of `drafts`.
        """
        known: dict[str, dict[bytes, int]] = {ticket: {} for ticket in tickets}
        of_logs = ((*row, ticket) for ticket in known for row in logged[ticket])
        for time_s, entry, ticket in (*of_logs, *(row[:3] for row in drafts)):
            if ticket in known:
                known[ticket][entry] = min(time_s, known[ticket].get(entry, time_s))
        most = self._event.commitments_per_ticket
        firsts = {
            ticket: tuple(sorted((time_s, entry) for entry, time_s in entries.items())[:most])
            for ticket, entries in known.items()
        }
        words = self._words(entry for each in firsts.values() for _, entry in each)
        return {ticket: _quota(each, words, is_over=is_over) for ticket, each in firsts.items()}

    def _words(self, entries: Iterable[bytes]) -> dict[bytes, str]:
        """Return why each of some entries was refused, or the word of another verdict."""
        found: dict[bytes, str] = {}
        for some in _in_parts(entries):
            marks = ",".join("?" * len(some))
            found |= self._db.rows(
                f"SELECT entry, CASE WHEN word = '{REFUSED}' THEN why ELSE word END FROM entries "
                f"WHERE word IS NOT NULL AND entry IN ({marks})",
                some,
            )
        return found

    def proved(self) -> list[tuple[int, bytes]]:
        """Return the entries in time that are no drafts here, each with its proved time."""
        rows: list[tuple[int, bytes]] = self._db.rows(
            "SELECT time_s, entry FROM entries WHERE time_s <= ? "
            "AND coalesce(word, '') NOT IN (?, ?)",
            (self._event.latest_s, COLLECTED, SUPERSEDED),
        )
        return rows

    def n_absent(self) -> int:
        """Return of how many entries the verdict is that they never came."""
        rows = self._db.rows("SELECT count(*) FROM entries WHERE why = ?", (NEVER_CAME,))
        return int(rows[0][0])

    def take_absent(self, entries: Iterable[tuple[bytes, int]]) -> None:
        """Keep the verdict that entries never came, of those that no batch names.

        What came by an earlier word of the log of verdicts, and was lost, may come again.

        Parameters
        ----------
        entries : iterable of (bytes, int)
            In time of the logs, and by when each stood there.
        """
        times_s = dict(entries)
        came, nothing = self.losses.came_among(times_s), (None,) * 5
        rows = [
            (entry, *nothing, time_s, REFUSED, NEVER_CAME, 0, None, None, None)
            for entry, time_s in times_s.items()
            if entry not in came
        ]
        with self._db.transaction():
            self._db.insert("entries", rows)

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
        for some in _in_parts(entries):
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


def _in_parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield values in lists that one query takes."""
    left = iter(values)
    while some := [*islice(left, MOST_IN_QUERY)]:
        yield some


def _quota(
    entries: tuple[tuple[int, bytes], ...], words: Mapping[bytes, str], *, is_over: bool
) -> Quota:
    """Return what may count of a ticket, by what was said of each; more may come of some."""
    said = {entry: words.get(entry) for _, entry in entries}
    settled = sum(is_over or word not in (None, DOES_NOT_OPEN) for word in said.values())
    absent = frozenset(entry for entry, word in said.items() if word == NEVER_CAME)
    return Quota(entries, absent, settled == len(said))


def _word(why: str) -> tuple[str, str]:
    return (REFUSED, why) if why else (COLLECTED, "")
