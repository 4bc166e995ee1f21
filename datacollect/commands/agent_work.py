"""Actions of the commands of agents and keys, however their arguments were read."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.commands.streams import emit, emit_json, note
from datacollect.errors import IdentityError, ProblemError
from datacollect.files.kinds import shown, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.handlers import AgentHandlers

    # What is said of a public key, by name.
    FactsOfKey = Callable[[str], dict[str, str]]

# How long a check may take, from the first packet to the last byte.
CHECK_S = 10.0
# What listens on all addresses of a host is asked at these.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def serve(agent_file: str, *, as_json: bool, handlers: Sequence[AgentHandlers] = ()) -> None:
    """Run the agent of a file until it is told to end; say when it is ready.

    Parameters
    ----------
    agent_file : str
    as_json : bool
    handlers : sequence of AgentHandlers
        Those that a program brings itself; others are found by the names of the file's tables.
    """
    from datacollect.transfer.agent.config.file import AgentConfig

    config = AgentConfig.from_file(agent_file)
    with ExitStack() as held:
        _serve(config, handlers, held, as_json=as_json)


def _serve(
    config: AgentConfig, brought: Sequence[AgentHandlers], held: ExitStack, *, as_json: bool
) -> None:
    from datacollect.transfer.agent.dial_back import PATH as DIAL_BACK
    from datacollect.transfer.agent.dial_back import dial_back_handler
    from datacollect.transfer.agent.handlers import handlers_of
    from datacollect.transfer.agent.run import Agent, run_agent

    known = {each.name: each for each in brought}
    started, services = [], {}
    for table in config.tables:
        each = (known.get(table) or handlers_of(table)).start(config, note)
        if each.close is not None:
            held.callback(each.close)
        started.append(each)
        if each.service is not None:
            services[table] = each.service

    def reread(config: AgentConfig) -> None:
        for each in started:
            if each.reread is not None:
                each.reread(config)

    handlers = {DIAL_BACK: dial_back_handler(config.connect_to)}
    handlers |= {path: handler for each in started for path, handler in each.handlers.items()}
    running = Agent(config, note, handlers, reread, services)

    def ready() -> None:
        if as_json:
            # In one line: whoever has started it waits for it.
            facts = {"name": config.name, "url": running.url, "fingerprint": running.fingerprint}
            if running.metrics is not None:
                facts["metrics"] = running.metrics.url
            emit(json.dumps(facts))
        else:
            emit(f"{config.name} is ready at {running.url}, fingerprint {running.fingerprint}")
            if running.metrics is not None:
                note(f"metrics are served at {running.metrics.url}")

    run_agent(running, ready)


def check_agent(agent_file: str, *, as_json: bool) -> None:
    """Ask the running agent of a file who it is; nobody needs a ticket for that.

    Raises
    ------
    TransferError
        Nobody answers where it listens, or somebody else.
    ProblemError
        Nobody can say where it listens, or it was never started.
    """
    from datacollect.net.deadline import Deadline
    from datacollect.net.names import host_port_text
    from datacollect.net.tls import client_context, fingerprint_of_file
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.sources.agent.session import connect

    config = AgentConfig.from_file(agent_file)
    host, port = config.listen
    if port == 0:
        place = host_port_text(host, port)
        raise wrong("listen", "must name a port", place, "port 0 is another one at each start")
    if not config.certificate.is_file():
        raise ProblemError(
            f"{config.certificate.name}: no such file; start the agent, which makes it"
        )
    address = (LOOPBACK.get(host, host), port)
    fingerprint = fingerprint_of_file(config.certificate)
    deadline = Deadline(CHECK_S)
    with connect(
        [],
        config.name,
        address,
        client_context(),
        fingerprint,
        timeout_s=CHECK_S,
        deadline=deadline,
    ) as session:
        facts = session.agent(deadline)
    if facts.name != config.name:
        raise IdentityError(
            f"agent {shown(config.name)} calls itself {shown(facts.name)}: restart it, so that it "
            f"reads {shown(agent_file)} again"
        )
    url = f"https://{host_port_text(*address)}"
    if as_json:
        told = {"serves": facts.serves, "relays_to": facts.relays_to, "version": facts.version}
        emit_json({"name": facts.name, "url": url, **told})
    else:
        emit(f"{facts.name} answers at {url}")


def init_agent(
    name: str,
    collectors: Sequence[str],
    *,
    serve: str | None,
    relay_to: Sequence[str],
    tunnel: Sequence[str],
    listen: str | None,
    address: str | None,
    file: str | None,
    force: bool,
    as_json: bool,
    start: str = "datacollect agent",
) -> None:
    """Set an agent up and print the line that introduces it."""
    from datacollect.transfer.agent.config.setting_up import (
        DEFAULT_LISTEN,
        AgentSetting,
        set_up_agent,
    )

    setting = AgentSetting(
        name,
        collectors,
        serve,
        _places(relay_to, "--relay-to", "S2=s2.example:7443"),
        listen or DEFAULT_LISTEN,
        address,
        _places(tunnel, "--tunnel", "ssh=127.0.0.1:22"),
    )
    path, introduction = set_up_agent(setting, file, force=force)
    note(f"{path} is written; start the agent with: {start} {path}")
    if as_json:
        facts = {"name": name, "url": introduction.url, "fingerprint": introduction.fingerprint}
        emit_json({**facts, "file": str(path)})
    else:
        note("on the collector's host: datacollect collection add, followed by this line:")
        emit(str(introduction))


def _places(texts: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Return addresses by name, from ``NAME=HOST:PORT``."""
    places: dict[str, str] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals:
            raise ProblemError(f"{option} must be NAME=HOST:PORT, got {shown(text)}; as {example}")
        if places.setdefault(name, place) != place:
            raise ProblemError(f"{option} names {shown(name)} twice; keep one")
    return places


def new_key(file: str, *, as_json: bool, more: FactsOfKey | None = None) -> None:
    """Make a private key and print its public half, or what else `more` says of that."""
    from datacollect.net.keys import new_private_key, write_private_key

    key = new_private_key()
    facts = _facts(file, key.public, more)
    write_private_key(file, key)
    note(f"saved to {file}; keep it secret, and share its public half:")
    _show(facts, as_json=as_json)


def show_key(file: str, *, as_json: bool, more: FactsOfKey | None = None) -> None:
    """Print the public half of a private key, as `new_key`; or a certificate's fingerprint."""
    from datacollect.files.documents import read_text
    from datacollect.net.keys import read_private_key
    from datacollect.net.tls import CERTIFICATE_BEGINS, fingerprint_of_file

    if more is None and CERTIFICATE_BEGINS in read_text(file):
        _show({"file": file, "fingerprint": fingerprint_of_file(Path(file))}, as_json=as_json)
    else:
        _show(_facts(file, read_private_key(file).public, more), as_json=as_json)


def _facts(file: str, public: str, more: FactsOfKey | None) -> dict[str, str]:
    return {"file": file, "public": public, **({} if more is None else more(public))}


def _show(facts: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        emit_json(facts)
    else:
        # The last is what was asked for.
        emit([*facts.values()][-1])
