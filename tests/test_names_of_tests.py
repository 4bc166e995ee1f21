"""Tests have the same names wherever and whenever they are collected.

pytest-xdist collects in each of its processes, and gives up where two of them found other names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent

# Collects all, with the clock so many seconds ahead.
COLLECT = """
import sys, time
import pytest

ahead_s, now, now_ns = float(sys.argv[1]), time.time, time.time_ns
time.time = lambda: now() + ahead_s
time.time_ns = lambda: now_ns() + int(ahead_s * 1e9)
sys.exit(pytest.main(["--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", "tests"]))
"""


def names(ahead_s: int, hash_seed: int) -> list[str]:
    process = subprocess.run(
        [sys.executable, "-c", COLLECT, str(ahead_s)],
        cwd=PROJECT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in process.stdout.splitlines() if "::" in line]


@pytest.mark.slow
def test_every_process_collects_the_same_names():
    found = names(0, 1)
    assert len(found) > 5000
    assert found == names(100_000, 2)
