"""Services beside agents, and tunnels to them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from instances.agents import KEY, RunningAgent, collection_tree, write_agent

from datacollect.net.tcp_options import stop_accepting
from datacollect.net.tls import client_context, make_certificate, server_context
from datacollect.net.tls_stream import TlsStream


@contextmanager
def service(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Listen on a free port of loopback; each connection is answered in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    one, _ = listener.accept()
                    threading.Thread(target=_answer, args=(answer, one), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        stop_accepting(listener)
        thread.join(5)


def _answer(answer: Callable[[socket.socket], None], one: socket.socket) -> None:
    with one, suppress(OSError):
        answer(one)


def counting(one: socket.socket) -> None:
    """Greet first, then say how much has come once the other side has ended."""
    one.sendall(b"hello\n")
    n_bytes, buffer = 0, bytearray(2**18)
    while part := one.recv_into(buffer):
        n_bytes += part
    one.sendall(b"got %d" % n_bytes)


def echoing(one: socket.socket) -> None:
    """Send back what comes."""
    while data := one.recv(2**18):
        one.sendall(data)


def tunnel_table(to: Mapping[str, str], users=(KEY.public,), **keys) -> str:
    """Return the table of an agent's file."""
    places = ", ".join(f'{name} = "{place}"' for name, place in to.items())
    rows = [f"users = {json.dumps(list(users))}", f"to = {{ {places} }}"]
    return "\n".join(["[tunnel]", *rows, *(f"{key} = {value}" for key, value in keys.items()), ""])


def tunnel_agent(folder: Path, to: Mapping[str, str], name: str = "S1", limits="", **keys) -> Path:
    """Write the file of an agent with tunnels."""
    return write_agent(folder, name, more=f"{limits}\n{tunnel_table(to, **keys)}")


def collection_of(folder: Path, *agents: RunningAgent, links=()) -> dict:
    """Return what a collection file says of agents, and of links: from, to, bytes per second."""
    rows = [{"from": one, "to": other, "bandwidth_bytes_per_s": rate} for one, other, rate in links]
    return collection_tree(folder, *agents, links=rows)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a connection over loopback, which wait ten seconds at most."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    one.settimeout(10)
    other.settimeout(10)
    return one, other


@cache
def _certificate() -> tuple[bytes, bytes]:
    return make_certificate("S1", "127.0.0.1")


def greeted_streams(folder: Path) -> tuple[TlsStream, TlsStream]:
    """Return a client's and a server's side that have greeted each other."""
    for name, data in zip(("cert.pem", "key.pem"), _certificate(), strict=True):
        (folder / name).write_bytes(data)
    context = server_context(folder / "cert.pem", folder / "key.pem")
    client = TlsStream(client_context(), server_side=False, host="s1.example")
    server = TlsStream(context, server_side=True)
    done = [False, False]
    while not all(done):
        for i, (one, other) in enumerate(((client, server), (server, client))):
            done[i] = one.greet()
            other.feed(one.to_send())
    return client, server


def readable(stream: TlsStream) -> bytes:
    """Return all that a stream can read now."""
    block, data = memoryview(bytearray(20_000)), b""
    while n_bytes := stream.read_into(block):
        data += block[:n_bytes]
    return data
