"""Web servers as a kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.transfer.protocol.kind import SourceKind
from datacollect.transfer.sources.web.entries import SERVER, server_of
from datacollect.transfer.sources.web.source import WebSource

if TYPE_CHECKING:
    from datacollect.transfer.protocol.kind import Surroundings
    from datacollect.transfer.sources.web.entries import ServerEntry


def _source(entry: ServerEntry, around: Surroundings) -> WebSource:
    return WebSource(
        entry,
        around.network,
        around.patterns,
        timeout_s=around.timeout_s,
        patience_s=around.patience_s,
        pacer_of=around.pacer_of,
    )


def _said(entry: ServerEntry) -> str:
    return entry.said


SERVERS = SourceKind(SERVER, "Other web servers, by name.", server_of, _source, _said)
