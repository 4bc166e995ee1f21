"""Cycles on agents over real sockets: rounds, hosts that vanish, operators that die, or meet."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from instances.measuring import star, write_hosts

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measurement.sample_store import read_parts
from datacollect.measuring.agent import handlers
from datacollect.measuring.cycle import several_links
from datacollect.measuring.operator import flood_tests
from datacollect.measuring.probes import tcp_rates
from datacollect.measuring.probes.rates_at_once import RatesAtOnce

pytestmark = pytest.mark.usefixtures("short_tools")

# In `star` each host may send to those before it: S to F, E and D.
ALLOWED = {("S", "D"), ("S", "E"), ("S", "F"), ("F", "D"), ("F", "E"), ("E", "D")}


@pytest.fixture(autouse=True)
def short_tests_of_several(monkeypatch):
    monkeypatch.setattr(several_links, "FLOOD_S", 0.3)


@pytest.fixture
def links_alike(monkeypatch):
    """Every link carries 20 MB/s, alone or beside others, whatever this machine carries."""
    rate, measured = 20e6, tcp_rates.tcp_rates

    def alone(curve, settled_s=0.0):
        found = measured(curve, settled_s)
        return None if found is None else replace(found, flowing_bytes_per_s=rate)

    def at_once(curves):
        return RatesAtOnce((rate,) * len(curves), rate * len(curves), duration_s=0.3)

    monkeypatch.setattr(tcp_rates, "tcp_rates", alone)
    monkeypatch.setattr(flood_tests, "rates_at_once", at_once)


def rows_of(folder):
    return read_parts(folder).frame.to_dict("records")


def pairs_of(rows, tool):
    return [(row["from"], row["to"]) for row in rows if row["tool"] == tool]


def overlapping(rows, host_of):
    """Return the tests of which one began before another of the same host had ended."""
    busy = {}
    for row in rows:
        if row["ended"] == "done" and row["tool"] == "tcp":
            for name in (row["from"], row["to"]):
                times = (row["time_s"], row["time_s"] + row["duration_s"])
                busy.setdefault(host_of[name], []).append(times)
    return [
        (host, one, other)
        for host, times in busy.items()
        for one, other in pairwise(sorted(times))
        if other[0] < one[1]
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("links_alike")
def test_a_cycle_tests_each_pair_once_by_each_tool(tmp_path):
    """Of 12 pairs 6 may send: the others are refused by ping, and not asked for tcp any more."""
    said = []
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents)
        done = dc.measure_cycle(
            hosts, tmp_path / "samples", tools=["tcp", "ping", "flood"], tell=said.append
        )
    rows = rows_of(tmp_path / "samples")
    pinged = pairs_of(rows, "ping")
    assert len(pinged) == len(set(pinged)) == 12
    tested = pairs_of(rows, "tcp")
    assert len(tested) == 6
    assert set(tested) == ALLOWED
    assert sorted(pairs_of(rows, "flood")) == [("E", "D"), ("F", "D"), ("S", "D")]
    assert (done.number, done.tests, done.failed) == (0, 12 + 6 + 1, 6)
    assert set(done.left_out) == set(pinged) - ALLOWED
    assert all(row["ended"] == "done" for row in rows if (row["from"], row["to"]) in ALLOWED)
    assert overlapping(rows, dict(zip("DEFS", "DEFS", strict=True))) == []
    # Six rounds of two, by the circle method; concurrency is how many others were in a round.
    assert {row["concurrency"] for row in rows if row["tool"] == "ping"} == {1}
    assert {row["concurrency"] for row in rows if row["tool"] == "flood"} == {2}
    assert said[0].startswith("cycle 0: 12 pairs in 6 rounds: at most ")
    assert said[1].endswith("(ping 112 B, tcp 300 kB)")
    assert said[2].startswith("flood, ")


@pytest.mark.slow
def test_the_next_cycle_changes_partners_and_is_another(tmp_path):
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents)
        rounds = []
        for number in range(3):
            done = dc.measure_cycle(hosts, tmp_path / "samples", tools=["ping"])
            assert (done.number, done.tests) == (number, 12)
            tree = json.loads((tmp_path / "samples" / "cycle.json").read_text())
            rounds.append({frozenset(map(tuple, one)) for one in tree["light"]})
    assert len(rows_of(tmp_path / "samples")) == 36
    assert rounds[0] != rounds[1] or rounds[1] != rounds[2]


@pytest.mark.slow
def test_a_host_that_is_not_there_costs_its_own_tests_only(tmp_path):
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents)
        absent = f'url = "https://127.0.0.1:1"\nfingerprint = "sha256:{1:064}"\n'
        Path(hosts).write_text(f"{Path(hosts).read_text()}\n[hosts.G]\n{absent}")
        done = dc.measure_cycle(hosts, tmp_path / "samples", tools=["ping", "tcp"])
    rows = rows_of(tmp_path / "samples")
    failed = {(row["from"], row["to"]) for row in rows if row["ended"] != "done"}
    assert set(pairs_of(rows, "tcp")) == ALLOWED
    assert not failed & ALLOWED
    assert done.failed == 6 + 8
    assert {pair for pair in done.left_out if "G" in pair} == {
        *((name, "G") for name in "DEFS"),
        *(("G", name) for name in "DEFS"),
    }


@pytest.mark.slow
def test_an_agent_that_dies_in_a_cycle_costs_its_own_tests_only(tmp_path):
    """E ends after the first round."""
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents)

        def tell(line):
            if "round 1 of" in line and line.startswith("ping"):
                agents["E"].agent.stop()
                agents["E"].agent.stop()

        dc.measure_cycle(hosts, tmp_path / "samples", tools=["ping", "tcp"], tell=tell)
    rows = rows_of(tmp_path / "samples")
    without = {pair for pair in ALLOWED if "E" not in pair}
    assert without <= {
        (row["from"], row["to"]) for row in rows if (row["tool"], row["ended"]) == ("tcp", "done")
    }
    assert len(pairs_of(rows, "ping")) == 12


def test_a_budget_that_pays_for_no_pair_is_refused_before_anything_is_sent(tmp_path):
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents, budget="299 kB")
        with pytest.raises(ProblemError, match="299 kB and 2 min 00 s of the budget are left"):
            dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp"])
        assert not list((tmp_path / "samples").glob("*.parquet"))


def test_a_budget_ends_with_the_pairs_that_weigh_least(tmp_path):
    """Pairs into the destination come first; 1 MB pays for three tests of 300 kB."""
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents, budget="1 MB")
        done = dc.measure_cycle(hosts, tmp_path / "samples", tools=["tcp"])
    assert set(pairs_of(rows_of(tmp_path / "samples"), "tcp")) == {
        ("S", "D"),
        ("F", "D"),
        ("E", "D"),
    }
    assert len(done.left_out) == 9


@pytest.mark.slow
def test_hosts_in_a_pull_say_so_and_are_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(handlers, "is_marked", lambda mark: mark == "in-pull")
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents)
        done = dc.measure_cycle(hosts, tmp_path / "samples", tools=["ping", "tcp"])
        rows = rows_of(tmp_path / "samples")
        assert {row["beside_pull"] for row in rows if row["ended"] == "done"} == {True}
        assert pairs_of(rows, "tcp") == []
        assert set(done.left_out) >= ALLOWED
        # Without a ping nothing is known beforehand, and rows say it.
        dc.measure_cycle(hosts, tmp_path / "more", tools=["tcp"], only="matter")
    rows = [row for row in rows_of(tmp_path / "more") if row["ended"] == "done"]
    assert len(rows) == 3
    assert all(row["beside_pull"] for row in rows)


@pytest.mark.slow
def test_two_operators_with_other_names_for_the_hosts_never_overlap(tmp_path):
    """The second one calls S what the first one calls D; both at once, over the same agents."""
    with star(tmp_path) as agents:
        files = []
        for number, names in enumerate(("DEFS", "SFED")):
            place = tmp_path / str(number)
            place.mkdir()
            renamed = dict(zip(names, agents.values(), strict=True))
            files.append(write_hosts(place, renamed))
        threads = [
            threading.Thread(
                target=dc.measure_cycle,
                args=(file, tmp_path / str(number) / "samples"),
                kwargs={"tools": ["tcp"]},
            )
            for number, file in enumerate(files)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows, host_of = [], {}
    for number, names in enumerate(("DEFS", "SFED")):
        of = {f"{number}{name}": host for name, host in zip(names, "DEFS", strict=True)}
        host_of |= of
        rows += [
            row | {"from": f"{number}{row['from']}", "to": f"{number}{row['to']}"}
            for row in rows_of(tmp_path / str(number) / "samples")
        ]
    done = [row for row in rows if row["ended"] == "done"]
    assert len(done) == 2 * len(ALLOWED)
    assert overlapping(done, host_of) == []


# It is killed when it would write the next part of those that it has measured.
KILLED = """
import os, signal, sys, threading
from datacollect.measuring.cycle import measure_cycle
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tools import TOOLS
import datacollect as dc

TOOLS["ping"] = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(2, 0.2))
write, left, lock = measure_cycle.write_part, [int(sys.argv[3])], threading.Lock()

def written(*part):
    with lock:
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        write(*part)

measure_cycle.write_part = written
dc.measure_cycle(sys.argv[1], sys.argv[2], tools=["ping"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_parts", [0, 3, 11])
def test_an_operator_killed_at_work_loses_and_doubles_nothing(tmp_path, n_parts):
    """Its leases end with its connections: the same cycle goes on at once, by the same rounds."""
    samples = tmp_path / "samples"
    with star(tmp_path) as agents:
        hosts = write_hosts(tmp_path, agents)
        command = [sys.executable, "-c", KILLED, hosts, str(samples), str(n_parts)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        until = time.monotonic() + 60.0
        while any(each.agent._shell._core.sessions for each in agents.values()):
            assert time.monotonic() < until, "an agent does not notice that it has gone"
            time.sleep(0.01)
        before = {file.name: file.stat().st_mtime_ns for file in samples.glob("*.parquet")}
        begun_s, said = time.monotonic(), []
        done = dc.measure_cycle(hosts, samples, tools=["ping"], tell=said.append)
        assert time.monotonic() - begun_s < 60.0
    assert (len(before), len(before) + done.tests) == (n_parts, 12)
    assert done.number == 0
    pinged = pairs_of(rows_of(samples), "ping")
    assert len(pinged) == len(set(pinged)) == 12
    after = {file.name: file.stat().st_mtime_ns for file in samples.glob("*.parquet")}
    assert {name: after[name] for name in before} == before
    assert not any("in another test" in line for line in said)
