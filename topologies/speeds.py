"""Speeds of edges as maps state them: used where they can be read in one way only.

The Internet Topology Zoo has ``LinkSpeedRaw`` in bit/s, ``LinkSpeed`` in ``LinkSpeedUnits`` (``G``:
Gbit/s), and what the map that was drawn off says, as ``LinkLabel``. Bounds (``<45Mb``), ranges
(``1-10Gbps``) and names of circuits (``OC-192``: its rate on the line, less what framing takes) are
no speeds: they are named, not used.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.quantities import BYTES_PER_S, QuantityError, plain_number, quantity
from datacollect.files.units import bytes_per_s_from_bit_per_s, format_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

RAW, SPEED, UNITS = "LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits"
LABELS = ("LinkLabel", "label", "LinkType")

# Prefixes alone, as the Zoo has them, are of bit/s.
_BITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SPEEDLIKE = re.compile(
    r"\d\s*[kKMGT]?([bB]|[GMT]\b)|\b(OC|STM)-?\d|\b[DTE]-?[0-4]\b|Ethernet|GE\b"
)

# What rounding of a speed written twice explains.
_SAME = 1e-3


@dataclass(frozen=True)
class Speed:
    """Knowledge of an edge's speed.

    Attributes
    ----------
    bytes_per_s : float or None
        None: the file states none that is understood.
    not_understood : str
        What it states instead, such as ``LinkLabel '<45Mb'``; ``""``: nothing.
    """

    bytes_per_s: float | None
    not_understood: str = ""


def speed_of(data: Mapping[str, Any], where: str) -> Speed:
    """Return the speed that the attributes of an edge state.

    Parameters
    ----------
    data : mapping
    where : str
        File and edge, for messages.

    Raises
    ------
    ProblemError
        A speed is no number > 0, or two of them differ.

    Examples
    --------
    >>> speed_of({"LinkSpeed": "34", "LinkSpeedUnits": "M"}, "a.graphml")
    Speed(bytes_per_s=4250000.0, not_understood='')
    >>> speed_of({"LinkLabel": "1-10Gbps"}, "a.graphml")
    Speed(bytes_per_s=None, not_understood="LinkLabel '1-10Gbps'")
    """
    raw = _raw(data.get(RAW), where)
    stated, unread = _stated(data, where)
    if raw is not None and stated is not None and not math.isclose(raw, stated, rel_tol=_SAME):
        raise ProblemError(
            f"{where}: {RAW} says {format_rate(raw)}, but {SPEED} and {UNITS} say "
            f"{format_rate(stated)}; correct one, or remove it"
        )
    found = stated if raw is None else raw
    if found is not None:
        return Speed(found)
    for key in LABELS:
        text = str(data.get(key) or "").strip()
        if not text:
            continue
        try:
            return Speed(_with_unit(text))
        except QuantityError:
            if not unread and _SPEEDLIKE.search(text):
                unread = f"{key} {text!r}"
    return Speed(None, unread)


def _raw(said: Any, where: str) -> float | None:
    if said is None or said == "":
        return None
    number = _number(said)
    if not 0 < number < math.inf:
        raise ProblemError(
            f"{where}: {RAW} must be bit/s, > 0 and finite, got {said!r}; correct it, or remove it "
            "for the default rate"
        )
    return bytes_per_s_from_bit_per_s(number)


def _stated(data: Mapping[str, Any], where: str) -> tuple[float | None, str]:
    """Return the speed in its units; and what is said that cannot be read so."""
    said = data.get(SPEED)
    units = str(data.get(UNITS) or "").strip()
    if said is None or str(said).strip() == "":
        return None, ""
    text = str(said).strip()
    whole = f"{SPEED} {text!r}" + (f" {UNITS} {units!r}" if units else "")
    number = _number(text)
    if math.isnan(number):
        # The unit may stand with the number, and then not beside it, too.
        try:
            return (None, whole) if units else (_with_unit(text), "")
        except QuantityError:
            return None, whole
    if not 0 < number < math.inf:
        raise ProblemError(
            f"{where}: {SPEED} must be > 0 and finite, got {said!r}; correct it, or remove it for "
            "the default rate"
        )
    if not units:
        return None, whole
    if units in _BITS:
        return bytes_per_s_from_bit_per_s(number * _BITS[units]), ""
    try:
        return _with_unit(f"{text} {units}"), ""
    except QuantityError:
        return None, whole


def _with_unit(text: str) -> float:
    if "_" in text:
        raise QuantityError("maps do not group digits as TOML does")
    try:
        return float(quantity(text, BYTES_PER_S))
    except OverflowError:
        raise QuantityError("beyond all floats") from None


def _number(said: Any) -> float:
    # A list or a table of GML is no number, and its text is none.
    return plain_number(str(said))
