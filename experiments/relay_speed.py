"""Speed of relaying and serving on loopback, beside what the kernel does; ratios of one run.

``python experiments/relay_speed.py`` prints a table. A blind relay is compared with one plain TCP
stream (iperf3 where it is installed, else two sockets of this program). Each figure of a relay is
the best of several rounds, taken in turns with the stream, since other work disturbs both.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from blake3 import blake3
from pull_speed import cpu_s, started

from datacollect.net.deadline import Deadline
from datacollect.net.dialling import RelayHop, open_route
from datacollect.net.keys import new_private_key
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.net.tls import client_context, server_context
from datacollect.transfer.protocol.messages import TAIL_BYTES, Read, WireSegment, read_body
from datacollect.transfer.sources.agent.session import connect

GIB = 2**30
KEY = new_private_key()
BLOCK = memoryview(bytes(2**20))
# TLS's first records as far as a relay looks at them, and nothing behind.
CLIENT_HELLO = bytes.fromhex("160301002e0100002a0303") + bytes(40)
SERVER_HELLO = bytes.fromhex("160303002e0200002a0303") + bytes(40)


@contextmanager
def agent(folder, name, more):
    """Run an agent in a process of its own; yield its address, fingerprint and process."""
    file = Path(folder, f"{name}.toml")
    head = f'format = "datacollect-agent/1"\nname = "{name}"\nlisten = "127.0.0.1:0"\n'
    limits = "[limits]\nsessions = 5000\nsessions_per_address = 5000\n"
    limits += "new_per_s = 10000\nhead_s = 300\n"
    file.write_text(f'{head}collectors = ["{KEY.public}"]\n{more}\n{limits}')
    command = [sys.executable, "-m", "datacollect", "agent", str(file), "--json"]
    with (
        Path(folder, f"{name}.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            facts = json.loads(process.stdout.readline())
            host, _, port = facts["url"].removeprefix("https://").rpartition(":")
            yield (host, int(port)), facts["fingerprint"], process.pid
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()


@contextmanager
def sink():
    """Listen, greet whoever greets, and read all that comes; yield the address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)

    def drain(connection):
        buffer = bytearray(2**20)
        with connection:
            if connection.recv(1, socket.MSG_PEEK) == CLIENT_HELLO[:1]:
                connection.sendall(SERVER_HELLO)
            while connection.recv_into(buffer):
                pass
            connection.sendall(b".")

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=drain, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def push(connection, n_bytes):
    """Send so many bytes, and wait until the other side has read them."""
    left = n_bytes
    while left:
        left -= connection.send(BLOCK[: min(left, len(BLOCK))])
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b"."
    connection.close()


def gbit_per_s(n_bytes, started_s):
    """Return the rate since then."""
    return n_bytes * 8 / (time.perf_counter() - started_s) / 1e9


def plain_stream(n_bytes, address):
    """Return Gbit/s of one plain stream: iperf3's, else our own."""
    if not shutil.which("iperf3"):
        started_s = time.perf_counter()
        push(socket.create_connection(address), n_bytes)
        return gbit_per_s(n_bytes, started_s)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = subprocess.Popen(["iperf3", "-s", "-1", "-p", port], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    command = ["iperf3", "-c", "127.0.0.1", "-p", port, "-n", str(n_bytes), "-J"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    server.wait(10)
    return json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"] / 1e9


def relay_ticket(name, egress):
    """Return a ticket for one connection through a relay."""
    now_s = time.time()
    ticket = Ticket(
        KEY.public,
        name,
        "relay",
        "speed",
        now_s,
        now_s + 50,
        egress=egress,
        agents=(name,),
        most_sockets=5000,
    )
    return sign_ticket(ticket, KEY)


def through(relay, n_bytes, n_sessions):
    """Push bytes through a relay over so many connections at once; return Gbit/s."""
    ways = [
        open_route(
            [RelayHop("R", relay, relay_ticket("R", "T"))], "T", relay, deadline=Deadline(60.0)
        )
        for _ in range(n_sessions)
    ]
    for way in ways:
        way.sendall(CLIENT_HELLO)
        assert way.recv(len(SERVER_HELLO), socket.MSG_WAITALL) == SERVER_HELLO
    each = n_bytes // n_sessions
    started_s = time.perf_counter()
    with ThreadPoolExecutor(n_sessions) as pool:
        list(pool.map(lambda way: push(way, each), ways))
    return gbit_per_s(n_bytes, started_s)


def relay_rows(folder, n_bytes, rounds):
    """Yield what a blind relay does, beside a plain stream."""
    with (
        sink() as address,
        agent(folder, "R", f'connect_to = {{ T = "127.0.0.1:{address[1]}" }}') as relay,
    ):
        place, _, pid = relay
        through(place, n_bytes // 8, 1)
        best = {"plain": 0.0, "relay": 0.0, "relay500": 0.0}
        least_cpu_s = float("inf")
        for _ in range(rounds):
            best["plain"] = max(best["plain"], plain_stream(n_bytes, address))
            before_s = cpu_s(pid)
            best["relay"] = max(best["relay"], through(place, n_bytes, 1))
            least_cpu_s = min(least_cpu_s, (cpu_s(pid) - before_s) / (n_bytes / GIB))
            best["relay500"] = max(best["relay500"], through(place, n_bytes, 500))
        yield "one plain stream", f"{best['plain']:.1f} Gbit/s"
        yield "one stream through a blind relay", f"{best['relay']:.1f} Gbit/s"
        yield "ratio to the plain stream (≥ 0.5)", f"{best['relay'] / best['plain']:.2f}"
        yield "the relay's CPU s/GiB (≤ 0.35)", f"{least_cpu_s:.2f}"
        yield "500 streams through it, in all", f"{best['relay500']:.1f} Gbit/s"
        yield "ratio to one stream", f"{best['relay500'] / best['relay']:.2f}"


class Reader:
    """A session that asks for the same bytes again and again, and looks at none of them.

    Hundreds of these in one thread cost no more than a few: what is measured is the agent.
    """

    def __init__(self, address, first, request, answer_bytes):
        self._first, self._request = first, request
        self._answer_bytes = answer_bytes
        plain = socket.create_connection(address, timeout=120)
        self.connection = client_context().wrap_socket(plain)
        self._head = b""
        self._left_bytes = 0
        self.left = 0

    def begin(self, n_reads):
        """Ask for the first two."""
        self.left = n_reads
        self.connection.sendall(self._first + self._request * (n_reads > 1))
        self.connection.setblocking(False)

    def take(self, buffer):
        """Receive what has come; ask again when an answer has ended."""
        with suppress(ssl.SSLWantReadError):
            while self.left:
                n_bytes = self.connection.recv_into(buffer)
                assert n_bytes
                self._count(buffer[:n_bytes])

    def _count(self, data):
        while data:
            if not self._left_bytes:
                self._head += bytes(data)
                head, found, rest = self._head.partition(b"\r\n\r\n")
                if not found:
                    return
                assert head.startswith(b"HTTP/1.1 200"), head
                data, self._head, self._left_bytes = memoryview(rest), b"", self._answer_bytes
            n_bytes = min(len(data), self._left_bytes)
            data, self._left_bytes = data[n_bytes:], self._left_bytes - n_bytes
            if not self._left_bytes:
                self.left -= 1
                if self.left > 1:
                    self.connection.sendall(self._request)


def asked_of_agent(read):
    """Return the first request for a read, with its ticket, the next, and an answer's bytes."""
    now_s = time.time()
    ticket = Ticket(KEY.public, "S", "source", "speed", now_s, now_s + 600, most_sockets=5000)
    body = read_body(read)
    head = "POST /v1/read HTTP/1.1\r\nHost: S\r\n"
    tail = f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    first = f"{head}Authorization: Bearer {sign_ticket(ticket, KEY)}\r\n".encode() + tail
    return first, head.encode() + tail, read.n_bytes + TAIL_BYTES


def served(address, asked, n_reads, n_sessions):
    """Read so often over so many sessions at once; return seconds."""
    with ThreadPoolExecutor(16) as pool:
        readers = list(pool.map(lambda _: Reader(address, *asked), range(n_sessions)))
    buffer = memoryview(bytearray(2**18))
    with selectors.DefaultSelector() as waiting:
        started_s = time.perf_counter()
        for reader in readers:
            waiting.register(reader.connection, selectors.EVENT_READ, reader)
            reader.begin(n_reads // n_sessions)
        while waiting.get_map():
            for key, _ in waiting.select():
                key.data.take(buffer)
                if not key.data.left:
                    waiting.unregister(key.fileobj)
        took_s = time.perf_counter() - started_s
    for reader in readers:
        reader.connection.close()
    return took_s


def send_barely(path, certificate, key, n_bytes, pipe):
    """Send the beginning of a file for each byte that comes: hashed, over TLS, a thread for each.

    What any server of blocking threads does at the least.
    """
    tls = server_context(certificate, key)
    number = os.open(path, os.O_RDONLY)

    def serve(client):
        block = memoryview(bytearray(256 * 1024))
        with suppress(OSError), tls.wrap_socket(client, server_side=True) as connection:
            while asked := connection.recv(16):
                for _ in asked:
                    connection.sendall(b"HTTP/1.1 200\r\n\r\n")
                    digest = blake3()
                    for at in range(0, n_bytes, len(block)):
                        os.preadv(number, [block], at)
                        digest.update(block)
                        connection.sendall(block)

    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        pipe.send(listener.getsockname())
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def bare_ratio(folder, n_reads, n_bytes):
    """Return what 500 sessions get over 4, of the plainest server with a thread for each."""
    files = (folder / "data" / "large", folder / "S.cert.pem", folder / "S.key.pem")
    address = started(send_barely, *files, n_bytes)
    took_s = {n: served(address, (b".", b".", n_bytes), n_reads, n) for n in (4, 500)}
    return took_s[4] / took_s[500]


def serving_rows(folder, n_bytes, n_files):
    """Yield what serving over TLS does."""
    data = Path(folder, "data")
    data.mkdir()
    data.joinpath("large").write_bytes(os.urandom(16 * 2**20))
    for i in range(n_files):
        data.joinpath(f"{i:06d}").write_bytes(bytes(4096))
    with agent(folder, "S", 'serve = "data"') as (address, fingerprint, pid):
        now_s = time.time()
        ticket = Ticket(KEY.public, "S", "source", "speed", now_s, now_s + 600, most_sockets=5000)
        with connect([], "S", address, client_context(), fingerprint, timeout_s=60) as session:
            started_s = time.perf_counter()
            page = session.inventory(sign_ticket(ticket, KEY))
            files = list(page.files)
            while page.after is not None:
                page = session.inventory(after=page.after)
                files += page.files
            listed_s = time.perf_counter() - started_s
            assert len(files) == n_files + 1
            yield f"{n_files} files listed", f"{n_files / listed_s:.0f} files/s"
            started_s, before_s = time.perf_counter(), cpu_s(pid)
            buffer = memoryview(bytearray(512 * 4096))
            for i in range(0, n_files, 512):
                read = Read(tuple(WireSegment(file, 0, 4096) for file in files[i : i + 512]))
                session.send_read(read)
                assert session.receive_into(buffer).status == 0
            took_s = time.perf_counter() - started_s
            yield "files of 4 KiB sent (≥ 2000/s)", f"{n_files / took_s:.0f} files/s"
            agents_s = (cpu_s(pid) - before_s) / n_files
            yield "the agent's CPU for each", f"{agents_s * 1e6:.0f} µs"
        read = Read((WireSegment(files[-1], 0, files[-1].n_bytes),))
        n_reads = n_bytes // read.n_bytes
        rates = {}
        for n_sessions in (1, 4):
            before_s = cpu_s(pid)
            took_s = served(address, asked_of_agent(read), n_reads, n_sessions)
            rates[n_sessions] = n_reads * read.n_bytes * 8 / took_s / 1e9
            per_gib_s = (cpu_s(pid) - before_s) / (n_bytes / GIB)
            yield (
                f"{n_sessions} sessions over TLS, hashed",
                f"{rates[n_sessions]:.2f} Gbit/s, {per_gib_s:.2f} CPU s/GiB",
            )
        # As many bytes for each read whatever the number of sessions, and two reads each.
        n_reads = 1000
        read = Read((WireSegment(files[-1], 0, 4 * 2**20),))
        asked = asked_of_agent(read)
        took_s = {n: served(address, asked, n_reads, n) for n in (4, 500)}
        rate = n_reads * read.n_bytes * 8 / took_s[500] / 1e9
        yield "500 sessions over TLS, in all", f"{rate:.2f} Gbit/s"
        yield "ratio to 4 sessions (≥ 1)", f"{took_s[4] / took_s[500]:.2f}"
        ratio = bare_ratio(Path(folder), n_reads, read.n_bytes)
        yield "that ratio of bare threads", f"{ratio:.2f}"


def main():
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0, help="moved in each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=100_000)
    options = parser.parse_args()
    n_bytes = int(options.gib * GIB)
    with tempfile.TemporaryDirectory() as folder:
        for rows in (
            relay_rows(folder, n_bytes, options.rounds),
            serving_rows(folder, n_bytes, options.files),
        ):
            for name, value in rows:
                print(f"{name:<40}{value}", flush=True)


if __name__ == "__main__":
    main()
