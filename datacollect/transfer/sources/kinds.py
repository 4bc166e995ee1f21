"""The kinds of sources, by their key in collection files. Each has a folder beside this file.

Another package brings a kind as an entry point of the group ``datacollect.sources``.
"""

from __future__ import annotations

from datacollect.files.registry import Registry
from datacollect.transfer.protocol.kind import SourceKind

# Agents are more than sources: they relay.
AGENTS = "agents"

KINDS = Registry(
    "kind of source",
    "datacollect.sources",
    SourceKind,
    {
        AGENTS: "datacollect.transfer.sources.agent.kind:AGENTS",
        "servers": "datacollect.transfer.sources.web.kind:SERVERS",
    },
)
