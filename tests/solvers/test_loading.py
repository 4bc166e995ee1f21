"""What is said where a solver's package cannot be imported."""

import importlib

import pytest

from datacollect.errors import SolverUnavailableError
from datacollect.solvers.choice import _Backend, _load

BACKEND = _Backend("module", "Class", "package")


def failing(cause):
    def import_module(_):
        raise ImportError("initialization failed") from cause

    return import_module


def test_ctrl_c_while_a_package_is_imported_is_no_missing_package(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        _load("solver", BACKEND)


def test_a_package_that_fails_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", failing(OSError("no file")))
    with pytest.raises(SolverUnavailableError, match=r"needs the package package.*pip install"):
        _load("solver", BACKEND)
