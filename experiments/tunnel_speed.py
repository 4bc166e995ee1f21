"""What a tunnel costs: its rate over a relay on loopback, beside TLS over the same relay.

    python experiments/tunnel_speed.py [--bytes 1GB] [--rounds 5]

Prints a table in Markdown, docs/tables/tunnel_speed.md. Each round sends so many bytes twice, in
either order: by a program over `dc.tunnel` to a service beside an agent, and by a program that
speaks TLS itself (`ssl.SSLSocket`) to another that does, which is what pulls do. Both pass one
relay, an agent in a process of its own; agent, service and sender have processes of their own, too.
Until the last byte was taken and said so; processor seconds of all processes together.

A tunnel has two connections more than TLS: from the program to the tunnel, and from the agent to
its service. What one costs, plain and to the service alone, is printed, too, and to which ratio TLS
itself would come with two such connections more, where processors are what binds. That is no bound:
tunnels come to more.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import datacollect as dc
from datacollect.files.quantities import BYTES, quantity
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route, start_tls
from datacollect.net.keys import new_private_key, write_private_key
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.net.tls import client_context, server_context

BLOCK_BYTES = 256 * 1024


def serve(folder: Path, *, with_tls: bool) -> None:
    """Take what comes, and say how much, for ever; the port is printed."""
    context = server_context(folder / "S1.cert.pem", folder / "S1.key.pem") if with_tls else None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            one, _ = listener.accept()
            if context is not None:
                one = context.wrap_socket(one, server_side=True)
            with one:
                take(one)


def take(one: socket.socket) -> None:
    buffer = bytearray(BLOCK_BYTES)
    left = int.from_bytes(one.recv(8), "big")
    while left:
        left -= one.recv_into(buffer)
    one.sendall(b"done")


def send(one: socket.socket, n_bytes: int) -> float:
    """Send bytes; return the seconds until all were taken."""
    block, begun_s = memoryview(bytes(BLOCK_BYTES)), time.monotonic()
    one.sendall(n_bytes.to_bytes(8, "big"))
    for at in range(0, n_bytes, BLOCK_BYTES):
        one.sendall(block[: min(BLOCK_BYTES, n_bytes - at)])
    assert one.recv(4) == b"done"
    return time.monotonic() - begun_s


class World:
    """An agent with a tunnel to a service, a relay to it and to a service that speaks TLS."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self._folder, self._held = folder, held
        self._processes: list[subprocess.Popen[str]] = []
        self._key = new_private_key()
        write_private_key(folder / "collector.key", self._key)
        plain = self._start(__file__, "--serve", str(folder))
        agent = {"tunnel": {"users": [self._key.public], "to": {"sink": f"127.0.0.1:{plain}"}}}
        s1 = self._agent("S1", agent)
        tls = self._start(__file__, "--serve-tls", str(folder))
        places = {"S1": s1["url"].removeprefix("https://"), "T": f"127.0.0.1:{tls}"}
        k1 = self._agent("K1", {"connect_to": places})
        self._service = ("127.0.0.1", int(plain))
        self._relay = ("127.0.0.1", int(k1["url"].rpartition(":")[2]))
        self._collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(folder / "collector.key"),
            "agents": {
                each["name"]: {key: each[key] for key in ("url", "fingerprint")}
                for each in (s1, k1)
            },
        }

    def _start(self, *words: str) -> str:
        process = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._held.callback(process.wait)
        self._held.callback(process.kill)
        self._processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def _agent(self, name: str, more: dict) -> dict:
        path = self._folder / f"{name}.json"
        tree = {
            "format": "datacollect-agent/1",
            "name": name,
            "listen": "127.0.0.1:0",
            "collectors": [self._key.public],
            **more,
        }
        path.write_text(json.dumps(tree))
        return json.loads(self._start("-m", "datacollect", "agent", str(path), "--json"))

    def by_tunnel(self, n_bytes: int) -> float:
        with dc.tunnel(self._collection, "S1:sink", via=["K1"]) as tunnel:
            return send(tunnel.socket, n_bytes)

    def by_hop(self, n_bytes: int) -> float:
        with socket.create_connection(self._service) as connection:
            return send(connection, n_bytes)

    def by_tls(self, n_bytes: int) -> float:
        now_s = time.time()
        ticket = Ticket(
            self._key.public,
            "K1",
            "relay",
            # The last connection may not have ended yet, and counts.
            f"speed-{now_s}",
            issued_s=now_s,
            expires_s=now_s + 50,
            egress="T",
            agents=("K1",),
        )
        hop = RelayHop("K1", self._relay, sign_ticket(ticket, self._key))
        deadline = Deadline(20)
        plain = open_route([hop], "T", ("unused", 1), deadline=deadline)
        with start_tls(plain, client_context(), "127.0.0.1", "T", deadline) as connection:
            connection.settimeout(60)
            return send(connection, n_bytes)

    def processor_s(self) -> float:
        """Processor seconds of all processes so far."""
        ticks = sum(
            sum(
                map(
                    int,
                    Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split()[11:13],
                )
            )
            for each in self._processes
        )
        return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--bytes", default="1GB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--serve-tls", metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve or given.serve_tls:
        serve(Path(given.serve or given.serve_tls), with_tls=bool(given.serve_tls))
    n_bytes = int(quantity(given.bytes, BYTES))
    ways = {
        "tunnel": World.by_tunnel,
        "TLS": World.by_tls,
        "a plain connection, no relay": World.by_hop,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    processor: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        world = World(Path(folder), held)
        for turn in range(given.rounds):
            for name in list(ways)[:: -1 if turn % 2 else 1]:
                before_s = world.processor_s()
                seconds[name].append(ways[name](world, n_bytes))
                processor[name].append((world.processor_s() - before_s) / n_bytes * 2**30)
    print("| what | Gbit/s | processor s/GiB |")
    print("|---|---|---|")
    for name in ways:
        rate = n_bytes * 8e-9 / median(seconds[name])
        print(f"| {name} | {rate:.1f} | {median(processor[name]):.2f} |")
    ratios = [b / a for a, b in zip(seconds["tunnel"], seconds["TLS"], strict=True)]
    print()
    print(
        f"Tunnel ÷ TLS: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), medians of "
        f"{given.rounds} rounds of {n_bytes / 1e9:g} GB; {os.cpu_count()} processors, "
        f"{datetime.now(UTC):%Y-%m-%d}."
    )
    tls, hop = (median(processor[name]) for name in ("TLS", "a plain connection, no relay"))
    print(f"TLS ÷ TLS with two hops more, processors alone: {tls / (tls + 2 * hop):.2f}.")


if __name__ == "__main__":
    main()
