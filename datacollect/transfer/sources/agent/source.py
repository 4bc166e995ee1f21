"""An agent as a source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.transfer.protocol.kind import unlimited
from datacollect.transfer.protocol.messages import DETAIL
from datacollect.transfer.protocol.source import Listed, ListedFolder, Page, Reached
from datacollect.transfer.sources.agent.peer import NO_REASON, AgentPeer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.net.deadline import Deadline
    from datacollect.transfer.protocol.kind import PacerOf
    from datacollect.transfer.protocol.messages import InventoryPage
    from datacollect.transfer.protocol.source import Assurance
    from datacollect.transfer.sources.agent.network import Network
    from datacollect.transfer.sources.agent.session import SourceSession


class AgentSource:
    """Files that an agent serves; a `datacollect.transfer.protocol.source.Source`.

    Parameters
    ----------
    name : str
    network : Network
    patterns : sequence of str or None
        Which files; None: all.
    pacer_of : callable
        Returns what a session over relays keeps to, None for no limits.
    """

    is_cut_by_file = False
    named: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        network: Network,
        patterns: Sequence[str] | None,
        pacer_of: PacerOf = unlimited,
    ) -> None:
        self.name = name
        self._network, self._patterns, self._pacer_of = network, patterns, pacer_of

    def reach(self, deadline: Deadline) -> Reached:
        """Ask it who it is, directly, else over relays."""
        trouble: TransferError | None = None
        for relays in self._network.ways_to(self.name):
            try:
                contact = self._network.ask(self.name, relays, None if relays else deadline)
            except TransferError as error:
                if error.is_final and not relays:
                    raise
                # What relays say of it explains less than why it is not reached directly.
                trouble = trouble or error
            else:
                facts = contact.facts
                ahead_s = contact.clock_ahead_s + time.monotonic() - time.time()
                return Reached(contact.relays, facts.serves, facts.relays_to, ahead_s)
        assert trouble is not None
        raise trouble

    def list(self, known: Mapping[str, Listed]) -> Iterator[Page]:
        """Yield the pages of its inventory."""
        contact = self._network.known[self.name]
        detail = DETAIL in contact.facts.features
        session, ticket = self._open(contact.relays)
        with session:
            after = None
            while True:
                page = session.inventory(ticket, after, detail=detail)
                yield _page(page)
                if page.after is None:
                    return
                if after is not None and page.after.encode() <= after.encode():
                    raise TransferError(f"{self.name}: its inventory does not get on")
                after = page.after

    def open(self, relays: tuple[str, ...]) -> AgentPeer:
        """Open a session."""
        session, ticket = self._open(relays)
        return AgentPeer(session, ticket, self._network.features(self.name))

    def _open(self, relays: tuple[str, ...]) -> tuple[SourceSession, str]:
        return self._network.open(self.name, relays, self._patterns, self._pacer_of(relays))

    def assurance(self, tags: Mapping[str | None, int]) -> Assurance | None:
        """Say nothing: all that agents send is verified by hash."""
        return None


def _page(page: InventoryPage) -> Page:
    return Page(
        [
            Listed(
                file.path,
                file.n_bytes,
                file.mtime_ns,
                file.inode,
                mode=file.mode,
                extents=file.extents,
            )
            for file in page.files
        ],
        [entry._replace(why=entry.why.strip() or NO_REASON) for entry in page.left_out],
        [ListedFolder(each.path, each.mode, each.mtime_ns) for each in page.folders],
    )
