"""Values of the command line that are already what their option asks for are taken as they are.

typer has pydantic convert every value, also one that was left out, or text for an option that takes
text. To import pydantic takes longer than all else that a command needs before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


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
        return isinstance(kind, type) and type(value) is kind and not has_rules
