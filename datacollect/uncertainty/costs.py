"""Causes of uncertainty in a plan: links, hosts, assumptions, and what a test is worth.

A link costs what the ninth of ten scenarios gains if it carried in all of them what the plan counts
on. A test of it is worth what a plan made with its result saves on average: links' rates of all
scenarios are put into a few groups, and each group is planned for. An assumption is no error of a
test: it costs what the ninth of ten scenarios loses if it is wrong, and a test is worth what the
cautious plan saves then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, SolverError
from datacollect.files.units import format_duration, format_rate
from datacollect.methods.choice import candidate, options_like
from datacollect.methods.leaning.assumptions import assumptions_of
from datacollect.methods.leaning.flood_tests import flood_of
from datacollect.problem.other_rates import with_link_rates
from datacollect.uncertainty.fixed_plan import FixedPlan
from datacollect.uncertainty.quantiles import quantile

if TYPE_CHECKING:
    from datacollect.methods.options.option import MethodOptions
    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import HostLoad
    from datacollect.schedule.schedule import Schedule
    from datacollect.uncertainty.draws import Draws

# So many links and hosts are told, and so many assumptions.
MOST_ERRORS, MOST_ASSUMPTIONS = 3, 2

# So many groups of a link's rates are planned for.
GROUPS = 5

# What costs less than this part of the makespan costs nothing.
NOTHING = 1e-3

# Where a scenario takes a simulation, so many links are looked at: those that vary most.
FEW_LINKS = 5


@dataclass(frozen=True)
class Cost:
    """Cost to a plan of the error of a link, of a host's links, or of a wrong assumption.

    Attributes
    ----------
    kind : {"link", "host", "assumption"}
    hosts : tuple of str
        The ends of a link, or the host.
    p90_s : float
        The ninth of ten scenarios, if the link, or all links of the host, carried what the plan
        counts on; if the assumption is wrong.
    moves_p90_s : float
        By how much that differs from all scenarios, in seconds, > 0; infinite where one of both
        is never.
    test_saves_s : float or None
        What a plan made with the result of a test saves on average, of an assumption if it is
        wrong; None where that is not known, or `moves_p90_s` is infinite.
    direction : str
        Of an assumption: ``"out"`` or ``"in"``; else empty.
    most_bytes_per_s : float or None
        Of an assumption: what the host can send, or receive, if it is wrong.
    command : str
        Of an assumption: the flood that tells whether it is wrong; else empty.
    """

    kind: Literal["link", "host", "assumption"]
    hosts: tuple[str, ...]
    p90_s: float
    moves_p90_s: float
    test_saves_s: float | None = None
    direction: str = ""
    most_bytes_per_s: float | None = None
    command: str = ""

    @property
    def text(self) -> str:
        """It in a sentence."""
        ninth = format_duration(self.p90_s)
        # From never, or to never, is no number.
        is_finite = math.isfinite(self.moves_p90_s)
        moves = format_duration(self.moves_p90_s) if is_finite else ""
        less = (
            f"p90 would be {moves} less" if is_finite else f"p90 would be {ninth} instead of never"
        )
        if self.kind == "assumption":
            does = "send" if self.direction == "out" else "receive"
            most = format_rate(self.most_bytes_per_s or 0.0)
            text = f"If {self.hosts[0]} can {does} no more than {most} at once, p90 is {ninth}"
            text += f", {moves} more" if is_finite else ""
        elif self.kind == "host":
            text = f"If all links of {self.hosts[0]} were as planned, {less}"
        else:
            text = f"If {' → '.join(self.hosts)} were as planned, {less}"
        if self.test_saves_s is None:
            return f"{text}."
        saves = format_duration(self.test_saves_s)
        if self.kind == "assumption":
            tells = f"a flood of {self.hosts[0]} tells"
            if self.test_saves_s < NOTHING:
                return f"{text}; {tells}, but a plan that knows it ends no sooner."
            return f"{text}; {tells}, and a plan that knows it ends {saves} sooner then."
        if self.test_saves_s < NOTHING:
            return f"{text}; planning by a test of it saves nothing."
        return f"{text}; planning after one more test of it saves {saves} on average."

    def to_dict(self) -> dict[str, Any]:
        """Return the object that programs read."""
        return {
            "kind": self.kind,
            "hosts": list(self.hosts),
            "p90_s": None if math.isinf(self.p90_s) else self.p90_s,
            "moves_p90_s": None if math.isinf(self.moves_p90_s) else self.moves_p90_s,
            "test_saves_s": self.test_saves_s,
            "direction": self.direction or None,
            "most_bytes_per_s": self.most_bytes_per_s,
            "command": self.command or None,
        }


def costs_of(
    problem: Problem, plan: Schedule, fixed: FixedPlan, draws: Draws, makespans_s: FloatArray
) -> tuple[Cost, ...]:
    """Return what costs most, the most first: of links, hosts and assumptions together.

    Parameters
    ----------
    problem : Problem
    plan : Schedule
    fixed : FixedPlan
        The plan.
    draws : Draws
    makespans_s : ndarray of float, shape (n_scenarios,)
        What the plan takes in each.
    """
    case = _Case(problem, plan, fixed, draws, makespans_s)
    links = case.links()
    errors = _most([*links, *case.hosts(links)], MOST_ERRORS)
    tested = [
        replace(cost, test_saves_s=case.worth(cost))
        # What saves the time from never has no mean.
        if cost.kind == "link" and math.isfinite(cost.moves_p90_s)
        else cost
        for cost in errors
    ]
    assumptions = _most(case.assumptions(), MOST_ASSUMPTIONS)
    return tuple(_most([*tested, *assumptions], MOST_ERRORS + MOST_ASSUMPTIONS))


def _most(found: list[Cost], n: int) -> list[Cost]:
    return sorted(found, key=lambda cost: -cost.moves_p90_s)[:n]


class _Case:
    def __init__(
        self,
        problem: Problem,
        plan: Schedule,
        fixed: FixedPlan,
        draws: Draws,
        makespans_s: FloatArray,
    ) -> None:
        self._problem, self._plan, self._fixed, self._draws = problem, plan, fixed, draws
        self._makespans_s = makespans_s
        self._p90_s = _ninth(makespans_s)
        self._least_s = NOTHING * plan.makespan_s
        self._options: MethodOptions | None = options_like(plan)

    def links(self) -> list[Cost]:
        spread = self._draws.factors.std(axis=0)
        columns = np.argsort(-spread, kind="stable")
        columns = columns[spread[columns] > 0]
        if not self._fixed.is_quick:
            columns = columns[:FEW_LINKS]
        found = [self._without(columns[i : i + 1], "link") for i in range(len(columns))]
        return [cost for cost in found if cost is not None]

    def hosts(self, links: list[Cost]) -> list[Cost]:
        """Return what hosts cost whose links are slow together: each link alone is less than half.

        Into the destination lead last links of all data, so that all of them together cost most.
        """
        if not self._fixed.is_quick:
            return []
        found = []
        for host in range(self._problem.n_hosts):
            ends = (
                self._problem.link_from[self._draws.links],
                self._problem.link_to[self._draws.links],
            )
            columns = np.flatnonzero((ends[0] == host) | (ends[1] == host))
            name = self._problem.names[host]
            alone = max((cost.moves_p90_s for cost in links if name in cost.hosts), default=0.0)
            cost = self._without(columns, "host", name) if len(columns) > 1 else None
            if cost is not None and cost.moves_p90_s > 2 * alone + self._least_s:
                found.append(cost)
        return found

    def _without(
        self, columns: IntArray, kind: Literal["link", "host"], host: str = ""
    ) -> Cost | None:
        """Return what the errors of some links cost; None where that is nothing."""
        factors = self._draws.factors.copy()
        factors[:, columns] = 1.0
        p90_s = _ninth(self._fixed.makespans_s(self._draws.links, factors))
        moves_s = math.inf if math.isinf(self._p90_s) else self._p90_s - p90_s
        if math.isinf(p90_s) or moves_s <= self._least_s:
            return None
        problem, link = self._problem, self._draws.links[columns[0]]
        ends = problem.names[problem.link_from[link]], problem.names[problem.link_to[link]]
        return Cost(kind, (host,) if host else ends, p90_s, moves_s)

    def assumptions(self) -> list[Cost]:
        """Return what it costs if hosts can do no more than was shown of them, one by one."""
        leans_on = self._plan.assumptions
        if leans_on is None and self._options is not None:  # as of a schedule file
            leans_on = assumptions_of(self._problem, self._options, self._plan)
        found = []
        for load in () if leans_on is None else leans_on.leans_on:
            can = max(load.shown_bytes_per_s, load.direct_bytes_per_s)
            limits = self._limits(load, can)
            taken_s = self._fixed.makespans_s(self._draws.links, self._draws.factors, limits)
            p90_s = _ninth(taken_s)
            if p90_s > self._p90_s + self._least_s:
                moves_s = p90_s - self._p90_s
                is_finite = math.isfinite(moves_s)
                saves_s = self._saved_by_caution(limits, taken_s) if is_finite else None
                test = flood_of(self._problem, self._plan, load).command()
                of = load.direction, can, test
                found.append(Cost("assumption", (load.host,), p90_s, moves_s, saves_s, *of))
        return found

    def _limits(self, load: HostLoad, can_bytes_per_s: float) -> dict[str, FloatArray]:
        """Return the limits of hosts in each scenario if one can do no more than was shown.

        Its line is as slow as its fastest link is there: tests of them are tests of it.
        """
        problem, draws = self._problem, self._draws
        key, ends = "uplink_bytes_per_s", problem.link_from
        if load.direction == "in":
            key, ends = "downlink_bytes_per_s", problem.link_to
        host = problem.host_index[load.host]
        columns = np.flatnonzero(ends[draws.links] == host)
        rate = problem.bandwidth_bytes_per_s.max(axis=0)[draws.links[columns]]
        fastest = (rate * draws.factors[:, columns]).max(axis=1, initial=0.0)
        planned = rate.max(initial=0.0)
        most = np.full((draws.n, problem.n_hosts), np.inf)
        most[:, host] = can_bytes_per_s * (fastest / planned if planned > 0 else 1.0)
        return {key: most}

    def _saved_by_caution(self, limits: dict[str, FloatArray], taken_s: FloatArray) -> float | None:
        changed = self._problem
        for key, most in limits.items():
            # A test is taken before anybody knows how the scenario differs from the plan.
            rates = np.minimum(getattr(changed, key), np.median(most, axis=0))
            changed = changed.replace(**{key: rates}, daily=changed.daily)
        other = self._planned(changed)
        if other is None:
            return None
        others_s = FixedPlan(self._problem, other).makespans_s(
            self._draws.links, self._draws.factors, limits
        )
        # Who sees no gain keeps the plan.
        return max(0.0, _mean_saved(taken_s, others_s))

    def worth(self, cost: Cost) -> float | None:
        """Return what a plan made with the result of a test of a link saves on average."""
        problem, draws = self._problem, self._draws
        ends = (problem.host_index[name] for name in cost.hosts)
        link = int(problem.link_indices(*ends))
        column = int(np.flatnonzero(draws.links == link)[0])
        factor = draws.factors[:, column]
        # Groups of neighbours, alike in number; rates that are equal stay together.
        edges = np.unique(np.quantile(factor, np.linspace(0, 1, GROUPS + 1)[1:-1]))
        group = np.searchsorted(edges, factor, side="right")
        others_s = np.full(draws.n, np.nan)
        for one in np.unique(group).tolist():
            rows = group == one
            of_all = np.ones(problem.n_links)
            of_all[link] = factor[rows].mean()
            plan = self._planned(self._problem, of_all)
            if plan is None:
                return None
            taken_s = FixedPlan(problem, plan).makespans_s(draws.links, draws.factors[rows])
            # What is known may be used, or not: who sees no gain keeps the plan.
            keeps = self._makespans_s[rows]
            others_s[rows] = taken_s if _mean_saved(keeps, taken_s) > 0 else keeps
        return _mean_saved(self._makespans_s, others_s)

    def _planned(self, problem: Problem, factors: FloatArray | None = None) -> Schedule | None:
        """Plan by the plan's own method, on links with other rates; None where there is no plan."""
        if self._options is None:
            return None
        try:
            if factors is not None:
                problem = with_link_rates(problem, lambda rates: rates * factors)
            return candidate(problem, self._options)
        except (InfeasibleError, ProblemError, SolverError):
            return None


def _ninth(makespans_s: FloatArray) -> float:
    return quantile(makespans_s, 0.9)


def _mean_saved(before_s: FloatArray, after_s: FloatArray) -> float:
    """Return what is saved on average, in scenarios in which both end."""
    both = np.isfinite(before_s) & np.isfinite(after_s)
    return float((before_s[both] - after_s[both]).mean()) if both.any() else 0.0
