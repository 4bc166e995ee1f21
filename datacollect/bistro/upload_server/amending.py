"""Amendments of the event: a bistro asks its services, and keeps what they prove.

Where none answers, what was known stays known; a restart needs no network.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.http.published import Saved, amendments_of, united
from datacollect.errors import DatacollectError
from datacollect.net.tls import web_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.upload_server.table import AcceptConfig

EACH_S = 60.0


class Amending:
    """Keeps an event as its logs have it changed.

    Parameters
    ----------
    event : Event
        As its file says.
    config : AcceptConfig
        Amendments are kept in its folder.
    tls : ssl.SSLContext, optional
        How services are verified; by default as usual.

    Raises
    ------
    ProblemError
        What is kept cannot be read, or is of another event.
    """

    def __init__(
        self, event: Event, config: AcceptConfig, tls: ssl.SSLContext | None = None
    ) -> None:
        self._event, self._tls = event, tls
        self._saved = Saved(event, config.event, config.folder)
        self._end = threading.Event()

    @property
    def event(self) -> Event:
        """The event as far as it is known here."""
        return amended(self._event, published(self._event, self._saved.amendments, []))

    def ask(self) -> tuple[Event, dict[str, str]]:
        """Ask all services; return the event as it is then, and why some have not answered.

        Raises
        ------
        NotWrittenError
            What is new cannot be kept.
        """
        if self._tls is None:
            self._tls = web_context()
        found = amendments_of(self._event, [each.url for each in self._event.services], self._tls)
        known = self._saved.amendments
        is_new = united([known, found.amendments]) != known
        if is_new and published(self._event, found.amendments, []):
            self._saved.add(found.amendments)
        return self.event, found.troubles

    def begin(self, take: Callable[[Event], None], report: Callable[[str], None]) -> None:
        """Ask now and every minute, in a thread; tell the event where it is another than before."""
        threading.Thread(target=self._go_on, args=(take, report), name="amend", daemon=True).start()

    def _go_on(self, take: Callable[[Event], None], report: Callable[[str], None]) -> None:
        event, troubles = self.event, None
        while not self._end.is_set():
            try:
                found, why = self.ask()
            except DatacollectError as error:
                found, why = event, {"": str(error)}
            if found != event:
                event = found
                take(event)
            if why != troubles and (why or troubles):
                report(
                    "; ".join(f"{url}: {text}" for url, text in why.items()) or "services answer"
                )
            troubles = why
            self._end.wait(EACH_S)

    def close(self) -> None:
        """Ask no more."""
        self._end.set()
