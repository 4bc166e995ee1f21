"""Samples of `tests/faults/measure_run.py`, which fails the n-th call of each measuring tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / "faults" / "measure_run.py"


# Of some 270 experiments with each tool so manieth, with another first one for each;
# `tests/faults/measure_run.py` alone carries out all of them, of all tools.
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("tools", [("tcp", "ping"), ("cycle", "pairs")], ids="-".join)
def test_whichever_call_fails_a_tool_says_so_and_no_host_stays_held(tools):
    done = subprocess.run(
        [sys.executable, str(RUN), "421", *tools],
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
