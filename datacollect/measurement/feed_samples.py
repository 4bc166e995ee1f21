"""Hops of feeds from what was measured between hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import ProblemError, nearest_hint
from datacollect.measurement.feed_plans import FeedHop
from datacollect.measurement.sample_store import DONE

if TYPE_CHECKING:
    import pandas as pd

# Of each number so many of the newest samples count, by their median.
NEWEST = 20


class MeasuredHop(NamedTuple):
    """A hop as measured, and from how many samples its bandwidth is."""

    hop: FeedHop
    n_samples: int


def measured_hop(frame: pd.DataFrame, begin: str, end: str) -> MeasuredHop:
    """Return a hop by the medians of the newest samples between two hosts.

    What tests by TCP brought is data already, without headers; UDP carries about as much.

    Parameters
    ----------
    frame : DataFrame
        As `datacollect.measurement.sample_store.read_parts` gives it.
    begin, end : str
        Names of the hosts.

    Raises
    ------
    ProblemError
        A host is not among them, or a bandwidth or a round trip was not measured.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [{"from": "S", "to": "D", "time_s": 0.0, "ended": "done", "loss": None,
    ...     "bandwidth_bytes_per_s": 2e6, "rtt_s": 0.05}]
    >>> measured_hop(pd.DataFrame(rows), "S", "D").hop.rtt_s
    0.05
    """
    known = sorted({*frame["from"], *frame["to"]})
    for option, name in (("--from", begin), ("--to", end)):
        if name not in known:
            raise ProblemError(
                f"{option}: there is no measurement of {name!r}"
                + (nearest_hint(name, known) or f"; known are {', '.join(known[:6])}")
            )
    rows = frame[(frame["from"] == begin) & (frame["to"] == end) & (frame["ended"] == DONE)]
    rows = rows.sort_values("time_s", kind="stable")

    def newest(column: str) -> pd.Series[float]:
        found: pd.Series[float] = rows[column].dropna().astype(float).tail(NEWEST)
        return found

    bandwidth = newest("bandwidth_bytes_per_s")
    bandwidth = bandwidth[bandwidth > 0]
    rtt = newest("rtt_s")
    for values, what, tool in ((bandwidth, "bandwidth", "tcp"), (rtt, "round trip", "ping")):
        if not len(values):
            raise ProblemError(
                f"no {what} was measured from {begin!r} to {end!r}; measure it: datacollect "
                f"measure {tool}"
            )
    loss = newest("loss")
    rate = float(bandwidth.median())
    return MeasuredHop(
        FeedHop(end, float(rtt.median()), rate, rate, float(loss.mean()) if len(loss) else None),
        len(bandwidth),
    )
