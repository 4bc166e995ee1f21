"""Calendars in files: windows, hours of the day, and what links carry meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.problem.calendar import by_hours
from datacollect.problem.host_limits import LIMITS
from datacollect.problem.recurring_hours import are_of_days, day_and_hour, last_rows
from datacollect.problem.windows import EVERY_DAY, window_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.contents import ProblemContents


def calendar_tree(contents: ProblemContents, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of a problem with its calendar instead of what is listed of it.

    Parameters
    ----------
    contents : ProblemContents
        With windows.
    tree : mapping
        Of the same problem, with rates by period.
    """
    daily = contents.daily
    assert daily is not None
    columns = by_hours(contents)
    hours = _hours_of_links(daily.hours, columns["bandwidth_bytes_per_s"])
    some_day = "Mo " if are_of_days(daily.hours) else ""  # links' rates are the same on all days
    rows = last_rows(daily.hours, [some_day + hour for hour in hours]) if hours else [0]
    rates = columns["bandwidth_bytes_per_s"][rows].T.tolist()
    hosts = {name: dict(host) for name, host in tree["hosts"].items()}
    for key in LIMITS:
        for i, host in enumerate(hosts.values()):
            if key in host:
                host[key] = _limit(columns[key][:, i], daily.hours)
    links = {
        (link["from"], link["to"]): link | {"bandwidth_bytes_per_s": _one_or_all(rate)}
        for link, rate in zip(tree["links"], rates, strict=True)
    }
    for limit in daily.windows:
        said = [window_text(window) for window in limit.windows]
        if limit.to_host is None and limit.from_host is not None:
            if limit.from_host in hosts:
                hosts[limit.from_host]["open"] = said
        elif (limit.from_host, limit.to_host) in links:
            links[limit.from_host, limit.to_host]["open"] = said
    changed = {"hosts": hosts, "links": list(links.values())}
    if hours:
        changed["daily_periods"] = hours
    return {key: value for key, value in tree.items() if key != "periods_s"} | changed


def _hours_of_links(hours: Sequence[str], rates: FloatArray) -> list[str]:
    """Return the hours of the day at which links' rates change; none where they never do."""
    if (rates == rates[0]).all():
        return []
    if not are_of_days(hours):
        return list(hours)
    of_day = [day_and_hour(hour)[1] for hour in hours]
    return sorted(hour for hour in set(of_day) if of_day.count(hour) == len(EVERY_DAY))


def _limit(rates: FloatArray, hours: Sequence[str]) -> float | str:
    values = rates.tolist()
    if len(set(values)) == 1:
        return float(values[0])
    return ", ".join(f"{hour} {rate!r} B/s" for hour, rate in zip(hours, values, strict=True))


def _one_or_all(rates: list[float]) -> float | list[float]:
    return rates[0] if len(set(rates)) == 1 else rates
