"""The two ends of `depots.py`, in its bed: a server that sends on plain TCP, and a client.

    depot_ends.py serve SETTING     answers twelve digits with as many bytes
    depot_ends.py fetch SETTING N   asks for N bytes directly and over the depot at the same moment

SETTING is JSON.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.net.keys import read_private_key
from datacollect.net.tickets import Ticket, sign_ticket

DIGITS = 12
BLOCK_BYTES = 1 << 18


def tune(sock: socket.socket, setting: dict[str, Any]) -> None:
    """Ask for the setting's congestion control and buffers."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, setting["congestion"].encode())
    if (n_bytes := setting["buffer_bytes"]) is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, n_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, n_bytes)


def exactly(sock: socket.socket, n_bytes: int) -> bytes:
    """Receive so many bytes."""
    found = b""
    while len(found) < n_bytes:
        if not (more := sock.recv(n_bytes - len(found))):
            raise ConnectionError(f"ended after {len(found)} of {n_bytes} bytes")
        found += more
    return found


def answer(sock: socket.socket) -> None:
    """Send what is asked for; the end tells the client nothing: it counts."""
    block = bytes(BLOCK_BYTES)
    with sock:
        left = int(exactly(sock, DIGITS))
        while left:
            left -= sock.send(block[:left])
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)


def serve(setting: dict[str, Any]) -> None:
    """Answer each connection in a thread of its own."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tune(listener, setting)
        listener.bind(tuple(setting["server"]))
        listener.listen(50)
        print("ready", flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=answer, args=(sock,), daemon=True).start()


def taken_s(setting: dict[str, Any], hops: list[RelayHop], n_bytes: int) -> float:
    """Return how long a file takes from connecting to its last byte."""
    began_s = time.monotonic()
    deadline = Deadline(setting["patience_s"])
    sock = open_route(
        hops,
        "S",
        tuple(setting["server"]),
        deadline=deadline,
        congestion=setting["congestion"],
        buffer_bytes=setting["buffer_bytes"],
    )
    with sock:
        sock.settimeout(setting["patience_s"])
        sock.sendall(b"%*d" % (DIGITS, n_bytes))
        block, left = bytearray(BLOCK_BYTES), n_bytes
        while left:
            if not (n := sock.recv_into(block)):
                raise ConnectionError(f"ended {left} bytes too early")
            left -= n
        return time.monotonic() - began_s


def fetch(setting: dict[str, Any], n_bytes: int) -> dict[str, float]:
    """Fetch as many bytes directly and over the depot, at the same moment."""
    key = read_private_key(setting["key"])
    now_s = time.time()
    ticket = Ticket(
        key.public, "K", "relay", "depots", now_s - 5, now_s + 55, egress="S", agents=("K",)
    )
    depot = RelayHop("K", tuple(setting["depot"]), sign_ticket(ticket, key))
    with ThreadPoolExecutor(2) as pool:
        direct = pool.submit(taken_s, setting, [], n_bytes)
        relayed = pool.submit(taken_s, setting, [depot], n_bytes)
        return {"direct_s": direct.result(), "relayed_s": relayed.result()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    hows = parser.add_subparsers(dest="how", required=True)
    for how in ("serve", "fetch"):
        hows.add_parser(how).add_argument("setting", type=json.loads, metavar="SETTING")
    hows.choices["fetch"].add_argument("n_bytes", type=int, metavar="N")
    options = parser.parse_args()
    if options.how == "serve":
        serve(options.setting)
    else:
        print(json.dumps(fetch(options.setting, options.n_bytes)))


if __name__ == "__main__":
    main()
