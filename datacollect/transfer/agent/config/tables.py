"""Tables of an agent's file that others bring: wings, and other packages.

An agent serves and relays. Who has it do more brings a table (an entry point of the group
``datacollect.agent_tables``) and who answers for it, `datacollect.transfer.agent.handlers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from datacollect.errors import ProblemError
from datacollect.files.registry import Registry
from datacollect.wings import AGENT_TABLES as OWN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from datacollect.files.fields import Table


@dataclass(frozen=True)
class AgentPlaces:
    """Places of an agent's files.

    Attributes
    ----------
    folder : Path
        To which paths in its file are relative.
    state : Path
        Of its own files.
    stem : str
        With which their names begin.
    """

    folder: Path
    state: Path
    stem: str


class TableConfig(Protocol):
    """Contents of a table, checked; all paths resolved."""

    @property
    def served(self) -> Path | None:
        """The folder that the agent serves for it; None: it serves what its file says."""

    @property
    def own(self) -> tuple[Path, ...]:
        """Files that must not be served."""


@dataclass(frozen=True)
class AgentTable:
    """A table that an agent's file may have.

    Attributes
    ----------
    name : str
        Its key.
    table : Table
    text : str
        What it is for, and what it means to leave it out.
    configured : callable
        Returns what the table's values, and `AgentPlaces`, come to.
    serves : str
        What lies in the folder that the agent serves for it.
    work : str
        What it has the agent do, for messages.
    users : callable, optional
        Where tunnels lead to a service of the agent's own, of the table's name: returns, of what
        `configured` does, the public keys of those whose tunnel tickets count for it.
    """

    name: str
    table: Table
    text: str
    configured: Callable[[dict[str, Any], AgentPlaces], TableConfig]
    serves: str = ""
    work: str = ""
    users: Callable[[Any], frozenset[str]] | None = None


AGENT_TABLES = Registry("table of agents' files", "datacollect.agent_tables", AgentTable, OWN)


def usable_tables(report: Callable[[str], None]) -> list[AgentTable]:
    """Return the tables that can be had; `report` gets why others cannot."""
    found = []
    for name in AGENT_TABLES.usable_names(report):
        try:
            found.append(AGENT_TABLES.get(name))
        except ProblemError as error:
            report(str(error))
    return found
