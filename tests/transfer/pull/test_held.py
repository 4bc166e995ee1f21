"""Why pulls take longer than promised, by what was seen: by hand."""

from __future__ import annotations

from itertools import accumulate

import pytest

from datacollect.transfer.pull.held import is_late, shown_by, why_late
from datacollect.transfer.store.history import History, PlannedRoute
from datacollect.transfer.store.promises import ShownRate


def history(planned, **rates):
    """Return a start whose routes, such as S_R, brought so much in each second."""
    n = max(map(len, rates.values()))
    found = History("coordinated", times_s=[float(i) for i in range(n + 1)])
    for name, of_route in rates.items():
        every = [0, *of_route, *[0] * (n - len(of_route))]
        found.arrived_bytes[tuple(name.split("_"))] = list(accumulate(every))
    found.planned = [
        PlannedRoute(tuple(name.split("_")), rate * 10, 0.0, 10.0) for name, rate in planned.items()
    ]
    return found


def test_shown_is_the_highest_median_over_five_seconds():
    """S1: a second of 90 is none of a median over five; R passes on what it gets."""
    found = shown_by(history({}, S1=[10] * 6 + [90] + [20] * 6, S2_R=[5] * 13), "D")
    assert found == (
        ShownRate("", "D", 25.0),
        ShownRate("", "R", 5.0),
        ShownRate("R", "", 5.0),
        ShownRate("R", "D", 5.0),
        ShownRate("S1", "", 20.0),
        ShownRate("S1", "D", 20.0),
        ShownRate("S2", "", 5.0),
        ShownRate("S2", "R", 5.0),
    )


def test_a_start_of_less_than_five_seconds_shows_nothing():
    assert shown_by(history({}, S1=[10] * 4), "D") == ()
    assert shown_by(History(), "D") == ()


def test_a_host_that_sends_less_over_all_its_links_is_named_before_them():
    """S1 was to send 100 over two links, and sends 60: one line."""
    (why,) = why_late(history({"S1": 50, "S1_R": 50}, S1=[30] * 20, S1_R=[30] * 20), "D")
    assert why.startswith("S1 sent 480 bit/s over all its links, 800 bit/s planned")
    assert "or its own" in why


def test_a_destination_that_receives_less_is_named():
    (why,) = why_late(history({"S1": 50, "S2": 50}, S1=[30] * 20, S2=[30] * 20), "D")
    assert why.startswith("D received 480 bit/s over all its links, 800 bit/s planned")


def test_a_slow_link_alone_has_others_on_it():
    """S1 keeps what it was to bring; S2 brings a third. What D receives is little less."""
    planned = {"S1": 300, "S2": 30}
    (why,) = why_late(history(planned, S1=[300] * 20, S2=[10] * 20), "D")
    assert why.startswith("S2 → D carried 80 bit/s, 240 bit/s planned: others' traffic")


def test_two_links_that_are_slow_beside_each_other_share_a_wire():
    """Each of two relays' links gets 10 alone and 5 beside the other; 12 were planned."""
    one = [10] * 6 + [5] * 10
    other = [0] * 6 + [5] * 10 + [10] * 6
    planned = {"S1": 12, "S2": 12, "S3": 900}
    (why,) = why_late(history(planned, S1=one, S2=other, S3=[900] * 22), "D")
    assert why.startswith("S1 → D and S2 → D share a wire")


def test_troubles_on_the_way_are_counted():
    found = history({"S1": 50}, S1=[50] * 20)
    found.troubles = [(1.0, "connection lost"), (2.0, "connection lost"), (3.0, "files changed")]
    assert why_late(found, "D") == ("connection lost, 2 times", "files changed")


def test_without_a_plan_nothing_is_said():
    assert why_late(history({}, S1=[30] * 20), "D") == ()


@pytest.mark.parametrize(
    ("took_s", "promised_s", "p90_s", "late"),
    [
        (13.0, 10.0, 12.0, True),
        (12.0, 10.0, 12.0, False),
        (11.0, 10.0, None, False),
        (12.0, 10.0, None, True),
        (99.0, None, None, False),
        (0.0, 0.0, None, False),
    ],
)
def test_late_is_later_than_the_interval_or_a_seventh_more(took_s, promised_s, p90_s, late):
    assert is_late(took_s, promised_s, p90_s) is late
