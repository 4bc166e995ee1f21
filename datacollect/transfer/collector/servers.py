"""Other servers as the collector knows them: reached straight or over relays, listed, asked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.transfer.collector.answer import Assurance
from datacollect.transfer.collector.contacts import Contact
from datacollect.transfer.web.connections import Dialler, web_context
from datacollect.transfer.web.core import WebCore
from datacollect.transfer.web.listing import ServerPage, WebListing
from datacollect.transfer.web.peer import Pace, WebPeer
from datacollect.transfer.web.redirects import RedirectRule
from datacollect.transfer.web.versions import Version
from datacollect.transfer.wire.messages import AgentFacts
from datacollect.transfer.wire.patterns import matches

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping

    from datacollect.transfer.collector.config import Collection
    from datacollect.transfer.collector.contacts import Contacts
    from datacollect.transfer.collector.state import Listed, State


class Servers:
    """Opens sessions with other servers. Its methods may be called by any thread.

    Parameters
    ----------
    collection : Collection
    contacts : Contacts
        Agents, of which some may relay to servers; servers that are reached become known to it.
    """

    def __init__(self, collection: Collection, contacts: Contacts) -> None:
        self._entries = collection.servers
        self._patterns = {name: source.files for name, source in (collection.sources or {}).items()}
        self._contacts, self._limits = contacts, collection.limits
        self._paces = {name: Pace() for name in self._entries}
        self._tls = {
            name: web_context(entry.ca, entry.fingerprint) for name, entry in self._entries.items()
        }
        self._usual_tls: ssl.SSLContext | None = None
        if any(entry.redirects_to for entry in self._entries.values()):
            self._usual_tls = web_context(None, None)

    def ask_all(self, names: Iterable[str]) -> dict[str, str]:
        """Connect to servers, all at a time, straight or else over relays that lead to them.

        Returns
        -------
        dict of str to str
            Why each of those is not reached that are not.
        """
        troubles: dict[str, str] = {}

        def ask(name: str) -> None:
            try:
                self._reach(name)
            except TransferError as error:
                troubles[name] = str(error)

        threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return troubles

    def _reach(self, name: str) -> None:
        known = list(self._contacts.known.items())
        ways = [(), *((r,) for r, contact in known if name in contact.facts.relays_to)]
        trouble = None
        for relays in ways:
            try:
                self.open_peer(name, relays).close()
            except TransferError as error:
                # What relays say of it tells less than why it is not reached straight.
                trouble = trouble or error
            else:
                facts = AgentFacts(name, "", time.time(), serves=True, relays_to=())
                self._contacts.add(Contact(facts, relays, 0.0))
                return
        if trouble is not None:
            raise trouble

    def open_peer(self, name: str, relays: tuple[str, ...]) -> WebPeer:
        """Open a session with a server, once it need not be left alone any more."""
        entry, pace, timeout_s = self._entries[name], self._paces[name], self._limits.timeout_s
        tls = self._tls[name]
        dialler = Dialler(
            name,
            tls,
            self._usual_tls or tls,
            entry.fingerprint,
            lambda: self._contacts.hops(relays, name),
            timeout_s,
        )
        rule = RedirectRule(entry.redirects_to, entry.plain_http, is_relayed=bool(relays))
        core = WebCore(rule)
        peer = WebPeer(name, core, dialler.dial, entry.targets.__getitem__, pace)
        peer.connect()
        return peer

    def assurances(self, state: State) -> tuple[Assurance, ...]:
        """Return what was verified of the files that servers have sent."""
        counts: dict[str, Counter[str]] = {}
        for name, tag, n in state.tags():
            version = Version.of_tag(tag)
            kind = "sha256" if version.sha256 else "etag" if version.strong_etag else "none"
            counts.setdefault(name, Counter())[kind] += n
        return tuple(
            Assurance(
                name,
                counts[name]["sha256"],
                counts[name]["etag"],
                counts[name]["none"],
                entry.origin.scheme == "https" and not entry.plain_http,
            )
            for name, entry in sorted(self._entries.items())
            if name in counts
        )

    def page(self, name: str, known: Mapping[str, Listed]) -> ServerPage:
        """List a server that was reached.

        Raises
        ------
        TransferError
            It does not answer.
        """
        patterns = self._patterns.get(name)
        files = [file for file in self._entries[name].files if matches(file.path, patterns)]
        relays = self._contacts.known[name].relays
        listing = WebListing(
            files, known, lambda: self.open_peer(name, relays), self._limits.patience_s
        )
        return listing.run()
