"""How much of the processors' time pulls use, by what each of them took."""

from __future__ import annotations

import shutil
import sys

import pytest

from datacollect.errors import TransferError
from datacollect.machine.parts import PullUse
from datacollect.measuring.hosts import pulls
from datacollect.measuring.hosts.pulls import measure_pulls, uses_of


def row(connections, took_s, busy_s):
    return {"connections": connections, "took_s": took_s, "busy_s": busy_s}


def test_the_share_is_of_all_processors_and_has_its_interval():
    """Of two processors 1, 1.2 and 0.8 s in a second each; more than all is all."""
    rows = [row(1, 1, 1), row(16, 2, 3), row(1, 1, 1.2), row(1, 1, 0.8), row(16, 1, 2.01)]
    assert uses_of(rows, 2) == [PullUse(1, 0.5, 0.4, 0.6), PullUse(16, 0.875, 0.75, 1.0)]


def test_a_program_that_fails_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pulls, "NEEDED_BYTES", 0)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(TransferError, match="pull: code 1"):
        measure_pulls(0.1, tmp_path)
    assert list(tmp_path.iterdir()) == []
