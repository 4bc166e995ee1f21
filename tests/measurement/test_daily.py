"""Estimates for periods of the day, from when samples were taken by the clocks of a zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

import datacollect as dc
from datacollect.commands.main import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOURS = ["08:00", "20:00"]
ZURICH = "Europe/Zurich"


def _samples(when: Sequence[str], bandwidths: Sequence[float], source: str = "S") -> pd.DataFrame:
    zone = ZoneInfo(ZURICH)
    times = [datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() for text in when]
    return pd.DataFrame(
        {"from": source, "to": "D", "time_s": times, "bandwidth_bytes_per_s": bandwidths}
    )


def test_samples_count_in_the_period_in_which_they_were_taken() -> None:
    """By day 10 and 30, by night 100, 200 and 300: one of them before 08:00."""
    samples = _samples(
        ["2026-11-02T08:00", "2026-11-02T19:59", "2026-11-02T20:00", "2026-11-03T07:59",
         "2026-11-03T23:00"],
        [10.0, 30.0, 100.0, 300.0, 200.0],
    )  # fmt: skip
    found = dc.estimate(samples, "median", daily=HOURS, timezone=ZURICH)
    assert found["period"].tolist() == [0, 1]
    assert found["bandwidth_bytes_per_s"].tolist() == [20.0, 200.0]
    assert found["n_samples"].tolist() == [2, 3]
    # Ages count from the newest sample of all: by day 27 h 01 min.
    assert found["age_s"].tolist() == [27 * 3600 + 60, 0]


def test_hours_are_those_of_the_zone_in_summer_and_in_winter() -> None:
    """06:30 UTC is 08:30 in Zurich in July, and 07:30 in December."""
    times = [datetime(2025, month, 1, 6, 30, tzinfo=UTC).timestamp() for month in (7, 12)]
    samples = pd.DataFrame(
        {"from": "S", "to": "D", "time_s": times, "bandwidth_bytes_per_s": [10.0, 20.0]}
    )
    found = dc.estimate(samples, "last", daily=HOURS, timezone=ZURICH)
    assert found["bandwidth_bytes_per_s"].tolist() == [10.0, 20.0]  # by day, by night


def test_a_pair_without_samples_in_a_period_is_named() -> None:
    samples = pd.concat(
        [
            _samples(["2026-11-02T09:00", "2026-11-02T21:00"], [1.0, 2.0]),
            _samples(["2026-11-02T21:00"], [2.0], "K"),
        ]
    )
    with pytest.raises(dc.ProblemError, match=r"'K' -> 'D' was never measured .* from 08:00 on"):
        dc.estimate(samples, daily=HOURS, timezone=ZURICH)


@pytest.mark.parametrize(
    ("daily", "timezone", "message"),
    [
        (HOURS, None, "daily and timezone belong together"),
        (["20:00", "08:00"], ZURICH, "must be later than 20:00"),
        (["8"], ZURICH, "must be an hour of the day"),
        (HOURS, "Mars", "timezone must be an IANA name"),
    ],
)
def test_what_are_no_hours_is_refused(daily: list[str], timezone: str | None, message: str) -> None:
    samples = _samples(["2026-11-02T09:00", "2026-11-02T21:00"], [1.0, 2.0])
    with pytest.raises(dc.ProblemError, match=message):
        dc.estimate(samples, daily=daily, timezone=timezone)


def test_times_that_are_no_dates_are_refused() -> None:
    samples = _samples(["2026-11-02T09:00"], [1.0]).assign(time_s=60.0)
    with pytest.raises(dc.ProblemError, match="daily needs samples whose times are seconds since"):
        dc.estimate(samples, daily=HOURS, timezone=ZURICH)


def test_the_command_writes_what_a_problem_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples.csv").write_text(
        "from,to,time,bandwidth_bytes_per_s\n"
        "S,D,2026-11-02T09:00+01:00,10\nS,D,2026-11-02T21:00+01:00,100\n"
    )
    daily = ["--daily", "08:00,20:00", "--timezone", ZURICH]
    assert run(["estimate", "samples.csv", *daily, "-o", "grid.csv"]) == 0
    assert (tmp_path / "grid.csv").read_text() == (
        "from,to,period,bandwidth_bytes_per_s\nS,D,0,10.0\nS,D,1,100.0\n"
    )
    problem = dc.Problem.from_dict(
        {
            "destination": "D",
            "bandwidth_csv": "grid.csv",
            "start": "2026-11-22T12:00+01:00",
            "daily_periods": HOURS,
            "hosts": {"S": {"backlog_bytes": 1}, "D": {}},
        },
        tmp_path,
    )
    assert problem.bandwidth_bytes_per_s[:3, 0].tolist() == [10.0, 100.0, 10.0]
    assert run(["estimate", "samples.csv", "--daily", "08:00"]) == 2


def test_what_the_command_writes_is_planned_beside_windows_and_limits_by_week_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Friday 19:00 the link has 100 B/s, and S 20 B/s at first; it is open from 20:00 on.

    Until midnight 4 h of 20 B/s are 288 kB; on Saturday S has 50 B/s: 72 kB take 24 min.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples.csv").write_text(
        "from,to,time,bandwidth_bytes_per_s\n"
        "S,D,2026-11-02T09:00+01:00,10\nS,D,2026-11-02T21:00+01:00,100\n"
    )
    daily = ["--daily", "08:00,18:00", "--timezone", ZURICH]
    assert run(["estimate", "samples.csv", *daily, "-o", "grid.csv"]) == 0
    (tmp_path / "p.toml").write_text(
        'destination = "D"\nbandwidth_csv = "grid.csv"\nstart = 2026-11-27T19:00:00\n'
        f'timezone = "{ZURICH}"\ndaily_periods = ["08:00", "18:00"]\n'
        '[hosts.S]\nbacklog_bytes = 360_000\nopen = "20:00-06:00"\n'
        'uplink_bytes_per_s = "Mo-Fr 08:00 10 B/s, Mo-Fr 20:00 20 B/s, Sa Su 50 B/s"\n[hosts.D]\n'
    )
    assert run(["plan", "p.toml", "-o", "plan.json"]) == 0
    assert run(["check", "p.toml", "plan.json"]) == 0
    assert dc.Schedule.from_file("plan.json").makespan_s == pytest.approx(5 * 3600 + 24 * 60)


@pytest.mark.parametrize("time_s", [1.7e12, 1e30, 1e300])
def test_times_that_no_clock_shows_are_refused(time_s: float) -> None:
    """Milliseconds, for one."""
    samples = _samples(["2026-11-02T09:00", "2026-11-02T21:00"], [1.0, 2.0])
    with pytest.raises(dc.ProblemError, match=r"time_s must be seconds .* divide milli"):
        dc.estimate(samples.assign(time_s=time_s), daily=HOURS, timezone=ZURICH)
