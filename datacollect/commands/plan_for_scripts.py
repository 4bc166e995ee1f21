"""Plans whose scripts keep what they promise, where those of another plan do not.

Which margin is enough, and whether relays have room, only scripts tell: plans are made and written
until one holds. What is named was tried.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import InfeasibleError, ProblemError, SolverError
from datacollect.exports.fitting import RefusedScripts
from datacollect.exports.missed import (
    LEFT_OVER,
    closes_after,
    margin_s,
    margin_text,
    window_owner,
)
from datacollect.methods.choice import options_like
from datacollect.methods.coordinated.spec import CoordinatedOptions
from datacollect.methods.finishing.keeping import passed_bytes
from datacollect.numbers.tolerances import SAME_INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

# After so many plans none holds.
MOST_TRIES = 5

# What ends within this part of the makespan before a window closes uses it to its end.
NEAR = 0.005


NONE_HOLDS = "no plan was found whose scripts keep it; allow more time"


def remedy_that_holds(
    problem: Problem,
    schedule: Schedule,
    refused: RefusedScripts,
    write: Callable[[Problem, Schedule], object],
    files: tuple[str, str],
) -> str | None:
    """Return what to do so that scripts keep a plan, tried; None where nothing can be tried.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        The plan whose scripts were refused.
    refused : RefusedScripts
        Why.
    write : callable
        Writes the scripts of a plan, or refuses them.
    files : (str, str)
        The problem's, and the plan's.
    """
    options = _asked(schedule)
    if options is None:
        return None
    tries = _more_careful(options, refused)
    for _ in range(MOST_TRIES):
        if not tries:
            break
        options = tries.pop(0)
        try:
            write(*_planned(problem, options))
        except RefusedScripts as error:
            tries = _more_careful(options, error)
        except (InfeasibleError, ProblemError, SolverError):
            continue  # with a shorter margin there may be a plan
        else:
            command = shlex.join(_command(problem, options, files))
            return f"plan so that scripts keep it: {command}"
    return NONE_HOLDS


def _planned(problem: Problem, options: CoordinatedOptions) -> tuple[Problem, Schedule]:
    """Return a plan, and the problem as far as its hours had to be listed for it."""
    from datacollect.methods.choice import plan
    from datacollect.methods.finishing.recurring import planned_to_the_end

    return planned_to_the_end(
        problem,
        lambda listed: plan(listed, options),
        lambda found: max(found.makespan_s, found.deadline_s or 0.0),
    )


def needs_of_scripts(problem: Problem, schedule: Schedule) -> list[str]:
    """Return what scripts need that a plan has not: room at relays, time before windows close.

    Only of plans by coordinated, which can have both.
    """
    if not isinstance(options_like(schedule), CoordinatedOptions):
        return []
    over = passed_bytes(problem, schedule) > problem.storage_bytes
    over[problem.destination_index] = False
    found = [
        f"scripts delete nothing at relays after forwarding it, and {problem.names[host]!r} has "
        "no room for all of it: for scripts plan with --keep-relayed"
        for host in np.flatnonzero(over).tolist()[:1]
    ]
    if schedule.margin_s is None and (whose := _used_to_the_end(problem, schedule)):
        found.append(
            f"the window of {whose} is used to its end, and scripts are somewhat later than "
            "plans: for scripts plan with a --margin, such as '10 min'"
        )
    return found


def _used_to_the_end(problem: Problem, schedule: Schedule) -> str:
    """Return whose window closes when data have only just passed; empty: none does."""
    if problem.n_periods == 1:
        return ""
    columns = schedule.columns
    ends: dict[tuple[str, str], set[float]] = {}
    for route, hop, end_s in zip(
        columns.route.tolist(), columns.hop.tolist(), columns.finish_s.tolist(), strict=True
    ):
        hosts = schedule.routes[route].hosts
        ends.setdefault((hosts[hop], hosts[hop + 1]), set()).add(end_s)
    near_s = NEAR * schedule.makespan_s
    for link, at_s in ends.items():
        for end_s in at_s:
            closes_s, _ = closes_after(problem, link, end_s * (1 - SAME_INSTANT))
            if closes_s - end_s < near_s:
                return window_owner(problem, link, closes_s)
    return ""


def _asked(schedule: Schedule) -> CoordinatedOptions | None:
    """Return what a coordinated plan was asked for; of other methods its deadline."""
    options = options_like(schedule)
    if isinstance(options, CoordinatedOptions):
        if options.connections is not None:
            return None
        return replace(options, chunk_s=None, prefer=None)
    return CoordinatedOptions(deadline_s=schedule.deadline_s)


def _more_careful(options: CoordinatedOptions, refused: RefusedScripts) -> list[CoordinatedOptions]:
    """Return what to ask for instead, the first that leaves time over."""
    if refused.late_s is None:
        return [] if options.keep_relayed else [replace(options, keep_relayed=True)]
    needed_s = (options.margin_s or 0.0) + refused.late_s
    margins_s = dict.fromkeys((margin_s(needed_s), margin_s(needed_s / LEFT_OVER)))
    return [replace(options, margin_s=float(each)) for each in margins_s]


def _command(problem: Problem, options: CoordinatedOptions, files: tuple[str, str]) -> list[str]:
    """Return the words of a command that plans so."""
    words = ["datacollect", "plan", files[0]]
    for name in ("deadline_s", "most_by_s"):
        at_s: float | None = getattr(options, name)
        if at_s is not None:
            when = f"{at_s:g}" if problem.clock is None else problem.clock.iso(at_s)
            words += [f"--{name.removesuffix('_s').replace('_', '-')}", when]
    if options.slot_s is not None:
        words += ["--slot", f"{options.slot_s:g}"]
    if options.derate != 1:
        words += ["--derate", f"{options.derate:g}"]
    if options.most_transfers is not None:
        words += ["--most-transfers", str(options.most_transfers)]
    words += ["--cautious"] * options.cautious + ["--keep-relayed"] * options.keep_relayed
    if options.margin_s is not None:
        words += ["--margin", margin_text(options.margin_s)]
    return [*words, "-o", files[1], "--force"]
