"""The table of samples on the disk: a folder with a Parquet file for each test.

A part is written beside its place, and takes it when it is whole and on the disk: readers see all
of it or nothing, while others write. Its name is that of its test, so a test that is written again
replaces itself. A part that is damaged all the same is left out and named.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.documents import peer_json, written_durably
from datacollect.files.kinds import shown
from datacollect.measurement.routes import read_route
from datacollect.problem.link_table import LAST_SINCE_1970_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa

# What a row may say, with its type in Arrow's words.
COLUMNS = {
    "from": "string",
    "to": "string",
    "time_s": "double",  # when the test began, in seconds since 1970
    "tool": "string",
    "settings": "string",  # of the tool, as JSON
    "ended": "string",  # DONE, or why not
    "concurrency": "int64",  # other tests at the same time
    "beside_pull": "bool",  # whether an end of it moved other data meanwhile
    "bandwidth_bytes_per_s": "double",
    "bandwidth_from_connect_bytes_per_s": "double",  # with connecting and slow start
    "bandwidth_low_bytes_per_s": "double",
    "bandwidth_high_bytes_per_s": "double",
    "capacity_bytes_per_s": "double",
    "per_connection_bytes_per_s": "double",
    "competitors": "double",
    "rtt_s": "double",
    "loss": "double",  # a part of the packets
    "streams": "int64",
    "bytes": "int64",
    "duration_s": "double",
    "limited_by": "string",
    "routers": "string",  # the route as JSON, see `datacollect.measurement.routes`
}
NEEDED = ("from", "to", "time_s", "tool", "ended")

DONE = "done"
SUFFIX = ".parquet"

_TEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True)
class StoredSamples:
    """Contents of a folder of samples.

    Attributes
    ----------
    frame : DataFrame
        A row for each sample, with all ``COLUMNS``, by test.
    damaged : tuple of str
        Names of files that could not be read, or say what cannot be.
    tests : tuple of str
        Of each row, the name of its test.
    """

    frame: pd.DataFrame
    damaged: tuple[str, ...]
    tests: tuple[str, ...] = ()


def write_part(folder: Path, test_id: str, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Keep the rows of a test; when this returns they are on the disk.

    Parameters
    ----------
    folder : Path
    test_id : str
        Letters, digits, ``-`` and ``_``; no two tests have the same.
    rows : iterable of mappings
        From names of ``COLUMNS`` to values.

    Raises
    ------
    NotWrittenError
        They cannot be written; what was kept before stays.
    ProblemError
        A row says what there is no column for, or lacks what is needed.
    """
    import pyarrow.parquet as pq

    if not _TEST_ID.fullmatch(test_id):
        raise ProblemError(
            f"a test's name must be letters, digits, - and _, at most 100, got {shown(test_id)}"
        )
    table = _table(list(rows))
    file = folder / f"{test_id}{SUFFIX}"
    with written_durably(file) as beside:
        pq.write_table(table, beside, write_page_checksum=True)
    return file


def read_parts(folder: Path, begins: str = "") -> StoredSamples:
    """Read all parts of a folder, or those of tests whose names begin so, also while others write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> row = {"from": "S", "to": "D", "time_s": 0.0, "tool": "ping", "ended": "done", "rtt_s": 0.1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_part(Path(folder), "1", [row])
    ...     read_parts(Path(folder)).frame["rtt_s"].tolist()
    [0.1]
    """
    return PartsReader(folder, begins).read()


class PartsReader:
    """Reads a folder again and again, and of its parts only those that have changed.

    Parameters
    ----------
    folder : Path
    begins : str, optional
        How the names of the parts begin that count.
    """

    def __init__(self, folder: Path, begins: str = "") -> None:
        self._folder, self._begins = folder, begins
        self._parts: dict[str, tuple[tuple[int, int], pa.Table | None]] = {}

    def stamps(self) -> dict[str, tuple[int, int]]:
        """Return which parts there are, and of each when it was written and its bytes."""
        found = {}
        for file in sorted(self._folder.glob(f"*{SUFFIX}")):
            if not file.name.startswith(self._begins):
                continue
            with suppress(FileNotFoundError):
                stat = file.stat()
                found[file.name] = (stat.st_mtime_ns, stat.st_size)
        return found

    def read(self) -> StoredSamples:
        """Return what the folder holds now."""
        import pyarrow as pa

        before, self._parts = self._parts, {}
        for name, stamp in self.stamps().items():
            part = before.get(name)
            if part is None or part[0] != stamp:
                part = (stamp, _read_or_none(self._folder / name))
            self._parts[name] = part
        whole = {name: table for name, (_, table) in self._parts.items() if table is not None}
        damaged = tuple(name for name, (_, table) in self._parts.items() if table is None)
        frame = pa.concat_tables([_table([]), *whole.values()]).to_pandas()
        tests = (
            name.removesuffix(SUFFIX) for name, table in whole.items() for _ in range(len(table))
        )
        return StoredSamples(frame, damaged, tuple(tests))


def samples_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that measured a bandwidth, as estimates of bandwidths take them."""
    is_one = (frame["ended"] == DONE) & (frame["bandwidth_bytes_per_s"] > 0)
    columns = ["from", "to", "time_s", "bandwidth_bytes_per_s", "bytes", "duration_s", "streams"]
    return frame.loc[is_one, [*columns, "concurrency", "tool"]].rename(columns={"tool": "kind"})


def settings_of(text: object) -> dict[str, Any]:
    """Return the settings of a row; none where it says none, or what no tool writes.

    >>> settings_of('{"streams": 4}'), settings_of(None)
    ({'streams': 4}, {})
    """
    found = peer_json(text) if isinstance(text, str) else {}
    return found if isinstance(found, dict) else {}


def _read_or_none(file: Path) -> pa.Table | None:
    """Return the columns of a part, none where it has gone; None where it is damaged."""
    import pyarrow as pa

    try:
        return _read(file.read_bytes())
    except FileNotFoundError:
        return _table([])
    except (OSError, pa.ArrowException, _WrongPartError):
        return None


class _WrongPartError(Exception):
    """A part says what no test writes."""


def _read(data: bytes) -> pa.Table:
    """Return a part's columns; what another version does not know is null, or left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    columns = {
        name: part[name] if name in part.column_names else pa.nulls(part.num_rows)
        for name in COLUMNS
    }
    table = pa.table(columns).cast(_schema())
    if not all(map(_is_time, table["time_s"].to_pylist())):
        raise _WrongPartError
    if not all(map(_is_route, table["routers"].to_pylist())):
        raise _WrongPartError
    return table


def _is_time(time_s: float | None) -> bool:
    return time_s is not None and 0 <= time_s <= LAST_SINCE_1970_S


def _is_route(text: str | None) -> bool:
    if text is None:
        return True
    try:
        read_route(text)
    except ProblemError:
        return False
    return True


def _table(rows: list[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    for row in rows:
        for name in row.keys() - COLUMNS.keys():
            raise ProblemError(
                f"samples have no column {shown(name)}" + nearest_hint(str(name), COLUMNS)
            )
        for name in NEEDED:
            if row.get(name) is None:
                raise ProblemError(f"a sample must say {name}, got {shown(dict(row))}")
    try:
        return pa.Table.from_pylist(rows, schema=_schema())
    except pa.ArrowException as error:
        raise ProblemError(
            f"a sample has a value of another type than its column: {error}"
        ) from None


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
