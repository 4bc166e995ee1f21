"""The clock of a feed's stamps, where that of the host is set meanwhile."""

from __future__ import annotations

import time

from datacollect.feeds.formats.clock import SteadyClock


def test_who_sets_the_host_s_clock_changes_no_stamp(monkeypatch):
    clock = SteadyClock()
    before_ns = clock.now_ns()
    for off_ns in (-(10**18), 10**18):
        monkeypatch.setattr(time, "time_ns", lambda off_ns=off_ns: before_ns + off_ns)
        assert before_ns <= clock.now_ns() < before_ns + 60 * 10**9
        before_ns = clock.now_ns()
