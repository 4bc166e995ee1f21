"""Samples of `tests/faults/tunnel_run.py`, which fails the n-th call of both ends of a tunnel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "faults" / "tunnel_run.py"


@pytest.mark.slow
def test_whichever_call_fails_nothing_that_was_cut_off_looks_whole():
    """Each thirteenth of some 340 experiments."""
    done = subprocess.run(
        [sys.executable, str(RUN), "13"], check=False, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
