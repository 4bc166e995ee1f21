"""Scenarios that cannot be carried out, and the messages of ``datacollect simulate``."""

from __future__ import annotations

import json

import pytest

from datacollect.commands.main import run

GOOD = """
[topology]
kind = "line"
n_nodes = 3
rate_bytes_per_s = 1e6

[hosts]
destination = { at = "N2" }
sources = [{ at = "N0", backlog_bytes = 5_000_000 }]
"""
TWO_PARTS = """
[topology]
kind = "explicit"
wires = [
    { a = "X", b = "Y", rate_bytes_per_s = 1e6 },
    { a = "U", b = "V", rate_bytes_per_s = 1e6 },
]
[hosts]
destination = { at = "X" }
sources = [{ at = "V", backlog_bytes = 5 }]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "good.toml").write_text(GOOD)
    return tmp_path


@pytest.fixture
def call(here, capsys):
    """Write a scenario, simulate it as a fluid; return exit code, output and messages."""

    def call(text, *arguments):
        (here / "s.toml").write_text(text)
        capsys.readouterr()
        code = run(["simulate", "s.toml", "--engine", "fluid", *arguments])
        return code, *capsys.readouterr()

    return call


def test_the_good_one_is_good(call):
    assert call(GOOD)[::2] == (0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWO_PARTS, "topology: the topology must be connected, it falls into 2 parts: 'X', 'Y' /"),
        (GOOD.replace("1e6", "0"), "topology.rate_bytes_per_s must be a finite number of bytes"),
        (GOOD.replace("N0", "N9"),
         "hosts.sources[0].at must be a node of the topology, got 'N9'; there are N0, N1, N2"),
        (GOOD.replace(", backlog_bytes = 5_000_000", ""), "source 'S1' has no backlog"),
        (GOOD.replace('kind = "line"', 'kind = "line"\ndelay_s = -1'),
         "topology.delay_s must be a finite number of seconds >= 0, got -1; write 0 or more"),
        (GOOD + '[background]\npairs = [{ from = "N0", to = "N1", start_s = -1 }]',
         "background.pairs[0].start_s must be a finite number of seconds >= 0, got -1"),
        (GOOD + '[background]\npairs = [{ from = "N0", to = "N7" }]',
         "background.pairs[0].to must be a node of the topology, got 'N7'; there are N0, N1, N2"),
        (GOOD + '[background]\nflows = 3\nfrom = "A"',
         "background.from must be a domain of the topology, got 'A'; there is none"),
        (GOOD + '[estimates]\nkind = "given"\nfile = "no.csv"', "estimates.file no.csv: no such"),
        (GOOD + '[method]\nname = "direct"\norder = ["X"]', "method: order: 'X' is not a host"),
        (GOOD + '[method]\nsolver = "foo"', "method.solver must be one of auto, ortools"),
        (GOOD + "[run]\ntime_limit_s = -5", "run.time_limit_s must be a finite number of seconds"),
        ('problem = "p.toml"', "problem: p.toml: no such file"),
    ],
)  # fmt: skip
def test_bad_scenarios_are_named_with_file_place_rule_and_value(text, message, call):
    code, out, err = call(text)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: s.toml: {message}")
    assert err.count("\n") == 1


def test_a_list_at_the_top_points_to_an_example(here, capsys):
    (here / "s.json").write_text("[]")
    assert run(["simulate", "s.json", "--engine", "fluid"]) == 2
    err = capsys.readouterr().err
    assert "the top level must be a table of keys and values, got []" in err
    assert "datacollect example scenario_small" in err


def test_hosts_that_no_bandwidth_leads_from_are_named(here, call):
    (here / "zero.csv").write_text("from,to,bandwidth_bytes_per_s\nS1,D,0\n")
    code, out, err = call(GOOD + '[estimates]\nkind = "given"\nfile = "zero.csv"')
    assert (code, out) == (1, "")
    assert err.startswith("error: s.toml: method: the data at 'S1' cannot reach the destination")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("5_000_000", "6_000_000"), "it collects 5000000 bytes of 'S1', which holds 6000000"),
        (('{ at = "N0"', '{ name = "Z", at = "N0"'), "host 'S1' takes no part in the scenario"),
        (('{ at = "N2"', '{ name = "E", at = "N2"'), "its destination is 'D', the scenario's is"),
    ],
)
def test_a_schedule_for_another_problem_is_refused(changes, message, here, call):
    assert call(GOOD, "-o", "run")[0] == 0
    code, out, err = call(GOOD.replace(*changes), "--schedule", "run/schedule.json")
    assert (code, out) == (2, "")
    assert err.startswith("error: s.toml: the schedule was made for another problem: ")
    assert message in err


def test_a_schedule_that_begins_before_time_zero_is_refused(here, call):
    assert call(GOOD, "-o", "run")[0] == 0
    tree = json.loads((here / "run/schedule.json").read_text())
    tree["transfers"][0]["start_s"] = -1.0
    (here / "early.json").write_text(json.dumps(tree))
    code, _, err = call(GOOD, "--schedule", "early.json")
    assert code == 2
    assert "the schedule: start_s must be >= 0, got -1" in err


def test_many_flows_that_nobody_meets_make_one_warning(call):
    """N3 and N4 lie behind the destination's router: five flows between them."""
    pairs = ", ".join(['{ from = "N4", to = "N3" }'] * 5)
    text = GOOD.replace("n_nodes = 3", "n_nodes = 5")
    code, _, err = call(f"{text}[background]\npairs = [{pairs}]")
    assert code == 0
    assert err == (
        "warning: background flows 0 (N4 -> N3), 1 (N4 -> N3), 2 (N4 -> N3) and 2 more share no "
        "wire with any route between hosts: they change nothing\n"
    )


def test_a_run_beyond_the_time_limit_is_partial_and_says_so(here, call):
    """5 MB over 1 MB/s: after 2 s less than 2 MB are there, and not nothing."""
    code, out, err = call(GOOD, "--time-limit", "2", "-o", "part")
    assert code == 1
    assert "makespan   incomplete (predicted" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "collected within 2 s of simulated time; allow more with --time-limit" in err
    tree = json.loads((here / "part/run.json").read_text())
    assert (tree["complete"], tree["makespan_s"]) == (False, None)
    assert 1_500_000 < tree["collected_bytes"] < 2_000_000
    assert tree["source_finish_s"] == {"S1": None}


def test_a_link_that_carries_nothing_ends_at_the_limit(here, call):
    (here / "p.toml").write_text(
        'destination = "D"\nhosts = { S = { backlog_bytes = 1000 }, D = {} }\n'
        'links = [{ from = "S", to = "D", bandwidth_bytes_per_s = 100 }]\n'
    )
    (here / "truth.csv").write_text("from,to,bandwidth_bytes_per_s\nS,D,0\n")
    code, out, err = call('problem = "p.toml"\ntruth_csv = "truth.csv"')
    assert code == 1
    assert "collected  0 B of 1 kB" in out
    assert "if nothing moves any longer, look for stuck connections" in err
