"""How much of the processors' time pulls use, by what each of them took."""

from __future__ import annotations

import shutil
import sys
from dataclasses import astuple

import pytest

from datacollect.errors import TransferError
from datacollect.machine.parts import GIB
from datacollect.measuring.hosts import pulls
from datacollect.measuring.hosts.pulls import files_that_fit, measure_pulls, uses_of


def row(connections, took_s, busy_s, n_gib=1.0):
    return {
        "connections": connections,
        "n_bytes": n_gib * GIB,
        "took_s": took_s,
        "busy_s": busy_s,
    }


def test_the_share_is_of_all_processors_and_has_its_interval():
    """Of two processors 1, 1.2 and 0.8 s in a second each; more than all is all.

    For each GiB as many seconds, less the 0.1 that it takes to write.
    """
    rows = [row(1, 1, 1), row(16, 2, 3), row(1, 1, 1.2), row(1, 1, 0.8), row(16, 1, 2.01)]
    few, many = uses_of(rows, 2, 0.1)
    assert astuple(few) == pytest.approx((1, 0.5, 0.4, 0.6, 0.9, 0.7, 1.1, 0, False))
    assert astuple(many) == pytest.approx((16, 0.875, 0.75, 1, 2.405, 1.91, 2.9, 0, False))


def test_how_long_pulls_begin_and_end_does_not_count():
    """The small take 0.5 s, in the middle, and 0.25 of it are busy: 0.75 GiB in 1 s, 1.5 busy."""
    small = [row(1, 0.5, 0.25, 0.25), row(1, 0.4, 0.2, 0.25), row(1, 0.6, 0.3, 0.25)]
    [use] = uses_of([*small, row(1, 1.5, 1.75)], 2, 0.5)
    assert (use.share, use.s_per_gib) == pytest.approx((0.75, 1.5))


def test_no_pull_takes_no_time_whatever_else_was_busy_then():
    """The small one took longer; and to write took longer alone than all together."""
    [use] = uses_of([row(1, 2, 2, 0.25), row(1, 1, 1)], 2, 0.5)
    assert 0 < use.s_per_gib <= 1
    assert 0 < use.share <= 1


@pytest.mark.parametrize(
    ("seconds", "tried_s", "n_files"),
    [
        # A start of 0.1 s and 0.2 s a file. One takes 0.3 s, six 1.3 s, four times 5.2 s: there
        # are not four times 0.2 s more.
        (6.2, (0.3, 0.9), 6),
        (100, (0.3, 0.9), 16),
        (0.1, (0.3, 0.9), 2),
        # More files took no longer, by chance.
        (3, (0.3, 0.2), 16),
    ],
)
def test_as_many_files_are_pulled_as_there_is_time_for(seconds, tried_s, n_files):
    assert files_that_fit(seconds, tried_s) == n_files


def test_a_program_that_fails_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pulls, "NEEDED_BYTES", 0)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(TransferError, match="pull: code 1"):
        measure_pulls(0.1, tmp_path, 1.0)
    assert list(tmp_path.iterdir()) == []
