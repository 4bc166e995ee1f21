"""Feeds by UDP over loopback: sockets, threads and files; what is missing is listed."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from instances.udp_feeds import UdpHost, sender

from datacollect.errors import RefusedError
from datacollect.feeds.formats.report import FeedStopped
from datacollect.feeds.formats.udp_settings import UdpSettings
from datacollect.feeds.udp.drop_sets import dropped

pytestmark = pytest.mark.slow

SIZE = 1000


def made_bytes(n: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(n)


def write_paced(out, data: bytes, per_s: float = 500.0) -> None:
    """Write 10 messages at a time, a little slower than the source's rate."""
    for at in range(0, len(data), 10 * SIZE):
        out.write(data[at : at + 10 * SIZE])
        time.sleep(10 / per_s)


def holes_of(folder: Path) -> list[list[int]]:
    path = folder / "scan7.holes"
    if not path.exists():
        return []
    return [[*map(int, row.split(","))] for row in path.read_text().splitlines()[1:]]


def test_what_is_made_arrives_in_a_file_of_its_name(tmp_path: Path) -> None:
    """300 whole messages and a shorter one; loopback loses nothing."""
    data = made_bytes(300 * SIZE + 123)
    host = UdpHost(tmp_path)
    with sender(host) as out:
        write_paced(out, data)
        report = out.close()
    assert (tmp_path / "scan7").read_bytes() == data
    assert report is not None
    assert (report.counts.made, report.counts.made_bytes) == (301, len(data))
    assert (report.counts.received, report.counts.sent, report.counts.lost) == (301, 301, 0)
    assert report.delays.n == 301
    assert 0 <= report.delays.quantile(0.5) < 10
    assert holes_of(tmp_path) == []
    assert json.loads((tmp_path / "scan7.json").read_text())["ended"]


@pytest.mark.parametrize("fill", ["zero", "pattern", "random"])
def test_a_drop_set_is_what_is_missing_and_is_filled(tmp_path: Path, fill: str) -> None:
    data = made_bytes(200 * SIZE)
    host = UdpHost(tmp_path)
    settings = UdpSettings(drop=0.1, drop_set="bunches", seed=3, fill=fill, reorder=64)
    with sender(host, settings) as out:
        write_paced(out, data)
        report = out.close()
    missing = dropped("bunches", 0.1, 3, 200)
    assert report is not None
    assert (report.counts.lost, report.counts.received) == (len(missing), 200 - len(missing))
    rows = holes_of(tmp_path)
    assert [i for first, n, _, _ in rows for i in range(first, first + n)] == missing
    assert [row[2:] for row in rows] == [[first * SIZE, n * SIZE] for first, n, _, _ in rows]
    file = (tmp_path / "scan7").read_bytes()
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
    tmp_path: Path,
) -> None:
    data = made_bytes(400 * SIZE)
    host = UdpHost(tmp_path)
    with sender(host) as out:
        write_paced(out, data[: 100 * SIZE])
        host.cut()
        write_paced(out, data[100 * SIZE :])
        report = out.close()
    assert report is not None
    counts = report.counts
    assert counts.reconnections == 1
    assert counts.made == 400 == counts.received + counts.lost
    assert counts.lost > 0
    missing = {i for first, n, _, _ in holes_of(tmp_path) for i in range(first, first + n)}
    assert len(missing) == counts.lost
    file = (tmp_path / "scan7").read_bytes()
    for i in range(400):
        made = bytes(SIZE) if i in missing else data[i * SIZE : (i + 1) * SIZE]
        assert file[i * SIZE : (i + 1) * SIZE] == made, i


def test_a_disk_that_is_full_ends_the_feed_and_says_so(tmp_path: Path) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    host = UdpHost(tmp_path, require_room=full)
    with sender(host) as out, pytest.raises(FeedStopped, match="No space left"):
        write_paced(out, made_bytes(3000 * SIZE))


@pytest.mark.parametrize(
    ("most", "why"), [(None, "takes no feeds by udp"), (400_000.0, "above this agent's most_rate")]
)
def test_what_an_agent_does_not_take_is_refused(
    tmp_path: Path, most: float | None, why: str
) -> None:
    with pytest.raises(RefusedError, match=why), sender(UdpHost(tmp_path, most)):
        pass
    assert not [*tmp_path.iterdir()]


def test_two_feeds_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "scan7").write_bytes(b"mine")
    with pytest.raises(RefusedError, match="already"), sender(UdpHost(tmp_path)):
        pass
    assert (tmp_path / "scan7").read_bytes() == b"mine"
