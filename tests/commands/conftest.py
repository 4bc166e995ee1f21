"""A folder with an example, a command that runs in it, a plan that it made."""

from __future__ import annotations

import pytest

from datacollect.commands.main import run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with the example of the paper's Figure 1 in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["example", "figure1"]) == 0
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command; return exit code, standard output and standard error."""

    def call(*arguments):
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def planned(here, call):
    """`figure1.toml` with its pipelined plan in `plan.json`."""
    assert call("plan", "figure1.toml", "--chunk", "0.01", "-o", "plan.json")[0] == 0
    return here
