"""Holds a pull to its word: what its links and hosts carried beside what the plan counted on."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from datacollect.files.units import format_rate
from datacollect.transfer.store.promises import ShownRate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.numbers.arrays import BoolArray, FloatArray
    from datacollect.transfer.store.history import History

# A host or a link was seen to carry the median over so long a time.
SHOWN_S = 5.0

# Who got less than this part of what was planned is why a pull takes longer; who got less beside
# another than this part of what it gets alone shares a wire with it.
LESS = 0.85

# Of what is seldom more than this part of its own mean, nothing flows to speak of.
IDLE = 0.05

# So many reasons are told.
MOST_TOLD = 4


def shown_by(history: History, destination: str) -> tuple[ShownRate, ...]:
    """Return what links and hosts were seen to carry; nothing of a start that was too short."""
    if len(history.times_s) < 2 or history.times_s[-1] - history.times_s[0] < SHOWN_S:
        return ()
    found = []
    of_links, of_hosts = _rates(history.rates(), destination)
    for (tail, head), rate in [*of_links.items(), *of_hosts.items()]:
        most = _highest_median(np.array(history.times_s), rate)
        if most > 0:
            found.append(ShownRate(tail, head, most))
    return tuple(sorted(found, key=lambda each: (each.tail, each.head)))


def _rates(
    routes: Mapping[tuple[str, ...], FloatArray], destination: str
) -> tuple[dict[tuple[str, str], FloatArray], dict[tuple[str, str], FloatArray]]:
    """Add routes' rates up by links, and by hosts that send (``(host, "")``) or receive."""
    n = max((len(rate) for rate in routes.values()), default=0)
    of_links: dict[tuple[str, str], FloatArray] = defaultdict(lambda: np.zeros(n))
    of_hosts: dict[tuple[str, str], FloatArray] = defaultdict(lambda: np.zeros(n))
    for hosts, rate in routes.items():
        for tail, head in pairwise((*hosts, destination)):
            of_links[tail, head] = of_links[tail, head] + rate
            of_hosts[tail, ""] = of_hosts[tail, ""] + rate
            of_hosts["", head] = of_hosts["", head] + rate
    return dict(of_links), dict(of_hosts)


def _highest_median(times_s: FloatArray, rate: FloatArray) -> float:
    """Return the highest median over stretches of `SHOWN_S` or a little more."""
    last = np.searchsorted(times_s, times_s[:-1] + SHOWN_S - 1e-9)
    return max(
        (
            float(np.median(rate[first:end]))
            for first, end in enumerate(last.tolist())
            if end < len(times_s)
        ),
        default=0.0,
    )


def why_late(history: History, destination: str) -> tuple[str, ...]:
    """Say why a start took longer than its plan, by what was seen of its hosts and links.

    A host that was to use several links at once, and got less over all of them, is named before its
    links; two links that got less beside each other than alone share a wire; what is left of slow
    links is others' traffic, or a test that found more. Nothing where nothing was planned. What was
    promised anew, as more sources were ready, is held against what came from then on.
    """
    history = history.since_promise()
    if not history.planned or len(history.times_s) < 3:
        return ()
    planned = _planned(history, destination)
    of_links, of_hosts = _rates(history.rates(), destination)
    spans_s = np.diff(np.array(history.times_s))
    slow = {
        link: (_while_busy(of_links[link], spans_s), rate)
        for link, rate in planned.items()
        if link in of_links and _while_busy(of_links[link], spans_s) < LESS * rate
    }
    found: list[str] = []
    explained: set[tuple[str, str]] = set()
    for host, end, got, wanted in _narrow_hosts(planned, slow, of_links, of_hosts, spans_s):
        links = {link for link in planned if link[end] == host}
        if links & slow.keys() <= explained:
            continue
        does = ("sent", "received")[end]
        found.append(
            f"{host} {does} {format_rate(got)} over all its links, {format_rate(wanted)} planned: "
            "the limit is what they share, or its own"
        )
        explained = _along_routes(explained | links, history, destination)
    slow = {link: rates for link, rates in slow.items() if link not in explained}
    for first, second in _beside_each_other(slow, of_links):
        if first in explained:
            continue
        found.append(
            f"{_named(first)} and {_named(second)} share a wire: each got less beside the other "
            "than alone"
        )
        explained |= {first, second}
    for link, (got, wanted) in sorted(slow.items(), key=lambda item: item[1][0] / item[1][1]):
        if link not in explained:
            found.append(
                f"{_named(link)} carried {format_rate(got)}, {format_rate(wanted)} planned: "
                "others' traffic, or a test that found more"
            )
    return tuple([*found, *_troubles(history)][:MOST_TOLD])


def _narrow_hosts(
    planned: Mapping[tuple[str, str], float],
    slow: Mapping[tuple[str, str], object],
    of_links: Mapping[tuple[str, str], FloatArray],
    rates: Mapping[tuple[str, str], FloatArray],
    spans_s: FloatArray,
) -> list[tuple[str, int, float, float]]:
    """Return hosts of several links that got less over all of them: name, end, got, planned.

    While all of them carry something: what one link still brings when others are through is no
    limit of the host. Those with most slow links first: with those of several hosts it is the one
    that they lead to.
    """
    found = []
    for (sends, receives), rate in rates.items():
        host, end = (sends, 0) if sends else (receives, 1)
        links = [link for link in planned if link[end] == host]
        wanted = sum(planned[link] for link in links)
        got = _while_busy(rate, spans_s, [of_links[link] for link in links if link in of_links])
        n_slow = sum(link in slow for link in links)
        if len(links) > 1 and n_slow and got < LESS * wanted:
            found.append((-n_slow, end, host, got, wanted))
    return [(host, end, got, wanted) for _, end, host, got, wanted in sorted(found)]


def _along_routes(
    explained: set[tuple[str, str]], history: History, destination: str
) -> set[tuple[str, str]]:
    """Add the links all of whose routes pass one that is explained: they get no more than it."""
    routes = [set(pairwise((*route.hosts, destination))) for route in history.planned]
    links = {link for route in routes for link in route}
    return explained | {
        link for link in links if all(route & explained for route in routes if link in route)
    }


def _planned(history: History, destination: str) -> dict[tuple[str, str], float]:
    """Return the rate that the plan counted on, of each link."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for route in history.planned:
        for link in pairwise((*route.hosts, destination)):
            found[link] += route.n_bytes / (route.finish_s - route.start_s)
    return dict(found)


def _while_busy(
    rate: FloatArray, spans_s: FloatArray, together: Sequence[FloatArray] = ()
) -> float:
    """Return the mean rate from the first byte to the last, of several that are added up there.

    Of those that carry nothing, or not at the same time, nothing is asked.
    """
    busy = np.flatnonzero(rate > 0)
    if not len(busy):
        return 0.0
    times = [found for each in together if len(found := np.flatnonzero(each > 0))]
    first = max((found[0] for found in times), default=busy[0])
    last = min((found[-1] for found in times), default=busy[-1])
    part = slice(first, last + 1) if first <= last else slice(busy[0], busy[-1] + 1)
    return float((rate[part] * spans_s[part]).sum() / spans_s[part].sum())


def _beside_each_other(
    slow: Mapping[tuple[str, str], object], rates: Mapping[tuple[str, str], FloatArray]
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return pairs of links of which each gets less while the other carries something."""
    return [
        (first, second)
        for first in sorted(slow)
        for second in sorted(slow)
        if first < second
        and not {*first} & {*second} - {first[1]}
        and (
            _is_slower_beside(rates[first], rates[second])
            or _is_slower_beside(rates[second], rates[first])
        )
    ]


def _is_slower_beside(rate: FloatArray, other: FloatArray) -> bool:
    active: BoolArray = rate > IDLE * rate.mean()
    beside: BoolArray = active & (other > IDLE * other.mean())
    alone: BoolArray = active & ~beside
    if beside.sum() < 3 or alone.sum() < 3:
        return False
    return float(np.median(rate[beside])) < LESS * float(np.median(rate[alone]))


def _named(link: tuple[str, str]) -> str:
    return " → ".join(link)


def _troubles(history: History) -> list[str]:
    """Count what went wrong on the way."""
    counts: dict[str, int] = defaultdict(int)
    for _, what in history.troubles:
        counts[what] += 1
    return [f"{what}, {n} times" if n > 1 else what for what, n in sorted(counts.items())]


def is_late(took_s: float, promised_s: float | None, p90_s: float | None) -> bool:
    """Return whether a start took longer than promised: than p90, else than a seventh more.

    >>> is_late(12.0, 10.0, 13.0), is_late(12.0, 10.0, None), is_late(12.0, None, None)
    (False, True, False)
    """
    most_s = p90_s if p90_s is not None else promised_s and promised_s / LESS
    return took_s > (math.inf if most_s is None else most_s)
