"""Samples from tables: our own, those of other programs, and any whose columns the user names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.host_names import fault_of
from datacollect.files.kinds import shown
from datacollect.files.tables import number_hint, open_table
from datacollect.files.units import BYTES_PER_S, FASTEST_BYTES_PER_S, counted
from datacollect.measurement.instants import seconds_since_1970, since_1970
from datacollect.measurement.outcomes import FailedTestError, listed
from datacollect.measurement.sample_rules import LAST_DATE_S, SECONDS_REMEDY, SECONDS_RULE
from datacollect.measurement.table_kinds import kind_of, said_twice

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.measurement.readers import TableKind
    from datacollect.numbers.arrays import BoolArray, FloatArray

OPTIONAL_COLUMNS = ("bytes", "duration_s", "streams", "concurrency")
KNOWN_COLUMNS = ("from", "to", "time_s", "time", *BYTES_PER_S, *OPTIONAL_COLUMNS, "kind")

# What is counted: a test has a connection, and none, or some, run beside it.
_LEAST_COUNT = {"streams": 1, "concurrency": 0}

EXAMPLE = "from,to,time_s,bandwidth_mbit_per_s"

# How programs write that a test gave no value.
NO_VALUE = ("", "none", "null", "nan", "na", "n/a")


@dataclass(frozen=True)
class TableOptions:
    """Options for reading tables, see `datacollect.measurement.samples.read_samples`."""

    columns: Mapping[str, str] | None = None
    only: Mapping[str, str] | None = None
    times: bool = True


@dataclass(frozen=True)
class ReadTable:
    """The samples of a table.

    Attributes
    ----------
    frame : DataFrame
    failures : tuple of str
        Rows of tests that measured nothing.
    notes : tuple of str
        Rows that are no samples.
    is_timeless : bool
        Whether the table has no times.
    """

    frame: pd.DataFrame
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    is_timeless: bool


def is_sample_table(text: str, name: str, options: TableOptions) -> bool:
    """Return whether a text begins as a table of samples does."""
    try:
        table = open_table(text, name, EXAMPLE)
        kind = kind_of(table.header, options.columns, KNOWN_COLUMNS, name)
    except ProblemError:
        return False
    return kind is not None or {"from", "to"} <= set(table.header)


def read_table(text: str, name: str, options: TableOptions) -> ReadTable:
    """Read the samples of a table.

    Raises
    ------
    ProblemError
        The table breaks a rule; the message names file, line, rule, value and remedy.
    """
    table = open_table(text, name, EXAMPLE)
    kind = kind_of(table.header, options.columns, KNOWN_COLUMNS, name)
    column_of = {column: column for column in table.header}
    if kind is not None:
        column_of = {here: there for there, here in kind.columns.items() if there in table.header}
    is_timeless = not options.times or (kind is not None and kind.timeless)
    for column in options.only or {}:
        # It may only choose rows: then it is no column of samples.
        if column not in KNOWN_COLUMNS and column_of.get(column) == column:
            del column_of[column]
    _check_header(list(column_of), f"{name}, line {1 + table.skipped_lines}", is_timeless)
    lines, raw = table.texts()
    if not len(lines):
        raise FailedTestError(f"{name}: has a header and no rows: nothing was measured")
    notes: list[str] = []
    raw, lines = _asked_for(raw, lines, options.only or {}, name)
    if kind is not None and kind.program:
        raw, lines = _only_tests(raw, lines, kind, name, notes)
        # A host to itself: measured, but no link.
        others = (raw[column_of["from"]] != raw[column_of["to"]]).to_numpy(dtype=bool)
        raw, lines = raw[others], lines[others]
        _require_alike(raw, kind, column_of, name)
        _require_equal(raw, lines, said_twice(table.header, kind), name, notes)
    succeeded = np.ones(len(lines), dtype=bool)
    if kind is not None and kind.success in table.header:
        succeeded = raw[kind.success].str.lower().to_numpy() != "false"
    frame, failures = _samples(_Rows(name, lines, raw, column_of, kind), succeeded, is_timeless)
    return ReadTable(frame, failures, tuple(notes), is_timeless)


def _samples(
    rows: _Rows, succeeded: BoolArray, is_timeless: bool
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the samples of rows, and why other rows have none."""
    import pandas as pd

    found: dict[str, Any] = {}
    for column in ("from", "to"):
        found[column] = rows.texts(column)
        rows.reject(found[column] == "", column, "be a host's name")
        rows.reject_names(column)
    rows.reject(found["from"] == found["to"], "to", "differ from from")
    if is_timeless:
        found["time_s"] = np.zeros(len(succeeded))
    elif rows.has("time"):
        found["time_s"] = rows.instants("time")
    else:
        found["time_s"] = rows.numbers("time_s", least=-np.inf)
        rows.reject(found["time_s"] > LAST_DATE_S, "time_s", f"be {SECONDS_RULE}", SECONDS_REMEDY)
    bandwidth = next(column for column in BYTES_PER_S if rows.has(column))
    measured = rows.numbers(bandwidth, may_lack=np.ones(len(succeeded), dtype=bool))
    with np.errstate(over="ignore"):  # refused in the next line
        found["bandwidth_bytes_per_s"] = measured * BYTES_PER_S[bandwidth]
    beyond = found["bandwidth_bytes_per_s"] > FASTEST_BYTES_PER_S
    rows.reject(beyond, bandwidth, f"be at most {FASTEST_BYTES_PER_S:g} bytes per second")
    failed = ~succeeded | ~(measured > 0)
    reasons = {bandwidth: failed}
    for column in OPTIONAL_COLUMNS:
        if rows.has(column):
            found[column] = rows.numbers(column, may_lack=failed)
            least = _LEAST_COUNT.get(column)
            if least is not None:
                count = found[column]
                bad = ~np.isnan(count) & ((count < least) | (count != np.floor(count)))
                rows.reject(bad, column, f"be a whole number >= {least}")
            if column in ("bytes", "duration_s"):
                reasons[column] = (found[column] == 0) & ~failed
                failed = failed | reasons[column]
    if rows.has("kind"):
        found["kind"] = rows.texts("kind")
    frame = pd.DataFrame(found)[~failed].reset_index(drop=True)
    return frame, rows.failures(reasons, succeeded)


def _asked_for(
    raw: pd.DataFrame, lines: Any, only: Mapping[str, str], name: str
) -> tuple[pd.DataFrame, Any]:
    """Return the rows that the user wants."""
    for column, value in only.items():
        if column not in raw.columns:
            raise ProblemError(
                f"{name}: has no column {column!r}, of which --only takes the rows with {value!r}"
                + nearest_hint(column, raw.columns)
            )
        chosen = (raw[column] == value).to_numpy(dtype=bool)
        if not chosen.any():
            raise ProblemError(
                f"{name}: no row has {value!r} in column {column}; there are "
                + listed(sorted(set(raw[column])))
            )
        raw, lines = raw[chosen], lines[chosen]
    return raw, lines


def _only_tests(
    raw: pd.DataFrame, lines: Any, kind: TableKind, name: str, notes: list[str]
) -> tuple[pd.DataFrame, Any]:
    """Return the rows that are tests of bandwidth; say which others there are."""
    kinds = [(column, (value,), "they measure no bandwidth") for column, value in kind.only.items()]
    summaries = [(column, of, "summaries of other rows") for column, of in kind.tests.items()]
    for column, values, what in (*kinds, *summaries):
        if column not in raw.columns:
            continue
        chosen = raw[column].isin(values).to_numpy(dtype=bool)
        # Summaries alone are the best that is there; whether they are alike is looked at later.
        if chosen.all() or (column in kind.tests and not chosen.any()):
            continue
        others = listed(sorted(set(raw[column][~chosen])))
        notes.append(
            f"{name}: left out, as {what}: {counted(int((~chosen).sum()), 'row')} with {column} "
            f"{others}"
        )
        raw, lines = raw[chosen], lines[chosen]
    return raw, lines


def _require_alike(
    raw: pd.DataFrame, kind: TableKind, column_of: Mapping[str, str], name: str
) -> None:
    """Refuse to make one link of measurements that are unlike."""
    pair = [column_of["from"], column_of["to"]]
    for column in kind.unlike:
        if column not in raw.columns or raw[column].nunique() < 2:
            continue
        several = raw.groupby(pair)[column].nunique()
        mixed = several[several > 1]
        if len(mixed):
            a, b = mixed.index[0]
            values = sorted(set(raw[column][(raw[pair[0]] == a) & (raw[pair[1]] == b)]))
            raise ProblemError(
                f"{name}: {a!r} -> {b!r} was measured with {column} {' and '.join(values)}, which "
                f"cannot be mixed; choose one with --only {column}={values[0]} (in Python: only)"
            )


def _require_equal(
    raw: pd.DataFrame, lines: Any, pairs: list[tuple[str, str]], name: str, notes: list[str]
) -> None:
    """Refuse columns that are to say the same, unless they do; note which was read."""
    for read, other in pairs:
        differ = np.flatnonzero((raw[read] != raw[other]).to_numpy(dtype=bool))
        if len(differ):
            row = int(differ[0])
            values = f"{shown(raw[read].iloc[row])} and {shown(raw[other].iloc[row])}"
            raise ProblemError(
                f"{name}, line {lines[row]}: columns {read} and {other} must say the same, got "
                f"{values}; remove the column that is wrong"
            )
        notes.append(f"{name}: columns {read} and {other} say the same; read is {read}")


def _check_header(header: list[str], line_1: str, is_timeless: bool) -> None:
    for column in header:
        if column not in KNOWN_COLUMNS:
            hint = nearest_hint(column[:40], KNOWN_COLUMNS)
            remedy = (
                f"say what it is with --column {column[:40]!r}=NAME (columns, in Python), choose "
                f"one of its values with --only {column[:40]!r}=VALUE, or remove it where samples "
                f"do not differ by it{hint}"
            )
            if len(header) == 1:
                remedy = f"begin with a line like {EXAMPLE}, its columns separated by commas"
            raise ProblemError(f"{line_1}: unknown column {column[:40]!r}; {remedy}")
    for column in ("from", "to"):
        if column not in header:
            raise ProblemError(f"{line_1}: column {column} is missing")
    for group in (("time_s", "time"), tuple(BYTES_PER_S)):
        given = [column for column in group if column in header]
        is_time = group[0] == "time_s"
        if len(given) == 1 or (is_time and is_timeless):
            continue
        remedy = "; keep one" if given else "; add one"
        if is_time and not given:
            remedy += (
                ", or count all samples as equally old, in the order of the lines, with --no-times "
                "(times=False in Python)"
            )
        raise ProblemError(
            f"{line_1}: must have exactly one of the columns {', '.join(group)}, got "
            + (" and ".join(given) or "none")
            + remedy
        )


class _Rows:
    """Rows of a table as texts, with what messages say of them."""

    def __init__(
        self,
        name: str,
        lines: Any,
        raw: pd.DataFrame,
        column_of: Mapping[str, str],
        kind: TableKind | None,
    ) -> None:
        self._name, self._lines, self._raw, self._column_of = name, lines, raw, column_of
        self._is_of_program = kind is not None and bool(kind.program)

    def has(self, column: str) -> bool:
        """Return whether the table has a column, named as here."""
        return column in self._column_of

    def texts(self, column: str) -> Any:
        """Return the texts of a column, named as here."""
        return self._raw[self._column_of[column]].to_numpy(dtype=object)

    def numbers(
        self, column: str, *, least: float = 0.0, may_lack: BoolArray | None = None
    ) -> FloatArray:
        """Return the numbers of a column; NaN where a row may lack one and says that it does."""
        import pandas as pd

        texts = self.texts(column)
        numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(float)
        empty = np.zeros(len(texts), dtype=bool)
        if may_lack is not None:
            for row in np.flatnonzero(may_lack & np.isnan(numbers)).tolist():
                empty[row] = texts[row].strip().lower() in NO_VALUE
        self.reject(~empty & ~np.isfinite(numbers), column, "be a finite number")
        self.reject(~empty & (numbers < least), column, "be >= 0")
        return np.asarray(numbers, dtype=np.float64)

    def instants(self, column: str) -> FloatArray:
        """Return the instants of a column, in seconds since 1970."""
        texts = self.texts(column)
        read = since_1970 if self._is_of_program else seconds_since_1970
        known = {text: read(text) for text in set(texts)}
        found = [known[text] for text in texts]
        rule = "be an ISO 8601 date and time like 2024-05-01T12:00:00Z"
        bad = np.array([one is None for one in found], dtype=bool)
        if bad.any() and texts[int(np.argmax(bad))].replace(".", "", 1).isdigit():
            rule += ", or seconds in a column called time_s"
        self.reject(bad, column, rule)
        return np.array(found, dtype=np.float64)

    def reject(self, bad: Any, column: str, rule: str, remedy: str = "") -> None:
        """Raise `ProblemError` that names the first bad row."""
        if not bad.any():
            return
        row = int(np.argmax(bad))
        value = self.texts(column)[row]
        hint = number_hint(value) or f"; {remedy or 'correct or remove the line'}"
        raise ProblemError(
            f"{self._place(row)}: {self._column_of[column]} must {rule}, got {shown(value)}{hint}"
        )

    def reject_names(self, column: str) -> None:
        """Raise `ProblemError` where a name of a host looks like another one."""
        texts = self.texts(column)
        faults = {name: fault for name in set(texts) if (fault := fault_of(name))}
        bad = next((row for row, name in enumerate(texts) if name in faults), None)
        if bad is not None:
            place = f"{self._place(bad)}: {self._column_of[column]} {shown(texts[bad])}"
            raise ProblemError(f"{place}, the name of a host, {faults[texts[bad]]}")

    def failures(self, reasons: Mapping[str, BoolArray], succeeded: BoolArray) -> tuple[str, ...]:
        """Say of each row of a test that measured nothing why, in the order of the lines."""
        said = []
        for column, failed in reasons.items():
            texts = self.texts(column)
            for row in np.flatnonzero(failed).tolist():
                theirs = self._column_of[column]
                what = f"{theirs} must be a finite number > 0, got {shown(texts[row])}"
                if not succeeded[row]:
                    what = "the table says that it did not succeed"
                said.append((self._lines[row], f"{self._place(row)}: {what}: nothing was measured"))
        return tuple(text for _, text in sorted(said))

    def _place(self, row: int) -> str:
        return f"{self._name}, line {self._lines[row]}"
