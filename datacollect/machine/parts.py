"""Parts of a machine: what bytes cost its processors, and what each part was seen to carry."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace

from datacollect.errors import ProblemError

GIB = 2**30

# What costs time of processors, and at which end of a connection.
UDP, TCP, TLS, BLAKE3, DISK, MEMORY = "udp", "tcp", "tls", "blake3", "disk", "memory"
SENDS, RECEIVES, BOTH = "sends", "receives", "both"
LOOPBACK, VETH = "loopback", "veth"

# Above this part of all processors, what others do is in the numbers.
IDLE_BELOW = 0.1

AGAIN = "measure again: `datacollect host calibrate -o PROFILE.toml`"


@dataclass(frozen=True)
class Cost:
    """Time of processors that a kind of work takes.

    Attributes
    ----------
    work : str
        ``udp``, ``tcp``, ``tls`` (TCP, TLS 1.3 and BLAKE3, as agents and pulls do them),
        ``blake3`` alone, ``disk`` (as pulls write, synced).
    end : str
        ``sends``, ``receives``; ``both`` where the two could not be told apart.
    over : str
        ``loopback``, ``veth``, ``memory``, or the folder's file system.
    s_per_gib : float
        Seconds of processors for each 2**30 bytes, whoever is charged for them.
    low_s_per_gib, high_s_per_gib : float
        Between these it was in all repeats.
    us_per_unit, low_us_per_unit, high_us_per_unit : float
        In addition, for each unit that is handed over at once, in microseconds.
    unit : str or None
        What such a unit is: a packet, a call, a request.
    unit_bytes : int or None
        As large as units are where nothing else is said.
    own_s_per_gib : float or None
        The part of it that the process itself is charged for.
    load : float
        The part of all processors that other programs kept busy meanwhile.
    forced : bool
        Measured although others were busy.
    """

    work: str
    end: str
    over: str
    s_per_gib: float
    low_s_per_gib: float
    high_s_per_gib: float
    us_per_unit: float = 0.0
    low_us_per_unit: float | None = None
    high_us_per_unit: float | None = None
    unit: str | None = None
    unit_bytes: int | None = None
    own_s_per_gib: float | None = None
    load: float = 0.0
    forced: bool = False

    def s_per_byte(self, unit_bytes: float | None = None) -> float:
        """Return seconds for each byte, in units of so many bytes; of the usual ones by default."""
        of_unit = self.unit_bytes or math.inf if unit_bytes is None else unit_bytes
        return self.s_per_gib / GIB + self.us_per_unit * 1e-6 / of_unit


@dataclass(frozen=True)
class Rate:
    """Rate that something carried in a test.

    Attributes
    ----------
    of : str
        ``memory`` (copies), ``disk`` (as pulls write, synced), ``tcp`` or ``tls`` (connections
        within this machine).
    bytes_per_s, low_bytes_per_s, high_bytes_per_s : float
        The median of all repeats, and between which they were.
    at_once : int
        Threads, or connections.
    block_bytes : int or None
        Of memory: what is copied again and again.
    load : float
    forced : bool
    """

    of: str
    bytes_per_s: float
    low_bytes_per_s: float
    high_bytes_per_s: float
    at_once: int = 1
    block_bytes: int | None = None
    load: float = 0.0
    forced: bool = False


@dataclass(frozen=True)
class PullUse:
    """How much of the processors' time a pull uses: they wait for each other, and for data.

    Attributes
    ----------
    connections : int
        Between the pull and its agent, both on this machine.
    share, low_share, high_share : float
        Part of the time of all processors: the middle of all repeats, and between which they were.
    s_per_gib, low_s_per_gib, high_s_per_gib : float or None
        Seconds of processors for each 2**30 bytes: to send, to receive and to hash, not to write.
        None: a profile of before this was measured.
    load : float
    forced : bool
    """

    connections: int
    share: float
    low_share: float
    high_share: float
    s_per_gib: float | None = None
    low_s_per_gib: float | None = None
    high_s_per_gib: float | None = None
    load: float = 0.0
    forced: bool = False


@dataclass(frozen=True)
class Nic:
    """A network card, as far as the system tells."""

    name: str
    bytes_per_s: float | None = None
    mtu_bytes: int | None = None
    queues: int | None = None
    offloads: str | None = None


@dataclass(frozen=True)
class Parts:
    """All that was measured of a machine.

    Attributes
    ----------
    processors : float
        That a program there may use.
    costs : tuple of Cost
    rates : tuple of Rate
    nics : tuple of Nic
    pulls : tuple of PullUse
    """

    processors: float
    costs: tuple[Cost, ...] = ()
    rates: tuple[Rate, ...] = ()
    nics: tuple[Nic, ...] = ()
    pulls: tuple[PullUse, ...] = ()

    def __post_init__(self) -> None:
        for i, cost in enumerate(self.costs):
            _require_between(cost, f"costs[{i}]", "s_per_gib")
        for i, rate in enumerate(self.rates):
            _require_between(rate, f"rates[{i}]", "bytes_per_s")
        for i, use in enumerate(self.pulls):
            _require_between(use, f"pulls[{i}]", "share")
            if any(getattr(use, name) is not None for name in _names("s_per_gib")):
                _require_between(use, f"pulls[{i}]", "s_per_gib")

    @property
    def load(self) -> float:
        """The most that others kept busy meanwhile, a part of all processors."""
        rows: list[Cost | Rate | PullUse] = [*self.costs, *self.rates, *self.pulls]
        return max((row.load for row in rows), default=0.0)

    @property
    def fastest_nic(self) -> Nic | None:
        """The fastest network card that tells its rate."""
        known = [nic for nic in self.nics if nic.bytes_per_s is not None]
        return max(known, key=lambda nic: nic.bytes_per_s or 0.0, default=None)

    def cost(self, work: str, end: str) -> Cost | None:
        """Return what work takes at an end, or of both where they could not be told apart."""
        of_work = [each for each in self.costs if each.work == work]
        for wanted in (end, BOTH):
            if found := [each for each in of_work if each.end == wanted]:
                # What crosses two namespaces is nearer to a network than what loops back.
                return min(found, key=lambda each: each.over == LOOPBACK)
        return None

    def rate(self, of: str, at_once: int | None = None) -> Rate | None:
        """Return what something was seen to carry, of the largest blocks; with most at once."""
        found = [each for each in self.rates if each.of == of and at_once in (None, each.at_once)]
        return max(found, key=lambda each: (each.block_bytes or 0, each.at_once), default=None)

    def share_used(self, connections: int | None = None) -> float | None:
        """Return the part of its processors that a pull uses; None: no pull was tried.

        Between numbers of connections that were tried it grows with their logarithm, and beyond
        the most not at all; by default there are as many as were tried. Where more connections
        used less, all of these use what they did in the mean.
        """
        if not self.pulls:
            return None
        tried = sorted(self.pulls, key=lambda use: use.connections)
        shares = _never_falling([use.share for use in tried])
        fewest = tried[0].connections
        if connections is not None and connections < fewest:
            return shares[0] * connections / fewest
        return _between([use.connections for use in tried], shares, connections)

    def pull_s_per_gib(self, connections: int | None = None) -> float | None:
        """Return what a pull takes of processors, its agent on the same machine; None: not known.

        Seconds for each 2**30 bytes, without those to write them. Between numbers of connections
        that were tried as `share_used`.
        """
        tried = sorted(
            (use.connections, use.s_per_gib) for use in self.pulls if use.s_per_gib is not None
        )
        if not tried:
            return None
        return _between([n for n, _ in tried], [seconds for _, seconds in tried], connections)

    def at_worst(self) -> Parts:
        """Return parts that all are as slow as they were in any repeat."""
        return self._at("high_", "low_")

    def at_best(self) -> Parts:
        """Return parts that all are as fast as they were in any repeat."""
        return self._at("low_", "high_")

    def _at(self, costs: str, rates: str) -> Parts:
        return replace(
            self,
            costs=tuple(
                replace(
                    each,
                    **dict.fromkeys(_names("s_per_gib"), getattr(each, f"{costs}s_per_gib")),
                )
                for each in self.costs
            ),
            rates=tuple(
                replace(
                    each,
                    **dict.fromkeys(_names("bytes_per_s"), getattr(each, f"{rates}bytes_per_s")),
                )
                for each in self.rates
            ),
            pulls=tuple(
                replace(
                    each,
                    **dict.fromkeys(_names("share"), getattr(each, f"{rates}share")),
                    **dict.fromkeys(_names("s_per_gib"), getattr(each, f"{costs}s_per_gib")),
                )
                for each in self.pulls
            ),
        )


def _names(stem: str) -> tuple[str, str, str]:
    return f"low_{stem}", stem, f"high_{stem}"


def _between(tried: list[int], values: list[float], n: int | None) -> float:
    """Return the value at a number, by those of numbers that were tried; None: at the largest.

    Between two of them it changes with the logarithm, outside of them not at all.

    >>> [_between([1, 2, 8], [0.5, 0.6, 0.8], n) for n in (1, 2, 4, 100, None)]
    [0.5, 0.6, 0.7, 0.8, 0.8]
    """
    if n is None or n >= tried[-1]:
        return values[-1]
    i = bisect_right(tried, n)
    if i == 0:
        return values[0]
    part = math.log(n / tried[i - 1]) / math.log(tried[i] / tried[i - 1])
    return values[i - 1] + part * (values[i] - values[i - 1])


def _never_falling(values: list[float]) -> list[float]:
    """Return values that never fall, as near as can be: those that do are their mean.

    >>> _never_falling([0.5, 0.9, 0.7, 0.8, 1.0])
    [0.5, 0.8, 0.8, 0.8, 1.0]
    """
    runs: list[list[float]] = []
    for value in values:
        runs.append([value])
        while len(runs) > 1 and _mean(runs[-2]) > _mean(runs[-1]):
            last = runs.pop()
            runs[-1] += last
    return [_mean(run) for run in runs for _ in run]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _require_between(row: Cost | Rate | PullUse, place: str, stem: str) -> None:
    low, value, high = (getattr(row, name) for name in _names(stem))
    if None in (low, value, high):
        raise ProblemError(f"{place} must have all of {', '.join(_names(stem))}, or none; {AGAIN}")
    if not 0 < low <= value <= high < math.inf:
        raise ProblemError(
            f"{place}.{stem} must be > 0 and lie between low_{stem} and high_{stem}, got {value:g} "
            f"between {low:g} and {high:g}; {AGAIN}"
        )
