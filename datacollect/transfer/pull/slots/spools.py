"""Relays that keep pieces of a collection: what each keeps, what it is to keep, what was lost."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import DatacollectError, RefusedError, TransferError
from datacollect.files.units import counted
from datacollect.net.dialling import as_failure
from datacollect.transfer.protocol.messages import SPOOLS, FileEntry, Read, WireSegment
from datacollect.transfer.spool import messages
from datacollect.transfer.spool.messages import AskedPiece, Order
from datacollect.transfer.spool.sealing import new_key, open_sealed
from datacollect.transfer.store.store import PieceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from datacollect.transfer.protocol.source import Segment
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.sources.agent.network import Network
    from datacollect.transfer.spool.conversation import Conversation
    from datacollect.transfer.spool.messages import Outcome
    from datacollect.transfer.spool.sealing import SealedPiece
    from datacollect.transfer.store.folder.log import Log
    from datacollect.transfer.store.store import Store

MOST_PAGE_BYTES = 4 * 2**20
# So long an order may take: a source may be slow, and syncs of a busy disk.
ORDER_S = 120.0
# In the state: the key of a source, and which relays were given orders.
KEY_OF, ORDERED = "sealing key {}", "spools {}"
NO_KEY = "(428)"
GONE = 404
# A relay's list has no more pages: whoever goes on for ever is not listened to.
MOST_PAGES = 1000
# A relay is not counted on any more of which so many slots have brought nothing but a few bytes.
MOST_STALLS = 2


class KeptPiece(NamedTuple):
    """A piece that a relay says it keeps."""

    relay: str
    piece: SealedPiece


class Spools:
    """Spools of relays for a collection; any thread may call its methods.

    Parameters
    ----------
    collection : Collection
    network : Network
    store : Store
    log : Log
    report : callable
        Takes what a user wants to know at once.

    Attributes
    ----------
    kept : dict of str to dict of int to KeptPiece
        By source and number of the piece.
    distrusted : set of str
        Relays that have given what was not sealed so, or hold back what they keep.
    """

    def __init__(
        self,
        collection: Collection,
        network: Network,
        store: Store,
        log: Log,
        report: Callable[[str], None],
    ) -> None:
        self._collection, self._network, self._store = collection, network, store
        self._log, self._report = log, report
        self._lock = threading.Lock()
        self._looked: set[str] = set()
        # Sources that have their keys, and the fingerprint by which each answered.
        self._fingerprints: dict[str, str] = {}
        self.kept: defaultdict[str, dict[int, KeptPiece]] = defaultdict(dict)
        self.distrusted: set[str] = set()
        self._n_stalls: Counter[str] = Counter()

    def relays(self) -> set[str]:
        """Return the agents that keep pieces, of those that are known."""
        known = self._network.known
        found = {name for name, each in known.items() if SPOOLS in each.facts.features}
        return found - self.distrusted

    def look(self) -> None:
        """Ask relays that were not asked yet what they keep, and what they have lost."""
        for relay in sorted(self.relays() - self._looked):
            try:
                self._look_at(relay)
            except TransferError as error:
                self._log.write("spool not reached", host=relay, why=str(error))
            else:
                self._looked.add(relay)

    def _look_at(self, relay: str) -> None:
        ticket = self._network.spool_ticket(relay)
        after: tuple[str, int] | None = None
        page = messages.SpoolPage((), is_last=True)
        with self._network.converse(relay) as conversation:
            for _ in range(MOST_PAGES):
                body = conversation.ask(
                    messages.LIST, ticket, messages.list_body(after), MOST_PAGE_BYTES
                )
                with as_failure(relay):
                    page = messages.parse_page(body)
                for piece in page.pieces:
                    self.kept[piece.source].setdefault(piece.index, KeptPiece(relay, piece))
                if page.is_last or not page.pieces:
                    break
                before, after = after, (page.pieces[-1].source, page.pieces[-1].index)
                if before is not None and after <= before:
                    raise TransferError(f"{relay}: its list of pieces does not advance")
        self._tell_lost(relay, page)
        n_kept = sum(each.relay == relay for of in self.kept.values() for each in of.values())
        self._log.write("spool", host=relay, pieces=n_kept)

    def _tell_lost(self, relay: str, page: messages.SpoolPage) -> None:
        for (n, n_bytes), why in ((page.expired, "were too old"), (page.dropped, "were dropped")):
            if n:
                self._log.write("spool lost", host=relay, pieces=n, bytes=n_bytes, why=why)
                self._report(
                    f"note: {relay} does not keep {counted(n, 'piece')} any more, which {why}: "
                    "they are fetched from their sources"
                )

    def forget_unneeded(self, needed: Mapping[str, Iterable[int]]) -> None:
        """Count nothing as kept that is not needed, or is another piece by now."""
        for source in list(self.kept):
            wanted = set(needed.get(source, ()))
            self.kept[source] = {
                index: each
                for index, each in self.kept[source].items()
                if index in wanted and each.piece == self.sealed_of(source, index)
            }

    def sealed_of(self, source: str, index: int) -> SealedPiece:
        """Return the name of a piece, as it is asked for now."""
        return self._asked(source, index).sealed_of(source)

    def _asked(self, source: str, index: int) -> AskedPiece:
        return AskedPiece(index, _read_of(self._store.segments(PieceKey(source, index))))

    # Sources --------------------------------------------------------------------------------------

    def _key(self, source: str) -> bytes:
        """Return the key of a source, made when it is first needed."""
        with self._lock:
            name = KEY_OF.format(source)
            text = self._store.state.fact(name)
            if text is None:
                text = new_key().hex()
                self._store.state.set_fact(name, text)
            return bytes.fromhex(text)

    def _give_key(self, source: str) -> str:
        """Give a source its key inside TLS from end to end; return its fingerprint."""
        known = self._fingerprints.get(source)
        if known is not None:
            return known
        body = messages.key_body(self._key(source))
        with self._network.converse(source) as conversation:
            conversation.ask(messages.KEY, self._network.key_ticket(source), body, MOST_PAGE_BYTES)
            self._fingerprints[source] = conversation.fingerprint
            return conversation.fingerprint

    # Orders ---------------------------------------------------------------------------------------

    def order(
        self,
        conversation: Conversation,
        source: str,
        pieces: Sequence[int],
        keep_s: float,
    ) -> dict[int, str]:
        """Have a relay keep pieces; return why others than those that it keeps are not.

        Raises
        ------
        TransferError
            The relay or the source cannot be had.
        """
        relay = conversation.name
        fingerprint = self._give_key(source)
        patterns = self._collection.patterns(source)
        asked = [self._asked(source, index) for index in pieces]
        asked = [each for each in asked if each.read.segments]
        if not asked:
            return {}
        order = Order(
            source,
            fingerprint,
            self._network.sealed_ticket(source, relay, patterns),
            self._network.time_at(relay) + keep_s,
            tuple(asked),
        )
        if self._store.state.fact(ORDERED.format(relay)) is None:
            self._store.state.set_fact(ORDERED.format(relay), 1)
        body = conversation.ask(
            messages.KEEP,
            self._network.spool_ticket(relay),
            messages.order_body(order),
            MOST_PAGE_BYTES,
            ORDER_S,
        )
        with as_failure(relay):
            outcome = messages.parse_outcome(body)
        return self._note(relay, source, asked, outcome)

    def _note(
        self, relay: str, source: str, asked: Sequence[AskedPiece], outcome: Outcome
    ) -> dict[int, str]:
        by_index = {each.index: each for each in asked}
        with self._lock:
            for index in outcome.kept:
                if index in by_index:
                    piece = by_index[index].sealed_of(source)
                    self.kept[source][index] = KeptPiece(relay, piece)
        refused = {index: why for index, why in outcome.refused if index in by_index}
        if any(NO_KEY in why for why in refused.values()):  # it was started again
            self._fingerprints.pop(source, None)
        return refused

    # What comes back ------------------------------------------------------------------------------

    def request(self, conversation: Conversation, kept: KeptPiece) -> None:
        """Ask a relay for a piece."""
        ticket = self._network.spool_ticket(kept.relay)
        conversation.send(messages.FETCH, ticket, messages.fetch_body(kept.piece))

    def receive(self, conversation: Conversation, kept: KeptPiece) -> bytes:
        """Return what a piece holds that a relay has kept.

        Raises
        ------
        TransferError
            It is not there any more, or not as its source sealed it: then its relay is named, and
            no more is kept there.
        """
        source, relay = kept.piece.source, kept.relay
        try:
            sealed = conversation.receive(kept.piece.sealed_bytes)
        except RefusedError as error:
            if error.status == GONE:
                self._forget(kept)
            raise
        try:
            return open_sealed(self._key(source), self._network.number, kept.piece, sealed)
        except TransferError as error:
            self._forget(kept)
            with self._lock:
                is_new = relay not in self.distrusted
                self.distrusted.add(relay)
            self._log.write("spool lies", host=relay, why=str(error))
            if is_new:
                self._report(
                    f"note: {relay}: {error}; it is fetched from its source, and nothing more is "
                    f"kept at {relay}"
                )
            raise

    def note_stalled(self, relay: str) -> None:
        """Count a slot in which a relay has given no piece, though it did not stop sending."""
        self._n_stalls[relay] += 1
        if self._n_stalls[relay] < MOST_STALLS or relay in self.distrusted:
            return
        with self._lock:
            self.distrusted.add(relay)
            for source, of in self.kept.items():
                self.kept[source] = {i: each for i, each in of.items() if each.relay != relay}
        self._log.write("spool stalls", host=relay)
        self._report(
            f"note: {relay} sends what it keeps too slowly for a piece to arrive whole: all is "
            f"fetched from its source, and nothing more is kept at {relay}"
        )

    def _forget(self, kept: KeptPiece) -> None:
        """Count a piece as kept no more."""
        with self._lock:
            self.kept[kept.piece.source].pop(kept.piece.index, None)

    def came(self, pieces: Mapping[str, Iterable[tuple[str, int]]]) -> None:
        """Let relays forget pieces, by relay: the destination has them."""
        for relay, each in pieces.items():
            each = list(each)
            with self._lock:
                for source, index in each:
                    self.kept[source].pop(index, None)
            self._tell(relay, messages.FORGET, messages.forget_body(each))

    def end(self) -> None:
        """Have nothing of the collection kept anywhere any more: all has come."""
        for relay in sorted(self._network.known):
            if self._store.state.fact(ORDERED.format(relay)):
                self._tell(relay, messages.END, b"{}")

    def _tell(self, relay: str, target: str, body: bytes) -> None:
        """Tell a relay what may go; where that fails it goes by itself, in time."""
        try:
            with self._network.converse(relay) as conversation:
                ticket = self._network.spool_ticket(relay)
                conversation.ask(target, ticket, body, MOST_PAGE_BYTES)
        except DatacollectError as error:
            self._log.write("spool not told", host=relay, why=str(error))


def _read_of(segments: Sequence[Segment]) -> Read:
    return Read(
        tuple(
            WireSegment(
                FileEntry(file.path, file.n_bytes, file.mtime_ns, file.inode),
                span.offset_bytes,
                span.n_bytes,
            )
            for span, file in segments
        )
    )
