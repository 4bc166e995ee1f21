"""Rates of interfaces from what they had carried at some instants."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def interface_rates(
    readings: Sequence[Mapping[str, Any]],
) -> tuple[list[float], dict[str, list[list[float | None]]]]:
    """Return rates between readings, and when each was.

    Parameters
    ----------
    readings : sequence of mappings
        In order of time: ``at_s``, and ``interfaces``: by name bytes received and sent so far.

    Returns
    -------
    ages_s : list of float
        Seconds before the last reading, at most 0.
    rates : dict
        By interface of the last reading the bytes per second received, and those sent; None where
        its counters, or the clock, began again.

    Examples
    --------
    >>> readings = [{"at_s": t, "interfaces": {"eth0": [10 * t, 0]}} for t in (0.0, 2.0, 4.0)]
    >>> interface_rates(readings)
    ([-2.0, 0.0], {'eth0': [[10.0, 10.0], [0.0, 0.0]]})
    """
    pairs = list(pairwise(readings))
    if not pairs:
        return [], {}
    last = readings[-1]
    ages_s = [min(round(now["at_s"] - last["at_s"], 3), 0.0) for _, now in pairs]
    rates = {
        name: [[_rate(before, now, name, side) for before, now in pairs] for side in (0, 1)]
        for name in last["interfaces"]
    }
    return ages_s, rates


def _rate(before: Mapping[str, Any], now: Mapping[str, Any], name: str, side: int) -> float | None:
    seconds = now["at_s"] - before["at_s"]
    if name not in before["interfaces"] or name not in now["interfaces"] or not seconds > 0:
        return None
    n_bytes = now["interfaces"][name][side] - before["interfaces"][name][side]
    return float(n_bytes / seconds) if n_bytes >= 0 else None
