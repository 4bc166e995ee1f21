"""Rates of the fluid engine: max-min fair, except where a relay has to wait for its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from datacollect.fairshare import FairShare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.simulation.fluid_wires import Path

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Where nothing but its own machine limits a connection: two hosts at one node.
LOCAL_BYTES_PER_S = 1e10

# Rates that differ by less are the same.
SAME_RATE = 1e-9

# A relayed flow waits for its upstream flow, which may wait for another: one pass per hop, and
# more where they also share wires. Beyond this they are cut to what arrives.
MOST_PASSES = 20


class FluidRates:
    """Flows and what they use: others' flows first, then connections as they are added."""

    def __init__(self, n_resources: int, background: Sequence[Path]) -> None:
        self._n_resources = n_resources
        self.n_background = len(background)
        self._uses: list[tuple[int, ...]] = [path.resources for path in background]
        self._limits = [_limit(path) for path in background]
        self._shares: FairShare | None = None
        self._limit_array = np.zeros(0)

    def add(self, path: Path, pace_bytes_per_s: float | None) -> None:
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
        halted: IntArray | None = None,
    ) -> FloatArray:
        """Return the rate of each flow.

        Parameters
        ----------
        capacity_bytes_per_s : ndarray, shape (n_resources,)
        active : ndarray of bool, shape (n_flows,)
        upstream : ndarray of int, shape (n_flows,)
            The flow that brings the data that a flow forwards as they come; -1 where its data
            are there.
        halted : ndarray of int, optional
            Flows that are stopped by their receivers.
        """
        shares = self._shares or self._prepare()
        limit = self._limit_array
        if halted is not None and len(halted):
            limit = limit.copy()
            limit[halted] = 0.0
        rates = shares.rates(capacity_bytes_per_s, active=active, rate_limit=limit)
        waits = np.flatnonzero((upstream >= 0) & active)
        if len(waits) == 0:
            return rates
        brings, own = upstream[waits], limit[waits]
        given = own
        for _ in range(MOST_PASSES):
            new = np.minimum(own, rates[brings])
            exceeds = rates[waits] > new * (1 + SAME_RATE)
            too_low = (given < new * (1 - SAME_RATE)) & (rates[waits] >= given * (1 - SAME_RATE))
            if not (exceeds.any() or too_low.any()):
                break
            given = new
            limit = limit.copy()
            limit[waits] = given
            rates = shares.rates(capacity_bytes_per_s, active=active, rate_limit=limit)
        for _ in range(len(waits)):
            cut = np.minimum(rates[waits], rates[brings])
            if np.array_equal(cut, rates[waits]):
                break
            rates[waits] = cut
        return rates

    def carried_bytes(self, flow_bytes: FloatArray) -> FloatArray:
        """Return what passed each resource, from what each flow moved."""
        uses = np.array([r for used in self._uses for r in used], dtype=np.int64)
        moved = np.repeat(flow_bytes, [len(used) for used in self._uses])
        carried = np.bincount(uses, weights=moved, minlength=self._n_resources)
        return carried.astype(np.float64)

    def _prepare(self) -> FairShare:
        flow = np.repeat(np.arange(len(self._uses)), [len(used) for used in self._uses])
        resource = np.array([r for used in self._uses for r in used], dtype=np.int64)
        self._shares = FairShare(flow, resource, len(self._uses), self._n_resources)
        self._limit_array = np.array(self._limits, dtype=float)
        return self._shares


def _limit(path: Path) -> float:
    return path.limit_bytes_per_s if path.resources else LOCAL_BYTES_PER_S
