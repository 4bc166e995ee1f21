"""Kinds of values in files: what each may be, and the message where it is something else.

`datacollect.files.fields` composes them into tables of fields. Messages begin with the value's
place, such as ``hosts.S1.backlog_bytes`` or ``links[3].from``, positions counted from 0. Every kind
also says as JSON Schema what it reads, for editors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files import quantities
from datacollect.files.clock_times import CLOCK_TIME, HOUR, as_text, is_clock_time

# Values of others go into messages shortened to this many characters.
SHOWN_LENGTH = 60

# Sums of as many bytes still fit into 64 bits.
BYTES_STOP = 2**62

# Whole numbers with more bits are not even approximately a float.
FLOAT_BITS = 1023

Schema: TypeAlias = dict[str, Any]


class Kind(Protocol):
    """Kind of a value: what it may be."""

    def read(self, value: Any, place: str) -> Any:
        """Return the value in the type used inside; raise `ProblemError` where it does not fit."""

    def schema(self) -> Schema:
        """Return the JSON Schema of such values; tables in it stand as `Table.schema` says."""


@dataclass(frozen=True)
class Text:
    """Text that is not empty."""

    only: tuple[str, ...] = ()

    def read(self, value: Any, place: str) -> str:
        """Return the text."""
        if not isinstance(value, str):
            raise wrong(place, "must be text", value, "put it in quotes")
        if self.only and value not in self.only:
            allowed = " or ".join(f'"{text}"' for text in self.only)
            raise wrong(place, f"must be {allowed}", value, "write it exactly so")
        if not value:
            raise wrong(place, "must not be empty", value, "give it a name")
        if not is_utf_8(value):
            raise wrong(
                place, "must be Unicode text", value, "replace the half of a surrogate pair"
            )
        return value

    def schema(self) -> Schema:
        """Return the JSON Schema of such text."""
        return {"enum": list(self.only)} if self.only else {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def read(self, value: Any, place: str) -> bool:
        """Return the flag."""
        if not isinstance(value, bool):
            raise wrong(place, "must be true or false", value, "write it without quotes")
        return value

    def schema(self) -> Schema:
        """Return the JSON Schema of a flag."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Whole:
    """A whole number from `minimum` on, below `stop`; floats that are whole count."""

    of: str = ""
    minimum: int = 0
    stop: int | None = BYTES_STOP
    remedy: str = ""

    def read(self, value: Any, place: str) -> int:
        """Return the number."""
        rule = f"must be a whole number{self.of and f' of {self.of}'} >= {self.minimum}"
        given = value = plain(value)
        if isinstance(value, str):
            value = _without_unit(value, self.of, place, rule)
        if not is_number(value):
            raise wrong(place, rule, value, _write_a_number(value))
        if isinstance(value, Fraction):
            raise wrong(place, rule, given, f"that is {float(value):.6g} {self.of}; round it")
        if not isinstance(value, Integral):
            if not math.isfinite(value):
                raise wrong(place, rule, value, self.remedy or "write a number that is known")
            if not float(value).is_integer():
                raise wrong(place, rule, value, "round it")
            value = float(value)
        number = int(value)
        if number < self.minimum:
            raise wrong(place, rule, given, self.remedy or f"write {self.minimum} or more")
        if self.stop is not None and number >= self.stop:
            if self.stop == BYTES_STOP:
                rule += f" and below 2**{BYTES_STOP.bit_length() - 1}"
                raise wrong(place, rule, given, "plan in parts, or count blocks instead of bytes")
            raise wrong(place, f"{rule} and below {self.stop}", value, "write a smaller one")
        if number.bit_length() > FLOAT_BITS:
            raise wrong(place, rule, value, self.remedy or "no quantity needs that many digits")
        return number

    def schema(self) -> Schema:
        """Return the JSON Schema of such numbers."""
        least: Schema = {"type": "integer", "minimum": self.minimum}
        if self.stop is not None:
            least["exclusiveMaximum"] = self.stop
        return _or_with_unit(least, self.of)


@dataclass(frozen=True)
class Number:
    """A finite number: >= 0, > 0 if `positive`, any if `signed`."""

    of: str = ""
    signed: bool = False
    positive: bool = False
    remedy: str = ""

    def read(self, value: Any, place: str) -> float:
        """Return the number."""
        if type(value) is float and 0 < value < math.inf:
            return value
        given = value = plain(value)
        rule = f"must be a finite number{self.of and f' of {self.of}'}"
        rule += "" if self.signed else " > 0" if self.positive else " >= 0"
        if isinstance(value, str):
            value = _without_unit(value, self.of, place, rule)
        if not is_number(value):
            raise wrong(place, rule, value, _write_a_number(value))
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise wrong(place, rule, given, self.remedy or "write a number that is known")
        if (number < 0 and not self.signed) or (number == 0 and self.positive):
            least = "a number above 0" if self.positive else "0 or more"
            raise wrong(place, rule, given, self.remedy or f"write {least}")
        return number + 0.0  # -0.0 becomes 0.0

    def schema(self) -> Schema:
        """Return the JSON Schema of such numbers."""
        number: Schema = {"type": "number"}
        if not self.signed:
            number["exclusiveMinimum" if self.positive else "minimum"] = 0
        return _or_with_unit(number, self.of)


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any, place: str) -> str:
        """Return the word."""
        rule = f"must be one of {', '.join(self.words)}"
        if not isinstance(value, str):
            raise wrong(place, rule, value, "put it in quotes")
        if value not in self.words:
            raise ProblemError(
                f"{place} {rule}, got {shown(value)}" + nearest_hint(value, self.words)
            )
        return value

    def schema(self) -> Schema:
        """Return the JSON Schema of the words."""
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Share:
    """A number from 0 to 1; not 0 if `positive`."""

    positive: bool = False

    def read(self, value: Any, place: str) -> float:
        """Return the share."""
        rule = "must be > 0 and <= 1" if self.positive else "must be between 0 and 1"
        try:
            share = Number(positive=self.positive).read(value, place)
        except ProblemError:
            raise wrong(place, rule, value, "write a share") from None
        if share > 1:
            raise wrong(place, rule, value, "write a share")
        return share

    def schema(self) -> Schema:
        """Return the JSON Schema of such numbers."""
        least = "exclusiveMinimum" if self.positive else "minimum"
        return {"type": "number", least: 0, "maximum": 1}


@dataclass(frozen=True)
class Degrees:
    """An angle on the globe, from -`most` to `most`."""

    most: int

    def read(self, value: Any, place: str) -> float:
        """Return the number of degrees."""
        given = value = plain(value)
        rule = f"must be a number of degrees from -{self.most} to {self.most}"
        if not is_number(value):
            raise wrong(place, rule, value, _write_a_number(value))
        degrees = float(value) + 0.0  # -0.0 becomes 0.0
        if not -self.most <= degrees <= self.most:
            raise wrong(place, rule, given, "write decimal degrees; south and west are negative")
        return degrees

    def schema(self) -> Schema:
        """Return the JSON Schema of such angles."""
        return {"type": "number", "minimum": -self.most, "maximum": self.most}


@dataclass(frozen=True)
class Forecast:
    """A number, or a list of one number per period."""

    number: Number

    def read(self, value: Any, place: str) -> float | list[float]:
        """Return the number, or the list; how long it is to be the caller knows."""
        value = plain(value)
        if isinstance(value, list | tuple):
            return ListOf(self.number).read(value, place)
        return self.number.read(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of a number or a list."""
        one = self.number.schema()
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


@dataclass(frozen=True)
class ClockTime:
    """A date and time, TOML's own or ISO 8601 in quotes; or an hour of the day, if that may be."""

    may_be_hour: bool = False

    def read(self, value: Any, place: str) -> str:
        """Return it as text."""
        text = as_text(value)
        like = f"{HOUR}|{CLOCK_TIME}" if self.may_be_hour else CLOCK_TIME
        if not isinstance(text, str) or not re.fullmatch(like, text, re.ASCII):
            remedy = "write it like 2026-11-22T20:00:00+01:00"
            if self.may_be_hour:
                remedy += ', or "20:00" for the next such hour'
            raise wrong(place, "must be a date and time", text, remedy)
        return text

    def schema(self) -> Schema:
        """Return the JSON Schema of such texts."""
        pattern = f"^({CLOCK_TIME}|{HOUR})$" if self.may_be_hour else f"^{CLOCK_TIME}$"
        return {"type": "string", "pattern": pattern}


@dataclass(frozen=True)
class HourOfDay:
    """An hour of the day, such as ``"08:00"``."""

    def read(self, value: Any, place: str) -> str:
        """Return it as text."""
        text = as_text(value)
        if not isinstance(text, str) or not re.fullmatch(HOUR, text, re.ASCII):
            raise wrong(place, "must be an hour of the day", text, 'write it like "08:00"')
        return text

    def schema(self) -> Schema:
        """Return the JSON Schema of such texts."""
        return {"type": "string", "pattern": f"^{HOUR}$"}


@dataclass(frozen=True)
class Instant:
    """Seconds from the start, or a clock time; who knows the start turns it into seconds."""

    number: Number

    def read(self, value: Any, place: str) -> float | str:
        """Return the seconds, or the clock time as text."""
        text = as_text(value)
        if isinstance(text, str) and is_clock_time(text):
            return text
        return self.number.read(text, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of a number or a text."""
        number = self.number.schema()
        return {**number, "pattern": f"{number['pattern']}|^{CLOCK_TIME}$|^{HOUR}$"}


@dataclass(frozen=True)
class Starts:
    """Instants that increase, the first 0; clock times, if `clock`."""

    clock: bool = False

    def read(self, value: Any, place: str) -> list[Any]:
        """Return the instants; those that are clock times as texts, their order not checked."""
        number = Number("seconds")
        starts: list[Any] = ListOf(Instant(number) if self.clock else number).read(value, place)
        if any(isinstance(start, str) for start in starts):
            return starts
        return in_order(starts, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of such lists, but for their order."""
        later = Number("seconds", positive=True).schema()
        text: Schema = {"type": "string", "pattern": "^\\s*0\\s*[a-zµμ]+\\s*$"}
        if self.clock:
            text["pattern"] += f"|^{CLOCK_TIME}$"
            later = Instant(Number("seconds", positive=True)).schema()
        first = {"anyOf": [{"const": 0}, text]}
        return {"type": "array", "prefixItems": [first], "items": later, "minItems": 1}


@dataclass(frozen=True)
class ListOf:
    """A list of values of one kind."""

    kind: Kind
    shortest: int = 0
    longest: int | None = None
    rule: str = "must be a list"

    def read(self, value: Any, place: str) -> list[Any]:
        """Return what each value of the list becomes."""
        value = plain(value)
        if not isinstance(value, list | tuple):
            raise wrong(place, self.rule, value, "put it in brackets")
        if len(value) < self.shortest or len(value) > (self.longest or len(value)):
            raise wrong(place, self.rule, value, "write it so")
        return [self.kind.read(item, f"{place}[{i}]") for i, item in enumerate(value)]

    def schema(self) -> Schema:
        """Return the JSON Schema of such lists."""
        schema = {"type": "array", "items": self.kind.schema()}
        bounds = {"minItems": self.shortest or None, "maxItems": self.longest}
        return schema | {key: bound for key, bound in bounds.items() if bound is not None}


def in_order(starts: list[float], place: str) -> list[float]:
    """Return instants if they increase from 0; raise `ProblemError` otherwise."""
    if not starts or starts[0] != 0:
        raise wrong(place, "must begin with 0", starts, "list when each period starts")
    for i, (one, two) in enumerate(pairwise(starts)):
        if two <= one:
            raise ProblemError(
                f"{place}[{i + 1}] must be > {one!r}, the start before it, got {two!r}; "
                "list the starts in increasing order"
            )
    return starts


# Words --------------------------------------------------------------------------------------


def wrong(place: str, rule: str, value: Any, remedy: str = "") -> ProblemError:
    """Return the error: place, rule, value received, remedy."""
    return ProblemError(
        f"{place or 'the top level'} {rule}, got {shown(value)}" + (remedy and f"; {remedy}")
    )


def join(place: str, key: Any) -> str:
    """Return the place of a key, as TOML would write it.

    >>> join("hosts.S1", "backlog_bytes"), join("hosts", "New York")
    ('hosts.S1.backlog_bytes', 'hosts."New York"')
    """
    key = shown_text(str(key))
    key = key if re.fullmatch(r"[\w…-]+", key) else f'"{key}"'
    return f"{place}.{key}" if place else key


def shown(value: Any) -> str:
    r"""Write a value of others for a message: short, on one line, without control characters.

    >>> shown("5 GB\n"), shown(True), shown([1, 2]), shown({}), shown(None)
    ("'5 GB\\n'", 'true', '[1, 2]', 'an empty table', 'null')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        # Quotes as the user wrote them; repr would escape a backslash that is already escaped.
        return f"'{shown_text(value)}'"
    if isinstance(value, Mapping):
        return "a table" if value else "an empty table"
    if isinstance(value, list | tuple):
        return _shown_list(value)
    if isinstance(value, int) and value.bit_length() > 200:
        n_digits = math.ceil(value.bit_length() * math.log10(2))
        return f"{'-' if value < 0 else ''}about {n_digits} digits"
    return shown_text(str(value))


def shown_text(text: str) -> str:
    r"""Shorten text and escape what is not printable.

    >>> shown_text("a\x1b[31mb"), len(shown_text("x" * 1000))
    ('a\\x1b[31mb', 60)
    """
    if len(text) > SHOWN_LENGTH:
        text = text[: SHOWN_LENGTH - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def plain(value: Any) -> Any:
    """Turn numpy's numbers and arrays into Python's; durations and dates are no numbers."""
    is_time = getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M")
    return value.tolist() if hasattr(value, "tolist") and not is_time else value


def is_number(value: Any) -> bool:
    """Return whether a value counts.

    No truth value, nor one of numpy's durations, which are `Real`.
    """
    return isinstance(value, Real) and not isinstance(value, bool) and not hasattr(value, "dtype")


def _without_unit(text: str, of: str, place: str, rule: str) -> Any:
    """Return the number that a text with a unit says; the text, where none can stand."""
    if of not in quantities.UNITS:
        return text
    try:
        return quantities.quantity(text, of)
    except quantities.QuantityError as error:
        raise wrong(place, rule, text, str(error)) from None


def _or_with_unit(number: Schema, of: str) -> Schema:
    """Return the schema of a number, or of a text with its unit where such a thing counts."""
    if of not in quantities.UNITS:
        return number
    # Each word of a schema is about one type only: limits about numbers, patterns about texts.
    return {**number, "type": [number["type"], "string"], "pattern": quantities.pattern(of)}


def _shown_list(values: list[Any] | tuple[Any, ...]) -> str:
    simple = all(isinstance(v, str | int | float) for v in values[:10])
    text = f"[{', '.join(shown(v) for v in values)}]" if simple and len(values) <= 10 else ""
    return text if 0 < len(text) <= SHOWN_LENGTH else f"a list of {len(values)}"


def _write_a_number(value: Any) -> str:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return "write a number, in the unit that the key names"
        return "leave out the quotes"
    return "write a number"


def is_utf_8(text: str) -> bool:
    """Return whether a text can be written as UTF-8: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
