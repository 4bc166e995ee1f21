"""Reports of a receiver that are old, impossible or forged: they count as none."""

from __future__ import annotations

from typing import Any

import pytest

from datacollect.feeds.formats.udp_settings import UdpSettings
from datacollect.feeds.udp.reports import ReceiverReport
from datacollect.feeds.udp.sending import Sending

SIZE = 100


def told(**changes: Any) -> dict[str, Any]:
    """Return the second report of a receiver that has all of 8 packets."""
    return ReceiverReport(2, 8, 0, 0, 0, 8, 0, 0, 0).to_dict() | changes


def sent() -> Sending:
    """Return a sender of 10 packets, of which 5 are known to have come."""
    found = Sending(UdpSettings(), SIZE, 1000.0, 100, "stop", 0.0)
    found.connected(0.0, bytes(16))
    found.make(bytes(10 * SIZE), 0.0, 0)
    now_s = 0.0
    while found.n_waiting:
        found.due(now_s)
        now_s += 0.001
    found.report(0.1, ReceiverReport.from_dict(told(number=1, n_packets=5, n_received=5)))
    assert (found.n_sent, found.n_odd_reports) == (10, 0)
    return found


def test_a_report_that_can_be_counts() -> None:
    found = sent()
    found.report(0.2, ReceiverReport.from_dict(told()))
    found.report(0.3, ReceiverReport.from_dict(told(number=3, n_packets=10, n_received=10)))
    assert found.n_odd_reports == 0
    assert found.have_arrived


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [],
        {},
        told(number=-1),
        told(number=1),  # it has come before
        told(n_packets=4),  # fewer than before
        told(n_packets=11),  # more than were sent
        told(n_packets=10**30),
        told(n_packets=True),
        told(n_lost=9),
        told(n_lost=-1),
        told(n_packets="8"),
    ],
)
def test_one_that_cannot_be_counts_as_none(tree: object) -> None:
    found = sent()
    found.report(1.0, ReceiverReport.from_dict(tree))
    assert found.n_odd_reports == 1
    assert not found.have_arrived
    # Nothing else is heard: that is an alarm, whatever such reports say.
    found.look(1.2)
    assert found.alarm is not None
    assert "has not reported" in found.alarm
