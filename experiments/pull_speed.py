"""Speed of `datacollect pull` beside a plain program that moves the same bytes the same way.

Everything on loopback, each part a process: a source, one blind relay, the collector. The plain
program sends the same bytes over TLS 1.3 through the same relay, hashes them with BLAKE3, writes
them and syncs the file. Both run alternately; the ratio is that of medians in this one run.

    python experiments/pull_speed.py                 # 1 GiB, 3 times; --gib 4 as in docs/speed.md
    python experiments/pull_speed.py --small 100000  # that many files of 4 KiB
    python experiments/pull_speed.py --pieces 1024   # 1000 pieces of so many KiB, or few large ones
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h11
from blake3 import blake3

from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.net.keys import PrivateKey, new_private_key, write_private_key
from datacollect.net.tickets import RELAY, Ticket, sign_ticket
from datacollect.net.tls import client_context, server_context
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.run import Agent
from datacollect.transfer.pull.run import pull

if TYPE_CHECKING:
    from collections.abc import Callable

FORK = multiprocessing.get_context("fork")
GIB, BLOCK = 2**30, 2**20
H11_TIMES = 3000


def serve(config: AgentConfig, pipe: Any) -> None:
    """Run an agent; say where it is."""
    agent = Agent(config, lambda _: None)
    pipe.send((agent.address, agent.fingerprint))
    agent.run()


def send_plainly(path: Path, certificate: Path, key: Path, pipe: Any) -> None:
    """Send a file to everybody who comes, over TLS."""
    tls = server_context(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pipe.send(listener.getsockname())
        while True:
            client, _ = listener.accept()
            with tls.wrap_socket(client, server_side=True) as connection, path.open("rb") as file:
                while block := file.read(BLOCK):
                    connection.sendall(block)


def started(target: Callable[..., None], *arguments: object) -> Any:
    """Start a process; return what it says."""
    mine, its = FORK.Pipe(duplex=False)
    FORK.Process(target=target, args=(*arguments, its), daemon=True).start()
    return mine.recv()


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def all_cpu_s() -> float:
    """Return the processor time of this process and those it has started."""
    pids = [os.getpid(), *(child.pid for child in multiprocessing.active_children() if child.pid)]
    return sum(cpu_s(pid) for pid in pids)


def h11_s() -> float:
    """Return the processor time of h11 alone: a request, the head of its answer, both ends."""
    server = h11.Connection(h11.SERVER)
    begun_s = time.process_time()
    for _ in range(H11_TIMES):
        client = h11.Connection(h11.CLIENT)
        lengths = [("Host", "S"), ("Content-Length", "60")]
        asked = h11.Request(method="POST", target="/v1/read", headers=lengths)
        for event in (asked, h11.Data(data=bytes(60)), h11.EndOfMessage()):
            server.receive_data(client.send(event) or b"")
        while not isinstance(server.next_event(), h11.EndOfMessage):
            pass
        headers = [("Date", "now"), ("Content-Type", "bytes"), ("Content-Length", "0")]
        answer = h11.Response(status_code=200, reason=b"OK", headers=headers)
        client.receive_data(server.send(answer) or b"")
        client.next_event()
        server.send(h11.EndOfMessage())
        server.start_next_cycle()
    return (time.process_time() - begun_s) / H11_TIMES


class World:
    """A source and a relay, which knows a plain sender of one file, too."""

    def __init__(self, folder: Path, sizes: list[int]) -> None:
        self.folder, self.n_bytes = folder, sum(sizes)
        data = folder / "data"
        data.mkdir()
        block = os.urandom(max(1, min(BLOCK, max(sizes))))
        for i, size in enumerate(sizes):
            with (data / f"{i:06}").open("wb") as file:
                for at in range(0, size, len(block)):
                    file.write(block[: size - at])
        os.sync()  # of what is measured, only what is pulled is to wait for the disk
        self.key = new_private_key()
        write_private_key(folder / "key", self.key)
        address, source = self._agent("S", 'serve = "data"')
        plain = started(send_plainly, data / "000000", folder / "S.cert.pem", folder / "S.key.pem")
        places = f'S = "{_place(address)}", P = "{_place(plain)}"'
        self.relay, relay = self._agent("R", f"connect_to = {{ {places} }}")
        self.agents = {
            "S": {"url": f"https://{_place(address)}", "fingerprint": source},
            "R": {"url": f"https://{_place(self.relay)}", "fingerprint": relay},
        }

    def _agent(self, name: str, more: str) -> Any:
        path = self.folder / f"{name}.toml"
        path.write_text(
            f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:0"\n'
            f'collectors = ["{self.key.public}"]\n{more}\n'
        )
        return started(serve, AgentConfig.from_file(path))

    def pull(self, connections: int, piece_bytes: int | None = None) -> float:
        """Collect everything over the relay; return the seconds of the whole pull."""
        links = [
            {"from": a, "to": b, "bandwidth_bytes_per_s": 1e9} for a, b in (("S", "R"), ("R", "D"))
        ]
        limits: dict[str, object] = {"connections": 2 * connections}
        if piece_bytes is not None:
            limits["piece_bytes"] = piece_bytes
        collection = {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(self.folder / "key"),
            "agents": self.agents,
            "sources": {"S": {}},
            "links": links,
            "limits": limits,
        }
        into = self.folder / "into"
        begun_s = time.monotonic()
        answer = pull(collection, into, "coordinated")
        took_s = time.monotonic() - begun_s
        if not answer.complete or answer.n_bytes != self.n_bytes:
            raise SystemExit(f"not complete: {answer}")
        shutil.rmtree(into)
        os.sync()
        return took_s

    def plain(self) -> float:
        """Let the plain program receive, hash, write and sync; return its seconds."""
        into = self.folder / "plain"
        begun_s = time.monotonic()
        way = open_route(
            [RelayHop("R", self.relay, self._ticket())], "P", ("", 0), deadline=Deadline(60.0)
        )
        buffer, hashed, n_bytes = bytearray(BLOCK), blake3(), 0
        with client_context().wrap_socket(way) as connection, into.open("wb") as file:
            view = memoryview(buffer)
            while n := connection.recv_into(buffer):
                hashed.update(view[:n])
                file.write(view[:n])
                n_bytes += n
            file.flush()
            os.fsync(file.fileno())
        took_s = time.monotonic() - begun_s
        if n_bytes != self.n_bytes:
            raise SystemExit(f"the plain program got {n_bytes} bytes")
        into.unlink()
        os.sync()
        return took_s

    def _ticket(self) -> str:
        now_s = time.time()
        return _signed(
            Ticket(
                self.key.public, "R", RELAY, "plain", now_s, now_s + 30, egress="P", agents=("R",)
            ),
            self.key,
        )


def _signed(ticket: Ticket, key: PrivateKey) -> str:
    return sign_ticket(ticket, key)


def _place(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def report(name: str, seconds: list[float], n_bytes: int) -> float:
    """Print a line; return the median."""
    median_s = statistics.median(seconds)
    each = ", ".join(f"{s:.2f}" for s in seconds)
    print(f"{name:28} {median_s:7.2f} s {8e-9 * n_bytes / median_s:6.2f} Gbit/s   ({each})")
    return median_s


def main() -> None:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--connections", type=int, default=2, help="chains of the pull")
    parser.add_argument("--small", type=int, help="files of 4 KiB instead")
    parser.add_argument("--pieces", type=int, help="1000 of so many KiB, or as few as can be")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"python {' '.join(sys.argv)}; load at the start {load:.1f}; {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as name:
        if given.small:
            world = World(Path(name), [4096] * given.small)
            took = [world.pull(given.connections) for _ in range(given.times)]
            median_s = report(f"{given.small} files of 4 KiB", took, world.n_bytes)
            print(f"{given.small / median_s:.0f} files/s")
            return
        if given.pieces:
            world = World(Path(name), [1000 * given.pieces * 2**10])
            ways = {"pieces of 16 MiB": 2**24, "1000 pieces": given.pieces * 2**10}
            found: dict[str, list[float]] = {way: [] for way in ways}
            spent: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(given.times):
                for way, size in ways.items():
                    before_s = all_cpu_s()
                    found[way].append(world.pull(given.connections, size))
                    spent[way].append(all_cpu_s() - before_s)
            few, many = (report(way, took, world.n_bytes) for way, took in found.items())
            print(f"1000 pieces / pieces of 16 MiB: {many / few:.2f} of its time")
            few_s, many_s = (statistics.median(times) for times in spent.values())
            more = 1000 - -(-world.n_bytes // 2**24)
            print(f"processor time of a piece more: {(many_s - few_s) / more * 1e3:.2f} ms")
            print(f"of that h11 alone, both ends: {h11_s() * 1e3:.2f} ms")
            return
        world = World(Path(name), [int(given.gib * GIB)])
        plain, pulled = [], []
        for _ in range(given.times):
            plain.append(world.plain())
            pulled.append(world.pull(given.connections))
        slow = report("plain program", plain, world.n_bytes)
        fast = report(f"pull, {given.connections} chains", pulled, world.n_bytes)
        print(f"pull / plain: {slow / fast:.2f} of its speed")


if __name__ == "__main__":
    main()
