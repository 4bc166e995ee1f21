"""Pacing of packets: as they are made, in quanta, and what is late at little more than that.

A quantum is sent by one call, and is no longer a burst than TCP's own, of 64 kB. Shorter ones cost
the processor more than their packets do; of longer ones, queues on the way lose parts. A sender
that was kept from its processor would catch up by the clock with thousands of packets at once.
"""

from __future__ import annotations

import math

QUANTUM_S, MOST_IN_QUANTUM = 0.0005, 40
# What the system sends by one call at most: heads go before all of it.
MOST_SENT_BYTES = 65_536 - 100
CATCH_UP = 1.25
# What may be caught up at once after a pause, as seconds of it: how late threads wake.
MOST_AT_ONCE_S = 0.002


class Pacing:
    """Counts what may leave.

    Parameters
    ----------
    packets_per_s : float
        Of the source.
    packet_bytes : int
        A quantum is no more than one call takes.

    Attributes
    ----------
    quantum : int
        How many leave together at most.
    next_s : float
        When the next ones may leave, by the clock of `take`.

    Examples
    --------
    At 1000 a second, after a pause of a minute: the first alone, and then 5 in 4 ms.

    >>> pacing = Pacing(1000.0)
    >>> [pacing.take(at_s, 100) for at_s in (0.0, 60.0, 60.0, 60.0, 60.001, 60.002)]
    [1, 1, 1, 0, 1, 1]
    """

    def __init__(self, packets_per_s: float, packet_bytes: int = 1500) -> None:
        self._each_s = 1 / (packets_per_s * CATCH_UP)
        most = min(MOST_IN_QUANTUM, MOST_SENT_BYTES // packet_bytes)
        self.quantum = max(min(int(packets_per_s * QUANTUM_S), most), 1)
        # How early the next one may leave after a pause.
        self._early_s = max(MOST_AT_ONCE_S - self.quantum * self._each_s, 0.0)
        self.next_s = -math.inf

    def take(self, now_s: float, n_waiting: int) -> int:
        """Return how many of those that wait leave now, together."""
        if now_s < self.next_s:
            return 0
        n = min(self.quantum, n_waiting)
        self.next_s = max(self.next_s, now_s - self._early_s) + n * self._each_s
        return n
