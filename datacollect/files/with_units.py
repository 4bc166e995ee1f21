"""Conversion of numbers from Python callers, with units and labels or without.

Every argument that takes numbers goes through `in_units`: one rule for labels, for durations and
dates, for what is no number, in the same words everywhere. A text is read by the kind of value
(`datacollect.files.kinds`) that files read it by: what is wrong with it is reported in the same
words, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files import quantities
from datacollect.files.kinds import Number, Whole, shown
from datacollect.files.one_number import ONE_S, SINCE_1970, Kind, one_number, seconds_of
from datacollect.numbers.containers import (
    PLAIN,
    ArrayAxis,
    depth_of,
    is_frame,
    is_series,
    opened,
    order_of,
    values_of,
)

if TYPE_CHECKING:
    from datacollect.files.clock import Clock
    from datacollect.files.fields import Table

_Where: TypeAlias = Callable[[int], str]

# Of several tables of fields, and of arguments.
DURATION = Number(quantities.SECONDS, positive=True)
INSTANT = Number(quantities.SECONDS)
RANGE = Whole(quantities.BYTES)
BANDWIDTH = Number(quantities.BYTES_PER_S, remedy="use 0 for no capacity")
CAPACITY = Number(
    quantities.BYTES_PER_S, positive=True, remedy="leave it out where it is not known"
)
# Numbers without a unit: their own rules say how large they may be.
PART = Number(signed=True)
COUNT = Whole(minimum=-(2**63), stop=None)


@overload
def in_units(
    value: None,
    kind: Kind,
    place: str,
    axes: Sequence[ArrayAxis | None] = (),
    clock: Clock | None = ...,
) -> None: ...
@overload
def in_units(
    value: float | str,
    kind: Number,
    place: str,
    axes: Sequence[ArrayAxis | None] = (),
    clock: Clock | None = ...,
) -> float: ...
@overload
def in_units(
    value: int | str,
    kind: Whole,
    place: str,
    axes: Sequence[ArrayAxis | None] = (),
    clock: Clock | None = ...,
) -> int: ...
@overload
def in_units(
    value: Any,
    kind: Kind,
    place: str,
    axes: Sequence[ArrayAxis | None] = (),
    clock: Clock | None = ...,
) -> Any: ...
def in_units(
    value: Any,
    kind: Kind,
    place: str,
    axes: Sequence[ArrayAxis | None] = (),
    clock: Clock | None = None,
) -> Any:
    """Return what a caller gives as numbers, in what `kind` counts and in the order of `axes`.

    How large they may be, and which shapes fit, who asked for them looks at.

    Parameters
    ----------
    value : number, text, duration, date, or a container of these
        pandas', Arrow's, numpy's, scipy's or Python's; NaN and missing values stay NaN.
    kind : Number or Whole
        What files read such a text as; it says what is counted, and what is allowed.
    place : str
        What the value is called in messages.
    axes : sequence of ArrayAxis or None
        What the last dimensions count, in their order: labels are brought into it. Without any,
        mappings stay mappings.
    clock : Clock, optional
        The clock of the problem's start, where dates may be given.

    Raises
    ------
    ProblemError
        Labels are no names; something is no number, but a truth value, complex, masked, or a text,
        duration or date of which no number of that kind can be made.

    Examples
    --------
    >>> in_units("6 TB", Whole("bytes"), "backlog_bytes")
    6000000000000
    >>> in_units([[0, "10 Mbit/s"], [5.0, 0]], Number("bytes per second"), "bandwidth_bytes_per_s")
    [[0, 1250000.0], [5.0, 0]]
    >>> hosts = [ArrayAxis("host", lambda: ["S", "D"])]
    >>> in_units({"D": np.timedelta64(1, "m"), "S": "5 s"}, INSTANT, "release_s", hosts)
    [5.0, 60.0]
    """
    if type(value) is float or type(value) is int or value is None:
        return value
    value = opened(value, place)
    if isinstance(value, Mapping):
        return _of_mapping(value, kind, place, axes, clock)
    if is_series(value):
        return _of_series(value, kind, place, axes, clock)
    if is_frame(value):
        return _of_frame(value, kind, place, axes, clock)
    if isinstance(value, np.ndarray):
        return _of_array(value, kind, lambda i: f"{place}[{i}]", axes, clock)
    if isinstance(value, list | tuple):
        inner = axes[1:] if len(axes) >= depth_of(value) else axes
        return converted(value, kind, lambda i: f"{place}[{i}]", inner, clock)
    return one_number(value, kind, place, clock)


def converted(
    items: Sequence[Any],
    kind: Kind,
    where: _Where,
    axes: Sequence[ArrayAxis | None] = (),
    clock: Clock | None = None,
) -> list[Any]:
    """Return a list's items as numbers, one by one.

    Parameters
    ----------
    items : sequence
    kind, axes, clock
        As for `in_units`.
    where : callable
        Returns what an item is called in messages, by its number.

    Examples
    --------
    >>> converted([1, "1 kB"], RANGE, "row {}".format)
    [1, 1000]
    """
    kinds = set(map(type, items))
    if kinds <= PLAIN and str not in kinds:
        return list(items)
    return [in_units(item, kind, where(i), axes, clock) for i, item in enumerate(items)]


def in_whole(value: Any, place: str, least: int | None = None) -> Any:
    """Return a count, or counts, that a caller gives; refuse parts of one.

    `least`: of a single count, the smallest that may be.

    Raises
    ------
    ProblemError
        As for `in_units`; or it is no whole number.

    Examples
    --------
    >>> in_whole(np.float64(3.0), "at_a_time"), in_whole([1, 2], "route")
    (3, array([1, 2]))
    """
    found = in_units(value, COUNT if least is None else Whole(minimum=least, stop=None), place)
    if type(found) is int or found is None:
        if least is not None and found is not None and found < least:
            raise ProblemError(f"{place} must be a whole number >= {least}, got {found}")
        return found
    array = np.asarray(found)
    if array.dtype.kind in "iu" and (array.ndim or least is None):
        return array
    if not _are_whole(array):
        what = "whole" if least is None else f"a whole number >= {least}"
        raise ProblemError(f"{place} must be {what}, got {shown(array.tolist())}; round it")
    return array.astype(np.int64) if array.ndim else in_whole(int(array), place, least)


def _are_whole(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array of numbers, or of objects, holds whole ones of 64 bits."""
    try:
        whole = array.astype(float)
    except (TypeError, ValueError):
        return False
    return bool((whole == np.floor(whole)).all() and (np.abs(whole) < 2**63).all())


def column_in_units(values: Any, kind: Kind, where: _Where, clock: Clock | None = None) -> Any:
    """Return a table's column as numbers: its labels are those of rows, and mean nothing else.

    Parameters
    ----------
    values : Series
    kind, clock
        As for `in_units`.
    where : callable
        Returns what a row is called in messages, by its number.
    """
    return _of_array(values_of(values), kind, where, (), clock)


def _of_mapping(
    value: Mapping[Any, Any],
    kind: Kind,
    place: str,
    axes: Sequence[ArrayAxis | None],
    clock: Clock | None,
) -> Any:
    if not axes:
        return {
            key: in_units(item, kind, f"host {key!r}: {place}", (), clock)
            for key, item in value.items()
        }
    own, inner = _split(axes, depth_of(value))
    names, items = list(value), list(value.values())
    order = order_of(names, own, place)
    rows = items if order is None else [items[i] for i in order]
    return converted(rows, kind, _where(place, own, order, flat=depth_of(value) == 1), inner, clock)


def _of_series(
    value: Any, kind: Kind, place: str, axes: Sequence[ArrayAxis | None], clock: Clock | None
) -> Any:
    own, inner = _split(axes, 1)
    order = order_of(value.index, own, place)
    array = values_of(value)
    array = array if order is None else array[order]
    return _of_array(array, kind, _where(place, own, order, flat=True), inner, clock)


def _of_frame(
    value: Any, kind: Kind, place: str, axes: Sequence[ArrayAxis | None], clock: Clock | None
) -> Any:
    if not value.columns.is_unique:
        twice = value.columns[value.columns.duplicated()][0]
        raise ProblemError(f"{place}: column {twice!r} given twice; keep one")
    rows, columns = (None, None, *axes)[-2:]
    down, across = order_of(value.index, rows, place), order_of(value.columns, columns, place)
    if rows is not None and rows is columns:
        _require_both(place, rows, down, across)
    names = range(value.shape[1]) if across is None else across
    label = _where(place, columns, across, flat=False)
    cells = [
        _of_array(values_of(value.iloc[:, column]), kind, _Below(label(i)), (), clock)
        for i, column in enumerate(names)
    ]
    matrix = np.array(cells) if cells else np.zeros((0, len(value)))
    return matrix.T if down is None else matrix.T[down]


class _Below:
    """Says where a row of a column is."""

    def __init__(self, column: str) -> None:
        self._column = column

    def __call__(self, row: int) -> str:
        return f"{self._column}, row {row}"


def _require_both(
    place: str, axis: ArrayAxis, down: list[int] | None, across: list[int] | None
) -> None:
    """Refuse a matrix whose labels reorder one side only: the other may have been meant alike."""
    in_order = list(range(len(axis.names)))
    for labelled, other in ((down, across), (across, down)):
        if other is None and labelled is not None and labelled != in_order:
            side, unlabelled = ("index", "columns") if labelled is down else ("columns", "index")
            raise ProblemError(
                f"{place}: the {axis.what}s' names in {side} have another order than the "
                f"problem's, so {unlabelled} must have names, too; label both"
            )


def _split(
    axes: Sequence[ArrayAxis | None], depth: int
) -> tuple[ArrayAxis | None, Sequence[ArrayAxis | None]]:
    """Return the axis of the first of so many dimensions, and those of the dimensions below."""
    if depth > len(axes):
        return None, axes
    first = len(axes) - depth
    return axes[first], axes[first + 1 :]


def _where(place: str, axis: ArrayAxis | None, order: list[int] | None, *, flat: bool) -> _Where:
    """Return what says where an item is: by its name, where there are names."""
    if axis is None or order is None:
        return lambda i: f"{place}[{i}]"
    if flat:
        return lambda i: f"{axis.what} {axis.names[i]!r}: {place}"
    return lambda i: f"{place}[{axis.names[i]!r}]"


def _of_array(
    array: np.ndarray[Any, Any],
    kind: Kind,
    where: _Where,
    axes: Sequence[ArrayAxis | None],
    clock: Clock | None,
) -> Any:
    """Return an array of numbers; there may be millions, and most are numbers already."""
    if array.dtype.kind in "iuf" and array.dtype.itemsize <= 8:
        return array
    if array.dtype.kind == "m" and kind.of == quantities.SECONDS:
        seconds = seconds_of(array)
        if seconds is not None:
            return seconds
    if array.dtype.kind == "M" and clock is SINCE_1970:
        return (array.astype("M8[ns]") - np.datetime64(0, "ns")) / ONE_S
    items = [array[i] for i in range(len(array))] if array.dtype.kind in "mM" else array.tolist()
    # Without any item nothing says what they would be.
    return converted(items, kind, where, axes, clock) if items else np.zeros(array.shape)


# Tables of fields ---------------------------------------------------------------------------


def counted_fields(*tables: Table) -> dict[str, Kind]:
    """Return what each key of tables of fields counts; where it is no unit's, just numbers.

    Examples
    --------
    >>> from datacollect.problem.fields import HELD
    >>> counted_fields(HELD)["offset_bytes"].of
    'bytes'
    """
    found = {}
    for table in tables:
        for field in table.fields:
            kind = getattr(field.kind, "number", field.kind)
            if isinstance(kind, Number | Whole):
                found[field.name] = kind
    return found


def values_in_units(
    values: Mapping[str, Any],
    kinds: Mapping[str, Kind],
    axes: Mapping[str, Sequence[ArrayAxis | None]] | None = None,
    clock: Clock | None = None,
) -> dict[str, Any]:
    """Return values by name, those that count something as numbers.

    Parameters
    ----------
    values : mapping of str to object
    kinds : mapping of str to Number or Whole
    axes : mapping of str to sequence of ArrayAxis, optional
        What the dimensions of each value count, for labels.
    clock : Clock, optional
        As for `in_units`.

    Examples
    --------
    >>> values_in_units({"at_s": "1 h", "method": "direct"}, {"at_s": INSTANT})
    {'at_s': 3600.0, 'method': 'direct'}
    """
    return {
        name: in_units(value, kinds[name], name, (axes or {}).get(name, ()), clock)
        if name in kinds
        else value
        for name, value in values.items()
    }
