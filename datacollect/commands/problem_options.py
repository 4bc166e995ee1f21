"""Options of commands that write problem files: what hosts hold, when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from datacollect.commands.conversion import number_in
from datacollect.errors import ProblemError, nearest_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

# So many hosts or links are named; --json has them all.
MOST_NAMED = 20

Backlogs = Annotated[
    list[str] | None,
    typer.Option(
        "--backlog",
        metavar="HOST=BYTES",
        help='What a host holds, such as S1="6 TB"; repeatable.',
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="WHEN",
        help='Clock time of 0 s of the problem, also "tomorrow 18:00".  [default: now]',
    ),
]


def backlogs_by_host(given: Sequence[str] | None, names: Sequence[str]) -> dict[str, int]:
    """Read the options --backlog, whose hosts are among some names."""
    from datacollect.files.kinds import Whole
    from datacollect.measurement.outcomes import listed

    backlogs: dict[str, int] = {}
    for text in given or ():
        host, _, amount = text.rpartition("=")
        if not host:
            raise ProblemError(
                f"--backlog must be HOST=BYTES, got {text!r}; write it like S1=5000000"
            )
        if host in backlogs:
            raise ProblemError(f"--backlog names {host!r} twice; keep one")
        if host not in names:
            raise ProblemError(
                f"--backlog: no host is called {host!r}; there are {listed(names, MOST_NAMED)}"
                + nearest_hint(host, names)
            )
        backlogs[host] = Whole("bytes").read(number_in(amount), f"--backlog {host}")
    return backlogs
