"""Rates of the fluid engine: max-min fair, except where a relay has to wait for its data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from datacollect.numbers.fairshare import FairShare
from datacollect.numbers.tolerances import SAME_RATE
from datacollect.simulation.fluid.parts import FullRelay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray
    from datacollect.simulation.fluid.wires import FluidPath


# Where nothing but its own machine limits a connection: two hosts at one node.
LOCAL_BYTES_PER_S = 1e10

# A relayed flow waits for its upstream flow, which may wait for another: one pass per hop, and
# more where they also share wires. Beyond this they are cut to what arrives.
MOST_PASSES = 20

# Where relays are full a cut upstream is followed by others, each smaller than the one before.
MOST_CUTS = 60


class FluidRates:
    """Flows and what they use: others' flows first, then connections as they are added."""

    def __init__(self, n_resources: int, background: Sequence[FluidPath]) -> None:
        self._n_resources = n_resources
        self.n_background = len(background)
        self._uses: list[tuple[int, ...]] = [path.resources for path in background]
        self._limits = [_limit(path) for path in background]
        self._shares: FairShare | None = None
        self._entries = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self._limit_array = np.zeros(0)

    def add(self, path: FluidPath, pace_bytes_per_s: float | None) -> None:
        """Add a connection."""
        limit = _limit(path)
        self._uses.append(path.resources)
        self._limits.append(limit if pace_bytes_per_s is None else min(limit, pace_bytes_per_s))
        self._shares = None

    def rates(
        self,
        capacity_bytes_per_s: FloatArray,
        active: BoolArray,
        upstream: IntArray,
        full: Sequence[FullRelay] = (),
    ) -> FloatArray:
        """Return the rate of each flow.

        Parameters
        ----------
        capacity_bytes_per_s : ndarray, shape (n_resources,)
        active : ndarray of bool, shape (n_flows,)
        upstream : ndarray of int, shape (n_flows,)
            The flow that brings the data that a flow forwards as they come; -1 where its data
            are there.
        full : sequence of FullRelay
            Relays that take no more than they pass on.
        """
        shares, own = self._prepare()
        waits = np.flatnonzero((upstream >= 0) & active)
        chain: IntArray | None = None
        stores: list[FullRelay] = []
        if full:
            chain, stores = _chains(waits, upstream, full)
            waits = waits[chain[waits] == waits]
            flow, resource = self._entries
            shares = FairShare(chain[flow], resource, len(chain), self._n_resources)
        brings = upstream[waits]
        held = np.unique(np.concatenate([waits, *(relay.brings for relay in stores)]))
        limit = own
        rates = _fair(shares, capacity_bytes_per_s, active, limit, chain)
        if len(held) == 0:
            return rates
        for _ in range(MOST_PASSES):
            new = own.copy()
            new[waits] = np.minimum(own[waits], rates[brings])
            for relay in stores:
                most = _most_stored(rates, limit, relay)
                new[relay.brings] = np.minimum(new[relay.brings], most)
            given, wanted, got = limit[held], new[held], rates[held]
            exceeds = got > wanted * (1 + SAME_RATE)
            too_low = (given < wanted * (1 - SAME_RATE)) & (got >= given * (1 - SAME_RATE))
            if not (exceeds.any() or too_low.any()):
                break
            limit = new
            rates = _fair(shares, capacity_bytes_per_s, active, limit, chain)
        _cut(rates, waits, brings, stores, chain)
        return rates

    def keep(self, flows: IntArray) -> None:
        """Forget all flows but these; others' flows are among them."""
        kept = flows.tolist()
        self._uses = [self._uses[i] for i in kept]
        self._limits = [self._limits[i] for i in kept]
        self._shares = None

    def _prepare(self) -> tuple[FairShare, FloatArray]:
        """Return who uses what, and each flow's own limit."""
        if self._shares is None:
            flow = np.repeat(np.arange(len(self._uses)), [len(used) for used in self._uses])
            resource = np.array([r for used in self._uses for r in used], dtype=np.int64)
            self._entries = (flow, resource)
            self._shares = FairShare(flow, resource, len(self._uses), self._n_resources)
            self._limit_array = np.array(self._limits, dtype=float)
        return self._shares, self._limit_array


def _limit(path: FluidPath) -> float:
    return path.limit_bytes_per_s if path.resources else LOCAL_BYTES_PER_S


def _fair(
    shares: FairShare,
    capacity_bytes_per_s: FloatArray,
    active: BoolArray,
    limit: FloatArray,
    chain: IntArray | None,
) -> FloatArray:
    """Return max-min fair rates; a chain is one flow over all that its flows use."""
    if chain is None:
        return shares.rates(capacity_bytes_per_s, active=active, rate_limit=limit)
    least = limit.copy()
    np.minimum.at(least, chain, limit)
    first = active & (chain == np.arange(len(chain)))
    return shares.rates(capacity_bytes_per_s, active=first, rate_limit=least)[chain]


def _chains(
    waits: IntArray, upstream: IntArray, full: Sequence[FullRelay]
) -> tuple[IntArray, list[FullRelay]]:
    """Return the first flow of each flow's chain, and what full relays store and free.

    What a full relay passes on as it comes is one flow from hop to hop, as fast as its slowest.
    The other flows to a full relay, which it would have to store, share what it frees: what it
    sends that it has stored.
    """
    at_full = np.zeros(len(upstream), dtype=bool)
    for relay in full:
        at_full[relay.brings] = True
    joined = waits[at_full[upstream[waits]]]
    first = np.arange(len(upstream))
    first[joined] = upstream[joined]
    for _ in range(len(joined)):
        first = first[first]
    passes, waiting = np.zeros_like(at_full), np.zeros_like(at_full)
    passes[upstream[joined]] = True
    waiting[waits] = True
    stores = [
        FullRelay(relay.brings[~passes[relay.brings]], relay.takes[~waiting[relay.takes]])
        for relay in full
    ]
    return first, [relay for relay in stores if len(relay.brings)]


def _most_stored(rates: FloatArray, limit: FloatArray, relay: FullRelay) -> float:
    """Return the rate to which a full relay holds each flow that brings what it stores.

    They share what it frees; who is held back elsewhere needs less.
    """
    brought, freed = rates[relay.brings], float(rates[relay.takes].sum())
    wants_more = brought >= limit[relay.brings] * (1 - SAME_RATE)
    if not wants_more.any() and brought.sum() <= freed:
        return math.inf
    rising = np.sort(np.where(wants_more, math.inf, brought))
    # With all below it at their most, the others have this much each.
    below = np.concatenate([[0.0], np.cumsum(rising[:-1])])
    levels = (freed - below) / np.arange(len(rising), 0, -1)
    return float(levels[np.argmax(levels <= rising)])


def _cut(
    rates: FloatArray,
    waits: IntArray,
    brings: IntArray,
    stores: Sequence[FullRelay],
    chain: IntArray | None,
) -> None:
    """Cut rates to what arrives, and to what full relays free."""
    for _ in range(len(waits) + (MOST_CUTS if stores else 0)):
        before = rates.copy()
        for relay in stores:
            brought, freed = rates[relay.brings].sum(), rates[relay.takes].sum()
            if brought > freed:
                rates[relay.brings] *= freed / brought
        rates[waits] = np.minimum(rates[waits], rates[brings])
        if chain is not None:
            np.minimum.at(rates, chain, rates.copy())
            rates[:] = rates[chain]
        if np.array_equal(rates, before):
            return
