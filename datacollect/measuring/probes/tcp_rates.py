"""Rates of a test of TCP connections by two clocks, and what kept them from being higher.

One clock runs from the first connection on, as users see it. The other begins when the data flow:
slow start at a long round trip eats most of a short test, and says nothing of longer transfers
(Cottrell et al., "Experiences and results from a new high performance network and application
monitoring toolkit", PAM 2003, report both).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from datacollect.measurement.limits import APPLICATION, NETWORK, RATE, RECEIVER, SEND_BUFFER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Data flow from the first interval on that has this part of the usual rate later.
FLOWING = 0.9
# More than this part of the busy time, and the limit is known.
LIMITED = 0.5


@dataclass(frozen=True)
class TcpRates:
    """Rates of a test.

    Attributes
    ----------
    from_connect_bytes_per_s : float
    flowing_bytes_per_s : float
        From `flowing_from_s` on; the other where the test was too short to tell.
    flowing_from_s : float
        Since the beginning.
    n_bytes : int
        Acknowledged.
    duration_s : float
    """

    from_connect_bytes_per_s: float
    flowing_bytes_per_s: float
    flowing_from_s: float
    n_bytes: int
    duration_s: float


def tcp_rates(curve: Sequence[tuple[float, int]], settled_s: float = 0.0) -> TcpRates | None:
    """Return the rates of a curve; None where nothing was acknowledged.

    Parameters
    ----------
    curve : sequence of (float, int)
        Seconds since the first connection was asked for, increasing, and bytes that were
        acknowledged by then.
    settled_s : float
        The data count as flowing from then on at the earliest: new connections take some seconds
        to their share beside others.

    Examples
    --------
    >>> rates = tcp_rates([(0.0, 0), (1.0, 0), (2.0, 2), (3.0, 12), (4.0, 22), (5.0, 32)])
    >>> rates.from_connect_bytes_per_s, rates.flowing_bytes_per_s, rates.flowing_from_s
    (6.4, 10.0, 2.0)
    """
    duration_s, n_bytes = curve[-1]
    if n_bytes <= 0 or duration_s <= 0:
        return None
    whole = n_bytes / duration_s
    steps = [
        (start_s, (after - before) / (end_s - start_s))
        for (start_s, before), (end_s, after) in pairwise(curve)
        if end_s > start_s
    ]
    usual = median(rate for _, rate in steps[len(steps) // 2 :])
    settled = [step for step in steps if step[0] >= settled_s]
    from_s = next((start_s for start_s, rate in settled if rate >= FLOWING * usual), 0.0)
    before = next(done for at_s, done in curve if at_s >= from_s)
    flowing = (n_bytes - before) / (duration_s - from_s) if usual > 0 else whole
    return TcpRates(whole, flowing, from_s, n_bytes, duration_s)


def limited_by(
    facts: Sequence[Mapping[str, float]], rate_bytes_per_s: float, most_bytes_per_s: float | None
) -> str:
    """Return what kept connections from being faster, by what the sender's kernel says.

    Parameters
    ----------
    facts : sequence of mappings
        Of each connection, as `datacollect.net.tcp_info.tcp_info` returns them.
    rate_bytes_per_s : float
        Of all together.
    most_bytes_per_s : float or None
        Above which the sender's agent does not send.

    Examples
    --------
    >>> limited_by([{"busy_s": 2.0, "receiver_limited_s": 1.6}], 1e6, None)
    'receiver'
    >>> limited_by([{"busy_s": 2.0, "receiver_limited_s": 0.1}], 1e6, None)
    'network'
    """
    if most_bytes_per_s is not None and rate_bytes_per_s >= FLOWING * most_bytes_per_s:
        return RATE
    busy_s = sum(each.get("busy_s", 0.0) for each in facts)
    for name, key in ((RECEIVER, "receiver_limited_s"), (SEND_BUFFER, "send_buffer_limited_s")):
        if sum(each.get(key, 0.0) for each in facts) > LIMITED * busy_s:
            return name
    if any(each.get("application_limited") for each in facts):
        return APPLICATION
    return NETWORK
