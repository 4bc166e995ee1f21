"""Handlers of an agent that takes uploads: a bistro, answering at its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.upload_server.server import Bistro
from datacollect.bistro.upload_server.table import accept_of
from datacollect.bistro.upload_server.tus import handlers_of
from datacollect.transfer.agent.handlers import AgentHandlers, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.transfer.agent.config.file import AgentConfig


def _start(config: AgentConfig, log: Callable[[str], None]) -> Started:
    accept = accept_of(config)
    assert accept is not None
    bistro = Bistro(accept, log)
    return Started(handlers_of(bistro), close=bistro.close)


ACCEPT_HANDLERS = AgentHandlers("accept", _start)
