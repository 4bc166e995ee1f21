"""A pull over loopback beside what a profile of this machine predicts."""

from __future__ import annotations

import sys

import host_costs
import pytest
from conftest import NO_PROC
from instances.host_profiles import GIB, profile

from datacollect.machine.parts import IDLE_BELOW, PullUse
from datacollect.measuring.hosts.seen import gives_memory_back

# On an idle machine: far more than the benchmark wants, for one short calibration; and more where
# new memory comes from the host of a virtual machine, for which the benchmark prepares.
WITHIN = 1.0 if gives_memory_back() else 0.5


def test_both_ends_on_one_machine_share_its_processors():
    """2 to send, 3 to receive, 2 to write: 2 / 7 GiB/s, and the disk writes 0.5."""
    predicted = host_costs.predicted_on_one_machine(profile())
    assert (predicted.share, predicted.s_per_gib) == pytest.approx((1, 7))
    assert predicted.bytes_per_s == pytest.approx(3 * (2 / 7 * GIB,))


def test_both_ends_wait_as_long_as_they_did_into_memory():
    """Three tenths of 2 / 7 GiB/s by one connection, four fifths by all; by 4 the middle."""
    uses = (PullUse(1, 0.3, 0.3, 0.3), PullUse(16, 0.8, 0.8, 0.8))
    idle = profile(pulls=uses)
    for connections, share in ((1, 0.3), (4, 0.55), (16, 0.8), (None, 0.8)):
        predicted = host_costs.predicted_on_one_machine(idle, connections)
        assert predicted.bytes_per_s.value == pytest.approx(share * 2 / 7 * GIB)


def test_what_pulls_took_of_processors_counts_instead_of_both_ends_apart():
    """2 s per GiB by one connection, 3 by four, and 2 to write; all of two processors, or half."""
    idle = profile(pulls=(PullUse(1, 1, 1, 1, 2, 2, 2), PullUse(4, 1, 1, 1, 3, 3, 3)))
    for connections, seconds in ((1, 2), (2, 2.5), (4, 3), (None, 3)):
        predicted = host_costs.predicted_on_one_machine(idle, connections)
        assert predicted.bytes_per_s.value == pytest.approx(2 / (seconds + 2) * GIB)


def test_a_prediction_has_the_range_of_the_repeats():
    """2 s to write. At worst half of two processors and 6 s for each GiB, at best all and 3."""
    idle = profile(pulls=(PullUse(1, 0.8, 0.5, 1, 4, 3, 6),))
    predicted = host_costs.predicted_on_one_machine(idle)
    rate, low, high = predicted.bytes_per_s
    assert (low, rate, high) == pytest.approx((1 / 8 * GIB, 1.6 / 6 * GIB, 2 / 5 * GIB))
    for gib_per_s, is_within in ((0.12, False), (0.13, True), (0.39, True), (0.41, False)):
        assert host_costs.Pulled(predicted, gib_per_s * GIB, 0.0).is_within is is_within


def test_the_middle_of_pulls_by_each_number_is_shown(monkeypatch, tmp_path):
    came = iter([99, 1, 2, 3, 4, 5, 6, 7, 8, 3, 4, 5, 6])
    predicted = host_costs.Prediction(0.8, 3.0, host_costs.Interval(3e9, 1e9, 5e9))
    monkeypatch.setattr(
        host_costs,
        "pulled",
        lambda _, __, by, ___: [
            host_costs.Pulled(predicted, next(came) * 1e9, 0.02, n, 0.7, 3.5) for n in by
        ],
    )
    row, (_, one, *_, usual) = host_costs.pull_table(tmp_path, profile())
    assert row.came == "median 32.5%, worst 50.0% of 4; 3 within their range"
    start = "80% (70%) | 3.00 (3.50) | 24.00 (8.00 to 40.00)"
    assert one == f"| 1 | {start} | 8.00, 40.00, 24.00 | +0% | yes | 2% |"
    assert usual == f"| the usual | {start} | 32.00, 64.00, 48.00 | -50% | no | 2% |"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason=NO_PROC)
def test_a_pull_takes_what_was_predicted_where_the_machine_is_idle(tmp_path, capsys):
    found, row = host_costs.calibrated(tmp_path, 10.0)
    assert [use.connections for use in found.parts.pulls] == [1, 2, 4, 16]
    [pulled] = host_costs.pulled(tmp_path, found)
    busy = max(pulled.load, row.load)
    with capsys.disabled():
        print(f"\na pull: {pulled.error:+.0%} predicted, others {busy:.0%} busy")  # noqa: T201
    assert pulled.bytes_per_s > 0
    if busy < IDLE_BELOW:
        assert abs(pulled.error) < WITHIN
