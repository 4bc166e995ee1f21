"""Texts of pictures: what is collected, how, how well, and what each host does."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from datacollect.files.clock import instant_text
from datacollect.files.units import format_bytes, format_duration, format_rate
from datacollect.pictures.writing import shortened
from datacollect.schedule.data.transfers import UNKNOWN
from datacollect.schedule.data.use import arrived_bytes, plan_money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.pictures.picture import Picture
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule


# How hosts are ordered, see `datacollect.pictures.picture`.
ORDER = (
    "From top to bottom: sources, sources that relay, relays, the destination; each kind in the "
    "problem’s order."
)


def headlines(picture: Picture, problem: Problem, schedule: Schedule) -> tuple[str, list[str]]:
    """Return a title and lines below it: how, how near to the lower bound, and what binds."""
    if not picture.bands:
        return f"Nothing to move to {problem.destination}", [f"Method: {schedule.method}."]
    amount, time = format_bytes(problem.total_bytes), format_duration(schedule.makespan_s)
    title = f"{amount} to {shortened(problem.destination, 50)} in {time}"
    how = f"Method: {schedule.method}"
    if schedule.slot_s is not None:
        how += f", in slots of {format_duration(schedule.slot_s)}"
    elif schedule.chunk_s:
        how += f", pipelined in chunks of {format_duration(schedule.chunk_s)}"
    how += f"; {_compared(schedule.makespan_s, schedule.lower_bound_s)} the lower bound."
    if len(picture.bands) < picture.n_hosts:
        how += f" Shown: the {len(picture.bands)} busiest of {picture.n_hosts} hosts."
    goal = " ".join(_goal(problem, schedule))
    why = "" if schedule.bottleneck == UNKNOWN else schedule.bottleneck.text
    return title, [how, *([goal] if goal else []), *wrap(why, 140, max_lines=2, placeholder=" …")]


def _goal(problem: Problem, schedule: Schedule) -> Iterator[str]:
    """Say by when it was planned to end, or to be far, and what its links cost."""
    clock = problem.clock
    if schedule.deadline_s is not None:
        early_s = schedule.deadline_s - schedule.makespan_s
        margin = f", {format_duration(early_s)} before it" if early_s >= 1 else ""
        yield f"Deadline: {instant_text(schedule.deadline_s, clock)}{margin}."
    if schedule.most_by_s is not None:
        there = format_bytes(arrived_bytes(schedule, schedule.most_by_s))
        yield f"By {instant_text(schedule.most_by_s, clock)} {there} have arrived."
    money = plan_money(problem, schedule)
    if money is not None:
        yield f"Money: {money:.4g}, the price of all links."


def _compared(end_s: float, bound_s: float) -> str:
    if end_s <= 1.0005 * bound_s:
        return "equal to"
    if bound_s <= 0.5 * end_s:
        return f"{end_s / bound_s:.1f} times" if bound_s else "above"
    return f"{100 * (end_s / bound_s - 1):.1f} % above"


def role_of(problem: Problem, schedule: Schedule, name: str) -> str:
    """Say in a few words what a host does."""
    if name == problem.destination:
        return f"collects {format_bytes(problem.total_bytes)}"
    parts = []
    own = [i for i, route in enumerate(schedule.routes) if route.source == name]
    if own:
        i = problem.host_index[name]
        parts.append(f"has {format_bytes(int(problem.backlog_bytes[i]))}")
        if problem.release_s[i] > 0:
            release_s, clock = float(problem.release_s[i]), problem.clock
            since = format_duration(release_s) if clock is None else clock.text(release_s)
            parts[0] += f" from {since} on"
        if i in problem.makers:
            assert problem.produces_bytes_per_s is not None
            parts[0] += f", made at {format_rate(float(problem.produces_bytes_per_s[i]))}"
    relayed = dict.fromkeys(r.source for r in schedule.routes if name in r.hosts)
    others = [source for source in relayed if source != name]
    if others:
        few = ", ".join(others) if len(others) > 1 else shortened(others[0], 20)
        parts.append("relays " + (few if len(few) <= 20 else f"{len(others)} sources"))
    return "; ".join(parts)
