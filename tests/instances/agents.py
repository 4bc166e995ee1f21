"""Agents in threads of the test, with keys and tickets: ``with running(...) as agent``."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from datacollect.net.dialling import RelayHop
from datacollect.net.keys import PrivateKey, write_private_key
from datacollect.net.tickets import Ticket, sign_ticket
from datacollect.net.tls import client_context
from datacollect.transfer.agent.config.file import AgentConfig
from datacollect.transfer.agent.core.events import ClockReading
from datacollect.transfer.agent.run import Agent
from datacollect.transfer.sources.agent.session import SourceSession, connect

KEY = PrivateKey(b"the key of the tests' collector!")
ENDS_WITHIN_S = 60.0


@dataclass
class RunningAgent:
    """An agent that listens on a free port of loopback, and what it has logged."""

    name: str
    agent: Agent
    records: list[dict] = field(default_factory=list)

    @property
    def address(self) -> tuple[str, int]:
        return self.agent.address

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.address[1]}"

    def let_pass(self, seconds: float) -> None:
        """Have its clock go on at once, as if so long had passed, and wait until it has looked."""
        shell, looked = self.agent._shell, threading.Event()
        now, tick = shell.now, shell.loop._tick

        def later() -> ClockReading:
            reading = now()
            return ClockReading(reading.monotonic_s + seconds, reading.unix_s)

        def look() -> None:
            tick()
            looked.set()

        shell.now, shell.loop._tick = later, look
        assert looked.wait(ENDS_WITHIN_S)

    def logged(self, what: str, within_s: float = 60.0, n: int = 1) -> list[dict]:
        """Return its records of a kind, as soon as there are so many."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            found = [record for record in list(self.records) if record["what"] == what]
            if len(found) >= n:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{self.name} has not logged {n} {what}: {self.records}")


def write_agent(
    folder: Path,
    name: str,
    *,
    serve: str | None = None,
    connect_to: dict[str, str] | None = None,
    collectors: Sequence[str] = (KEY.public,),
    more: str = "",
) -> Path:
    """Write an agent's file and return its path."""
    lines = [
        'format = "datacollect-agent/1"',
        f'name = "{name}"',
        'listen = "127.0.0.1:0"',
        f"collectors = {json.dumps(list(collectors))}",
    ]
    if serve is not None:
        (folder / serve).mkdir(parents=True, exist_ok=True)
        lines.append(f'serve = "{serve}"')
    if connect_to:
        places = ", ".join(f'{key} = "{value}"' for key, value in connect_to.items())
        lines.append(f"connect_to = {{ {places} }}")
    path = folder / f"{name}.toml"
    path.write_text("\n".join([*lines, more, ""]))
    return path


@contextmanager
def running(
    path: Path, handlers: dict | None = None, services: dict | None = None
) -> Iterator[RunningAgent]:
    """Run the agent of a file; in the end it must have ended by itself, soon."""
    config = AgentConfig.from_file(path)
    records: list[dict] = []
    agent = Agent(config, lambda line: records.append(json.loads(line)), handlers, None, services)
    thread = threading.Thread(target=agent.run, name="agent", daemon=True)
    thread.start()
    try:
        yield RunningAgent(config.name, agent, records)
    finally:
        agent.stop()
        agent.stop()
        thread.join(ENDS_WITHIN_S)
        assert not thread.is_alive()
        # Whatever a test does to it: a bug inside would be logged so.
        assert not [record for record in records if record["what"] == "failed"], records


def collection_tree(folder: Path, *agents: RunningAgent, **more) -> dict:
    """Return what the file of a collection says of agents; its key lies in the folder."""
    key = folder / "collector.key"
    if not key.exists():
        write_private_key(key, KEY)
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": str(key),
        "agents": {
            each.name: {"url": each.agent.url, "fingerprint": each.agent.fingerprint}
            for each in agents
        },
    } | more


def sent_both_ways(one: socket.socket, other: socket.socket, n_bytes: int) -> None:
    """Send as much and a little more both ways at once, in pieces of odd sizes; compare.

    These fill a pipe's slots before its bytes.
    """
    data, got = {one: os.urandom(n_bytes + 3), other: os.urandom(n_bytes - 999_999)}, {}

    def send(end):
        view, size = memoryview(data[end]), 1
        while view:
            sent = end.send(view[:size])
            view, size = view[sent:], size * 3 % 70_001 + 1
        end.shutdown(socket.SHUT_WR)

    def receive(end):
        got[end] = received(end)

    threads = [threading.Thread(target=f, args=(end,)) for end in data for f in (send, receive)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (got[one], got[other]) == (data[other], data[one])


def received(connection) -> bytes:
    """Return all that comes until the other side has ended, or breaks off."""
    data = b""
    with suppress(ConnectionResetError, ssl.SSLError):
        while part := connection.recv(65536):
            data += part
    return data


def source_ticket(agent: str, **fields) -> str:
    """Return the token of a source ticket that counts for ten minutes."""
    now_s = time.time()
    values = {"issued_s": now_s, "expires_s": now_s + 600, "most_sockets": 1000, **fields}
    return sign_ticket(Ticket(KEY.public, agent, "source", "tests", **values), KEY)


def relay_ticket(agents: Sequence[str], egress: str, **fields) -> str:
    """Return the token of a ticket for the last of the agents, to the next host."""
    now_s = time.time()
    values = {"issued_s": now_s, "expires_s": now_s + 30, "most_sockets": 1000, **fields}
    ticket = Ticket(
        KEY.public, agents[-1], "relay", "tests", egress=egress, agents=tuple(agents), **values
    )
    return sign_ticket(ticket, KEY)


def session_with(
    target: RunningAgent,
    *relays: RunningAgent,
    timeout_s: float = 20.0,
    address: tuple[str, int] | None = None,
) -> SourceSession:
    """Return a session with an agent, through relays, the nearest first; or at another address."""
    names = [relay.name for relay in relays]
    nexts = [*names[1:], target.name]
    hops = [
        RelayHop(relay.name, relay.address, relay_ticket(names[: i + 1], nexts[i]))
        for i, relay in enumerate(relays)
    ]
    context, fingerprint = client_context(), target.agent.fingerprint
    place = address or target.address
    return connect(hops, target.name, place, context, fingerprint, timeout_s=timeout_s)
