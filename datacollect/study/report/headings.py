"""Headings of columns and axes where people read them: in words, with their units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.study.fields import label_of
from datacollect.study.report.setting_runs import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.study.axes import Axis

# Ends of names, the longer first, and the units that they stand for.
UNITS = {
    "_gbit_per_s": "Gbit/s",
    "_mbit_per_s": "Mbit/s",
    "_bytes_per_s": "bytes/s",
    "_bit_per_s": "bit/s",
    "_per_gb": "per 10⁹ bytes",
    "_bytes": "bytes",
    "_km": "km",
    "_s": "s",
}

# Measures that runs have, and what is made of them.
MEASURE_WORDS = {
    "makespan_s": "makespan, s",
    "predicted_s": "predicted makespan, s",
    "storage_mean": "most stored by a source, over its backlog (ratio)",
    "storage_bytes": "most stored by a source, bytes",
    "storage_max": "most stored by any source, over its backlog (ratio)",
    "tcp_before_bytes_per_s": "background TCP before, bytes/s",
    "tcp_during_bytes_per_s": "background TCP during the collection, bytes/s",
    "tcp_after_bytes_per_s": "background TCP after, bytes/s",
    "udp_before_bytes_per_s": "background UDP before, bytes/s",
    "udp_during_bytes_per_s": "background UDP during the collection, bytes/s",
    "udp_after_bytes_per_s": "background UDP after, bytes/s",
    "tcp_loss": "what background TCP loses of its rate (part of 1)",
    "tcp_lost_bytes": "what background TCP loses, bytes",
}

_HEADINGS = {
    **MEASURE_WORDS,
    **{f"over_{name}": f"makespan over that of {words}" for name, words in REFERENCES.items()},
    "relative_half_width": "half-width of the makespan's interval (part of it)",
    "storage_over_direct": "most stored by a source, over direct's (ratio)",
    "tcp_over_direct": "background TCP during the collection, over direct's (ratio)",
    "predicted_over_measured": "predicted over measured makespan",
    "busiest_share": "busiest wire in this part of the runs",
    "cpu_s": "processor time of all its runs, s",
}


def axis_heading(axis: Axis) -> str:
    """Return an axis' name with the unit of its labels.

    Labels have a unit where they are plain values of one key whose name ends with it.

    >>> from datacollect.study.axes import Axis, AxisValue
    >>> place = "topology.rate_bytes_per_s"
    >>> axis_heading(Axis("rate", False, (AxisValue("1e+06", {place: 1e6}),)))
    'rate, bytes/s'
    >>> axis_heading(Axis("rate", False, (AxisValue("slow", {place: 1e6}),)))
    'rate'
    """
    places = {tuple(value.values) for value in axis.values}
    plain = all(
        _is_number(value.label) and label_of(item) == value.label
        for value in axis.values
        for item in value.values.values()
    )
    if len(places) != 1 or len(next(iter(places))) != 1 or not plain:
        return axis.name
    (place,) = places.pop()
    unit = unit_of(place)
    return axis.name if unit is None or unit_of(axis.name) == unit else f"{axis.name}, {unit}"


def heading(column: str) -> str:
    """Return the name of a table's column in words, with its unit.

    >>> heading("makespan_s"), heading("plan_time_s"), heading("busiest_wire")
    ('makespan, s', 'plan time, s', 'busiest wire')
    """
    if column in _HEADINGS:
        return _HEADINGS[column]
    unit = unit_of(column)
    if unit is None:
        return column.replace("_", " ")
    end = next(end for end, word in UNITS.items() if word == unit)
    return f"{column.removesuffix(end).replace('_', ' ')}, {unit}"


def headings(columns: Iterable[str], axes: Mapping[str, Axis]) -> list[str]:
    """Return the headings of a table's columns, some of which are axes."""
    return [axis_heading(axes[name]) if name in axes else heading(name) for name in columns]


def unit_of(name: str) -> str | None:
    """Return the unit that a name ends with.

    >>> unit_of("topology.rate_bytes_per_s"), unit_of("background.flows"), unit_of("chunk_s")
    ('bytes/s', None, 's')
    """
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), None)


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True
