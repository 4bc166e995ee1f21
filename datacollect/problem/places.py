"""Geographic positions of hosts: for pictures, plans do not depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.problem.numbers import one_per_host

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.contents import ProblemContents

# In degrees, each from minus to plus this number.
MOST_DEGREES = {"latitude": 90, "longitude": 180}
PLACE_COLUMNS = tuple(MOST_DEGREES)


def changed_places(problem: ProblemContents, changed: Set[str]) -> dict[str, Any]:
    """Check a problem's latitudes and longitudes where they have changed; return both, frozen."""
    if changed & {"names", *PLACE_COLUMNS}:
        return settled_places(problem.names, problem.latitude, problem.longitude)
    return {}


def settled_places(
    names: Sequence[str], latitude: npt.ArrayLike | None, longitude: npt.ArrayLike | None
) -> dict[str, FloatArray | None]:
    """Return latitudes and longitudes as arrays, NaN where not known; None where none is.

    Raises
    ------
    ProblemError
        A number is no angle on the globe, or a host has only one of the two.

    Examples
    --------
    >>> settled_places(["S", "D"], [47.4, float("nan")], [8.5, float("nan")])["latitude"]
    array([47.4,  nan])
    """
    degrees = {
        key: one_per_host(key, np.nan if values is None else values, len(names))
        for key, values in zip(PLACE_COLUMNS, (latitude, longitude), strict=True)
    }
    for key, values in degrees.items():
        most = MOST_DEGREES[key]
        bad = ~(np.isnan(values) | (np.abs(values) <= most))
        if bad.any():
            i = int(np.argmax(bad))
            raise ProblemError(
                f"host {names[i]!r}: {key} must be a number of degrees from -{most} to {most}, got "
                f"{values[i]:g}; south and west are negative"
            )
    known = {key: ~np.isnan(values) for key, values in degrees.items()}
    alone = known["latitude"] != known["longitude"]
    if alone.any():
        i = int(np.argmax(alone))
        missing = next(key for key in degrees if not known[key][i])
        raise ProblemError(
            f"host {names[i]!r}: latitude and longitude must be given together, got no {missing}; "
            "add it, or leave both out"
        )
    if not known["latitude"].any():
        return dict.fromkeys(PLACE_COLUMNS)
    for values in degrees.values():
        values.flags.writeable = False
    return {**degrees}
