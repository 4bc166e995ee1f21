"""``datacollect pulls`` of a problem with a clock: when, in seconds and by the clock."""

from __future__ import annotations

import csv
import io
import re
import shlex

import pytest
from instances.command_line import strict_json

# 25 200 bytes at one a second from 20:00 in the night in which clocks go back at 03:00: 7 hours.
PROBLEM = """
destination = "D"
manifest = "files.csv"
start = 2026-10-24T20:00:00
timezone = "Europe/Zurich"
[hosts.S]
[hosts.D]
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 1
"""
STARTS, ENDS = "2026-10-24T20:00:00+02:00", "2026-10-25T02:00:00+01:00"


@pytest.fixture
def planned(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PROBLEM)
    (tmp_path / "files.csv").write_text("host,path,bytes\nS,a,25200\n")
    code, _, err = call("plan", "p.toml", "-o", "plan.json")
    assert code == 0, err
    return tmp_path


def test_the_table_shows_both_and_fits(planned, call):
    _, out, _ = call("pulls", "p.toml", "plan.json")
    assert "0 s" in out
    assert "7 h" in out
    assert "2026-10-24 20:00:00 +02:00  2026-10-25 02:00:00 +01:00" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_has_both(planned, call):
    _, out, _ = call("pulls", "p.toml", "plan.json", "--json")
    found = strict_json(out)
    assert (found["starts_at"], found["ends_at"]) == (STARTS, ENDS)
    (pull,) = found["pulls"]
    assert (pull["finish_s"], pull["starts_at"], pull["finishes_at"]) == (25_200.0, STARTS, ENDS)


def test_csv_has_both(planned, call):
    _, out, _ = call("pulls", "p.toml", "plan.json", "--as", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["starts_at"], row["finishes_at"]) == (STARTS, ENDS)
    assert float(row["finish_s"]) == 25_200


def test_scripts_say_both_in_comments(planned, call):
    url = "https://{host}.example/{path}"
    code, _, err = call("pulls", "p.toml", "plan.json", "--as", "curl", "--url", url, "-o", "out")
    assert code == 0, err
    lines = (planned / "out" / "D.sh").read_text().splitlines()
    # 18:00 UTC on 24 October 2026.
    assert "# The plan begins Sat 2026-10-24 20:00:00 +02:00: DATACOLLECT_START=1792864800" in lines
    at = lines.index("    # Sat 2026-10-24 20:00:00 +02:00")
    assert lines[at + 1].startswith("    { get 0 1 0 25200 25200 S/a ")


def test_without_a_clock_nothing_of_it_is_said(planned, call):
    text = (planned / "p.toml").read_text()
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("start", "timez")))
    (planned / "p.toml").write_text(text)
    for extra in (["--json"], ["--as", "csv"], []):
        _, out, _ = call("pulls", "p.toml", "plan.json", *extra)
        assert "2026" not in out
        assert "_at" not in out.replace("rate_at", "").replace("at_once", "")


def test_who_writes_scripts_is_told_when_the_plan_begins_and_how_to_wait_for_it(planned, call):
    """A script begins when it is started: by day, too, whatever hours the plan keeps."""
    url = "http://{host}.example/{source}/{path}"
    code, out, err = call("pulls", "p.toml", "plan.json", "--as", "curl", "--url", url, "-o", "x")
    assert code == 0, err
    told = " ".join(out.split())
    assert "the plan begins Sat 2026-10-24 20:00:00 +02:00: DATACOLLECT_START=1792864800" in told


WINDOW = """
destination = "D"
manifest = "files.csv"
start = 2026-11-23T05:50:00
timezone = "Europe/Zurich"
[hosts.S]
[hosts.K]
open = "20:00-06:00"
[hosts.D]
[[links]]
from = "S"
to = "K"
bandwidth_bytes_per_s = 1_000_000
[[links]]
from = "K"
to = "D"
bandwidth_bytes_per_s = 1_000_000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 100_000
"""
CURL = ("--as", "curl", "--url", "https://{host}/{source}/{path}", "-o", "scripts")


@pytest.mark.slow
def test_scripts_that_miss_a_window_name_the_command_that_helps(tmp_path, call, monkeypatch):
    """K closes at 06:00, ten minutes after the start: 594 MB at 1 MB/s leave six seconds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(WINDOW)
    (tmp_path / "files.csv").write_text("host,path,bytes\nS,a,594000000\n")
    code, _, err = call("plan", "p.toml", "--deadline", "06:30", "-o", "plan.json")
    assert code == 0, err
    assert "the window of 'K' is used to its end" in " ".join(err.split())
    code, _, err = call("pulls", "p.toml", "plan.json", *CURL)
    said = " ".join(err.split())
    assert code == 1
    assert "misses the window of 'K' that closes at Mon 2026-11-23 06:00:00 +01:00 by" in said
    (command,) = re.findall(r"plan so that scripts keep it: datacollect (.*)", said)
    assert "--margin" in command
    assert call(*shlex.split(command))[0] == 0
    code, _, err = call("pulls", "p.toml", "plan.json", *CURL)
    assert code == 0, err
