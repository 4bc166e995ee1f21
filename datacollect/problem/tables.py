"""Problems from and to tables (pandas)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.one_number import SINCE_1970
from datacollect.files.units import BYTES_PER_S
from datacollect.files.with_units import INSTANT, in_units
from datacollect.numbers.containers import (
    by_name,
    frame_of,
    is_series,
    opened,
    texts_of,
    values_of,
)
from datacollect.problem.connection_rates import RATE_COLUMNS, given_columns
from datacollect.problem.contents import ProblemContents
from datacollect.problem.fields import COUNTED
from datacollect.problem.host_limits import LIMITS, SHOWN
from datacollect.problem.hourly_rates import has_hours, is_no_limit
from datacollect.problem.link_table import LAST_SINCE_1970_S, SINCE_1970_S, oldest_s
from datacollect.problem.numbers import floats_of, numbers_of
from datacollect.problem.places import PLACE_COLUMNS
from datacollect.problem.production import PRODUCTION_COLUMNS
from datacollect.problem.rules import whole_backlogs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from datacollect.files.quantities import WholeBytes
    from datacollect.numbers.arrays import FloatArray, IntArray, InUnitsLike
    from datacollect.problem.hosts import Held, SharedBottleneck

HOST_COLUMNS = (
    "release_s",
    "storage_bytes",
    "uplink_bytes_per_s",
    "downlink_bytes_per_s",
    *SHOWN.values(),
    "most_connections",
    *PRODUCTION_COLUMNS,
    *PLACE_COLUMNS,
)

# What `datacollect.measurement.estimates.estimate` adds to the bandwidth.
ESTIMATE_COLUMNS = (
    *("newest_s", "age_s", "n_samples"),
    *("mean_bytes_per_s", "last_bytes_per_s", "kind"),
)
LINK_COLUMNS = (
    "from",
    "to",
    *BYTES_PER_S,
    "period",
    "price_per_gb",
    *RATE_COLUMNS,
    *ESTIMATE_COLUMNS,
)


def contents_of_table(
    links: pd.DataFrame,
    backlog_bytes: Mapping[str, WholeBytes] | pd.Series[Any],
    destination: str,
    *,
    hosts: pd.DataFrame | None = None,
    periods_s: InUnitsLike | None = None,
    shared: Iterable[SharedBottleneck] = (),
    held: Iterable[Held] = (),
) -> ProblemContents:
    """Bring a table of links, long or square, into columns.

    Parameters and errors are those of `datacollect.problem.problem.Problem.from_dataframe`, which
    says what they mean.

    Examples
    --------
    >>> import pandas as pd
    >>> links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_mbit_per_s": [2.5]})
    >>> contents = contents_of_table(links, {"S": 10**6}, "D")
    >>> contents.names, contents.bandwidth_bytes_per_s.tolist()
    (('D', 'S'), [[312500.0]])
    """
    links = frame_of(links, "links")
    hosts = None if hosts is None else frame_of(hosts, "hosts")
    backlog = _backlog_by_name(backlog_bytes)
    starts = np.zeros(1)
    if periods_s is not None:
        starts = floats_of("periods_s", in_units(periods_s, INSTANT, "periods_s"))
    host_list = None if hosts is None else _host_names(hosts)
    columns: dict[str, Any]
    if {"from", "to"} <= set(links.columns):
        names, columns = _long(links, host_list, backlog, starts)
    else:
        names, columns = _square(links, host_list, backlog, starts)
    for name in backlog:
        if name not in names:
            raise ProblemError(
                f"backlog_bytes: unknown host {name!r}; add it to hosts" + nearest_hint(name, names)
            )
    return ProblemContents(
        names=tuple(names),
        destination=destination,
        backlog_bytes=whole_backlogs(names, [backlog.get(name, 0) for name in names]),
        periods_s=starts,
        shared=tuple(shared),
        held=tuple(held),
        measured_s=_measured_s(links),
        **_host_limits(hosts, len(names), len(starts)),
        **columns,
    )


def columns_of_links(
    links: pd.DataFrame, names: Sequence[str], periods_s: FloatArray
) -> dict[str, Any]:
    """Bring a long table of links between hosts that are known into columns.

    Parameters
    ----------
    links : DataFrame
        As of `contents_of_table`.
    names : sequence of str
        The hosts, in their order.
    periods_s : ndarray of float
        Starts of the forecast's periods.

    Raises
    ------
    ProblemError
        As of `contents_of_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_mbit_per_s": [2.5]})
    >>> columns = columns_of_links(links, ("S", "D"), np.zeros(1))
    >>> columns["link_to"].tolist(), columns["bandwidth_bytes_per_s"].tolist()
    ([1], [[312500.0]])
    """
    links = frame_of(links, "links")
    for end in ("from", "to"):
        if end not in links:
            raise ProblemError(f"links must have a column {end}, got {_listed(links.columns)}")
    return _long(links, list(names), {}, periods_s)[1]


def links_frame(problem: ProblemContents) -> pd.DataFrame:
    """Return the links as a long table that `Problem.from_dataframe` reads.

    Columns: from, to, period (only where there are several), bandwidth_bytes_per_s, price_per_gb
    (only where some link has one).

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> links_frame(problem).to_dict("records")
    [{'from': 'S', 'to': 'D', 'bandwidth_bytes_per_s': 5.0}]
    """
    import pandas as pd

    names = np.array(problem.names, dtype=object)
    n = len(problem.periods_s)
    columns: dict[str, Any] = {
        "from": np.tile(names[problem.link_from], n),
        "to": np.tile(names[problem.link_to], n),
    }
    if n > 1:
        columns["period"] = np.repeat(np.arange(n), len(problem.link_from))
    columns["bandwidth_bytes_per_s"] = problem.bandwidth_bytes_per_s.ravel()
    if problem.price_per_gb is not None:
        columns["price_per_gb"] = np.tile(problem.price_per_gb, n)
    columns |= {key: np.tile(column, n) for key, column in given_columns(problem).items()}
    return pd.DataFrame(columns)


# Tables -------------------------------------------------------------------------------------


def _long(
    links: pd.DataFrame,
    host_list: list[str] | None,
    backlog: Mapping[str, int],
    starts: FloatArray,
) -> tuple[list[str], dict[str, Any]]:
    """Return hosts' names and the problem's columns of links from a long table."""
    bandwidth_column = _check_columns(links)
    period = None
    if "period" in links:
        links, period = _with_periods(links, len(starts))
    names, tail, head = _ends(links, host_list, backlog)
    with np.errstate(over="ignore"):  # what becomes infinite is refused by the rules of problems
        bandwidth = _numbers_of(links, bandwidth_column, "links") * BYTES_PER_S[bandwidth_column]
    rates = {
        key: _numbers_of(links, key, "links") if key in links else None for key in RATE_COLUMNS
    }
    price = _numbers_of(links, "price_per_gb", "links") if "price_per_gb" in links else None
    if period is None:
        matrix = np.tile(bandwidth, (len(starts), 1))
    else:
        key, row, pair = np.unique(
            tail.astype(np.int64) * len(names) + head, return_index=True, return_inverse=True
        )

        def link(i: int) -> str:
            return f"links, {names[key[i] // len(names)]!r} -> {names[key[i] % len(names)]!r}"

        matrix = _period_rows(bandwidth, period, pair, (len(starts), len(key)), link)
        tail, head = tail[row], head[row]
        if price is not None:
            changed = np.flatnonzero(price != price[row][pair])
            if len(changed):
                raise ProblemError(
                    f"{link(pair[changed[0]])}: price_per_gb must be the same in all periods, "
                    f"got {price[changed[0]]:g} in period {period[changed[0]]}"
                )
            price = price[row]
        rates = {key: None if values is None else values[row] for key, values in rates.items()}
    return names, rates | {
        "link_from": tail.astype(np.int32),
        "link_to": head.astype(np.int32),
        "bandwidth_bytes_per_s": matrix,
        "price_per_gb": price if price is not None and price.any() else None,
    }


def _period_rows(
    bandwidth: FloatArray,
    period: IntArray,
    pair: IntArray,
    shape: tuple[int, int],
    link: Callable[[int], str],
) -> FloatArray:
    """Spread a long table's bandwidths over periods and links, each exactly once."""
    given = np.bincount(period * shape[1] + pair, minlength=shape[0] * shape[1]).reshape(shape)
    if (given != 1).any():
        p, i = (int(x) for x in np.argwhere(given != 1)[0])
        count = f"{given[p, i]} rows for period {p}"
        raise ProblemError(f"{link(i)}: must have one row per period, got {count}; 0: no capacity")
    matrix = np.empty(shape)
    matrix[period, pair] = bandwidth
    return matrix


def _square(
    links: pd.DataFrame,
    host_list: list[str] | None,
    backlog: Mapping[str, int],
    starts: FloatArray,
) -> tuple[list[str], dict[str, Any]]:
    """Return hosts' names and the problem's columns of links from a square table."""
    names, across = (list(texts_of(ends, "links")) for ends in (links.index, links.columns))
    if set(names) != set(across) or links.shape != (len(set(names)), len(set(names))):
        raise ProblemError(
            "links must be long, with columns from, to and a bandwidth, or square, with the same "
            f"names once each in index and columns; got columns {_listed(links.columns)}"
        )
    extra = sorted(set(names) - set(host_list or names), key=str)
    if extra:
        raise ProblemError(
            f"links: unknown host {extra[0]!r}; add it to hosts"
            + nearest_hint(str(extra[0]), host_list or [])
        )
    matrix = np.empty(links.shape)
    for i, name in enumerate(names):
        matrix[:, i] = numbers_of(
            links.iloc[:, across.index(name)],
            f"links: column {name!r}",
            COUNTED["bandwidth_bytes_per_s"],
        )
    used = (matrix != 0) & ~np.isnan(matrix)
    np.fill_diagonal(used, val=False)
    tail, head = (end.astype(np.int32) for end in np.nonzero(used))
    bandwidth = np.tile(matrix[tail, head], (len(starts), 1))
    all_names = host_list or [*names, *sorted(set(backlog) - set(names))]
    if all_names[: len(names)] != names:
        place = {name: i for i, name in enumerate(all_names)}
        index = np.array([place[name] for name in names], dtype=np.int32)
        tail, head = index[tail], index[head]
    return all_names, {
        "link_from": tail,
        "link_to": head,
        "bandwidth_bytes_per_s": bandwidth,
    }


def _check_columns(links: pd.DataFrame) -> str:
    """Refuse unknown columns; return the name of the column with bandwidths."""
    for column in links.columns:
        if column not in LINK_COLUMNS:
            raise ProblemError(
                f"links: unknown column {column!r}; rename or drop it: known are "
                + ", ".join(LINK_COLUMNS)
                + nearest_hint(str(column), LINK_COLUMNS)
            )
    given = [column for column in BYTES_PER_S if column in links]
    if len(given) != 1:
        raise ProblemError(
            f"links must have exactly one of the columns {', '.join(BYTES_PER_S)}, got "
            + (" and ".join(given) or "none")
        )
    return given[0]


def _ends(
    links: pd.DataFrame, host_list: list[str] | None, backlog: Mapping[str, int]
) -> tuple[list[str], IntArray, IntArray]:
    """Return hosts' names and both ends of each row as indices into them."""
    import pandas as pd

    ends = pd.concat([_texts(links, "from"), _texts(links, "to")])
    code, seen = pd.factorize(ends)
    names = sorted({*seen, *backlog}) if host_list is None else host_list
    place = {name: i for i, name in enumerate(names)}
    unknown = [name for name in seen if name not in place]
    if unknown:
        raise ProblemError(
            f"links: unknown host {unknown[0]!r}; add it to hosts" + nearest_hint(unknown[0], names)
        )
    index = np.array([place[name] for name in seen], dtype=np.int64)[code]
    return names, index[: len(links)], index[len(links) :]


def _texts(links: pd.DataFrame, column: str) -> pd.Series[str]:
    import pandas as pd

    values = links[column].astype(object)  # categories and dictionaries become their texts
    missing = values.isna().to_numpy(dtype=bool)
    if len(values) and (missing.any() or pd.api.types.infer_dtype(values) != "string"):
        row = next(i for i, name in enumerate(values) if missing[i] or not isinstance(name, str))
        given = values.iloc[[row]].tolist()[0]
        raise ProblemError(
            f"links, row {row}: {column} must be a host's name as text, got {given!r}; "
            "astype(str) turns numbers into texts"
        )
    return values


def _measured_s(links: pd.DataFrame) -> float | None:
    """Return when the oldest estimate was measured, where its times are seconds since 1970."""
    if "newest_s" not in links:
        return None
    newest_s = numbers_of(links["newest_s"], "links: newest_s", INSTANT, SINCE_1970)
    late = newest_s > LAST_SINCE_1970_S
    if late.any():
        row = int(np.argmax(late))
        raise ProblemError(
            f"links, row {row}: newest_s must be seconds since 1970, got {newest_s[row]:.15g}; "
            "divide milliseconds by 1000, or leave the column out"
        )
    found = oldest_s(newest_s)
    return found if found is not None and found >= SINCE_1970_S else None


def _with_periods(links: pd.DataFrame, n_periods: int) -> tuple[pd.DataFrame, IntArray]:
    """Return the rows and the period of each; those without a period are repeated in all."""
    period = numbers_of(links["period"], "links: period")
    everywhere = np.isnan(period)
    whole = (period >= 0) & (period < n_periods) & (period == np.floor(period))
    bad = ~(everywhere | whole)
    if bad.any():
        row = int(np.argmax(bad))
        raise ProblemError(
            f"links, row {row}: period must be a whole number from 0 to {n_periods - 1}, got "
            f"{period[row]:g}; periods_s lists the starts of {n_periods} period(s)"
        )
    times = np.where(everywhere, n_periods, 1)
    rows = np.repeat(np.arange(len(times)), times)
    number = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return links.take(rows), np.where(everywhere[rows], number, period[rows]).astype(np.int64)


def _host_names(hosts: pd.DataFrame) -> list[str]:
    for column in hosts.columns:
        if column not in HOST_COLUMNS:
            raise ProblemError(
                f"hosts: unknown column {column!r}; known are {', '.join(HOST_COLUMNS)}, the index "
                "holds the names" + nearest_hint(str(column), HOST_COLUMNS)
            )
    return list(texts_of(hosts.index, "hosts"))


def _host_limits(hosts: pd.DataFrame | None, n_hosts: int, n_periods: int) -> dict[str, Any]:
    limits, without = {}, {}
    for column in HOST_COLUMNS:
        default = 0.0 if column in ("release_s", "made_bytes", *SHOWN.values()) else math.inf
        default = math.nan if column in PLACE_COLUMNS else default
        limits[column] = np.full(n_hosts, default)
        if hosts is not None and column in hosts:
            values = hosts[column]
            if column in LIMITS:
                without[column] = np.array([is_no_limit(cell) for cell in values])
                values = values.mask(without[column], math.nan) if without[column].any() else values
            given = (
                _by_period(values, column, n_periods)
                if column in LIMITS
                else _numbers_of(hosts, column, "hosts")
            )
            limits[column] = np.where(np.isnan(given), default, given)
    for column, has_none in without.items():
        limits[SHOWN[column]][has_none] = math.inf
    return limits


def _numbers_of(table: pd.DataFrame, column: str, what: str) -> FloatArray:
    """Return a column's numbers; texts with units where the column's name is that of a file's."""
    return numbers_of(table[column], f"{what}: {column}", COUNTED.get(column))


def _by_period(values: pd.Series[Any], column: str, n_periods: int) -> FloatArray:
    """Return what hosts say by numbers, or by lists with one number per period."""
    import pandas as pd

    where, kind = f"hosts: {column}", COUNTED[column]
    for name, cell in values.items():
        if isinstance(cell, str) and has_hours(cell):
            raise ProblemError(
                f"{where} of {name!r}: hours of the day need start, which tables do not have; use "
                "Problem.from_hosts, or periods_s and a list of one number per period"
            )
    cells = [opened(cell, where) for cell in values]
    cells = [values_of(cell) if is_series(cell) else cell for cell in cells]
    values = pd.Series(cells, values.index, dtype=object)
    several = [isinstance(cell, list | tuple | np.ndarray) for cell in values]
    if not any(several):
        return numbers_of(values, where, kind)
    for name, cell, is_list in zip(values.index, values, several, strict=True):
        if is_list and len(cell) != n_periods:
            raise ProblemError(
                f"{where} of {name!r} must be a number or one number per period ({n_periods}), got "
                f"{len(cell)} numbers; periods_s lists the starts of periods"
            )
    spread = [
        cell if is_list else [cell] * n_periods
        for cell, is_list in zip(values, several, strict=True)
    ]
    columns = zip(*spread, strict=True)
    return np.array(
        [numbers_of(pd.Series(list(rates), values.index), where, kind) for rates in columns]
    )


def _backlog_by_name(backlog_bytes: Mapping[str, WholeBytes] | pd.Series[Any]) -> dict[str, int]:
    found: dict[str, int] = in_units(
        by_name(backlog_bytes, "backlog_bytes"), COUNTED["backlog_bytes"], "backlog_bytes"
    )
    for name in found:
        if not isinstance(name, str):
            raise ProblemError(f"backlog_bytes: a host's name must be text, got {name!r}")
    return found


def _listed(columns: Iterable[Any]) -> str:
    names = [repr(column) for column in columns]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
