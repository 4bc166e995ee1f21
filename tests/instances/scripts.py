"""Scripts that sweep, for processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import datacollect as dc
from instances.small_experiments import experiment_of, many_seeds
if __name__ == "__main__":
"""


def script_of(code, folder):
    """Write a script, which spawned processes can load again."""
    path = folder.with_name(f"{folder.name}.py")
    tests = str(Path(__file__).resolve().parents[1])
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    path.write_text(SCRIPT.format(tests=tests) + lines)
    return [sys.executable, str(path), str(folder)]


def run_script(code, folder):
    done = subprocess.run(
        script_of(code, folder), capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
