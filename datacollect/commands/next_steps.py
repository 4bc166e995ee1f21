"""Advice after an interruption: what is kept of a command's work, and what to do next.

Whether something was written is not guessed: the place is looked at, before and after.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.methods.choice import own_methods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Given: TypeAlias = "Mapping[str, Any]"

BEGINS_AGAIN = "the same command starts again"
NOTHING = f"nothing was written, and {BEGINS_AGAIN}"
GOES_ON = "the same command continues"
SEARCH = "--time-limit S ends the search for a plan"

_is_reading = [False]


@contextmanager
def while_reading() -> Iterator[None]:
    """Note that problems or schedules are read: whoever breaks off then hears of no search."""
    _is_reading[0] = True
    yield
    # Not where it is broken off: what is kept is asked for after that.
    _is_reading[0] = False


def next_steps(
    command: str, given: Given, unwritten: Callable[[Given], str] | None = None
) -> Callable[[], str]:
    """Look what is there before a command begins; return what says what is kept, and what to do.

    Parameters
    ----------
    command : str
        Its name.
    given : mapping
        Its arguments and options, by the names of its parameters.
    unwritten : callable, optional
        Says it where nothing was written; by default as ``UNWRITTEN`` has it.
    """
    _is_reading[0] = False
    places = _places(command, given)
    before = _stamps(places)
    say = unwritten or UNWRITTEN.get(command)

    def words() -> str:
        written = [path for path, stamp in _stamps(places).items() if before.get(path) != stamp]
        if not written:
            return NOTHING if say is None or _is_reading[0] else say(given)
        few = written[0] if len(written) == 1 else f"{len(written)} files"
        again = "with --force the same command" if _refuses(given) else "the same command"
        return f"{few} written already; {again} writes all again"

    return words


# Places ---------------------------------------------------------------------------------------


def _places(command: str, given: Given) -> list[str]:
    """Return the files and folders that a command writes to and reads nothing from."""
    if command == "sweep":
        return []
    named = [given.get(name) for name in ("output", "problem_output", "plot")]
    if command == "report" and given["output"] is None:
        named.append(str(Path(given["directory"], "report")))
    return [place for place in named if place is not None]


def _refuses(given: Given) -> bool:
    """Return whether the same command would not write over what it has written."""
    # What a report calls by itself is its own, and written again.
    return "force" in given and not given["force"] and any(_places("", given))


def _stamps(places: list[str]) -> dict[str, tuple[int, ...]]:
    """Return for each file in some places what differs once it is another."""
    found: dict[str, tuple[int, ...]] = {}
    for place in map(Path, places):
        with suppress(OSError, ValueError):
            for file in place.iterdir() if place.is_dir() else [place]:
                looks = file.stat()
                found[str(file)] = looks.st_ino, looks.st_size, looks.st_mtime_ns
    return found


# What is kept where nothing was written --------------------------------------------------------


def _of_plan(given: Given) -> str:
    searching = {spec.name: "time_limit_s" in spec.takes for spec in own_methods() if spec.plan}
    if not searching.get(given["method"], False):
        return NOTHING
    others = " or ".join(name for name, searches in searching.items() if not searches)
    return f"{NOTHING}; {SEARCH}, and --method {others} searches for nothing"


def _of_manifest(given: Given) -> str:
    if given["output"] is None:
        return "the list is incomplete; with -o FILE the same command continues it"
    if Path(f"{os.path.realpath(given['output'])}.hashed").exists():
        return f"the hashes so far are saved, and {GOES_ON}"
    return NOTHING


def _of_status(given: Given) -> str:
    if given["verify"] and Path(given["folder"], ".datacollect", "verified.jsonl").exists():
        return f"what was read is saved, and {GOES_ON}"
    return f"nothing was changed, and {BEGINS_AGAIN}"


def _of_progress(given: Given) -> str:
    if given["is_rechecked"]:
        return f"what was found wrong so far is given up and will be fetched again, and {GOES_ON}"
    return NOTHING


UNWRITTEN: dict[str, Callable[[Given], str]] = {
    "plan": _of_plan,
    "compare": lambda _: f"{NOTHING}; {SEARCH}, and `datacollect plan` plans by one method alone",
    "replan": lambda _: f"{NOTHING}; {SEARCH}",
    "explain": lambda _: f"{NOTHING}; `datacollect plan` says what binds, and tries nothing else",
    "front": lambda _: f"{NOTHING}; `datacollect plan --deadline S` prices a single deadline",
    "check": lambda _: f"the check did not finish, and {BEGINS_AGAIN}",
    "simulate": lambda _: f"{NOTHING}; --time-limit S ends a run with what it has by then",
    "manifest": _of_manifest,
    "status": _of_status,
    "progress": _of_progress,
    "pull": lambda _: f"what is verified is kept, and {GOES_ON}",
    "tunnel": lambda _: "connections that were open are cut off",
    "sweep": lambda _: f"runs that have ended are kept, and {GOES_ON}",
}
