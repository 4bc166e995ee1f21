"""Days and hours as people say them."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.files.spoken_times import DAYS, is_spoken_time, spoken_time


def at(*when):
    return datetime(*when)  # noqa: DTZ001 - what clocks show


SUNDAY = at(2026, 11, 29, 20, 15)
START = at(2026, 12, 2, 9, 0)  # the Wednesday after


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today 21:00", at(2026, 11, 29, 21)),
        ("tomorrow 6:30", at(2026, 11, 30, 6, 30)),
        ("Tomorrow at 18:00", at(2026, 11, 30, 18)),
        ("tomorrow, 18:00:30", at(2026, 11, 30, 18, 0, 30)),
        # Days of the week are those after the start, which is later than now.
        ("Sun 18:00", at(2026, 12, 6, 18)),
        ("wed 10:00", at(2026, 12, 2, 10)),
        ("Wed 9:00", at(2026, 12, 9, 9)),
        ("We. 08:00", at(2026, 12, 9, 8)),
        ("tuesday 00:00", at(2026, 12, 8)),
    ],
)
def test_a_day_and_an_hour(text, expected):
    assert is_spoken_time(text)
    assert spoken_time(text, SUNDAY, START) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "18:00", "tomorrow", "Sun", "Sun 25:00", "Sun 18:60", "Sun 18", "S 18:00"),
        *("sunny 18:00", "yesterday 18:00", "in 3 days", "Sun 6pm", "Sun18:00", "Sun ١٨:00"),
        *("2026-11-23T18:00", "1.5 h", "5 min 18:00"),
    ],
)
def test_other_texts_are_none(text):
    assert not is_spoken_time(text)


@given(
    st.sampled_from(DAYS),
    st.integers(0, 23),
    st.integers(0, 59),
    st.datetimes(at(2000, 1, 1), at(2100, 1, 1)),
)
def test_a_day_of_the_week_is_the_first_one_after(day, hour, minute, after):
    found = spoken_time(f"{day} {hour:02}:{minute:02}", SUNDAY, after)
    assert f"{found:%A}".lower() == day
    assert (found.hour, found.minute, found.second) == (hour, minute, 0)
    assert 0 < (found - after).total_seconds() <= 7 * 86_400
