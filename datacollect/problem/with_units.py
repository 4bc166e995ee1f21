"""Numbers that may be texts with units, alone or among others, as Python's callers give them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import wrong
from datacollect.files.quantities import BYTES, BYTES_PER_S, PRICE, SECONDS, QuantityError, quantity

# What the numbers of hosts and links count.
UNITS_OF = {
    "backlog_bytes": BYTES,
    "release_s": SECONDS,
    "storage_bytes": BYTES,
    "uplink_bytes_per_s": BYTES_PER_S,
    "downlink_bytes_per_s": BYTES_PER_S,
    "bandwidth_bytes_per_s": BYTES_PER_S,
    "price_per_gb": PRICE,
    "per_connection_bytes_per_s": BYTES_PER_S,
    "capacity_bytes_per_s": BYTES_PER_S,
}


def in_units(value: Any, of: str, place: str) -> Any:
    """Return a value with its texts as numbers, in what `of` counts; all else as it is.

    Parameters
    ----------
    value : number, text, or lists, arrays, or mappings from hosts' names of these
    of : str
        Of `datacollect.files.quantities`: ``BYTES``, ``SECONDS``, ``BYTES_PER_S`` or ``PRICE``.
    place : str
        What the value is called in messages.

    Raises
    ------
    ProblemError
        A text is no number with a unit of that kind.

    Examples
    --------
    >>> from datacollect.files.quantities import BYTES, BYTES_PER_S
    >>> in_units("6 TB", BYTES, "backlog_bytes")
    6000000000000
    >>> in_units([[0, "10 Mbit/s"], [5.0, 0]], BYTES_PER_S, "bandwidth_bytes_per_s")
    [[0, 1250000], [5.0, 0]]
    """
    if isinstance(value, str):
        return _number(value, of, place)
    if isinstance(value, list | tuple):
        return [in_units(item, of, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {key: in_units(item, of, f"host {key!r}: {place}") for key, item in value.items()}
    # Arrays of numbers hold no text: they may have millions.
    if getattr(getattr(value, "dtype", None), "kind", "f") in "OUT":
        return in_units(value.tolist(), of, place)
    return value


def _number(text: str, of: str, place: str) -> int | float:
    try:
        found = quantity(text, of)
    except QuantityError as error:
        raise wrong(place, f"must be a number of {of}", text, str(error)) from None
    if not isinstance(found, Fraction):
        return found
    try:
        return float(found)
    except OverflowError:
        raise ProblemError(f"{place} must be a finite number of {of}, got {text!r}") from None
