"""A cycle before anything is sent: whether one goes on or a new one begins, and what it costs."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.units import counted, format_bytes, format_duration
from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_store import read_parts
from datacollect.measuring.cycle.choosing import (
    Chosen,
    candidate_pairs,
    choose,
    iperf3_hosts,
    left_of,
    measured_hosts,
    own_wires,
    without_agent,
)
from datacollect.measuring.cycle.host_floods import PART_OF_BYTES, allowance, line_of
from datacollect.measuring.cycle.record import CycleRecord, read_record
from datacollect.measuring.cycle.several_links import Flood, comparison_of, flood_into
from datacollect.measuring.operator.ends import is_by_agents
from datacollect.measuring.operator.iperf3_tests import ThisHost
from datacollect.measuring.operator.tools import FLOOD, tools_named, usual_tools
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.results.shared_links import SHARED, compared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from datacollect.measuring.cycle.record import Rounds
    from datacollect.measuring.operator.ends import End
    from datacollect.measuring.plan.hosts_file import HostsFile
    from datacollect.measuring.plan.rounds import Pair

# Of several links at once, after those of pairs.
OF_SEVERAL = (FLOOD, SHARED)
DEFAULT_TOOLS = (*usual_tools(), *OF_SEVERAL)
# So many pairs are named in a line.
NAMED = 6


@dataclass(frozen=True)
class Planned:
    """A cycle that may begin, or go on.

    Attributes
    ----------
    record : CycleRecord
    chosen : Chosen
        Its pairs and their tests.
    for_pairs : Cost
        What of the budget is for tests of pairs.
    flood : Flood or None
        Into the destination.
    goes_on : bool
        Whether it has begun before.
    without_agent : tuple of str
        Hosts of the file that no cycle tests.
    comparison : Cost or None
        What each comparison of two links costs at most, where some may be compared.
    damaged : tuple of str
        Files of the folder that cannot be read.
    untested : tuple of str
        Hosts that could be tested, in none of the pairs.
    given_up : int or None
        The cycle before, where it has not ended and this is another one.
    host_floods : Cost or None
        What floods that plans ask for take at most, where there may be any.
    """

    record: CycleRecord
    chosen: Chosen
    for_pairs: Cost
    flood: Flood | None
    goes_on: bool
    without_agent: tuple[str, ...] = ()
    comparison: Cost | None = None
    damaged: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    given_up: int | None = None
    host_floods: Cost | None = None

    @property
    def cost(self) -> Cost:
        """Return what it takes at most; floods that plans ask for and comparisons come on top."""
        return self.chosen.cost + (Cost(0, 0.0) if self.flood is None else self.flood.cost)

    @property
    def rounds(self) -> Rounds:
        """The rounds of tests of pairs; none where only several links at once are tested."""
        has_tests = any(self.chosen.settings[pair] for pair in self.chosen.pairs)
        return self.chosen.cycle.rounds if has_tests else ()

    def lines(self) -> list[str]:
        """Say what is tested, at what cost at most."""
        rounds = len(self.rounds)
        pairs = sum(map(len, self.rounds))
        on = ", which goes on" if self.goes_on else ""
        first = f"cycle {self.record.number}{on}: {counted(pairs, 'pair')} in "
        rest = f"{counted(rounds, 'round')}: {at_most(self.cost)}, without waiting for others"
        lines = [first + rest]
        by_cost: dict[tuple[tuple[str, Cost], ...], list[Pair]] = {}
        for pair in (pair for one in self.rounds for pair in one):
            costs = tuple((name, one.cost) for name, one in self.chosen.settings[pair].items())
            by_cost.setdefault(costs, []).append(pair)
        for costs, of_cost in by_cost.items():
            total = sum((cost for _, cost in costs), Cost(0, 0.0))
            each = ", ".join(f"{name} {format_bytes(cost.n_bytes)}" for name, cost in costs)
            lines.append(f"{named(of_cost)}: {at_most(total)} each ({each})")
        if self.flood is not None:
            lines.append(f"flood, {named(self.flood.pairs)}: {at_most(self.flood.cost)}")
        if self.host_floods is not None:
            lines.append(line_of(self.host_floods))
        if self.comparison is not None:
            lines.append(
                f"shared, two links that have a router in common: {at_most(self.comparison)} each, "
                "as many as the budget pays for besides"
            )
        if self.given_up is not None:
            lines.append(
                f"cycle {self.given_up}, which had not ended, was for other tools or hosts: it "
                "stays as it is"
            )
        if self.damaged:
            lines.append(
                f"damaged, and left out: {listed(self.damaged, NAMED)}; tests of this cycle that "
                "are among them are run again"
            )
        if self.untested:
            lines.append(
                f"left out, as no test that matters includes them: {listed(self.untested, NAMED)}"
            )
        if self.without_agent:
            hosts = listed(self.without_agent, NAMED)
            lines.append(
                f"left out, as no agent runs there: {hosts}; run one, or measure iperf3 servers "
                f"from the destination, with an empty table for it"
            )
        if self.chosen.unpaid:
            lines.append(f"left out, as the budget is too small: {named(self.chosen.unpaid)}")
        return lines


def at_most(cost: Cost) -> str:
    """Say a cost.

    >>> at_most(Cost(10**8, 30.0))
    'at most 100 MB and 30 s'
    """
    return f"at most {format_bytes(cost.n_bytes)} and {format_duration(cost.seconds)}"


def named(pairs: Sequence[Pair]) -> str:
    """Name pairs, the first ones of many."""
    return listed([f"{tail} → {head}" for tail, head in pairs], NAMED)


def plan_cycle_of(
    hosts: HostsFile, folder: Path, tools: Iterable[str] = DEFAULT_TOOLS, only: str | None = None
) -> Planned:
    """Return the cycle that goes on, or else a new one; nothing is sent or written.

    Raises
    ------
    ProblemError
        There is no such tool, or the budget pays for no pair.
    """
    wanted = set(tools)
    of_pairs = list(tools_named(wanted - {*OF_SEVERAL}, OF_SEVERAL))
    ends, servers = measured_hosts(hosts), iperf3_hosts(hosts)
    tests = [*of_pairs, *(name for name in OF_SEVERAL if name in wanted)]
    asked = {
        "tools": tests,
        "only": only,
        "hosts": {name: _address(ends[name]) for name in sorted(ends)},
        "destination": hosts.destination,
    }
    found, last = read_parts(folder), read_record(folder)
    table = found.frame
    goes_on = last is not None and not last.is_over and last.asked == asked
    if last is not None and goes_on:
        record, rates = last, last.rates_bytes_per_s
        pairs = [pair for one in last.light for pair in one]
    else:
        number = 0 if last is None else last.number + 1
        pairs, rates = candidate_pairs(hosts, table, only)
        record = CycleRecord(number, time.time(), asked, (), None, rates)
    by_agents = [pair for pair in pairs if is_by_agents((ends[pair[0]], ends[pair[1]]))]
    flood = flood_into(hosts.destination, by_agents, rates) if FLOOD in wanted else None
    wires = [*hosts.wires, *own_wires(hosts), *found_wires(table)]

    def chosen_within(budget: Cost) -> Chosen:
        return choose(pairs, of_pairs, rates, wires, budget, record.number, by_iperf3=servers)

    chosen, for_pairs = _within_budget(hosts.budget, flood, chosen_within)
    if not chosen.pairs and not chosen.unpaid:
        raise ProblemError(
            f"tools must test some of the hosts, got {', '.join(tests) or 'none'}; iperf3 "
            "servers take part in ping and tcp: name these"
        )
    if goes_on:
        chosen = replace(chosen, cycle=replace(chosen.cycle, rounds=record.light), unpaid=())
    others = chosen.cost + (Cost(0, 0.0) if flood is None else flood.cost)
    floodable = {name for pair in by_agents for name in pair}
    return Planned(
        replace(record, light=chosen.cycle.rounds),
        chosen,
        for_pairs,
        flood,
        goes_on,
        without_agent(hosts),
        _dearest_comparison(by_agents, rates) if SHARED in wanted else None,
        found.damaged,
        tuple(name for name in ends if not any(name in pair for pair in pairs)),
        None if last is None or last.is_over or goes_on else last.number,
        allowance(others, len(floodable), left_of(hosts.budget, others))
        if FLOOD in wanted
        else None,
    )


def _within_budget(
    budget: Cost, flood: Flood | None, chosen_within: Callable[[Cost], Chosen]
) -> tuple[Chosen, Cost]:
    """Choose pairs by what floods leave of a budget, and return it; whatever is left pays for one.

    The flood into the destination is paid for first, and a part is kept for those of hosts.
    """
    if flood is None:
        return chosen_within(budget), budget
    kept = left_of(budget.times(1 / (1 + PART_OF_BYTES)), flood.cost)
    with suppress(ProblemError):
        return chosen_within(kept), kept
    whole = left_of(budget, flood.cost)
    try:
        return chosen_within(whole), whole
    except ProblemError as error:
        raise ProblemError(
            f"{error}; the test that floods all links at once takes its part of the budget first: "
            f"{at_most(flood.cost)}"
        ) from None


def _dearest_comparison(pairs: Sequence[Pair], rates: Mapping[Pair, float]) -> Cost | None:
    """Return what comparing two links costs at most; None where there are no two."""
    if len(pairs) < 2:
        return None
    one = max(pairs, key=lambda pair: rates.get(pair, math.inf))
    return comparison_of((one, one), rates).cost


def _address(end: End) -> list[str | int]:
    """Return where a host is reached; nowhere, if it is this one."""
    return [] if isinstance(end, ThisHost) else [*end.address]


def stored(folder: Path) -> pd.DataFrame:
    """Return all samples of a folder."""
    return read_parts(folder).frame


def found_wires(table: pd.DataFrame) -> list[frozenset[Pair]]:
    """Return the wires that comparisons have found."""
    return [frozenset(wire.links) for wire in compared(table).wires()]
