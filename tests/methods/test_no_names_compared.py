"""Differences between methods are fields of their specifications: no names are compared."""

from __future__ import annotations

import ast
import re

import pytest
from judges.imports import read_modules

from datacollect.errors import ProblemError
from datacollect.methods.adaptive_spec import AdaptiveOptions
from datacollect.methods.choice import METHODS
from datacollect.methods.options.spec import ControllerSpec, MethodSpec

# Who needs one method by its name, as what others are compared with: direct and coordinated in
# advice and in tables of a study; coordinated, whose number of connections `connections_as` takes.
BASELINES = {
    "methods.comparison",
    "methods.controllers.scheduled",
    "study.report.setting_runs",
}
CONSTANTS = {name.upper().replace("-", "_") for name in METHODS.own}
# What compares one has it somewhere: other modules need not be parsed.
QUOTED = [rf"[\"']{name}[\"']" for name in METHODS.own]
NAMED = re.compile("|".join((*QUOTED, *CONSTANTS)))


def names_a_method(node: ast.AST) -> bool:
    """Whether a part of a comparison is a method's name, as text or as a constant of ours."""
    if isinstance(node, ast.Name):
        return node.id in CONSTANTS
    return isinstance(node, ast.Constant) and node.value in METHODS.own


def test_nobody_compares_names_of_methods():
    compares = {
        name: node.lineno
        for name, source in read_modules().items()
        if NAMED.search(source)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare) and any(map(names_a_method, ast.walk(node)))
    }
    assert not compares.keys() - BASELINES, "make it a field of MethodSpec or ControllerSpec"
    assert not BASELINES - compares.keys(), "they compare none any more: take them out"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ControllerSpec("m:f", "host"),
            "connections_per must be one of hop, source, collection, got 'host'",
        ),
        (
            lambda: MethodSpec("m", AdaptiveOptions, controller=print),
            "got builtin_function_or_method; give ControllerSpec(FUNCTION)",
        ),
    ],
)
def test_what_is_no_controller_is_refused(make, message):
    with pytest.raises(ProblemError, match=re.escape(message)):
        make()
