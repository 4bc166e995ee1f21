"""A pull over loopback beside what a profile of this machine predicts."""

from __future__ import annotations

import sys
from dataclasses import replace

import host_costs
import pytest
from conftest import NO_PROC
from instances.host_profiles import GIB, profile

from datacollect.machine.parts import IDLE_BELOW, TLS, Rate

# On an idle machine: far more than the benchmark wants, for one short calibration.
WITHIN = 0.5


def test_both_ends_on_one_machine_share_its_processors():
    """2 to send, 3 to receive, 2 to write: 2 / 7 GiB/s, and the disk writes 0.5."""
    assert host_costs.predicted_on_one_machine(profile()) == pytest.approx(2 / 7 * GIB)


def test_what_several_connections_carried_counts_where_both_ends_wait_for_each_other():
    """A GiB in 4 s over TLS, waits included, and 2 s to write it, by two processors: 5 s."""
    idle = profile()
    seen = Rate(TLS, GIB / 4, GIB / 4, GIB / 4, at_once=4)
    parts = replace(idle.parts, rates=(*idle.parts.rates, seen))
    predicted = host_costs.predicted_on_one_machine(replace(idle, parts=parts))
    assert predicted == pytest.approx(GIB / 5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason=NO_PROC)
def test_a_pull_takes_what_was_predicted_where_the_machine_is_idle(tmp_path, capsys):
    found, row = host_costs.calibrated(tmp_path, 10.0)
    pulled = host_costs.pulled(tmp_path, found)
    busy = max(pulled.load, row.load)
    with capsys.disabled():
        print(f"\na pull: {pulled.error:+.0%} predicted, others {busy:.0%} busy")  # noqa: T201
    assert pulled.bytes_per_s > 0
    if busy < IDLE_BELOW:
        assert abs(pulled.error) < WITHIN
