"""Changes between hosts: bandwidths and routes, in a table of measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.measurement.routes import is_of_one_path, read_route
from datacollect.measurement.series.changes import (
    WINDOW,
    confirm_changes,
    flag_changes,
    route_changes,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BandwidthChange:
    """A link whose bandwidth has changed.

    Attributes
    ----------
    tail, head : str
        The link is from tail to head.
    time_s : float
        Of the second sample in a row that deviates.
    before_bytes_per_s, after_bytes_per_s : float
        Medians of up to 60 samples before the two, and from the first of the two on.
    confirmed : bool or None
        Whether later samples confirm it so far; None where nothing installed can tell.
    """

    tail: str
    head: str
    time_s: float
    before_bytes_per_s: float
    after_bytes_per_s: float
    confirmed: bool | None


@dataclass(frozen=True)
class RouteChange:
    """A link whose route has changed, by the second trace that shows the new one, at time_s."""

    tail: str
    head: str
    time_s: float


def bandwidth_changes(samples: pd.DataFrame) -> list[BandwidthChange]:
    """Return the changes of links' bandwidths, by link and time.

    Parameters
    ----------
    samples : DataFrame
        Columns from, to, time_s and bandwidth_bytes_per_s, > 0; of each link tests of one kind.

    Examples
    --------
    >>> import pandas as pd
    >>> rates = [9.0, 10.0, 11.0] * 10 + [5.0] * 9
    >>> samples = pd.DataFrame({"from": "S", "to": "D", "time_s": [60.0 * i for i in range(39)]})
    >>> [found] = bandwidth_changes(samples.assign(bandwidth_bytes_per_s=rates))
    >>> found.time_s / 60, found.before_bytes_per_s, found.after_bytes_per_s, found.confirmed
    (31.0, 10.0, 5.0, True)
    """
    found = []
    for (tail, head), rows in samples.sort_values("time_s").groupby(["from", "to"]):
        rate, time_s = (
            rows[column].to_numpy(dtype=float) for column in ("bandwidth_bytes_per_s", "time_s")
        )
        flagged = flag_changes(rate)
        confirmed = confirm_changes(rate, flagged)
        for number, at in enumerate(flagged):
            before = np.median(rate[max(at - 1 - WINDOW, 0) : at - 1])
            after = np.median(rate[at - 1 : at - 1 + WINDOW])
            found.append(
                BandwidthChange(
                    *(str(tail), str(head), float(time_s[at])),
                    *(float(before), float(after)),
                    None if confirmed is None else confirmed[number],
                )
            )
    return found


def changed_routes(table: pd.DataFrame) -> list[RouteChange]:
    """Return the changes of routes in a table of measurements, by link and time.

    Traces that mix several paths tell of none.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"from": "S", "to": "D", "time_s": [0.0, 1.0, 2.0, 3.0]})
    >>> old, new = '["8.8.8.8"]', '["9.9.9.9"]'
    >>> changed_routes(table.assign(routers=[old, old, new, new]))
    [RouteChange(tail='S', head='D', time_s=3.0)]
    """
    traces = table[table["routers"].notna()].sort_values("time_s")
    traces = traces.assign(route=traces["routers"].map(read_route))
    traces = traces[traces["route"].map(is_of_one_path).astype(bool)]
    return [
        RouteChange(str(tail), str(head), float(rows["time_s"].iloc[at]))
        for (tail, head), rows in traces.groupby(["from", "to"])
        for at in route_changes(rows["route"])
    ]
