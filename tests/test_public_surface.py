"""Public names of `import datacollect`, and what importing costs."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import datacollect as dc
from datacollect import errors


def test_every_public_name_survives_the_import_of_every_module():
    """A submodule named like a function would replace it on the package once imported."""
    before = {name: getattr(dc, name) for name in dc.__all__}
    for module in pkgutil.walk_packages(dc.__path__, "datacollect."):
        import_module(module.name)
    assert {name: getattr(dc, name) for name in dc.__all__} == before
    assert not any(isinstance(value, type(dc)) for value in before.values())


def test_public_names_are_sorted_and_listed():
    assert dc.__all__ == sorted(dc.__all__)
    assert set(dc.__all__) < set(dir(dc))


def test_type_checkers_know_the_same_names_at_the_same_places():
    """The stub beside the package says what `__getattr__` does."""
    stub = Path(dc.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    listed = {(each.asname, node.module) for node in imports for each in node.names}
    assert {name for name, _ in listed} == set(dc.__all__)
    for name, module in listed:
        assert getattr(import_module(module), name) is getattr(dc, name)


def test_errors_that_public_functions_name_are_public():
    named = {
        name
        for each in dc.__all__
        for name in re.findall(r"^\s*(\w+Error)$", getattr(dc, each).__doc__ or "", re.MULTILINE)
    }
    assert {name for name in named if hasattr(errors, name)} <= set(dc.__all__)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'colect'"):
        _ = dc.colect


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, datacollect; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "pandas", "scipy", "ortools", "networkx", "pulp", "matplotlib"}
