"""Options that name an entry of a registry, and the options that an entry brings for itself.

Help lists all entries, also those of other packages; what is given is looked up when it is parsed.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.files.registry import Registry

_OWN_OPTIONS = "datacollect.own_options"


def named_in(registry: Registry[Any]) -> dict[str, Any]:
    """Return what an option needs that takes a name of a registry, and refuses others."""

    def known(name: str | None) -> str | None:
        if name is not None and name not in registry.own:
            try:
                registry.get(name)
            except ProblemError as error:
                raise typer.BadParameter(str(error)) from None
        return name

    known.registry = registry  # type: ignore[attr-defined] # typer keeps it where it wraps this
    return {"callback": known, "autocompletion": lambda: list(registry.names())}


def listing(registry: Registry[Any]) -> Callable[[Any], Any]:
    """Return a callback for options of which help lists a registry's entries."""

    def unchanged(value: Any) -> Any:
        return value

    unchanged.listed = registry  # type: ignore[attr-defined] # typer keeps it where it wraps this
    return unchanged


@contextmanager
def describing_entries(parameters: Sequence[Any]) -> Iterator[None]:
    """Have help list which entries there are, what each is, and which options it brings."""
    before = [(parameter, parameter.metavar, parameter.help) for parameter in parameters]
    for parameter in parameters:
        registry = _registry_of(parameter)
        if registry is not None:
            parameter.metavar = f"[{'|'.join(registry.names())}]"
        registry = registry or getattr(parameter.callback, "listed", None)
        if registry is not None:
            parameter.help = f"{parameter.help} {_texts_of(registry)}"
    try:
        yield
    finally:
        for parameter, metavar, text in before:
            parameter.metavar, parameter.help = metavar, text


def _texts_of(registry: Registry[Any]) -> str:
    by_text: dict[str, list[str]] = {}
    options = []
    for name in registry.names():
        entry = registry.get(name)
        by_text.setdefault(entry.text, []).append(name)
        for option, its in getattr(entry, "options", {}).items():
            choices = f" {'|'.join(its.choices)}" if its.choices else ""
            options.append(f" {name} takes --{option}{choices}: {its.text}.")
    texts = "; ".join(f"{', '.join(names)}: {text}" for text, names in by_text.items())
    return f"{texts}.{''.join(options)}"


def take_own_options(
    context: typer.Context, parameters: Sequence[Any], arguments: Sequence[str]
) -> list[str]:
    """Return the arguments without the options of entries, which `own_options` returns.

    They are not looked for where all options are the command's.
    """
    registry = next(filter(None, map(_registry_of, parameters)), None)
    if registry is None:
        return list(arguments)
    of_command = {option for parameter in parameters for option in parameter.opts}
    left: list[str] = []
    found: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        option, equals, value = argument.partition("=")
        name = option.removeprefix("--")
        if name in ("", argument) or option in of_command or not _is_brought(registry, name):
            left.append(argument)
            continue
        found[name] = value if equals else next(rest, "")
        if not found[name]:
            raise typer.BadParameter(f"{option} needs a value")
    context.meta[_OWN_OPTIONS] = found
    return left


def own_options(context: typer.Context) -> dict[str, str]:
    """Return the options of entries that were given, by name."""
    options: dict[str, str] = context.meta.get(_OWN_OPTIONS, {})
    return options


def _is_brought(registry: Registry[Any], option: str) -> bool:
    return any(option in registry.get(name).options for name in registry.names())


def _registry_of(parameter: Any) -> Registry[Any] | None:
    return getattr(parameter.callback, "registry", None)
