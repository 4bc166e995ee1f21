"""The two databases that a register may lie in: the same few calls, in the SQL that both speak."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.errors import ProblemError, StoreError
from datacollect.files.held_folder import Database, Held
from datacollect.installation import command_for_package, is_absent
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

POSTGRES = ("postgresql://", "postgres://")
REGISTER_FILE = "register.sqlite"
# Two that begin at once: one of them makes the tables.
_ALONE = "SELECT pg_advisory_xact_lock(3617005213)"


class RegisterDatabase(Protocol):
    """Operations that a register needs of a database; ``?`` stands for a value."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return what a question finds."""

    def many(self, sql: str, values: Iterator[Sequence[Any]]) -> None:
        """Do the same for many values."""

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows, within a transaction; those whose keys are there already stay as they are."""

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; on the disk afterwards."""

    def add(self, sql: str) -> None:
        """Make a table that one of an earlier version lacks, ``IF NOT EXISTS``."""

    def close(self) -> None:
        """Let go of it."""


def open_database(place: str, schema: str, owner: str) -> RegisterDatabase:
    """Open a register's database, made where it is absent.

    Parameters
    ----------
    place : str
        A folder, for SQLite, which one process holds; or ``postgresql://…``.
    schema : str
        SQL that makes the tables; ``BLOB`` stands for bytes.
    owner : str
        Whose it is: one of somebody else is refused.

    Raises
    ------
    ProblemError
        It is of somebody else, or there is no such database.
    StoreError
        It fails.
    """
    if place.startswith(POSTGRES):
        return _Postgres(place, schema, owner)
    return _SQLite(Path(place), schema, owner)


def psycopg_or_advice() -> Any:
    """Return the package of PostgreSQL; raise `ProblemError` with how to install it."""
    try:
        import psycopg
    except ImportError as error:
        if not is_absent(error, "psycopg"):
            raise
        command = command_for_package("psycopg")
        raise ProblemError(f"a register in PostgreSQL needs psycopg: {command}") from None
    return psycopg


class _SQLite(Database):
    def __init__(self, folder: Path, schema: str, owner: str) -> None:
        with ExitStack() as undo:
            held = Held(folder)
            undo.callback(held.close)
            # Whoever asks how far the event is reads it meanwhile.
            super().__init__(folder, REGISTER_FILE, schema, owner, is_read_beside=True)
            undo.callback(super().close)
            # What was to be forgotten does not stay in pages that are free.
            self.rows("PRAGMA secure_delete=ON")
            self._releasing = undo.pop_all()

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows; those whose keys are there already stay as they are."""
        if rows:
            marks = ",".join("?" * len(rows[0]))
            self.many(f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO NOTHING", iter(rows))

    def add(self, sql: str) -> None:
        """Make a table that one of an earlier version lacks."""
        with self.transaction():
            self.rows(sql)

    def close(self) -> None:
        """Let others have the folder."""
        super().close()
        if hasattr(self, "_releasing"):
            self._releasing.close()


class _Postgres:
    """A database that several machines write to: each transaction takes what others have left."""

    def __init__(self, place: str, schema: str, owner: str) -> None:
        psycopg = psycopg_or_advice()
        self._failure = psycopg.Error
        self._db: Any = None
        with self._errors():
            self._db = psycopg.connect(place, autocommit=True)
        try:
            self._begin(schema.replace("BLOB", "BYTEA"), owner)
        except BaseException:
            self.close()
            raise

    def _begin(self, schema: str, owner: str) -> None:
        with self.transaction():
            self.rows(_ALONE)
            if not self.rows("SELECT 1 FROM pg_tables WHERE tablename = 'owner'"):
                with self._errors():
                    self._db.execute(f"CREATE TABLE owner (name TEXT NOT NULL); {schema}")
                self.rows("INSERT INTO owner VALUES (?) RETURNING 1", (owner,))
        found = self.rows("SELECT name FROM owner")
        if found != [(owner,)]:
            raise ProblemError(
                f"the database belongs to {found[0][0] if found else 'nobody'}, not to "
                f"{owner}; name another"
            )

    def add(self, sql: str) -> None:
        with self.transaction():
            self.rows(_ALONE)
            self.rows(sql.replace("BLOB", "BYTEA"))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._errors():
            cursor = self._db.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    def many(self, sql: str, values: Iterator[Sequence[Any]]) -> None:
        with self._errors(), self._db.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), values)

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows by COPY, which knows no conflicts: into a table beside, and from there."""
        if not rows:
            return
        beside = f"new_{table}"
        with self._errors(), self._db.cursor() as cursor:
            cursor.execute(
                f"CREATE TEMPORARY TABLE IF NOT EXISTS {beside} "
                f"(LIKE {table} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
            )
            with cursor.copy(f"COPY {beside} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            # In the order of the keys: two that insert the same never wait for each other's end.
            cursor.execute(
                f"INSERT INTO {table} SELECT * FROM {beside} ORDER BY 1, 2 ON CONFLICT DO NOTHING"
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._errors(), self._db.transaction():
            yield

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._failure as error:
            raise StoreError(
                f"the register's database fails: {safe_text(str(error).strip())}; what it has "
                "committed is kept"
            ) from error
