"""Processes killed in the middle of a feed: nothing is lost, or it is said what."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager

import apsw
import pytest
from instances.agents import KEY, write_agent
from instances.feeds import feed_table, kept_report

from datacollect.feeds.sender.source import counted_bytes
from datacollect.net.keys import write_private_key

pytestmark = pytest.mark.slow

# Long enough that nobody is late to kill it.
RATE, SECONDS = 1_000_000, 7
COMMAND = (sys.executable, "-m", "datacollect")


class Process:
    """An agent in a process of its own, which keeps its port when it is started again."""

    def __init__(self, path):
        self._path = path
        self.start()
        port = self.facts["url"].rpartition(":")[2]
        path.write_text(re.sub(r'listen = ".*"', f'listen = "127.0.0.1:{port}"', path.read_text()))

    def start(self):
        command = [*COMMAND, "agent", str(self._path), "--json"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.facts = json.loads(self._process.stdout.readline())

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def process(path):
    one = Process(path)
    try:
        yield one
    finally:
        one.kill()


def feed_file(folder, *agents, **keys):
    """Write a feed's file: to the first of the agents, over the others."""
    write_private_key(folder / "instrument.key", KEY)
    rows = {
        "format": "datacollect-feed/1",
        "name": "scan7",
        "to": agents[0].facts["name"],
        "via": [each.facts["name"] for each in agents[1:]],
        "key": "instrument.key",
        "rate": RATE,
        **keys,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in rows.items()]
    for each in agents:
        lines.append(f"[agents.{each.facts['name']}]")
        lines += [f'{key} = "{each.facts[key]}"' for key in ("url", "fingerprint")]
    (folder / "feed.toml").write_text("\n".join(lines))


def send(folder, seconds):
    command = [*COMMAND, "feed", "send", "feed.toml", "--generate", f"{seconds} s", "--json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)


def stop(process):
    """Stop a process, and wait until all of it has stopped."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def wait_for_bytes(folder, n_bytes):
    """Wait until the receiver has so much of the feed."""
    until_s = time.monotonic() + 60
    path = folder / "feeds" / "scan7.part"
    while not path.exists() or path.stat().st_size < n_bytes:
        assert time.monotonic() < until_s
        time.sleep(0.02)


@contextmanager
def world(folder, relays=()):
    (folder / "feeds").mkdir()
    with ExitStack() as held:
        found = [held.enter_context(process(write_agent(folder, "D", more=feed_table())))]
        for name in relays:
            leads = {found[-1].facts["name"]: found[-1].facts["url"].removeprefix("https://")}
            found.append(held.enter_context(process(write_agent(folder, name, connect_to=leads))))
        yield found


@pytest.mark.parametrize("victim", ["receiver", "relay"])
def test_an_agent_that_is_killed_loses_nothing(tmp_path, victim):
    with world(tmp_path, ["K1"]) as agents:
        feed_file(tmp_path, *agents)
        with send(tmp_path, SECONDS) as sender:
            wait_for_bytes(tmp_path, RATE)
            agent = agents[0 if victim == "receiver" else 1]
            agent.kill()
            agent.start()
            told = json.loads(sender.stdout.read())
        assert (sender.returncode, told["complete"]) == (0, True)
        assert told["counts"]["reconnections"] >= 1
        assert (tmp_path / "feeds" / "scan7").read_bytes() == counted_bytes(0, SECONDS * RATE)


def test_a_sender_that_is_killed_goes_on_with_its_spill(tmp_path):
    with world(tmp_path) as agents:
        feed_file(tmp_path, *agents, spill="spill")
        with send(tmp_path, SECONDS) as sender:
            wait_for_bytes(tmp_path, RATE)
            sender.kill()
        assert not (tmp_path / "feeds" / "scan7").exists()
        with send(tmp_path, 2) as sender:
            told = json.loads(sender.stdout.read())
        assert (sender.returncode, told["complete"]) == (0, True)
        assert told["counts"]["restarts"] == 1
        data = (tmp_path / "feeds" / "scan7").read_bytes()
        assert len(data) > 3 * RATE - 2
        assert data == counted_bytes(0, len(data))
        assert [each.name for each in (tmp_path / "spill").iterdir()] == ["lock"]


def test_a_spill_that_lost_power_goes_on_behind_what_the_receiver_has(tmp_path):
    """The spill is what it was a while ago, on another start of the host."""
    with world(tmp_path) as agents:
        feed_file(tmp_path, *agents, spill="spill")
        with send(tmp_path, SECONDS) as sender:
            wait_for_bytes(tmp_path, RATE // 4)
            stop(sender)  # what is copied is of one instant
            shutil.copytree(tmp_path / "spill", tmp_path / "before")
            sender.send_signal(signal.SIGCONT)
            wait_for_bytes(tmp_path, RATE)
            sender.kill()
        shutil.rmtree(tmp_path / "spill")
        (tmp_path / "before").rename(tmp_path / "spill")
        with closing(apsw.Connection(str(tmp_path / "spill" / "feed.db"))) as spill:
            spill.execute("UPDATE feed SET boot = 'before'")
        with send(tmp_path, 2) as sender:
            told = json.loads(sender.stdout.read())
        assert (sender.returncode, told["complete"]) == (0, True)
        data = (tmp_path / "feeds" / "scan7").read_bytes()
        assert data == counted_bytes(0, len(data))
        assert len(data) >= 2 * RATE


def test_a_sender_without_a_spill_leaves_what_was_written(tmp_path):
    with world(tmp_path) as agents:
        feed_file(tmp_path, *agents)
        with send(tmp_path, SECONDS) as sender:
            wait_for_bytes(tmp_path, RATE)
            sender.kill()
        # What has come is on the disk, and the report says up to where, and that it is no end.
        until_s = time.monotonic() + 60
        while (report := kept_report(tmp_path)).counts.received_bytes < RATE:
            assert time.monotonic() < until_s
            time.sleep(0.05)
        assert report.ended is None
        data = (tmp_path / "feeds" / "scan7.part").read_bytes()
        n_bytes = report.counts.received_bytes
        assert data[:n_bytes] == counted_bytes(0, n_bytes)
        with send(tmp_path, 1) as sender:
            assert sender.stdout.read() == ""
        assert sender.returncode == 2  # the name is that of another feed
