"""Every script of experiments/ can be loaded and says how it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
SCRIPTS = sorted(path.stem for path in EXPERIMENTS.glob("*.py"))
COMMANDS = [name for name in SCRIPTS if "def main(" in (EXPERIMENTS / f"{name}.py").read_text()]


# Each as Python runs it: beside it lies this folder, and of the tests only what it asks for itself.
LOAD = """
import runpy, sys
from pathlib import Path

folder, *names = sys.argv[1:]
before, tops = sys.path[1:], (folder, str(Path(folder).parent / "tests"))

def is_ours(module):
    places = [getattr(module, "__file__", None) or "", *(getattr(module, "__path__", None) or ())]
    return any(str(place).startswith(tops) for place in places)

for name in names:
    sys.path[:] = [folder, *before]
    try:
        if not runpy.run_path(f"{folder}/{name}.py")["__doc__"]:
            print(f"{name}: says nothing of itself")
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
    for each in [each for each, module in sys.modules.items() if is_ours(module)]:
        del sys.modules[each]
"""


@pytest.mark.slow
def test_every_script_can_be_loaded():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOAD, str(EXPERIMENTS), *SCRIPTS],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_how_it_is_used(name, scripts, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as end:
        scripts(name).main()
    assert end.value.code == 0
    assert f"usage: {name}.py" in capsys.readouterr().out
