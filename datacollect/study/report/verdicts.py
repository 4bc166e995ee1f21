"""Verdicts of a hook on sweeps: claims, each with a verdict, and tables of its own.

A hook judges what a report's sweeps have to say about somebody's claims. It lies outside of this
package, as `experiments/paper` does in its repository, and is given to
`datacollect.study.report.report.report`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.units import counted
from datacollect.study.report.folders import SweepFolder

if TYPE_CHECKING:
    import pandas as pd

HOLDS, DIFFERS, CONTRADICTS, NOT_RUN = "holds", "differs", "contradicts", "not run"
WORDS = (HOLDS, DIFFERS, CONTRADICTS, NOT_RUN)

# What every row of claims has; columns of the hook's own stand where it likes.
COLUMNS = (
    *("claim", "part", "where", "setting", "value", "low", "high", "seeds"),
    *("verdict", "is_settled", "why"),
)

# What is shown of a row, unless the hook says more.
BRIEF = {"claim": "claim", "part": "part", "value": "found", "verdict": "verdict"}


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Result of a hook.

    Attributes
    ----------
    claims : DataFrame
        A row for each claim, or part of one, in each world that it was judged in; a report writes
        them as ``claims.csv``. Columns are those of the hook, and among them ``claim`` and
        ``part``, its names; ``where``, the world, such as an engine and a size, and ``setting``
        within it; ``value`` with the bounds ``low`` and ``high`` of its interval, NaN where there
        is none; ``seeds`` that made it; ``verdict``, which is "holds", "differs", "contradicts" or
        "not run"; ``is_settled``, whether more runs could not decide otherwise; and ``why``. No
        rows where the sweeps have to do with no claim: then a report says nothing of claims.
    title : str
        What the claims are headed by on the page.
    shown : mapping
        Columns that the page shows, and their headings. ``value`` has its interval beside it,
        ``verdict`` says where it is not settled; a click shows ``why``, ``where``, ``setting``
        and ``seeds``.
    printed : mapping
        The same for the command, which leaves out what was not run and puts the rows of each
        ``where`` together. Of a text such as ``ours: all at once`` it prints what stands before
        the colon.
    tables : mapping
        Further tables by name: each becomes ``NAME.csv``, if it has rows, in place of the charts'
        numbers of a sweep that is called so.

    Raises
    ------
    ProblemError
        A column is missing, a verdict is none of the four, or a name cannot be that of a file.

    Examples
    --------
    >>> import pandas as pd
    >>> row = dict.fromkeys(COLUMNS, "") | {"claim": "C1", "verdict": "holds", "is_settled": True}
    >>> len(Verdicts(pd.DataFrame([row])).claims)
    1
    >>> Verdicts(pd.DataFrame([row | {"verdict": "true"}]))
    Traceback (most recent call last):
        ...
    datacollect.errors.ProblemError: verdicts: must be holds, differs, contradicts, not run, got \
'true'; name one of these in every row of claims
    """

    claims: pd.DataFrame
    title: str = "Claims, and what is found"
    shown: Mapping[str, str] = field(default_factory=lambda: BRIEF)
    printed: Mapping[str, str] = field(default_factory=lambda: BRIEF)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def __repr__(self) -> str:
        claims, tables = counted(len(self.claims), "claim"), counted(len(self.tables), "table")
        return f"<Verdicts: {claims}, {tables} besides>"

    def __post_init__(self) -> None:
        """Reject what a report could not show."""
        missing = [name for name in COLUMNS if name not in self.claims]
        if missing:
            raise ProblemError(f"verdicts: claims need the column {missing[0]!r}; add it")
        for name in (*self.shown, *self.printed):
            if name not in self.claims:
                raise ProblemError(
                    f"verdicts: claims have no column {name!r}, which is to be shown; add it, or "
                    "leave it out of what is shown and printed"
                )
        for word in self.claims["verdict"]:
            if word not in WORDS:
                raise ProblemError(
                    f"verdicts: must be {', '.join(WORDS)}, got {word!r}; name one of these in "
                    "every row of claims"
                )
        for name in self.tables:
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise ProblemError(
                    f"verdicts: a table's name becomes that of a file, got {name!r}; use letters, "
                    "digits, '_', '-' and '.'"
                )


def no_verdicts() -> Verdicts:
    """Return no verdicts at all: what a report has without a hook."""
    import pandas as pd

    return Verdicts(pd.DataFrame(columns=list(COLUMNS)))


# Sweeps, those included of which no run is finished, as `read_sweeps` sorts them.
Hook: TypeAlias = Callable[[Sequence[SweepFolder]], Verdicts]
