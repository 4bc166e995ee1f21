"""``datacollect measure scan``, ``flood`` and ``curve``: what they ask, say and keep."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from instances.measuring import star, write_hosts

from datacollect.commands.main import run
from datacollect.files.kinds import Whole
from datacollect.measurement.sample_store import read_parts


@pytest.fixture
def hosts(tmp_path):
    """S, with a rate of 1 MB/s, may send to D, E and F, F to E and D, E to D."""
    with star(tmp_path, S={"rate": 1_000_000}) as agents:
        yield write_hosts(tmp_path, agents)


def rows(folder) -> list[dict]:
    found = read_parts(Path(folder))
    assert not found.damaged
    return found.frame.to_dict("records")


@pytest.mark.slow
def test_a_scan_says_the_fewest_streams_that_get_most(hosts, tmp_path, capsys):
    """The agent's rate holds for all connections together: one gets what two get.

    Windows of 1 GB are allowed nowhere: those cells fail, are rows, and nothing is chosen by them.
    """
    command = ["measure", "scan", hosts, "--from", "S", "--seconds", "0.3", "--streams", "2"]
    command += ["--streams", "1", "--window", "auto", "--window", "1 GB", "-o", str(tmp_path / "s")]
    assert run([*command, "--json"]) == 1
    tree = json.loads(capsys.readouterr().out)
    (choice,) = tree["choices"]
    assert (choice["from"], choice["to"], choice["window_bytes"]) == ("S", "D", None)
    cells = [(row["tool"], row["streams"], row["ended"] == "done") for row in tree["samples"]]
    assert cells == [("scan", n, done) for n in (1, 2) for done in (True, False)]
    kept = rows(tmp_path / "s")
    settings = {(json.loads(row["settings"])["window_bytes"], row["streams"]) for row in kept}
    assert settings == {(None, 1), (None, 2), (10**9, 1), (10**9, 2)}
    assert run([*command[:-4], "--window", "64 kB", "-o", str(tmp_path / "t")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("1 stream, windows as kernels choose: S → D: ")
    assert said[-1].startswith("S → D: ")
    assert "of the most" in said[-1] or "no fewer streams" in said[-1]


@pytest.mark.slow
def test_a_flood_says_what_a_host_sends_in_all(hosts, tmp_path, capsys):
    """Its agent shares the rate, so that each gets less at once than alone."""
    folder = str(tmp_path / "samples")
    short = ["--seconds", "0.6", "--bytes", "20 MB", "-o", folder]
    assert run(["measure", "flood", hosts, "--from", "S", *short, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert (tree["host"], tree["n_done"]) == ("S", 3)
    assert 0 < tree["together_bytes_per_s"] < 2e6
    for to in "DEF":
        command = ["measure", "tcp", hosts, "--from", "S", "--to", to, *short]
        assert run(command) == 0
    problem = str(tmp_path / "problem.toml")
    assert run(["measure", "problem", folder, "--hosts", hosts, "-o", problem, "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out[captured.out.index("{") :])
    limit = found["problem"]["hosts"]["S"]["uplink_bytes_per_s"]
    assert limit == pytest.approx(tree["together_bytes_per_s"])
    begun, ended = "3 hosts at once get ", ": the uplink of S is taken as "
    assert any(note.startswith(begun) and ended in note for note in found["notes"])
    assert f"uplink_bytes_per_s = {limit!r}" in Path(problem).read_text()


def test_a_flood_into_a_host(hosts, tmp_path, capsys):
    command = ["measure", "flood", hosts, "--from", "E", "--from", "F", "--to", "D"]
    assert run([*command, "--seconds", "0.3", "-o", str(tmp_path / "s")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said[:2]] == ["E → D", "F → D"]
    assert said[2].startswith("D receives ")
    assert said[2].endswith(" in all, with 2 hosts at once")
    assert len(list((tmp_path / "s").iterdir())) == 1  # one test, one part
    assert {row["concurrency"] for row in rows(tmp_path / "s")} == {1}
    # Of 100 kB each is done long before its time: they were hardly beside each other.
    few = ["--bytes", "100 kB", "--seconds", "5", "-o", str(tmp_path / "t")]
    assert run([*command, *few]) == 0
    captured = capsys.readouterr()
    rates = [float(row["bandwidth_bytes_per_s"]) for row in rows(tmp_path / "t")]
    said = " ".join(captured.err.split())
    assert "give more --bytes, " in said
    enough = Whole("bytes").read(re.search(r"--bytes, (.*) or more", said)[1], "--bytes")
    assert 5 * max(rates) <= enough < 1.1 * 5 * max(rates) + 1


@pytest.mark.slow
def test_a_curve_without_a_capacity_says_why_and_is_in_the_problem(
    hosts, tmp_path, capsys, monkeypatch
):
    """The host itself is no path whose capacity pairs tell."""
    monkeypatch.setattr("datacollect.measuring.operator.curve_tests.SETTLED_S", 0.1)
    folder = str(tmp_path / "samples")
    command = ["measure", "curve", hosts, "--from", "S", "--bytes", "20 MB", "-o", folder]
    assert run([*command, "--seconds", "0.4", "--json"]) == 0
    *tests, curve = json.loads(capsys.readouterr().out)["samples"]
    assert [test["streams"] for test in tests] == [1, 2, 4, 8]
    assert (curve["tool"], curve["competitors"]) == ("curve", None)
    assert json.loads(curve["settings"])["no_capacity"]
    assert run(["measure", "problem", folder, "--hosts", hosts, "--json"]) == 0
    (link,) = json.loads(capsys.readouterr().out)["problem"]["links"]
    assert link["per_connection_bytes_per_s"] == curve["per_connection_bytes_per_s"]
    assert run([*command, "--seconds", "0.4"]) == 0
    said = capsys.readouterr().out
    assert "S → D: one connection gets " in said
    for streams in ("1 stream", "2 streams", "4 streams", "8 streams"):
        assert f"\n{streams}: S → D: " in f"\n{said}"


def test_dry_runs_ask_nobody(hosts, tmp_path, capsys):
    scan = ["measure", "scan", hosts, "--from", "S", "--bytes", "10 MB", "--seconds", "5"]
    assert run([*scan, "--dry-run"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "S → D\n"
    assert "20 tests, one after the other: at most 200 MB and 1 min 40 s" in captured.err
    flood = ["measure", "flood", hosts, "--from", "S", "--dry-run", "--json"]
    assert run(flood) == 0
    tree = json.loads(capsys.readouterr().out)
    assert [test["to"] for test in tree["tests"]] == ["D", "E", "F"]
    assert (tree["most_bytes"], tree["most_s"]) == (3 * 10**8, 10.0)
    assert not (tmp_path / "S/S.measured").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["scan"], "budget.bytes is 1e+09, and the tests may take"),
        (["scan", "--from", "S", "--bytes", "1 MB"], "budget.time is 120"),
        (["scan", "--window", "much"], "--window must be a whole number of bytes"),
        (["flood", "--from", "S", "--bytes", "1 GB"], "budget.bytes is 1e+09"),
        (["flood", "--from", "S", "--to", "D"], "a flood has one host that sends to at least two"),
        (["flood", "--from", "S", "--from", "E"], "got 2 that send and 2 that receive"),
        (["flood", "--from", "X"], "no host is called 'X'"),
    ],
)
def test_what_cannot_be_paid_or_is_none_is_refused_before_anybody_is_asked(
    hosts, tmp_path, capsys, options, why
):
    assert run(["measure", options[0], hosts, *options[1:]]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "S/S.measured").exists()
