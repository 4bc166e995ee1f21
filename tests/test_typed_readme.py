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
README = REPOSITORY / "README.md"


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


# Half a byte, no sequence of hosts.
REFUSED = """
import datacollect as dc

dc.Held("D", "S", 0.5, [])
"""


@pytest.mark.slow
def test_the_readme_and_texts_with_units_pass_strict_mypy(tmp_path):
    lines = []
    for block in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL):
        if ">>>" in block:
            lines += re.findall(r"^(?:>>>|\.\.\.) (.*)$", block, re.MULTILINE)
        else:
            lines += block.splitlines()
    assert any("bottleneck.text" in line for line in lines)
    texts = {"readme": "\n".join(lines) + "\n", "texts": TEXTS, "refused": REFUSED}
    found = refusals(texts, tmp_path)
    assert {name: len(found[name]) for name in texts} == {"readme": 0, "texts": 0, "refused": 2}


def refusals(texts, folder):
    """Return what strict mypy says of texts in Python, by name; it is started once."""
    pytest.importorskip("mypy", reason=NO_MYPY)
    paths = {name: folder / f"{name}.py" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name], encoding="utf-8")
    # The same settings as `make types`, which are strict: its cache serves.
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={REPOSITORY}/setup.cfg"]
    done = subprocess.run(
        [*command, *map(str, paths.values())],
        check=False,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | {"MYPYPATH": str(REPOSITORY)},
    )
    said = [line for line in done.stdout.splitlines() if ": error: " in line]
    found = {name: [line for line in said if f"{name}.py:" in line] for name in paths}
    assert sum(map(len, found.values())) == len(said), done.stdout
    assert done.returncode == bool(said), done.stdout + done.stderr
    return found
