"""Public names of `import datacollect`, and what importing costs."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import datacollect as dc


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


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'colect'"):
        _ = dc.colect


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, datacollect; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "pandas", "scipy", "ortools", "networkx", "pulp", "matplotlib"}
