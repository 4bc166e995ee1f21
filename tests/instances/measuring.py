"""Agents that take part in tests of the network, in threads, and tickets for them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from instances.agents import KEY, RunningAgent, running, write_agent

from datacollect.measuring.agent.handlers import Measuring
from datacollect.measuring.plan.measure_tickets import MeasureTicket, sign_measure_ticket
from datacollect.net.agent_entries import AgentEntry
from datacollect.net.keys import PrivateKey, write_private_key
from datacollect.transfer.agent.config.file import AgentConfig

OPERATOR = PrivateKey(b"the key of the tests' operator!!")


def measure_table(**keys) -> str:
    """Return an agent's table [measure]: a gigabyte an hour for the tests' operator."""
    values = {"operators": [OPERATOR.public], "bytes_per_hour": 10**9, **keys}
    return "\n".join(
        ["[measure]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    )


@contextmanager
def measuring(
    folder: Path,
    name: str,
    connect_to: dict[str, str] | None = None,
    change=None,
    limits: str = "",
    **keys,
) -> Iterator[RunningAgent]:
    """Run an agent with a table [measure]; `change` may put other handlers in place of its own."""
    place = folder / name
    place.mkdir(exist_ok=True)
    path = write_agent(
        place, name, connect_to=connect_to, more=f"{measure_table(**keys)}\n{limits}"
    )
    handlers = Measuring(AgentConfig.from_file(path), lambda _: None).handlers()
    with running(path, handlers | (change or {})) as agent:
        yield agent


@contextmanager
def star(folder: Path, limits=None, **tables) -> Iterator[dict[str, RunningAgent]]:
    """S may send to D, E and F, and each of these to those before it; tables [measure] by host."""
    with ExitStack() as held:
        agents: dict[str, RunningAgent] = {}
        for name in "DEFS":
            places = {other: agent.place for other, agent in agents.items()}
            agent = measuring(
                folder, name, places, limits=(limits or {}).get(name, ""), **tables.get(name, {})
            )
            agents[name] = held.enter_context(agent)
        yield agents


def write_hosts(folder: Path, agents: dict[str, RunningAgent], budget: str = "1 GB") -> str:
    """Write a file of hosts, with the operator's key beside it; return its name."""
    write_private_key(folder / "operator.key", OPERATOR)
    lines = [
        'format = "datacollect-hosts/1"',
        'destination = "D"',
        'key = "operator.key"',
        f'budget = {{ bytes = "{budget}", time = "2 min" }}',
    ]
    for name, agent in agents.items():
        lines += [f"[hosts.{name}]", f'url = "https://{agent.place}"']
        lines += [f'fingerprint = "{agent.agent.fingerprint}"']
    (folder / "hosts.toml").write_text("\n".join(lines))
    return str(folder / "hosts.toml")


def entry_of(agent: RunningAgent, name: str | None = None) -> AgentEntry:
    return AgentEntry(name or agent.name, agent.address, agent.agent.fingerprint)


def token_of(
    audience: str, sender: str, receiver: str, key: PrivateKey = OPERATOR, **fields
) -> str:
    """Return a ticket that counts for ten minutes, with other fields as they are given."""
    now_s = time.time()
    values = {"tools": ("tcp",), "most_bytes": 10**6, "issued_s": now_s, "expires_s": now_s + 600}
    ticket = MeasureTicket(key.public, audience, sender, receiver, **{**values, **fields})
    return sign_measure_ticket(ticket, key)


__all__ = [
    "KEY",
    "OPERATOR",
    "entry_of",
    "measure_table",
    "measuring",
    "star",
    "token_of",
    "write_hosts",
]
