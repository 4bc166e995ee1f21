"""Rates of interfaces between readings of their counters."""

from __future__ import annotations

from datacollect.measurement.series.interface_rates import interface_rates


def reading(at_s, **interfaces):
    return {"at_s": at_s, "interfaces": {name: list(both) for name, both in interfaces.items()}}


def test_rates_are_bytes_over_the_time_between_readings():
    ages_s, rates = interface_rates(
        [reading(10.0, eth0=(0, 100)), reading(12.0, eth0=(50, 100)), reading(16.0, eth0=(50, 500))]
    )
    assert ages_s == [-4.0, 0.0]
    assert rates == {"eth0": [[25.0, 0.0], [0.0, 100.0]]}


def test_counters_and_clocks_that_begin_anew_give_no_rate():
    """A host that has restarted: neither a negative rate nor a huge one."""
    _, rates = interface_rates(
        [reading(10.0, eth0=(90, 90)), reading(12.0, eth0=(5, 100)), reading(1.0, eth0=(7, 200))]
    )
    assert rates == {"eth0": [[None, None], [5.0, None]]}


def test_an_interface_that_has_just_come_has_a_gap_before():
    ages_s, rates = interface_rates(
        [reading(0.0), reading(2.0, wg0=(1, 1)), reading(4.0, wg0=(5, 1))]
    )
    assert rates == {"wg0": [[None, 2.0], [None, 0.0]]}
    assert interface_rates([reading(0.0, eth0=(1, 1))]) == ([], {})
    assert interface_rates([]) == ([], {})
    assert ages_s == [-2.0, 0.0]
