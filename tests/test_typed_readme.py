"""The README's Python, as users type it, passes strict mypy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NO_MYPY

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_readme_passes_strict_mypy(tmp_path):
    pytest.importorskip("mypy", reason=NO_MYPY)
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    lines = []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if ">>>" in block:
            lines += re.findall(r"^(?:>>>|\.\.\.) (.*)$", block, re.MULTILINE)
        else:
            lines += block.splitlines()
    assert any("bottleneck.text" in line for line in lines)
    (tmp_path / "readme.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    # The same settings as `make types`, which are strict: its cache serves.
    command = [sys.executable, "-m", "mypy", "--strict", f"--config-file={REPOSITORY}/setup.cfg"]
    done = subprocess.run(
        [*command, str(tmp_path / "readme.py")],
        check=False,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | {"MYPYPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stdout
