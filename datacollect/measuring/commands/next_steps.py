"""Next steps after a command that measured was interrupted, and what is kept of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.commands.next_steps import BEGINS_AGAIN, GOES_ON, NOTHING, next_steps
from datacollect.measuring.operator.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.commands.next_steps import Given

UNMEASURED = f"nothing was measured, and {BEGINS_AGAIN}"

# They keep each row in their folder of samples as soon as it is there.
TESTS = (*TOOLS, "scan", "flood")


def next_steps_of(command: str, given: Given) -> Callable[[], str]:
    """Look what is there before a command begins, as `datacollect.commands.next_steps` does."""
    words = next_steps(command, given, UNWRITTEN.get(command))
    if command not in TESTS:
        return words
    parts = _parts(given)

    def of_test() -> str:
        if _parts(given) - parts:
            return f"{_measured(given)}; the same command measures all again"
        return words()

    return of_test


def _parts(given: Given) -> set[str]:
    """Return the names of what is in a folder of samples."""
    with suppress(OSError, ValueError):
        return {part.name for part in Path(given["folder"]).glob("*.parquet")}
    return set()


def _of_cycle(given: Given) -> str:
    if not given["dry_run"] and _parts(given):
        return f"{_measured(given)}; {GOES_ON}"
    return UNMEASURED


def _measured(given: Given) -> str:
    return f"what was measured is in {given['folder']}"


def _of_watch(given: Given) -> str:
    if given["page"] is None:
        return NOTHING
    return "the page has ended, and the same command shows it again"


UNWRITTEN: dict[str, Callable[[Given], str]] = {
    **dict.fromkeys(TESTS, lambda _: UNMEASURED),
    "cycle": _of_cycle,
    "watch": _of_watch,
}
