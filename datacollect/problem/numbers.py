"""Numbers from the columns of tables (pandas), and from arrays with one number per host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.numbers.arrays import FloatArray


def numbers_of(values: pd.Series[Any], where: str) -> FloatArray:
    """Return a column's numbers, NaN where there is none; refuse texts, even those of numbers.

    Parameters
    ----------
    values : Series
    where : str
        What the column is called in messages.

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

    kind = str(values.dtype)
    if kind == "object":
        kind = pd.api.types.infer_dtype(values)
        good = kind in ("integer", "floating", "mixed-integer-float", "empty")
    else:
        good = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if not good:
        raise ProblemError(
            f"{where} must hold numbers, got {kind}; pandas.to_numeric converts texts"
        )
    numbers: FloatArray = values.to_numpy(dtype=float, na_value=math.nan)
    return numbers


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
