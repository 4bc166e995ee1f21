"""Samples of `tests/faults/*_run.py`: whichever call of a party fails, what it promised holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "faults"


# Of some 650, 250 and 480 experiments each so manieth; numbers are prime, so that all kinds come.
@pytest.mark.slow
@pytest.mark.parametrize(("run", "each"), [("destination", 53), ("log", 31), ("bistro", 53)])
def test_what_was_promised_holds_whichever_call_fails(run, each):
    done = subprocess.run(
        [sys.executable, str(FAULTS / f"{run}_run.py"), str(each)],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
