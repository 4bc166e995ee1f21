"""Variants of TCP after one loss in ns-3: what is made of when messages were there."""

from __future__ import annotations

import evlbi
import numpy as np
import pytest
from instances.ns3_networks import needs_ns3


def test_timely_again_is_when_the_last_late_message_is_there():
    """A message a second, 0.1 s under way; after a loss at 3.05 s 0.9 and 0.5 s: there at 4.5 s."""
    made_s = np.arange(10.0)
    there_s = made_s + 0.1
    there_s[3:5] = 3.9, 4.5
    found = evlbi.judged("NewReno", 1e6, made_s, there_s, 3.05, 2 * 95_000.0)
    assert found.timely_after_s == pytest.approx(1.45)
    assert (found.worst_delay_s, found.late_bytes) == pytest.approx((0.9, 0.8e6))
    assert found.window_ratio == pytest.approx(2.0)


def test_whoever_is_late_to_the_end_is_not_timely_yet():
    made_s = np.arange(10.0)
    there_s = made_s + np.where(made_s < 3, 0.1, 0.9)
    assert evlbi.judged("NewReno", 1e6, made_s, there_s, 3.05, 1e5).timely_after_s is None


def test_times_are_compared_with_newrenos():
    found = [
        evlbi.AfterLoss("NewReno", 1.0, 80.0, 9.0, 5e7),
        evlbi.AfterLoss("Htcp", 1.0, 10.0, 2.0, 1e7),
    ]
    text = evlbi.table(found)
    assert "| Htcp | 1.00 | 10.00 | 2.00 | 10.00 | 8.0 | 14, 40 | 59 |" in text


@pytest.mark.slow
@needs_ns3
def test_a_loss_halves_newrenos_window_and_is_made_good_as_the_equations_say():
    """8 Mbit/s: BDP 66 segments, so 33 round trips with an acknowledgement for every second
    segment, twice that until the rate is back, and twice again until all is timely."""
    rate = 1e6
    found = evlbi.in_a_process("NewReno", 8 * rate / 1e6)
    assert found.window_ratio == pytest.approx(1.0, abs=0.2)
    expected_s = evlbi.regain_s(rate, evlbi.RTT_S, link_ratio=evlbi.LINK_RATIO, delayed_acks=True)
    assert found.timely_after_s == pytest.approx(expected_s, rel=0.35)
