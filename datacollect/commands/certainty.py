"""Certainty of plans on the command line: scenarios, what they cost, how often each method wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.commands.console import emit, emit_table, emit_text, working
from datacollect.errors import ProblemError
from datacollect.files.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.uncertainty.certainty import Certainty, ComparedCertainty


def require_drawn(samples: str | None, scenarios: int | None, seed: int | None) -> None:
    """Require that something is drawn where a seed is given."""
    if seed is not None and samples is None and scenarios is None:
        raise ProblemError(
            "--seed is for scenarios, and none are drawn; add --samples DIR or --scenarios N, or "
            "leave --seed out"
        )


def certainty_asked(
    problem: Problem,
    plan: Schedule,
    samples: str | None,
    scenarios: int | None,
    seed: int | None,
    *,
    costs: bool = False,
) -> Certainty | None:
    """Return how certain a plan is, where --samples or --scenarios ask for it."""
    if samples is None and scenarios is None:
        return None
    from datacollect.uncertainty.certainty import N_SCENARIOS, certainty

    with working("drawing scenarios"):
        return certainty(
            problem, plan, samples, scenarios=scenarios or N_SCENARIOS, seed=seed or 0, costs=costs
        )


def compared_asked(
    problem: Problem,
    plans: Mapping[str, Schedule],
    samples: str | None,
    scenarios: int | None,
    seed: int | None,
) -> ComparedCertainty | None:
    """Return how certain several plans are, where --samples or --scenarios ask for it."""
    if samples is None and scenarios is None:
        return None
    from datacollect.uncertainty.certainty import N_SCENARIOS, compared, cycles_from

    with working("drawing scenarios"):
        cycles = cycles_from(samples)
        return compared(problem, plans, cycles, scenarios=scenarios or N_SCENARIOS, seed=seed or 0)


def show_certainty(found: Certainty) -> None:
    """Say between which times a plan ends, and what that rests on."""
    emit_text(f"Certainty: {found.text}")
    for cost in found.costs:
        emit_text(cost.text)
        if cost.command:
            emit(f"  {cost.command}")
    for text in found.notes:
        emit_text(f"Note: {text}.")


def show_compared(found: ComparedCertainty) -> None:
    """Show how certain each method is, and how often it wins."""
    rows = [
        [
            name,
            *(
                "–" if value is None else format_duration(value)
                for value in (one.p10_s, one.p50_s, one.p90_s)
            ),
            f"{found.wins[name]:.0%}" if name in found.wins else "–",
        ]
        for name, one in found.by_method.items()
    ]
    emit_table(("method", "p10", "p50", "p90", "soonest in"), rows, "<>>>>")
    first = next(iter(found.by_method.values()), None)
    if first is None:
        return
    if first.p10_s is None:
        emit_text(f"Certainty: {first.text}")
    for text in first.notes:
        emit_text(f"Note: {text}.")


def compared_tree(found: ComparedCertainty, name: str) -> dict[str, Any] | None:
    """Return what ``compare --json`` says of a method: None of one that has no plan."""
    one = found.by_method.get(name)
    return None if one is None else {**one.to_dict(), "wins": found.wins.get(name)}
