"""The n-th call fails, or the process ends there: no row is lost or doubled, nothing is redone.

The network is left out: tests are done at once, and each says how often it was asked for.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from instances.how_many import many
from instances.measuring import OPERATOR

import datacollect as dc
from datacollect.errors import NotWrittenError
from datacollect.files.units import format_duration
from datacollect.measurement.sample_store import read_parts
from datacollect.measuring.cycle import measure_cycle
from datacollect.measuring.operator.pings import PingSettings
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tools import TOOLS
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.net.fan_out import Outcome
from datacollect.net.keys import write_private_key

NAMES = "ABC"


class Killed(BaseException):
    """The process ends here."""


class Failing:
    """Calls of the disk, of which the n-th fails."""

    def __init__(self, monkeypatch, n, error):
        self.calls, self._n, self._error = 0, n, error
        for place, name in (
            (os, "fsync"),
            (os, "open"),
            (Path, "replace"),
            (Path, "write_text"),
            (pq, "write_table"),
        ):
            monkeypatch.setattr(place, name, self._wrapped(getattr(place, name)))

    def _wrapped(self, call):
        def wrapped(*arguments, **options):
            self.calls += 1
            if self.calls == self._n:
                raise self._error
            return call(*arguments, **options)

        return wrapped


@pytest.fixture
def asked(monkeypatch):
    """Put tests in place that are done at once; return how often each was asked for."""
    counts = Counter()

    def measure(sender, receiver, key, settings, patience_s=0.0, report=None):
        counts[settings.tool, sender.name, receiver.name] += 1
        row = {"from": sender.name, "to": receiver.name, "time_s": time.time()}
        yield {
            **row,
            "tool": settings.tool,
            "ended": "done",
            "bandwidth_bytes_per_s": 1e6,
            "beside_pull": False,
        }

    def one_by_one(names, call):
        return {name: Outcome(name, call(name), None) for name in names}

    ping = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(), measure=measure)
    monkeypatch.setitem(TOOLS, "ping", ping)
    tcp = TOOLS["tcp"]._replace(settings_for=lambda _: TcpSettings(), measure=measure)
    monkeypatch.setitem(TOOLS, "tcp", tcp)
    # In this thread: whatever ends the process ends it where it stands.
    monkeypatch.setattr(measure_cycle, "fan_out", one_by_one)
    return counts


@pytest.fixture
def hosts(tmp_path):
    write_private_key(tmp_path / "operator.key", OPERATOR)
    tree = {
        "format": "datacollect-hosts/1",
        "destination": "A",
        "key": str(tmp_path / "operator.key"),
        "hosts": {
            name: {"url": f"https://127.0.0.1:{i + 1}", "fingerprint": f"sha256:{i:064}"}
            for i, name in enumerate(NAMES)
        },
    }
    return HostsFile.from_dict(tree)


def run(hosts, folder):
    return dc.measure_cycle(hosts, folder, tools=["ping", "tcp"])


def n_calls(hosts, folder) -> int:
    with pytest.MonkeyPatch.context() as patched:
        counting = Failing(patched, -1, None)
        run(hosts, folder)
        return counting.calls


# Every call in `make test-all`.
OFTEN = 1 if many(100) == 100 else 3


@pytest.mark.parametrize("each", [5, pytest.param(OFTEN, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("first", "error"),
    [(1, Killed()), (3, OSError(errno.ENOSPC, "No space left on device"))],
    ids=["killed", "full"],
)
def test_whatever_ends_a_cycle_anywhere_it_goes_on(tmp_path, hosts, asked, first, error, each):
    """Twelve tests, and what is kept beside them; calls of the disk fail once, some or all."""
    run(hosts, tmp_path / "first")  # what is loaded once opens its files once
    n = n_calls(hosts, tmp_path / "whole")
    assert n > 30
    for number in range(min(first, each), n + 1, each):
        folder = tmp_path / str(number)
        folder.mkdir()
        asked.clear()
        with pytest.MonkeyPatch.context() as patched:
            Failing(patched, number, error)
            with pytest.raises((Killed, NotWrittenError)) as caught:
                run(hosts, folder)
        if isinstance(error, OSError):
            assert caught.value.exit_code == 3
        kept = read_parts(folder)
        assert kept.damaged == ()
        done = run(hosts, folder)
        rows = read_parts(folder).frame
        tests = Counter(zip(rows["tool"], rows["from"], rows["to"], strict=True))
        if done.number == 0:
            assert len(tests) == 12
            assert set(tests.values()) == {1}
            assert done.tests == 12 - len(kept.frame)
            # What was measured, and could not be kept, is the one test that is asked for again.
            assert sum(asked.values()) <= 13
        else:  # its end was kept already, and this is the next one
            assert len(kept.frame) == 12
            assert set(tests.values()) == {2}


def test_a_part_that_is_damaged_is_named_and_measured_again(tmp_path, hosts, asked):
    """Killed near its end; then a file of this cycle is cut, and one of another time."""
    folder = tmp_path / "samples"
    with pytest.MonkeyPatch.context() as patched:
        Failing(patched, n_calls(hosts, tmp_path / "whole") - 2, Killed())
        with pytest.raises(Killed):
            run(hosts, folder)
    first, *_ = sorted(folder.glob("cycle-0-*-ping-*.parquet"))
    # A slow machine keeps several at once.
    n_lost = pq.read_table(first).num_rows
    for file in (first, folder / "1-tcp-0.parquet"):
        file.write_bytes(first.read_bytes()[:99])
    asked.clear()
    said = []
    dc.measure_cycle(hosts, folder, tools=["ping", "tcp"], tell=said.append)
    (line,) = [line for line in said if line.startswith("damaged, and left out: ")]
    assert first.name in line
    assert "1-tcp-0.parquet" in line
    assert sum(n for (tool, *_), n in asked.items() if tool == "ping") == n_lost
    assert read_parts(folder).damaged == ("1-tcp-0.parquet",)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_what_pings_say_counts_whatever_the_clock_does(tmp_path, hosts, asked, monkeypatch, jump_s):
    """It is set by an hour once a cycle has begun; a host in a pull is not loaded all the same."""
    begun_s = time.time()

    def ping(sender, receiver, *_):
        row = {"from": sender.name, "to": receiver.name, "time_s": begun_s + jump_s, "tool": "ping"}
        yield {**row, "ended": "done", "rtt_s": 0.01, "beside_pull": True}

    ping = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(), measure=ping)
    monkeypatch.setitem(TOOLS, "ping", ping)
    done = run(hosts, tmp_path / "samples")
    assert not asked
    assert len(done.left_out) == 6


def test_how_long_it_takes_counts_what_comes_after(tmp_path, hosts, asked):
    """Six pairs in six rounds, each of 10 s and 3 s around after its ping of 10 s and 3 s."""
    said = []
    dc.measure_cycle(hosts, tmp_path / "samples", tools=["ping", "tcp"], tell=said.append)
    rounds = [line for line in said if "round" in line and "to go" in line]
    assert rounds[0].startswith("ping: round 1 of 6 is done")
    assert rounds[0].endswith(f"at most {format_duration(5 * 13.0 + 6 * 13.0)} to go")
    assert rounds[-1].endswith("at most 0 s to go")


def test_a_flood_that_is_left_out_takes_no_time(tmp_path, hosts, asked, monkeypatch):
    """Nobody hears of B, so that C alone is left to send to A."""

    def ping(sender, receiver, *_):
        ended = "B: is away" if "B" in (sender.name, receiver.name) else "done"
        row = {"from": sender.name, "to": receiver.name, "time_s": time.time(), "tool": "ping"}
        yield {**row, "ended": ended}

    ping = TOOLS["ping"]._replace(settings_for=lambda _: PingSettings(), measure=ping)
    monkeypatch.setitem(TOOLS, "ping", ping)
    said = []
    tools = ["ping", "tcp", "flood"]
    dc.measure_cycle(hosts, tmp_path / "samples", tools=tools, tell=said.append)
    assert "the flood is left out: fewer than two hosts are left for it" in said
    (*_, last) = (line for line in said if line.startswith("tcp: round"))
    assert last.endswith("at most 0 s to go")
