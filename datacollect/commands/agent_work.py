"""Actions of the commands of agents and keys, however their arguments were read."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.commands.streams import emit, emit_json, note
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.handlers import AgentHandlers

    # What is said of a public key, by name.
    FactsOfKey = Callable[[str], dict[str, str]]


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
    from datacollect.transfer.agent.handlers import handlers_of
    from datacollect.transfer.agent.run import Agent, run_agent

    known = {each.name: each for each in brought}
    started = []
    for table in config.tables:
        each = (known.get(table) or handlers_of(table)).start(config, note)
        if each.close is not None:
            held.callback(each.close)
        started.append(each)

    def reread(config: AgentConfig) -> None:
        for each in started:
            if each.reread is not None:
                each.reread(config)

    handlers = {path: handler for each in started for path, handler in each.handlers.items()}
    running = Agent(config, note, handlers, reread)

    def ready() -> None:
        if as_json:
            # In one line: whoever has started it waits for it.
            facts = {"name": config.name, "url": running.url, "fingerprint": running.fingerprint}
            emit(json.dumps(facts))
        else:
            emit(f"{config.name} is ready at {running.url}, fingerprint {running.fingerprint}")

    run_agent(running, ready)


def init_agent(
    name: str,
    collectors: Sequence[str],
    *,
    serve: str | None,
    relay_to: Sequence[str],
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
        name, collectors, serve, _places(relay_to), listen or DEFAULT_LISTEN, address
    )
    path, introduction = set_up_agent(setting, file, force=force)
    note(f"{path} is there; start the agent with: {start} {path}")
    if as_json:
        facts = {"name": name, "url": introduction.url, "fingerprint": introduction.fingerprint}
        emit_json({**facts, "file": str(path)})
    else:
        note("on the collector's host: datacollect collection add, followed by this line:")
        emit(str(introduction))


def _places(texts: Sequence[str]) -> dict[str, str]:
    """Return addresses by name, from ``NAME=HOST:PORT``."""
    places: dict[str, str] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals:
            raise ProblemError(
                f"--relay-to must be NAME=HOST:PORT, got {shown(text)}; as S2=s2.example:7443"
            )
        if places.setdefault(name, place) != place:
            raise ProblemError(f"--relay-to names {shown(name)} twice; keep one")
    return places


def new_key(file: str, *, as_json: bool, more: FactsOfKey | None = None) -> None:
    """Make a private key and print its public half, or what else `more` says of that."""
    from datacollect.net.keys import new_private_key, write_private_key

    key = new_private_key()
    facts = _facts(file, key.public, more)
    write_private_key(file, key)
    note(f"saved to {file}; keep it to yourself, and tell its public half:")
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
