"""Numbers from the columns of tables (pandas), and arrays of the shapes that a problem has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.files.kinds import shown
from datacollect.files.with_units import PART, column_in_units

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.files.clock import Clock
    from datacollect.files.kinds import Number, Whole
    from datacollect.numbers.arrays import FloatArray


def numbers_of(
    values: pd.Series[Any],
    where: str,
    kind: Number | Whole | None = None,
    clock: Clock | None = None,
) -> FloatArray:
    """Return a column's numbers, NaN where there is none; refuse texts, even those of numbers.

    Parameters
    ----------
    values : Series
    where : str
        What the column is called in messages.
    kind : Number or Whole, optional
        What the column counts: texts with their units, and durations, are numbers then.
    clock : Clock, optional
        Where dates may be given, what they count from.

    Raises
    ------
    ProblemError
        The column holds anything but numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers_of(pd.Series([1, None]), "hosts: release_s").tolist()
    [1.0, nan]
    """
    labels = values.index
    given = column_in_units(values, kind or PART, lambda i: f"{where}, row {labels[i]!r}", clock)
    return floats_of(where, given)


def floats_of(place: str, values: Any) -> FloatArray:
    """Return numbers that have come in by the door as an array; refuse rows of unlike lengths.

    >>> floats_of("backlog_bytes", [[1, 2], [3, 4]]).shape
    (2, 2)
    """
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{place} must have rows of equal length, got {shown(values)}; complete the short ones"
        ) from None


def one_per_host(key: str, values: npt.ArrayLike, n_hosts: int) -> FloatArray:
    """Return one number per host from one for all or one each, or raise `ProblemError`."""
    array = floats_of(key, values)
    if array.ndim == 0:
        return np.full(n_hosts, float(array))
    if array.shape != (n_hosts,):
        raise ProblemError(
            f"{key} must be a number or one number per host ({n_hosts}), got shape {array.shape}"
        )
    return array.copy()
