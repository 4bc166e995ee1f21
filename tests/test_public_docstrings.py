"""Every public function and method says what it means, takes, returns and raises, and shows it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from functools import cache
from importlib import import_module

import pytest
from judges.public import callables, named, public_classes, sections

import datacollect as dc
from datacollect import errors

OUR_ERRORS = {name for name in vars(errors) if name.endswith("Error")}


@cache
def tree_of(module: str) -> dict[str, ast.AST]:
    """Return a module's own functions and classes by name."""
    source = inspect.getsource(import_module(module))
    body = ast.parse(source).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def raised(function: object) -> set[str]:
    """Return our errors that a function raises, by itself or in functions of its own module."""
    beside = tree_of(function.__module__)
    waiting = [ast.parse(textwrap.dedent(inspect.getsource(function)))]
    seen, found = set(), set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                found |= {getattr(node.exc.func, "id", "")} & OUR_ERRORS
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if isinstance(beside.get(name), ast.FunctionDef) and name not in seen:
                    seen.add(name)
                    waiting.append(beside[name])
    return found


def covered(error: str, listed: set[str]) -> bool:
    """Whether a docstring lists an error, or one that it is."""
    return any(kind.__name__ in listed for kind in getattr(errors, error).__mro__)


def test_there_is_something_to_look_at():
    assert {"compare", "Problem.from_hosts", "Problem.link_indices", "Schedule.check"} <= set(
        callables()
    )
    assert raised(dc.Problem.replace) == set()
    assert raised(dc.estimate) == {"ProblemError"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(callables()))
def test_docstring_is_full(name):
    function = callables()[name]
    text = inspect.getdoc(function)
    assert text, "has no docstring"
    parts = sections(text)
    signature = inspect.signature(function)
    parameters = set(signature.parameters) - {"self", "cls"}
    missing = parameters - named(parts.get("Parameters", ""))
    assert not missing, f"does not name {sorted(missing)} under Parameters"
    unknown = named(parts.get("Parameters", "")) - parameters
    assert not unknown or any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()), (
        f"names {sorted(unknown)}, which it does not take"
    )
    if signature.return_annotation not in ("None", None):
        assert "Returns" in parts, "does not say what it returns"
    listed = named(parts.get("Raises", ""))
    silent = {error for error in raised(function) if not covered(error, listed)}
    assert not silent, f"does not say that it raises {sorted(silent)}"
    assert ">>> " in parts.get("Examples", ""), "has no example"


@pytest.mark.parametrize(
    "name", sorted(n for n, k in public_classes().items() if dataclasses.is_dataclass(k))
)
def test_class_says_what_each_attribute_is(name):
    kind = public_classes()[name]
    parts = sections(inspect.getdoc(kind) or "")
    listed = named(parts.get("Attributes", "")) | named(parts.get("Parameters", ""))
    missing = {field.name for field in dataclasses.fields(kind)} - listed
    assert not missing, f"does not name {sorted(missing)}"


@pytest.mark.parametrize("name", sorted(callables()))
def test_no_public_function_takes_just_any_options(name):
    function = callables()[name]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            assert "Unpack[" in str(parameter.annotation), f"{parameter} names no options"
