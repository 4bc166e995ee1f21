"""New estimates by hosts' names, as mappings or tables: their columns by the hosts' numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.with_units import BANDWIDTH, INSTANT, in_units
from datacollect.numbers.containers import by_name, is_frame, is_series, opened
from datacollect.problem.connection_rates import RATE_COLUMNS
from datacollect.problem.tables import columns_of_links

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.files.quantities import BytesPerS, Seconds
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem

Rates: TypeAlias = "BytesPerS | Sequence[BytesPerS]"
LinksByName: TypeAlias = (
    "Mapping[tuple[str, str], Rates] | Mapping[str, Mapping[str, Rates]] | pd.Series | pd.DataFrame"
)

BY_NAMES = "must be named by (from, to), or by from and then by to"
REMEDY = 'write {("S", "D"): "10 Mbit/s"}, or {"S": {"D": "10 Mbit/s"}}'

# At most this many hosts are listed where none is like the one that was named.
MOST_NAMED = 10


def columns_by_name(
    problem: Problem, links: LinksByName, periods_s: Sequence[Seconds] | None
) -> dict[str, Any]:
    """Return the columns of `datacollect.schedule.data.new_links.NewLinks`.

    Parameters and errors are those of its `from_names`, which says what they mean.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> columns_by_name(problem, {"S": {"D": "20 bit/s"}}, None)["link_to"].tolist()
    [1]
    """
    starts = _starts(periods_s)
    found = opened(links, "links")
    columns = _of_table(problem, found, starts) if is_frame(found) else None
    if columns is None:
        columns = _of_pairs(problem, _pairs_of(found), len(starts))
    rates = columns["bandwidth_bytes_per_s"]
    _require_ends_and_rates(problem, columns["link_from"], columns["link_to"], rates)
    return columns | {"periods_s": starts}


def _starts(periods_s: Sequence[Seconds] | None) -> FloatArray:
    given = [0.0] if periods_s is None else in_units(periods_s, INSTANT, "periods_s")
    starts = np.asarray(given, dtype=float)
    rises = starts.ndim == 1 and len(starts) > 0 and starts[0] == 0 and (np.diff(starts) > 0).all()
    if not (rises and np.isfinite(starts).all()):
        raise ProblemError(
            f"periods_s must begin with 0 and rise, in seconds from the progress' instant, got "
            f"{starts.tolist()}"
        )
    return starts


def _of_table(problem: Problem, links: pd.DataFrame, starts: FloatArray) -> dict[str, Any]:
    for column in RATE_COLUMNS:
        if column in links:
            raise ProblemError(
                f"links: column {column} belongs in a problem: plans of what remains take new "
                "bandwidths as constants; drop it"
            )
    columns = columns_of_links(links, problem.names, starts)
    price, n_links = columns["price_per_gb"], len(columns["link_from"])
    if price is None:
        price = np.full(n_links, 0.0 if "price_per_gb" in links else math.nan)
    kept = {key: columns[key] for key in ("link_from", "link_to", "bandwidth_bytes_per_s")}
    return kept | {"price_per_gb": price}


def _pairs_of(links: Any) -> dict[tuple[Any, Any], Any]:
    """Return bandwidths by (from, to), whichever way they are nested."""
    if not isinstance(links, Mapping) and not is_series(links):
        raise ProblemError(f"links {BY_NAMES}, got {type(links).__name__}; {REMEDY}")
    found: dict[tuple[Any, Any], Any] = {}
    for key, value in by_name(links, "links").items():
        if isinstance(value, Mapping) and not isinstance(key, tuple):
            own = {(key, head): rates for head, rates in value.items()}
        elif isinstance(key, tuple) and len(key) == 2:
            own = {key: value}
        else:
            raise ProblemError(f"links {BY_NAMES}, got {key!r}; {REMEDY}")
        for tail, head in found.keys() & own.keys():
            raise ProblemError(f"links, {tail!r} -> {head!r} given twice; keep one")
        found |= own
    return found


def _of_pairs(
    problem: Problem, pairs: Mapping[tuple[Any, Any], Any], n_periods: int
) -> dict[str, Any]:
    rates = np.empty((n_periods, len(pairs)))
    for i, ((tail, head), value) in enumerate(pairs.items()):
        where = f"links, {tail!r} -> {head!r}"
        given = in_units(value, BANDWIDTH, where)
        try:
            numbers = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            raise ProblemError(f"{where} must be a bandwidth, got {value!r}") from None
        if numbers.shape not in ((), (n_periods,)):
            raise ProblemError(
                f"{where} must be a number or one number per period ({n_periods}), got "
                f"{value!r}; periods_s lists the starts of periods"
            )
        rates[:, i] = numbers
    ends = [[_index(problem, pair[end]) for pair in pairs] for end in (0, 1)]
    return {
        "link_from": np.array(ends[0], dtype=np.int64),
        "link_to": np.array(ends[1], dtype=np.int64),
        "bandwidth_bytes_per_s": rates,
        "price_per_gb": np.full(len(pairs), math.nan),
    }


def _index(problem: Problem, name: Any) -> int:
    try:
        return problem.host_index[name]
    except (KeyError, TypeError):
        few = ", ".join(map(repr, problem.names[:MOST_NAMED]))
        few += ", …" * (problem.n_hosts > MOST_NAMED)
        hint = nearest_hint(str(name), problem.names) or f"; hosts are {few}"
        raise ProblemError(f"links: unknown host {name!r}{hint}") from None


def _require_ends_and_rates(problem: Problem, tail: Any, head: Any, rates: FloatArray) -> None:
    wrong = ~((rates >= 0) & (rates < math.inf))
    for i in np.flatnonzero((tail == head) | wrong.any(axis=0))[:1].tolist():
        where = f"links, {problem.names[tail[i]]!r} -> {problem.names[head[i]]!r}"
        if tail[i] == head[i]:
            raise ProblemError(f"{where} must join two different hosts; remove it")
        got = rates[:, i][wrong[:, i]][0]
        raise ProblemError(
            f"{where} must be >= 0 and finite, got {got:g} bytes/s; use 0 for no capacity"
        )
