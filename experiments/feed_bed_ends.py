"""The two ends of `feed_bed.py`, in its bed: a source, and who watches what has arrived.

    feed_bed_ends.py make FEED.toml SECONDS OUT.npy   a source of the feed's rate, by the library
    feed_bed_ends.py unpaced FEED.toml SECONDS OUT.npy  the same, by TCP's own pace
    feed_bed_ends.py watch FOLDER NAME OUT.npy        when how much of NAME.part was there
    feed_bed_ends.py gaps SECONDS OUT.npy             when how much this namespace had received
    feed_bed_ends.py pace ADDRESS PACKETS_PER_S N     datagrams, evenly; 0: as fast as they leave
    feed_bed_ends.py hear ADDRESS OWN                 gaps between them, and what receiving took
    feed_bed_ends.py pace_tcp ADDRESS BLOCKS_PER_S N  as many bytes over a connection
    feed_bed_ends.py hear_tcp OWN                     the same of a connection's blocks

Rows of the files are an instant of the machine's own clock, and how many bytes there were then.
"""

from __future__ import annotations

import argparse
import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from datacollect.feeds import send
from datacollect.feeds.formats.feed_file import FeedFile
from datacollect.feeds.sender import link

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_S = 0.002
DATAGRAM_BYTES, DATAGRAM_PORT = 1472, 9000
SO_RCVBUFFORCE, ROOM_BYTES = 33, 8 << 20
FIRST_WITHIN_S, SILENT_S = 60.0, 2.0


def make(feed: Path, seconds: float, out: Path) -> None:
    """Write a message whenever one is due; note when each was made."""
    file = FeedFile.from_file(feed)
    message = bytes(file.message_bytes)
    n, rate = int(seconds * file.rate_bytes_per_s / file.message_bytes), file.rate_bytes_per_s
    made = np.empty((n, 2))
    with send(file) as sending:
        print("begun", flush=True)
        begun_s = time.monotonic()
        for i in range(n):
            due_s = begun_s + (i + 1) * file.message_bytes / rate
            while (left_s := due_s - time.monotonic()) > 0:
                time.sleep(left_s)
            made[i] = time.monotonic(), (i + 1) * file.message_bytes
            sending.write(message)
    np.save(out, made)
    said = {"counts": sending.counts.to_dict(), "delay": sending.delays.to_dict()}
    print(json.dumps(said), flush=True)


def unpaced(feed: Path, seconds: float, out: Path) -> None:
    """Do as `make`, with a connection that is not paced."""
    link.set_pacing_rate = lambda *_: None
    make(feed, seconds, out)


def watch(folder: Path, name: str, out: Path) -> None:
    """Note how the file grows, until it has its name."""
    part, whole, rows = folder / f"{name}.part", folder / name, [(0.0, 0)]
    while True:
        is_whole = whole.exists()
        try:
            n_bytes = (whole if is_whole else part).stat().st_size
        except FileNotFoundError:  # not begun yet, or it gets its name now
            n_bytes = rows[-1][1]
        if n_bytes > rows[-1][1]:
            rows.append((time.monotonic(), n_bytes))
        if is_whole:
            break
        time.sleep(LOOK_S)
    np.save(out, np.array(rows[1:]))


def interface_bytes() -> int:
    """Return what all interfaces of this namespace have received, but its own loop."""
    rows = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    parts = [row.partition(":") for row in rows]
    return sum(int(rest.split()[0]) for name, _, rest in parts if name.strip() != "lo")


def gaps(seconds: float, out: Path) -> None:
    """Note when packets come."""
    until_s, rows = time.monotonic() + seconds, [(time.monotonic(), interface_bytes())]
    while time.monotonic() < until_s:
        time.sleep(LOOK_S)
        rows.append((time.monotonic(), interface_bytes()))
    np.save(out, np.array(rows))


def paced(send: Callable[[bytes], object], per_s: float, n: int) -> None:
    """Send blocks evenly, or as fast as they leave."""
    data, begun_s = bytes(DATAGRAM_BYTES), time.monotonic()
    for i in range(n):
        due_s = begun_s + i / per_s if per_s else 0.0
        while (left_s := due_s - time.monotonic()) > 0:
            time.sleep(left_s)
        send(data)


def pace(address: str, per_s: float, n: int) -> None:
    """Send datagrams to an address or group."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        paced(lambda data: sender.sendto(data, (address, DATAGRAM_PORT)), per_s, n)


def pace_tcp(address: str, per_s: float, n: int) -> None:
    """Send blocks of as many bytes over a connection."""
    with socket.create_connection((address, DATAGRAM_PORT)) as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        paced(sender.sendall, per_s, n)


def say_gaps(stamps: list[float], used_s: float) -> None:
    """Print gaps between blocks, and what receiving each took."""
    apart_s = np.diff(stamps)
    parts = (0.001, 0.01, 0.5, 0.99, 0.999)
    said = {
        f"p{100 * part:g}_ms": round(1e3 * float(np.quantile(apart_s, part)), 3) for part in parts
    }
    said |= {"most_ms": round(1e3 * float(apart_s.max()), 3), "received": len(stamps) + 1}
    said["us_each"] = round(1e6 * used_s / len(stamps), 2)
    print(json.dumps(said), flush=True)


def hear(address: str, own: str) -> None:
    """Receive datagrams, sent here or to a group, until none has come for a while."""
    stamps: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
        receiver.bind(("", DATAGRAM_PORT))
        if address != own:
            place = socket.inet_aton(address) + socket.inet_aton(own)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, place)
        print("ready", flush=True)
        receiver.settimeout(FIRST_WITHIN_S)
        into = bytearray(2048)
        receiver.recv_into(into)
        receiver.settimeout(SILENT_S)
        before_s = time.process_time()
        with suppress(TimeoutError):
            while True:
                receiver.recv_into(into)
                stamps.append(time.monotonic())
        used_s = time.process_time() - before_s
    say_gaps(stamps, used_s)


def hear_tcp(own: str) -> None:
    """Receive a connection's blocks to its end, each by one call, as datagrams are."""
    stamps: list[float] = []
    with socket.create_server((own, DATAGRAM_PORT)) as server:
        print("ready", flush=True)
        server.settimeout(FIRST_WITHIN_S)
        receiver, _ = server.accept()
    with receiver:
        into = bytearray(DATAGRAM_BYTES)
        receiver.recv_into(into, 0, socket.MSG_WAITALL)
        before_s = time.process_time()
        while receiver.recv_into(into, 0, socket.MSG_WAITALL):
            stamps.append(time.monotonic())
        used_s = time.process_time() - before_s
    say_gaps(stamps, used_s)


WAYS: dict[str, tuple[Callable[..., None], dict[str, Callable[[str], object]]]] = {
    "make": (make, {"feed": Path, "seconds": float, "out": Path}),
    "unpaced": (unpaced, {"feed": Path, "seconds": float, "out": Path}),
    "watch": (watch, {"folder": Path, "name": str, "out": Path}),
    "gaps": (gaps, {"seconds": float, "out": Path}),
    "pace": (pace, {"address": str, "per_s": float, "n": int}),
    "hear": (hear, {"address": str, "own": str}),
    "pace_tcp": (pace_tcp, {"address": str, "per_s": float, "n": int}),
    "hear_tcp": (hear_tcp, {"own": str}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    hows = parser.add_subparsers(dest="how", required=True)
    for name, (_, takes) in WAYS.items():
        way = hows.add_parser(name)
        for argument, kind in takes.items():
            way.add_argument(argument, type=kind)
    asked = vars(parser.parse_args())
    WAYS[asked.pop("how")][0](**asked)


if __name__ == "__main__":
    main()
