"""An explanation in words, in lines for a terminal of 80 columns; long lists are shortened."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from datacollect.explanation.plan_limits import together
from datacollect.explanation.plan_relaxations import AS_THE_BOUND
from datacollect.explanation.resources import value_text, values_text
from datacollect.explanation.tolerances import SAME
from datacollect.explanation.window_hours import STEP_S
from datacollect.files.units import counted, format_bytes, format_duration, format_rate
from datacollect.flow.quickest.bottleneck import name_hosts
from datacollect.methods.choice import spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.explanation.findings import (
        ConnectionGain,
        DeadlineSaving,
        Explanation,
        PlanExplanation,
    )
    from datacollect.explanation.plan_limits import Limit
    from datacollect.explanation.plan_relaxations import PlanRelaxation
    from datacollect.explanation.relaxations import Advice, Relaxation
    from datacollect.explanation.resources import Resource
    from datacollect.explanation.sources import BindingInterval, SourceExplanation
    from datacollect.files.choices import Preference
    from datacollect.files.clock import Clock

WIDTH = 80
SHOWN_INTERVALS, SHOWN_RELAXATIONS, SHOWN_SOURCES = 6, 6, 8

UNKNOWN_WIRES = (
    "It is not known which links share a wire on their way: no [[shared]] is given. Routes over "
    "relays may gain less than the plan says."
)

# What the preferences minimise.
WISHES = {
    "relay-bytes": "Bytes through relays",
    "storage": "Others' data at relays, bytes times seconds",
    "earliest-arrival": "When bytes arrive, on average",
    "money": "Price of all links",
}


def explanation_lines(found: Explanation, clock: Clock | None = None) -> Iterable[str]:
    """Yield all that an explanation says; ends also as `clock` shows them, where there is one."""
    yield from _wrapped(f"Earliest end of all: {_end_text(found.lower_bound_s, clock)}.", "")
    if found.cautious_lower_bound_s is not None:
        cautious = _end_text(found.cautious_lower_bound_s, clock)
        yield from _wrapped(
            f"If no host sends or receives more at once than a test has shown: {cautious}; a plan "
            "names the hosts.",
            "",
        )
    plan = found.plan
    if plan is not None:
        yield from _plan_lines(plan, found.lower_bound_s, clock)
    if not found.binds:
        yield found.bottleneck.text
        return
    if plan is None or plan.advice.why_not == AS_THE_BOUND or not plan.binds:
        most = " (with as much as possible arriving at every instant)"
        yield from _interval_lines(found.binds, most if len(found.binds) > 1 else "")
        yield from _advice_lines(found.advice, "")
        yield from _source_lines(found.sources, with_plan=plan is not None)
        return
    end = ", if all were coordinated" if plan.is_fair else ", for the earliest end"
    if not spec_of(plan.method).attains_bound or plan.deadline is not None:
        yield from ("", "What binds when, in this plan")
        yield from _limit_lines(plan.binds)
        yield from _advice_of_plan_lines(plan)
        yield from _source_lines(found.sources, with_plan=True)
        yield from _interval_lines(found.binds, end)
        yield from _advice_lines(found.advice, end)
    else:
        yield from _interval_lines(found.binds, end)
        yield from _advice_of_plan_lines(plan)
        yield from _advice_lines(found.advice, end)
        yield from _source_lines(found.sources, with_plan=True)


# The plan -------------------------------------------------------------------------------------


def _plan_lines(plan: PlanExplanation, lower_bound_s: float, clock: Clock | None) -> Iterable[str]:
    end = _end_text(plan.makespan_s, clock)
    text = f"The plan ({plan.method}) is predicted to end at {end}"
    if plan.excess_s > SAME * lower_bound_s:
        share = f", {plan.excess_s / lower_bound_s:.2%}" if lower_bound_s > 0 else ""
        text += f": {format_duration(plan.excess_s)}{share} later"
    yield from _wrapped(f"{text}.", "")
    if plan.assumptions is not None and plan.assumptions.matter:
        yield from _wrapped(" ".join(plan.assumptions.lines), "")
        yield from _wrapped(plan.assumptions.advice, "")
    for part in plan.parts:
        yield from _wrapped(f"{part.cause}: {format_duration(part.seconds)}, {part.text}", "  ")
    if plan.deadline is not None:
        yield from _wrapped(_deadline_text(plan, plan.deadline, clock), "")
    elif plan.money is not None:
        yield from _wrapped(f"The price of all links is {plan.money:.4g}.", "")
    if not plan.wires_known:
        yield from _wrapped(UNKNOWN_WIRES, "")
    for gain in plan.more:
        yield from _wrapped(_more_text(gain), "")
    if plan.coordinated_s is not None:
        yield from _wrapped(_coordination_text(plan.makespan_s, plan.coordinated_s), "")


def _more_text(gain: ConnectionGain) -> str:
    number = {1: "One more connection", 2: "Two more connections"}.get(
        gain.connections, f"{gain.connections} more connections"
    )
    verb = "saves" if gain.connections == 1 else "save"
    saved = format_duration(gain.saves_s) if gain.saves_s > 0 else "nothing"
    if not gain.names:
        return f"{number} {verb} {saved} if all are shared out again."
    each = " and ".join(gain.names)
    return f"{number} on {each}{', one each,' if len(gain.names) > 1 else ''} {verb} {saved}."


def _end_text(at_s: float, clock: Clock | None) -> str:
    after = format_duration(at_s)
    return after if clock is None else f"{after} ({clock.text(at_s)})"


def _deadline_text(plan: PlanExplanation, found: DeadlineSaving, clock: Clock | None) -> str:
    shape = " with such chunks" if plan.chunk_s else " in such slots" if plan.slot_s else ""
    kind = " in such slots" if plan.slot_s else ""
    cost = _cost_text(found.prefer, found.cost)
    if found.proved:
        cost += f", the least of all plans{kind} in time"
    elif found.gap is not None:
        cost += f", at most {max(100 * found.gap, 0.01):.2g} % more than any plan in time"
    return (
        f"It was planned to end by {_end_text(found.deadline_s, clock)}, and could end at "
        f"{_end_text(found.fastest_s, clock)}{shape}. {WISHES[found.prefer]}: {cost}; "
        f"{_cost_text(found.prefer, found.fastest_cost)} in the plan that ends soonest."
    )


def _cost_text(prefer: Preference, cost: float) -> str:
    if prefer == "money":
        return f"{cost:.4g}"
    if prefer == "earliest-arrival":
        return format_duration(cost)
    return format_bytes(cost) + ("·s" if prefer == "storage" else "")


def _coordination_text(makespan_s: float, coordinated_s: float) -> str:
    saves_s = makespan_s - coordinated_s
    text = f"Coordinated it would end at {format_duration(coordinated_s)}"
    if saves_s > SAME * makespan_s:
        return f"{text}, {format_duration(saves_s)} sooner."
    return f"{text}: that gains nothing."


def _limit_lines(binds: Sequence[Limit]) -> Iterable[str]:
    groups: dict[Resource, list[Limit]] = {}
    for limit in binds:
        groups.setdefault(limit.resource, []).append(limit)
    for limits in list(groups.values())[:SHOWN_INTERVALS]:
        yield from _wrapped(_limits_text(limits), "  ")
    yield from _more(len(groups) - SHOWN_INTERVALS, "constraint")


def _limits_text(limits: list[Limit]) -> str:
    """Say when one constraint binds, and whom it holds back."""
    whole = together(limits)
    span = f"{format_duration(whole.from_s)} to {format_duration(whole.to_s)}"
    if len(limits) > 1:
        span += f", {len(limits)} times"
    who, several = name_hosts(whole.sources), len(whole.sources) > 1
    kind = whole.resource.kind
    if kind == "release":
        return f"{span}: {who} is not released yet"
    if kind == "production":
        return f"{span}: {who} makes no more ({values_text(kind, whole.values)})"
    if kind == "turns":
        return (
            f"{span}: {who} wait{'' if several else 's'} for {'turns' if several else 'its turn'}"
        )
    return f"{span}: {whole.text} holds back {who}"


def _advice_of_plan_lines(plan: PlanExplanation) -> Iterable[str]:
    advice = plan.advice
    cheaper = plan.deadline is not None
    yield from ("", f"What to relax first, {'to make it cheaper' if cheaper else 'in this plan'}")
    if advice.why_not:
        yield from _wrapped(f"Not computed: {advice.why_not}.", "  ")
        return
    helps = [found for found in advice.tried if found.helps]
    tried = sum(len(found.resources) == 1 for found in advice.tried)
    compares = spec_of(plan.method).compares_direct_links
    bind = "that bind, or decide routes," if compares else "that bind"
    text = f"{tried} of {advice.n_candidates} constraints {bind} were tried, "
    if tried < advice.n_candidates and plan.is_fair:
        text += "those of the last to finish, "
    elif tried < advice.n_candidates:
        text += "those of the costliest sources, " if cheaper else "the best for the earliest end, "
    text += f"each by planning again ({plan.method})"
    none = {0: "", 1: ": it does not help"}.get(tried, f": none of the {tried} tried helps")
    yield from _wrapped(f"{text}:" if helps else f"{text}{none}.", "  ")
    for number, found in enumerate(helps[:SHOWN_RELAXATIONS], start=1):
        yield from _wrapped(f"{number}. {_plan_relaxation_text(found, plan.deadline)}", "  ")


def _plan_relaxation_text(found: PlanRelaxation, deadline: DeadlineSaving | None) -> str:
    kinds = [one.resource.kind for one in found.relaxed]
    what = " with ".join(one.text for one in found.relaxed)
    step, limitless = "10% more", "no limit at all"
    if kinds == ["release"]:
        step, limitless = "10% earlier", "at once"
    elif kinds == ["turns"]:
        step, limitless = f"{found.relaxed[0].now + 1:.0f} at a time", "all at once"
    elif kinds == ["window"]:
        step = _step_text(found.relaxed[0].resource, found.relaxed[0].step)
    elif "window" in kinds:
        step = f"10% more and {format_duration(STEP_S)} longer"
    if len(kinds) > 1:
        step += " of each"
    return f"{what}: {step} {_gain_text(found, deadline)}, {limitless} " + _gain_text(
        found, deadline, without_limit=True
    )


def _gain_text(
    found: PlanRelaxation, deadline: DeadlineSaving | None, *, without_limit: bool = False
) -> str:
    saves_s = found.saves_unlimited_s if without_limit else found.saves_s
    cost = found.saves_cost_unlimited if without_limit else found.saves_cost
    if saves_s is None:
        return "leaves no plan"
    if deadline is not None and cost is not None:
        return f"saves {_cost_text(deadline.prefer, cost)}"
    if saves_s < 0:
        return f"ends {format_duration(-saves_s)} later"
    return f"saves {format_duration(saves_s) if saves_s else 'nothing'}"


# The lower bound ------------------------------------------------------------------------------


def _interval_lines(binds: Sequence[BindingInterval], of_what: str) -> Iterable[str]:
    yield from ("", f"What binds when{of_what}")
    for interval in binds[:SHOWN_INTERVALS]:
        yield from _wrapped(_interval_text(interval), "  ")
    yield from _more(len(binds) - SHOWN_INTERVALS, "interval")


def _interval_text(interval: BindingInterval) -> str:
    until = f"{format_duration(interval.from_s)} to {format_duration(interval.to_s)}"
    return f"{until}, {format_rate(interval.rate_bytes_per_s)}: {interval.bottleneck.text}"


def _advice_lines(advice: Advice, of_what: str) -> Iterable[str]:
    yield from ("", f"What to relax first{of_what}")
    yield from _wrapped(advice.text, "  ")
    groups = _groups(advice.helps)
    for number, alike in enumerate(groups[:SHOWN_RELAXATIONS], start=1):
        yield from _wrapped(f"{number}. {_relaxation_text(alike)}", "  ")
    yield from _more(len(groups) - SHOWN_RELAXATIONS, "way")


def _groups(found: Iterable[Relaxation]) -> list[list[Relaxation]]:
    """Put those of one kind together of which a step gains the same; best first.

    Where a step gains nothing, what no limit gains is all that is told: no two are alike then.
    """
    groups: dict[tuple[object, ...], list[Relaxation]] = {}
    for relaxation in found:
        kinds = tuple(resource.kind for resource in relaxation.resources)
        ends = tuple(resource.end for resource in relaxation.resources)
        helps = relaxation.saves_s > 0
        gain = relaxation.saves_s if helps else relaxation.saves_unlimited_s
        groups.setdefault((kinds, ends, helps, f"{gain:.5g}"), []).append(relaxation)
    return list(groups.values())


def _relaxation_text(alike: list[Relaxation]) -> str:
    first, *others = alike
    what = " with ".join(one.text for one in first.relaxed)
    if others:
        what += f", or {'another' if len(others) == 1 else f'one of {len(others)} others'} like it"
    steps = [_step_text(one.resource, one.step) for one in first.relaxed]
    step = f"{steps[0]}{' each' * (len(steps) > 1)}" if len(set(steps)) == 1 else ", ".join(steps)
    most = format_duration(first.saves_unlimited_s)
    least = format_duration(alike[-1].saves_unlimited_s)
    saved = f"saves {format_duration(first.saves_s)}"
    if not first.saves_s and [one.resource.kind for one in first.relaxed] == ["window"]:
        step, saved = (
            f"{format_duration(first.relaxed[0].step)} more at either end",
            "saves nothing",
        )
    return (
        f"{what}: {step} {saved}, no limit at all saves "
        f"{most if most == least else f'{least} to {most}'}"
    )


def _step_text(resource: Resource, step: float) -> str:
    kind = resource.kind
    if kind == "window":
        if resource.end == "opens":
            return f"to open {format_duration(step)} earlier each time"
        return f"to close {format_duration(step)} later each time"
    return f"{value_text(kind, step)} {'earlier' if kind == 'release' else 'more'}"


# Sources --------------------------------------------------------------------------------------


def _source_lines(sources: Sequence[SourceExplanation], *, with_plan: bool) -> Iterable[str]:
    yield from ("", "Sources, the last to finish first" if with_plan else "Sources")
    for source in sources[:SHOWN_SOURCES]:
        yield from _wrapped(_source_text(source), "  ")
    yield from _more(len(sources) - SHOWN_SOURCES, "source")


def _source_text(source: SourceExplanation) -> str:
    text = f"{source.source!r} ({format_bytes(source.n_bytes)})"
    if source.finish_s is not None:
        text += f" finishes at {format_duration(source.finish_s)}"
    if source.alone_s is not None:
        could = "could" if source.finish_s is not None else "could finish"
        text += f", alone it {could} at {format_duration(source.alone_s)}"
    return f"{text}: {source.text}"


# Lines ----------------------------------------------------------------------------------------


def _more(n_more: int, what: str) -> Iterable[str]:
    if n_more > 0:
        yield f"  and {counted(n_more, f'more {what}')}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  " * bool(indent),
        break_on_hyphens=False,
        break_long_words=False,
    )
