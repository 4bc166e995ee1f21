"""Floods that are wanted: of hosts that plans lean on, and what tells a host's line from a wire.

A plan that has a host do more at once than was shown of it may promise what nobody gets. A flood of
the links that it uses tells, first of two of them, then of all.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import DatacollectError, DatacollectWarning
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.results.floods import DOWNLINK, LIMITED, UPLINK, shown_by
from datacollect.measuring.results.host_limits import DIFFERS, carried_at_most, gets_no_more
from datacollect.methods.coordinated.coordinated import coordinated
from datacollect.methods.leaning.cautious import limited
from datacollect.methods.leaning.flood_tests import (
    FLOOD_S,
    MOST_AT_ONCE,
    STREAMS,
    FloodTest,
    busiest_links,
    most_bytes_of,
)
from datacollect.problem.host_limits import SHOWN
from datacollect.schedule.data.assumptions import ALIKE
from datacollect.schedule.data.use import bytes_by_link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.floods import SeenFlood
    from datacollect.measuring.results.host_limits import HostLimit, SeenByFloods
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Assumptions, HostLoad
    from datacollect.schedule.schedule import Schedule

# What each host holds where nobody has said it.
HELD_BYTES = 10**12
# Of so many links those are tried one by one with which another may share a wire.
ONE_BY_ONE = 4


@dataclass(frozen=True)
class WantedFlood:
    """A flood that is worth its bytes.

    Attributes
    ----------
    host : str
    key : str
        ``uplink_bytes_per_s`` where the host sends, ``downlink_bytes_per_s`` where it receives.
    links : tuple of (str, str)
        Those that are to be tested at once.
    rates_bytes_per_s : mapping of (str, str) to float
        What each carries alone.
    why : str
        In a sentence without its end.
    worth : float
        By what part a plan takes longer if the host does no more than was shown.
    most_together_bytes_per_s : float
        What all get at most, by what is known.
    """

    host: str
    key: str
    links: tuple[Pair, ...]
    rates_bytes_per_s: Mapping[Pair, float]
    why: str
    worth: float = math.inf
    most_together_bytes_per_s: float = math.inf

    @property
    def expected_bytes(self) -> int:
        """Return what it takes at most, by what is known of wires and lines."""
        together = self.most_together_bytes_per_s
        least = math.inf if together == math.inf else most_bytes_of(together)
        return int(min(sum(one.most_bytes for one in self.settings), least))

    @property
    def settings(self) -> tuple[TcpSettings, ...]:
        """Return how each link is tested in a cycle, which gives each its own number of bytes."""
        return tuple(
            TcpSettings(STREAMS, FLOOD_S, most_bytes_of(self.rates_bytes_per_s[link]))
            for link in self.links
        )

    @property
    def test(self) -> FloodTest:
        """It by the command line, which gives all links one number of bytes."""
        rates = {link: self.rates_bytes_per_s[link] for link in self.links}
        return FloodTest(self.host, "out" if self.key == UPLINK else "in", rates)


@dataclass(frozen=True)
class Leaning:
    """A host on which a plan leans, and the floods that tell whether it may.

    Attributes
    ----------
    load : HostLoad
    plan : Assumptions
        Of the plan.
    floods : tuple of WantedFlood
        First of two links, then of all that the plan uses; none where they have no agents.
    worth, alone_worth : float
        By what part the plan takes longer if no host, or if only this one, does no more than was
        shown.
    """

    load: HostLoad
    plan: Assumptions
    floods: tuple[WantedFlood, ...]
    worth: float
    alone_worth: float


def planned(problem: Problem) -> Schedule | None:
    """Return the coordinated plan of a problem; None where there is none: hosts may be cut off."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DatacollectWarning)
            return coordinated(problem)
    except DatacollectError:
        return None


def problems_of_each(problem: Problem) -> Iterator[Problem]:
    """Yield the problem, and of each of its sources that in which no other has data.

    A cycle does not know what hosts will hold: what one source alone uses, plans may use.
    """
    yield problem
    sources = np.flatnonzero(problem.backlog_bytes).tolist()
    if len(sources) > 1:
        for source in sources:
            held = np.zeros_like(problem.backlog_bytes)
            held[source] = problem.backlog_bytes[source]
            yield problem.replace(backlog_bytes=held)


def leanings(
    problem: Problem,
    plan: Schedule | None,
    rates: Mapping[Pair, float],
    is_able: Callable[[Pair], bool],
) -> list[Leaning]:
    """Return the hosts on which a plan leans, those that change it most first.

    Parameters
    ----------
    problem : Problem
    plan : Schedule or None
        The coordinated one; None where there is none, which leans on nothing.
    rates : mapping of (str, str) to float
        What links carry alone, in bytes per second.
    is_able : callable
        Whether a link can be flooded.
    """
    if plan is None or plan.makespan_s <= 0:
        return []
    try:
        assumptions = plan.assumptions
    except DatacollectError:
        return []
    if assumptions is None or not assumptions.leans_on:
        return []
    if _worth(assumptions.cautious_makespan_s, plan) <= ALIKE:
        return []
    carried = bytes_by_link(plan)
    of_plan = partial(_leaning, problem, plan, assumptions, carried, rates, is_able)
    found = [of_plan(load) for load in assumptions.leans_on if _is_beyond(load)]
    return sorted(found, key=lambda one: -one.alone_worth)


def _is_beyond(load: HostLoad) -> bool:
    """Return whether a host is to do so much more than was shown that a flood would tell."""
    shown = max(load.shown_bytes_per_s, load.direct_bytes_per_s)
    return load.planned_bytes_per_s > (1 + DIFFERS) * shown


def shown_over_used(problem: Problem, plan: Schedule, floods: Sequence[SeenFlood]) -> Problem:
    """Return the problem in which hosts were shown what they did over links that a plan uses.

    Parameters
    ----------
    problem : Problem
    plan : Schedule
    floods : sequence of SeenFlood
        By which the problem says what was shown.
    """
    used = bytes_by_link(plan).keys()
    before, over_used = shown_by(floods), shown_by(floods, used)
    changes: dict[str, Any] = {}
    for key, name in SHOWN.items():
        stated = getattr(problem, name)
        if stated is None:
            continue
        new = stated.copy()
        for i, host in enumerate(problem.names):
            # What is there for another reason, such as a pull, stays.
            if (host, key) in before and stated[i] <= (1 + ALIKE) * before[host, key]:
                new[i] = min(stated[i], over_used.get((host, key), 0.0))
        if (new != stated).any():
            changes[name] = new
    return problem.replace(**changes) if changes else problem


def _leaning(
    problem: Problem,
    plan: Schedule,
    assumptions: Assumptions,
    carried: Mapping[Pair, int],
    rates: Mapping[Pair, float],
    is_able: Callable[[Pair], bool],
    load: HostLoad,
) -> Leaning:
    key = UPLINK if load.direction == "out" else DOWNLINK
    most = np.full(problem.n_hosts, np.inf)
    most[problem.host_index[load.host]] = max(load.shown_bytes_per_s, load.direct_bytes_per_s)
    alone = planned(limited(problem, {key: most}))
    alone_worth = math.inf if alone is None else _worth(alone.makespan_s, plan)
    used = [pair for pair in busiest_links(carried, load) if pair in rates and is_able(pair)]
    used = used[:MOST_AT_ONCE]
    sets = [tuple(used[:2]), tuple(used)] if len(used) > 1 else []
    worth = _worth(assumptions.cautious_makespan_s, plan)
    floods = tuple(
        WantedFlood(load.host, key, links, rates, load.text.removesuffix("."), alone_worth)
        for links in dict.fromkeys(sets)
    )
    return Leaning(load, assumptions, floods, worth, alone_worth)


def _worth(makespan_s: float | None, plan: Schedule) -> float:
    return math.inf if makespan_s is None else makespan_s / plan.makespan_s - 1.0


def wanted_floods(
    problem: Problem,
    rates: Mapping[Pair, float],
    seen: SeenByFloods,
    is_able: Callable[[Pair], bool],
    tried: Set[frozenset[Pair]] = frozenset(),
) -> list[WantedFlood]:
    """Return the floods that a cycle asks for next, one of each host and direction.

    First come those that explain what others have seen, then those that change a plan most.

    Parameters
    ----------
    problem : Problem
        What is known so far, all hosts holding data.
    rates, is_able
        As for `leanings`.
    seen : SeenByFloods
        What floods have said so far.
    tried : set of sets of (str, str)
        Floods that are not asked for again.
    """
    known = {*tried, *(flood.links for flood in seen.floods if flood.is_whole)}
    of_single: list[WantedFlood] = []
    found = [
        flood
        for limit in seen.limits
        for flood in explaining(limit, seen.floods, rates, is_able)
        if frozenset(flood.links) not in known
    ]
    for each in problems_of_each(problem):
        new = [
            flood
            for one in leanings(*_with_plan(each, seen.floods), rates, is_able)
            for flood in one.floods
            if frozenset(flood.links) not in known
        ]
        # First what the plan of all sources together leans on, then what those of single ones do.
        of_single += new if each is not problem else []
        found += new if each is problem else []
    found += sorted(of_single, key=lambda flood: -flood.worth)
    first: dict[tuple[str, str], WantedFlood] = {}
    for flood in found:
        most = most_together_bytes_per_s(flood, seen)
        first.setdefault((flood.host, flood.key), replace(flood, most_together_bytes_per_s=most))
    return list(first.values())


def _with_plan(problem: Problem, floods: Sequence[SeenFlood]) -> tuple[Problem, Schedule | None]:
    """Return the problem in which what was shown is what was shown for its plan, and the plan."""
    plan = planned(problem)
    if plan is None:
        return problem, plan
    for_plan = shown_over_used(problem, plan, floods)
    return for_plan, plan if for_plan is problem else planned(for_plan)


def most_together_bytes_per_s(flood: WantedFlood, seen: SeenByFloods) -> float:
    """Return what links of a flood get at once at most, by what is known of wires and the host."""
    most = [
        limit.flood.line_bytes_per_s
        for limit in seen.limits
        if limit.is_proven and (limit.flood.host, limit.flood.key) == (flood.host, flood.key)
    ]
    rates = {link: flood.rates_bytes_per_s[link] for link in flood.links}
    return min([*most, carried_at_most(rates, seen.wires)])


def explaining(
    limit: HostLimit,
    floods: Sequence[SeenFlood],
    rates: Mapping[Pair, float],
    is_able: Callable[[Pair], bool],
) -> list[WantedFlood]:
    """Return the flood that tells the line of a host from a wire of some of its links, if any.

    Two links that share tell it with a third. Many that share tell it with the two that lost most:
    what these two lose, too, is a wire of theirs, or the host's line if they get as much as all.
    """
    flood = limit.flood
    one_way = [other for other in floods if (other.host, other.key) == (flood.host, flood.key)]
    if not flood.is_limited:
        return [] if limit.is_proven else _sharing(limit, one_way, rates, is_able)
    others = [
        pair
        for pair in rates
        if pair[flood.key != UPLINK] == flood.host and pair not in flood.links and is_able(pair)
    ]
    if len(flood.links) == 2:
        if limit.is_proven or not others:
            return []
        fastest = max(others, key=lambda pair: (rates[pair], pair))
        return _explaining(limit, (*sorted(flood.links), fastest), rates)
    pairs = [two for two in one_way if len(two.links) == 2 and two.is_limited]
    if limit.is_explained:
        return _sharing(limit, one_way, rates, is_able)
    if any(gets_no_more(flood, two) for two in pairs):
        return []
    on_wire = set().union(*(two.links for two in pairs))
    shares = {
        pair: rate / flood.alone_bytes_per_s[pair]
        for pair, rate in flood.rates_bytes_per_s.items()
        if pair not in on_wire and pair in rates and is_able(pair)
    }
    lost_most = sorted(shares, key=lambda pair: (shares[pair], pair))[:2]
    if len(lost_most) < 2 or shares[lost_most[1]] >= LIMITED:
        return [] if limit.is_proven else _sharing(limit, one_way, rates, is_able)
    return _explaining(limit, tuple(lost_most), rates)


def _sharing(
    limit: HostLimit,
    one_way: Sequence[SeenFlood],
    rates: Mapping[Pair, float],
    is_able: Callable[[Pair], bool],
) -> list[WantedFlood]:
    """Return the flood that tells with which other a link shares a wire, if one has lost.

    Where rates are fair, a slow link loses nothing on a wire that it shares with a fast one. So
    whoever has lost is tested beside the others, those that have lost more first: one by one where
    they are few, else half of them at a time.
    """
    flood = limit.flood
    if flood.sum_alone_bytes_per_s is None or not flood.is_whole:
        return []
    on_wire = {
        pair for two in one_way if len(two.links) == 2 and two.is_limited for pair in two.links
    }
    share = {
        pair: rate / flood.alone_bytes_per_s[pair]
        for pair, rate in flood.rates_bytes_per_s.items()
        if pair in rates and is_able(pair)
    }
    for loser in sorted(share, key=lambda pair: (share[pair], pair)):
        if share[loser] >= LIMITED:
            break
        if loser in on_wire:
            continue
        beside = {*share} - {loser}
        for other in one_way:
            if other.is_whole and loser in other.alone_bytes_per_s and loser in other.links:
                kept = other.rates_bytes_per_s[loser] >= LIMITED * other.alone_bytes_per_s[loser]
                beside = beside - other.links if kept else beside & other.links
        lost_most = sorted(beside, key=lambda pair: (share[pair], pair))
        if lost_most:
            n = 1 if len(lost_most) <= ONE_BY_ONE else len(lost_most) // 2
            return _explaining(limit, (loser, *lost_most[:n]), rates)
    return []


def _explaining(
    limit: HostLimit, links: tuple[Pair, ...], rates: Mapping[Pair, float]
) -> list[WantedFlood]:
    wire = "uplink" if limit.flood.key == UPLINK else "downlink"
    why = f"whether it is the {wire} of {limit.flood.host} that limits its links"
    return [WantedFlood(limit.flood.host, limit.flood.key, links, rates, why)]
