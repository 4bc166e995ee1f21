"""A sample of `tests/faults/measure_run.py`, which fails the n-th call of each measuring tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[1] / "faults" / "measure_run.py"
# Of some 270 experiments with each tool so manieth, with another first one for each.
EACH = "151"


def test_whichever_call_fails_a_tool_says_so_and_no_host_stays_held():
    done = subprocess.run(
        [sys.executable, str(RUN), EACH], check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
