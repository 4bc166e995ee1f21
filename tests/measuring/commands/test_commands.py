"""`datacollect measure`: from a folder of samples to what plans need."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

import datacollect as dc
from datacollect.measurement.sample_store import write_part

HOSTS = """
format = "datacollect-hosts/1"
destination = "D"

[hosts.D]
iperf3 = "d.example:5201"
[hosts.S]
iperf3 = "s.example:5201"
"""


def row(tail, head, **more):
    return {"from": tail, "to": head, "time_s": 1.7e9, "tool": "tcp", "ended": "done", **more}


@pytest.fixture
def samples(tmp_path, monkeypatch):
    """S sends 5 bytes a second to D, X sends 9, and nothing came from D to S."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "samples"
    folder.mkdir()
    write_part(folder, "a", [row("S", "D", bandwidth_bytes_per_s=5.0, streams=1)])
    write_part(folder, "b", [row("X", "D", bandwidth_bytes_per_s=9.0, streams=1)])
    write_part(folder, "c", [row("D", "S", ended="the connection was lost")])
    (tmp_path / "HOSTS.toml").write_text(HOSTS)
    return folder


def test_a_problem_file_is_written_and_what_is_not_known_is_said(samples, call):
    options = ("--hosts", "HOSTS.toml", "--backlog", "S=1 kB", "-o", "p.toml")
    code, out, err = call("measure", "problem", "samples", *options)
    assert code == 0
    problem = dc.Problem.from_file("p.toml")
    assert problem.names == ("D", "S")
    assert dc.direct(problem).makespan_s == 200
    assert "S → D   40 bit/s" in out
    assert "tests of X" in err
    assert "not known, tcp: the connection was lost: 1 link: D → S" in err
    assert err.endswith("1 link from 1 sample\n")


def test_without_o_the_file_is_the_answer(samples, call):
    code, out, _ = call("measure", "problem", "samples", "--destination", "D")
    assert code == 0
    (samples / "p.toml").write_text(out)
    assert dc.Problem.from_file(samples / "p.toml").names == ("D", "S", "X")


def test_json_says_all_that_is_known(samples, call):
    (samples / "cut.parquet").write_bytes((samples / "a.parquet").read_bytes()[:-9])
    code, out, err = call("measure", "problem", "samples", "--hosts", "HOSTS.toml", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["unknown"] == [{"from": "D", "to": "S", "why": "tcp: the connection was lost"}]
    assert answer["damaged"] == ["cut.parquet"]
    assert "samples/cut.parquet is damaged and left out" in err
    assert (answer["calibration"], answer["daily"], answer["n_samples"]) == (None, [], 1)
    [link] = answer["links"]
    assert (link["from"], link["bandwidth_bytes_per_s"]) == ("S", 5.0)
    assert dc.Problem.from_dict(answer["problem"]).names == ("D", "S")


def test_json_says_what_reno_would_get_at_the_losses_seen(samples, call):
    """Ten of 1000 pings are lost: 1.22 · 1448 bytes in 0.1 s, by the root of 0.01."""
    ping = {"tool": "ping", "rtt_s": 0.1, "loss": 0.01, "settings": '{"n": 1000}'}
    write_part(samples, "ping", [row("S", "D", **ping)])
    _, out, err = call("measure", "problem", "samples", "--destination", "D", "--json")
    assert json.loads(out)["reno"] == [
        {
            "from": "S",
            "to": "D",
            "per_connection_bytes_per_s": 5.0,
            "reno_bytes_per_s": pytest.approx(176_656.0),
            "rtt_s": 0.1,
            "loss": 0.01,
            "n_lost": 10,
        }
    ]
    assert "S -> D (40 bit/s instead of 1.413 Mbit/s)" in " ".join(err.split())


def test_json_says_in_how_many_tests_links_shared_a_wire(samples, call):
    """Alone 4 each; together 2 each in two runs, and in the third 4 each: it held in two."""
    links = [["S", "D"], ["X", "E"]]
    rows = [
        row(*link, tool="shared", bandwidth_bytes_per_s=2.0 if at_once and run < 2 else 4.0)
        | {"settings": json.dumps({"links": links, "run": str(run), "together": at_once})}
        for run in range(3)
        for link in links
        for at_once in (False, True)
    ]
    write_part(samples, "wire", rows)
    _, out, err = call("measure", "problem", "samples", "--destination", "D", "--json")
    answer = json.loads(out)
    assert answer["shared"] == [
        {"links": links, "bandwidth_bytes_per_s": 4.0, "held": 2, "n_tests": 3}
    ]
    [written] = answer["problem"]["shared"]
    assert (written["bandwidth_bytes_per_s"], written["links"]) == (4.0, [["S", "D"]])
    assert "in 2 of 3 tests of two links they got less together than alone" in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["none", "--destination", "D"], "none: no such folder; name the folder that tests"),
        (["HOSTS.toml", "--destination", "D"], "HOSTS.toml: is a file; name the folder"),
        (["empty", "--destination", "D"], "empty: holds no samples (NAME.parquet); name the"),
        (["cut", "--destination", "D"], "cut: its only file of samples is damaged (a.parquet); m"),
        (["torn", "--destination", "D"], "torn: all 2 files of samples are damaged (a.parquet, b."),
        (
            ["samples"],
            "where do all data go? Give --hosts, a file with the destination, or --destination",
        ),
        (["samples", "--destination", "d"], "destination must be a host that samples name, got"),
        (["samples", "--destination", "D", "--backlog", "S"], "--backlog must be HOST=BYTES"),
        (["samples", "--destination", "D", "--backlog", "S=x"], "--backlog S must be"),
        (["samples", "--destination", "D", "--backlog", "S7=1"], "no host is called 'S7'; there a"),
        (["samples", "--destination", "D", "--backlog", "s=1"], "D, S, X; did you mean 'S'?"),
        (["samples", "--hosts", "HOSTS.toml", "--backlog", "K=1"], "'K'; there are D, S, X"),
        (["samples", "--destination", "D", *["--backlog", "S=1"] * 2], "names 'S' twice; keep one"),
        (["samples", "--destination", "D", "--half-life", "0"], "--half-life must be"),
        (["samples", "--destination", "D", "--streams", "8"], "no test had 8 connections"),
        (["samples", "--destination", "D", "--timezone", "Mars"], "Mars"),
        (["samples", "--destination", "D", "--start", "tomorrow"], "--start must be a date and ti"),
        (["samples", "--destination", "D", "-o", "HOSTS.toml"], "HOSTS.toml: exists already"),
    ],
)
def test_wrong_input_is_two_and_nothing_is_written(arguments, expected, samples, call, tmp_path):
    for name in ("empty", "cut", "torn"):
        (tmp_path / name).mkdir()
    for file in ("cut/a", "torn/a", "torn/b"):
        (tmp_path / f"{file}.parquet").write_bytes(b"PAR1")
    code, out, err = call("measure", "problem", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert expected in " ".join(err.split())
    assert (tmp_path / "HOSTS.toml").read_text() == HOSTS


def test_changes_are_said_with_their_time(samples, call):
    rates = [9.0, 10.0, 11.0] * 10 + [5.0] * 9
    write_part(
        samples,
        "many",
        [
            row("K", "D", bandwidth_bytes_per_s=rate, streams=1, time_s=1.7e9 + 60 * i)
            for i, rate in enumerate(rates)
        ],
    )
    options = ("measure", "problem", "samples", "--destination", "D", "--changes")
    code, _, err = call(*options, "-o", "p.toml")
    assert code == 0
    said = " ".join(err.split())
    assert "changed: K → D from 80 bit/s to 40 bit/s, 2023-11-14T22:44:20+00:00; confirmed" in said
    answer = json.loads(call(*options, "--json")[1])
    [change] = answer["changes"]
    assert (change["from"], change["to"], change["confirmed"]) == ("K", "D", True)
    assert answer["route_changes"] == []
    few = "2 links with fewer than 22 samples: S → D, X → D"
    for text in (f"not known whether bandwidths have changed: {few}", "no route was found to"):
        assert text in said
        assert any(text in note for note in answer["notes"])
    assert "no bandwidth was found to have changed" not in said


def test_that_nothing_has_changed_is_said(samples, call):
    rates = [9.0, 10.0, 11.0] * 8
    steady = [
        row("K", "D", bandwidth_bytes_per_s=rate, streams=1, time_s=1.7e9 + 60 * i)
        for i, rate in enumerate(rates)
    ]
    write_part(samples, "steady", steady)
    options = ("--destination", "D", "--changes", "-o", "p.toml")
    _, _, err = call("measure", "problem", "samples", *options)
    assert "note: no bandwidth was found to have changed" in err
    _, _, err = call("measure", "problem", "samples", "--destination", "D", "--json")
    assert "changed" not in err


def test_the_start_may_have_another_offset_than_the_zone(samples, call):
    """Twice as fast by night, for eight days; 8 h in Zurich are 7 h in UTC in January."""
    every_hour = [
        row("K", "D", streams=1, time_s=1.7e9 - 1.7e9 % 86_400 + 3600 * i)
        | {"bandwidth_bytes_per_s": (5.0 if 8 <= i % 24 < 20 else 10.0) + 0.01 * (i % 3)}
        for i in range(8 * 24)
    ]
    for name in ("a", "b", "c"):
        (samples / f"{name}.parquet").unlink()
    write_part(samples, "daily", every_hour)
    options = ("--destination", "D", "--start", "2026-01-12T08:00+01:00", "--json")
    code, out, _ = call("measure", "problem", "samples", *options)
    answer = json.loads(out)
    assert (code, len(answer["daily"])) == (0, 2)
    assert answer["problem"]["start"] == "2026-01-12T07:00:00+00:00"


def test_the_page_is_written_and_damaged_parts_are_named(samples, call):
    (samples / "cut.parquet").write_bytes(b"PAR1")
    code, out, err = call("measure", "watch", "samples", "-o", "page.html")
    assert (code, out) == (0, "saved to page.html\n")
    assert "samples/cut.parquet is damaged and left out" in err
    assert "<title>Measurements: samples</title>" in (samples.parent / "page.html").read_text()
    answer = json.loads(call("measure", "watch", "samples", "-o", "p.html", "--json")[1])
    assert answer == {"file": "p.html", "n_tests": 3, "damaged": ["cut.parquet"]}
    code, _, err = call("measure", "watch", "samples", "-o", "page.html")
    assert code == 2
    assert "page.html: exists already; --force overwrites it" in err
    code, _, err = call("measure", "watch", "none", "-o", "new.html")
    assert (code, "none: no such folder" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "give either -o FILE or --page PORT, got neither"),
        (("-o", "p.html", "--page", "0"), "give either -o FILE or --page PORT, got both"),
        (("-o", "p.html", "--hosts", "HOSTS.toml"), "--hosts is for --page alone"),
        (("-o", "p.html", "--providers", "HOSTS.toml"), "HOSTS.toml"),
        (("--page", "0", "--hosts", "none.toml"), "none.toml: no such file"),
    ],
)
def test_pages_that_cannot_be_shown_are_refused(samples, call, options, why):
    code, _, err = call("measure", "watch", "samples", *options)
    assert code == 2
    assert why in err


def test_a_folder_that_is_not_there_is_not_watched(samples, call):
    code, _, err = call("measure", "watch", "later", "--page", "0")
    assert code == 2
    assert "later: is no folder; name the one that tests write into" in err


def test_routers_are_coloured_by_a_table_of_providers(samples, call):
    write_part(samples, "t", [row("S", "D", tool="trace", routers='["9.9.9.9"]')])
    (samples / "providers.csv").write_text("prefix,provider\n9.9.9.0/24,Quad9\n")
    options = ("-o", "page.html", "--providers", "samples/providers.csv")
    assert call("measure", "watch", "samples", *options)[0] == 0
    assert "Quad9" in (samples.parent / "page.html").read_text()


@pytest.mark.slow
def test_a_live_page_is_served_until_the_signal(samples):
    """Whoever has its address is told what is there; it ends as other commands do."""
    command = [sys.executable, "-m", "datacollect", "measure", "watch", "samples", "--page", "0"]
    with subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            url = urlsplit(json.loads(process.stdout.readline())["url"])
            request = Request(
                f"http://{url.netloc}/events", headers={"Authorization": f"Bearer {url.fragment}"}
            )
            with urlopen(request, timeout=60) as stream:
                assert json.loads(stream.readline()[6:])["facts"].startswith("3 tests of 3 links")
        finally:
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ("interrupted; the page has ended, and the same command shows it again\n")
