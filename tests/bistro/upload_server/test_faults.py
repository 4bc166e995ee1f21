"""A sample of `tests/faults/bistro_run.py`, which fails the n-th call of a bistro."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "faults" / "bistro_run.py"
# Of some 480 experiments each so manieth; the number is prime, so that all kinds come.
EACH = "53"


def test_what_a_bistro_has_signed_is_there_whichever_call_fails():
    done = subprocess.run(
        [sys.executable, str(RUN), EACH], check=False, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
