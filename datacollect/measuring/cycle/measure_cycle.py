"""A cycle carried out, from the file of hosts to the last sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.files.units import counted, format_duration
from datacollect.files.with_units import DURATION, in_units
from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_store import DONE, read_parts, write_part
from datacollect.measuring.cycle.choosing import (
    BETWEEN_S,
    choose,
    iperf3_hosts,
    left_of,
    measured_hosts,
    own_wires,
)
from datacollect.measuring.cycle.host_floods import (
    PART_OF_BYTES,
    flood_of,
    moved_bytes,
    spent_on,
    wanted_by_plans,
)
from datacollect.measuring.cycle.planning import (
    DEFAULT_TOOLS,
    NAMED,
    Planned,
    at_most,
    found_wires,
    named,
    plan_cycle_of,
    stored,
)
from datacollect.measuring.cycle.record import only_one, read_record, write_record
from datacollect.measuring.cycle.several_links import Asking, comparison_of
from datacollect.measuring.operator.tcp_tests import TCP
from datacollect.measuring.operator.tools import FLOOD, TOOLS
from datacollect.measuring.plan.budget import Cost
from datacollect.measuring.plan.current_tests import running_test
from datacollect.measuring.plan.hosts_file import HostsFile
from datacollect.measuring.results.shared_links import (
    RUNS,
    SHARED,
    compared,
    possible_wires,
    routers_in_common,
)
from datacollect.net.agent_entries import AgentEntry
from datacollect.net.fan_out import fan_out
from datacollect.net.keys import read_private_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    import pandas as pd

    from datacollect.files.choices import MeasuredPairs
    from datacollect.files.quantities import Seconds
    from datacollect.measuring.cycle.record import Rounds
    from datacollect.measuring.cycle.several_links import Flood
    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.wanted_floods import WantedFlood

# So many reasons of failed tests are told.
MOST_REASONS = 10


@dataclass(frozen=True)
class Failure:
    """A test of a pair that was not done.

    Attributes
    ----------
    tool : str
    pair : (str, str)
    why : str
    """

    tool: str
    pair: Pair
    why: str


@dataclass(frozen=True)
class CycleAnswer:
    """Outcome of a cycle.

    Attributes
    ----------
    folder : Path
        Of the samples.
    number : int
        Of the cycle, from 0 in each folder.
    tests, failed : int
        Tests that were run now, and those of them that were not done.
    left_out : tuple of (str, str)
        Pairs that the budget did not reach, that moved other data, or whose first tests failed.
    without_agent : tuple of str
        Hosts of the file that no cycle tests.
    failures : tuple of Failure
        Of the tests that were not done each pair, and why.
    """

    folder: Path
    number: int
    tests: int
    failed: int
    left_out: tuple[Pair, ...]
    without_agent: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


def measure_cycle(
    hosts: HostsFile | str | PathLike[str],
    folder: str | PathLike[str] = "samples",
    *,
    tools: Iterable[str] = DEFAULT_TOOLS,
    only: MeasuredPairs | None = None,
    patience_s: Seconds = 120.0,
    tell: Callable[[str], None] | None = None,
) -> CycleAnswer:
    """Measure hosts within a budget, no test disturbing another, and keep what is measured.

    Whatever ends it, started again it goes on with what has not been done of the same cycle.

    Parameters
    ----------
    hosts : HostsFile or path-like
        Which hosts, who asks, and what it may cost.
    folder : path-like
        Of the samples; made where it is absent.
    tools : iterable of str
        ``ping``, ``trace``, ``tcp`` and others of pairs; ``flood`` (all at once into the
        destination) and ``shared`` (which links share a wire).
    only : {"all", "matter"}, optional
        All pairs, or those that may decide when all has arrived; by default the latter above 30
        hosts.
    patience_s : float or str
        How long others' tests are waited for, each time, >= 0: seconds, or a text such as
        ``"5 min"``.
    tell : callable, optional
        Takes lines: costs before anything is sent, then how far it is.

    Returns
    -------
    CycleAnswer

    Raises
    ------
    ProblemError
        The hosts, the folder or the budget are not what they should be.
    NotWrittenError
        The disk is full, or fails.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.measure_cycle("nowhere.toml")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
    """
    patience_s = in_units(patience_s, DURATION, "patience_s")
    if not isinstance(hosts, HostsFile):
        hosts = HostsFile.from_file(hosts)
    ends, folder = measured_hosts(hosts), Path(folder)
    has_agents = any(isinstance(end, AgentEntry) for end in ends.values())
    key = read_private_key(hosts.key) if hosts.key is not None and has_agents else None
    asking = Asking(ends, key, patience_s, tell or (lambda _: None))
    # What cannot be asked for leaves no folder behind.
    planned = None if folder.exists() else plan_cycle_of(hosts, folder, tools, only)
    with only_one(folder):
        if planned is None or read_record(folder) is not None:
            planned = plan_cycle_of(hosts, folder, tools, only)
        return _Run(hosts, folder, planned, asking).carry_out()


class _Run:
    """A cycle under way."""

    def __init__(self, hosts: HostsFile, folder: Path, planned: Planned, asking: Asking) -> None:
        self._hosts, self._folder, self._planned, self._asking = hosts, folder, planned, asking
        self._record = planned.record
        self._left_out = [*planned.chosen.unpaid]
        self._done: list[bool] = []
        self._failures: list[Failure] = []

    def carry_out(self) -> CycleAnswer:
        """Run all that is not done yet, and say what became of it."""
        for line in self._planned.lines():
            self._asking.report(line)
        write_record(self._folder, self._record)
        asked = self._record.asked["tools"]
        light, loading = (
            [name for name in asked if name in TOOLS and TOOLS[name].loads_wires is loads]
            for loads in (False, True)
        )
        if light:
            later_s = self._cost_of_rounds(self._record.light, loading).seconds
            later_s += _seconds_of(self._planned.flood)
            self._run_rounds(self._record.light, light, later_s)
        if self._record.loading is None:
            self._plan_loading(light, loading)
        flood = self._flood_of_tested()
        if loading:
            self._run_rounds(self._record.loading or (), loading, _seconds_of(flood))
        if flood is not None:
            flood = flood.at_once(_rates_of(self._now()))
            self._done += self._keep((FLOOD,), flood.pairs, partial(self._asking.flood, flood), {})
        if self._planned.host_floods is not None:
            self._flood_hosts(self._planned.host_floods)
        if SHARED in asked:
            self._compare_links()
        write_record(self._folder, replace(self._record, is_over=True))
        failed = self._done.count(False)
        return CycleAnswer(
            self._folder,
            self._record.number,
            len(self._done),
            failed,
            tuple(self._left_out),
            self._planned.without_agent,
            tuple(self._failures),
        )

    def _run_rounds(self, rounds: Rounds, tools: Sequence[str], later_s: float) -> None:
        """Run rounds one after the other, of each all pairs at once; more takes so long after."""
        but = ", comparisons of links not counted" if self._planned.comparison else ""
        settings = self._planned.chosen.settings
        for number, one in enumerate(rounds):
            used = [name for name in tools if any(name in settings[pair] for pair in one)]
            done = self._run_round(number, one, used)
            if done:
                self._done += done
                left_s = self._cost_of_rounds(rounds[number + 1 :], tools).seconds + later_s
                self._asking.report(
                    f"{', '.join(used)}: round {number + 1} of {len(rounds)} is done, "
                    f"{counted(self._done.count(False), 'test')} failed so far, at most "
                    f"{format_duration(left_s)} to go{but}"
                )

    def _run_round(self, number: int, one: Sequence[Pair], tools: Sequence[str]) -> list[bool]:
        """Run all pairs of a round at once; return of each test whether it was done."""
        places = {f"{tail} → {head}": place for place, (tail, head) in enumerate(one)}

        def run(name: str) -> list[bool]:
            place = places[name]
            return self._run_pair(one[place], (number, place), tools, len(one) - 1)

        # All have ended before what has ended one of them ends the cycle.
        outcomes = fan_out(places, run).values()
        return [is_done for outcome in outcomes for is_done in outcome.result()]

    def _cost(self, pair: Pair, tools: Sequence[str]) -> Cost:
        of_pair = self._planned.chosen.settings[pair]
        costs = [one.cost for name, one in of_pair.items() if name in tools]
        return sum(costs, Cost(0, 0.0))

    def _run_pair(
        self, pair: Pair, place: tuple[int, int], tools: Sequence[str], concurrency: int
    ) -> list[bool]:
        """Run the tests of a pair that are not kept, and return of each whether it was done."""
        settings, done = self._planned.chosen.settings[pair], []
        for name in tools:
            if name in settings:
                measure = partial(self._asking.pair, pair, settings[name])
                done += self._keep((name, *place), [pair], measure, {"concurrency": concurrency})
        return done

    def _keep(
        self,
        name: tuple[object, ...],
        pairs: Sequence[Pair],
        measure: Callable[[], Iterable[dict[str, Any]]],
        more: dict[str, Any],
    ) -> list[bool]:
        """Run a test and keep its rows, unless they are kept; return whether it was done."""
        test_id = self._record.test_id(*name)
        file = f"{test_id}.parquet"
        if (self._folder / file).exists() and file not in self._planned.damaged:
            return []
        with running_test(self._folder, str(name[0]), pairs):
            rows = [{**row, **more} for row in measure()]
        write_part(self._folder, test_id, rows)
        self._failures += [
            Failure(row["tool"], (row["from"], row["to"]), row["ended"])
            for row in rows
            if row["ended"] != DONE
        ]
        return [bool(rows) and all(row["ended"] == DONE for row in rows)]

    def _plan_loading(self, light: Sequence[str], loading: Sequence[str]) -> None:
        """Put the tests that load wires into rounds, by what the light ones have said."""
        table, now = stored(self._folder), self._now()
        pairs, silent = self._planned.chosen.pairs, _silent(now)
        answering = [pair for pair in pairs if pair not in silent]
        rounds: Rounds = ()
        if answering and loading:
            found = choose(
                answering,
                loading,
                self._record.rates_bytes_per_s,
                [
                    *self._hosts.wires,
                    *own_wires(self._hosts),
                    *found_wires(table),
                    *possible_wires(table),
                ],
                left_of(self._planned.for_pairs, self._cost_of_rounds(self._record.light, light)),
                self._record.number,
                in_pull=_in_pull(now),
                by_iperf3=iperf3_hosts(self._hosts),
            )
            rounds = found.cycle.rounds
            self._leave_out("one of their hosts moves other data", found.cycle.left_out)
            self._leave_out("the budget is too small for them", found.unpaid)
        elif not loading:
            rounds = (tuple(answering),)
        self._leave_out("no first test was done", [pair for pair in pairs if pair in silent])
        self._record = replace(self._record, loading=rounds)
        write_record(self._folder, self._record)

    def _now(self) -> pd.DataFrame:
        """Return what this cycle has measured so far, whatever clocks have said."""
        return read_parts(self._folder, self._record.tests_begin).frame

    def _cost_of_rounds(self, rounds: Rounds, tools: Sequence[str]) -> Cost:
        total = Cost(0, 0.0)
        for one in rounds if tools else ():
            costs = [self._cost(pair, tools) for pair in one]
            seconds = max(cost.seconds for cost in costs) + BETWEEN_S
            total += Cost(sum(cost.n_bytes for cost in costs), seconds)
        return total

    def _leave_out(self, why: str, pairs: Sequence[Pair]) -> None:
        if pairs:
            self._left_out += pairs
            self._asking.report(f"left out, {why}: {named(pairs)}")

    def _flood_of_tested(self) -> Flood | None:
        """Return the test of all tested pairs into the destination at once, if two are left."""
        flood = self._planned.flood
        if flood is None:
            return None
        tested = flood.of(self._tested)
        if len(tested.pairs) < 2:
            self._asking.report("the flood is left out: fewer than two hosts are left for it")
            return None
        return tested

    @property
    def _tested(self) -> set[Pair]:
        return {pair for one in self._record.loading or () for pair in one}

    def _flood_hosts(self, most: Cost) -> None:
        """Flood hosts of which plans ask more than was shown, as far as the allowance reaches."""
        into_destination = self._planned.flood
        tried = set() if into_destination is None else {frozenset(into_destination.pairs)}
        able = {pair for pair in self._tested if self._asking.is_by_agents(pair)}
        able -= _silent(self._now())
        dear: dict[str, None] = {}
        while wanted := self._wanted(able, tried):
            for one in wanted:
                tried.add(frozenset(one.links))
                flood, left = flood_of(one), self._left_for_hosts(most)
                if one.expected_bytes > left.n_bytes or flood.cost.seconds > left.seconds:
                    dear[one.host] = None
                    continue
                cost = at_most(flood.cost)
                self._asking.report(f"{one.why}: flood, {named(flood.pairs)}: {cost}")
                measure = partial(self._asking.flood, flood)
                self._done += self._keep((FLOOD, flood.name), flood.pairs, measure, {})
        if dear:
            self._asking.report(
                f"floods of {listed([*dear], NAMED)} are left out: each would exceed the part of "
                "the cycle, or of the budget, that floods may take"
            )

    def _wanted(self, able: set[Pair], tried: set[frozenset[Pair]]) -> list[WantedFlood]:
        return wanted_by_plans(self._hosts, stored(self._folder), able.__contains__, tried)

    def _left_for_hosts(self, most: Cost) -> Cost:
        """Return what floods of hosts may still take, by what all tests have moved so far."""
        floods = read_parts(self._folder, f"{self._record.test_id(FLOOD)}-").frame
        spent = spent_on(floods)
        others_bytes = moved_bytes(self._now()) - spent.n_bytes
        most_bytes = min(PART_OF_BYTES * others_bytes, most.n_bytes)
        return left_of(Cost(most_bytes, most.seconds), spent)

    def _compare_links(self) -> None:
        """Compare links that have a router in common, as far as the budget reaches."""
        rates = self._record.rates_bytes_per_s
        left = left_of(self._hosts.budget, self._planned.cost)
        left = left_of(left, self._planned.host_floods or Cost(0, 0.0))
        # What was decided before this start is paid for, too.
        for decided in compared(self._now()).decided:
            one, other = sorted(decided)
            left = left_of(left, comparison_of((one, other), rates).cost)
        tried: set[frozenset[Pair]] = set()
        links_of_agents = {pair for pair in self._tested if self._asking.is_by_agents(pair)}
        while True:
            table = stored(self._folder)
            candidates = [wire & links_of_agents for wire in routers_in_common(table)]
            links = compared(table).next_comparison(candidates, tried)
            if links is None:
                if not tried:
                    self._asking.report(f"shared: {_why_none(table)}")
                return
            tried.add(frozenset(links))
            comparison = comparison_of(links, rates)
            cost = comparison.cost
            self._asking.report(f"testing whether {named(links)} share a wire: {at_most(cost)}")
            if cost.n_bytes > left.n_bytes or cost.seconds > left.seconds:
                self._asking.report(
                    "the test of these links is left out: the budget is too small for it"
                )
                return
            left = left_of(left, cost)
            for run in range(RUNS):
                compare = partial(self._asking.compare, comparison, run)
                self._done += self._keep((SHARED, comparison.name, run), links, compare, {})


def lines_of(failures: Sequence[Failure]) -> list[str]:
    """Say why tests were not done: of each reason its tools and pairs.

    >>> lines_of([Failure("tcp", (name, "D"), "D: is away") for name in "SK"])
    ['failed, tcp S → D, K → D: D: is away']
    """
    by_reason: dict[tuple[str, str], list[Pair]] = {}
    for one in failures:
        by_reason.setdefault((one.why, one.tool), []).append(one.pair)
    lines = [f"failed, {tool} {named(pairs)}: {why}" for (why, tool), pairs in by_reason.items()]
    if len(lines) <= MOST_REASONS:
        return lines
    return [*lines[:MOST_REASONS], f"and {len(lines) - MOST_REASONS} more reasons: --json has them"]


def _seconds_of(flood: Flood | None) -> float:
    return 0.0 if flood is None else flood.cost.seconds


def _why_none(table: pd.DataFrame) -> str:
    """Say why no two links are to be compared."""
    if not table["routers"].notna().any():
        return "no routes are known; name the tool trace, too"
    return (
        "no two links have a router in common of which it is not known; addresses of private "
        "networks do not count"
    )


def _rates_of(rows: pd.DataFrame) -> dict[Pair, float]:
    """Return what tests with connections say of links."""
    tests = rows[(rows["tool"] == TCP.name) & (rows["bandwidth_bytes_per_s"] > 0)]
    by_pair: Any = tests.groupby(["from", "to"])["bandwidth_bytes_per_s"]
    return dict(by_pair.mean())


def _silent(rows: pd.DataFrame) -> set[Pair]:
    """Return the pairs none of whose tests were done."""
    done = rows[rows["ended"] == DONE]
    tested, answering = (
        set(zip(table["from"], table["to"], strict=True)) for table in (rows, done)
    )
    return tested - answering


def _in_pull(rows: pd.DataFrame) -> set[str]:
    """Return the hosts of which every test says that one of its ends moved other data."""
    beside: dict[str, bool] = {}
    for row in rows[rows["ended"] == DONE].to_dict("records"):
        for host in (row["from"], row["to"]):
            beside[host] = beside.get(host, True) and row["beside_pull"] is True
    return {host for host, always in beside.items() if always}
