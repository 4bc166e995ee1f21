"""Counts of a feed, how late its messages came, and the report that a receiver keeps of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError, ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

REPORT_FORMAT = "datacollect-feed-report/1"

# Bins of delays: each ends 2^(1/8), 9 %, after the one before; the first ends here.
FIRST_S, PER_DOUBLING = 1e-5, 8
N_BINS = 320  # the last begins after 120 days

QUANTILES = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "p999_s": 0.999}


@dataclass
class FeedCounts:
    """Counts of a feed's messages so far.

    Attributes
    ----------
    made, made_bytes : int
        By the source.
    sent : int
        Handed to the network; of messages that were sent twice once.
    received, received_bytes : int
        Written by the receiver.
    lost, lost_bytes : int
        Made, and never to come: all that was made is received or lost, in the end.
    filled : int
        Of those lost, how many have something else in their place in the receiver's file.
    late : int
        Received, by more than ``late_after`` later than the fastest.
    duplicates : int
        Came twice, and were written once.
    reconnections : int
        How often the connection was opened again.
    restarts : int
        How often the source, or its sender, has begun again; what it made in between nobody counts.
    """

    made: int = 0
    made_bytes: int = 0
    sent: int = 0
    received: int = 0
    received_bytes: int = 0
    lost: int = 0
    lost_bytes: int = 0
    filled: int = 0
    late: int = 0
    duplicates: int = 0
    reconnections: int = 0
    restarts: int = 0

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is missing.

        >>> FeedCounts(made=2, received=1, lost=1).is_whole
        False
        """
        return self.received == self.made and not self.lost

    def copy(self) -> FeedCounts:
        """Return the counts as they are now."""
        return replace(self)

    def to_dict(self) -> dict[str, int]:
        """Return them by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Any) -> FeedCounts:
        """Read what `to_dict` has made; those that are absent are 0.

        Raises
        ------
        ProblemError
            It is something else.
        """
        known = {each.name for each in fields(cls)}
        if not isinstance(tree, dict) or not tree.keys() <= known:
            raise ProblemError("malformed counts of a feed")
        if not all(type(value) is int and 0 <= value < 2**63 for value in tree.values()):
            raise ProblemError("malformed counts of a feed")
        return cls(**tree)


class FeedStopped(DatacollectError):
    """A feed has ended before its source: what could not be kept was lost.

    Attributes
    ----------
    counts : FeedCounts
        What had become of its messages by then.
    """

    exit_code = 1

    def __init__(self, message: str, counts: FeedCounts) -> None:
        super().__init__(message)
        self.counts = counts


@dataclass
class Delays:
    """Histogram of delays; quantiles are right to 9 %, the largest is exact.

    Examples
    --------
    >>> delays = Delays()
    >>> for ms in range(1, 101):
    ...     delays.add(ms / 1000)
    >>> 0.050 <= delays.quantile(0.5) < 0.055, delays.largest_s, delays.n
    (True, 0.1, 100)
    """

    bins: Counter[int] = field(default_factory=Counter)
    n: int = 0
    sum_s: float = 0.0
    least_s: float = math.inf
    largest_s: float = -math.inf

    def add(self, delay_s: float, n: int = 1) -> None:
        """Count a delay, `n` times; clocks that disagree may make it negative."""
        self.bins[_bin(delay_s)] += n
        self.n += n
        self.sum_s += delay_s * n
        self.least_s = min(self.least_s, delay_s)
        self.largest_s = max(self.largest_s, delay_s)

    def add_all(self, delays_s: NDArray[np.float64]) -> None:
        """Count delays, shape `(n,)`, as `add` does each."""
        if not len(delays_s):
            return
        import numpy as np

        shares = np.log2(np.maximum(delays_s, FIRST_S) / FIRST_S) * PER_DOUBLING
        numbers = np.minimum(np.ceil(shares.round(6)), N_BINS - 1).astype(np.int64)
        counts = np.bincount(numbers)
        for number in np.flatnonzero(counts).tolist():
            self.bins[number] += int(counts[number])
        self.n += len(delays_s)
        self.sum_s += float(delays_s.sum())
        self.least_s = min(self.least_s, float(delays_s.min()))
        self.largest_s = max(self.largest_s, float(delays_s.max()))

    @property
    def mean_s(self) -> float:
        """The mean; NaN of none."""
        return self.sum_s / self.n if self.n else math.nan

    def quantile(self, part: float) -> float:
        """Return the delay that a part of them do not exceed, to 9 %; NaN of none."""
        if not self.n:
            return math.nan
        below, wanted = 0, math.ceil(part * self.n)
        for number in sorted(self.bins):
            below += self.bins[number]
            if below >= wanted:
                return min(max(_end_s(number), self.least_s), self.largest_s)
        return self.largest_s

    def to_dict(self) -> dict[str, Any]:
        """Return percentiles, and the histogram as pairs: where a bin ends, and how many."""
        if not self.n:
            return {"n": 0, "histogram": []}
        return {
            "n": self.n,
            "mean_s": self.mean_s,
            "least_s": self.least_s,
            "largest_s": self.largest_s,
            **{name: self.quantile(part) for name, part in QUANTILES.items()},
            "histogram": [[_end_s(number), self.bins[number]] for number in sorted(self.bins)],
        }

    @classmethod
    def from_dict(cls, tree: Any) -> Delays:
        """Read what `to_dict` has made.

        Raises
        ------
        ProblemError
            It is something else.
        """
        try:
            if tree["n"] == 0:
                return cls()
            least_s, largest_s, mean_s = (
                float(tree[name]) for name in ("least_s", "largest_s", "mean_s")
            )
            pairs = [(_bin(float(end_s)), int(n)) for end_s, n in tree["histogram"]]
            n = int(tree["n"])
            fits = n == sum(n for _, n in pairs) and all(n > 0 for _, n in pairs)
            fits = fits and all(map(math.isfinite, (least_s, largest_s, mean_s)))
        except (LookupError, TypeError, ValueError, OverflowError):
            fits, pairs, n, least_s, largest_s, mean_s = False, [], 0, 0.0, 0.0, 0.0
        if not fits or len(pairs) > N_BINS or n >= 2**63:
            raise ProblemError(f"malformed delays of a feed: {shown(tree)}")
        found = cls(Counter(), n, mean_s * n, least_s, largest_s)
        for number, count in pairs:
            found.bins[number] += count
        return found


def _bin(delay_s: float) -> int:
    if delay_s <= FIRST_S:
        return 0
    # An end stays in its own bin, whatever its last digit.
    number = math.ceil(round(math.log2(delay_s / FIRST_S) * PER_DOUBLING, 6))
    return min(number, N_BINS - 1)


def _end_s(number: int) -> float:
    return FIRST_S * 2 ** (number / PER_DOUBLING)


@dataclass
class FeedReport:
    """Report that a receiver writes of a feed, beside its file: ``NAME.json``.

    Attributes
    ----------
    name, stream : str
        Of the feed, and of this one of all that had its name.
    user : str
        Public key of its sender.
    transport : str
    message_bytes : int
    rate_bytes_per_s : float
        As the sender has said.
    counts : FeedCounts
    delays : Delays
    clock : str
        How delays are measured.
    next : int
        The first message that is neither received nor lost.
    begun, ended : str or None
        By the receiver's clock; `ended` None: it goes on, or was broken off.
    more : dict
        What a transport, or a sender, has to say beside: JSON.
    """

    name: str
    stream: str
    user: str
    transport: str
    message_bytes: int
    rate_bytes_per_s: float
    counts: FeedCounts = field(default_factory=FeedCounts)
    delays: Delays = field(default_factory=Delays)
    clock: str = ""
    next: int = 0
    begun: str | None = None
    ended: str | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of the report's file."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        counts, delays, more = own.pop("counts"), own.pop("delays"), own.pop("more")
        return {
            "format": REPORT_FORMAT,
            **own,
            "counts": counts.to_dict(),
            "delay": delays.to_dict(),
            **more,
        }

    @classmethod
    def from_dict(cls, tree: Any) -> FeedReport:
        """Read such a tree.

        Raises
        ------
        ProblemError
            It is something else.
        """
        if not isinstance(tree, dict) or tree.get("format") != REPORT_FORMAT:
            raise ProblemError(f'format must be "{REPORT_FORMAT}"')
        own = {**tree}
        del own["format"]
        counts = FeedCounts.from_dict(own.pop("counts", None))
        delays = Delays.from_dict(own.pop("delay", None))
        given = {name: own.pop(name, None) for name in _TYPES}
        for name, kinds in _TYPES.items():
            if not isinstance(given[name], kinds) or isinstance(given[name], bool):
                raise ProblemError(f"malformed {name} of a feed's report: {shown(given[name])}")
        return cls(**_floats(given), counts=counts, delays=delays, more=own)


_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("name", "stream", "user", "transport", "clock"), (str,)),
    **dict.fromkeys(("message_bytes", "next"), (int,)),
    "rate_bytes_per_s": (int, float),
    **dict.fromkeys(("begun", "ended"), (str, type(None))),
}


def _floats(given: dict[str, Any]) -> dict[str, Any]:
    return given | {"rate_bytes_per_s": float(given["rate_bytes_per_s"])}
