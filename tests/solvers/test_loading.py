"""Messages where a solver's package cannot be imported."""

import importlib

import pytest

from datacollect.errors import SolverUnavailableError
from datacollect.solvers.choice import _load
from datacollect.solvers.registry import Backend

BACKEND = Backend("module", "Class", "package")


def failing(cause):
    def import_module(_):
        raise ImportError("initialization failed") from cause

    return import_module


def test_ctrl_c_while_a_package_is_imported_is_no_missing_package(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        _load("solver", BACKEND)


def raising(error):
    def import_module(_):
        raise error

    return import_module


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ImportError("initialization failed"), "initialization failed; fix that"),
        (ModuleNotFoundError("No module named 'x'", name="x"), "No module named 'x'; fix that"),
        (
            ImportError("libx.so.9: failed to map segment from shared object"),
            "memory is short: this process has .*; (end|stop|raise) ",
        ),
    ],
)
def test_a_package_that_is_there_and_fails_is_not_to_be_installed(monkeypatch, error, words):
    monkeypatch.setattr(importlib, "import_module", raising(error))
    with pytest.raises(SolverUnavailableError, match=words) as caught:
        _load("solver", BACKEND)
    assert "package, which is installed: " in str(caught.value)
    assert "install it" not in str(caught.value)
