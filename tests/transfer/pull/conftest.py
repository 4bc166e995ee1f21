"""Agents in this process, and collections of theirs."""

import pytest
from transfer.pull.lying_agent import LyingAgent

from datacollect.net.keys import new_private_key, write_private_key


@pytest.fixture
def agents(tmp_path):
    """Return a function that starts an agent which serves from memory; all end with the test."""
    started = []

    def start(name, files=None, connect_to=None, **lies):
        agent = LyingAgent(name, tmp_path, files, connect_to, **lies)
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.stop()


@pytest.fixture
def collection_of(tmp_path):
    """Return a function that makes a collection of agents, as its file would say it."""
    write_private_key(tmp_path / "collector.key", new_private_key())

    def make(*agents, **more):
        return {
            "format": "datacollect-collection/1",
            "destination": "D",
            "key": str(tmp_path / "collector.key"),
            "agents": {agent.name: agent.entry for agent in agents},
            "limits": {"patience_s": 20.0, "timeout_s": 20.0},
        } | more

    return make
