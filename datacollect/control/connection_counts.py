"""Numbers of connections that links deserve, by what a connection brings, learned meanwhile.

A congested wire gives to each connection, so that n connections beside m of others get
C n/(n + m) of its C bytes per second. With r = C/(n + m) for each, one connection more adds
C m/(n + m)², which is r²/b, where b = C/(1 + m) is what a single one found: wires need not be
known. Connections are therefore moved from where r²/b is low to where it is high; since b is a
guess, and often a wrong one, the ratio r/b counts by its fourth root only.

References
----------
E. Altman, D. Barman, B. Tuffin, M. Vojnović, "Parallel TCP sockets: simple model, throughput and
validation", INFOCOM 2006.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from datacollect.control.learned import learned

if TYPE_CHECKING:
    from collections.abc import Mapping

# Two hosts; or all hosts of a chain, whose relays pass on what comes as it comes.
Link: TypeAlias = tuple[str, ...]

# What was observed counts by half after about three seconds: others come and go within minutes,
# and a connection's own rate swings within a second or two.
MEMORY_S = 4.0
# So much must have been observed, lest a connection's slow start be taken for its rate.
LEAST_BUSY_S = 2.0
# r/b counts by this power, and as no less than LEAST_SHARE: 1 would be the marginal of a wire
# that was probed rightly, 0 ignores what was probed (`datacollect/control/learned.json`).
_LEARNED = learned("connection_counts")
TRUST_IN_PROBES: float = _LEARNED["trust_in_probes"]
LEAST_SHARE: float = _LEARNED["least_share"]
# Hosts whose probes were this many times faster than the middle one's need no second connection.
FAR_FASTER = 6.0
# Where several connections of a link bring together what a probe got alone, within this factor and
# for this time, the link is full: nobody else gives way there. (On wires that links share they
# bring less, beside others more; and both swing.)
FULL, FULL_FROM_S = 1.1, 10.0
# Links whose marginal values differ by less are alike: rates swing by more than this.
ALIKE = 1.2
# The part of all connections that is moved at a time where one link brings nothing.
MOVED_PART = 0.2


class LinkRates:
    """Bytes per second of one connection on each link: probed at first, then observed.

    A chain nobody has tried yet gets what a connection gets on its slowest hop.

    Parameters
    ----------
    probed_bytes_per_s : mapping of (str, str) to float

    Examples
    --------
    >>> rates = LinkRates({("S", "D"): 100.0})
    >>> rates.rate(("S", "D"))
    100.0
    >>> rates.moved(("S", "D"), 120); rates.busy(("S", "D"), 3.0)
    >>> rates.rate(("S", "D"))
    40.0
    """

    def __init__(self, probed_bytes_per_s: Mapping[Link, float]) -> None:
        self._probed = probed_bytes_per_s
        self._moved_bytes: defaultdict[Link, float] = defaultdict(float)
        self._busy_s: defaultdict[Link, float] = defaultdict(float)
        self._passed_s = 0.0
        self._as_alone_s: defaultdict[Link, float] = defaultdict(float)
        # What links bring, until more is observed: hosts look at all of them time and again.
        self._found: dict[Link, float] = {}

    def moved(self, link: Link, n_bytes: int) -> None:
        """Note what has arrived over a link."""
        self._moved_bytes[link] += n_bytes
        self._found.pop(link, None)

    def busy(self, link: Link, seconds: float) -> None:
        """Note for how long a connection had something to send."""
        self._busy_s[link] += seconds
        self._found.pop(link, None)

    def passed(self, seconds: float, active: Mapping[Link, int]) -> None:
        """Note that time has passed, and let what was observed count for less.

        `active` says how many connections each link has.
        """
        for link, n in active.items():
            ratio = self.observed_ratio(link)
            if n and ratio is not None and not 1 / FULL <= n * ratio <= FULL:
                self._as_alone_s[link] = 0.0
            elif n > 1 and ratio is not None:
                self._as_alone_s[link] += seconds
        kept = math.exp(-seconds / MEMORY_S)
        self._passed_s = kept * (self._passed_s + seconds)
        for observed in (self._moved_bytes, self._busy_s):
            for link in observed:
                observed[link] *= kept
        self._found.clear()

    def probed(self, link: Link) -> float:
        """Return what a probe of the link got, or of a chain's slowest; 0 where there is none."""
        if len(link) > 2:
            return min(self._probed.get(hop, 0.0) for hop in pairwise(link))
        return self._probed.get(link, 0.0)

    def rate(self, link: Link) -> float:
        """Return what a connection gets."""
        if len(link) > 2:  # what its hops get may change without it
            return self.careful_rate(link, 1)
        found = self._found.get(link)
        if found is None:
            found = self._found[link] = self.careful_rate(link, 1)
        return found

    def careful_rate(self, link: Link, connections: int) -> float:
        """Return what each of some connections gets at least: they may share what a probe got."""
        if self._busy_s.get(link, 0.0) < LEAST_BUSY_S:
            if len(link) > 2:
                return min(self.rate(hop) for hop in pairwise(link)) / max(1, connections)
            return self.probed(link) / max(1, connections)
        return self._moved_bytes[link] / self._busy_s[link]

    def flow(self, link: Link) -> float:
        """Return what all connections of a link bring together, pauses and all, of late."""
        return self._moved_bytes.get(link, 0.0) / self._passed_s if self._passed_s > 0 else 0.0

    def observed_ratio(self, link: Link) -> float | None:
        """Return what a connection gets over what a probe got alone; None before it is known."""
        if self._busy_s.get(link, 0.0) < LEAST_BUSY_S or self.probed(link) <= 0:
            return None
        return self.rate(link) / self.probed(link)

    def is_full(self, link: Link) -> bool:
        """Return whether one connection more would only take from the others of a link."""
        return self._as_alone_s.get(link, 0.0) >= FULL_FROM_S

    def marginal(self, link: Link) -> float:
        """Return what one connection more would add, up to a factor common to all links."""
        rate, probed = self.rate(link), self.probed(link)
        if probed <= 0:
            return rate
        return rate * float(min(1.0, max(LEAST_SHARE, rate / probed)) ** TRUST_IN_PROBES)


def first_counts(
    data_bytes: Mapping[str, int],
    probed_bytes_per_s: Mapping[str, float],
    total: int,
    hops: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return how many connections each host begins with: by its data, one where it is far faster.

    Where there are fewer connections than hosts, those with most data have one.

    Parameters
    ----------
    data_bytes : mapping of str to int
    probed_bytes_per_s : mapping of str to float
        Of each host's link towards the destination.
    total : int
    hops : mapping of str to int, optional
        As how many connections each of a host's counts; by default 1.

    Examples
    --------
    >>> first_counts({"A": 60, "B": 30, "C": 90}, {"A": 1.0, "B": 1.0, "C": 9.0}, 7)
    {'C': 1, 'A': 4, 'B': 2}
    """
    hosts = sorted((h for h in data_bytes if data_bytes[h] > 0), key=lambda h: -data_bytes[h])
    if not hosts:
        return {}
    each = hops or {}
    counts: dict[str, int] = {}
    for host in hosts:
        if each.get(host, 1) <= total:
            counts[host] = 1
            total -= each.get(host, 1)
    middle = sorted(probed_bytes_per_s[host] for host in hosts)[len(hosts) // 2]
    slow = [host for host in counts if probed_bytes_per_s[host] <= FAR_FASTER * middle]
    while fits := [host for host in slow or counts if each.get(host, 1) <= total]:
        host = max(fits, key=lambda h: data_bytes[h] / counts[h])
        counts[host] += 1
        total -= each.get(host, 1)
    return counts


def moved_at_a_time(low: float, high: float, total: int) -> int:
    """Return how many connections to move from one link to another, by their marginal values.

    >>> moved_at_a_time(1.0, 1.1, 40), moved_at_a_time(1.0, 2.0, 40), moved_at_a_time(1.0, 2.0, 4)
    (0, 4, 1)
    """
    if high <= ALIKE * low:
        return 0
    return max(1, int(MOVED_PART * total * (1 - low / high)))
