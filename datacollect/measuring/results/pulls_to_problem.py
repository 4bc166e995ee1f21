"""Rates that pulls have shown of hosts and links, in a problem that tests describe.

A pull sends over several links at once, which no test of one link does: what a host has carried it
can carry. That is a lower bound, never a limit, and written by the rule of floods. A link that no
test has measured is known by what pulls got over it, with the connections that they had. Of what is
older than bandwidths may be it is said how old it is.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.files.units import counted, format_rate
from datacollect.measurement.outcomes import listed
from datacollect.measuring.results.floods import DOWNLINK, UPLINK
from datacollect.measuring.results.host_limits import write_shown
from datacollect.methods.warnings import DAY_S, OLD_S, contradictions
from datacollect.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.samples_to_problem import ProblemOfSamples
    from datacollect.transfer.store.promises import KeptPulls

# A pull that gets more than a test by more than this part is told.
MORE = 1.25


class _Most(NamedTuple):
    """The most that any pull has shown, and how long ago, in seconds."""

    bytes_per_s: float
    age_s: float

    def __str__(self) -> str:
        text = format_rate(self.bytes_per_s)
        return text if self.age_s <= OLD_S else f"{text} {int(self.age_s / DAY_S)} days ago"


def with_pulls(
    found: ProblemOfSamples, kept: KeptPulls, folder: str, *, now_s: float | None = None
) -> ProblemOfSamples:
    """Return what tests say, and what pulls have shown besides.

    Parameters
    ----------
    found : ProblemOfSamples
    kept : KeptPulls
    folder : str
        Where they are kept, for what is said of them.
    now_s : float, optional
        Seconds since 1970; by default this host's clock.
    """
    now_s = time.time() if now_s is None else now_s
    hosts = {name: dict(host) for name, host in found.tree["hosts"].items()}
    links = [dict(link) for link in found.tree["links"]]
    most: dict[Pair, _Most] = {}
    for pull in kept.pulls:
        for row in pull.shown:
            pair, one = (row.tail, row.head), _Most(row.bytes_per_s, now_s - pull.ended_s)
            if pair not in most or one.bytes_per_s > most[pair].bytes_per_s:
                most[pair] = one
    others = sorted({name for pair in most for name in pair if name} - hosts.keys())
    most = {
        pair: one for pair, one in most.items() if not {name for name in pair if name} & {*others}
    }
    # They are found again below, beside what pulls have shown.
    before = contradictions(Problem.from_dict(found.tree))
    notes = [text for text in found.notes if text not in before]
    if kept.n_damaged:
        what = counted(kept.n_damaged, "line")
        notes.append(f"{folder}: {what} of pulls left out as incomplete")
    if not kept.pulls:
        notes.append(f"{folder}: no pull has ended there, so that nothing was shown")
    if others:
        notes.append(f"{folder}: left out, as no test names such hosts: {listed(others)}")
    said = _show_links(links, most, several=len(_periods(found.tree)))
    notes += [*_show_hosts(hosts, most, _highest(links)), *said]
    unknown = {
        pair: why
        for pair, why in found.unknown.items()
        if pair not in {(link["from"], link["to"]) for link in links}
    }
    tree = {**found.tree, "hosts": hosts, "links": links}
    notes += contradictions(Problem.from_dict(tree))
    return replace(found, tree=tree, unknown=unknown, notes=tuple(notes))


def _show_hosts(
    hosts: dict[str, dict[str, Any]], most: Mapping[Pair, _Most], links: Mapping[Pair, float]
) -> list[str]:
    """Write what hosts have carried, and tell what of it is news."""
    of_hosts = {
        (tail, UPLINK) if tail else (head, DOWNLINK): one
        for (tail, head), one in most.items()
        if not (tail and head)
    }
    rates = {of: one.bytes_per_s for of, one in of_hosts.items()}
    told = [
        f"{host} {'sent' if key == UPLINK else 'received'} {of_hosts[host, key]}"
        for host, key in write_shown(hosts, rates, links)
    ]
    return [f"pulls have shown of hosts: {listed(told)}"] if told else []


def _highest(links: list[dict[str, Any]]) -> dict[Pair, float]:
    """Return the bandwidth of each link, in the period in which it is highest."""
    rates = {(link["from"], link["to"]): link["bandwidth_bytes_per_s"] for link in links}
    return {pair: max(said) if isinstance(said, list) else said for pair, said in rates.items()}


def _show_links(
    links: list[dict[str, Any]], most: Mapping[Pair, _Most], *, several: int
) -> list[str]:
    """Add links that no test has measured; name those that carried more than tests say."""
    tested = _highest(links)
    new, more = [], []
    for (tail, head), one in sorted(most.items()):
        if not (tail and head):
            continue
        rate, said = one.bytes_per_s, tested.get((tail, head))
        if said is None:
            bandwidth = [rate] * several if several else rate
            links.append({"from": tail, "to": head, "bandwidth_bytes_per_s": bandwidth})
            new.append(f"{tail} -> {head} {one}")
        elif rate > MORE * said:
            more.append(f"{tail} -> {head} {one}")
    notes = []
    if new:
        notes.append(f"links that pulls alone have shown: {listed(new)}")
    if more:
        notes.append(
            f"pulls got more over some links than tests, with the connections that they had: "
            f"{listed(more)}; the tests count"
        )
    return notes


def _periods(tree: dict[str, Any]) -> list[str]:
    return list(tree.get("daily_periods", ()))
