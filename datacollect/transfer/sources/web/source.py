"""Another web server as a source: reached directly or over relays, listed, asked for ranges."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.net.deadline import Deadline
from datacollect.net.tls import web_context
from datacollect.transfer.protocol.kind import unlimited
from datacollect.transfer.protocol.patterns import matches
from datacollect.transfer.protocol.source import Assurance, Page, Reached
from datacollect.transfer.sources.web.connections import Dialler
from datacollect.transfer.sources.web.core.core import WebCore
from datacollect.transfer.sources.web.core.redirects import RedirectRule
from datacollect.transfer.sources.web.core.versions import Version
from datacollect.transfer.sources.web.listing import WebListing
from datacollect.transfer.sources.web.pace import ServerPace
from datacollect.transfer.sources.web.peer import WebPeer
from datacollect.transfer.sources.web.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacollect.transfer.protocol.kind import PacerOf, Relays
    from datacollect.transfer.protocol.source import Known
    from datacollect.transfer.sources.web.entries import ServerEntry


class WebSource:
    """Files of a web server; a `datacollect.transfer.protocol.source.Source`.

    Parameters
    ----------
    entry : ServerEntry
    network : Relays
        Agents, of which some may relay to it.
    patterns : sequence of str or None
        Which files; None: all.
    timeout_s, patience_s : float
    pacer_of : callable
        Returns what a session over relays keeps to, None for no limits.
    """

    is_cut_by_file = True

    def __init__(
        self,
        entry: ServerEntry,
        network: Relays,
        patterns: Sequence[str] | None,
        *,
        timeout_s: float,
        patience_s: float,
        pacer_of: PacerOf = unlimited,
    ) -> None:
        self.name = entry.name
        self._pacer_of = pacer_of
        self._entry, self._network = entry, network
        self._timeout_s, self._patience_s = timeout_s, patience_s
        self._pace = ServerPace()
        self._files = [file for file in entry.files if matches(file.path, patterns)]
        self.named = tuple(file.path for file in self._files)
        self._standing = Standing(self.named)
        self._told = {file.path for file in entry.files if file.is_known}
        self._listing: WebListing | None = None
        self._tls = web_context(entry.ca, entry.fingerprint)
        self._usual_tls = web_context(None, None) if entry.redirects_to else self._tls
        self._relays: tuple[str, ...] = ()

    def reach(self, deadline: Deadline) -> Reached:
        """Connect to it, directly, else over relays that lead to it."""
        trouble: TransferError | None = None
        for relays in self._network.ways_to(self.name):
            try:
                self._open(relays, Deadline(self._timeout_s) if relays else deadline).close()
            except TransferError as error:
                if error.is_final and not relays:
                    raise
                # What relays say of it explains less than why it is not reached directly.
                trouble = trouble or error
            else:
                self._relays = relays
                return Reached(relays, serves=True)
        assert trouble is not None
        raise trouble

    def list(self, known: Known) -> Iterator[Page]:
        """Yield its files in pages; what was answered in a try that has failed is kept."""
        if self._listing is None:
            relays = self._relays
            self._listing = WebListing(
                self.name,
                self._files,
                known,
                lambda: self.open(relays),
                self._patience_s,
                self._standing.refuse,
            )
        yield from self._listing.pages()
        self._listing = None

    def open(self, relays: tuple[str, ...]) -> WebPeer:
        """Open a session, once the server need not be left alone any more."""
        return self._open(relays, None)

    def assurance(self, tags: Mapping[str | None, int]) -> Assurance | None:
        """Return what was verified of the files that it has sent."""
        if not tags:
            return None
        counts: Counter[str] = Counter()
        for tag, n in tags.items():
            version = Version.of_tag(tag)
            counts["sha256" if version.sha256 else "etag" if version.strong_etag else "none"] += n
        is_protected = self._entry.origin.scheme == "https" and not self._entry.plain_http
        return Assurance(self.name, counts["sha256"], counts["etag"], counts["none"], is_protected)

    def _open(self, relays: tuple[str, ...], deadline: Deadline | None) -> WebPeer:
        entry = self._entry
        dialler = Dialler(
            self.name,
            self._tls,
            self._usual_tls,
            entry.fingerprint,
            lambda: self._network.hops(relays, self.name),
            partial(self._network.relay_refused, relays),
            self._timeout_s,
            entry.ca is not None,
        )
        rule = RedirectRule(entry.redirects_to, entry.plain_http, is_relayed=bool(relays))
        peer = WebPeer(
            self.name,
            WebCore(rule),
            dialler.dial,
            entry.targets.__getitem__,
            self._pace,
            self._standing,
            self._told.__contains__,
            timeout_s=self._timeout_s,
            patience_s=self._patience_s,
            pacer=self._pacer_of(relays),
        )
        try:
            peer.connect(deadline)
        except BaseException:
            peer.close()
            raise
        return peer
