"""``python -m datacollect``, and the program ``datacollect``, are the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from datacollect.leaving import leave_with

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    leave_with(_load)


def _load() -> Callable[[], NoReturn]:
    from datacollect.commands.main import main as run_and_leave

    return run_and_leave


if __name__ == "__main__":
    main()
