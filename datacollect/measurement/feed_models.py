"""Models of feeds: what a source of constant rate suffers from a loss, over TCP and over UDP.

The equations are those of the EXPReS "Protocols Performance Report" (2009), section 2.2, and what
follows from them. A source makes ``rate`` bytes per second and cannot wait. After a loss TCP's
window falls to a part ``beta`` of what it was and grows again: meanwhile less is sent than is made,
a deficit builds up, and everything is late. Once the window is past the source's own
bandwidth-delay product, more is sent than is made, until the deficit is gone.

Examples
--------
The report's numbers, 512 Mbit/s over 15 ms with segments of 1448 bytes. Equation 2-1, its
"0.9 Mbyte":

>>> rate = 512e6 / 8
>>> bdp_bytes(rate, 0.015)
960000.0

Equations 2-2 and 2-3 need acknowledgements of every segment. With delayed ones, of every second,
windows grow half as fast, and only then are the report's results met: "around 10 seconds", "around
160 Mbyte":

>>> round(recovery_s(rate, 0.015), 2), round(recovery_s(rate, 0.015, delayed_acks=True), 1)
(4.97, 9.9)
>>> [round(deficit_bytes(rate, 0.015, delayed_acks=late) / 1e6) for late in (False, True)]
[80, 159]

Its "520 MB for 27 ms" and "6.4 GB for 95 ms":

>>> [round(deficit_bytes(rate, rtt_s, delayed_acks=True) / 1e6) for rtt_s in (0.027, 0.095)]
[516, 6382]

"14 minutes to resume" over 95 ms, 820 s on its next page, is neither equation 2-2 nor twice that:
it is four times, delayed acknowledgements and the time until all is timely again, which is twice
the time until the rate is back:

>>> round(4 * recovery_s(rate, 0.095) / 60, 1)
13.3
>>> round(regain_s(rate, 0.095, link_ratio=2.0, delayed_acks=True) / recovery_s(rate, 0.095), 9)
4.0

Two more places where its text departs from its numbers: nine stations need 9 · 8 streams by
unicast, where its table prints 71; and 3 000 of 50 million packets are 0.006 %, printed 0.001 %:

>>> 9 * 8, f"{3000 / 50e6:.3%}"
(72, '0.006%')

1024 Mbit/s do not fit 1 Gbit/s Ethernet: at least 6.5 % have to be left out (section 3.6):

>>> round(1 - of_the_wire(1e9 / 8, UDP_HEADER_BYTES) / (1024e6 / 8), 3)
0.065
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Of Ethernet: preamble, header, check sequence and the gap between frames.
FRAME_BYTES = 38
MTU_BYTES = 1500
# IP and TCP with time stamps, IP and UDP.
TCP_HEADER_BYTES, UDP_HEADER_BYTES = 52, 28
MSS_BYTES = MTU_BYTES - TCP_HEADER_BYTES

RENO_BETA = 0.5
# Of Linux: 717/1024; segments per cubic second.
CUBIC_BETA, CUBIC_C = 0.7, 0.4

# Into so many steps a time is cut in which a window grows.
_STEPS = 2000
_MOST_CYCLES = 60
_SAME_PEAK = 1e-6


def bdp_bytes(rate_bytes_per_s: float, rtt_s: float) -> float:
    """Return what is under way at a rate: the bandwidth-delay product (equation 2-1)."""
    return rate_bytes_per_s * rtt_s


def recovery_s(
    rate_bytes_per_s: float,
    rtt_s: float,
    *,
    delayed_acks: bool = False,
    window_ratio: float = 1.0,
    beta: float = RENO_BETA,
    mss_bytes: float = MSS_BYTES,
) -> float:
    """Return how long after a loss Reno is back at the source's rate (equation 2-2).

    Parameters
    ----------
    rate_bytes_per_s, rtt_s : float
        Of the source, and of the path.
    delayed_acks : bool
        Whether the receiver acknowledges every second segment only.
    window_ratio : float
        The window before the loss ÷ what the source needs, R: between 1 and the link's bandwidth ÷
        the source's rate, since a window that is not in use does not grow. The report has 1.
    beta : float
        The part of the window that is left after a loss.

    Examples
    --------
    >>> recovery_s(2e6, 0.05, window_ratio=2.0)
    0.0
    """
    gap = max(1.0 - beta * window_ratio, 0.0)
    growth = (2.0 if delayed_acks else 1.0) / mss_bytes
    return gap * rate_bytes_per_s * rtt_s**2 * growth


def deficit_bytes(
    rate_bytes_per_s: float,
    rtt_s: float,
    *,
    delayed_acks: bool = False,
    window_ratio: float = 1.0,
    beta: float = RENO_BETA,
    mss_bytes: float = MSS_BYTES,
) -> float:
    """Return how much is late at most after a loss with Reno (equation 2-3, where R is 1).

    ``rate² · rtt² · (1 − beta · R)² ÷ (2 · mss)``; nothing where R is at least ``1 / beta``.
    Parameters are those of `recovery_s`.

    Examples
    --------
    16 Mbit/s over 50 ms: 0.43 s of its data, and none over twice the bandwidth:

    >>> round(deficit_bytes(2e6, 0.05) / 2e6, 2), deficit_bytes(2e6, 0.05, window_ratio=2.0)
    (0.43, 0.0)
    """
    gap = max(1.0 - beta * window_ratio, 0.0)
    back_s = recovery_s(
        rate_bytes_per_s,
        rtt_s,
        delayed_acks=delayed_acks,
        window_ratio=window_ratio,
        beta=beta,
        mss_bytes=mss_bytes,
    )
    return gap * rate_bytes_per_s * back_s / 2


def regain_s(
    rate_bytes_per_s: float,
    rtt_s: float,
    *,
    link_ratio: float,
    delayed_acks: bool = False,
    window_ratio: float = 1.0,
    beta: float = RENO_BETA,
    mss_bytes: float = MSS_BYTES,
) -> float:
    """Return how long after a loss all is timely again with Reno: the excess equals the deficit.

    Twice `recovery_s` where the link carries the peak, ``rate · (2 − beta · R)``; longer where it
    carries less; for ever where it carries no more than the source makes.

    Parameters
    ----------
    link_ratio : float
        The link's bandwidth ÷ the source's rate.

    Examples
    --------
    >>> round(regain_s(2e6, 0.05, link_ratio=1.5) / recovery_s(2e6, 0.05), 9)
    2.0
    >>> regain_s(2e6, 0.05, link_ratio=1.25) / recovery_s(2e6, 0.05)
    2.25
    >>> regain_s(2e6, 0.05, link_ratio=1.0)
    inf
    """
    gap = max(1.0 - beta * window_ratio, 0.0)
    if gap == 0:
        return 0.0
    if link_ratio <= 1:
        return math.inf
    part = min((link_ratio - 1) / gap, 1.0)
    back_s = recovery_s(
        rate_bytes_per_s,
        rtt_s,
        delayed_acks=delayed_acks,
        window_ratio=window_ratio,
        beta=beta,
        mss_bytes=mss_bytes,
    )
    return back_s * (1 + part) ** 2 / (2 * part)


def of_the_wire(wire_bytes_per_s: float, header_bytes: int, mtu_bytes: int = MTU_BYTES) -> float:
    """Return what a wire of Ethernet carries of data, beside headers of each packet.

    Examples
    --------
    >>> f"{of_the_wire(1e9, TCP_HEADER_BYTES) / 1e6:.0f} Mbit/s by TCP"
    '941 Mbit/s by TCP'
    """
    return wire_bytes_per_s * (mtu_bytes - header_bytes) / (mtu_bytes + FRAME_BYTES)


# Windows after a loss --------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowLaw:
    """Law by which a congestion control's window falls with a loss, and grows after it.

    Attributes
    ----------
    name : str
        As the kernel calls it.
    beta : float
        The part that is left.
    window : callable
        From seconds since the loss, the window before it in segments, and the round trip in
        seconds, to the window in segments.
    """

    name: str
    beta: float
    window: Callable[[float, float, float], float]


def _reno(since_s: float, peak: float, rtt_s: float) -> float:
    """Reno with delayed acknowledgements, the slower: half a segment in each round trip."""
    return RENO_BETA * peak + since_s / rtt_s / 2


def _cubic(since_s: float, peak: float, rtt_s: float) -> float:
    """Cubic, and no slower than Reno as it estimates that (RFC 9438)."""
    return _cubic_resting(since_s, peak, rtt_s, peak)


def _cubic_falling(since_s: float, peak: float, rtt_s: float) -> float:
    """Cubic where the window before the loss was smaller than before the last one.

    It then leaves room to others ("fast convergence", RFC 9438, 4.7): it rests at 0.85 of what the
    window was, before it looks for more.
    """
    return _cubic_resting(since_s, peak, rtt_s, peak * (1 + CUBIC_BETA) / 2)


def _cubic_resting(since_s: float, peak: float, rtt_s: float, rests_at: float) -> float:
    back_s = math.cbrt((rests_at - CUBIC_BETA * peak) / CUBIC_C)
    alpha = 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA)
    friendly = CUBIC_BETA * peak + alpha * since_s / rtt_s
    return max(CUBIC_C * (since_s - back_s) ** 3 + rests_at, friendly)


RENO = WindowLaw("reno", RENO_BETA, _reno)
CUBIC = WindowLaw("cubic", CUBIC_BETA, _cubic)
CUBIC_FALLING = WindowLaw("cubic", CUBIC_BETA, _cubic_falling)


@dataclass(frozen=True)
class Path:
    """A path over which one connection goes.

    Attributes
    ----------
    bandwidth_bytes_per_s : float
        What it carries of data.
    rtt_s : float
    """

    bandwidth_bytes_per_s: float
    rtt_s: float


@dataclass(frozen=True)
class AfterLoss:
    """Effects of one loss on a source, at most.

    Attributes
    ----------
    deficit_bytes : float
        The most that has been made and not sent in time.
    regain_s : float
        How long until all is timely again; infinite: never.
    """

    deficit_bytes: float
    regain_s: float


def after_loss(
    law: WindowLaw,
    rate_bytes_per_s: float,
    path: Path,
    mss_bytes: float = MSS_BYTES,
    *,
    window_ratio: float = 1.0,
) -> AfterLoss:
    """Follow the window after one loss.

    Parameters
    ----------
    law : WindowLaw
    rate_bytes_per_s : float
    path : Path
    mss_bytes : float, optional
    window_ratio : float, optional
        The window before the loss, by what the source needs: larger ones make less late, down to
        nothing from 1 / beta on.

    Examples
    --------
    >>> found = after_loss(RENO, 2e6, Path(3e6, 0.05))
    >>> round(found.deficit_bytes / deficit_bytes(2e6, 0.05, delayed_acks=True), 3)
    1.0
    >>> round(found.regain_s / regain_s(2e6, 0.05, link_ratio=1.5, delayed_acks=True), 3)
    1.0

    A message is then late by the deficit over the rate. To stay below 0.1 s at 16 Mbit/s over 50
    ms, Cubic's window has to be 1.13 times what is needed, and 1.18 times where it was larger
    before the last loss:

    >>> path = Path(2.35e6, 0.05)
    >>> for law, ratio in ((CUBIC, 1.13), (CUBIC_FALLING, 1.18)):
    ...     print(round(after_loss(law, 2e6, path, window_ratio=ratio).deficit_bytes / 2e6, 3))
    0.099
    0.098
    """
    rate, link = rate_bytes_per_s, path.bandwidth_bytes_per_s
    if law.beta * window_ratio >= 1:
        return AfterLoss(0.0, 0.0)
    peak = window_ratio * bdp_bytes(rate, path.rtt_s) / mss_bytes
    step_s = max(peak * path.rtt_s, path.rtt_s) / _STEPS
    deficit = most = now_s = 0.0
    sent = law.beta * window_ratio * rate
    while True:
        later = min(law.window(now_s + step_s, peak, path.rtt_s) * mss_bytes / path.rtt_s, link)
        change = (rate - (sent + later) / 2) * step_s
        if deficit + change <= 0 and now_s > 0:
            return AfterLoss(most, now_s + step_s * deficit / -change)
        deficit, now_s, sent = deficit + change, now_s + step_s, later
        most = max(most, deficit)
        if sent >= link:  # as fast as it ever goes
            left_s = deficit / (link - rate) if link > rate else math.inf
            return AfterLoss(most, now_s + left_s)


def mean_rate_bytes_per_s(
    law: WindowLaw, path: Path, losses_each_s: float, mss_bytes: float = MSS_BYTES
) -> float:
    """Return what a connection carries that always has data, with a loss each so many seconds.

    Examples
    --------
    Reno's mean window is three quarters of its peak, where the link carries the peak:

    >>> rate = mean_rate_bytes_per_s(RENO, Path(1e9, 0.05), 2.0)
    >>> peak = 2.0 / 0.05 / 2 / (1 - RENO_BETA)
    >>> round(rate * 0.05 / MSS_BYTES / peak, 3)
    0.75
    """
    link = path.bandwidth_bytes_per_s * path.rtt_s / mss_bytes
    peak = link
    for _ in range(_MOST_CYCLES):
        before, peak = peak, min(law.window(losses_each_s, peak, path.rtt_s), link)
        if abs(peak - before) <= _SAME_PEAK * before:
            break
    times = [losses_each_s * i / _STEPS for i in range(_STEPS + 1)]
    windows = [min(law.window(at_s, peak, path.rtt_s), link) for at_s in times]
    mean = sum((a + b) / 2 for a, b in pairwise(windows)) / _STEPS
    return mean * mss_bytes / path.rtt_s


def least_spacing_s(
    law: WindowLaw, rate_bytes_per_s: float, path: Path, mss_bytes: float = MSS_BYTES
) -> float:
    """Return how seldom losses have to be so that a connection carries the source's rate.

    Infinite where the link carries no more than that.

    Examples
    --------
    >>> each_s = least_spacing_s(RENO, 2e6, Path(2.5e6, 0.05))
    >>> round(mean_rate_bytes_per_s(RENO, Path(2.5e6, 0.05), each_s) / 2e6, 3)
    1.0
    """
    if path.bandwidth_bytes_per_s <= rate_bytes_per_s:
        return math.inf
    low_s, high_s = 0.0, path.rtt_s
    while mean_rate_bytes_per_s(law, path, high_s, mss_bytes) < rate_bytes_per_s:
        low_s, high_s = high_s, 2 * high_s
    for _ in range(20):
        middle_s = (low_s + high_s) / 2
        enough = mean_rate_bytes_per_s(law, path, middle_s, mss_bytes) >= rate_bytes_per_s
        low_s, high_s = (low_s, middle_s) if enough else (middle_s, high_s)
    return high_s
