"""Why a collection takes as long as it does, and what would make it faster."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.arrival_curve import arrival_curve
from datacollect.bottleneck import name_hosts
from datacollect.budget import Budget
from datacollect.fluid import fluid_optimum
from datacollect.measures import source_completion_s
from datacollect.methods.best_path import best_path
from datacollect.relaxations import Advice, Relaxation, advise
from datacollect.units import format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.problem import Problem
    from datacollect.schedule import Bottleneck, Schedule

WIDTH = 80
SHOWN_INTERVALS, SHOWN_RELAXATIONS, SHOWN_SOURCES = 6, 6, 8

# Each source by itself is a problem to solve: links times sources beyond this are for the slowest
# and largest sources only.
MOST_LINKS_SOLVED = 20_000_000
FEWEST_SOURCES_SOLVED = 10

# Instants that differ by less than this part are the same for people.
SAME = 1e-6


@dataclass(frozen=True)
class Interval:
    """What binds between two instants, if as much as possible arrives at every instant."""

    from_s: float
    to_s: float
    rate_bytes_per_s: float
    bottleneck: Bottleneck


@dataclass(frozen=True)
class SourceExplanation:
    """When one source finishes, and why not sooner.

    Attributes
    ----------
    source : str
    n_bytes : int
        What has yet to arrive.
    finish_s : float or None
        In the plan; None without one.
    alone_s : float or None
        The earliest if it alone had to move; None where it was not computed, in large problems.
    limited_by : str
        ``"itself"``: alone it is no faster; ``"binding cut"``: it shares what binds when it
        finishes; ``"others"``: neither; then others go first, or the method keeps it back.
    text : str
    """

    source: str
    n_bytes: int
    finish_s: float | None
    alone_s: float | None
    limited_by: str
    text: str


@dataclass(frozen=True)
class Excess:
    """One cause for which a plan ends later than the lower bound."""

    cause: str
    seconds: float
    text: str


@dataclass(frozen=True)
class PlanExplanation:
    """How a plan compares with the lower bound. Predicted: as the plan says, not measured.

    Attributes
    ----------
    method : str
    makespan_s : float
    excess_s : float
        Makespan less lower bound.
    parts : tuple of Excess
        Causes ``"method"``; ``"slots"``, rounding up to whole ones; ``"hops"``, one per slot;
        ``"chunks"``; ``"other"``. They add up to `excess_s`.
    """

    method: str
    makespan_s: float
    excess_s: float
    parts: tuple[Excess, ...]


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
        What binds when.
    advice : Advice
        What to relax first.
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
        return "\n".join(_lines(self))

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``datacollect explain --json`` prints."""
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
                "text": _advice_text(self.advice),
            },
            "sources": [asdict(source) for source in self.sources],
            "plan": None if self.plan is None else asdict(self.plan),
        }


def explain(problem: Problem, plan: Schedule | None = None, *, solver: str = "auto") -> Explanation:
    """Say what binds when, what to relax first and what that gains, and what limits each source.

    Parameters
    ----------
    problem : Problem
    plan : Schedule, optional
        A schedule for this problem, by any method: then also when each source finishes in it, and
        why it ends later than the lower bound.
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
    """
    budget = Budget.begin(solver)
    optimum = fluid_optimum(problem, budget)
    curve = arrival_curve(problem, budget)
    spans = zip(curve.time_s, curve.time_s[1:], curve.rates_bytes_per_s, strict=False)
    binds = tuple(
        Interval(float(start), float(end), float(rate), bottleneck)
        for (start, end, rate), bottleneck in zip(spans, curve.bottlenecks, strict=True)
    )
    return Explanation(
        optimum.makespan_s,
        optimum.bottleneck,
        binds,
        advise(problem, curve, budget),
        _explain_sources(problem, plan, binds, budget),
        None if plan is None else _explain_plan(problem, plan, optimum.makespan_s, solver),
    )


# Sources --------------------------------------------------------------------------------------


def _explain_sources(
    problem: Problem, plan: Schedule | None, binds: Sequence[Interval], budget: Budget
) -> tuple[SourceExplanation, ...]:
    n_bytes = dict.fromkeys(problem.sources, 0)
    for parcel in problem.parcels:
        n_bytes[problem.names[parcel.source]] += parcel.n_bytes
    finish_s = {} if plan is None else source_completion_s(plan)
    order = sorted(n_bytes, key=lambda s: (-finish_s.get(s, 0.0), -n_bytes[s]))
    affordable = max(FEWEST_SOURCES_SOLVED, MOST_LINKS_SOLVED // max(problem.n_links, 1))
    found = []
    for rank, source in enumerate(order):
        alone = fluid_optimum(_only(problem, source), budget) if rank < affordable else None
        found.append(
            _explain_source(
                source,
                n_bytes[source],
                finish_s.get(source),
                None if alone is None else (alone.makespan_s, alone.bottleneck),
                binds,
            )
        )
    if plan is None:
        found.sort(key=lambda each: -(each.alone_s or 0.0))
    return tuple(found)


def _only(problem: Problem, source: str) -> Problem:
    """Return the problem in which nobody else has anything to move."""
    backlog = np.zeros_like(problem.backlog_bytes)
    number = problem.host_index[source]
    backlog[number] = problem.backlog_bytes[number]
    held = tuple(held for held in problem.held if held.source == source)
    return problem.replace(backlog_bytes=backlog, held=held)


def _explain_source(
    source: str,
    n_bytes: int,
    finish_s: float | None,
    alone: tuple[float, Bottleneck] | None,
    binds: Sequence[Interval],
) -> SourceExplanation:
    end_s = binds[-1].to_s if finish_s is None else min(finish_s, binds[-1].to_s)
    interval = next(i for i in binds if end_s <= i.to_s)
    shares = source in interval.bottleneck.hosts
    alone_s = None if alone is None else alone[0]
    if alone is not None and alone[0] >= (finish_s or end_s) * (1 - SAME):
        return SourceExplanation(source, n_bytes, finish_s, alone_s, "itself", alone[1].text)
    if shares:
        others = len(interval.bottleneck.hosts) - 1
        until = format_duration(interval.to_s)
        text = f"shares what binds until {until} with {others} more"
        if not others:
            text = f"is alone behind what binds until {until}"
        return SourceExplanation(source, n_bytes, finish_s, alone_s, "binding cut", text)
    text = "is not behind what binds then: it could be done earlier"
    return SourceExplanation(source, n_bytes, finish_s, alone_s, "others", text)


# The plan -------------------------------------------------------------------------------------


def _explain_plan(
    problem: Problem, plan: Schedule, lower_bound_s: float, solver: str
) -> PlanExplanation:
    excess_s = plan.makespan_s - lower_bound_s
    parts: tuple[Excess, ...] = ()
    if plan.problem_sha256 != problem.sha256:
        parts = (Excess("other", excess_s, "the plan was made for another problem"),)
    elif excess_s > SAME * lower_bound_s:
        parts = tuple(_parts(problem, plan, lower_bound_s, solver))
    return PlanExplanation(plan.method, plan.makespan_s, excess_s, parts)


def _parts(problem: Problem, plan: Schedule, lower_bound_s: float, solver: str) -> Iterable[Excess]:
    """Divide what a plan takes beyond the lower bound."""
    ideal_s = lower_bound_s
    if plan.method == "direct":
        ideal_s = plan.makespan_s
    elif plan.method == "best-path":  # as if relays passed everything on at once
        ideal_s = min(best_path(problem, chunk_s=0.0, solver=solver).makespan_s, plan.makespan_s)
    if ideal_s - lower_bound_s > SAME * lower_bound_s:
        last = [
            s for s, t in source_completion_s(plan).items() if t >= plan.makespan_s * (1 - SAME)
        ]
        text = f"{plan.method} uses one route per source; {name_hosts(last)} last"
        yield Excess("method", ideal_s - lower_bound_s, text)
    rest_s = plan.makespan_s - ideal_s
    hops = max((route.n_hops for route in plan.routes), default=1)
    if plan.slot_s:
        whole_s = float(np.ceil(ideal_s / plan.slot_s - SAME)) * plan.slot_s - ideal_s
        rounding_s = min(max(whole_s, 0.0), rest_s)
        if rounding_s > 0:
            yield Excess("slots", rounding_s, "rounded up to whole slots")
        if rest_s - rounding_s > SAME * lower_bound_s:
            text = f"data cross one hop per slot, and routes have up to {hops}"
            yield Excess("hops", rest_s - rounding_s, text)
        return
    chunks_s = min(rest_s, (hops - 1) * (plan.chunk_s or 0.0))
    if chunks_s > 0:
        text = f"relays wait for chunks of {format_duration(plan.chunk_s or 0.0)}"
        yield Excess("chunks", chunks_s, f"{text} on routes of up to {hops} hops")
    if rest_s - chunks_s > SAME * lower_bound_s:
        text = "pipelines drain before bandwidths change, or a later end was asked for"
        yield Excess("other", rest_s - chunks_s, text)


# In words -------------------------------------------------------------------------------------


def _lines(found: Explanation) -> Iterable[str]:
    yield from _wrapped(f"Earliest end of all: {format_duration(found.lower_bound_s)}.", "")
    if found.plan is not None:
        yield from _plan_lines(found.plan, found.lower_bound_s)
    if not found.binds:
        yield found.bottleneck.text
        return
    yield from ("", "What binds when")
    for interval in found.binds[:SHOWN_INTERVALS]:
        until = f"{format_duration(interval.from_s)} to {format_duration(interval.to_s)}"
        rate = format_rate(interval.rate_bytes_per_s)
        yield from _wrapped(f"{until}, {rate}: {interval.bottleneck.text}", "  ")
    yield from _more(len(found.binds) - SHOWN_INTERVALS, "intervals")
    yield from ("", "What to relax first")
    yield from _advice_lines(found.advice)
    yield from ("", "Sources" if found.plan is None else "Sources, the last to finish first")
    for source in found.sources[:SHOWN_SOURCES]:
        yield from _wrapped(_source_text(source), "  ")
    yield from _more(len(found.sources) - SHOWN_SOURCES, "sources")


def _plan_lines(plan: PlanExplanation, lower_bound_s: float) -> Iterable[str]:
    text = f"The plan ({plan.method}) is predicted to end at {format_duration(plan.makespan_s)}"
    if plan.excess_s > SAME * lower_bound_s:
        share = f", {plan.excess_s / lower_bound_s:.2%}" if lower_bound_s > 0 else ""
        text += f": {format_duration(plan.excess_s)}{share} later"
    yield from _wrapped(f"{text}.", "")
    for part in plan.parts:
        yield from _wrapped(f"{part.cause}: {format_duration(part.seconds)}, {part.text}", "  ")


def _source_text(source: SourceExplanation) -> str:
    text = f"{source.source!r} ({format_bytes(source.n_bytes)})"
    if source.finish_s is not None:
        text += f" finishes at {format_duration(source.finish_s)}"
    if source.alone_s is not None:
        text += f", alone at {format_duration(source.alone_s)} at the earliest"
    return f"{text}: {source.text}"


def _advice_lines(advice: Advice) -> Iterable[str]:
    yield from _wrapped(_advice_text(advice), "  ")
    for number, alike in enumerate(_groups(advice.helps)[:SHOWN_RELAXATIONS], start=1):
        yield from _wrapped(f"{number}. {_relaxation_text(alike)}", "  ")
    yield from _more(len(_groups(advice.helps)) - SHOWN_RELAXATIONS, "ways")


def _advice_text(advice: Advice) -> str:
    """Say in a sentence how far the advice goes."""
    tried = f"{len(advice.alone)} of {advice.n_candidates} constraints that bind were tried"
    if not advice.alone:
        return "No constraint can be relaxed."
    if not advice.pairs:
        return f"{tried}, each alone:"
    every = len(advice.alone) == advice.n_candidates
    text = f"{'Nothing alone helps' if every else 'Nothing tried helps alone'} ({tried})"
    if advice.helps:
        return f"{text}: another cut is as tight. Two together do:"
    return f"{text}, nor does any of {len(advice.pairs)} pairs: several cuts are as tight."


def _groups(found: Iterable[Relaxation]) -> list[list[Relaxation]]:
    """Put those of one kind together of which a step gains the same; best first."""
    groups: dict[tuple[object, ...], list[Relaxation]] = {}
    for relaxation in found:
        kinds = tuple(resource.kind for resource in relaxation.resources)
        groups.setdefault((kinds, f"{relaxation.saves_s:.5g}"), []).append(relaxation)
    return list(groups.values())


def _relaxation_text(alike: list[Relaxation]) -> str:
    first, *others = alike
    parts = zip(first.resources, first.names, first.now, strict=True)
    what = " with ".join(f"{name} ({_value(r.kind, now)})" for r, name, now in parts)
    if others:
        what += f", or {len(others)} more alike"
    steps = [_step_text(r.kind, step) for r, step in zip(first.resources, first.steps, strict=True)]
    step = f"{steps[0]}{' each' * (len(steps) > 1)}" if len(set(steps)) == 1 else ", ".join(steps)
    most = format_duration(first.saves_unlimited_s)
    least = format_duration(alike[-1].saves_unlimited_s)
    return (
        f"{what}: {step} saves {format_duration(first.saves_s)}, no limit at all "
        f"{most if most == least else f'{least} to {most}'}"
    )


def _value(kind: str, now: float) -> str:
    if kind == "storage":
        return format_bytes(now)
    return format_duration(now) if kind == "release" else format_rate(now)


def _step_text(kind: str, step: float) -> str:
    if kind == "release":
        return f"{format_duration(step)} earlier"
    return f"{format_bytes(step) if kind == 'storage' else format_rate(step)} more"


def _more(n_more: int, what: str) -> Iterable[str]:
    if n_more > 0:
        yield f"  and {n_more} more {what}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  " * bool(indent),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _bottleneck_dict(bottleneck: Bottleneck) -> dict[str, Any]:
    return {"kind": bottleneck.kind, "hosts": list(bottleneck.hosts), "text": bottleneck.text}
