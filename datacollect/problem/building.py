"""Problems from Python objects and from matrices of bandwidth."""

from __future__ import annotations

import math
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.clock import Clock
from datacollect.files.with_units import INSTANT, in_units, values_in_units
from datacollect.numbers.containers import ArrayAxis, texts_of
from datacollect.problem.calendar import recurring, windows_of_contents
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.contents import ProblemContents
from datacollect.problem.fields import COUNTED
from datacollect.problem.host_limits import (
    LIMITS,
    SHOWN,
    by_period,
    split_hourly,
    with_hours,
)
from datacollect.problem.hourly_rates import has_hours, hourly_rate, is_no_limit
from datacollect.problem.numbers import floats_of, one_per_host
from datacollect.problem.production import production_of_hosts
from datacollect.problem.rules import index_of_names, whole_backlogs
from datacollect.problem.windows import windows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from datacollect.files.quantities import Seconds
    from datacollect.numbers.arrays import BoolArray, FloatArray, IndexArray, InUnitsLike
    from datacollect.problem.hosts import Held, Host, Link, SharedBottleneck
    from datacollect.problem.hourly_rates import HourlyRate
    from datacollect.problem.open_links import OpenLinks
    from datacollect.problem.windows import Window


def contents_of_hosts(
    hosts: Iterable[Host],
    links: Iterable[Link],
    destination: str,
    *,
    shared: Iterable[SharedBottleneck] = (),
    held: Iterable[Held] = (),
    periods_s: Sequence[Seconds] | None = None,
    start: str | datetime | None = None,
    timezone: str | None = None,
) -> ProblemContents:
    """Bring Python objects into columns, see `Problem.from_hosts`.

    Raises
    ------
    ProblemError
        A name, a backlog or a link's bandwidth fits no column.

    Examples
    --------
    >>> from datacollect.problem.hosts import Host, Link
    >>> contents_of_hosts([Host("S", 10), Host("D")], [Link("S", "D", 5.0)], "D").link_to
    array([1], dtype=int32)
    """
    clock = None if start is None else Clock.of(start, timezone)
    hosts = tuple(_in_units(host, f"host {host.name!r}", clock) for host in hosts)
    links = tuple(
        _in_units(link, f"link {link.from_host!r} -> {link.to_host!r}", clock) for link in links
    )
    names = tuple(host.name for host in hosts)
    index = index_of_names(names)
    starts = _starts(periods_s, clock)
    bandwidth = np.empty((len(starts), len(links)))
    for i, link in enumerate(links):
        bandwidth[:, i] = _forecast(link, len(starts))
    said = {key: [_limit(host, key, len(starts)) for host in hosts] for key in LIMITS}
    limits, hourly = split_hourly(said, len(starts))
    limits |= {shown: [_shown(host, key, shown) for host in hosts] for key, shown in SHOWN.items()}
    contents = ProblemContents(
        names=names,
        destination=destination,
        backlog_bytes=whole_backlogs(names, [host.backlog_bytes for host in hosts]),
        release_s=np.array([host.release_s for host in hosts], dtype=float),
        storage_bytes=np.array([host.storage_bytes for host in hosts], dtype=float),
        **limits,
        link_from=_host_indices(index, [link.from_host for link in links], "a link's from"),
        link_to=_host_indices(index, [link.to_host for link in links], "a link's to"),
        bandwidth_bytes_per_s=bandwidth,
        periods_s=starts,
        price_per_gb=np.array([link.price_per_gb for link in links], dtype=float),
        shared=tuple(shared),
        held=tuple(held),
        most_connections=np.array([host.most_connections for host in hosts], dtype=float),
        **production_of_hosts(hosts),
        latitude=np.array([host.latitude for host in hosts], dtype=float),  # None becomes NaN
        longitude=np.array([host.longitude for host in hosts], dtype=float),
        clock=clock,
        **_rates_of_links(links),
    )
    contents, hours = with_hours(contents, None, hourly)
    return recurring(contents, hours, _windows(hosts, links))


_Part = TypeVar("_Part", "Host", "Link")


def _in_units(part: _Part, where: str, clock: Clock | None) -> _Part:
    """Return a host or a link with numbers where it has something else."""
    changed: dict[str, Any] = {
        key: in_units(value, kind, f"{where}: {key}", (), clock)
        for key, kind in COUNTED.items()
        # Limits may be texts of hours, too. There may be millions of links.
        if key not in LIMITS
        and type(value := getattr(part, key, None)) not in (float, int, NoneType)
    }
    return replace(part, **changed) if changed else part


def _windows(hosts: Sequence[Host], links: Sequence[Link]) -> tuple[OpenLinks, ...]:
    def read(given: str | Sequence[str] | None, place: str) -> tuple[Window, ...]:
        return () if given is None else windows_of(given, f"{place}: open")

    return windows_of_contents(
        {host.name: read(host.open, f"host {host.name!r}") for host in hosts},
        [
            (
                link.from_host,
                link.to_host,
                read(link.open, f"link {link.from_host!r} -> {link.to_host!r}"),
            )
            for link in links
        ],
    )


def _rates_of_links(links: Sequence[Link]) -> dict[str, Any]:
    columns: dict[str, FloatArray | None] = {}
    for key in RATE_COLUMNS:
        values = [getattr(link, key) for link in links]
        given = any(value is not None for value in values)
        filled = [np.nan if value is None else value for value in values]
        columns[key] = np.array(filled, dtype=float) if given else None
    return columns


def contents_of_matrix(
    names: Sequence[str],
    bandwidth_bytes_per_s: InUnitsLike,
    backlog_bytes: InUnitsLike,
    destination: str,
    *,
    limits: Mapping[str, InUnitsLike],
    periods_s: InUnitsLike | None = None,
    shared: Iterable[SharedBottleneck] = (),
    held: Iterable[Held] = (),
    most_connections: InUnitsLike | None = None,
    production: Mapping[str, InUnitsLike | None] | None = None,
    rates: Mapping[str, InUnitsLike | None] | None = None,
) -> ProblemContents:
    """Bring a matrix of bandwidth into columns, see `Problem.from_matrix`.

    Parameters
    ----------
    names, bandwidth_bytes_per_s, backlog_bytes, destination, periods_s, shared, held
        As there.
    limits : mapping of str to array_like
        ``release_s``, ``storage_bytes``, ``uplink_bytes_per_s`` and ``downlink_bytes_per_s``: a
        number for all hosts or one each, of the latter two also a row of these for each period.
    most_connections : array_like, optional
        A number for all hosts or one each.
    production : mapping of str to array_like, optional
        ``produces_bytes_per_s`` and ``made_bytes``: a number for all hosts or one each.
    rates : mapping of str to array_like, optional
        ``per_connection_bytes_per_s``, ``capacity_bytes_per_s``, ``competitors``: a number for all
        links, or a matrix; NaN where a link has none.

    Raises
    ------
    ProblemError
        The matrix is not square, or something has not one number per host.

    Examples
    --------
    >>> import math
    >>> rates = [[0, 5.0], [0, 0]]
    >>> contents_of_matrix(["S", "D"], rates, [10, 0], "D", limits={
    ...     "release_s": 0.0,
    ...     "storage_bytes": math.inf,
    ...     "uplink_bytes_per_s": math.inf,
    ...     "downlink_bytes_per_s": [math.inf, 7.0],
    ... }).downlink_bytes_per_s
    array([[inf,  7.]])
    """
    names = texts_of(names, "names")
    n = len(names)
    hosts = ArrayAxis("host", lambda: names)
    of_pairs = {"bandwidth_bytes_per_s": bandwidth_bytes_per_s, **(rates or {})}
    made = {key: value for key, value in (production or {}).items() if value is not None}
    of_hosts = {"backlog_bytes": backlog_bytes, "most_connections": most_connections, **limits}
    of_hosts |= made
    said = values_in_units(of_pairs, COUNTED, dict.fromkeys(of_pairs, (hosts, hosts)))
    said |= values_in_units(of_hosts, COUNTED, dict.fromkeys(of_hosts, (hosts,)))
    matrix = floats_of("bandwidth_bytes_per_s", said["bandwidth_bytes_per_s"])
    starts = _starts(periods_s)
    if matrix.ndim == 2:
        matrix = matrix[np.newaxis]
    if matrix.shape != (len(starts), n, n):
        raise ProblemError(
            f"bandwidth_bytes_per_s must have shape ({n}, {n}) for {n} names, or "
            f"({len(starts)}, {n}, {n}) with {len(starts)} period(s), got {matrix.shape}"
        )
    used = _off_diagonal_nonzero(matrix)
    number = np.arange(n, dtype=np.int32)
    given: dict[str, Any] = {
        key: by_period(key, said[key], len(starts), n)
        if key in LIMITS
        else one_per_host(key, said[key], n)
        for key in limits
    }
    given |= {key: one_per_host(key, said[key], n) for key in made}
    return ProblemContents(
        names=names,
        destination=destination,
        backlog_bytes=whole_backlogs(names, said["backlog_bytes"]),
        link_from=_read_only(np.repeat(number, used.sum(axis=1))),
        link_to=_read_only(np.broadcast_to(number, (n, n))[used]),
        bandwidth_bytes_per_s=_read_only(matrix[:, used]),
        periods_s=starts,
        shared=tuple(shared),
        held=tuple(held),
        most_connections=None
        if most_connections is None
        else one_per_host("most_connections", said["most_connections"], n),
        **_rates_of_pairs({key: said[key] for key in rates or {}}, used),
        **given,
    )


def _rates_of_pairs(rates: Mapping[str, Any], used: BoolArray) -> dict[str, Any]:
    return {
        key: None if values is None else _of_pairs(key, values, used)
        for key, values in rates.items()
    }


def _of_pairs(key: str, values: Any, used: BoolArray) -> FloatArray:
    matrix = floats_of(key, values)
    if matrix.shape not in ((), used.shape):
        raise ProblemError(
            f"{key} must be a number or have shape {used.shape}, got shape {matrix.shape}"
        )
    return np.broadcast_to(matrix, used.shape)[used]


def _starts(periods_s: InUnitsLike | None, clock: Clock | None = None) -> FloatArray:
    if periods_s is None:
        return np.zeros(1)
    return floats_of("periods_s", in_units(periods_s, INSTANT, "periods_s", (), clock))


def _host_indices(index: Mapping[str, int], names: Sequence[str], what: str) -> IndexArray:
    try:
        return np.array([index[name] for name in names], dtype=np.int32)
    except KeyError as error:
        unknown = error.args[0]
        raise ProblemError(
            f"{what}: unknown host {unknown!r}{nearest_hint(str(unknown), index)}"
        ) from None


def _forecast(link: Link, n_periods: int) -> FloatArray:
    place = f"link {link.from_host!r} -> {link.to_host!r}: bandwidth_bytes_per_s"
    return _per_period(link.bandwidth_bytes_per_s, place, n_periods)


def _limit(host: Host, key: str, n_periods: int) -> FloatArray | HourlyRate:
    said, place = getattr(host, key), f"host {host.name!r}: {key}"
    if is_no_limit(said):
        said = math.inf
    if isinstance(said, str) and has_hours(said):
        return hourly_rate(said, place, COUNTED[key])
    return _per_period(in_units(said, COUNTED[key], place), place, n_periods)


def _shown(host: Host, limit: str, shown: str) -> Any:
    """Return what a host was seen to do: whatever is asked, where it has no limit."""
    return math.inf if is_no_limit(getattr(host, limit)) else getattr(host, shown)


def _per_period(given: Any, place: str, n_periods: int) -> FloatArray:
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{place} must be a number or one number per period, got {given!r}"
        ) from None
    if values.ndim == 0 or values.shape == (n_periods,):
        return np.broadcast_to(values, (n_periods,))
    raise ProblemError(
        f"{place} must be a number or one number per period ({n_periods}), got {values.size} "
        "numbers"
    )


def _off_diagonal_nonzero(matrix: FloatArray) -> BoolArray:
    """Mark the pairs (row, column) that have capacity in some period; NaN counts, to be found."""
    used: BoolArray = np.any(matrix != 0, axis=0)
    np.fill_diagonal(used, val=False)
    return used


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Mark a fresh array so that it need not be copied."""
    array.flags.writeable = False
    return array
