"""The kinds of sources, by their key in collection files. A new kind is one more row here.

Each has a folder beside this file, with a class that follows
`datacollect.transfer.protocol.source.Source`; the collector knows no more of it than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.transfer.sources.agent.entries import AGENT, agent_of
from datacollect.transfer.sources.agent.source import AgentSource
from datacollect.transfer.sources.web.entries import SERVER, server_of
from datacollect.transfer.sources.web.source import WebSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from datacollect.files.fields import Table
    from datacollect.transfer.protocol.source import Source
    from datacollect.transfer.sources.agent.network import Network


class Surroundings(NamedTuple):
    """What a source is given besides its own entry.

    Attributes
    ----------
    network : Network
        The agents of the collection, of which some relay.
    patterns : sequence of str or None
        Which files are wanted; None: all.
    timeout_s, patience_s : float
    """

    network: Network
    patterns: Sequence[str] | None
    timeout_s: float
    patience_s: float


@dataclass(frozen=True)
class Kind:
    """A kind of source.

    Attributes
    ----------
    key : str
        Under which collection files have its hosts, by name.
    table : Table
        The fields of a host.
    text : str
        What the key is for.
    read : callable
        Takes a name, the values of the fields and the folder of the file; returns an entry.
    make : callable
        Takes an entry and its surroundings; returns the source.
    """

    key: str
    table: Table
    text: str
    read: Callable[[str, Mapping[str, Any], Path], Any]
    make: Callable[[Any, Surroundings], Source]


def _agent(entry: Any, around: Surroundings) -> Source:
    return AgentSource(entry.name, around.network, around.patterns)


def _server(entry: Any, around: Surroundings) -> Source:
    return WebSource(
        entry,
        around.network,
        around.patterns,
        timeout_s=around.timeout_s,
        patience_s=around.patience_s,
    )


# Agents are more than sources: they relay.
AGENTS = "agents"
KINDS = (
    Kind(AGENTS, AGENT, "Every agent, by name.", agent_of, _agent),
    Kind("servers", SERVER, "Other web servers, by name.", server_of, _server),
)
