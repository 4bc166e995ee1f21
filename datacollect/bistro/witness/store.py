"""Store of a witness's signatures: on the disk before its answer leaves."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from datacollect.bistro.witness.core import Cosigned, Seen
from datacollect.files.held_folder import Database, Held

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
CREATE TABLE seen (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL);
CREATE TABLE last (id INTEGER PRIMARY KEY CHECK (id = 0), time_s INTEGER NOT NULL);
CREATE TABLE evidence (body BLOB NOT NULL UNIQUE);
INSERT INTO last VALUES (0, 0);
"""

# Of a log that lies one request is enough; each has 32 KiB at most.
MOST_EVIDENCE = 1000


class WitnessStore:
    """The folder of a witness, held by one process.

    Parameters
    ----------
    folder : Path
        Made where it is absent.
    witness : str
        The witness's verifier key: a folder of another is refused.

    Raises
    ------
    ProblemError
        The folder is another witness's, or another process is at work in it.
    StoreError
        The disk is full, or fails.
    """

    def __init__(self, folder: Path, witness: str) -> None:
        with ExitStack() as undo:
            held = Held(folder)
            undo.callback(held.close)
            self._db = Database(folder, "witness.sqlite", SCHEMA, witness)
            undo.callback(self._db.close)
            self._closing = undo.pop_all()

    def close(self) -> None:
        """Let others have the folder."""
        self._closing.close()

    def seen(self) -> dict[str, Seen]:
        """Return the largest signed checkpoint of each log, by origin."""
        rows = self._db.rows("SELECT origin, size, root FROM seen")
        return {origin: Seen(size, root) for origin, size, root in rows}

    def last_s(self) -> int:
        """Return the latest time that was signed, seconds since 1970; 0: none was."""
        return int(self._db.rows("SELECT time_s FROM last")[0][0])

    def keep(self, signed: Cosigned) -> None:
        """Keep what is signed; it is on the disk when this returns.

        Raises
        ------
        StoreError
        """
        with self._db.transaction():
            self._db.rows(
                "INSERT OR REPLACE INTO seen VALUES (?, ?, ?)",
                (signed.origin, signed.seen.size, signed.seen.root),
            )
            self._db.rows("UPDATE last SET time_s = max(time_s, ?)", (signed.time_s,))

    def keep_evidence(self, body: bytes) -> None:
        """Keep a request that shows that a log has lied."""
        with self._db.transaction():
            self._db.rows(
                "INSERT OR IGNORE INTO evidence "
                f"SELECT ? WHERE (SELECT count(*) FROM evidence) < {MOST_EVIDENCE}",
                (body,),
            )
