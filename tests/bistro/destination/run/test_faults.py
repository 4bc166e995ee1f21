"""A sample of `tests/faults/destination_run.py`, which fails the n-th call of a destination."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[3] / "faults" / "destination_run.py"
# Of some 650 experiments each so manieth; the number is prime, so that all kinds come.
EACH = "53"


def test_all_is_collected_and_nothing_goes_too_early_whichever_call_fails():
    done = subprocess.run(
        [sys.executable, str(RUN), EACH], check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
