"""Why a collection takes as long as it does, and what would make it faster."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.arrival_curve import arrival_curve
from datacollect.budget import Budget
from datacollect.errors import ScheduleError
from datacollect.excess import Excess, excess_parts
from datacollect.fluid import fluid_optimum
from datacollect.full_capacities import FAIR_METHODS
from datacollect.measures import plan_money
from datacollect.plan_limits import PlanLimits, plan_limits
from datacollect.plan_relaxations import Anew, PlanAdvice, advise_plan, plan_cost
from datacollect.relaxations import Advice, advise
from datacollect.schedule import OPTIMAL
from datacollect.source_explanation import Interval, SourceExplanation, explain_sources

if TYPE_CHECKING:
    from datacollect.plan_limits import Limit
    from datacollect.problem import Problem
    from datacollect.schedule import Bottleneck, Schedule

# Instants that differ by less than this part are the same for people.
SAME = 1e-6


@dataclass(frozen=True)
class Deadline:
    """What a plan with a deadline saves by ending later than it could.

    Attributes
    ----------
    deadline_s : float
    prefer : str
        What the plan minimises, see `datacollect.plan_relaxations.plan_cost`.
    cost : float
        Of the plan.
    fastest_s, fastest_cost : float
        The fastest plan of the same kind ends then, and costs that.
    proved : bool
        No plan in time costs less.
    """

    deadline_s: float
    prefer: str
    cost: float
    fastest_s: float
    fastest_cost: float
    proved: bool


@dataclass(frozen=True)
class PlanExplanation:
    """What a plan is, when its constraints bind, and what relaxing them gains.

    All is predicted: as the plan says, not measured.

    Attributes
    ----------
    method : str
    makespan_s : float
    excess_s : float
        Makespan less lower bound.
    parts : tuple of Excess
        Causes, see `datacollect.excess`; they add up to `excess_s`.
    slot_s, chunk_s : float or None
        As in the schedule.
    prefer : str or None
        What it was planned to minimise, where known.
    money : float or None
        Price of all links; None where they have none.
    deadline : Deadline or None
        Where it was planned for one.
    coordinated_s : float or None
        When a coordinated plan ends; None for such a plan itself, and where there is none.
    binds : tuple of Limit
        What holds data back in the plan, and when; those that do so to the end first.
    advice : PlanAdvice
        What to relax first in it.
    """

    method: str
    makespan_s: float
    excess_s: float
    parts: tuple[Excess, ...]
    slot_s: float | None = None
    chunk_s: float | None = None
    prefer: str | None = None
    money: float | None = None
    deadline: Deadline | None = None
    coordinated_s: float | None = None
    binds: tuple[Limit, ...] = ()
    advice: PlanAdvice = field(default_factory=PlanAdvice)

    @property
    def is_fair(self) -> bool:
        """Whether sources share max-min fairly, so that each has a bottleneck of its own."""
        return self.method in FAIR_METHODS

    def to_dict(self) -> dict[str, Any]:
        """Return a plain tree."""
        return {
            "method": self.method,
            "makespan_s": self.makespan_s,
            "excess_s": self.excess_s,
            "parts": [asdict(part) for part in self.parts],
            "slot_s": self.slot_s,
            "chunk_s": self.chunk_s,
            "prefer": self.prefer,
            "money": self.money,
            "deadline": None if self.deadline is None else asdict(self.deadline),
            "coordinated_s": self.coordinated_s,
            "binds": [limit.to_dict() | {"sources": list(limit.sources)} for limit in self.binds],
            "relax": {
                "tried": [found.to_dict() for found in self.advice.tried],
                "n_candidates": self.advice.n_candidates,
                "why_not": self.advice.why_not,
            },
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """What `explain` found; ``str()`` is its text.

    Attributes
    ----------
    lower_bound_s : float
        The earliest instant by which all can have arrived.
    bottleneck : Bottleneck
        What forbids an earlier one.
    binds : tuple of Interval
        What binds when, if all is coordinated.
    advice : Advice
        What to relax first, if all is coordinated.
    sources : tuple of SourceExplanation
        Latest first.
    plan : PlanExplanation or None
    """

    lower_bound_s: float
    bottleneck: Bottleneck
    binds: tuple[Interval, ...]
    advice: Advice
    sources: tuple[SourceExplanation, ...]
    plan: PlanExplanation | None

    @property
    def text(self) -> str:
        """All of it in words, in lines of at most 80 columns; long lists are shortened."""
        from datacollect.explanation_text import explanation_lines

        return "\n".join(explanation_lines(self))

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``datacollect explain --json`` prints."""
        from datacollect.explanation_text import advice_text

        return {
            "lower_bound_s": self.lower_bound_s,
            "bottleneck": _bottleneck_dict(self.bottleneck),
            "binds": [
                {
                    "from_s": interval.from_s,
                    "to_s": interval.to_s,
                    "rate_bytes_per_s": interval.rate_bytes_per_s,
                    **_bottleneck_dict(interval.bottleneck),
                }
                for interval in self.binds
            ],
            "relax": {
                "alone": [relaxation.to_dict() for relaxation in self.advice.alone],
                "pairs": [relaxation.to_dict() for relaxation in self.advice.pairs],
                "n_candidates": self.advice.n_candidates,
                "text": advice_text(self.advice),
            },
            "sources": [source.to_dict() for source in self.sources],
            "plan": None if self.plan is None else self.plan.to_dict(),
        }


def explain(problem: Problem, plan: Schedule | None = None, *, solver: str = "auto") -> Explanation:
    """Say what binds when, what to relax first and what that gains, and what limits each source.

    Parameters
    ----------
    problem : Problem
    plan : Schedule, optional
        A schedule for this problem, by any method: then also what binds when in it, what holds
        each source back, why it ends later than the lower bound, and what to relax first for its
        own method.
    solver : str
        ``"auto"``, ``"ortools"``, ``"networkx"``, ``"pulp"`` or ``"lemon"``.

    Returns
    -------
    Explanation

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination; the message says whose and why.

    Notes
    -----
    What binds when follows the arrival curve (see `datacollect.arrival_curve`); gains are
    differences of lower bounds, each by solving the changed problem. At most ten constraints are
    tried, the largest of those that cross the binding cut.

    A plan's own constraints are read from its transfers (see `datacollect.plan_limits`). Gains in a
    plan are differences of two plans by its own method; at most five constraints are tried (see
    `datacollect.plan_relaxations`).

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
    budget = Budget.begin(solver)
    optimum = fluid_optimum(problem, budget)
    curve = arrival_curve(problem, budget)
    spans = zip(curve.time_s, curve.time_s[1:], curve.rates_bytes_per_s, strict=False)
    binds = tuple(
        Interval(float(start), float(end), float(rate), bottleneck)
        for (start, end, rate), bottleneck in zip(spans, curve.bottlenecks, strict=True)
    )
    advice = advise(problem, curve, budget)
    limits, explained = PlanLimits(), None
    if plan is not None:
        broken = _broken(problem, plan)
        if not broken:
            limits = plan_limits(problem, plan)
        anew = Anew(problem, plan, solver)
        explained = _explain_plan(anew, optimum.makespan_s, limits, advice, broken)
    return Explanation(
        optimum.makespan_s,
        optimum.bottleneck,
        binds,
        advice,
        explain_sources(problem, plan, binds, limits, budget),
        explained,
    )


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
    anew: Anew, lower_bound_s: float, limits: PlanLimits, advice: Advice, broken: str
) -> PlanExplanation:
    problem, plan = anew.problem, anew.plan
    excess_s = plan.makespan_s - lower_bound_s
    if broken:
        wrong = (Excess("other", excess_s, broken),)
        return PlanExplanation(plan.method, plan.makespan_s, excess_s, wrong)
    parts: tuple[Excess, ...] = ()
    if excess_s > SAME * lower_bound_s:
        parts = tuple(excess_parts(anew, lower_bound_s))
    together = anew.coordinated
    return PlanExplanation(
        plan.method,
        plan.makespan_s,
        excess_s,
        parts,
        plan.slot_s,
        plan.chunk_s,
        plan.prefer,
        plan_money(problem, plan),
        _deadline(anew),
        None if together is None else together.makespan_s,
        limits.binds,
        advise_plan(anew, limits, advice),
    )


def _deadline(anew: Anew) -> Deadline | None:
    plan, fastest = anew.plan, anew.fastest
    if plan.deadline_s is None or plan.prefer is None or fastest is None:
        return None
    return Deadline(
        plan.deadline_s,
        plan.prefer,
        plan_cost(anew.problem, plan, plan.prefer),
        fastest.makespan_s,
        plan_cost(anew.problem, fastest, plan.prefer),
        plan.status == OPTIMAL,
    )


def _bottleneck_dict(bottleneck: Bottleneck) -> dict[str, Any]:
    return {"kind": bottleneck.kind, "hosts": list(bottleneck.hosts), "text": bottleneck.text}
