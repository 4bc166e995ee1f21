"""Trains of packet pairs: which of them arrived how far apart, and how many more are needed."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.units import format_short_duration
from datacollect.measuring.probes.packet_pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    AvailableBandwidth,
    available_bandwidth,
    capacity_bytes_per_s,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Back to back; a few may be lost.
CAPACITY_PAIRS = 30
# What fewer say of how much they scatter is too often luck.
FIRST_PAIRS = 100
# Between two questions to the other end.
BATCH_PAIRS = 100

# A pair on an idle wire waits behind no other: of the time between pairs, their own packets fill
# at most so much of the wire.
LEAST_APART_S = 0.02
MOST_OF_WIRE = 0.2
# What leaves nearly as far apart as it arrives was spread by its sender, not by a wire.
MOST_SENT_GAP = 0.8


def arrival_gaps_s(arrivals: Iterable[tuple[int, int]], pairs: range) -> list[float]:
    """Return how far apart the packets of pairs arrived, in seconds.

    Parameters
    ----------
    arrivals : iterable of (int, int)
        Of each packet its number and its nanosecond; pair k has the numbers 2k and 2k + 1.
    pairs : range

    Returns
    -------
    list of float
        Of each pair; NaN where one of the two was lost, or the second came first.

    Examples
    --------
    >>> arrival_gaps_s([(0, 0), (1, 2_000_000), (3, 5), (5, 1), (4, 9)], range(3))
    [0.002, nan, nan]
    """
    at_ns = dict(arrivals)
    gaps_s = []
    for k in pairs:
        is_there = 2 * k in at_ns and 2 * k + 1 in at_ns
        gap_ns = at_ns[2 * k + 1] - at_ns[2 * k] if is_there else -1
        gaps_s.append(gap_ns / 1e9 if gap_ns >= 0 else math.nan)
    return gaps_s


def capacity_by_train(
    packet_bytes: int,
    sent_gaps_s: Sequence[float | None],
    arrivals: Iterable[tuple[int, int]],
) -> float:
    """Return the capacity from pairs sent back to back, the first ones of a test.

    Parameters
    ----------
    packet_bytes : int
        As for `datacollect.measuring.probes.packet_pairs.capacity_bytes_per_s`.
    sent_gaps_s, arrivals
        As for `found_by_train`.

    Raises
    ------
    ProblemError
        The pairs do not tell it.

    Examples
    --------
    >>> arrivals = [(2 * k + i, k * 10**9 + i * 2_400_000) for k in range(20) for i in (0, 1)]
    >>> capacity_by_train(1500, [2e-5] * 20, arrivals)
    625000.0
    """
    arrived_s = arrival_gaps_s(arrivals, range(len(sent_gaps_s)))
    left_s, gaps_s = _of_those_that_left(sent_gaps_s, arrived_s)
    capacity = capacity_bytes_per_s(packet_bytes, gaps_s)
    sent_s = statistics.median(left_s)
    if sent_s > MOST_SENT_GAP * packet_bytes / capacity:
        raise ProblemError(
            f"pairs arrived {format_short_duration(packet_bytes / capacity)} apart, hardly more "
            f"than the {format_short_duration(sent_s)} with which they left: the sending host "
            "cannot space packets closely enough for this path; use `datacollect measure tcp`"
        )
    return capacity


def found_by_train(
    capacity_bytes_per_s: float,
    packet_bytes: int,
    first: int,
    sent_gaps_s: Sequence[float | None],
    arrivals: Iterable[tuple[int, int]],
    half_width: float,
) -> AvailableBandwidth:
    """Return the available bandwidth from a train of pairs.

    Parameters
    ----------
    capacity_bytes_per_s, packet_bytes, half_width
        As for `datacollect.measuring.probes.packet_pairs.available_bandwidth`.
    first : int
        Number of the first pair.
    sent_gaps_s : sequence of float or None
        Of each pair the seconds between its packets as they left; None: one did not.
    arrivals : iterable of (int, int)
        As for `arrival_gaps_s`.

    Raises
    ------
    ProblemError
        The pairs do not tell it.
    """
    arrived_s = arrival_gaps_s(arrivals, range(first, first + len(sent_gaps_s)))
    left_s, gaps_s = _of_those_that_left(sent_gaps_s, arrived_s)
    if not left_s:
        raise ProblemError(
            "no packet pairs left with the wanted gap: the test's bytes or time ran out before, "
            "or the path is too slow; allow more bytes and time"
        )
    return available_bandwidth(
        capacity_bytes_per_s, packet_bytes, left_s, gaps_s, half_width=half_width
    )


def _of_those_that_left(
    sent_gaps_s: Sequence[float | None], arrived_s: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the gaps as they left, and as they arrived, of pairs that did leave."""
    both = [
        (sent, arrived)
        for sent, arrived in zip(sent_gaps_s, arrived_s, strict=True)
        if sent is not None
    ]
    return [sent for sent, _ in both], [arrived for _, arrived in both]


def apart_s(packet_bytes: int, capacity_bytes_per_s: float | None = None) -> float:
    """Return how far one pair begins after the one before, on average.

    >>> apart_s(1500, 125_000.0), apart_s(1500)
    (0.12, 0.02)
    """
    if capacity_bytes_per_s is None:
        return LEAST_APART_S
    return max(LEAST_APART_S, 2 * packet_bytes / capacity_bytes_per_s / MOST_OF_WIRE)


def more_pairs(n_sent: int, found: AvailableBandwidth | None) -> int:
    """Return how many pairs are to be sent next; 0: what was found is as sure as was wanted.

    Parameters
    ----------
    n_sent : int
        So many so far, for the available bandwidth.
    found : AvailableBandwidth or None
        What they tell; None: nothing yet.

    Examples
    --------
    >>> from datacollect.measuring.probes.packet_pairs import AvailableBandwidth
    >>> more_pairs(0, None)
    100
    >>> found = AvailableBandwidth(1.0, 0.7, 1.3, n_pairs=98, pairs_needed=320)
    >>> more_pairs(100, found), more_pairs(300, AvailableBandwidth(1.0, 0.8, 1.2, 290, 320))
    (100, 30)
    """
    if n_sent < FIRST_PAIRS:
        return FIRST_PAIRS - n_sent
    left = MOST_PAIRS - n_sent
    if found is None:
        return min(FEWEST_PAIRS, left)
    return max(min(found.pairs_needed - found.n_pairs, BATCH_PAIRS, left), 0)
