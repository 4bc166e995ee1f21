"""Samples of `tests/faults/spool_run.py`, which fails the n-th call of a pull in slots."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "faults" / "spool_run.py"


@pytest.mark.slow
def test_whichever_call_fails_what_is_said_is_so_and_the_next_start_ends_it():
    done = subprocess.run(
        [sys.executable, str(RUN), "120"], check=False, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
