"""The command `advise`: one screen, or JSON."""

from __future__ import annotations

import json

import datacollect as dc

TWO = """
destination = "D"
hosts.S1.backlog_bytes = "6 GB"
hosts.S2.backlog_bytes = "10 GB"
hosts.D = {}
links = [
  { from = "S1", to = "D", bandwidth_bytes_per_s = "38.29 Mbit/s" },
  { from = "S1", to = "S2", bandwidth_bytes_per_s = "38.3 Mbit/s" },
  { from = "S2", to = "D", bandwidth_bytes_per_s = "95.5 Mbit/s" },
]
"""


def test_without_measurements_it_says_so_first(here, call):
    (here / "p.toml").write_text(TWO)
    code, out, _ = call("advise", "p.toml")
    assert code == 0
    assert out.startswith("Nothing in this problem says that its bandwidths were measured")
    (here / "p.toml").write_text(f"measured_at = 2026-11-22T20:00:00+01:00\n{TWO}")
    out = call("advise", "p.toml")[1]
    assert out.startswith("Measure before you take relays: they are 1.31 × faster than direct only")


def test_it_is_one_screen(here, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    (here / "p.toml").write_text(TWO)
    out = call("advise", "p.toml")[1]
    assert len(out.splitlines()) <= 24
    # A command is one line.
    rest = [line for line in out.splitlines() if not line.startswith("  datacollect ")]
    assert all(len(line) <= 80 for line in rest)
    assert "S1 is to send 50.17 Mbit/s at once; no test has shown more than 38.3" in out
    # 38.3 Mbit/s for 5 s, and a quarter more.
    assert (
        "  datacollect measure flood hosts.toml --from S1 --to D --to S2 --streams 4 --seconds 5 "
        "--bytes 29921876\n"
    ) in out


def test_where_adaptive_is_known_to_end_sooner_it_says_so(here, call):
    """At best 46 min 51 s, and relays 1 h 12 min."""
    call("example", "connections")
    out = " ".join(call("advise", "connections.toml")[1].split())
    assert out.startswith("Take relays: they are 4.60 × faster than direct. Adaptive may end")
    assert "in 46 min 51 s at best: `pull --method adaptive`" in out


def test_json_is_what_python_says(here, call):
    (here / "p.toml").write_text(TWO)
    tree = json.loads(call("advise", "p.toml", "--json")[1])
    found = dc.advise(dc.Problem.from_file("p.toml"))
    assert tree == json.loads(json.dumps(found.to_dict()))
    assert tree["take"] == "measure"


def test_bandwidths_by_the_hour_are_listed_until_all_ways_end(here, call):
    """100 GB at 1 MB/s by day and at 2 by night take more than a day."""
    daily = 'start = 2026-11-22T20:00:00+01:00\ndaily_periods = ["08:00", "20:00"]\n'
    (here / "p.toml").write_text(
        f'destination = "D"\n{daily}[hosts.D]\n[hosts.S]\nbacklog_bytes = "100 GB"\n[[links]]\n'
        'from = "S"\nto = "D"\nbandwidth_bytes_per_s = ["1 MB/s", "2 MB/s"]\n'
    )
    tree = json.loads(call("advise", "p.toml", "--json")[1])
    # A night of 12 h carries 86.4 GB; the rest by day takes 13 600 s.
    assert tree["ways"][0]["makespan_s"] == 12 * 3600 + 13_600


def test_what_cannot_arrive_is_said(here, call):
    (here / "p.toml").write_text('destination = "D"\nhosts.D = {}\nhosts.S.backlog_bytes = 5\n')
    code, _, err = call("advise", "p.toml")
    assert code == 1
    assert "S" in err
