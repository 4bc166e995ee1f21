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

    Given: TypeAlias = "Mapping[str, Any]"

PROGRAM = "datacollect"


def note_last_steps(command: str, given: Given) -> None:
    """Say what to do after a command that was given these arguments and options.

    Nothing where that would name standard input, which nobody can read again.
    """
    after = NEXT.get(command)
    if after is None or given.get("as_json") or "-" in given.values():
        return
    label = "next: "
    for words in after(given):
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
    return [
        ["check", problem, schedule],
        ["pulls", problem, schedule],
        ["plot", problem, schedule, "-o", picture],
    ]


def _after_compare(given: Given) -> Sequence[Sequence[str]]:
    problem = given["problem_file"]
    return [["plan", problem, "-o", _beside(problem, ".json")], ["advise", problem]]


def _after_advise(given: Given) -> Sequence[Sequence[str]]:
    return [["plan", given["problem_file"], "-o", _beside(given["problem_file"], ".json")]]


def _after_check(given: Given) -> Sequence[Sequence[str]]:
    return [["pulls", given["problem_file"], given["schedule_file"]]]


def _after_estimate(given: Given) -> Sequence[Sequence[str]]:
    is_problem = given["destination"] is not None and given["output"] is not None
    return [["compare", given["output"]]] if is_problem else []


def _after_sweep(given: Given) -> Sequence[Sequence[str]]:
    return [["report", given["output"]]]


def _beside(problem: str, ending: str) -> str:
    """Name a file beside a problem's; another name where the problem's own ends so."""
    path = Path(problem)
    named = path.with_suffix(ending)
    return str(named if named != path else path.with_name(f"{path.stem}-plan{ending}"))


NEXT: dict[str, Callable[[Given], Sequence[Sequence[str]]]] = {
    "plan": _after_plan,
    "replan": _after_replan,
    "compare": _after_compare,
    "advise": _after_advise,
    "check": _after_check,
    "estimate": _after_estimate,
    "sweep": _after_sweep,
}
