"""``datacollect host simulate``: what it prints and writes, and how it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

WHOLE = """
format = "datacollect-host-simulation/1"
machine = "e55"
time_s = 3
[stream]
video = "video2"
"""


@pytest.fixture
def simulated(tmp_path, monkeypatch, call):
    """Simulate what a file says, with options; return the exit code, what is printed and said."""
    monkeypatch.chdir(tmp_path)

    def simulated(text, *options):
        Path("sim.toml").write_text(text)
        return call("host", "simulate", "sim.toml", *options)

    return simulated


def test_it_says_what_is_lost_where_and_how_busy_all_was(simulated):
    code, out, _ = simulated(WHOLE + '[job]\nperiod_s = "0.5 s"\n')
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if line[0] != " ")
    assert lines["simulated"].startswith("3 s of UDP to sim, ")
    assert "kernel buffer" in lines["lost"]
    assert lines["frames"].split(": ")[0].endswith("damaged")


def test_nothing_lost_is_said_so(simulated):
    code, out, _ = simulated(WHOLE)
    assert code == 0
    assert "lost       nothing\n" in out


def test_a_sender_whose_window_is_closed_waits(simulated):
    text = WHOLE + '[protocol]\nname = "tcp"\n[job]\nperiod_s = "1 s"\n'
    _, out, _ = simulated(text)
    assert "wait at the sender, whose window is closed" in " ".join(out.split())


def test_json_and_both_tables_say_the_same(simulated):
    options = ("--json", "-o", "seconds.csv", "--losses", "losses.csv")
    code, out, _ = simulated(WHOLE + '[job]\nperiod_s = "0.5 s"\n', *options)
    assert code == 0
    tree = json.loads(out)
    for name, key in (("seconds.csv", "seconds"), ("losses.csv", "losses")):
        rows = list(csv.DictReader(Path(name).read_text(encoding="utf-8").splitlines()))
        assert rows == [{k: str(v) for k, v in row.items()} for row in tree[key]]
    assert len(tree["seconds"]) == 3
    lost = sum(row["packets"] for row in tree["losses"])
    assert lost == sum(tree["lost_packets"].values()) > 0
    assert tree["arrived_packets"] == sum(row["arrived_packets"] for row in tree["seconds"])


def test_what_is_there_is_not_overwritten(simulated):
    Path("seconds.csv").write_text("mine")
    code, _, err = simulated(WHOLE, "-o", "seconds.csv")
    assert (code, Path("seconds.csv").read_text()) == (2, "mine")
    assert "exists already; --force overwrites it" in err
    assert simulated(WHOLE, "-o", "seconds.csv", "--force")[0] == 0
    code, _, err = simulated(WHOLE, "--losses", "sim.toml", "--force")
    assert code == 2
    assert "would overwrite the input" in err


def test_a_job_that_never_reads_is_an_answer_and_bad_input_is_none(simulated):
    code, _, err = simulated(WHOLE + "[job]\nleast_bytes = 70000\n")
    assert code == 1
    assert "sim.toml: the job never reads" in " ".join(err.split())
    code, _, err = simulated(WHOLE.replace("e55", "e56"))
    assert code == 2
    assert err.startswith("error: sim.toml: machine must be one of")


def test_a_file_of_another_kind_is_told_from_a_simulated_host(simulated):
    code, _, err = simulated('format = "datacollect-problem/1"\n')
    assert code == 2
    assert "this is a problem; `datacollect example host_simulation` writes one" in " ".join(
        err.split()
    )


def test_the_example_is_as_its_comment_says(simulated, call):
    assert call("example", "host_simulation")[0] == 0
    text = Path("host_simulation.toml").read_text(encoding="utf-8")
    assert "kernel buffer" in simulated(text)[1]
    for change in (('"128 KiB"', '"512 KiB"'), ('"40 ms"', '"10 ms"')):
        assert change[0] in text
        assert "lost       nothing" in simulated(text.replace(*change))[1]
