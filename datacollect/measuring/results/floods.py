"""Floods in a table of measurements: what several links of one host got at once, and alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from datacollect.files.units import format_rate
from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_store import DONE, settings_of
from datacollect.measuring.operator.tcp_tests import TCP
from datacollect.measuring.operator.tools import FLOOD
from datacollect.measuring.results.changed_links import changed_routes
from datacollect.problem.host_limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair

UPLINK, DOWNLINK = LIMITS
# Where all together got less than this part of what each got alone, they share what limits them:
# links that share nothing keep 0.9 and more of their sum, links that do about three quarters and
# less.
LIMITED = 0.85
# What a host was shown to do lasts so long; a little less, since tests end between two looks.
LASTING_S = 4.8
# Of the longest test of a flood: who is done before was not beside the others for all of it.
AT_ONCE = 0.8


@dataclass(frozen=True)
class SeenFlood:
    """A flood: several links of one host at once.

    Attributes
    ----------
    host : str
    key : str
        ``uplink_bytes_per_s`` where the host sends, ``downlink_bytes_per_s`` where it receives.
    links : frozenset of (str, str)
        All that were tested.
    rates_bytes_per_s : mapping of (str, str) to float
        Of those whose test was done.
    alone_bytes_per_s : mapping of (str, str) to float
        Of these what each got alone, where it was tested.
    time_s : float
    is_whole : bool
        Whether all were done, and for about as long. What is not says nothing of limits: who
        failed may have sent.
    duration_s : float
        Of the shortest test, where all lasted about as long; 0 where not, or where rows do not say.
    median_bytes_per_s : float or None
        What all got together for half of the time at least; None where rows do not say.
    """

    host: str
    key: str
    links: frozenset[Pair]
    rates_bytes_per_s: Mapping[Pair, float]
    alone_bytes_per_s: Mapping[Pair, float] = field(default_factory=dict)
    time_s: float = 0.0
    is_whole: bool = True
    duration_s: float = 0.0
    median_bytes_per_s: float | None = None

    @property
    def shown_bytes_per_s(self) -> float:
        """Return what all got together, as a lower bound of what they can."""
        together = self.together_bytes_per_s
        return together if self.median_bytes_per_s is None else self.median_bytes_per_s

    @property
    def together_bytes_per_s(self) -> float:
        """Return what all got at once."""
        return sum(self.rates_bytes_per_s.values())

    @property
    def sum_alone_bytes_per_s(self) -> float | None:
        """The sum of what each got alone; None where some were not tested alone."""
        if self.alone_bytes_per_s.keys() != self.rates_bytes_per_s.keys():
            return None
        return sum(self.alone_bytes_per_s.values())

    @property
    def line_bytes_per_s(self) -> float:
        """Say what the line that limits them carries: the median of all tests that have filled it.

        A link that fills it alone has measured it, too. Were the flood believed alone, two tests of
        one line that differ by chance would make a plan out of the difference.
        """
        together = self.together_bytes_per_s
        alone = self.alone_bytes_per_s.values()
        return median([together, *(rate for rate in alone if rate >= LIMITED * together)])

    def falls_short_of(self, expected_bytes_per_s: float | None) -> bool:
        """Return whether less came than was to be expected of links that share nothing."""
        return (
            self.is_whole
            and expected_bytes_per_s is not None
            and self.together_bytes_per_s < LIMITED * expected_bytes_per_s
        )

    @property
    def is_limited(self) -> bool:
        """Return whether all got less at once than each alone."""
        return self.falls_short_of(self.sum_alone_bytes_per_s)


def floods_of(table: pd.DataFrame, links: Mapping[Pair, float]) -> list[SeenFlood]:
    """Return the newest flood of each set of links, the oldest first.

    Parameters
    ----------
    table : DataFrame
        Tests that count, as `datacollect.measurement.sample_store.read_parts` reads them.
    links : mapping of (str, str) to float
        Bandwidths, which stand for tests alone where none had the flood's number of connections.

    Examples
    --------
    >>> import json
    >>> import pandas as pd
    >>> from datacollect.measurement.sample_store import COLUMNS
    >>> said = json.dumps({"host": "S", "flood": "1"})
    >>> row = {"from": "S", "time_s": 0.0, "tool": "flood", "ended": "done", "settings": said}
    >>> rows = [{**row, "to": to, "bandwidth_bytes_per_s": 3.0} for to in "DE"]
    >>> table = pd.DataFrame(rows, columns=list(COLUMNS))
    >>> (flood,) = floods_of(table, {("S", "D"): 5.0, ("S", "E"): 5.0})
    >>> flood.together_bytes_per_s, flood.sum_alone_bytes_per_s, flood.is_limited
    (6.0, 10.0, True)
    """
    done = table[(table["ended"] == DONE) & (table["bandwidth_bytes_per_s"] > 0)]
    alone = done[done["tool"] == TCP.name].groupby(["from", "to", "streams"])
    known = alone["bandwidth_bytes_per_s"].mean().to_dict()
    by_flood: dict[tuple[str, str, str], list[Mapping[Any, Any]]] = {}
    rows = table[table["tool"] == FLOOD].sort_values("time_s", kind="stable")
    for row in rows.to_dict("records"):
        settings = settings_of(row["settings"])
        host = settings.get("host")
        if host in (row["from"], row["to"]):
            key = UPLINK if host == row["from"] else DOWNLINK
            by_flood.setdefault((host, key, str(settings.get("flood"))), []).append(row)
    newest: dict[tuple[str, str, frozenset[Pair]], SeenFlood] = {}
    for (host, key, _), of_flood in by_flood.items():
        flood = _seen(host, key, of_flood, known, links)
        newest.pop((host, key, flood.links), None)
        newest[host, key, flood.links] = flood
    return list(newest.values())


def _seen(
    host: str,
    key: str,
    rows: list[Mapping[Any, Any]],
    known: Mapping[Any, float],
    links: Mapping[Pair, float],
) -> SeenFlood:
    done = [row for row in rows if row["ended"] == DONE and row["bandwidth_bytes_per_s"] > 0]
    alone = {
        (row["from"], row["to"]): rate
        for row in done
        if (rate := _alone(row, known, links)) is not None
    }
    lasted = [float(row["duration_s"]) for row in done if row["duration_s"] > 0]
    at_once = not lasted or min(lasted) >= AT_ONCE * max(lasted)
    # Of others some rows were left out.
    has_all = len(done) == len(rows) and not any(row["concurrency"] >= len(rows) for row in rows)
    return SeenFlood(
        host,
        key,
        frozenset((row["from"], row["to"]) for row in rows),
        {(row["from"], row["to"]): float(row["bandwidth_bytes_per_s"]) for row in done},
        alone,
        float(rows[0]["time_s"]),
        has_all and len(done) > 1 and at_once,
        min(lasted) if at_once and len(lasted) == len(done) > 0 else 0.0,
        _median_of(rows[0]),
    )


def _median_of(row: Mapping[Any, Any]) -> float | None:
    """Return what the rows of a flood say that all got together."""
    said = settings_of(row["settings"]).get("together_bytes_per_s")
    if isinstance(said, bool) or not isinstance(said, (int, float)):
        return None
    return float(said) if 0 < said < math.inf else None


def _alone(
    row: Mapping[Any, Any], known: Mapping[Any, float], links: Mapping[Pair, float]
) -> float | None:
    pair = (row["from"], row["to"])
    return known.get((*pair, row["streams"]), links.get(pair))


def that_count(
    floods: Iterable[SeenFlood], table: pd.DataFrame
) -> tuple[list[SeenFlood], list[str]]:
    """Return floods of routes as they are now, and what is to be known of the others.

    Parameters
    ----------
    floods : iterable of SeenFlood
    table : DataFrame
        With the traces of routes, if there are any.
    """
    changed_s: dict[Pair, float] = {}
    for change in changed_routes(table):
        changed_s[change.tail, change.head] = change.time_s  # by time: the last one
    counting, notes = [], []
    for flood in floods:
        changed = [pair for pair in sorted(flood.links) if flood.time_s < changed_s.get(pair, 0.0)]
        if changed:
            routes = listed([f"{tail} → {head}" for tail, head in changed])
            notes.append(
                f"left out, a flood of {flood.host} that is older than the route {routes}: measure "
                "it again"
            )
        else:
            counting.append(flood)
        if not flood.is_whole:
            notes.append(_why_not_whole(flood))
    return counting, notes


def _why_not_whole(flood: SeenFlood) -> str:
    lost = [pair for pair in sorted(flood.links) if pair not in flood.rates_bytes_per_s]
    begun = f"the flood of {flood.host} over {_named(sorted(flood.links))} shows no limit"
    if lost:
        return f"{begun}: {_named(lost)} failed; measure it again"
    if not flood.rates_bytes_per_s:
        return f"{begun}: no data arrived; measure it again"
    return (
        f"{begun}: not all of its tests count, or some had sent all their bytes long before the "
        "others; measure it again, with more --bytes"
    )


def _named(links: list[Pair]) -> str:
    return listed([f"{tail} → {head}" for tail, head in links], 6)


def shown_by(
    floods: Iterable[SeenFlood], used: Set[Pair] | None = None
) -> dict[tuple[str, str], float]:
    """Return the most that hosts were shown to send, or receive, for 5 s or more.

    By host and the key of the limit that it is a lower bound of.

    Parameters
    ----------
    floods : iterable of SeenFlood
    used : set of (str, str), optional
        Over these links alone: what a host does over others it may not do over these.
    """
    shown: dict[tuple[str, str], float] = {}
    for flood in floods:
        rates = flood.rates_bytes_per_s
        over = [rate for pair, rate in rates.items() if used is None or pair in used]
        if flood.duration_s >= LASTING_S and len(over) > 1:
            of = flood.host, flood.key
            rate = flood.shown_bytes_per_s * sum(over) / flood.together_bytes_per_s
            shown[of] = max(shown.get(of, 0.0), rate)
    return shown


def said_of(flood: SeenFlood) -> str:
    """Say what a flood has measured, without what follows of it."""
    together, n = format_rate(flood.together_bytes_per_s), len(flood.rates_bytes_per_s)
    does = f"give {flood.host} {together}"
    if flood.key == UPLINK:
        does = f"get {together} from {flood.host}"
    text = f"{n} hosts at once {does}"
    alone = flood.sum_alone_bytes_per_s
    return text if alone is None else f"{text}; alone they add up to {format_rate(alone)}"
