"""Conversion of options' values; those that have the option's type already stay as they are.

typer has pydantic convert every value, also one that was left out, or text for an option that takes
text. To import pydantic takes longer than all else that a command needs before it begins. And
numbers are those that other programs would read, too: Python reads ``1_0`` as ten.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import typer

from datacollect.files.quantities import plain_number

if TYPE_CHECKING:
    from collections.abc import Iterable

# What help shows for a number of seconds: such an option takes "5 min", too.
TIME = "TIME"


def convert_what_needs_it(parameters: Iterable[Any]) -> None:
    """Have typer convert no value that is of its parameter's kind.

    Parameters
    ----------
    parameters : iterable
        Of typer; one that converts its values in another way stays as it is.
    """
    for parameter in parameters:
        convert = getattr(parameter, "get_runtime_param", None)
        if convert is not None and not isinstance(getattr(convert, "__self__", None), _Conversion):
            parameter.get_runtime_param = _Conversion(parameter, convert).itself


def number_in(text: str) -> float | str:
    """Return the number that a text is; the text where it is none.

    Raises
    ------
    BadParameter
        Python would read a number from it, but nobody else would.

    Examples
    --------
    >>> number_in("1e3"), number_in("12 h")
    (1000.0, '12 h')
    """
    _require_plain(text)
    number = plain_number(text)
    return text if math.isnan(number) else number


def _require_plain(text: str) -> None:
    """Refuse numbers that are written as in Python's sources, or in other digits than 0 to 9."""
    try:
        number = float(text)
    except ValueError:
        return
    if not math.isnan(number) and math.isnan(plain_number(text)):
        raise typer.BadParameter(
            f"must be a number in the digits 0 to 9 and nothing between them, got {text!r}; write "
            f"{number:.15g}"
        )


def _in_seconds(text: str) -> str:
    """Return a time with its unit as a number of seconds; whether numbers fit, others judge."""
    try:
        float(text)
    except ValueError:
        return _of_quantity(text)
    return text


def _of_quantity(text: str) -> str:
    from datacollect.files.quantities import SECONDS, QuantityError, quantity

    try:
        return repr(float(quantity(text, SECONDS)))
    except QuantityError as error:
        raise typer.BadParameter(
            f"must be a number of seconds or a time with its unit, got {text!r}; {error}"
        ) from None


class _Conversion:
    """Stands where typer looks for what converts a parameter's values."""

    def __init__(self, parameter: Any, typers: Any) -> None:
        self._parameter, self._typers = parameter, typers

    def itself(self) -> _Conversion:
        """Return what converts: this."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as the option's kind; typer's own judges all but what is so already."""
        if self._is_converted(value):
            return value
        if self._is_texts(value):
            return () if value is None else [*value]
        if isinstance(value, str) and self._parameter.type_descriptor.annotation in (int, float):
            _require_plain(value)
            if self._parameter.metavar == TIME:
                value = _in_seconds(value)
        return self._typers().coerce(value, param=param, ctx=ctx)

    def _is_converted(self, value: Any) -> bool:
        parameter = self._parameter
        if parameter.multiple or parameter.nargs != 1:
            return False
        if value is None:
            return True
        asked = parameter.type_descriptor
        kind, rules = asked.annotation, asked.parameter_info
        # A number may have to lie within limits, and text be a path, or be parsed.
        has_rules = rules.parser is not None or asked.is_ranged or asked.is_path or asked.is_file
        if has_rules:
            return False
        if get_origin(kind) is Literal:
            return isinstance(value, str) and value in get_args(kind)
        return isinstance(kind, type) and type(value) is kind

    def _is_texts(self, value: Any) -> bool:
        """Say whether an option that may be given several times has texts, or nothing."""
        asked = self._parameter.type_descriptor
        if asked.annotation != list[str] or asked.parameter_info.parser is not None:
            return False
        given = () if value is None else value
        return isinstance(given, list | tuple) and all(isinstance(each, str) for each in given)
