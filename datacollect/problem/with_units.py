"""Numbers that may be texts with units, alone or among others, as Python's callers give them.

A text is read by the kind of value (`datacollect.files.kinds`) that files read it by: what is
wrong with it is reported in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from datacollect.files import quantities
from datacollect.files.kinds import Number, Whole

if TYPE_CHECKING:
    from datacollect.files.fields import Table

# Of several tables of fields, and of arguments.
DURATION = Number(quantities.SECONDS, positive=True)
INSTANT = Number(quantities.SECONDS)
RANGE = Whole(quantities.BYTES)
BANDWIDTH = Number(quantities.BYTES_PER_S, remedy="use 0 for no capacity")
CAPACITY = Number(
    quantities.BYTES_PER_S, positive=True, remedy="leave it out where it is not known"
)


@overload
def in_units(value: None, kind: Number, place: str) -> None: ...
@overload
def in_units(value: float | str, kind: Number, place: str) -> float: ...
@overload
def in_units(value: int | str, kind: Whole, place: str) -> int: ...
@overload
def in_units(value: Any, kind: Number | Whole, place: str) -> Any: ...
def in_units(value: Any, kind: Number | Whole, place: str) -> Any:
    """Return a value with its texts as numbers, in what `kind` counts; all else as it is.

    Parameters
    ----------
    value : number, text, or lists, arrays, or mappings from hosts' names of these
    kind : Number or Whole
        What files read such a text as; it says what is counted, and what is allowed.
    place : str
        What the value is called in messages.

    Raises
    ------
    ProblemError
        A text is no number with a unit of that kind.

    Examples
    --------
    >>> in_units("6 TB", Whole("bytes"), "backlog_bytes")
    6000000000000
    >>> in_units([[0, "10 Mbit/s"], [5.0, 0]], Number("bytes per second"), "bandwidth_bytes_per_s")
    [[0, 1250000.0], [5.0, 0]]
    """
    if isinstance(value, str):
        return kind.read(value, place)
    if isinstance(value, list | tuple):
        return [in_units(item, kind, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {key: in_units(item, kind, f"host {key!r}: {place}") for key, item in value.items()}
    # Arrays of numbers hold no text: they may have millions.
    if getattr(getattr(value, "dtype", None), "kind", "f") in "OUT":
        return in_units(value.tolist(), kind, place)
    return value


def counted_fields(*tables: Table) -> dict[str, Number | Whole]:
    """Return what each key of tables of fields counts, where a text may say its unit.

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
            if isinstance(kind, Number | Whole) and kind.of in quantities.UNITS:
                found[field.name] = kind
    return found


def values_in_units(
    values: Mapping[str, Any], kinds: Mapping[str, Number | Whole]
) -> dict[str, Any]:
    """Return values by name, those that count something with their texts as numbers.

    Examples
    --------
    >>> values_in_units({"at_s": "1 h", "method": "direct"}, {"at_s": INSTANT})
    {'at_s': 3600.0, 'method': 'direct'}
    """
    return {
        name: in_units(value, kinds[name], name) if name in kinds else value
        for name, value in values.items()
    }
