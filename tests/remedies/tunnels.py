"""What advises users of tunnels, and whoever offers them."""

from __future__ import annotations

import json
import socket
import tempfile
from contextlib import redirect_stderr
from dataclasses import replace
from io import StringIO
from pathlib import Path
from unittest import mock

from instances.agent_cores import at, config_of, head, ticket, tls
from instances.agents import KEY, write_agent
from instances.tunnels import tunnel_table
from remedies.trying import Example

from datacollect.commands.main import run
from datacollect.net.keys import write_private_key
from datacollect.net.tickets import sign_ticket
from datacollect.transfer.agent.config.file import AgentConfig, TunnelConfig
from datacollect.transfer.agent.core import events
from datacollect.transfer.agent.core.core import AgentCore
from datacollect.transfer.tunnel.tunnel import opener_of

AGENTS = ("S1", *(f"K{i}" for i in range(1, 10)))


def tree(folder: Path) -> dict:
    write_private_key(folder / "collector.key", KEY)
    agent = {"url": "https://127.0.0.1:9", "fingerprint": f"sha256:{'0' * 64}"}
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": str(folder / "collector.key"),
        "agents": dict.fromkeys(AGENTS, agent),
    }


def opener(**options):
    """Prepare a tunnel; nobody is asked yet."""

    def prepare():
        with tempfile.TemporaryDirectory() as folder:
            opener_of(tree(Path(folder)), "S1:ssh", **options)

    return prepare


def command(*words: str, taken: bool = False):
    """Run the command, which ends as soon as it listens; return what it says."""

    def come() -> str | None:
        with (
            tempfile.TemporaryDirectory() as folder,
            socket.create_server(("127.0.0.1", 0)) as server,
            redirect_stderr(StringIO()) as said,
            mock.patch("datacollect.transfer.tunnel.listening.TunnelListener.run"),
        ):
            path = Path(folder, "collection.json")
            path.write_text(json.dumps(tree(Path(folder))))
            port = [str(server.getsockname()[1])] if taken else []
            code = run(["tunnel", str(path), "S1:ssh", *words, *port])
            return said.getvalue() if code else None

    return come


def agent(to: dict[str, str]):
    def read():
        with tempfile.TemporaryDirectory() as folder:
            return AgentConfig.from_file(write_agent(Path(folder), "S1", more=tunnel_table(to)))

    return read


def third_tunnel(*, has_ended: bool):
    """Ask for one more than may be open, before or after one has ended."""

    def ask() -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            tunnel = TunnelConfig(frozenset({KEY.public}), {"ssh": ("127.0.0.1", 22)}, 1)
            core = AgentCore(replace(config_of(Path(folder)), tunnel=tunnel), "1")
        for number in (1, 2):
            if number == 2 and has_ended:
                core.handle(events.Ended(at(0), 1, "done"))
            tls(core, number)
            token = sign_ticket(replace(ticket("tunnel"), egress="ssh"), KEY)
            done = core.handle(events.TunnelAsked(at(0), number, head(token, "ssh")))
        return getattr(done[-1], "text", None)

    return ask


EXAMPLES = [
    Example(
        "--via must be names of relays, with commas between, got {}; as K1,K2",
        command("--listen", "0", "--via", "K1 K2,"),
        command("--listen", "0", "--via", "K1,K2"),
    ),
    Example(
        "give either --stdio or --listen PORT, got {}",
        command(),
        command("--listen", "0"),
    ),
    Example(
        "--listen {}: {}; stop the program that listens there, or choose another port; 0 is any "
        "free one",
        command("--listen", taken=True),
        command("--listen", "0"),
    ),
    Example(
        "--via: at most {} relays, got {}; leave some out",
        opener(via=AGENTS[1:]),
        opener(via=AGENTS[1:9]),
    ),
    Example(
        "--via: {} is listed twice; a route passes a relay once",
        opener(via=["K1", "K2", "K1"]),
        opener(via=["K1", "K2"]),
    ),
    Example(
        "--via: {} is the host that the tunnel leads to; leave it out of --via",
        opener(via=["K1", "S1"]),
        opener(via=["K1"]),
    ),
    Example(
        "buffer_bytes must be a number from {} to {}, got {}; leave it out",
        opener(buffer_bytes=100),
        opener(),
    ),
    Example(
        'write {} = { ssh = "127.0.0.1:22" }',
        agent({}),
        agent({"ssh": "127.0.0.1:22"}),
    ),
    Example(
        "as many tunnels are open as `most_connections` of [tunnel] allows, {}; try again later",
        third_tunnel(has_ended=False),
        third_tunnel(has_ended=True),
    ),
]
