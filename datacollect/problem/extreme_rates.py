"""Refusal of rates that no network has, where problems are read.

Up to `FASTEST_BYTES_PER_S`, solvers, sums and what `explain` widens stay within what floats hold;
what is computed, such as a widened copy (`Problem.replace`), may go beyond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.units import FASTEST_BYTES_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from datacollect.problem.contents import ProblemContents


def require_possible_rates(problem: ProblemContents) -> None:
    """Raise `ProblemError` where a rate is beyond `FASTEST_BYTES_PER_S`.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.Problem.from_matrix(["S", "D"], [[0, 1e19], [0, 0]], [10, 0], "D")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: link 'S' -> 'D': bandwidth_bytes_per_s must be at most 1e+18...
    """

    def link(i: int) -> str:
        return f"link {_name(problem.link_from[i])} -> {_name(problem.link_to[i])}"

    def _name(host: int) -> str:
        return repr(problem.names[host])

    _require("bandwidth_bytes_per_s", problem.bandwidth_bytes_per_s.max(axis=0, initial=0.0), link)
    for key in ("per_connection_bytes_per_s", "capacity_bytes_per_s"):
        _require(key, getattr(problem, key), link, unlimited=True)
    for key in ("uplink_bytes_per_s", "downlink_bytes_per_s"):
        limit = np.asarray(getattr(problem, key), dtype=float)
        finite = np.where(np.isfinite(limit), limit, 0.0).reshape(-1, len(problem.names))
        _require(key, finite.max(axis=0), lambda i: f"host {_name(i)}", unlimited=True)
    for key in ("bandwidth_bytes_per_s", "capacity_bytes_per_s"):
        values = [getattr(wire, key) or 0.0 for wire in problem.shared]
        _require(key, values, lambda i: f"shared bottleneck {problem.shared[i].name!r}")


def _require(
    key: str, values: npt.ArrayLike | None, place: Callable[[int], Any], *, unlimited: bool = False
) -> None:
    """Refuse what is too fast; what is `unlimited` may be infinite, which says nothing."""
    if values is None:
        return
    rates = np.asarray(values, dtype=float)
    bad = rates > FASTEST_BYTES_PER_S
    if unlimited:
        bad &= np.isfinite(rates)
    if bad.any():
        i = int(np.argmax(bad))
        remedy = "leave it out for unlimited" if unlimited else "correct the number, or its unit"
        raise ProblemError(
            f"{place(i)}: {key} must be at most {FASTEST_BYTES_PER_S:g}, an exabyte per second, "
            f"got {rates[i]!s}; {remedy}"
        )
