"""The table of loads: made of what bistros say of themselves, signed, handed to services."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.bistro.auditor.log_reading import head_of
from datacollect.bistro.destination.run.log_table import Bounded
from datacollect.bistro.formats.assignment.collecting import sending_bytes_per_s
from datacollect.bistro.formats.assignment.loads import LOADS_PATH, BistroLoad, Loads, Wire
from datacollect.errors import DatacollectError, TransferError
from datacollect.net.fan_out import fan_out, start_thread
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from datacollect.bistro.destination.run.bistro_asking import BistroAsking
    from datacollect.bistro.formats.event.event import Event
    from datacollect.net.keys import PrivateKey
    from datacollect.problem.problem import Problem

# Where nothing is known of links, all count the same, and only what is stored tells them apart.
SAME_BYTES_PER_S = 1e6
ANSWER_S = 5.0


def loads_of(
    event: Event, facts: Mapping[str, Mapping[str, Any]], network: Problem | None, now_s: float
) -> Loads:
    """Return the table of those bistros that answer.

    Parameters
    ----------
    event : Event
    facts : mapping of str to mapping
        What each says of itself, as ``FACTS`` in `datacollect.bistro.upload_server.standing` is.
    network : Problem, optional
        What is known of links and of wires that several bistros share.
    now_s : float
        Seconds since 1970.
    """
    rates: dict[str, float] = {}
    wires: tuple[Wire, ...] = ()
    if network is not None:
        rates = dict(zip(network.names, sending_bytes_per_s(network).tolist(), strict=True))
        wires = tuple(
            Wire(shared.bandwidth_bytes_per_s, names)
            for shared in network.shared
            if len(names := tuple(sorted({tail for tail, _ in shared.links} & facts.keys()))) > 1
        )
    rows = tuple(
        BistroLoad(
            name,
            told["stored_bytes"],
            rates.get(name) or SAME_BYTES_PER_S,
            told["free_bytes"],
            told["wait_s"],
        )
        for name, told in sorted(facts.items())
    )
    # Whoever starts again goes on above what was signed before.
    return Loads(rows, wires, event.id, int(now_s * 1000), int(now_s))


@dataclass
class LoadTelling:
    """Signs the table again and again, and hands it to the services: a thread of its own.

    Attributes
    ----------
    key : PrivateKey
        Of the log of verdicts.
    asking : BistroAsking
        May be replaced while it is at work.
    network : Problem or None
    tls : ssl.SSLContext
        For the services.
    report : function
    every_s : float
    heard_s : dict of str to int
        By bistro: when it has last answered, seconds since 1970.
    """

    key: PrivateKey
    asking: BistroAsking
    network: Problem | None
    tls: ssl.SSLContext
    report: Callable[[str], None]
    every_s: float
    heard_s: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loads", daemon=True)
        self.facts: Mapping[str, Mapping[str, Any]] = {}
        self.log_sizes: dict[str, int] = {}
        self._is_asked = threading.Event()

    def __enter__(self) -> LoadTelling:
        """Begin; raise `TransferError` where there is no thread is available."""
        start_thread(self._thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End after what is under way."""
        self._is_over.set()
        self._thread.join()

    def await_answers(self) -> None:
        """Wait until bistros were asked once, or for so long as one may take to answer."""
        self._is_asked.wait(2 * ANSWER_S)

    def _run(self) -> None:
        while not self._is_over.is_set():
            began_s = time.monotonic()
            try:
                self.tell_once(time.time())
            except Exception as error:  # noqa: BLE001 - said; without tables people go on, too
                self.report(
                    f"the table of loads could not be made or sent: {type(error).__name__}: {error}"
                )
            self._is_over.wait(max(self.every_s - (time.monotonic() - began_s), 1.0))

    def tell_once(self, now_s: float) -> None:
        """Ask all bistros, hand the table to all services, and look how long their logs are."""
        asking = self.asking
        self.facts = asking.facts()
        self.heard_s |= dict.fromkeys(self.facts, int(now_s))
        self._is_asked.set()
        loads = loads_of(asking.event, self.facts, self.network, now_s)
        data = loads.signed(asking.event, self.key).data if self.facts else None
        services = {each.url: each for each in asking.event.services}

        def tell(url: str) -> int:
            with Asker(url, self.tls, ANSWER_S) as asker:
                if data is not None:
                    answer = asker.post(LOADS_PATH, data, "text/plain; charset=utf-8")
                    if answer.status != 200:
                        raise TransferError(
                            f"the service answers {answer.status} to the table of loads"
                        )
                head = head_of(services[url], Bounded(asker, 0.0))
            return 0 if head is None else head.checkpoint.size

        for url, outcome in fan_out(services, tell).items():
            if isinstance(outcome.error, DatacollectError):
                self.report(f"{url}: {outcome.error}")
            else:
                self.log_sizes[url] = outcome.result()
