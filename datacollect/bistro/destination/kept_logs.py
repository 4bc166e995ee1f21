"""Entries read from the services' logs, as a register keeps them.

What counts goes by it: a service that was read, and is silent after a restart, takes nothing back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from datacollect.bistro.destination.databases import RegisterDatabase

# An entry, and by when it stood in the log, seconds since 1970.
LOGGED = np.dtype([("entry", "S32"), ("time_s", "<i8")])
# `until_s`: the last moment in time when the log was read; `logged`: some rows of `LOGGED`.
READ_LOGS = """CREATE TABLE IF NOT EXISTS read_logs (log TEXT, part INTEGER, until_s BIGINT,
    logged BLOB, PRIMARY KEY (log, part))"""
ROWS_TOGETHER = 2**17


class KeptLog(NamedTuple):
    """Facts kept of a log.

    Attributes
    ----------
    until_s : int
        It was read to its end after this, which was the last moment in time.
    rows : numpy.ndarray of dtype `LOGGED`
    """

    until_s: int
    rows: np.ndarray


class KeptLogs:
    """The part of a register that knows what was read of logs.

    Parameters
    ----------
    db : RegisterDatabase
        With the tables of a register; its own is made where it is absent.
    """

    def __init__(self, db: RegisterDatabase) -> None:
        self._db = db
        db.add(READ_LOGS)

    def by_log(self) -> dict[str, KeptLog]:
        """Return what was read, by the logs' origins."""
        found: dict[str, tuple[int, list[bytes]]] = {}
        for log, until_s, data in self._db.rows(
            "SELECT log, until_s, logged FROM read_logs ORDER BY log, part"
        ):
            found.setdefault(log, (until_s, []))[1].append(data)
        return {
            log: KeptLog(until_s, np.frombuffer(b"".join(parts), LOGGED))
            for log, (until_s, parts) in found.items()
        }

    def keep(self, log: str, known: KeptLog) -> None:
        """Keep what is known of a log, instead of what was kept of it before."""
        rows = known.rows
        parts = [
            (log, number, known.until_s, rows[i : i + ROWS_TOGETHER].tobytes())
            for number, i in enumerate(range(0, max(len(rows), 1), ROWS_TOGETHER))
        ]
        with self._db.transaction():
            self._db.rows("DELETE FROM read_logs WHERE log = ?", (log,))
            self._db.insert("read_logs", parts)
