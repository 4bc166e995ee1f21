"""The register read by others than who writes it: nothing is made or changed, nobody waits."""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import apsw

from datacollect.bistro.destination.databases import POSTGRES, REGISTER_FILE, psycopg_or_advice
from datacollect.bistro.destination.losses import MOST_AT_ONCE, KeptFile
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import owner_of
from datacollect.errors import ProblemError, StoreError
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Who opens or closes it holds it for a moment.
PATIENCE_MS = 2000
# Rows of some 100 000 entries.
CACHE_BYTES = 64 * 2**20
# A database that does not answer at all is not waited for.
CONNECT_S = 10


class Row(NamedTuple):
    """Row of the register: an entry.

    Attributes
    ----------
    entry : bytes
    time_s : int or None
        By when logs prove it; None: not known.
    word, why : str
        Of the last verdict; empty: none yet.
    is_logged : bool
        Whether the log of verdicts holds that, as enough witnesses have signed it.
    file : str or None
        Below ``files``.
    bistros : tuple of str
        Whose batches name it; of what has a final verdict they are left out.
    kept : tuple of (Place, KeptFile)
        Where it was collected, and what was written; registers of earlier versions do not know.
    ticket : str
        The number of the ticket: that inside the seal, or the one that was shown to a bistro; empty
        where neither is known.
    is_forgotten : bool
        Whether its file was removed for good, with all that named its person.
    name : str
        What its person has named the only file; empty where `file` ends with that name.
    """

    entry: bytes
    time_s: int | None
    word: str
    why: str
    is_logged: bool
    file: str | None
    bistros: tuple[str, ...] = ()
    kept: tuple[tuple[Place, KeptFile], ...] = ()
    ticket: str = ""
    is_forgotten: bool = False
    name: str = ""


@contextmanager
def reading(place: str, event: str | None) -> Iterator[Iterator[Row]]:
    """Yield all rows of a register, by entry, as it is at one time or another.

    Parameters
    ----------
    place : str
        A folder, or ``postgresql://…``.
    event : str or None
        The event's id; None: whichever it is.

    Raises
    ------
    ProblemError
        It is the register of another event.
    StoreError
        It is not there, or cannot be read.
    """
    with closing(_Postgres(place) if place.startswith(POSTGRES) else _SQLite(Path(place))) as db:
        found = db.rows("SELECT name FROM owner") if db.has("owner") else []
        if event is not None and found != [(owner_of(event),)]:
            whose = safe_text(found[0][0]) if found else "nobody"
            raise ProblemError(
                f"{db.name}: is the register of {whose}, and not of event {event}; name the one "
                "that was used to collect"
            )
        yield _rows(db, has_kept=db.has("kept"), has_names=db.has("names"))


def _rows(db: _Database, *, has_kept: bool, has_names: bool) -> Iterator[Row]:
    last, place_of = b"", cache(Place)
    gone = db.rows("SELECT entry FROM forgotten") if db.has("forgotten") else []
    forgotten = {entry for (entry,) in gone}
    while page := db.rows(
        "SELECT entry, time_s, coalesce(word, ''), coalesce(why, ''), coalesce(is_logged, 0), "
        "file, coalesce(ticket, (SELECT max(told_ticket) FROM uploads WHERE uploads.entry = "
        "entries.entry), '') FROM entries WHERE entry > ? ORDER BY entry LIMIT ?",
        (last, MOST_AT_ONCE),
    ):
        between = (page[0][0], page[-1][0])
        kept: dict[bytes, tuple[tuple[Place, KeptFile], ...]] = {}
        if has_kept:
            found = db.rows(
                "SELECT entry, host, machine, folder, file, n_bytes, sha256 FROM kept "
                "WHERE entry >= ? AND entry <= ? ORDER BY entry, host, machine, folder",
                between,
            )
            for entry, some in groupby(found, lambda row: row[0]):
                kept[entry] = tuple((place_of(*row[1:4]), KeptFile(*row[4:])) for row in some)
        named = db.rows(
            "SELECT DISTINCT entry, bistro FROM uploads JOIN entries USING (entry) "
            "WHERE word IS NULL AND entry >= ? AND entry <= ? ORDER BY entry, bistro",
            between,
        )
        bistros = {
            entry: tuple(name for _, name in some)
            for entry, some in groupby(named, lambda row: row[0])
        }
        of_names = "SELECT entry, name FROM names WHERE entry >= ? AND entry <= ?"
        names = dict(db.rows(of_names, between)) if has_names else {}
        for entry, time_s, word, why, is_logged, file, ticket in page:
            of_entry = bistros.get(entry, ()), kept.get(entry, ()), ticket, entry in forgotten
            known = entry, time_s, word, why, bool(is_logged), file
            yield Row(*known, *of_entry, names.get(entry, ""))
        last = page[-1][0]


class _Database(Protocol):
    name: str

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]: ...

    def has(self, table: str) -> bool: ...

    def close(self) -> None: ...


class _SQLite:
    def __init__(self, folder: Path) -> None:
        self._path = folder / REGISTER_FILE
        self.name = str(self._path)
        with self._errors():
            # What SQLite says of a file that is not there is what it says of many things.
            self._path.stat()
            self._db = apsw.Connection(self.name, apsw.SQLITE_OPEN_READONLY)
            self._db.set_busy_timeout(PATIENCE_MS)
            # Rows by entry lie anywhere in it: with the usual 2 MB each is read several times.
            self._db.execute(f"PRAGMA cache_size = -{CACHE_BYTES // 1024}")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._errors():
            return self._db.execute(sql, values).fetchall()

    def has(self, table: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)))

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.BusyError:
            raise StoreError(
                f"{self.name}: another program has locked the register; stop it, and ask again"
            ) from None
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise StoreError(
                f"{self.name}: the register is damaged: {error}; restore the newest copy"
            ) from error
        except FileNotFoundError:
            raise StoreError(
                f"{self.name}: the register is missing; restore the newest copy, without which "
                "nobody knows which files belong here"
            ) from None
        except (OSError, apsw.Error) as error:
            why = (isinstance(error, OSError) and error.strerror) or f"{error}"
            raise StoreError(
                f"{self.name}: the register cannot be read: {why}; repair the disk, or its "
                "permissions, and ask again"
            ) from error


class _Postgres:
    name = "the register's database"

    def __init__(self, place: str) -> None:
        psycopg = psycopg_or_advice()
        self._failure = psycopg.Error
        with self._errors():
            self._db = psycopg.connect(
                place,
                autocommit=True,
                connect_timeout=CONNECT_S,
                options="-c default_transaction_read_only=on",
            )

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._errors():
            found: list[Any] = self._db.execute(sql.replace("?", "%s"), values).fetchall()
            return found

    def has(self, table: str) -> bool:
        return bool(self.rows("SELECT 1 FROM pg_tables WHERE tablename = ?", (table,)))

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._failure as error:
            raise StoreError(
                f"{self.name} does not answer: {safe_text(str(error).strip())}; start it, and ask "
                "again"
            ) from error
