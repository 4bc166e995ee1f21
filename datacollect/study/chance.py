"""Chance in results: where it has no part in them, more seeds add no information."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.study.axes import unpaired
from datacollect.study.columns import COLUMNS, TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.study.axes import Axis


@dataclass(frozen=True)
class Chance:
    """In how many settings all seeds gave the same.

    Attributes
    ----------
    settings : int
        With two seeds or more.
    alike : int
        Those of them where all seeds gave the same results.
    most_seeds : int
        Seeds of a setting that are alike, at most; 0 where none are.
    """

    settings: int
    alike: int
    most_seeds: int

    @property
    def has_no_part(self) -> bool:
        """Return whether nothing at all is random."""
        return 0 < self.alike == self.settings

    @property
    def words(self) -> str:
        """Say so in a sentence; empty where seeds differ everywhere, or there is one only.

        >>> Chance(settings=2, alike=2, most_seeds=10).words
        'Nothing is random here: 10 seeds are the same. One is enough: --seeds 1.'
        """
        if not self.alike:
            return ""
        where = "" if self.has_no_part else f" in {self.alike} of {self.settings} settings"
        enough = " One is enough: --seeds 1." if self.has_no_part else ""
        return f"Nothing is random here{where}: {self.most_seeds} seeds are the same.{enough}"


def chance_in(table: pd.DataFrame, axes: Sequence[Axis]) -> Chance:
    """Compare the seeds of each setting in all columns but times.

    Parameters
    ----------
    table : DataFrame
        Results: the axes, then ``datacollect.study.columns.COLUMNS``.
    axes : sequence of Axis

    Examples
    --------
    >>> import pandas as pd
    >>> chance_in(pd.DataFrame({"seed": [1, 2, 3], "makespan_s": 7.0, "cpu_s": [1, 2, 3]}), [])
    Chance(settings=1, alike=1, most_seeds=3)
    """
    names = [axis.name for axis in axes]
    skipped = {"key", "seed", *TIMES, *names}
    compared = [column for column in table.columns if column in COLUMNS and column not in skipped]
    # Without an axis all runs are one treatment of one setting.
    treatments = table.assign(_all="").groupby([*names, "_all"])
    alike = treatments[compared].nunique(dropna=False).max(axis=1) <= 1
    seeds = treatments["seed"].nunique()
    settings = [*(axis.name for axis in unpaired(axes)), "_all"]
    repeated = seeds.groupby(level=settings).min() >= 2
    same = repeated & alike.groupby(level=settings).all()
    most = seeds.groupby(level=settings).max()[same]
    return Chance(int(repeated.sum()), int(same.sum()), int(most.max()) if len(most) else 0)
