"""Typed use passes strict mypy: the README's Python, and texts with units."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NO_MYPY

REPOSITORY = Path(__file__).resolve().parents[1]


# Arguments may be texts, beside numbers; attributes are numbers.
TEXTS = """
import datacollect as dc

wire = dc.SharedBottleneck("w", "10 Gbit/s", [("S", "D")], "20 Gbit/s")
half: float = wire.bandwidth_bytes_per_s / 2
held = dc.Held("D", "S", 0, "5 kB")
end: int = held.offset_bytes + held.n_bytes
hosts = [dc.Host("S", "6 TB", release_s="1 h"), dc.Host("D")]
links = [dc.Link("S", "D", ["10 Gbit/s", 5.0])]
problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0, "1 h"])
problem = problem.replace(storage_bytes="1 GB", backlog_bytes=["6 TB", 0]).until("3 d")
other = dc.Problem.from_matrix(
    ["S", "D"], [[0, "10 Mbit/s"], [0, 0]], ["6 TB", 0], "D", release_s=["30 min", 0]
)
plan = dc.coordinated(problem, slot_s="5 min", deadline_s="12 h", time_limit_s="1 h")
deadline_s: float | None = plan.replace(deadline_s="12 h").deadline_s
at_s: float = dc.Progress("2 h").at_s
"""


@pytest.mark.slow
def test_texts_with_units_pass_strict_mypy(tmp_path):
    assert refusals(TEXTS, tmp_path) == []
    assert len(refusals('import datacollect as dc\ndc.Held("D", "S", 0.5, [])\n', tmp_path)) == 2


@pytest.mark.slow
def test_the_readme_passes_strict_mypy(tmp_path):
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    lines = []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if ">>>" in block:
            lines += re.findall(r"^(?:>>>|\.\.\.) (.*)$", block, re.MULTILINE)
        else:
            lines += block.splitlines()
    assert any("bottleneck.text" in line for line in lines)
    assert refusals("\n".join(lines) + "\n", tmp_path) == []


def refusals(text, folder):
    """Return what strict mypy says of a text in Python."""
    pytest.importorskip("mypy", reason=NO_MYPY)
    (folder / "typed.py").write_text(text, encoding="utf-8")
    # The same settings as `make types`, which are strict: its cache serves.
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={REPOSITORY}/setup.cfg"]
    done = subprocess.run(
        [*command, str(folder / "typed.py")],
        check=False,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | {"MYPYPATH": str(REPOSITORY)},
    )
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert done.returncode == bool(found), done.stdout + done.stderr
    return found
