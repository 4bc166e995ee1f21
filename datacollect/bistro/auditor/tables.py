"""Tables of an audit, each split into partitions by the first byte of an entry.

Everything that is said of an entry lies in the same partition: they are judged one by one, in
memory that does not grow with the event, and on as many processors or machines as there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

N_PARTITIONS = 256
# The time of an entry that no quorum has signed; later than all.
NEVER_S = 2**62
# Waits in memory before it is written, bytes of one partition of one table.
BUFFERED_BYTES = 2**16

# An entry of a log: by when it stood there, and in which of the event's logs.
LOGGED = np.dtype([("entry", "V32"), ("time_s", "<i8"), ("log", "<u2")])

# What a bistro has signed that it holds, in a batch or in a person's receipt.
HELD = np.dtype(
    [("entry", "V32"), ("bistro", "<u2"), ("batch", "<u8"), ("size", "<u8"), ("sha256", "V32")]
)

# A verdict: where it stands in its log, and what it says, by numbers.
SAID = np.dtype([("entry", "V32"), ("index", "<i8"), ("word", "u1"), ("why", "u1")])

# By the entry that counts instead: which one it is said to supersede, and where.
DISPLACED = np.dtype([("entry", "V32"), ("superseded", "V32"), ("index", "<i8")])

TABLES = {"logged": LOGGED, "held": HELD, "promised": HELD, "said": SAID, "displaced": DISPLACED}


def split(rows: np.ndarray) -> dict[int, np.ndarray]:
    """Return rows by partition, in their order; only partitions that have any.

    >>> {part: len(rows) for part, rows in split(np.array([(b"a" * 32, 0, 0)], LOGGED)).items()}
    {97: 1}
    """
    raw = rows.view(np.uint8).reshape(len(rows), rows.dtype.itemsize)
    first = raw[:, 0]
    order = np.argsort(first, kind="stable")
    stops = np.cumsum(np.bincount(first, minlength=N_PARTITIONS))
    ordered = rows[order]
    return {
        part: ordered[stop - n : stop]
        for part, (stop, n) in enumerate(zip(stops, np.diff(stops, prepend=0), strict=True))
        if n
    }


class Spool:
    """Tables on the disk, a file for each partition of each.

    Parameters
    ----------
    folder : Path
        Empty; whoever has made it removes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[tuple[str, int], bytearray] = {}

    def append(self, table: str, rows: np.ndarray) -> None:
        """Add rows to a table of `TABLES`."""
        for part, found in split(rows).items():
            waiting = self._waiting.setdefault((table, part), bytearray())
            waiting += found.tobytes()
            if len(waiting) >= BUFFERED_BYTES:
                with self._path(table, part).open("ab") as file:
                    file.write(waiting)
                waiting.clear()

    def partitions(self) -> list[int]:
        """Return the partitions of which there are rows."""
        return sorted({part for _, part in self._waiting})

    def read(self, part: int) -> Mapping[str, np.ndarray]:
        """Return a partition's tables."""
        return {table: self._rows(table, part) for table in TABLES}

    def _rows(self, table: str, part: int) -> np.ndarray:
        path = self._path(table, part)
        written = path.read_bytes() if path.exists() else b""
        return np.frombuffer(written + self._waiting.get((table, part), b""), TABLES[table])

    def _path(self, table: str, part: int) -> Path:
        return self._folder / f"{table}.{part}"
