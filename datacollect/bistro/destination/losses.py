"""Losses of a destination: verdicts and segments of which it knows, and no longer has the data.

It forgets them, so that they are fetched again, and lets stand what its log has said meanwhile.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    LATE,
    NEVER_CAME,
    REFUSED,
    SUPERSEDED,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from datacollect.bistro.destination.databases import RegisterDatabase
    from datacollect.bistro.formats.custody.verdicts import Verdict

# What the log of verdicts said of entries before what was here was lost: the last word on each.
SAID = """CREATE TABLE IF NOT EXISTS said (entry BLOB PRIMARY KEY, word TEXT, why TEXT)"""
MOST_AT_ONCE, MOST_IN_QUERY = 10_000, 1000


class KeptFile(NamedTuple):
    """A file that was collected: below which folder's ``files``, how long, its hash."""

    file: str
    n_bytes: int
    sha256: bytes | None


class Losses:
    """The part of a register that is at work after a loss.

    Parameters
    ----------
    db : RegisterDatabase
        With the tables of a register; its own is made where it is absent.
    """

    def __init__(self, db: RegisterDatabase) -> None:
        self._db = db
        db.add(SAID)

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
            absent = [row[0] for row in page if _words(last.get(row[0])) != row[1:]]
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
                if self._is_collected(bytes.fromhex(why))
            ]
            with self._db.transaction():
                self._db.many(
                    "UPDATE entries SET word = ?, why = ?, is_logged = 1, beaten_by = ? "
                    "WHERE entry = ?",
                    iter(stands),
                )

    def came_among(self, entries: Iterable[bytes]) -> set[bytes]:
        """Return which of some entries had come once, by what was said of them before."""
        found: set[bytes] = set()
        left = iter(entries)
        while some := [*islice(left, MOST_IN_QUERY)]:
            rows = self._db.rows(
                f"SELECT entry FROM said WHERE why <> ? AND entry IN ({','.join('?' * len(some))})",
                (NEVER_CAME, *some),
            )
            found.update(entry for (entry,) in rows)
        return found

    def lost_since(self) -> set[bytes]:
        """Return what was collected by the log of verdicts, was lost, and has not come again."""
        rows = self._db.rows(
            "SELECT entry FROM said WHERE word = ? AND NOT EXISTS "
            "(SELECT 1 FROM entries WHERE entries.entry = said.entry AND word IS NOT NULL)",
            (COLLECTED,),
        )
        return {entry for (entry,) in rows}

    def _is_collected(self, entry: bytes) -> bool:
        return self._db.rows("SELECT word FROM entries WHERE entry = ?", (entry,)) == [(COLLECTED,)]


def _words(verdict: Verdict | None) -> tuple[str, str] | None:
    return None if verdict is None else (verdict.word, verdict.why)
