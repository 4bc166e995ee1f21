"""Agents as a kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from datacollect.net.agent_entries import AGENT, agent_of
from datacollect.transfer.protocol.kind import SourceKind
from datacollect.transfer.sources.agent.source import AgentSource

if TYPE_CHECKING:
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.transfer.protocol.kind import Surroundings
    from datacollect.transfer.sources.agent.network import Network


def _source(entry: AgentEntry, around: Surroundings) -> AgentSource:
    network = cast("Network", around.network)
    return AgentSource(
        entry.name, network, around.patterns, around.pacer_of, patience_s=around.patience_s
    )


def _said(entry: AgentEntry) -> str | None:
    return entry.fingerprint


AGENTS = SourceKind(AGENT, "Every agent, by name.", agent_of, _source, _said)
