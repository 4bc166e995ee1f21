"""Bounded relays of the fluid engine: a full relay stops those who send to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.simulation.fluid_state import FluidConnection, FluidHost

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# A relay that was full takes data again when so much of its buffer is free.
FREE_SHARE = 0.5
SLACK_BYTES = 0.5


class RelayBuffers:
    """Others' data at each relay, against one bound for all.

    Parameters
    ----------
    limit_bytes : float
        Infinite: nothing is followed, and nothing costs time.
    destination : str
        The destination stores without bound.
    """

    def __init__(self, limit_bytes: float, destination: str) -> None:
        self.is_bounded = limit_bytes < math.inf
        self._limit_bytes = limit_bytes
        self._destination = destination
        self._stored: dict[int, float] = {}
        self._net: dict[int, float] = {}
        self._full: set[int] = set()

    def halted(self, connections: Sequence[FluidConnection], active: BoolArray) -> IntArray:
        """Return the connections that bring others' data to a full relay."""
        if self.is_bounded:
            self._look()
        halted = [
            c.index
            for c in (connections if self._full else ())
            if active[c.index] and c.to_host.number in self._full and self._is_foreign(c, c.to_host)
        ]
        return np.array(halted, dtype=np.int64)

    def set_rates(self, connections: Sequence[FluidConnection], rate: FloatArray) -> None:
        """Note how fast each relay fills or empties."""
        if not self.is_bounded:
            return
        self._net = {}
        for i in np.flatnonzero(rate > 0).tolist():
            connection = connections[i]
            for host, sign in ((connection.to_host, 1.0), (connection.from_host, -1.0)):
                if self._is_foreign(connection, host):
                    self._net[host.number] = self._net.get(host.number, 0.0) + sign * float(rate[i])

    def advance(self, passed_s: float) -> None:
        """Let the relays fill and empty."""
        for host, net in self._net.items():
            self._stored[host] = max(0.0, self._stored.get(host, 0.0) + net * passed_s)

    def next_s(self) -> float:
        """Return in how long a relay becomes full, or has room again."""
        soonest_s = math.inf
        for host, net in self._net.items():
            stored = self._stored.get(host, 0.0)
            if host in self._full and net < 0:
                room = stored - (1 - FREE_SHARE) * self._limit_bytes
                soonest_s = min(soonest_s, max(0.0, room) / -net)
            elif host not in self._full and net > 0:
                soonest_s = min(soonest_s, max(0.0, self._limit_bytes - stored) / net)
        return soonest_s

    def lose(self, host: FluidHost) -> None:
        """Forget a lost host."""
        self._stored.pop(host.number, None)
        self._full.discard(host.number)

    def _look(self) -> None:
        for host, stored in self._stored.items():
            if stored >= self._limit_bytes - SLACK_BYTES:
                self._full.add(host)
            elif stored <= (1 - FREE_SHARE) * self._limit_bytes + SLACK_BYTES:
                self._full.discard(host)

    def _is_foreign(self, connection: FluidConnection, host: FluidHost) -> bool:
        """Whether a connection's head is others' data at a relay."""
        source = connection.queue[0].source if connection.queue else host.name
        return host.name not in (source, self._destination)
