"""Limits of hosts in problem files, from floods: what each can send, or receive, in all.

Floods prove a limit of a host in two ways. All of its links were flooded, and got less than each
alone: whatever limits them, the host does no more. Or two of its links got less than each alone,
and more of its links, at once, no more than the two: then it is the host's line that binds. What
limits some of its links, and is neither, is a wire that these share.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from datacollect.files.units import counted, format_rate
from datacollect.measuring.results.floods import (
    LIMITED,
    UPLINK,
    SeenFlood,
    floods_of,
    said_of,
    shown_by,
    that_count,
)
from datacollect.measuring.results.shared_links import FoundWire, grouped
from datacollect.methods.leaning.flood_tests import MOST_AT_ONCE
from datacollect.problem.host_limits import SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair

# What was shown contradicts a limit that it exceeds by more than this part: tests of one line
# differ by less.
DIFFERS = 0.1


@dataclass(frozen=True)
class HostLimit:
    """Limit of a host in one direction that floods show.

    Attributes
    ----------
    flood : SeenFlood
        Over as many links as were flooded.
    n_links : int
        How many links of the host are known in this direction.
    is_proven : bool
        Whether it is the host's limit, not that of some of its links.
    is_explained : bool
        Whether wires that some of the links share are all that limits them.
    """

    flood: SeenFlood
    n_links: int
    is_proven: bool
    is_explained: bool = False

    def __str__(self) -> str:
        """Say what was measured, and what follows."""
        flood, said = self.flood, said_of(self.flood)
        wire = "uplink" if flood.key == UPLINK else "downlink"
        if self.is_proven:
            taken = format_rate(flood.line_bytes_per_s)
            return f"{said}: the {wire} of {flood.host} is taken as {taken}"
        if flood.sum_alone_bytes_per_s is None:
            return (
                f"{said}; whether that is the limit of its {wire} is not known: test each link "
                f"alone by tcp, too"
            )
        if not flood.is_limited or self.is_explained:
            return f"{said}: the limit of its {wire} was not reached: it is higher"
        more = self.n_links - len(flood.links)
        return (
            f"{said}: they share a wire, and whether it is the {wire} of {flood.host} is not "
            f"known, which has {counted(more, 'more link')}"
        )


@dataclass(frozen=True)
class SeenByFloods:
    """Findings of floods on all hosts.

    Attributes
    ----------
    floods : tuple of SeenFlood
        Those that count, the oldest first.
    limits : tuple of HostLimit
        Of each host and direction what follows.
    wires : tuple of FoundWire
        Which links of a host share a wire that is not its own.
    shown_bytes_per_s : mapping of (str, str) to float
        By host and key of the limit the most that was shown.
    notes : tuple of str
    """

    floods: tuple[SeenFlood, ...] = ()
    limits: tuple[HostLimit, ...] = ()
    wires: tuple[FoundWire, ...] = ()
    shown_bytes_per_s: Mapping[tuple[str, str], float] | None = None
    notes: tuple[str, ...] = ()


def seen_by_floods(table: pd.DataFrame, links: Mapping[Pair, float]) -> SeenByFloods:
    """Return what the floods of a table say.

    Parameters
    ----------
    table : DataFrame
        Tests that count, as `datacollect.measurement.sample_store.read_parts` reads them.
    links : mapping of (str, str) to float
        Bandwidths of the problem, which stand for tests alone where none had the flood's number of
        connections.
    """
    found = floods_of(table, links)
    if not found:
        return SeenByFloods()
    floods, notes = that_count(found, table)
    of_hosts: dict[tuple[str, str], list[SeenFlood]] = defaultdict(list)
    for flood in floods:
        of_hosts[flood.host, flood.key].append(flood)
    limits, wires = [], []
    for (host, key), of_host in sorted(of_hosts.items()):
        known = frozenset(pair for pair in links if pair[key != UPLINK] == host)
        limit, shared = judged(of_host, known)
        wires += shared
        if limit is not None:
            limits.append(limit)
    notes += map(str, limits)
    return SeenByFloods(
        tuple(floods), tuple(limits), tuple(wires), shown_by(floods), tuple(dict.fromkeys(notes))
    )


def judged(
    floods: Sequence[SeenFlood], known: Set[Pair]
) -> tuple[HostLimit | None, list[FoundWire]]:
    """Return the limit of a host in one direction, and the wires that some of its links share.

    Parameters
    ----------
    floods : sequence of SeenFlood
        Of the host in this direction, the oldest first.
    known : set of (str, str)
        Its links in this direction.
    """
    whole = [flood for flood in floods if flood.is_whole]
    if not whole:
        return None, []
    pairs = [flood for flood in whole if len(flood.links) == 2]
    wires = shared_wires(pairs)
    # Most links last, the newest of as many: that is how they are in.
    by_size = sorted(_not_outdone(whole), key=lambda flood: len(flood.links))
    proven = [flood for flood in by_size if _proves(flood, pairs, wires, known)]
    if proven:
        limit = HostLimit(proven[-1], len(known), True)
        most = limit.flood.line_bytes_per_s
        return limit, [wire for wire in wires if wire.bandwidth_bytes_per_s < LIMITED * most]
    told = by_size[-1]
    of_more = len(told.links) > 2
    falls_short = told.falls_short_of(expected_bytes_per_s(told, wires))
    limit = HostLimit(told, len(known), False, of_more and not falls_short)
    if of_more and falls_short:
        wires.append(FoundWire(tuple(sorted(told.links)), told.together_bytes_per_s, 1, 1))
    return limit, wires


def shared_wires(pairs: Iterable[SeenFlood]) -> list[FoundWire]:
    """Return the wires that links share by floods of two of them: who shares with one, with all."""
    tested = [flood for flood in pairs if flood.sum_alone_bytes_per_s is not None]
    limited = [flood for flood in tested if flood.is_limited]
    found = []
    for links in grouped((), (flood.links for flood in limited)):
        of_wire = [flood for flood in limited if flood.links <= links]
        bandwidth = median(flood.line_bytes_per_s for flood in of_wire)
        n_tests = sum(flood.links <= links for flood in tested)
        found.append(FoundWire(tuple(sorted(links)), bandwidth, len(of_wire), n_tests))
    return found


def expected_bytes_per_s(flood: SeenFlood, wires: Sequence[FoundWire]) -> float | None:
    """Return what links of a flood get at once if nothing limits them but these wires."""
    if flood.sum_alone_bytes_per_s is None:
        return None
    return carried_at_most(flood.alone_bytes_per_s, wires)


def carried_at_most(alone: Mapping[Pair, float], wires: Sequence[FoundWire]) -> float:
    """Return what links get at once by what each gets alone, and what wires carry."""
    expected, left = 0.0, {*alone}
    for wire in wires:
        on_wire = left & {*wire.links}
        expected += min(wire.bandwidth_bytes_per_s, sum(alone[pair] for pair in on_wire))
        left -= on_wire
    return expected + sum(alone[pair] for pair in left)


def with_links_that_may_share(
    wire: FoundWire, floods: Sequence[SeenFlood], links: Mapping[Pair, float]
) -> FoundWire:
    """Return a wire with other links of hosts that send over it, unless they were told apart.

    Whoever shares a way out of its site with another host may have no other one: a plan that goes
    round the wire over a third host would promise what nobody has seen. A link is apart where it
    carries more than the wire, alone or beside links of it.

    Parameters
    ----------
    wire : FoundWire
    floods : sequence of SeenFlood
    links : mapping of (str, str) to float
        Bandwidths.

    Examples
    --------
    >>> wire = FoundWire((("R", "D"), ("S", "D")), 5.0, 1, 1)
    >>> found = with_links_that_may_share(wire, [], {("S", "K"): 5.0, ("S", "L"): 9.0})
    >>> found.links
    (('R', 'D'), ('S', 'D'), ('S', 'K'))
    """
    members, more = {*wire.links}, (1 + DIFFERS) * wire.bandwidth_bytes_per_s
    tails = {tail for tail, _ in members}

    def is_apart(link: Pair) -> bool:
        if links[link] > more:
            return True
        for flood in floods:
            rates = flood.rates_bytes_per_s
            beside = [pair for pair in rates if pair in members]
            at_once = rates.get(link, 0.0) + sum(rates[pair] for pair in beside)
            if flood.is_whole and link in rates and beside and at_once > more:
                return True
        return False

    others = {
        link
        for link in links
        if link not in members and link[0] in tails and link[1] not in tails and not is_apart(link)
    }
    return replace(wire, links=tuple(sorted(members | others)))


def _not_outdone(floods: Sequence[SeenFlood]) -> list[SeenFlood]:
    """Return the floods that no newer one has outdone: the host can do more by now."""
    found: list[SeenFlood] = []
    for flood in floods:
        most = flood.together_bytes_per_s
        found = [old for old in found if old.together_bytes_per_s >= LIMITED * most]
        found.append(flood)
    return found


def _proves(
    flood: SeenFlood, pairs: Iterable[SeenFlood], wires: Sequence[FoundWire], known: Set[Pair]
) -> bool:
    """Return whether a flood shows that its host does no more."""
    if not flood.is_limited:
        return False
    if any(two.is_limited and gets_no_more(flood, two) for two in pairs):
        return True
    has_all = known <= flood.links or len(flood.links) >= MOST_AT_ONCE
    if len(flood.links) == 2:
        return has_all
    return has_all and flood.falls_short_of(expected_bytes_per_s(flood, wires))


def gets_no_more(flood: SeenFlood, two: SeenFlood) -> bool:
    """Return whether a flood of more links gets no more than one of two of them.

    Their line is full.
    """
    together = two.together_bytes_per_s
    more = sum(rate for pair, rate in flood.alone_bytes_per_s.items() if pair not in two.links)
    return (
        two.links < flood.links
        and LIMITED * flood.together_bytes_per_s <= together
        and flood.falls_short_of(together + more)
    )


def with_host_limits(
    tree: dict[str, Any], seen: SeenByFloods, links: Mapping[Pair, float]
) -> dict[str, Any]:
    """Return the tree of a problem file whose hosts have the limits that are proven, and rates.

    What was shown of a host is there where it is more than one of its links carries, and where it
    contradicts the limit.
    """
    hosts = {name: dict(host) for name, host in tree["hosts"].items()}
    proven = {
        (limit.flood.host, limit.flood.key): limit.flood.line_bytes_per_s
        for limit in seen.limits
        if limit.is_proven
    }
    for (host, key), rate in proven.items():
        if host in hosts:
            hosts[host][key] = rate
    shown = seen.shown_bytes_per_s or {}
    write_shown(hosts, {of: shown.get(of, 0.0) for of in {*shown, *proven}}, links)
    return tree | {"hosts": hosts}


def write_shown(
    hosts: dict[str, dict[str, Any]],
    shown: Mapping[tuple[str, str], float],
    links: Mapping[Pair, float],
) -> list[tuple[str, str]]:
    """Write into the trees of hosts what was shown of them; return of which that is news.

    It is where it is more than one of the host's links carries and than what is written already;
    of a host with a limit, where it contradicts the limit.

    Parameters
    ----------
    hosts : dict
        Trees by name, with the limits that are known; they are changed.
    shown : mapping of (str, str) to float
        By host and the key of the limit, in bytes per second.
    links : mapping of (str, str) to float
        Bandwidths.

    Examples
    --------
    >>> hosts = {"S": {}, "D": {"downlink_bytes_per_s": 9.5}}
    >>> shown = {("S", "uplink_bytes_per_s"): 12.0, ("D", "downlink_bytes_per_s"): 10.0}
    >>> write_shown(hosts, shown, {("S", "D"): 6.0})
    [('S', 'uplink_bytes_per_s')]
    """
    alone: dict[tuple[str, str], float] = defaultdict(float)
    for pair, rate in links.items():
        for host, key in zip(pair, SHOWN, strict=True):
            alone[host, key] = max(alone[host, key], rate)
    news = []
    for (host, key), seen in sorted(shown.items()):
        if host not in hosts:
            continue
        single, limit = alone[host, key], hosts[host].get(key)
        rate = max(seen, single)
        is_news = rate > single if limit is None else rate > (1 + DIFFERS) * limit
        if is_news and rate > hosts[host].get(SHOWN[key], 0.0):
            hosts[host][SHOWN[key]] = rate
            news.append((host, key))
    return news
