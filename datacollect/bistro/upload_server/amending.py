"""Amendments of the event: a bistro asks its services, and keeps what they prove.

It does so each minute, and at once where somebody would be refused as too late: one question for
all who wait, and no more than one in `LEAST_S`, so that nobody floods services through a bistro.
Where none answers, what was known stays known; a restart needs no network.
"""

from __future__ import annotations

import math
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

EACH_S, LEAST_S = 60.0, 2.0
# Where somebody waits, answers count after so long: a service that is silent keeps no one out.
ANSWERS_S = 5.0
# Who waits is answered before his client gives up.
WAIT_S = 15.0


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
        self._turn = threading.Condition()
        self._n_begun = self._n_ended = 0
        self._is_wanted = self._is_over = self._is_answered = False

    @property
    def event(self) -> Event:
        """The event as far as it is known here."""
        return amended(self._event, published(self._event, self._saved.amendments, []))

    def ask(self, within_s: float = math.inf) -> tuple[Event, dict[str, str]]:
        """Ask all services; return the event as it is then, and why some have not answered.

        Parameters
        ----------
        within_s : float
            Who has not answered by then is not waited for.

        Raises
        ------
        NotWrittenError
            What is new cannot be kept.
        """
        if self._tls is None:
            self._tls = web_context()
        urls = [each.url for each in self._event.services]
        found = amendments_of(self._event, urls, self._tls, within_s)
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
        while not self._is_over:
            with self._turn:
                within_s = ANSWERS_S if self._is_wanted else math.inf
                self._n_begun += 1
                self._is_wanted = False
            is_answered = False
            try:
                found, why = self.ask(within_s)
                if found != event:
                    take(found)
                    event = found
                is_answered = len(why) < len(self._event.services)
            except DatacollectError as error:
                why = {"": str(error)}
            except Exception as error:  # noqa: BLE001 - said; it is asked again in a minute
                why = {"": f"{type(error).__name__}: {error}"}
            if why != troubles and (why or troubles):
                report(
                    "; ".join(f"{url}: {text}" for url, text in why.items()) or "services answer"
                )
            troubles = why
            least_s = min(LEAST_S, EACH_S)
            with self._turn:
                self._is_answered = is_answered
                self._n_ended += 1
                self._turn.notify_all()
                self._turn.wait_for(lambda: self._is_over, least_s)
                self._turn.wait_for(lambda: self._is_over or self._is_wanted, EACH_S - least_s)

    def look(self) -> bool:
        """Wait until services are asked from now on; whether one of them has answered."""
        with self._turn:
            wanted = self._n_begun + 1
            self._is_wanted = True
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._n_ended >= wanted or self._is_over, WAIT_S)
            return self._n_ended >= wanted and self._is_answered

    def close(self) -> None:
        """Ask no more."""
        with self._turn:
            self._is_over = True
            self._turn.notify_all()
