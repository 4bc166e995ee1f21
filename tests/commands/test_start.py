"""Starts as people write them: hours of the day in problem files, and ``plan --start``."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from datacollect.files import clock

PROBLEM = """
destination = "D"
timezone = "Europe/Zurich"
[hosts.S]
backlog_bytes = 72_000
open = "20:00-06:00"
[hosts.D]
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 10
"""
HOUR = 'start = "20:00"\n'


@pytest.fixture
def at(monkeypatch):
    """Sunday, 29 November 2026, 19:15:30 in Zurich; later by some hours if it is called."""

    def later(hours):
        when = datetime(2026, 11, 29 + (18 + hours) // 24, (18 + hours) % 24, 15, 30, tzinfo=UTC)
        monkeypatch.setattr(clock, "present", lambda: when)

    later(0)
    return later


def planned(call, *options):
    code, out, err = call("plan", "p.toml", "--json", "-o", "plan.json", *options)
    assert code == 0, err
    return json.loads(out)


def test_an_hour_alone_is_the_next_one(here, call, at):
    (here / "p.toml").write_text(HOUR + PROBLEM)
    assert planned(call)["starts_at"] == "2026-11-29T20:00:00+01:00"
    at(2)
    assert planned(call, "--force")["starts_at"] == "2026-11-30T20:00:00+01:00"


def test_whoever_reads_the_plan_later_counts_from_its_start(here, call, at):
    (here / "p.toml").write_text(HOUR + PROBLEM)
    planned(call)
    at(2)  # after the start, tonight
    code, _, err = call("check", "p.toml", "plan.json")
    assert (code, "another problem" in err) == (0, False), err
    found = json.loads(call("pulls", "p.toml", "plan.json", "--json")[1])
    assert found["starts_at"] == "2026-11-29T20:00:00+01:00"


def test_a_plan_may_start_at_another_time_than_its_problem(here, call, at):
    for start in ("", HOUR, "start = 2026-01-01T20:00:00\n"):
        (here / "p.toml").write_text(start + PROBLEM)
        found = planned(call, "--start", "Mon 21:00", "--force")
        assert found["starts_at"] == "2026-11-30T21:00:00+01:00"
        code, _, err = call("check", "p.toml", "plan.json")
        assert (code, "another problem" in err) == (0, False), err


def test_a_start_that_is_written_for_good_stays_that_of_the_problem(here, call, at):
    (here / "p.toml").write_text("start = 2026-01-01T20:00:00\n" + PROBLEM)
    planned(call)
    assert "starts_at" not in json.loads((here / "plan.json").read_text())


def test_an_hour_needs_a_zone_and_other_texts_are_refused(here, call, at):
    (here / "p.toml").write_text(HOUR + PROBLEM.replace('timezone = "Europe/Zurich"', ""))
    code, _, err = call("plan", "p.toml")
    assert code == 2
    assert "start = '20:00' is an hour of the day, so it needs a time zone" in " ".join(err.split())
    (here / "p.toml").write_text('start = "eight"\n' + PROBLEM)
    code, _, err = call("plan", "p.toml")
    assert code == 2
    assert '"20:00" for the next such hour' in " ".join(err.split())
