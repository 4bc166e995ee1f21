"""Bounded relays of the fluid engine: a full relay takes no more than it passes on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.tolerances import SAME_RATE
from datacollect.simulation.fluid.parts import FullRelay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.simulation.fluid.parts import FluidConnection, FluidHost


# A relay that was full takes data freely again when this part of its room is free.
FREE_SHARE = 0.5
ROOM_SLACK_BYTES = 0.5
# Plans round what a slot carries up by this much; a range has to fit all the same.
ROOM_ROUNDING = 1e-9

UNBOUNDED = 0  # the place of all hosts whose room has no limit


class RelayBuffers:
    """Others' data at each relay, against its room.

    Parameters
    ----------
    limit_bytes : float
        Room of every relay; infinite for no limit.
    storage_bytes : mapping of str to float
        Room of single hosts; the smaller of both holds.
    destination : str
        Stores without bound.

    Notes
    -----
    A full relay still takes what it passes on at the same rate. Stopping all that comes would
    bring a collection to a standstill where what leaves first is yet to come, or where two full
    relays hold data for each other.
    """

    def __init__(
        self, limit_bytes: float, storage_bytes: Mapping[str, float], destination: str
    ) -> None:
        self._limit_bytes = limit_bytes
        self._storage_bytes = storage_bytes
        self._destination = destination
        # One entry per bounded host, after one for all others.
        self._place: dict[str, int] = {}
        self._room = np.array([math.inf])
        self._stored = np.zeros(1)
        self._net = np.zeros(1)
        self._is_full = np.zeros(1, dtype=bool)
        # One entry per connection: the host where its head is others' data.
        self._into = np.zeros(0, dtype=np.int64)
        self._out_of = np.zeros(0, dtype=np.int64)

    @property
    def any_bounded(self) -> bool:
        """Return whether any host's room was found to be bounded."""
        return len(self._room) > 1

    def add_connection(self) -> None:
        """Add a connection, with nothing on it."""
        self._into = np.append(self._into, UNBOUNDED)
        self._out_of = np.append(self._out_of, UNBOUNDED)

    def keep(self, rows: IntArray) -> None:
        """Forget all connections but these."""
        self._into, self._out_of = self._into[rows], self._out_of[rows]

    def new_head(self, connection: FluidConnection) -> None:
        """Note whose data a connection carries from now on."""
        i, into, out_of = connection.index, UNBOUNDED, UNBOUNDED
        if connection.queue:
            source = connection.queue[0].source
            into = self._place_of(connection.to_host, source)
            out_of = self._place_of(connection.from_host, source)
        self._into[i], self._out_of[i] = into, out_of

    def put(self, host: FluidHost, source: str, n_bytes: float) -> None:
        """Count data that are at a host besides what flows brought it."""
        place = self._place_of(host, source)  # may be new
        self._stored[place] += n_bytes

    def booked(
        self, connection: FluidConnection, source: str, stored_bytes: float, freed_bytes: float
    ) -> None:
        """Correct the counts of both ends: what was sent twice is stored, and leaves, once."""
        self.put(connection.to_host, source, stored_bytes)
        self.put(connection.from_host, source, -freed_bytes)

    def full(self, active: BoolArray) -> list[FullRelay]:
        """Return who brings data to each full relay, and who takes them away."""
        if len(self._room) == 1:
            return []
        spare = self._room - self._stored
        has_room = spare >= FREE_SHARE * self._room - ROOM_SLACK_BYTES
        self._is_full = (spare <= ROOM_SLACK_BYTES) | (self._is_full & ~has_room)
        relays = [
            FullRelay(
                np.flatnonzero(active & (self._into == place)),
                np.flatnonzero(active & (self._out_of == place)),
            )
            for place in np.flatnonzero(self._is_full).tolist()
        ]
        return [relay for relay in relays if len(relay.brings)]

    def set_rates(self, rate: FloatArray) -> bool:
        """Note how fast each relay fills or empties; return whether one is no longer full.

        A full relay with room that no longer empties takes data freely again: what it stores may
        wait for just these.
        """
        n = len(self._room)
        if n == 1:
            return False  # nobody's room is bounded
        brought = np.bincount(self._into, rate, n).astype(np.float64)
        self._net = brought - np.bincount(self._out_of, rate, n)
        self._net[UNBOUNDED] = 0.0
        has_room = self._room - self._stored > ROOM_SLACK_BYTES
        rests = self._is_full & has_room & (self._net >= -SAME_RATE * brought)
        self._is_full &= ~rests
        return bool(rests.any())

    def advance(self, passed_s: float) -> None:
        """Let the relays fill and empty."""
        if not self.any_bounded:
            return
        self._stored[: len(self._net)] += self._net * passed_s

    def next_s(self) -> float:
        """Return in how long a relay becomes full, or has room again."""
        n = len(self._net)
        if n == 1:
            return math.inf
        stored, room, is_full = self._stored[:n], self._room[:n], self._is_full[:n]
        to_free = stored - (1 - FREE_SHARE) * room
        fills = ~is_full & (self._net > 0)
        empties = is_full & (self._net < 0) & (to_free > ROOM_SLACK_BYTES)
        times_s = np.concatenate(
            [(room - stored)[fills] / self._net[fills], to_free[empties] / -self._net[empties]]
        )
        return max(0.0, float(times_s.min(initial=math.inf)))

    def lose(self, host: FluidHost) -> None:
        """Forget what a lost host stored."""
        self._stored[self._place.get(host.name, UNBOUNDED)] = 0.0

    def _place_of(self, host: FluidHost, source: str) -> int:
        """Return where data of a source at a host are counted."""
        if host.name in (source, self._destination):
            return UNBOUNDED
        place = self._place.get(host.name)
        if place is None:
            place = self._place[host.name] = self._new_place(host.name)
        return place

    def _new_place(self, host: str) -> int:
        room = min(self._limit_bytes, self._storage_bytes.get(host, math.inf))
        if room == math.inf:
            return UNBOUNDED
        self._room = np.append(self._room, room * (1 + ROOM_ROUNDING))
        self._stored = np.append(self._stored, 0.0)
        self._is_full = np.append(self._is_full, np.False_)
        return len(self._room) - 1
