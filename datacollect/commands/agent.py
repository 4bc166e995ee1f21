"""The command ``datacollect agent``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from datacollect.commands.console import emit, note
from datacollect.commands.options import Json


def agent(
    agent_file: Annotated[str, typer.Argument(metavar="AGENT", help="File of the agent, TOML.")],
    as_json: Json = False,
) -> None:
    """Run a host's agent: serve its folder, relay for others.

    Says when it is ready; its log goes to standard error, a JSON object per line. Ends on SIGTERM
    after what is under way, at once if told again; rereads collectors on SIGHUP.
    """
    from datacollect.transfer.agent.config import AgentConfig
    from datacollect.transfer.agent.run import Agent, run_agent

    config = AgentConfig.from_file(agent_file)
    running = Agent(config, note)

    def ready() -> None:
        if as_json:
            # In one line: whoever has started it waits for it.
            facts = {"name": config.name, "url": running.url, "fingerprint": running.fingerprint}
            emit(json.dumps(facts))
        else:
            emit(f"{config.name} is ready at {running.url}, fingerprint {running.fingerprint}")

    run_agent(running, ready)
