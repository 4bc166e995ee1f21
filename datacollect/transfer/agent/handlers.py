"""Handlers of an agent: who answers requests for the sake of a table of its file.

Another package brings them as an entry point of the group ``datacollect.agent_handlers``, under the
name of its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.registry import Registry
from datacollect.installation import command_for_extra, is_absent
from datacollect.transfer.agent.config.tables import AGENT_TABLES
from datacollect.wings import AGENT_HANDLERS as OWN
from datacollect.wings import extra_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.shell.handling import Handler, Service


@dataclass(frozen=True)
class Started:
    """Handlers that have begun.

    Attributes
    ----------
    handlers : mapping of str to callable
        By path, see `datacollect.transfer.agent.shell.handling.handler_for`.
    reread : callable, optional
        Gets what the agent's file says each time that it has been read again, in a thread of its
        own.
    close : callable, optional
        Called when the agent has ended.
    service : callable, optional
        Who serves the table's users, where tunnels lead to it.
    """

    handlers: Mapping[str, Handler]
    reread: Callable[[AgentConfig], None] | None = None
    close: Callable[[], None] | None = None
    service: Service | None = None


@dataclass(frozen=True)
class AgentHandlers:
    """Handlers of the requests of one table.

    Attributes
    ----------
    name : str
        Of the table.
    start : callable
        Begins; gets what the agent's file says, and what takes each line of its log, a JSON object.
    """

    name: str
    start: Callable[[AgentConfig, Callable[[str], None]], Started]


AGENT_HANDLERS = Registry("handlers of the table", "datacollect.agent_handlers", AgentHandlers, OWN)


def handlers_of(table: str) -> AgentHandlers:
    """Return who answers for a table.

    Raises
    ------
    ProblemError
        They are not installed, or what they need is not: the message says how it comes.
    """
    try:
        return AGENT_HANDLERS.get(table)
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        if not is_absent(error, package):
            raise
        raise ProblemError(
            f"{table}: {package} is not installed, which {AGENT_TABLES.get(table).work} needs: "
            f"{command_for_extra(extra_of(OWN[table]))}"
        ) from None
