"""Tree of a problem file, from samples: bandwidths, and how far each is to be trusted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.documents import PROBLEM_FORMAT
from datacollect.measurement.estimates import DAY_S, estimate
from datacollect.measurement.series.intervals import bandwidth_interval
from datacollect.measurement.unlike import of_one_kind
from datacollect.problem.bandwidth_intervals import HIGH, LOW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair


def measured_problem(
    samples: pd.DataFrame,
    destination: str,
    backlog_bytes: Mapping[str, int],
    *,
    half_life_s: float = DAY_S,
    streams: int | None = None,
    shared: Sequence[Mapping[str, Any]] = (),
    daily: Sequence[str] | None = None,
    timezone: str | None = None,
    start: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the tree of a problem file from samples, which ``Problem.from_dict`` reads.

    Parameters
    ----------
    samples : DataFrame
        As `datacollect.measurement.estimates.estimate` takes them. Pairs without any have no link.
    destination : str
    backlog_bytes : mapping of str to int
        What hosts hold; they are in the problem, as are all hosts of the samples.
    half_life_s : float
        Bandwidths are means in which samples weigh half as much for each half-life by which they
        are older than the pair's newest; intervals are of these means.
    streams : int, optional
        Only tests with so many connections count, as for samples.
    shared : sequence of mappings
        Rows of ``[[shared]]``.
    daily, timezone, start : optional
        Hours at which periods of the day start, in which zone, and the clock time of 0 s: links
        then have a bandwidth for each period.
    seed : int
        Of the draws for intervals.

    Raises
    ------
    ProblemError
        The destination is no host that samples or backlogs name, hours lack a start, or samples are
        none.

    Examples
    --------
    >>> import pandas as pd
    >>> samples = pd.DataFrame({"from": "S", "to": "D", "time_s": [0.0, 60.0]})
    >>> tree = measured_problem(samples.assign(bandwidth_bytes_per_s=5.0), "D", {"S": 10})
    >>> tree["links"]
    [{'from': 'S', 'to': 'D', 'bandwidth_bytes_per_s': 5.0}]
    """
    if daily is not None and start is None:
        raise ProblemError("daily needs start, the clock time of 0 s; give it")
    alike = of_one_kind(samples, streams).samples
    found = estimate(
        samples, half_life_s=half_life_s, streams=streams, daily=daily, timezone=timezone
    )
    hosts = sorted({*found["from"], *found["to"], *backlog_bytes})
    if destination not in hosts:
        raise ProblemError(
            f"destination must be a host that samples name, got {destination!r}"
            + nearest_hint(destination, hosts)
        )
    rates: dict[Pair, list[float]] = {}
    for tail, head, rate in found[["from", "to", "bandwidth_bytes_per_s"]].itertuples(index=False):
        rates.setdefault((tail, head), []).append(float(rate))
    intervals = _intervals(alike, half_life_s, seed)
    tree: dict[str, Any] = {"format": PROBLEM_FORMAT, "destination": destination}
    if daily is not None:
        tree |= {"start": start, "timezone": timezone, "daily_periods": [*daily]}
    if len(found) and found["newest_s"].min() > 0:
        tree["measured_at"] = datetime.fromtimestamp(found["newest_s"].min(), UTC).isoformat()
    tree["hosts"] = {
        host: {"backlog_bytes": backlog_bytes[host]} if backlog_bytes.get(host) else {}
        for host in hosts
    }
    tree["links"] = [
        _link(pair, of_pair, intervals[pair], has_periods=daily is not None)
        for pair, of_pair in rates.items()
    ]
    return tree | ({"shared": [dict(wire) for wire in shared]} if shared else {})


def _intervals(
    samples: pd.DataFrame, half_life_s: float, seed: int
) -> dict[Pair, tuple[float, float] | None]:
    """Return the interval of each pair's mean by age."""
    found: dict[Pair, tuple[float, float] | None] = {}
    for (tail, head), of_pair in samples.groupby(["from", "to"]):
        time_s = of_pair["time_s"].to_numpy(dtype=float)
        weights = np.exp2(np.maximum((time_s - time_s.max()) / half_life_s, -1000.0))
        rates = of_pair["bandwidth_bytes_per_s"].to_numpy(dtype=float)
        found[str(tail), str(head)] = bandwidth_interval(rates, time_s, weights=weights, seed=seed)
    return found


def _link(
    pair: Pair, rates: list[float], interval: tuple[float, float] | None, *, has_periods: bool
) -> dict[str, Any]:
    link: dict[str, Any] = {"from": pair[0], "to": pair[1]}
    link["bandwidth_bytes_per_s"] = rates if has_periods else rates[0]
    if interval is not None:
        # Draws may all lie to one side of the mean, and periods differ from the mean of all.
        link |= {LOW: min(interval[0], *rates), HIGH: max(interval[1], *rates)}
    return link
