"""Deadlines as people write them, and times with units, wherever an option takes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from datacollect.commands import instants

TWO = """
destination = "D"
[hosts.D]
[hosts.S]
backlog_bytes = 10_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 100_000.0
"""
ZURICH = 'timezone = "Europe/Zurich"\nstart = 2026-11-28T20:00:00\n'


@pytest.fixture
def present(monkeypatch):
    """Sunday, 29 November 2026, 20:15:30 in Zurich, where this machine stands, too."""

    def at(*when):
        monkeypatch.setattr(instants, "now", lambda: datetime(*when, tzinfo=UTC))

    monkeypatch.setenv("TZ", "Europe/Zurich")
    at(2026, 11, 29, 19, 15, 30)
    return at


@pytest.fixture
def planned(here, call, present):
    """Plan a problem, with a start or without, by a deadline; return it in seconds."""

    def plan(deadline, start=""):
        (here / "p.toml").write_text(start + TWO)
        code, out, err = call("plan", "p.toml", "--deadline", deadline, "--json")
        assert code == 0, err
        return json.loads(out)["deadline_s"], err

    return plan


@pytest.mark.parametrize(
    ("deadline", "expected_h"),
    [
        # The start is Saturday 20:00: tomorrow is counted from now, Sunday, days from the start.
        ("tomorrow 18:00", 46.0),
        ("today 23:30", 27.5),
        ("Sun 18:00", 22.0),
        ("Sat 21:00", 1.0),
        ("18:00", 22.0),
        ("2026-11-29T18:00", 22.0),
        ("20 h", 20.0),
    ],
)
def test_deadlines_of_a_problem_with_a_start(planned, deadline, expected_h):
    deadline_s, err = planned(deadline, ZURICH)
    assert deadline_s == 3600 * expected_h
    assert "from now" not in err
    # Who means the problem's own tomorrow would not notice else.
    is_told = "the problem starts on 2026-11-28, 1 day ago" in " ".join(err.split())
    assert is_told == deadline.startswith(("today", "tomorrow"))


@pytest.mark.parametrize(
    ("deadline", "expected_s"),
    [
        ("tomorrow 18:00", 22 * 3600 - 15 * 60 - 30),
        ("Mon 18:00", 22 * 3600 - 15 * 60 - 30),
        ("2026-11-30T18:00", 22 * 3600 - 15 * 60 - 30),
        ("2026-11-30T17:00+00:00", 22 * 3600 - 15 * 60 - 30),
        ("23:15:30", 3 * 3600),
    ],
)
def test_a_problem_without_a_start_begins_now_on_this_machines_clocks(
    planned, deadline, expected_s
):
    deadline_s, err = planned(deadline)
    assert deadline_s == expected_s
    assert "counts from now, Sun 2026-11-29 20:15:30 +01:00" in " ".join(err.split())


def test_clocks_that_change_on_the_way_count(planned, present):
    """Sunday, 28 March 2027, 02:00 becomes 03:00 in Zurich: 18:00 is 20 hours after 21:00."""
    present(2027, 3, 27, 20, 0)
    assert planned("Sun 18:00")[0] == 20 * 3600


def test_an_hour_that_clocks_skip_and_an_instant_that_is_past_are_refused(here, call, present):
    present(2027, 3, 27, 20, 0)
    (here / "p.toml").write_text(TWO)
    code, _, err = call("plan", "p.toml", "--deadline", "tomorrow 02:30")
    assert code == 2
    assert "--deadline: clocks in Europe/Zurich skip 2027-03-28 02:30" in " ".join(err.split())
    code, _, err = call("plan", "p.toml", "--deadline", "today 18:00")
    assert code == 2
    said = " ".join(err.split())
    assert "--deadline must not lie before the start" in said
    assert "got 'today 18:00'; give a later instant" in said


def test_a_deadline_is_shown_as_makespans_are(here, call, present):
    (here / "p.toml").write_text(TWO)
    out = call("plan", "p.toml", "--deadline", "tomorrow 18:00")[1]
    assert "deadline      21 h 44 min (78270 s)\n" in out


@pytest.mark.parametrize(
    ("start", "expected"),
    [("18:00", "2026-11-30T18:00:00+01:00"), ("23:15", "2026-11-29T23:15:00+01:00")],
)
def test_a_start_may_be_the_next_such_hour(here, call, present, start, expected):
    """It is Sunday, 20:15:30."""
    (here / "t.csv").write_text("from,to,time_s,bandwidth_mbit_per_s\nS,D,0,80\n")
    to_d = ("--destination", "D", "--backlog", "S=1 GB", "-o", "out.json")
    zone = ("--start", start, "--timezone", "Europe/Zurich")
    code, _, err = call("estimate", "t.csv", *to_d, *zone)
    assert code == 0, err
    assert json.loads((here / "out.json").read_text())["start"] == expected


def test_the_machines_zone_is_that_of_its_clock_or_utc(monkeypatch, tmp_path):
    monkeypatch.setattr(instants, "LOCAL_TIME", tmp_path / "localtime")
    monkeypatch.delenv("TZ", raising=False)
    assert instants.local_zone() is UTC
    monkeypatch.setenv("TZ", ":America/New_York")
    assert str(instants.local_zone()) == "America/New_York"
    monkeypatch.setenv("TZ", "no/such/zone")
    assert instants.local_zone() is UTC


@pytest.mark.parametrize("text", ["soon", "Sun 6pm", "25:00", "5 m"])
def test_what_is_understood_is_listed(here, call, text):
    (here / "p.toml").write_text(TWO)
    code, _, err = call("plan", "p.toml", "--deadline", text)
    assert code == 2
    for each in (" 18:00", '"tomorrow 18:00"', '"Sun 18:00"', "2026-11-23T18:00"):
        assert each in err
    assert call("plan", "--help")[1].count("tomorrow") == 2  # --deadline, --most-by


# Times with units -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["5 min", "300", "300 s", "0.5e1 min"])
def test_options_of_times_take_units(here, call, text):
    (here / "p.toml").write_text(TWO)
    code, out, _ = call("plan", "p.toml", "--slot", text, "--time-limit", "1 h")
    assert code == 0
    assert "slots of 5 min 00 s" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5 m", "'m' may be minutes or months; write min or d"),
        ("5 GB", "'GB' is no unit of time"),
        ("-5 min", "write a number"),
        ("0 min", "must be a finite number > 0, got 0"),
        ("1,5 h", "write a point"),
    ],
)
def test_times_that_are_none_are_refused(here, call, text, said):
    (here / "p.toml").write_text(TWO)
    code, _, err = call("plan", "p.toml", f"--slot={text}")
    assert code == 2
    assert "Invalid value for '--slot'" in err
    assert said in err or "must be a finite number > 0" in err


def test_limits_of_options_hold_for_times_with_units(call):
    code, _, err = call("measure", "tcp", "hosts.toml", "--seconds", "2 min")
    assert code == 2
    assert "--seconds" in err
    assert "60" in err
