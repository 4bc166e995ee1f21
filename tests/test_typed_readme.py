"""The README's Python, as users type it, passes strict mypy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NO_MYPY

REPOSITORY = Path(__file__).resolve().parents[1]


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
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, f"--cache-dir={REPOSITORY / '.mypy_cache'}", str(tmp_path / "readme.py")],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout
