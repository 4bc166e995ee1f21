"""Explains why a collection takes as long as it does, and what would make it faster."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from datacollect.errors import ScheduleError
from datacollect.explanation.connection_gains import explain_connections
from datacollect.explanation.excess import Excess, excess_parts
from datacollect.explanation.findings import DeadlineSaving, Explanation, PlanExplanation
from datacollect.explanation.leaning import cautious_bound_s, plan_assumptions, wires_known
from datacollect.explanation.plan_limits import PlanLimits, plan_limits
from datacollect.explanation.plan_relaxations import advise_plan, plan_cost
from datacollect.explanation.relaxations import advise
from datacollect.explanation.sources import BindingInterval, explain_sources
from datacollect.explanation.text import explanation_lines
from datacollect.explanation.tolerances import SAME
from datacollect.explanation.what_if import WhatIf
from datacollect.files.stages import stage
from datacollect.flow.arrival_curve import arrival_curve
from datacollect.flow.optimum import listed_optimum
from datacollect.methods.timing.tolerances import PROVED
from datacollect.problem.cycles import has_windows
from datacollect.schedule.data.contents import OPTIMAL
from datacollect.schedule.data.use import plan_money
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from datacollect.explanation.relaxations import Advice
    from datacollect.files.choices import Preference
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


def explain(
    problem: Problem, plan: Schedule | None = None, *, solver: Solver = "auto"
) -> Explanation:
    """Say what binds when, what to relax first and what that gains, and what limits each source.

    Parameters
    ----------
    problem : Problem
    plan : Schedule, optional
        A schedule for this problem, by any method: then also what binds when in it, what holds
        each source back, why it ends later than the lower bound, and what to relax first for its
        own method.
    solver : str
        ``"auto"``, the fastest that is installed, or a name of `datacollect.solvers.registry`.

    Returns
    -------
    Explanation

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination; the message says whose and why.

    Notes
    -----
    What binds when follows the arrival curve (see `datacollect.flow.arrival_curve`); gains are
    differences of lower bounds, each by solving the changed problem. At most ten constraints are
    tried, the largest of those that cross the binding cut.

    A plan that shares out connections is explained by what a few more would save, and where.

    A plan's own constraints are read from its transfers (see
    `datacollect.explanation.plan_limits`). Gains in a plan are differences of two plans by its own
    method; at most five constraints are tried (see `datacollect.explanation.plan_relaxations`).

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 2e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> found = dc.explain(problem)
    >>> found.lower_bound_s
    2.0
    >>> best = found.advice.alone[0]
    >>> best.names, round(best.saves_s, 3), round(best.saves_unlimited_s, 3)
    (("link 'S' -> 'D'",), 0.118, 2.0)

    Direct, S has its own link only, 4 s; a tenth more bandwidth saves a part of 1 - 1/1.1:

    >>> best = dc.explain(problem, dc.direct(problem)).plan.advice.tried[0]
    >>> best.names, round(best.saves_s, 3)
    (("link 'S' -> 'D'",), 0.364)
    """
    if plan is not None and plan.connections is not None:
        found = explain_connections(problem, plan, _broken(problem, plan), solver)
        return replace(found, text="\n".join(explanation_lines(found, problem.clock)))
    budget = Budget.begin(solver)
    if plan is not None and has_windows(problem):
        problem = problem.until(plan.makespan_s)
    with stage("the lower bound, and what binds when"):
        problem, optimum = listed_optimum(problem, budget)
        curve = arrival_curve(problem, budget)
    times, rates = curve.time_s.tolist(), curve.rates_bytes_per_s.tolist()
    binds = tuple(
        BindingInterval(start, end, rate, curve.bottlenecks, number)
        for number, ((start, end), rate) in enumerate(zip(pairwise(times), rates, strict=True))
    )
    advice = advise(problem, curve, budget)
    limits, explained = PlanLimits(), None
    if plan is not None:
        broken = _broken(problem, plan)
        if not broken:
            limits = plan_limits(problem, plan)
        what_if = WhatIf(problem, plan, solver)
        explained = _explain_plan(what_if, optimum.makespan_s, limits, advice, broken)
    found = Explanation(
        optimum.makespan_s,
        optimum.bottleneck,
        binds,
        advice,
        explain_sources(problem, plan, binds, limits, budget),
        explained,
        None if plan is not None else cautious_bound_s(problem, optimum.makespan_s, budget),
    )
    return replace(found, text="\n".join(explanation_lines(found, problem.clock)))


# The plan -------------------------------------------------------------------------------------


def _broken(problem: Problem, plan: Schedule) -> str:
    """Say why a plan is none for this problem; empty where it is one."""
    if plan.problem_sha256 != problem.sha256:
        return "the plan was made for another problem"
    try:
        plan.check(problem)
    except ScheduleError as error:
        return f"the plan breaks a rule: {error}"
    return ""


def _explain_plan(
    what_if: WhatIf, lower_bound_s: float, limits: PlanLimits, advice: Advice, broken: str
) -> PlanExplanation:
    problem, plan = what_if.problem, what_if.plan
    excess_s = plan.makespan_s - lower_bound_s
    if broken:
        wrong = (Excess("other", excess_s, broken),)
        return PlanExplanation(plan.method, plan.makespan_s, excess_s, wrong)
    parts: tuple[Excess, ...] = ()
    if excess_s > SAME * lower_bound_s:
        parts = tuple(excess_parts(what_if, lower_bound_s))
    together = what_if.coordinated
    return PlanExplanation(
        plan.method,
        plan.makespan_s,
        excess_s,
        parts,
        plan.slot_s,
        plan.chunk_s,
        plan.prefer,
        plan_money(problem, plan),
        _deadline(what_if),
        None if together is None else together.makespan_s,
        limits.binds,
        advise_plan(what_if, limits, advice),
        assumptions=plan_assumptions(problem, plan, what_if.solver),
        wires_known=wires_known(problem, plan),
    )


def _deadline(what_if: WhatIf) -> DeadlineSaving | None:
    plan, fastest = what_if.plan, what_if.fastest
    if plan.deadline_s is None or plan.prefer is None or fastest is None:
        return None
    cost = plan_cost(what_if.problem, plan, plan.prefer)
    gap = _gap(what_if, cost, plan.prefer)
    return DeadlineSaving(
        plan.deadline_s,
        plan.prefer,
        cost,
        fastest.makespan_s,
        plan_cost(what_if.problem, fastest, plan.prefer),
        proved=gap is not None and gap <= PROVED,
        gap=gap,
    )


def _gap(what_if: WhatIf, cost: float, prefer: Preference) -> float | None:
    """Return the part by which a plan costs at most more than the least in time; None if unknown.

    How long pipelines drain depends on which of several cheapest plans a solver finds. Cut-through
    plans need not drain: none with chunks costs less.
    """
    plan = what_if.plan
    if plan.status != OPTIMAL:
        return None
    if not plan.chunk_s:
        return 0.0
    least = what_if.cut_through
    if least is None or least.status != OPTIMAL:
        return None
    least_cost = plan_cost(what_if.problem, least, prefer)
    if least_cost <= 0:
        return 0.0 if cost <= 0 else None
    return max(cost - least_cost, 0.0) / least_cost
