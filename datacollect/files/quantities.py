"""Numbers with units as people write them: from text such as ``"10 Gbit/s"`` to exact numbers.

Amounts of data become bytes, rates bytes per second, durations seconds. k, M, G, T, P and E are
powers of 1000, Ki, Mi, Gi, Ti, Pi and Ei powers of 1024; ``B`` is a byte and ``bit`` a bit. What
can be read in two ways is refused: ``b`` (bits or bytes), ``KB`` (1000 or 1024), ``m``.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TypeAlias

# What `Whole` and `Number` of `datacollect.files.kinds` count, where a text may say the unit.
BYTES = "bytes"
SECONDS = "seconds"
BYTES_PER_S = "bytes per second"
PRICE = "currency per 10^9 bytes"

# What public functions take: numbers in the unit that the argument's name says, or texts with one.
Bytes: TypeAlias = float | str
WholeBytes: TypeAlias = int | str
Seconds: TypeAlias = float | str
BytesPerS: TypeAlias = float | str
Price: TypeAlias = float | str

_POWERS = {
    **{prefix: 1000**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{
        f"{prefix}i": 1024**power
        for power, prefix in enumerate(("K", "M", "G", "T", "P", "E"), start=1)
    },
}
_DATA = {
    **{f"{prefix}B": Fraction(power) for prefix, power in _POWERS.items()},
    **{f"{prefix}bit": Fraction(power, 8) for prefix, power in _POWERS.items()},
    **dict.fromkeys(("byte", "bytes"), Fraction(1)),
    "bits": Fraction(1, 8),
}
_TIME = {
    "ns": Fraction(1, 10**9),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1, 10**6)),
    "ms": Fraction(1, 1000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), Fraction(1)),
    **dict.fromkeys(("min", "minute", "minutes"), Fraction(60)),
    **dict.fromkeys(("h", "hour", "hours"), Fraction(3600)),
    **dict.fromkeys(("d", "day", "days"), Fraction(86_400)),
    **dict.fromkeys(("week", "weeks"), Fraction(7 * 86_400)),
}
UNITS: dict[str, dict[str, Fraction]] = {
    BYTES: _DATA,
    SECONDS: _TIME,
    BYTES_PER_S: {
        **{f"{unit}/s": factor for unit, factor in _DATA.items()},
        # Bits in everybody's use; of bytes, GBps would differ from it by one letter's case.
        **{f"{prefix}bps": Fraction(1000**i, 8) for i, prefix in enumerate(("", *"kMGT"))},
    },
    PRICE: {f"/{unit}": 10**9 / factor for unit, factor in _DATA.items()},
}
EXAMPLES = {
    BYTES: '"6 TB"',
    SECONDS: '"1.5 h"',
    BYTES_PER_S: '"10 Gbit/s"',
    PRICE: '"20 per TB"',
}

# Digits may be grouped by _, as in TOML.
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?\d+)?"
_PART = re.compile(rf"\s*({_NUMBER})\s*([^\d\s][^\d]*?)\s*(?=[\d.+-]|$)", re.ASCII)
_BARE = re.compile(rf"\s*{_NUMBER}\s*", re.ASCII)

_COMMAS = re.compile(r"\s*([+-]?)(\d+(?:,\d+)+)(\.\d+)?(\s*[^\d,.\s][^\d,]*)", re.ASCII)

# Longer ones, or with larger exponents, are no quantities, and would take long to compute.
_LONGEST, _LARGEST_EXPONENT = 100, 400


class QuantityError(ValueError):
    """A text is no number with a unit of the kind wanted; it says why, and the remedy."""


# What begins so speaks of hours, or days of the week.
_BY_HOURS = re.compile(r"\s*(?:\d\d?:\d|(?:mo|tu|we|th|fr|sa|su)[a-z]*\b)", re.IGNORECASE)


def quantity(text: str, of: str) -> int | Fraction:
    """Return what a text says, exactly: in bytes, seconds, bytes per second or per 10^9 bytes.

    Parameters
    ----------
    text : str
        A number and a unit; durations may have several, such as ``"1 h 30 min"``.
    of : str
        `BYTES`, `SECONDS`, `BYTES_PER_S` or `PRICE`.

    Raises
    ------
    QuantityError
        The unit is missing, ambiguous, unknown or of another kind.

    Examples
    --------
    >>> quantity("6 TB", BYTES), quantity("1 KiB", BYTES), quantity("8 Gbit", BYTES)
    (6000000000000, 1024, 1000000000)
    >>> quantity("10 Gbit/s", BYTES_PER_S), quantity("1 h 30 min", SECONDS)
    (1250000000, 5400)
    >>> quantity("10 Gb/s", BYTES_PER_S)
    Traceback (most recent call last):
    datacollect.files.quantities.QuantityError: 'Gb/s' may be bits or bytes; write Gbit/s or GB/s
    """
    if of == BYTES_PER_S and _BY_HOURS.match(text):
        raise QuantityError(
            "rates by hours of the day are for uplinks and downlinks of hosts in problem and "
            "collection files and in dc.Host; write one rate, or in a problem file a list of one "
            "for each of its daily_periods"
        )
    if len(text) > _LONGEST:
        raise QuantityError(f"no quantity needs {len(text)} characters; write it shorter")
    if _BARE.fullmatch(text):
        raise QuantityError(f"leave out the quotes, or give the unit, such as {EXAMPLES[of]}")
    if re.search(r"\d,\d", text):
        raise QuantityError(_without_commas(text, of))
    total, position = Fraction(0), 0
    previous: Fraction | None = None
    while position < len(text):
        part = _PART.match(text, position)
        if not part or (previous is not None and of != SECONDS):
            raise QuantityError(_unreadable(of))
        factor = _factor(re.sub(r"\s+", " ", part[2]), of)
        if previous is not None and not factor < previous:
            raise QuantityError("units must get smaller, as in 1 h 30 min; reorder them")
        total += _number(part[1]) * factor
        position, previous = part.end(), factor
    if previous is None:
        raise QuantityError(_unreadable(of))
    return total.numerator if total.denominator == 1 else total


def plain_number(text: str) -> float:
    """Return the number that a text without a unit says; NaN where it says none.

    Digits are those of ASCII, in one piece: what Python reads besides, programs do not write.

    >>> plain_number(" 1e3 "), plain_number("1_000"), plain_number("\u0661")
    (1000.0, nan, nan)
    """
    if not text.isascii() or "_" in text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def pattern(of: str) -> str:
    """Return a regular expression (ECMA-262) of the texts for `quantity`, for JSON Schemas."""
    if of in (BYTES, SECONDS):
        units = "|".join(UNITS[of])
    else:
        data = "|".join(_DATA)
        per = rf"(?:{data})(?:\s*/\s*|\s+per\s+)(?:s|sec|second)|[kMGT]?bps"
        units = per if of == BYTES_PER_S else rf"(?:/\s*|per\s+)(?:{data})"
    one = rf"\s*{_NUMBER.replace('[+-]?', '[+]?', 1)}\s*(?:{units})\s*"
    return f"^(?:{one})+$" if of == SECONDS else f"^{one}$"


def _without_commas(text: str, of: str) -> str:
    """Say what to write in place of a number with commas, which may group digits or divide them."""
    found = _COMMAS.fullmatch(text)
    if not found:
        return f"write numbers without commas, such as {EXAMPLES[of]}"
    sign, digits, fraction, unit = (part or "" for part in found.groups())
    grouped = re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", digits)
    together, point = (f"{sign}{digits.replace(',', by)}{fraction}{unit}" for by in ("", "."))
    if digits.count(",") > 1 or fraction:
        return (
            f'write no commas: "{together}"'
            if grouped
            else f"write numbers without commas, such as {EXAMPLES[of]}"
        )
    if grouped:
        return f'a comma may group digits or be a decimal point: write "{together}" or "{point}"'
    return f'write a point, no comma: "{point}"'


def _number(text: str) -> Fraction:
    exponent = re.search(r"[eE]([+-]?\d+)$", text)
    if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
        raise QuantityError("no quantity needs such an exponent; write a smaller one")
    return Fraction(text.replace("_", ""))


def _factor(unit: str, of: str) -> Fraction:
    """Return how many of the unit used inside one of these is."""
    written = re.sub(r" ?(?:/| per ) ?|^per ", "/", unit)
    if of == BYTES_PER_S:
        written = re.sub(r"/(?:sec|second)$", "/s", written)
    factor = UNITS[of].get(written)
    if factor is None:
        raise QuantityError(_why_not(written, unit, of))
    return factor


def _why_not(unit: str, written: str, of: str) -> str:
    """Say what is wrong with a unit, and the remedy."""
    for other, units in UNITS.items():
        if other != of and unit in units:
            return f"'{written}' is no unit of {_WORDS[of]}; write it like {EXAMPLES[of]}"
    # Without /s, ps or a leading /: what remains is an amount of data.
    data = re.fullmatch(r"(/?)([A-Za-zµ]*?)(b|B|byte|bytes|bit|bits)(/s|ps)?", unit)
    if data and of != SECONDS:
        before, prefix, name, after = data.groups()
        after = "/s" if after else ""
        right = {p.lower(): p for p in _POWERS}.get(prefix.lower())
        if right is not None:
            choices = [right]
            if prefix == "K":
                choices = ["k", "Ki"]
            if name == "b":
                both = " or ".join(f"{before}{c}{n}{after}" for c in choices for n in ("bit", "B"))
                return f"'{written}' may be bits or bytes; write {both}"
            short = "bit" if name.startswith("bit") else "B"
            remedy = " or ".join(f"{before}{c}{short}{after}" for c in choices)
            why = "may be 1000 or 1024" if prefix == "K" else "is no unit"
            return f"'{written}' {why}; write {remedy}"
    if of != SECONDS and unit in _POWERS:
        return f"'{written}' is a prefix without a unit; write it like {EXAMPLES[of]}"
    if of == SECONDS and unit in ("m", "M", "mo"):
        return f"'{written}' may be minutes or months; write min or d"
    return f"'{written}' is no unit of {_WORDS[of]}; write it like {EXAMPLES[of]}"


_WORDS = {
    BYTES: "amounts of data",
    SECONDS: "time",
    BYTES_PER_S: "rates",
    PRICE: "prices",
}


def _unreadable(of: str) -> str:
    return f"write a number, in the unit that the key names, or one with its unit: {EXAMPLES[of]}"
