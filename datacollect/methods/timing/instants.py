"""Instants that floats can tell apart.

Floats near 1.7e9 s, a Unix time of today, lie 2.4e-7 s apart: a transfer of a microsecond would
last a quarter less or more than it should. Rounded up, it keeps within its capacity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from datacollect.methods.timing.tolerances import SAME_LENGTH

if TYPE_CHECKING:
    import numpy.typing as npt

    from datacollect.numbers.arrays import FloatArray


def finish_s(start_s: npt.ArrayLike, length_s: npt.ArrayLike) -> FloatArray:
    """Return the first instants that floats know `length_s` after `start_s`, or later.

    Earlier by next to nothing is right: a length of a second, or of a year, is what it was.

    Parameters
    ----------
    start_s : array_like of float
    length_s : array_like of float
        More than 0.

    Examples
    --------
    >>> start_s = np.array([1.7e9, 0.0])
    >>> (finish_s(start_s, 1e-9) - start_s).tolist()
    [2.384185791015625e-07, 1e-09]
    """
    start, length = np.asarray(start_s, dtype=float), np.asarray(length_s, dtype=float)
    finish: FloatArray = start + length
    early = finish - start < length * (1 - SAME_LENGTH)
    finish += np.where(early, np.spacing(finish), 0.0)
    return finish
