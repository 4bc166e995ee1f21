"""The clock of a feed's stamps, where that of the host is set meanwhile."""

from __future__ import annotations

import time

import pytest

from datacollect.feeds.formats.clock import SteadyClock


@pytest.mark.parametrize("at_ns", [0, 4 * 10**18])
def test_who_sets_the_host_s_clock_changes_no_stamp(monkeypatch, at_ns):
    clock = SteadyClock()
    before_ns = clock.now_ns()
    monkeypatch.setattr(time, "time_ns", lambda: at_ns)
    assert before_ns <= clock.now_ns() < before_ns + 60 * 10**9
