"""Hosts' uplinks and downlinks: constant, one number per period, or by hours of the day.

In a problem each limit has a row for each period, as links' bandwidths do; rows of a constant limit
are one row that is looked at several times, and take no room.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.problem.hourly_rates import HourlyRate
from datacollect.problem.numbers import floats_of, one_per_host
from datacollect.problem.recurring_hours import in_order, last_rows, of_one_form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.contents import ProblemContents

LIMITS = ("uplink_bytes_per_s", "downlink_bytes_per_s")

# Of each limit, what a host was seen to do: a lower bound, infinite where there is no limit.
SHOWN = dict(zip(LIMITS, ("shown_uplink_bytes_per_s", "shown_downlink_bytes_per_s"), strict=True))


def with_hours(
    contents: ProblemContents,
    hours: tuple[str, ...] | None,
    hourly: Sequence[tuple[str, int, HourlyRate]],
) -> tuple[ProblemContents, tuple[str, ...] | None]:
    """Return contents, and hours of the day or week, at which bandwidths or limits change.

    Parameters
    ----------
    contents : ProblemContents
        With a row for each of `hours`, one where there are none.
    hours : tuple of str or None
        Hours at which links' bandwidths change.
    hourly : sequence of (str, int, HourlyRate)
        Limits that follow hours: the column, the host's index, what it says.

    Raises
    ------
    ProblemError
        There is no clock, or periods do not follow the hours of the day.
    """
    if not hourly:
        return contents, hours
    key, host, _ = hourly[0]
    place = f"host {contents.names[host]!r}: {key}"
    if contents.clock is None:
        raise ProblemError(
            f"{place}: hours of the day need start, the clock time of 0 s; add start = "
            "2026-11-22T20:00:00+01:00"
        )
    if hours is None and len(contents.periods_s) > 1:
        raise ProblemError(
            f"{place}: hours of the day and periods_s cannot be combined; give daily_periods, or "
            "a list of one number per period"
        )
    known = tuple(of_one_form(hour) for hour in hours or ())
    every = in_order((*known, *(hour for _, _, rate in hourly for hour in rate.hours)))
    rows = last_rows(known, every) if known else np.zeros(len(every), dtype=np.int64)
    n_hosts = len(contents.names)
    columns: dict[str, Any] = {
        key: by_period(key, getattr(contents, key), len(contents.periods_s), n_hosts)[rows]
        for key in LIMITS
    }
    for key, host, rate in hourly:
        columns[key][:, host] = np.array(rate.bytes_per_s)[last_rows(rate.hours, every)]
    return (
        replace(
            contents,
            periods_s=np.arange(len(every), dtype=float),  # until they are unrolled
            bandwidth_bytes_per_s=contents.bandwidth_bytes_per_s[rows],
            **columns,
        ),
        every,
    )


def is_constant(limit: npt.NDArray[Any]) -> bool:
    """Return whether the rows of a limit are one and the same."""
    return limit.strides[0] == 0 or bool((limit == limit[0]).all())


def varies(limit: npt.ArrayLike) -> bool:
    """Say whether what is given as a limit, in whatever becomes an array, has rows that differ."""
    array = floats_of("a limit", limit)
    return array.ndim > 1 and not is_constant(array)


def by_period(key: str, values: npt.ArrayLike, n_periods: int, n_hosts: int) -> FloatArray:
    """Return a limit with a row for each period, or raise `ProblemError`.

    Parameters
    ----------
    values : array_like
        One number for all hosts, one each, or a row of such for each period. Where all rows are
        alike there may be any number of them.

    Examples
    --------
    >>> by_period("uplink_bytes_per_s", [1.0, 2.0], 3, 2).tolist()
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    """
    array = floats_of(key, values)
    if array.ndim < 2:
        return np.broadcast_to(one_per_host(key, array, n_hosts), (n_periods, n_hosts))
    if array.ndim == 2 and len(array) and array.shape[1] == n_hosts:
        if is_constant(array):
            return np.broadcast_to(array[0].copy(), (n_periods, n_hosts))
        if len(array) == n_periods:
            return array
    raise ProblemError(
        f"{key} must be a number, one number per host ({n_hosts}), or a row of these for each of "
        f"{n_periods} periods, got shape {array.shape}; give all rows, or one"
    )


def reject_partly_unlimited(names: Sequence[str], key: str, limit: FloatArray) -> None:
    """Raise `ProblemError` where a host has a limit in some periods, and none in others."""
    partly = np.isinf(limit).any(axis=0) & ~np.isinf(limit).all(axis=0)
    if partly.any():
        i = int(np.argmax(partly))
        raise ProblemError(
            f"host {names[i]!r}: {key} must be finite in every period, or unlimited in all, got "
            f"inf in period {int(np.argmax(np.isinf(limit[:, i])))}; write what its line carries"
        )


def shown_rates(names: Sequence[str], key: str, values: npt.ArrayLike) -> FloatArray | None:
    """Return what hosts were seen to do, 0 where nothing was; None where nothing was of any.

    Raises
    ------
    ProblemError
        There is not one number for each host, or one below 0.

    Examples
    --------
    >>> shown_rates(["S", "D"], "shown_uplink_bytes_per_s", [5.0, 0.0]).tolist()
    [5.0, 0.0]
    """
    rates = one_per_host(key, values, len(names))
    bad = ~(rates >= 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise ProblemError(
            f"host {names[i]!r}: {key} must be >= 0, got {rates[i]:g}; write 0 where nothing was "
            "seen"
        )
    return rates if rates.any() else None


def said_of(limit: FloatArray, host: int) -> float | list[float]:
    """Return a host's limit as files say it: a number, a list where it varies."""
    values: list[float] = limit[:, host].tolist()
    return values if len(set(values)) > 1 else values[0]


def split_hourly(
    said: Mapping[str, Sequence[Any]], n_periods: int
) -> tuple[dict[str, Any], list[tuple[str, int, HourlyRate]]]:
    """Return columns of limits by period, as far as no hours are said, and what hours are.

    Parameters
    ----------
    said : mapping of str to sequence
        For each of `LIMITS` what each host says: a number, one number per period, `HourlyRate`.

    Examples
    --------
    >>> columns, hourly = split_hourly({"uplink_bytes_per_s": [1.0, [2.0, 3.0]]}, 2)
    >>> columns["uplink_bytes_per_s"].tolist(), hourly
    ([[1.0, 2.0], [1.0, 3.0]], [])
    """
    columns: dict[str, Any] = {}
    hourly = []
    for key, rates in said.items():
        columns[key] = np.full((n_periods, len(rates)), np.inf)
        for i, rate in enumerate(rates):
            if isinstance(rate, HourlyRate):
                hourly.append((key, i, rate))
            else:
                columns[key][:, i] = rate
    return columns, hourly
