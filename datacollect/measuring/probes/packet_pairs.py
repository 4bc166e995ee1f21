"""Capacity and available bandwidth of a path, from pairs of packets.

Two packets sent back to back leave the narrowest wire as far apart as it takes to send one: that
gives its capacity C. Of two packets that reach it a gap apart in which it is never idle, the gap
grows by the time that others' bytes between them take: that gives the rate of the others, and
what they leave is the available bandwidth A (Strauss, Katabi and Kaashoek, "A measurement study of
available bandwidth estimation tools", IMC 2003). Gaps are the sender's own account, and the
receiver's: no clocks are compared. Agents that have no numpy ask all of this while they send.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.units import format_rate, format_short_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

# Above these rates a packet takes less time than kernels keep to: what is read means nothing.
MOST_CAPACITY_BYTES_PER_S = 300e6 / 8
MOST_AVAILABLE_BYTES_PER_S = 100e6 / 8

FEWEST_PAIRS = 20
MOST_PAIRS = 2000

# A sender is judged by its gaps: so large a part of them must be so near to the wanted one.
NEAR = 0.10
LEAST_NEAR = 0.90

# Of the normal distribution: 95 % lie within.
Z = 1.96


@dataclass(frozen=True)
class AvailableBandwidth:
    """Available bandwidth that pairs show, with an interval of 95 %.

    Attributes
    ----------
    bytes_per_s, low_bytes_per_s, high_bytes_per_s : float
        Between 0 and the capacity.
    n_pairs : int
        Pairs that count.
    pairs_needed : int
        So many narrow the interval to the wanted half-width: no more than these are in all, where
        it is narrow enough.
    """

    bytes_per_s: float
    low_bytes_per_s: float
    high_bytes_per_s: float
    n_pairs: int
    pairs_needed: int


def capacity_bytes_per_s(packet_bytes: int, gap_s: Iterable[float]) -> float:
    """Return the capacity of the narrowest wire from pairs sent back to back.

    The median: single pairs are wide apart where others' packets come between, and close together
    where they queue behind others after the narrowest wire.

    Parameters
    ----------
    packet_bytes : int
        Size of the second packet on the wire.
    gap_s : iterable of float
        Between the arrivals of the two, by the receiver's kernel; NaN where one was lost. At least
        20 pairs must arrive.

    Raises
    ------
    ProblemError
        There are too few pairs, or the wire is too fast for the receiver's clock.

    Examples
    --------
    >>> capacity_bytes_per_s(1500, [0.0024] * 19 + [0.0001])
    625000.0
    """
    gaps = [gap for gap in _gaps(gap_s, "gap_s") if not math.isnan(gap)]
    if len(gaps) < FEWEST_PAIRS:
        raise ProblemError(
            f"the capacity needs at least {FEWEST_PAIRS} pairs that arrived, got {len(gaps)}; "
            "send more"
        )
    gap = statistics.median(gaps)
    if gap * MOST_CAPACITY_BYTES_PER_S < packet_bytes:
        raise ProblemError(
            "packet pairs cannot measure capacities above "
            f"{format_rate(MOST_CAPACITY_BYTES_PER_S)}: {packet_bytes} bytes came "
            f"{format_short_duration(gap)} apart; test with connections instead"
        )
    return packet_bytes / gap


def available_bandwidth(
    capacity_bytes_per_s: float,
    packet_bytes: int,
    sent_gap_s: Iterable[float],
    gap_s: Iterable[float],
    *,
    half_width: float = 0.15,
) -> AvailableBandwidth:
    """Return the available bandwidth from pairs that were sent as far apart as the wire needs.

    Each pair is judged by the gap with which it really left. It would arrive with that, or with
    what the wire needs for a packet if that is more; what it is wider is others' bytes:
    λ = C (gap − max(sent gap, L / C)) / sent gap, and A = C − mean λ.

    Parameters
    ----------
    capacity_bytes_per_s : float
        C, at most 100 Mbit/s.
    packet_bytes : int
        L, size of a packet on the wire.
    sent_gap_s, gap_s : iterable of float
        Of each pair the seconds between its packets as they left and as they arrived; wanted were
        L / C. NaN where one of the two was lost.
    half_width : float
        Wanted half of the interval, as a part of A.

    Raises
    ------
    ProblemError
        The path is too fast, the sender did not keep to the gaps, or too few pairs arrived.

    Examples
    --------
    On a wire of 1 MB/s 1000 bytes take 1 ms. Pairs that arrive 1.4 ms apart had 400 bytes of others
    between them, in the millisecond that lay between them before:

    >>> found = available_bandwidth(1e6, 1000, [0.001] * 20, [0.0014] * 20)
    >>> round(found.bytes_per_s)
    600000
    """
    c = capacity_bytes_per_s
    if not 0 < c <= MOST_AVAILABLE_BYTES_PER_S:
        raise ProblemError(
            "packet pairs cannot measure the available bandwidth of paths above "
            f"{format_rate(MOST_AVAILABLE_BYTES_PER_S)}: no sender keeps such small gaps; this "
            f"path has {format_rate(c)}: test with connections instead"
        )
    wanted_s = packet_bytes / c
    sent, arrived = _gaps(sent_gap_s, "sent_gap_s"), _gaps(gap_s, "gap_s")
    if len(sent) != len(arrived):
        raise ProblemError(
            f"sent_gap_s and gap_s must be of the same pairs, got {len(sent)} and {len(arrived)}"
        )
    near = [abs(gap - wanted_s) <= NEAR * wanted_s for gap in sent]
    if sum(near) < LEAST_NEAR * len(near):
        raise ProblemError(
            f"only {sum(near)} of {len(sent)} packet pairs left within {NEAR:.0%} of the wanted "
            f"gap of {format_short_duration(wanted_s)}, but {LEAST_NEAR:.0%} must; the sending "
            "host is too busy: try again when it is idle"
        )
    # The rate of the others while each pair that counts was on its way.
    others = [
        c * (came - max(left, wanted_s)) / left
        for left, came, is_near in zip(sent, arrived, near, strict=True)
        if is_near and not math.isnan(came)
    ]
    n = len(others)
    if n < FEWEST_PAIRS:
        raise ProblemError(
            f"the available bandwidth needs at least {FEWEST_PAIRS} pairs that arrived, got {n}; "
            "send more"
        )
    mean = statistics.fmean(others)
    deviation = math.sqrt(math.fsum((rate - mean) ** 2 for rate in others) / (n - 1))
    found = min(max(c - mean, 0.0), c)
    error = Z * deviation / math.sqrt(n)
    return AvailableBandwidth(
        found,
        max(found - error, 0.0),
        min(found + error, c),
        n,
        _pairs_needed(deviation, half_width * found),
    )


def _pairs_needed(deviation: float, wanted: float) -> int:
    """Return how many pairs make the interval's half as narrow as wanted, as far as pairs can."""
    if deviation == 0:
        return FEWEST_PAIRS
    needed = (Z * deviation / wanted) ** 2 if wanted > 0 else math.inf
    return int(min(max(math.ceil(min(needed, MOST_PAIRS)), FEWEST_PAIRS), MOST_PAIRS))


def _gaps(values: Iterable[float], name: str) -> list[float]:
    try:
        gaps = [float(value) for value in values]
    except (TypeError, ValueError):
        gaps = []
    if not gaps or any(gap < 0 or math.isinf(gap) for gap in gaps):
        raise ProblemError(f"{name} must be a list of seconds >= 0, at least one, got {values!r}")
    return gaps
