"""Public classes, functions and methods, and what their docstrings say."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import datacollect as dc

# What the public functions give and take, besides the names of `datacollect` itself.
RETURNED = {
    "Run": import_module("datacollect.simulation.run").Run,
    "NewLinks": dc.NewLinks,
}

# Methods of Python itself, and what pandas or tuples bring along.
PYTHONS_OWN = re.compile(r"__\w+__|_.*")


def public_classes() -> dict[str, type]:
    return {name: x for name in dc.__all__ if inspect.isclass(x := getattr(dc, name))} | RETURNED


def members(kind: type) -> dict[str, object]:
    """Return what a class and its bases of this package define, by name; the nearest wins."""
    found: dict[str, object] = {}
    for room in reversed(kind.__mro__):
        if room.__module__.startswith("datacollect"):
            found |= {k: v for k, v in vars(room).items() if not PYTHONS_OWN.fullmatch(k)}
    return found


def callables() -> dict[str, object]:
    """Return every public function and method by its full name."""
    found = {n: x for n in dc.__all__ if inspect.isfunction(x := getattr(dc, n))}
    for name, kind in public_classes().items():
        for key, value in members(kind).items():
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function):
                found[f"{name}.{key}"] = function
    return found


def sections(text: str) -> dict[str, str]:
    """Return the parts of a docstring by their titles; what it begins with under ''.

    >>> sections("Add.\\n\\nReturns\\n-------\\nint")
    {'': 'Add.', 'Returns': 'int'}
    """
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"": parts[0].strip()} | {
        title: part.strip() for title, part in zip(parts[1::2], parts[2::2], strict=True)
    }


def named(part: str) -> set[str]:
    """Return the names that a part lists, ``a, b : float`` or alone on a line."""
    found = set()
    for line in part.splitlines():
        if line and not line[0].isspace():
            found |= {name.strip().lstrip("*") for name in line.partition(" :")[0].split(",")}
    return found
