"""The tests by Hypothesis, one file at a time, with examples that no other run has seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Files with properties, in an order that is the same everywhere.
FILES = sorted(
    path.relative_to(REPOSITORY)
    for path in (REPOSITORY / "tests").rglob("test_*.py")
    if re.search(r"^ *@given", path.read_text(encoding="utf-8"), re.MULTILINE)
)
TAIL = 6


def case(seed: int) -> str | None:
    """Run the properties of one file, each with random examples of this seed."""
    file = FILES[seed % len(FILES)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "-m", "hypothesis and not slow", f"--hypothesis-seed={seed}", str(file)],
        cwd=REPOSITORY,
        env=os.environ | {"DATACOLLECT_TEST_PROFILE": "exploring"},
        capture_output=True,
        text=True,
        check=False,
    )
    # 5: of this file all are slow.
    if done.returncode in (0, 5):
        return None
    said = [line for line in done.stdout.splitlines() if re.match(r"E  |FAILED|ERROR", line)]
    return f"{file}: " + " | ".join(said[-TAIL:])
