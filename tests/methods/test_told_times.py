"""Deadlines, releases and ends are told by the clock where there is one, never as 1.805e+04 s."""

from __future__ import annotations

import re

import pytest

import datacollect as dc
from datacollect.files.clock import deadline_text, instant_text

HOUR_S = 3600.0


def _hours_of_data(hours: int, *, start: bool) -> dc.Problem:
    """S sends 1 byte/s to D, and has so many hours of it."""
    tree = {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": hours * 3600}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 1.0}],
    }
    return dc.Problem.from_dict(tree | ({"start": "2026-11-22T20:00+01:00"} if start else {}))


@pytest.mark.parametrize("slot_s", [None, 1800.0], ids=["pipelined", "slotted"])
def test_a_deadline_is_missed_by_the_clock(slot_s: float | None) -> None:
    """Ten hours from 20:00 end at 06:00; by 01:00 they cannot."""
    problem = _hours_of_data(10, start=True)
    with pytest.raises(dc.InfeasibleError) as caught:
        dc.coordinated(problem, slot_s=slot_s, deadline_s=5 * HOUR_S)
    text = str(caught.value)
    assert text.startswith("the deadline, Mon 2026-11-23 01:00:00 +01:00 (18000 s after the start)")
    assert "Mon 2026-11-23 06:00:00 +01:00 (36000 s after the start)" in text
    assert "5 h 00 min later" in text


@pytest.mark.parametrize("slot_s", [None, 1800.0], ids=["pipelined", "slotted"])
def test_seconds_are_told_without_exponents(slot_s: float | None) -> None:
    problem = _hours_of_data(1000, start=False)
    with pytest.raises(dc.InfeasibleError, match=r"^deadline_s = 1800000 ") as caught:
        dc.coordinated(problem, slot_s=slot_s, deadline_s=500 * HOUR_S)
    assert "3600000 s" in str(caught.value)
    assert not re.search(r"\de[+-]\d", str(caught.value))


def test_a_release_is_told_by_the_clock() -> None:
    """The plan leaves at once, the problem's data are there at 22:00."""
    problem = _hours_of_data(1, start=True)
    plan = dc.direct(problem)
    late = problem.replace(release_s=[2 * HOUR_S, 0.0])
    with pytest.raises(dc.ScheduleError, match=r"'S' at Sun 2026-11-22 22:00:00 \+01:00 \(7200 s"):
        plan.check(late)


def test_what_binds_from_a_time_on_is_told_by_the_clock() -> None:
    """S may send from 22:00 on, which is when its link begins to bind."""
    problem = _hours_of_data(1, start=True).replace(release_s=[2 * HOUR_S, 0.0])
    assert "from Sun 2026-11-22 22:00:00 +01:00 on" in dc.coordinated(problem).bottleneck.text


def test_instants_have_ten_digits_and_no_exponent() -> None:
    assert instant_text(18_050.0, None) == "18050 s"
    assert instant_text(1.7e9 + 0.25, None) == "1700000000 s"
    assert deadline_text(1.5, None) == "deadline_s = 1.5"
