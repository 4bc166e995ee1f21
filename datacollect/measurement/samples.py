"""Samples: measurements of bandwidth between hosts, as a table with a row each.

Columns:

- ``from``, ``to``: names of hosts,
- ``time_s``: when, in seconds on any one clock,
- ``bandwidth_bytes_per_s``: what the receiver got,
- where known ``bytes``, ``duration_s``, ``streams`` and ``concurrency`` (how many other tests ran
  at the same time).
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.measurement.table_kinds import TableKind, kind_of
from datacollect.units import BYTES_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd


OPTIONAL_COLUMNS = ("bytes", "duration_s", "streams", "concurrency")


KNOWN_COLUMNS = ("from", "to", "time_s", "time", *BYTES_PER_S, *OPTIONAL_COLUMNS)


def read_samples(
    path: str | PathLike[str], columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    r"""Read a table of samples from a CSV file.

    Parameters
    ----------
    path : path-like
        UTF-8, with a header: ``from``, ``to``; ``time_s`` (a number) or ``time`` (ISO 8601; UTC
        where no offset is given); exactly one of ``bandwidth_bytes_per_s``,
        ``bandwidth_bit_per_s``, ``bandwidth_mbit_per_s``, ``bandwidth_gbit_per_s`` and the like;
        optionally ``bytes``, ``duration_s``, ``streams``, ``concurrency``. Skyplane's grids and
        perfSONAR's CSV are read as they are (`datacollect.measurement.table_kinds`).
    columns : mapping from str to str, optional
        What columns of the file are here, such as ``{"src": "from"}``. Columns that have another
        name and are not in it are left out.

    Returns
    -------
    DataFrame
        The samples in the file's order; ``time`` becomes ``time_s``, seconds since 1970.

    Raises
    ------
    ProblemError
        The file breaks a rule; the message names file, line, rule, value and remedy.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "probes.csv")
    ...     _ = file.write_text(
    ...         "from,to,time,bandwidth_mbit_per_s\n"
    ...         "lyon,geneva,2024-05-01T12:00:00Z,40\n"
    ...     )
    ...     samples = read_samples(file)
    >>> samples.values.tolist()
    [['lyon', 'geneva', 1714564800.0, 5000000.0]]
    """
    import pandas as pd

    where = str(path)
    raw = _read_text_columns(Path(path), columns)
    time, bandwidth = _time_and_bandwidth(list(raw.columns), where)
    for column in ("from", "to"):
        _reject_rows(raw[column] == "", raw, column, where, "be a host's name")
    kept = [column for column in OPTIONAL_COLUMNS if column in raw.columns]
    found: dict[str, Any] = {"from": raw["from"], "to": raw["to"]}
    found["time_s"] = (
        _seconds_since_1970(raw, where) if time == "time" else _numbers(raw, "time_s", where)
    )
    measured = _numbers(raw, bandwidth, where)
    _reject_rows(measured < 0, raw, bandwidth, where, "be >= 0")
    found["bandwidth_bytes_per_s"] = measured * BYTES_PER_S[bandwidth]
    for column in kept:
        found[column] = _numbers(raw, column, where)
        _reject_rows(found[column] < 0, raw, column, where, "be >= 0")
    _reject_rows(raw["from"] == raw["to"], raw, "to", where, "differ from from")
    return pd.DataFrame(found).reset_index(drop=True)


def _read_text_columns(path: Path, columns: Mapping[str, str] | None) -> pd.DataFrame:
    """Read a CSV file as text, its columns named as here; the index counts data rows from 0."""
    import pandas as pd

    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream)
            header = next(rows, [])
            kind = kind_of(header, columns, KNOWN_COLUMNS, str(path))
            _reject_twice(header, str(path))
            _check_header(_columns_here(header, kind), str(path))
            # pandas would take a surplus first field for the row's label; later lines it checks.
            first = next((row for row in rows if row), header)
            if len(first) > len(header):
                raise ProblemError(
                    f"{path}, line {rows.line_num}: must have {len(header)} fields like the "
                    f"header, got {len(first)}"
                )
        raw = pd.read_csv(
            path, dtype=str, keep_default_na=False, skip_blank_lines=False, encoding="utf-8-sig"
        )
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{path}: must be UTF-8 text: {error.reason}; save it as UTF-8"
        ) from None
    except (csv.Error, pd.errors.ParserError) as error:
        raise ProblemError(f"{path}: not a CSV file: {error}") from None
    # Blank lines are read, so that the index still tells the line; fields that a line lacks are "".
    blank = (raw == "").all(axis=1)
    return raw[~blank] if kind is None else _as_here(raw[~blank], kind)


def _columns_here(header: list[str], kind: TableKind | None) -> list[str]:
    """Return what a file's columns are here."""
    if kind is None:
        return header
    return [kind.columns[name] for name in header if name in kind.columns] + ["time_s"] * (
        kind.timeless
    )


def _as_here(raw: pd.DataFrame, kind: TableKind) -> pd.DataFrame:
    """Return the rows and columns of another program's table that count, named as here."""
    for column, value in kind.only.items():
        raw = raw[raw[column] == value]
    here = raw[[name for name in raw.columns if name in kind.columns]].rename(columns=kind.columns)
    if kind.program:
        here = here[here["from"] != here["to"]]  # a host to itself: measured, but no link
    return here.assign(time_s="0") if kind.timeless else here


def _reject_twice(header: list[str], where: str) -> None:
    for column in header:
        if header.count(column) > 1:
            raise ProblemError(f"{where}, line 1: column {column} given twice")


def _check_header(header: list[str], where: str) -> None:
    known = KNOWN_COLUMNS
    if not header:
        raise ProblemError(f"{where}, line 1: no header; begin with a line like from,to,time_s,...")
    for column in header:
        if column not in known:
            raise ProblemError(
                f"{where}, line 1: unknown column {column[:40]!r}; say what it is with --column "
                f"{column[:40]}=NAME (columns, in Python), or remove it"
                + nearest_hint(column[:40], known)
            )
    for column in ("from", "to"):
        if column not in header:
            raise ProblemError(f"{where}, line 1: column {column} is missing")
    _time_and_bandwidth(header, where)


def _time_and_bandwidth(header: list[str], where: str) -> tuple[str, str]:
    """Return the names of the column with times and of the column with bandwidths."""
    chosen = []
    for group in (("time_s", "time"), tuple(BYTES_PER_S)):
        given = [column for column in group if column in header]
        if len(given) != 1:
            raise ProblemError(
                f"{where}, line 1: must have exactly one of the columns {', '.join(group)}, got "
                + (" and ".join(given) or "none")
            )
        chosen += given
    return chosen[0], chosen[1]


def _numbers(raw: pd.DataFrame, column: str, where: str) -> pd.Series[float]:
    import pandas as pd

    numbers = pd.to_numeric(raw[column], errors="coerce").astype(float)
    bad = numbers.isna() | numbers.isin([np.inf, -np.inf])
    _reject_rows(bad, raw, column, where, "be a finite number")
    return numbers


def _seconds_since_1970(raw: pd.DataFrame, where: str) -> pd.Series[float]:
    import pandas as pd

    instants = pd.to_datetime(raw["time"], utc=True, format="ISO8601", errors="coerce")
    rule = "be an ISO 8601 date and time like 2024-05-01T12:00:00Z"
    _reject_rows(instants.isna(), raw, "time", where, rule)
    return (instants - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)


def _reject_rows(
    bad: pd.Series[bool], raw: pd.DataFrame, column: str, where: str, rule: str
) -> None:
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        value = str(raw[column].iloc[row])[:40]
        raise ProblemError(
            f"{where}, line {raw.index[row] + 2}: {column} must {rule}, got {value!r}; "
            "correct or remove the line"
        )
