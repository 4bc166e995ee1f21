"""Every script of experiments/ can be loaded and says how it is used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
SCRIPTS = sorted(path.stem for path in EXPERIMENTS.glob("*.py"))
COMMANDS = [name for name in SCRIPTS if "def main(" in (EXPERIMENTS / f"{name}.py").read_text()]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_be_loaded(name, scripts):
    assert scripts(name).__doc__


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_how_it_is_used(name, scripts, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as end:
        scripts(name).main()
    assert end.value.code == 0
    assert f"usage: {name}.py" in capsys.readouterr().out
