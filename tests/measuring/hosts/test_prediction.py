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
    assert host_costs.predicted_on_one_machine(profile()) == pytest.approx(2 / 7 * GIB)


def test_both_ends_wait_as_long_as_they_did_into_memory():
    """Three tenths of 2 / 7 GiB/s by one connection, four fifths by all; by 4 the middle."""
    uses = (PullUse(1, 0.3, 0.3, 0.3), PullUse(16, 0.8, 0.8, 0.8))
    idle = profile(pulls=uses)
    for connections, share in ((1, 0.3), (4, 0.55), (16, 0.8), (None, 0.8)):
        predicted = host_costs.predicted_on_one_machine(idle, connections)
        assert predicted == pytest.approx(share * 2 / 7 * GIB)


def test_what_pulls_took_of_processors_counts_instead_of_both_ends_apart():
    """2 s per GiB by one connection, 3 by four, and 2 to write; all of two processors, or half."""
    idle = profile(pulls=(PullUse(1, 1, 1, 1, 2, 2, 2), PullUse(4, 1, 1, 1, 3, 3, 3)))
    for connections, seconds in ((1, 2), (2, 2.5), (4, 3), (None, 3)):
        predicted = host_costs.predicted_on_one_machine(idle, connections)
        assert predicted == pytest.approx(2 / (seconds + 2) * GIB)


def test_the_middle_of_pulls_by_each_number_is_shown(monkeypatch, tmp_path):
    came = iter([99, 1, 2, 3, 4, 5, 6, 7, 8, 3, 4, 5, 6])
    monkeypatch.setattr(
        host_costs,
        "pulled",
        lambda _, __, by: [host_costs.Pulled(3e9, next(came) * 1e9, 0.02, n) for n in by],
    )
    uses = (PullUse(1, 0.3, 0.3, 0.3, 2, 2, 2), PullUse(16, 0.8, 0.8, 0.8, 3, 3, 3))
    row, (_, one, *_, usual) = host_costs.pull_table(tmp_path, profile(pulls=uses))
    assert row.came == "median 32.5%, worst 50.0% of 4"
    assert one == "| 1 | 30% | 2.00 | 24.00 | 8.00, 40.00, 24.00 | +0% | 2% |"
    assert usual == "| the usual | 80% | 3.00 | 24.00 | 32.00, 64.00, 48.00 | -50% | 2% |"


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
