"""Limits of a collection in all, by host, and by capped link; and which host keeps each.

All data come here, so this host can keep the limits of whatever they pass on their way, as far as
this pull uses it: a session keeps to all limits of its route, and all sessions share each.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from datetime import UTC
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import WeakSet

from datacollect.files.clock import zone_of
from datacollect.problem.hourly_rates import is_no_limit
from datacollect.transfer.rates.pacer import Pacer
from datacollect.transfer.rates.throttle import Throttle

if TYPE_CHECKING:
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.rates.spells import Rate


class RouteLimits:
    """The limits of a collection file, by what they are of. For any thread.

    Parameters
    ----------
    collection : Collection

    Examples
    --------
    >>> from datacollect.transfer.pull.config.file import Collection
    >>> tree = {
    ...     "format": "datacollect-collection/1",
    ...     "destination": "D",
    ...     "key": "collector.key",
    ...     "agents": {"S": {"url": "https://127.0.0.1:7443", "ca": "ca.pem"}},
    ...     "hosts": {"R": {"uplink_bytes_per_s": "80 Mbit/s"}},
    ... }
    >>> limits = RouteLimits(Collection.from_dict(tree))
    >>> limits.pacer_of("S", ()), limits.pacer_of("S", ("R",)) is None
    (None, False)
    """

    def __init__(self, collection: Collection) -> None:
        zone = UTC if collection.timezone is None else zone_of(collection.timezone)
        hosts, links = collection.network["hosts"], collection.network["links"]

        def throttles(rates: dict[str, Rate | None]) -> dict[str, Throttle]:
            limited = {
                name: rate
                for name, rate in rates.items()
                if rate is not None and not is_no_limit(rate)
            }
            return {name: Throttle(rate, zone) for name, rate in limited.items()}

        self._destination = collection.destination
        self._lock = threading.Lock()
        self._pacers: defaultdict[str, WeakSet[Pacer]] = defaultdict(WeakSet)
        rate = collection.limits.rate
        self._all = [] if rate is None else [Throttle(rate, zone)]
        self._out = throttles({name: each["uplink_bytes_per_s"] for name, each in hosts.items()})
        self._into = throttles({name: each["downlink_bytes_per_s"] for name, each in hosts.items()})
        self._links = {
            (link["from"], link["to"]): Throttle(link["bandwidth_bytes_per_s"], zone)
            for link in links
            if link["cap"]
        }

    def pacer_of(self, source: str, relays: tuple[str, ...]) -> Pacer | None:
        """Return what a session keeps to; None where nothing on its route has a limit.

        Parameters
        ----------
        source : str
        relays : tuple of str
            The nearest first.
        """
        links = list(pairwise((source, *reversed(relays), self._destination)))
        found = [
            throttle
            for tail, head in links
            for throttle in (
                self._out.get(tail),
                self._links.get((tail, head)),
                self._into.get(head),
            )
            if throttle is not None
        ]
        if not self._all and not found:
            return None
        pacer = Pacer([*self._all, *found])
        with self._lock:
            self._pacers[source].add(pacer)
        return pacer

    def held(self) -> frozenset[str]:
        """Return the sources of which a session waits for its turn."""
        with self._lock:
            return frozenset(
                source
                for source, pacers in self._pacers.items()
                if any(pacer.is_waiting for pacer in pacers)
            )
