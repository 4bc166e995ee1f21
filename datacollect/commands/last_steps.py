"""Last lines of commands that have done their work: what to do next.

They are advice, so they go to standard error: what is piped is the answer alone. With --json or
--quiet nobody reads them, and they are left out.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.commands.console import note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.explanation.advisory import Take

    Given: TypeAlias = "Mapping[str, Any]"

PROGRAM = "datacollect"


def note_last_steps(command: str, given: Given) -> None:
    """Say what to do after a command that was given these arguments and options.

    Nothing where that would name standard input, which nobody can read again.
    """
    after = NEXT.get(command)
    if after is not None:
        _note_steps(after(given), given)


# How to plan what advice says to take, where a plan does that.
PLANNED_BY: dict[str, tuple[str, ...]] = {"direct": ("--method", "direct"), "relays": ()}


def note_steps_of_advice(take: Take, measure: Sequence[str], given: Given) -> None:
    """Say what to do after advice: what it says to take, or its first command to measure.

    Nothing where it says to open more connections: no plan does that.
    """
    steps: list[Sequence[str]] = []
    if take == "measure":
        steps = [shlex.split(command)[1:] for command in measure[:1]]
    elif take in PLANNED_BY:
        steps = _plan_beside(given["problem_file"], *PLANNED_BY[take])
    _note_steps(steps, given)


def _note_steps(steps: Sequence[Sequence[str]], given: Given) -> None:
    if given.get("as_json") or "-" in given.values():
        return
    label = "next: "
    for words in steps:
        note(f"{label}{shlex.join([PROGRAM, *words])}")
        label = " " * len(label)


def _after_plan(given: Given) -> Sequence[Sequence[str]]:
    # Where nothing is saved, the answer itself says how to.
    output = given["output"]
    if output is None:
        return []
    return _of_schedule(given["problem_file"], output)


def _after_replan(given: Given) -> Sequence[Sequence[str]]:
    # Only with the problem that remains is the new schedule one for it.
    if given["output"] is None or given["problem_output"] is None:
        return []
    return _of_schedule(given["problem_output"], given["output"])


def _of_schedule(problem: str, schedule: str) -> Sequence[Sequence[str]]:
    picture = f"{schedule.rpartition('.')[0] or schedule}.png"
    steps = [["check", problem, schedule], ["pulls", problem, schedule]]
    return steps if Path(picture).exists() else [*steps, ["plot", problem, schedule, "-o", picture]]


def _after_compare(given: Given) -> Sequence[Sequence[str]]:
    problem = given["problem_file"]
    return [*_plan_beside(problem), ["advise", problem]]


def _after_check(given: Given) -> Sequence[Sequence[str]]:
    return [["pulls", given["problem_file"], given["schedule_file"]]]


def _after_estimate(given: Given) -> Sequence[Sequence[str]]:
    is_problem = given["destination"] is not None and given["output"] is not None
    return [["compare", given["output"]]] if is_problem else []


def _after_sweep(given: Given) -> Sequence[Sequence[str]]:
    return [["report", given["output"]]]


def _plan_beside(problem: str, *options: str) -> list[Sequence[str]]:
    """Return the step that plans into a file beside the problem's; none where that file is there.

    Where the problem's own file has that name, it is another.
    """
    path = Path(problem)
    named = path.with_suffix(".json")
    named = named if named != path else path.with_name(f"{path.stem}-plan.json")
    return [] if named.exists() else [["plan", problem, *options, "-o", str(named)]]


NEXT: dict[str, Callable[[Given], Sequence[Sequence[str]]]] = {
    "plan": _after_plan,
    "replan": _after_replan,
    "compare": _after_compare,
    "check": _after_check,
    "estimate": _after_estimate,
    "sweep": _after_sweep,
}
