"""Numbers from the columns of tables (pandas), and from arrays with one number per host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.problem.with_units import in_units

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.files.kinds import Number, Whole
    from datacollect.numbers.arrays import FloatArray


def numbers_of(
    values: pd.Series[Any], where: str, kind: Number | Whole | None = None
) -> FloatArray:
    """Return a column's numbers, NaN where there is none; refuse texts, even those of numbers.

    Parameters
    ----------
    values : Series
    where : str
        What the column is called in messages.
    kind : Number or Whole, optional
        What the column counts: texts with their units are numbers then.

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
    import pandas as pd

    if kind is not None and not pd.api.types.is_numeric_dtype(values):
        values = _with_numbers(values, kind, where)
    dtype = str(values.dtype)
    if dtype == "object":
        dtype = pd.api.types.infer_dtype(values)
        good = dtype in ("integer", "floating", "mixed-integer-float", "empty")
    else:
        good = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not good:
        remedy = (
            "pandas.to_numeric converts texts"
            if kind is None
            else "write numbers, or texts with units"
        )
        raise ProblemError(f"{where} must hold numbers, got {dtype}; {remedy}")
    numbers: FloatArray = values.to_numpy(dtype=float, na_value=math.nan)
    return numbers


def _with_numbers(values: pd.Series[Any], kind: Number | Whole, where: str) -> pd.Series[Any]:
    """Return a column that may hold texts with numbers in their place."""
    import pandas as pd

    rows = zip(values.index.tolist(), values.tolist(), strict=True)
    numbers = [in_units(cell, kind, f"{where}, row {label!r}") for label, cell in rows]
    return pd.Series(numbers, values.index, dtype=object)


def one_per_host(key: str, values: npt.ArrayLike, n_hosts: int) -> FloatArray:
    """Return one number per host from one for all or one each, or raise `ProblemError`."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 0:
        return np.full(n_hosts, float(array))
    if array.shape != (n_hosts,):
        raise ProblemError(
            f"{key} must be a number or one number per host ({n_hosts}), got shape {array.shape}"
        )
    return array.copy()
