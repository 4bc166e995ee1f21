"""What pulls have shown of hosts and links, in a problem that tests describe.

A pull sends over several links at once, which no test of one link does: what a host has carried it
can carry. That is a lower bound, never a limit. A link that no test has measured is known by what
pulls got over it, with the connections that they had.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datacollect.files.units import counted, format_rate
from datacollect.measurement.outcomes import listed
from datacollect.problem.host_limits import SHOWN

if TYPE_CHECKING:
    from datacollect.measuring.results.samples_to_problem import ProblemOfSamples
    from datacollect.transfer.store.promises import KeptPulls

# A pull that gets more than a test by more than this part is told.
MORE = 1.25


def with_pulls(found: ProblemOfSamples, kept: KeptPulls, folder: str) -> ProblemOfSamples:
    """Return what tests say, and what pulls have shown besides.

    Parameters
    ----------
    found : ProblemOfSamples
    kept : KeptPulls
    folder : str
        Where they are kept, for what is said of them.
    """
    hosts = {name: dict(host) for name, host in found.tree["hosts"].items()}
    links = [dict(link) for link in found.tree["links"]]
    most: dict[tuple[str, str], float] = {}
    for pull in kept.pulls:
        for row in pull.shown:
            pair = row.tail, row.head
            most[pair] = max(row.bytes_per_s, most.get(pair, 0.0))
    others = sorted({name for pair in most for name in pair if name} - hosts.keys())
    most = {
        pair: rate for pair, rate in most.items() if not {name for name in pair if name} & {*others}
    }
    notes = list(found.notes)
    if kept.n_damaged:
        what = counted(kept.n_damaged, "line")
        notes.append(f"{folder}: {what} of pulls left out, which no pull has written whole")
    if not kept.pulls:
        notes.append(f"{folder}: no pull has ended there, so that nothing was shown")
    if others:
        notes.append(f"{folder}: left out, as no test names such hosts: {listed(others)}")
    notes += _show_hosts(hosts, most)
    notes += _show_links(links, most, several=len(_periods(found.tree)))
    unknown = {
        pair: why
        for pair, why in found.unknown.items()
        if pair not in {(link["from"], link["to"]) for link in links}
    }
    tree = {**found.tree, "hosts": hosts, "links": links}
    return replace(found, tree=tree, unknown=unknown, notes=tuple(notes))


def _show_hosts(hosts: dict[str, dict[str, Any]], most: dict[tuple[str, str], float]) -> list[str]:
    """Write what hosts have carried, where that is more than what is written."""
    told = []
    for (tail, head), rate in sorted(most.items()):
        if tail and head:
            continue
        name, limit = (tail, "uplink_bytes_per_s") if tail else (head, "downlink_bytes_per_s")
        key = SHOWN[limit]
        if rate > hosts[name].get(key, 0.0):
            hosts[name][key] = rate
            told.append(f"{name} {'sent' if tail else 'received'} {format_rate(rate)}")
    return [f"pulls have shown of hosts: {listed(told)}"] if told else []


def _show_links(
    links: list[dict[str, Any]], most: dict[tuple[str, str], float], *, several: int
) -> list[str]:
    """Add links that no test has measured; name those that carried more than tests say."""
    tested = {(link["from"], link["to"]): link["bandwidth_bytes_per_s"] for link in links}
    new, more = [], []
    for (tail, head), rate in sorted(most.items()):
        if not (tail and head):
            continue
        said = tested.get((tail, head))
        if said is None:
            bandwidth = [rate] * several if several else rate
            links.append({"from": tail, "to": head, "bandwidth_bytes_per_s": bandwidth})
            new.append(f"{tail} -> {head} {format_rate(rate)}")
        elif rate > MORE * (max(said) if isinstance(said, list) else said):
            more.append(f"{tail} -> {head} {format_rate(rate)}")
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
