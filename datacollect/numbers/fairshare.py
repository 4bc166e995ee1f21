"""Max-min fair shares, with weights, over any sets of capacities.

Transfers that run at the same time share links, hosts' uplinks, wires and bottlenecks. Long-lived
TCP connections with similar round-trip times divide them about max-min fairly, and so do the
models here: no rate can rise without lowering one that is no higher.

A *flow* uses a set of *resources*; all flows through a resource together stay within its
capacity. With weights (a flow of four parallel streams weighs four) the shares are fair in
*levels*, rate divided by weight. One condition singles out the fair rates: every flow is at its
own rate limit, or crosses a full resource on which no flow has a higher level.

`max_min_fair_rates` answers once; `FairShare` keeps what does not change between the events of a
simulation: who uses what.

References
----------
J. M. Jaffe, "Bottleneck flow control", IEEE Transactions on Communications 29(7), 1981.
D. Bertsekas and R. Gallager, Data Networks, 2nd edition, 1992, section 6.5.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray, ranges

# Shares that differ by less are ties. Rounding errors stay about a thousand times below; telling
# ties apart would cost a round for each.
TIE_TOLERANCE = 1e-12

# Within these bounds no quotient of a rate and a sum of weights leaves the range of floats.
LEAST_WEIGHT, GREATEST_WEIGHT = 1e-9, 1e9
GREATEST_RATE = 1e290

_ZERO = np.zeros(())  # cheaper than a Python number, which numpy would convert at every call


def max_min_fair_rates(
    capacity: npt.ArrayLike,
    flow: npt.ArrayLike,
    resource: npt.ArrayLike,
    n_flows: int,
    *,
    weight: npt.ArrayLike | None = None,
    rate_limit: npt.ArrayLike | None = None,
    active: BoolArray | None = None,
) -> FloatArray:
    """Return the max-min fair rate of each flow, in bytes per second.

    Parameters
    ----------
    capacity : array_like of float, shape (n_resources,)
        What all flows through a resource may use together; >= 0, infinite where nothing limits.
    flow, resource : array_like of int, shape (n_entries,)
        Entry i says that flow ``flow[i]`` uses resource ``resource[i]``. An entry given m times
        means that each byte of the flow crosses the resource m times.
    n_flows : int
        Flows are 0 ... n_flows - 1. A flow without entries is held back by its limit only.
    weight : array_like of float, shape (n_flows,), optional
        Shares are in proportion to the weights; between 1e-9 and 1e9, by default 1.
    rate_limit : array_like of float, shape (n_flows,), optional
        What a flow itself can do; >= 0, infinite (the default) where nothing limits.
    active : ndarray of bool, shape (n_flows,), optional
        Flows that take part, by default all. The others have rate 0.

    Returns
    -------
    ndarray of float, shape (n_flows,)
        Infinite where neither a resource nor a limit holds a flow back. The rates on a resource
        exceed its capacity by rounding errors at most, under one part in 10^12.

    Raises
    ------
    ProblemError
        Shapes or indices do not fit, or a number is out of range.

    Examples
    --------
    Flow 0 crosses both links, flow 1 the first, flow 2 the second. The first link is the
    narrower: flows 0 and 1 get half of it each. Flow 2 takes what is left of the second.

    >>> max_min_fair_rates([10.0, 40.0], [0, 0, 1, 2], [0, 1, 0, 1], 3)
    array([ 5.,  5., 35.])

    Flow 1 with three parallel streams:

    >>> max_min_fair_rates([10.0, 40.0], [0, 0, 1, 2], [0, 1, 0, 1], 3, weight=[1, 3, 1])
    array([ 2.5,  7.5, 37.5])
    """
    capacity = np.asarray(capacity, dtype=np.float64)
    shares = FairShare(flow, resource, n_flows, capacity.size, weight=weight)
    return shares.rates(capacity, rate_limit=rate_limit, active=active)


class FairShare:
    """Use of resources by flows, prepared once, for max-min fair rates again and again.

    Parameters
    ----------
    flow, resource : array_like of int, shape (n_entries,)
        Entry i says that flow ``flow[i]`` uses resource ``resource[i]``. An entry given m times
        means that each byte of the flow crosses the resource m times.
    n_flows, n_resources : int
        Flows are 0 ... n_flows - 1, resources 0 ... n_resources - 1.
    weight : array_like of float, shape (n_flows,), optional
        Shares are in proportion to the weights; between 1e-9 and 1e9, by default 1.

    Raises
    ------
    ProblemError
        Shapes or indices do not fit, or a weight is out of range.

    Notes
    -----
    Memory is in proportion to flows × entries of the flow that has most. Time is in proportion to
    rounds: one for independent links, however many; at worst, where each bottleneck waits for
    another, one per resource. Instances do not change: threads may share one.

    Examples
    --------
    Two flows share a link; when the first has finished, the second has the link to itself.

    >>> shares = FairShare([0, 1], [0, 0], n_flows=2, n_resources=1)
    >>> shares.rates([10.0])
    array([5., 5.])
    >>> shares.rates([10.0], active=np.array([False, True]))
    array([ 0., 10.])
    """

    def __init__(
        self,
        flow: npt.ArrayLike,
        resource: npt.ArrayLike,
        n_flows: int,
        n_resources: int,
        *,
        weight: npt.ArrayLike | None = None,
    ) -> None:
        flow = _indices("flow", flow, n_flows)
        resource = _indices("resource", resource, n_resources)
        if flow.shape != resource.shape:
            raise ProblemError(
                f"flow and resource must be of one length, got {flow.size} and {resource.size}; "
                "give one pair per use"
            )
        self.n_flows = n_flows
        self.n_resources = n_resources
        # Of millions of links few may be in use: the others cost nothing from here on.
        is_used = np.zeros(n_resources, dtype=bool)
        is_used[resource] = True
        (self._used,) = is_used.nonzero()
        number = np.empty(n_resources, dtype=np.int64)
        number[self._used] = np.arange(self._used.size)
        self._crossed = _one_column_per_flow(flow, number[resource], n_flows, self._used.size)
        # A column that starts with padding is all padding.
        self._has_bare_flows = bool((self._crossed[0] == self._used.size).any())
        self._weight = None if weight is None else _checked_weights(weight, n_flows)

    def rates(
        self,
        capacity: npt.ArrayLike,
        *,
        active: BoolArray | None = None,
        rate_limit: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """Return the max-min fair rate of each flow, in bytes per second.

        Parameters
        ----------
        capacity : array_like of float, shape (n_resources,)
            What all flows through a resource may use together; >= 0, infinite where nothing
            limits. Where no flow passes, the value is not looked at.
        active : ndarray of bool, shape (n_flows,), optional
            Flows that take part, by default all. The others have rate 0 and use nothing.
        rate_limit : array_like of float, shape (n_flows,), optional
            What a flow itself can do; >= 0, infinite (the default) where nothing limits.

        Returns
        -------
        ndarray of float, shape (n_flows,)
            Infinite where neither a resource nor a limit holds a flow back. The rates on a
            resource exceed its capacity by rounding errors at most, under one part in 10^12.

        Raises
        ------
        ProblemError
            A shape does not fit, or a number is negative or not a number.
        """
        left_bytes_per_s, has_infinite = self._padded_capacities(capacity)
        limit_bytes_per_s = None
        if rate_limit is not None:
            limit_bytes_per_s = _checked_limits(rate_limit, self.n_flows)
        rate_bytes_per_s = np.zeros(self.n_flows)
        flows = self._taking_part(active)
        if has_infinite or self._has_bare_flows:
            held = self._held_back(left_bytes_per_s, limit_bytes_per_s).take(flows)
            rate_bytes_per_s[flows[~held]] = np.inf
            flows = flows[held]
        if flows.size == 0:
            return rate_bytes_per_s
        everybody = flows.size == self.n_flows
        crossed = self._crossed if everybody else self._crossed.take(flows, axis=1)
        weight = None if self._weight is None else self._weight.take(flows)
        own_level = None if limit_bytes_per_s is None else limit_bytes_per_s.take(flows)
        if own_level is not None and weight is not None:
            own_level /= weight
        rate_bytes_per_s[flows] = _fill(left_bytes_per_s, crossed, weight, own_level)
        if limit_bytes_per_s is not None:
            # Division by the weight and back may have rounded a limit up.
            np.minimum(rate_bytes_per_s, limit_bytes_per_s, out=rate_bytes_per_s)
        return rate_bytes_per_s

    def _padded_capacities(self, capacity: npt.ArrayLike) -> tuple[FloatArray, bool]:
        """Capacities of the resources in use, an infinite one last, and if any other is so."""
        given = np.asarray(capacity, dtype=np.float64)
        if given.shape != (self.n_resources,):
            raise ProblemError(
                f"capacity must have shape ({self.n_resources},), got {given.shape}; "
                "give one capacity per resource"
            )
        padded = np.empty(self._used.size + 1)
        padded[-1] = np.inf
        used = padded[:-1]
        given.take(self._used, out=used)
        if used.size == 0 or (used.min() >= 0 and used.max() <= GREATEST_RATE):
            return padded, False
        _refuse_bad_rates("capacity", used, self._used)
        return padded, True

    def _taking_part(self, active: BoolArray | None) -> IntArray:
        if active is None:
            return np.arange(self.n_flows)
        if active.shape != (self.n_flows,) or active.dtype != np.bool_:
            raise ProblemError(
                f"active must hold booleans in shape ({self.n_flows},), got {active.dtype} in "
                f"shape {active.shape}; give a mask, not indices"
            )
        return active.nonzero()[0]

    def _held_back(self, padded: FloatArray, limit_bytes_per_s: FloatArray | None) -> BoolArray:
        """Mark the flows that a finite capacity or their own limit holds back."""
        held: BoolArray = np.logical_or.reduce(np.isfinite(padded).take(self._crossed), axis=0)
        return held if limit_bytes_per_s is None else held | np.isfinite(limit_bytes_per_s)


def _fill(
    left_bytes_per_s: FloatArray,
    crossed: IntArray,
    weight: FloatArray | None,
    own_level: FloatArray | None,
) -> FloatArray:
    """Return the rates of flows, each of which something finite holds back.

    Progressive filling raises all levels together until a resource is full, and goes on without
    the flows that cross it: one round per resource. Here one round does many. A resource's share
    (capacity left / weight waiting) never falls, for flows leave at levels no higher than it. So
    where a resource has the least share along each of its flows, those flows end at this level
    whatever happens elsewhere. All such resources fill up in one round, and there always is one:
    the one of least share.

    No flow is ever set above the share of a resource that it crosses: the sum on each stays within
    its capacity, ties or not.

    Parameters
    ----------
    left_bytes_per_s : ndarray of float, shape (n_slots,)
        Capacities, overwritten by what is left of them; the last is infinite.
    crossed : ndarray of int, shape (n_rows, n_flows)
        The resources of each flow, padded with the last.
    weight : ndarray of float, shape (n_flows,), optional
    own_level : ndarray of float, shape (n_flows,), optional
        Own rate limits, divided by the weights.
    """
    n_rows, n_flows = crossed.shape
    rate_bytes_per_s = np.empty(n_flows)
    waiting = np.arange(n_flows)
    # Resources that nobody waits for divide by 0; nobody looks at their shares either.
    with np.errstate(divide="ignore", invalid="ignore"):
        while True:
            level, waits = _one_round(left_bytes_per_s, crossed, weight, own_level)
            rate = level if weight is None else level * weight
            stay = waits.nonzero()[0]
            if stay.size == 0:
                rate_bytes_per_s[waiting] = rate
                return rate_bytes_per_s
            leave = np.logical_not(waits).nonzero()[0]
            rate = rate.take(leave)
            rate_bytes_per_s[waiting.take(leave)] = rate
            left_bytes_per_s -= np.bincount(
                crossed.take(leave, axis=1).ravel(),
                np.concatenate([rate] * n_rows),
                left_bytes_per_s.size,
            )
            np.maximum(left_bytes_per_s, _ZERO, out=left_bytes_per_s)
            waiting = waiting.take(stay)
            crossed = crossed.take(stay, axis=1)
            weight = None if weight is None else weight.take(stay)
            own_level = None if own_level is None else own_level.take(stay)


def _one_round(
    left_bytes_per_s: FloatArray,
    crossed: IntArray,
    weight: FloatArray | None,
    own_level: FloatArray | None,
) -> tuple[FloatArray, BoolArray]:
    """Return each flow's level if it left now, and whether it has to wait for others."""
    n_slots = left_bytes_per_s.size
    flat = crossed.ravel()
    weights = None if weight is None else np.concatenate([weight] * len(crossed))
    share = (left_bytes_per_s / np.bincount(flat, weights, n_slots)).take(crossed)
    level: FloatArray = np.minimum.reduce(share, axis=0)
    if own_level is not None:
        level = np.minimum(level, own_level)
    # A resource does not bind yet as long as one of its flows is bound more tightly elsewhere.
    bound_elsewhere = share * (1 - TIE_TOLERANCE) > level
    n_bound_elsewhere = np.bincount(flat.compress(bound_elsewhere.ravel()), None, n_slots)
    waits: BoolArray = np.logical_and.reduce(n_bound_elsewhere.take(crossed), axis=0)
    return level, waits if own_level is None else waits & (level < own_level)


def _one_column_per_flow(
    flow: IntArray, resource: IntArray, n_flows: int, padding: int
) -> IntArray:
    """Resources of each flow in its column, shape (most entries of a flow, n_flows), padded.

    Whole rows make the least share along each flow a single fast reduction.
    """
    order = np.argsort(flow, kind="stable")
    flow = flow[order]
    n_entries = np.bincount(flow, minlength=n_flows)
    row = ranges(np.zeros_like(n_entries), n_entries)
    columns = np.full((max(1, n_entries.max(initial=0)), n_flows), padding, dtype=np.int64)
    columns[row, flow] = resource[order]
    return columns


def _indices(name: str, values: npt.ArrayLike, end: int) -> IntArray:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ProblemError(
            f"{name} must hold integers in one dimension, got {array.dtype} in {array.ndim}; "
            "give one index per use"
        )
    for extreme in (array.min(), array.max()):
        if not 0 <= extreme < end:
            raise ProblemError(f"{name} must hold indices from 0 to {end - 1}, got {extreme}")
    return array.astype(np.int64)


def _checked_weights(weight: npt.ArrayLike, n_flows: int) -> FloatArray:
    array = _per_flow("weight", weight, n_flows)
    wrong = ~((array >= LEAST_WEIGHT) & (array <= GREATEST_WEIGHT))
    if wrong.any():
        first = wrong.argmax()
        raise ProblemError(
            f"weight[{first}] must lie between {LEAST_WEIGHT:g} and {GREATEST_WEIGHT:g}, got "
            f"{array[first]}; only ratios of weights matter: scale all"
        )
    return array.copy()  # the caller may change his


def _checked_limits(limit_bytes_per_s: npt.ArrayLike, n_flows: int) -> FloatArray:
    array = _per_flow("rate_limit", limit_bytes_per_s, n_flows)
    if array.size and not (array.min() >= 0 and array.max() <= GREATEST_RATE):
        _refuse_bad_rates("rate_limit", array, np.arange(n_flows))
    return array


def _per_flow(name: str, values: npt.ArrayLike, n_flows: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_flows,):
        raise ProblemError(
            f"{name} must have shape ({n_flows},), got {array.shape}; give one number per flow"
        )
    return array


def _refuse_bad_rates(name: str, rates: FloatArray, index: IntArray) -> None:
    """Raise for the first number that is no rate, if any; `index` says where it stood."""
    right = ((rates >= 0) & (rates <= GREATEST_RATE)) | (rates == np.inf)
    if not right.all():
        first = right.argmin()
        raise ProblemError(
            f"{name}[{index[first]}] must be >= 0, and <= {GREATEST_RATE:g} or infinite, got "
            f"{rates[first]}; use inf where nothing limits, 0 where nothing passes"
        )
