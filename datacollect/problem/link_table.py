"""Links from a CSV file of bandwidths.

Large files go through Arrow's reader. Wherever that finds anything unusual, the file is read again
row by row: slower, but it names the line and accepts whatever the format allows.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.addresses import address_of
from datacollect.files.documents import document_name, read_text
from datacollect.files.kinds import SHOWN_LENGTH, join, shown
from datacollect.files.quantities import PRICE, QuantityError, plain_number, quantity
from datacollect.files.tables import LARGE_BYTES, TextTable, number_hint, open_table
from datacollect.files.units import BYTES_PER_S
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.windows import windows_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.windows import Window

# When the newest sample of a link was taken, as `estimate` writes it.
NEWEST = "newest_s"
# From here on (2001) times of samples are seconds since 1970, before those of some experiment; the
# last that all that shows dates can show is in 2262. What comes later may be milliseconds.
SINCE_1970_S, LAST_SINCE_1970_S = 1e9, 9.2e9
# Empty cells are known to the slow reader only: NaN, which is all periods.
PERIOD = "period"
PRICE_COLUMN = "price_per_gb"
COLUMNS = ("from", "to", *BYTES_PER_S, PERIOD, PRICE_COLUMN, *RATE_COLUMNS, NEWEST)
# Known where links may have windows.
OPEN = "open"


@dataclass(frozen=True, eq=False)
class LinkTable:
    """Links as columns.

    Attributes
    ----------
    link_from, link_to : ndarray of int64, shape (n_links,)
        Indices of hosts.
    bandwidth_bytes_per_s : ndarray of float, shape (n_periods, n_links)
    price_per_gb : ndarray of float, shape (n_links,)
    row : ndarray of int64, shape (n_links,)
        Data row, from 0, of each link: the first, where there is one per period.
    source : TextTable
    rates : mapping of str to ndarray of float, shape (n_links,)
        How the rate grows with connections, by the columns' names; NaN where nothing is said.
    measured_s : float or None
        When the link was measured whose newest sample is the oldest, in seconds since 1970.
    windows : tuple of tuples of Window, length n_links
        When each link is open; empty: always.
    """

    link_from: IntArray
    link_to: IntArray
    bandwidth_bytes_per_s: FloatArray
    price_per_gb: FloatArray
    row: IntArray
    source: TextTable
    rates: Mapping[str, FloatArray]
    measured_s: float | None = None
    windows: tuple[tuple[Window, ...], ...] = ()

    def place(self, link: int) -> str:
        """Return file and line of a link."""
        return self.source.place(int(self.row[link]))


# By column: hosts' indices as int64, the others as float.
Columns: TypeAlias = dict[str, Any]


def read_link_table(
    path: str | PathLike[str],
    host_index: Mapping[str, int],
    n_periods: int | None = None,
    *,
    with_windows: bool = False,
) -> LinkTable:
    r"""Read the links of a CSV file.

    Parameters
    ----------
    path : path-like
        Text with a header, see the docs, File formats.
    host_index : mapping from str to int
        Index of each host of the problem.
    n_periods : int, optional
        Number of the forecast's periods, where there is one. Without a column ``period`` a link's
        bandwidth holds in all of them.
    with_windows : bool
        Whether there may be a column ``open``.

    Raises
    ------
    ProblemError
        The message names file, line, rule, value and remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "grid.csv")
    ...     _ = path.write_text("from,to,bandwidth_mbit_per_s\nS,D,2.5\n")
    ...     read_link_table(path, {"S": 0, "D": 1}).bandwidth_bytes_per_s.tolist()
    [[312500.0]]
    """
    name = document_name(path)
    source = _open(read_text(path), name, (*COLUMNS, OPEN) if with_windows else COLUMNS)
    if "period" in source.header and n_periods is None:
        raise ProblemError(
            f"{name}, line 1: column period needs periods_s in the problem file, the starts of the "
            "periods; add it, or remove the column"
        )
    _reject_rates_of_periods(source)
    is_large = len(source.text) >= LARGE_BYTES and source.is_plain and OPEN not in source.header
    columns = _read_large(source, host_index) if is_large else None
    if columns is None:
        columns = _read_rows(source, host_index)
    if "period" in columns:
        return _with_periods(source, columns, n_periods or 1)
    n_links = len(columns["from"])
    return LinkTable(
        columns["from"],
        columns["to"],
        np.tile(columns["bandwidth"], (n_periods or 1, 1)),
        columns.get("price_per_gb", np.zeros(n_links)),
        np.arange(n_links),
        source,
        {key: columns.get(key, np.full(n_links, np.nan)) for key in RATE_COLUMNS},
        _measured_s(source, columns, np.arange(n_links)),
        tuple(columns.get(OPEN, [()] * n_links)),
    )


def oldest_s(newest_s: FloatArray) -> float | None:
    """Return the least of the instants that are known; None where none is.

    >>> oldest_s(np.array([1.7e9, np.nan])), oldest_s(np.zeros(0))
    (1700000000.0, None)
    """
    known = newest_s[~np.isnan(newest_s)]
    return float(known.min()) if len(known) else None


def _measured_s(source: TextTable, columns: Columns, row_of: IntArray) -> float | None:
    """Return when the oldest bandwidth was measured; refuse what no date can be."""
    newest_s = columns.get(NEWEST, np.zeros(0))
    late = newest_s > LAST_SINCE_1970_S
    if late.any():
        row = int(np.argmax(late))
        raise ProblemError(
            f"{source.place(int(row_of[row]))}: {NEWEST} must be seconds since 1970, got "
            f"{newest_s[row]:.15g}; divide milliseconds by 1000, or leave the column out"
        )
    return oldest_s(newest_s)


def _open(text: str, name: str, known: tuple[str, ...]) -> TextTable:
    """Check the header."""
    source = open_table(text, name, "from,to,bandwidth_mbit_per_s")
    where = f"{name}, line {1 + source.skipped_lines}"
    header = source.header
    for column in header:
        if column not in known:
            hint = nearest_hint(column[:SHOWN_LENGTH], known)
            if len(header) == 1:
                hint = "; separate the columns by commas"
            raise ProblemError(
                f"{where}: unknown column {shown(column)}"
                + (hint or f"; known columns are {', '.join(known)}")
            )
    for column in ("from", "to"):
        if column not in header:
            raise ProblemError(f"{where}: column {column} is missing; add it")
    given = [column for column in BYTES_PER_S if column in header]
    if len(given) != 1:
        raise ProblemError(
            f"{where}: must have exactly one of the columns {', '.join(BYTES_PER_S)}, got "
            + (f"{' and '.join(given)}; keep one" if given else "none; add one")
        )
    return source


def _bandwidth_column(source: TextTable) -> str:
    """Return the one column with bandwidths."""
    return next(column for column in BYTES_PER_S if column in source.header)


def _read_large(source: TextTable, host_index: Mapping[str, int]) -> Columns | None:
    """Read with Arrow; None where anything is unusual."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    kinds = {name: pa.string() if name in ("from", "to") else pa.float64() for name in COLUMNS}
    try:
        table = arrow_csv.read_csv(
            io.BytesIO(source.text.encode()),
            parse_options=arrow_csv.ParseOptions(
                delimiter=source.separator, newlines_in_values='"' in source.text
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=kinds, null_values=[], strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    columns: Columns = {}
    for end in ("from", "to"):
        texts = table[end].combine_chunks().dictionary_encode()
        index = [host_index.get(name, -1) for name in texts.dictionary.to_pylist()]
        columns[end] = np.array(index, dtype=np.int64)[texts.indices.to_numpy()]
    bandwidth = _bandwidth_column(source)
    with np.errstate(over="ignore"):  # what becomes infinite is unusual, see below
        columns["bandwidth"] = (table[bandwidth].to_numpy() + 0.0) * BYTES_PER_S[bandwidth]
    for name in ("period", "price_per_gb", *RATE_COLUMNS, NEWEST):
        if name in source.header:
            columns[name] = table[name].to_numpy() + 0.0  # -0.0 becomes 0.0
    numbers = [column for name, column in columns.items() if name not in ("from", "to")]
    usual = all((column >= 0).all() and (column < np.inf).all() for column in numbers)
    known = (columns["from"] >= 0).all() and (columns["to"] >= 0).all()
    if not (usual and known and (columns["from"] != columns["to"]).all()):
        return None
    return columns


def _read_rows(source: TextTable, host_index: Mapping[str, int]) -> Columns:
    """Read row by row."""
    values: dict[str, list[Any]] = {name: [] for name in source.header}
    for line, row in source.rows():
        where = f"{source.name}, line {line}"
        for name, text in zip(source.header, row, strict=True):
            if name in ("from", "to"):
                value: Any = _host(text, name, where, host_index)
            elif name == OPEN:
                value = windows_of(text, f"{where}: {name}") if text else ()
            elif name == PRICE_COLUMN:
                value = _price(text, where)
            elif name in (*RATE_COLUMNS, NEWEST, PERIOD) and not text:
                value = math.nan
            else:
                value = _number(text, name, where)
            values[name].append(value)
        if values["from"][-1] == values["to"][-1]:
            raise ProblemError(
                f"{where}: a link must join two different hosts, got "
                f"{shown(row[source.header.index('from')])} twice; remove the line"
            )
    values["bandwidth"] = values.pop(_bandwidth_column(source))
    windows = values.pop(OPEN, None)
    columns: Columns = {
        name: np.array(column, dtype=np.int64 if name in ("from", "to") else float)
        for name, column in values.items()
    }
    if windows is not None:
        columns[OPEN] = np.empty(len(windows), dtype=object)
        columns[OPEN][:] = windows
    return columns


def _host(text: str, name: str, where: str, host_index: Mapping[str, int]) -> int:
    if text in host_index:
        return host_index[text]
    if address := address_of(text):
        same = (i for host, i in host_index.items() if address_of(host) == address)
        if (found := next(same, None)) is not None:
            return found
    if not text:
        raise ProblemError(f"{where}: {name} must be a host's name, got nothing; fill it in")
    hint = nearest_hint(text[:SHOWN_LENGTH], host_index)
    raise ProblemError(
        f"{where}: {name} must be a host of the problem, got {shown(text)}"
        + (hint or f"; add [{join('hosts', text)}] to the problem file, or remove the line")
    )


def _price(text: str, where: str) -> float:
    """Read a price per 10^9 bytes: a number, or with the amount that it is for."""
    if not text:
        return 0.0
    if math.isnan(plain_number(text)) and re.search("[A-Za-z]", text):
        try:
            return _number(str(float(quantity(text, PRICE))), PRICE_COLUMN, where)
        except QuantityError as error:
            raise ProblemError(f"{where}: {PRICE_COLUMN}: {shown(text)}: {error}") from None
    return _number(text, PRICE_COLUMN, where)


def _number(text: str, name: str, where: str) -> float:
    value = plain_number(text)
    if name in BYTES_PER_S:
        value *= BYTES_PER_S[name]
    if not 0 <= value < math.inf:
        remedy = number_hint(text) or (
            "; use 0 for no capacity, or remove the line" if name in BYTES_PER_S else "; correct it"
        )
        raise ProblemError(
            f"{where}: {name} must be a finite number >= 0, got {shown(text)}{remedy}"
        )
    return value + 0.0  # -0.0 becomes 0.0


# Forecasts ----------------------------------------------------------------------------------


def _reject_rates_of_periods(source: TextTable) -> None:
    given = [column for column in RATE_COLUMNS if column in source.header]
    if given and "period" in source.header:
        raise ProblemError(
            f"{source.name}, line 1: column {given[0]} needs bandwidths that do not change; remove "
            "it, or the column period"
        )


def _with_periods(source: TextTable, columns: Columns, n_periods: int) -> LinkTable:
    """Bring rows, one per link and period, into one column per link."""
    columns, row_of = _in_all_periods(columns, n_periods)
    _reject_bad_periods(source, columns["period"], row_of, n_periods)
    period = columns["period"].astype(np.int64)
    tail, head = columns["from"], columns["to"]
    key = tail * (int(max(tail.max(initial=0), head.max(initial=0))) + 1) + head
    order = np.lexsort((np.arange(len(key)), period, key))
    _reject_twice(source, order, key, period, row_of)
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    counts = np.diff(first, append=len(key))
    if (counts != n_periods).any():
        short = int(np.argmax(counts != n_periods))
        rows = order[first[short] : first[short] + counts[short]]
        missing = next(i for i in range(n_periods) if i not in period[rows])
        raise ProblemError(
            f"{source.place(int(row_of[rows].min()))}: the link lacks a row for period {missing}; "
            f"periods 0 to {n_periods - 1} need one each, with bandwidth 0 for no capacity, or "
            "one row for all with an empty period"
        )
    price = columns.get("price_per_gb", np.zeros(len(key)))
    changed = np.flatnonzero(price[order] != np.repeat(price[order[first]], n_periods))
    if len(changed):
        row = int(order[changed[0]])
        raise ProblemError(
            f"{source.place(int(row_of[row]))}: price_per_gb must be the same in all periods of a "
            f"link, got {price[row]:g} in period {period[row]}"
        )
    row_of_link = order[first]
    return LinkTable(
        tail[row_of_link],
        head[row_of_link],
        np.ascontiguousarray(columns["bandwidth"][order].reshape(-1, n_periods).T),
        price[row_of_link],
        row_of[row_of_link],
        source,
        {key: np.full(len(row_of_link), np.nan) for key in RATE_COLUMNS},
        _measured_s(source, columns, row_of),
        _windows_of_links(source, columns, order, row_of, n_periods),
    )


def _in_all_periods(columns: Columns, n_periods: int) -> tuple[Columns, IntArray]:
    """Repeat rows without a period in each; return the columns, and the data row of each."""
    everywhere = np.isnan(columns["period"])
    times = np.where(everywhere, n_periods, 1)
    row_of = np.repeat(np.arange(len(times)), times)
    repeated = {name: column[row_of] for name, column in columns.items()}
    number = np.arange(len(row_of)) - np.repeat(np.cumsum(times) - times, times)
    repeated["period"] = np.where(everywhere[row_of], number, repeated["period"])
    return repeated, row_of


def _windows_of_links(
    source: TextTable, columns: Columns, order: IntArray, row_of: IntArray, n_periods: int
) -> tuple[tuple[Window, ...], ...]:
    if OPEN not in columns:
        return ((),) * (len(order) // n_periods)
    windows = columns[OPEN][order].reshape(-1, n_periods)
    for link, given in enumerate(windows):
        if len(set(given)) > 1:
            row = int(row_of[order[link * n_periods : (link + 1) * n_periods]].max())
            raise ProblemError(
                f"{source.place(row)}: open must be the same in all periods of a link; correct it"
            )
    return tuple(windows[:, 0])


def _reject_bad_periods(
    source: TextTable, period: FloatArray, row_of: IntArray, n_periods: int
) -> None:
    bad = (period >= n_periods) | (period != np.floor(period))
    if bad.any():
        row = int(np.argmax(bad))
        raise ProblemError(
            f"{source.place(int(row_of[row]))}: period must be a whole number from 0 to "
            f"{n_periods - 1}, got {period[row]:g}; periods_s lists the starts of {n_periods} "
            "periods"
        )


def _reject_twice(
    source: TextTable, order: IntArray, key: IntArray, period: IntArray, row_of: IntArray
) -> None:
    twice = (np.diff(key[order]) == 0) & (np.diff(period[order]) == 0)
    if twice.any():
        i = int(np.argmax(twice))
        one, two = order[i], order[i + 1]
        raise ProblemError(
            f"{source.place(int(row_of[two]))}: the link is given twice for period {period[two]}, "
            f"also in {source.place(int(row_of[one]))}; keep one"
        )
