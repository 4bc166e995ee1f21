"""Uncertainty of bandwidths: intervals that files may give beside them.

Plans do not depend on them, so problems that differ in them alone are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.fields import Field
from datacollect.files.with_units import BANDWIDTH

LOW, HIGH = "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s"

# By (from, to) what is known of the two ends.
BandwidthIntervals: TypeAlias = Mapping[tuple[str, str], Mapping[str, float]]

INTERVAL_FIELDS = (
    Field(
        LOW,
        BANDWIDTH,
        "The bandwidth is rarely below this, in bytes per second, in any period; measurements say "
        "so, plans ignore it.",
    ),
    Field(
        HIGH,
        BANDWIDTH,
        "The bandwidth is rarely above this, in bytes per second, in any period; measurements say "
        "so, plans ignore it.",
    ),
)


def intervals_of(links: Sequence[Mapping[str, Any]]) -> BandwidthIntervals | None:
    """Return the intervals of links that have any, or None.

    Raises
    ------
    ProblemError
        A bandwidth lies outside of its interval.

    Examples
    --------
    >>> link = {"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}
    >>> intervals_of([{**link, "bandwidth_low_bytes_per_s": 4.0}])
    {('S', 'D'): {'bandwidth_low_bytes_per_s': 4.0}}
    """
    found = {}
    for i, link in enumerate(links):
        said = {key: float(link[key]) for key in (LOW, HIGH) if link.get(key) is not None}
        rates = link["bandwidth_bytes_per_s"]
        rates = rates if isinstance(rates, list) else [rates]
        if min(rates, default=0) < said.get(LOW, 0) or max(rates) > said.get(HIGH, float("inf")):
            raise ProblemError(
                f"links[{i}]: bandwidth_bytes_per_s must lie from {LOW} to {HIGH}, got "
                f"{link['bandwidth_bytes_per_s']} and {said}; correct one of them"
            )
        if said:
            found[link["from"], link["to"]] = said
    return found or None
