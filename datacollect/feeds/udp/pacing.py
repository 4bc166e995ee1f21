"""Pacing of packets: as they are made, in quanta, and what is late at little more than that.

A quantum is sent by one call, and is no longer a burst than TCP's own, of 64 kB. Shorter ones cost
the processor more than their packets do; of longer ones, queues on the way lose parts. A sender
that was kept from its processor would catch up by the clock with thousands of packets at once.
"""

from __future__ import annotations

QUANTUM_S, MOST_IN_QUANTUM = 0.0005, 40
CATCH_UP = 1.25
# What may be caught up at once after a pause, as seconds of it: how late threads wake.
MOST_AT_ONCE_S = 0.002
# Of a packet: what sums of short times are off by.
ROUNDING = 1e-6


class Pacing:
    """Counts what may leave.

    Parameters
    ----------
    packets_per_s : float
        Of the source.

    Attributes
    ----------
    quantum : int
        How many leave together at most.

    Examples
    --------
    At 1000 a second, after a pause of a minute: the first alone, and then 5 in 4 ms.

    >>> pacing = Pacing(1000.0)
    >>> [pacing.take(at_s, 100) for at_s in (0.0, 60.0, 60.0, 60.0, 60.001, 60.002)]
    [1, 1, 1, 0, 1, 1]
    """

    def __init__(self, packets_per_s: float) -> None:
        self._per_s = packets_per_s * CATCH_UP
        self.quantum = min(max(int(packets_per_s * QUANTUM_S), 1), MOST_IN_QUANTUM)
        self._most = max(self._per_s * MOST_AT_ONCE_S, float(self.quantum))
        self._level = self._most
        self._at_s: float | None = None

    def take(self, now_s: float, n_waiting: int) -> int:
        """Return how many of those that wait leave now, together: a whole quantum, or none."""
        if self._at_s is not None:
            passed_s = max(now_s - self._at_s, 0.0)
            self._level = min(self._level + passed_s * self._per_s, self._most)
        self._at_s = now_s
        n = min(self.quantum, n_waiting)
        if self._level < n - ROUNDING:
            return 0
        self._level = max(self._level - n, 0.0)
        return n

    def wait_s(self, n_waiting: int) -> float:
        """Return how long until a quantum of those that wait may leave: smaller ones cost more."""
        return max(min(self.quantum, n_waiting) - self._level, 0.0) / self._per_s
