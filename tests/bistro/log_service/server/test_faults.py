"""A sample of `tests/faults/log_run.py`, which fails the n-th call of a service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[3] / "faults" / "log_run.py"
# Of some 250 experiments each so manieth; the number is prime, so that all kinds come.
EACH = "31"


def test_nothing_acknowledged_is_lost_and_no_log_forks_whichever_call_fails():
    done = subprocess.run(
        [sys.executable, str(RUN), EACH], check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
