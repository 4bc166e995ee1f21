"""Chooses the pairs of a cycle, by what tests have said so far, and what they cost at most."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError, DatacollectWarning, ProblemError
from datacollect.files.units import format_bytes, format_duration
from datacollect.measuring.operator.ends import ends_of, is_by_agents, is_by_iperf3
from datacollect.measuring.operator.iperf3_tests import ThisHost, affordable
from datacollect.measuring.operator.tools import tools_named
from datacollect.measuring.plan.budget import Cost, cost_of_cycle, cycle_within
from datacollect.measuring.plan.matter import pairs_that_matter
from datacollect.measuring.plan.rounds import full_mesh
from datacollect.measuring.results.samples_to_problem import problem_of_samples
from datacollect.methods.coordinated.coordinated import coordinated
from datacollect.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    import pandas as pd

    from datacollect.measuring.operator.ends import End
    from datacollect.measuring.operator.tool import HasCost, Tool
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.measuring.plan.rounds import Cycle, Pair

ALL, MATTER = "all", "matter"
# Of more hosts only the pairs that matter are tested, unless all are asked for.
MANY_HOSTS = 30
# Connecting, tickets and leases of a round.
BETWEEN_S = 3.0
# What each host holds in the plan that says which pairs matter.
HELD_BYTES = 10**12


@dataclass(frozen=True)
class Chosen:
    """The pairs of a cycle and their tests.

    Attributes
    ----------
    cycle : Cycle
        Their rounds, as far as the budget reaches.
    settings : mapping of pairs to mappings
        Of each pair its tests' settings, by tool.
    cost : Cost
    unpaid : tuple of pairs
        What the budget does not reach.
    """

    cycle: Cycle
    settings: Mapping[Pair, Mapping[str, Any]]
    cost: Cost
    unpaid: tuple[Pair, ...]

    @property
    def pairs(self) -> list[Pair]:
        """Those that are tested, round by round."""
        return [pair for one in self.cycle.rounds for pair in one]


def measured_hosts(hosts: HostsFile) -> dict[str, End]:
    """Return the hosts that a cycle can test, each with another one.

    Raises
    ------
    ProblemError
        There are none.
    """
    ends = ends_of(hosts)
    tested = {name for pair in _testable(ends) for name in pair}
    if not tested:
        raise ProblemError(
            "a cycle needs two hosts with agents, or iperf3 servers and this host as destination, "
            f"got {', '.join(ends)}; run agents on these hosts, and name them by `datacollect "
            "measure hosts`, or start this command on the destination, with an empty table "
            f"[hosts.{hosts.destination}]"
        )
    return {name: end for name, end in ends.items() if name in tested}


def without_agent(hosts: HostsFile) -> tuple[str, ...]:
    """Return the hosts that no cycle tests."""
    tested = measured_hosts(hosts)
    return tuple(name for name in hosts.hosts if name not in tested)


def own_wires(hosts: HostsFile) -> list[frozenset[Pair]]:
    """Return of each machine with an iperf3 server, and an agent beside it, all its pairs.

    By their addresses: no lease keeps tests of one away from those of the other.
    """
    ends, at = ends_of(hosts), defaultdict(set)
    for name, end in ends.items():
        if not isinstance(end, ThisHost):
            at[end.address[0].casefold()].add(name)
    machines = [names for names in at.values() if len({type(ends[name]) for name in names}) > 1]
    testable = _testable(ends)
    return [
        frozenset(pair for pair in testable if not names.isdisjoint(pair)) for names in machines
    ]


def iperf3_hosts(hosts: HostsFile) -> set[str]:
    """Return the hosts that are iperf3 servers."""
    return {name for name, host in hosts.hosts.items() if isinstance(host, tuple)}


def _testable(ends: Mapping[str, End]) -> list[Pair]:
    """Return the pairs that have agents at both ends, or an iperf3 server at one and us."""
    return [
        (tail, head)
        for tail, head in full_mesh(list(ends))
        if is_by_agents((ends[tail], ends[head])) or is_by_iperf3((ends[tail], ends[head]))
    ]


def candidate_pairs(
    hosts: HostsFile, table: pd.DataFrame, only: str | None
) -> tuple[list[Pair], dict[Pair, float]]:
    """Return the pairs worth a test, the weightiest first, and what is known of their rates.

    Parameters
    ----------
    hosts : HostsFile
    table : DataFrame
        The samples so far.
    only : str or None
        `ALL` or `MATTER`; None: by the number of hosts.
    """
    if only not in (None, ALL, MATTER):
        raise ProblemError(f"only must be {ALL} or {MATTER}, got {only!r}")
    names = list(measured_hosts(hosts))
    problem, rates = _known(hosts, table)
    matter: list[Pair] = []
    if hosts.destination in names:
        matter = pairs_that_matter(names, hosts.destination, *_with_plan(problem))
    if only is None:
        only = MATTER if len(names) > MANY_HOSTS else ALL
    testable = _testable(ends_of(hosts))
    others = testable if only == ALL else []
    wanted = set(testable)
    pairs = [pair for pair in dict.fromkeys([*matter, *others]) if pair in wanted]
    if not pairs:
        raise ProblemError(
            f"no test leads to the destination, {hosts.destination!r}, and only pairs that matter "
            "are tested: run an agent there, or ask for --only all"
        )
    return pairs, rates


def choose(
    pairs: Sequence[Pair],
    tools: Iterable[str],
    rates: Mapping[Pair, float],
    wires: Sequence[Set[Pair]],
    budget: Cost,
    number: int,
    in_pull: Set[str] = frozenset(),
    by_iperf3: Set[str] = frozenset(),
) -> Chosen:
    """Return the rounds of as many pairs as the budget pays for.

    Parameters
    ----------
    pairs, tools
        Pairs, the weightiest first, and the tools' names.
    rates : mapping of pairs to float
        What is expected of them, in bytes per second.
    wires, budget, number, in_pull
        As for `datacollect.measuring.plan.budget.cycle_within`.
    by_iperf3 : set of str
        Hosts with iperf3 servers: fewer tools test their pairs.

    Raises
    ------
    ProblemError
        It pays for none.
    """
    chosen = tools_named(tools)
    # What loads no wire has rounds of its own.
    between_s = BETWEEN_S * len({tool.loads_wires for tool in chosen.values()})
    settings = {
        pair: _settings_of(chosen, rates.get(pair), by_iperf3=not by_iperf3.isdisjoint(pair))
        for pair in pairs
    }
    # Agents take part in what tests several links at once, too.
    pairs = [
        pair for pair in pairs if settings[pair] or (not chosen and by_iperf3.isdisjoint(pair))
    ]
    costs = {
        pair: sum((one.cost for one in of_pair.values()), Cost(0, 0.0))
        for pair, of_pair in settings.items()
    }
    cycle = cycle_within(
        pairs, costs, budget, wires, between_s=between_s, cycle=number, in_pull=in_pull
    )
    tested = {pair for one in cycle.rounds for pair in one}
    if pairs and not tested and not cycle.left_out:
        dearness = [(costs[pair].n_bytes, costs[pair].seconds, costs[pair]) for pair in pairs]
        cheapest = min(dearness, key=lambda one: one[:2])[2]
        raise ProblemError(
            f"{format_bytes(budget.n_bytes)} and {format_duration(budget.seconds)} of the budget "
            "are left for tests of pairs, which is not enough for one: it takes up to "
            f"{format_bytes(cheapest.n_bytes)} and "
            f"{format_duration(cheapest.seconds + between_s)}; allow more, or name fewer tools"
        )
    unpaid = tuple(pair for pair in pairs if pair not in tested and pair not in cycle.left_out)
    return Chosen(cycle, settings, cost_of_cycle(cycle, costs, between_s), unpaid)


def _settings_of(
    tools: Mapping[str, Tool], rate_bytes_per_s: float | None, *, by_iperf3: bool
) -> dict[str, HasCost]:
    """Return how a pair is tested, by tool."""
    settings = {name: tool.settings_for(rate_bytes_per_s) for name, tool in tools.items()}
    if not by_iperf3:
        return settings
    able = {name: affordable(one) for name, one in settings.items()}
    return {name: one for name, one in able.items() if one is not None}


def left_of(budget: Cost, cost: Cost) -> Cost:
    """Return what is left of a budget.

    >>> left_of(Cost(10, 5.0), Cost(4, 9.0))
    Cost(n_bytes=6, seconds=0.0)
    """
    return Cost(max(budget.n_bytes - cost.n_bytes, 0), max(budget.seconds - cost.seconds, 0.0))


def _known(hosts: HostsFile, table: pd.DataFrame) -> tuple[Problem | None, dict[Pair, float]]:
    """Return the problem that samples describe, every host holding as much, and links' rates."""
    backlog = {name: HELD_BYTES for name in hosts.hosts if name != hosts.destination}
    try:
        found = problem_of_samples(
            table, hosts.destination, hosts=hosts.hosts.keys(), backlog_bytes=backlog
        )
        problem = Problem.from_dict(found.tree)
    except ProblemError:
        return None, {}
    rows = found.links[["from", "to", "bandwidth_bytes_per_s"]].itertuples(index=False)
    return problem, {(tail, head): rate for tail, head, rate in rows if math.isfinite(rate)}


def _with_plan(problem: Problem | None) -> tuple[Any, Any]:
    """Return the problem and a plan of it, None where there is none: hosts may be cut off."""
    if problem is None:
        return None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DatacollectWarning)
            return problem, coordinated(problem)
    except DatacollectError:
        return problem, None
