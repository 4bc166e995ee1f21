"""Background traffic of a bed: endless TCP transfers, and UDP in exponential on and off times.

Runs within the bed as a script, flows in JSON on standard input, the seed as its argument. Sockets
stay in the namespace in which they were made: so one process and one loop carry all flows.
"""

from __future__ import annotations

import ctypes
import heapq
import json
import os
import random
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

CLONE_NEWNET = 0x40000000
TCP_CONGESTION = 13
# Of a frame of 1514 bytes.
DATAGRAM_BYTES = 1472
SENT = bytes(1 << 16)

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def within(path: str) -> Iterator[None]:
    """Make sockets of another namespace."""
    own, other = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(path, os.O_RDONLY)
    try:
        if _libc.setns(other, CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")
        yield
    finally:
        _libc.setns(own, CLONE_NEWNET)
        os.close(own)
        os.close(other)


class Loop:
    """Sockets that are ready, and calls at their time."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        # Others wait for whole milliseconds, in which a fast wire carries several packets.
        self.selector = selectors.SelectSelector()
        self.calls: list[tuple[float, int, Callable[[], None]]] = []
        self.n_calls = 0

    def at(self, time_s: float, call: Callable[[], None]) -> None:
        self.n_calls += 1
        heapq.heappush(self.calls, (time_s, self.n_calls, call))

    def run(self) -> None:
        while True:
            wait_s = max(0.0, self.calls[0][0] - time.monotonic()) if self.calls else None
            for key, _ in self.selector.select(wait_s):
                key.data()
            while self.calls and self.calls[0][0] <= time.monotonic():
                heapq.heappop(self.calls)[2]()


def tcp(loop: Loop, flow: dict[str, Any]) -> None:
    """An endless transfer."""
    with within(flow["to"]):
        listener = socket.create_server((flow["address"], 0))
    listener.setblocking(False)
    nothing = bytearray(1 << 16)

    def accept() -> None:
        receiver, _ = listener.accept()
        receiver.setblocking(False)
        loop.selector.register(receiver, selectors.EVENT_READ, lambda: drain(receiver, nothing))

    def begin() -> None:
        with within(flow["from"]):
            sender = socket.socket()
        sender.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, flow["congestion"].encode())
        sender.setblocking(False)
        sender.connect_ex(listener.getsockname())
        loop.selector.register(sender, selectors.EVENT_WRITE, lambda: fill(sender))

    loop.selector.register(listener, selectors.EVENT_READ, accept)
    loop.at(loop.began_s + flow["start_s"], begin)


def drain(receiver: socket.socket, nothing: bytearray) -> None:
    try:
        receiver.recv_into(nothing)
    except BlockingIOError:
        return


def fill(sender: socket.socket) -> None:
    try:
        sender.send(SENT)
    except BlockingIOError:
        return


def udp(loop: Loop, flow: dict[str, Any], draws: random.Random) -> None:
    """Datagrams at a rate while on; silence while off."""
    if flow["rate_bytes_per_s"] <= 0:
        return
    with within(flow["to"]):
        receiver = socket.socket(type=socket.SOCK_DGRAM)
    receiver.bind((flow["address"], 0))
    receiver.setblocking(False)
    nothing = bytearray(1 << 16)
    loop.selector.register(receiver, selectors.EVENT_READ, lambda: drain(receiver, nothing))
    with within(flow["from"]):
        sender = socket.socket(type=socket.SOCK_DGRAM)
    sender.setblocking(False)
    sender.connect(receiver.getsockname())
    gap_s = DATAGRAM_BYTES / flow["rate_bytes_per_s"]

    def begin(time_s: float) -> None:
        ends_s = time_s + draws.expovariate(1 / flow["mean_on_s"])
        step(time_s, ends_s)

    def step(time_s: float, ends_s: float) -> None:
        while time_s < ends_s:
            if time_s > time.monotonic():
                return loop.at(time_s, partial(step, time_s, ends_s))
            with suppress(BlockingIOError, ConnectionRefusedError):
                sender.send(SENT[:DATAGRAM_BYTES])
            time_s += gap_s
        off_s = draws.expovariate(1 / flow["mean_off_s"]) if flow["mean_off_s"] > 0 else 0.0
        return loop.at(ends_s + off_s, lambda: begin(ends_s + off_s))

    start_s = loop.began_s + flow["start_s"]
    loop.at(start_s, lambda: begin(start_s))


def main() -> None:
    loop, seed = Loop(), int(sys.argv[1])
    for number, flow in enumerate(json.load(sys.stdin)):
        if flow["kind"] == "tcp":
            tcp(loop, flow)
        else:
            udp(loop, flow, random.Random(f"{seed} {number}"))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    loop.run()


if __name__ == "__main__":
    main()
