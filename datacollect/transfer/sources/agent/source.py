"""An agent as a source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from datacollect.errors import EndlessError, TransferError
from datacollect.net.deadline import LEAST_BYTES_PER_S, Flow
from datacollect.transfer.protocol.kind import unlimited
from datacollect.transfer.protocol.messages import DETAIL
from datacollect.transfer.protocol.source import Listed, ListedFolder, Page, Reached
from datacollect.transfer.sources.agent.peer import NO_REASON, AgentPeer, judging

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.net.deadline import Deadline
    from datacollect.transfer.protocol.kind import PacerOf
    from datacollect.transfer.protocol.messages import InventoryPage
    from datacollect.transfer.protocol.source import Assurance, Known
    from datacollect.transfer.sources.agent.network import Network, OpenedSession


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
    patience_s : float
        Over which its list must bring enough.
    """

    is_cut_by_file = False
    named: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        network: Network,
        patterns: Sequence[str] | None,
        pacer_of: PacerOf = unlimited,
        *,
        patience_s: float,
    ) -> None:
        self.name = name
        self._network, self._patterns, self._patience_s = network, patterns, patience_s
        self._pacer_of = pacer_of

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

    def list(self, known: Known) -> Iterator[Page]:
        """Yield the pages of its inventory, as long as they bring enough."""
        flow = Flow(self._patience_s)
        try:
            yield from self._pages(flow)
        except TransferError as error:
            if not flow.is_over:
                raise
            raise EndlessError(
                f"{self.name}: its list arrives too slowly, less than a name and "
                f"{LEAST_BYTES_PER_S:g} bytes a second, over {self._patience_s:g} s: if its disk "
                "needs more time, set a longer patience_s in [limits]"
            ) from error

    def _pages(self, flow: Flow) -> Iterator[Page]:
        contact = self._network.known[self.name]
        detail, after = DETAIL in contact.facts.features, None
        with flow.waiting():
            opened = self._open(contact.relays, flow)
        session, admission = opened
        with session:
            while True:
                with flow.waiting(), judging(admission.refused):
                    page = session.inventory(admission.ticket(), after, detail=detail, flow=flow)
                # An empty page has a place that the agent has come to: that is a name, too.
                flow.named(max(1, len(page.files) + len(page.left_out) + len(page.folders)))
                yield _page(page)
                if page.after is None:
                    return
                if after is not None and page.after.encode() <= after.encode():
                    raise TransferError(f"{self.name}: its inventory does not advance")
                after = page.after

    def open(self, relays: tuple[str, ...]) -> AgentPeer:
        """Open a session."""
        session, admission = self._open(relays)
        return AgentPeer(session, admission, self._network.features(self.name))

    def _open(self, relays: tuple[str, ...], flow: Flow | None = None) -> OpenedSession:
        pacer = self._pacer_of(relays)
        return self._network.open(self.name, relays, self._patterns, flow, pacer)

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
