"""Feeds by UDP to an agent over loopback: sockets, threads, files; what is missing is listed."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from instances.feeds import feed_tree, kept_report, receiving
from instances.udp_feeds import SIZE, UDP

import datacollect as dc
from datacollect.errors import RefusedError
from datacollect.feeds.formats.report import FeedStopped
from datacollect.feeds.udp import guard
from datacollect.feeds.udp.drop_sets import dropped

pytestmark = pytest.mark.slow


def made_bytes(n: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(n)


def write_paced(out, data: bytes, per_s: float = 500.0) -> None:
    """Write 10 messages at a time, at the source's rate."""
    for at in range(0, len(data), 10 * SIZE):
        out.write(data[at : at + 10 * SIZE])
        time.sleep(10 / per_s)


def holes_of(folder: Path) -> list[list[int]]:
    path = folder / "feeds" / "scan7.holes"
    if not path.exists():
        return []
    return [[*map(int, row.split(","))] for row in path.read_text().splitlines()[1:]]


def missing_of(folder: Path) -> list[int]:
    return [i for first, n, _, _ in holes_of(folder) for i in range(first, first + n)]


@contextmanager
def sending(folder: Path, told: list[str] | None = None, most_rate="1 Gbit/s", **more):
    """Yield a feed to an agent, and that."""
    keys = {} if most_rate is None else {"most_rate": most_rate}
    with receiving(folder, **keys) as agent:
        tell = None if told is None else told.append
        out = dc.feeds.send(feed_tree(folder, agent, **(UDP | more)), tell=tell)
        try:
            yield out, agent
        finally:
            out.abandon()


def test_what_is_made_arrives_in_a_file_of_its_name(tmp_path: Path) -> None:
    """150 whole messages and a shorter one; loopback loses nothing.

    All of them fit into the socket's buffer, however late the receiver reads.
    """
    data = made_bytes(150 * SIZE + 123)
    with sending(tmp_path) as (out, _):
        write_paced(out, data)
        out.close()
        counts, delays = out.counts, out.delays
    assert (tmp_path / "feeds/scan7").read_bytes() == data
    assert (counts.made, counts.made_bytes, counts.is_whole) == (151, len(data), True)
    assert (counts.received, counts.received_bytes, counts.sent) == (151, len(data), 151)
    assert delays.n == 151
    assert 0 <= delays.quantile(0.5) < 10
    assert out.clock == "one clock"
    assert holes_of(tmp_path) == []
    report = kept_report(tmp_path)
    assert report.ended
    assert report.counts == counts
    assert report.more["receive_buffer_bytes"] > 0
    assert {path.name for path in (tmp_path / "feeds").iterdir()} == {"scan7", "scan7.json"}


@pytest.mark.parametrize("fill", ["zero", "pattern", "random"])
def test_a_drop_set_is_what_is_missing_and_is_filled(tmp_path: Path, fill: str) -> None:
    data = made_bytes(200 * SIZE)
    udp = {"drop": 0.1, "drop_set": "bunches", "seed": 3, "fill": fill, "reorder": 64}
    with sending(tmp_path, udp=udp) as (out, _):
        write_paced(out, data)
        out.close()
    missing = dropped("bunches", 0.1, 3, 200)
    assert (out.counts.lost, out.counts.received) == (len(missing), 200 - len(missing))
    assert missing_of(tmp_path) == missing
    rows = holes_of(tmp_path)
    assert [row[2:] for row in rows] == [[first * SIZE, n * SIZE] for first, n, _, _ in rows]
    assert kept_report(tmp_path).more["udp"]["seed"] == 3
    file = (tmp_path / "feeds/scan7").read_bytes()
    assert len(file) == len(data)
    for i in range(200):
        found, made = file[i * SIZE : (i + 1) * SIZE], data[i * SIZE : (i + 1) * SIZE]
        if i not in missing:
            assert found == made
        elif fill == "zero":
            assert found == bytes(SIZE)
        elif fill == "pattern":
            assert found == bytes.fromhex("44332211") * 250
        else:
            assert found not in (made, bytes(SIZE))


def test_a_connection_that_is_cut_is_opened_again_and_what_came_between_is_missing(
    tmp_path: Path, monkeypatch
) -> None:
    data, is_noticed, is_made = made_bytes(400 * SIZE), threading.Event(), threading.Event()
    with sending(tmp_path) as (out, _):
        real = out._open

        def open_again() -> object:
            is_noticed.set()
            assert is_made.wait(60)
            return real()

        monkeypatch.setattr(out, "_open", open_again)
        write_paced(out, data[: 100 * SIZE])
        out._control.close()
        assert is_noticed.wait(60)
        write_paced(out, data[100 * SIZE : 200 * SIZE])
        is_made.set()
        write_paced(out, data[200 * SIZE :])
        out.close()
    counts = out.counts
    assert counts.reconnections == 1
    assert counts.made == 400 == counts.received + counts.lost
    assert counts.lost > 0
    missing = missing_of(tmp_path)
    assert len(missing) == len(set(missing)) == counts.lost
    file = (tmp_path / "feeds/scan7").read_bytes()
    for i in range(400):
        made = bytes(SIZE) if i in missing else data[i * SIZE : (i + 1) * SIZE]
        assert file[i * SIZE : (i + 1) * SIZE] == made, i


def test_an_agent_that_begins_again_goes_on_with_the_file(tmp_path: Path) -> None:
    """What it had decided stays; the rest, until it is back, is missing."""
    data = made_bytes(600 * SIZE)
    with receiving(tmp_path, most_rate="1 Gbit/s") as agent:
        place = agent.address
        tree = feed_tree(tmp_path, agent, **UDP)
        out = dc.feeds.send(tree)
        write_paced(out, data[: 300 * SIZE])
    text = (tmp_path / "D.toml").read_text()
    (tmp_path / "D.toml").write_text(text.replace("127.0.0.1:0", f"127.0.0.1:{place[1]}"))
    with receiving(tmp_path, most_rate="1 Gbit/s"):
        until_s = time.monotonic() + 30
        while out._n_connections < 2 and time.monotonic() < until_s:
            time.sleep(0.05)
        write_paced(out, data[300 * SIZE :])
        out.close()
    counts = out.counts
    assert counts.made == 600 == counts.received + counts.lost
    assert counts.received > 0
    assert len(missing_of(tmp_path)) == counts.lost
    file = (tmp_path / "feeds/scan7").read_bytes()
    good = [i for i in range(600) if file[i * SIZE : i * SIZE + SIZE] == data[i * SIZE :][:SIZE]]
    assert good == [i for i in range(600) if i not in set(missing_of(tmp_path))]


def test_a_disk_that_is_full_is_said_and_costs_what_it_could_not_take(tmp_path: Path) -> None:
    told: list[str] = []
    with receiving(tmp_path, most_rate="1 Gbit/s", bytes="50 kB") as agent:
        udp = {"grace": 3.0, "end": 6.0}
        out = dc.feeds.send(feed_tree(tmp_path, agent, **(UDP | {"udp": udp})), tell=told.append)
        with pytest.raises(FeedStopped, match="used up"):
            write_paced(out, made_bytes(20_000 * SIZE))
        out.abandon()
    assert any("used up" in line for line in told)
    assert out.counts.made > 50


@pytest.mark.parametrize(
    ("most", "why"), [(None, "takes no feeds by udp"), ("3 Mbit/s", "but this agent takes at most")]
)
def test_what_an_agent_does_not_take_is_refused(tmp_path: Path, most: str | None, why: str) -> None:
    with pytest.raises(RefusedError, match=why), sending(tmp_path, most_rate=most):
        pass
    assert not [*(tmp_path / "feeds").iterdir()]


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "feeds").mkdir()
    (tmp_path / "feeds/scan7").write_bytes(b"mine")
    with pytest.raises(RefusedError, match="already"), sending(tmp_path):
        pass
    assert (tmp_path / "feeds/scan7").read_bytes() == b"mine"


def test_packets_of_others_change_nothing(tmp_path: Path) -> None:
    """Without the nonce they are counted as foreign, whatever they say."""
    data = made_bytes(100 * SIZE)
    with sending(tmp_path) as (out, _), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.connect(out._socket.getpeername())
        for at in range(0, 100, 10):
            other.send(bytes(40 + SIZE))
            other.send(b"x")
            write_paced(out, data[at * SIZE : (at + 10) * SIZE])
        out.close()
    assert out.counts.is_whole
    assert (tmp_path / "feeds/scan7").read_bytes() == data


def test_a_path_that_loses_half_is_an_alarm_and_ends_the_feed(tmp_path: Path, monkeypatch) -> None:
    """As where a wire of two is gone: told within a second or so, dropped after the grace."""
    monkeypatch.setattr(guard, "SILENT_S", 60.0)  # on a busy machine reports may be late
    told: list[str] = []
    with sending(tmp_path, told, udp={"grace": 0.5, "end": 1.0}) as (out, _):
        real, flips = out._packets.send, iter(range(10**9))
        monkeypatch.setattr(out._packets, "send", lambda data: real(data) if next(flips) % 2 else 0)
        with pytest.raises(FeedStopped, match="most_loss"):
            write_paced(out, made_bytes(20_000 * SIZE))
        assert out.alarm is not None
        assert out.not_sent["by_guard"] > 0
    assert any("the path loses more than most_loss" in line for line in told)


@pytest.mark.parametrize("thread", ["hear", "send"])
def test_a_thread_that_fails_in_an_unforeseen_way_ends_the_feed_and_says_why(
    tmp_path: Path, monkeypatch, thread: str
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("surprise")

    with sending(tmp_path) as (out, _):
        monkeypatch.setattr(out, {"hear": "_take", "send": "_send"}[thread], failing)
        with pytest.raises(FeedStopped, match="RuntimeError: surprise"):
            write_paced(out, made_bytes(5000 * SIZE))
        with pytest.raises(FeedStopped, match="RuntimeError: surprise"):
            out.close()
    assert not (tmp_path / "feeds/scan7").exists()
