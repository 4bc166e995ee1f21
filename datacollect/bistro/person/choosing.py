"""In which order bistros are tried: by the destination's table of loads, or by a hash."""

from __future__ import annotations

import math
import socket
import time
from typing import TYPE_CHECKING

from datacollect.bistro.formats.assignment.assigning import assign, by_rendezvous
from datacollect.bistro.formats.assignment.loads import (
    LOADS_PATH,
    MOST_AGE_S,
    MOST_LOADS_BYTES,
    Loads,
    read_loads,
)
from datacollect.errors import DatacollectError, ProblemError
from datacollect.net.fan_out import fan_out
from datacollect.net.http_asking import address_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.net.http_asking import Askers

# So many bistros are near, of so many to which the way is measured; who is silent is none.
NEAR, MOST_MEASURED, CONNECT_S = 4, 16, 1.0
# How long a person may wait in a bistro's queue, where another makes it wait for less.
PATIENCE_S = 10.0
# No further service is asked for the table after so long.
ASKING_S = 10.0


class Chooser:
    """Orders an event's bistros for what is to be pushed.

    Nothing that services answer stops a push: without a table that counts each entry has an order
    of its own, by a hash.

    Parameters
    ----------
    event : Event
    askers : Askers
        For its services.
    """

    def __init__(self, event: Event, askers: Askers) -> None:
        self._event, self._askers = event, askers
        self._urls = {bistro.name: bistro.url for bistro in event.bistros}
        self._numbers = {bistro.name: i for i, bistro in enumerate(event.bistros)}
        self._loads: Loads | None = None
        self._asked_s = -math.inf
        self._round_trips_s: dict[str, float | None] = {}

    def order(self, receipt: Receipt, size_bytes: int) -> list[int]:
        """Return all bistros, by their index, in the order in which they are to be tried.

        Parameters
        ----------
        receipt : Receipt
            Its services are known to answer.
        size_bytes : int
            Of what is to be pushed.
        """
        spread = by_rendezvous(receipt.entry, self._numbers)
        first = self._assigned(receipt, spread, size_bytes)
        # Who was silent just now is tried last.
        rest = sorted(spread, key=lambda name: self._round_trips_s.get(name, 0.0) is None)
        return [self._numbers[name] for name in dict.fromkeys([*first, *rest])]

    def _assigned(self, receipt: Receipt, spread: Sequence[str], size_bytes: int) -> list[str]:
        """Return the best of those that are near, by the table; none where no table counts."""
        loads = self._fresh_loads(receipt)
        if loads is None:
            return []
        free = {row.bistro for row in loads.bistros if row.free_bytes >= size_bytes}
        # Of many each entry has others: nobody measures them all.
        round_trips_s = self._measured([name for name in spread if name in free][:MOST_MEASURED])
        nearest = sorted(round_trips_s, key=lambda name: round_trips_s[name])[:NEAR]
        try:
            return assign(loads, nearest, size_bytes, PATIENCE_S)
        except ProblemError:
            return []

    def _fresh_loads(self, receipt: Receipt) -> Loads | None:
        if self._event.verdicts is None:
            return None
        if self._loads is not None and self._loads.is_fresh(time.time()):
            return self._loads
        # Where there was none, it is not asked for again with each file.
        if time.monotonic() - self._asked_s >= MOST_AGE_S:
            self._loads = self._asked_loads(receipt)
            self._asked_s = time.monotonic()
            return self._loads
        return None

    def _asked_loads(self, receipt: Receipt) -> Loads | None:
        """Ask services in turn, those first that have answered before."""
        known = {word.log for word in receipt.acknowledgements}
        known |= {proof.signed.checkpoint.origin for proof in receipt.proofs}
        services = sorted(self._event.services, key=lambda each: each.log.name not in known)
        end_s = time.monotonic() + ASKING_S
        for service in services:
            try:
                with self._askers.of(service.url) as asker:
                    answer = asker.get(LOADS_PATH, MOST_LOADS_BYTES)
                loads = read_loads(answer.body, self._event) if answer.status == 200 else None
            except DatacollectError:
                loads = None
            if loads is not None and loads.is_fresh(time.time()):
                return loads
            if time.monotonic() >= end_s:
                break
        return None

    def _measured(self, names: Collection[str]) -> dict[str, float]:
        """Return the round trips to bistros that answer, each measured once."""
        new = [name for name in names if name not in self._round_trips_s]
        found = fan_out(new, lambda name: round_trip_s(self._urls[name]), CONNECT_S)
        for name in new:
            outcome = found.get(name)
            self._round_trips_s[name] = None if outcome is None else outcome.value
        known = ((name, self._round_trips_s[name]) for name in names)
        return {name: time_s for name, time_s in known if time_s is not None}


def round_trip_s(url: str) -> float | None:
    """Return how long it takes to connect to a server; None where it cannot be reached.

    Finding the address of its name does not count.
    """
    try:
        found = socket.getaddrinfo(*address_of(url), type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return None
    for family, kind, protocol, _, where in found:
        with socket.socket(family, kind, protocol) as plain:
            plain.settimeout(CONNECT_S)
            begun_s = time.perf_counter()
            try:
                plain.connect(where)
            except OSError:
                continue
            return time.perf_counter() - begun_s
    return None
