"""Rate of n connections together on a link or a wire: b(n) = min(n r, C n / (n + m)).

A congested wire gives to each connection: of C bytes per second, n of ours beside m of others get
C n/(n + m) (Altman, Barman, Tuffin, Vojnović, "Parallel TCP sockets: simple model, throughput and
validation", INFOCOM 2006). One connection alone gets at most r, by its window over the round trip
or by loss (Padhye, Firoiu, Towsley, Kurose, "Modeling TCP throughput", SIGCOMM 1998). What is known
of a link besides its bandwidth b(1) gives the others: C, m and r agree with it, or follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from datacollect.errors import ProblemError
from datacollect.problem.numbers import floats_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.numbers.arrays import BoolArray, FloatArray, IndexArray, IntArray
    from datacollect.problem.contents import ProblemContents

# As in files and tables; the attributes of problems have the same names.
RATE_COLUMNS = ("per_connection_bytes_per_s", "capacity_bytes_per_s", "competitors")

# What one connection gets, and what follows from the columns, may differ by this part: what is
# measured twice, or written in three digits, does.
AGREES = 0.01


@dataclass(frozen=True, eq=False)
class ConnectionRates:
    """b(n) of links, or of wires: arrays of one length.

    Attributes
    ----------
    bandwidth_bytes_per_s : ndarray of float, shape (n,)
        b(1), what one connection gets.
    per_connection_bytes_per_s, capacity_bytes_per_s : ndarray of float, shape (n,)
        Infinite where nothing of the kind limits; NaN where b(n) is b(1) for all n.
    competitors : ndarray of float, shape (n,)
        Connections of others; NaN likewise.

    Examples
    --------
    Of 12 bytes/s, beside two connections of others, one gets a third, four get two thirds:

    >>> b = ConnectionRates(*(np.array([x]) for x in (4.0, np.inf, 12.0, 2.0)))
    >>> b.rate(np.array([1, 4]))
    array([4., 8.])
    """

    bandwidth_bytes_per_s: FloatArray
    per_connection_bytes_per_s: FloatArray
    capacity_bytes_per_s: FloatArray
    competitors: FloatArray

    @property
    def grows(self) -> BoolArray:
        """Return where more connections get more; elsewhere the bandwidth is a constant."""
        return ~np.isnan(self.competitors)

    def at(self, rows: IntArray) -> ConnectionRates:
        """Return some rows."""
        return ConnectionRates(
            self.bandwidth_bytes_per_s[rows],
            self.per_connection_bytes_per_s[rows],
            self.capacity_bytes_per_s[rows],
            self.competitors[rows],
        )

    def rate(self, n: npt.ArrayLike) -> FloatArray:
        """Return b(n) for whole numbers or fractions of connections >= 0, in bytes per second."""
        n = np.asarray(n, dtype=float)
        one = self._bare(np.ones_like(n))
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = self.bandwidth_bytes_per_s * (self._bare(n) / one)
        constant = self.bandwidth_bytes_per_s * np.minimum(n, 1.0)
        return np.where(self.grows & (self.bandwidth_bytes_per_s > 0), scaled, constant)

    def _bare(self, n: FloatArray) -> FloatArray:
        """b(n) as the columns have it, which may be off b(1) by what `AGREES` allows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(
                np.isinf(self.capacity_bytes_per_s),
                np.inf,
                self.capacity_bytes_per_s * n / (n + self.competitors),
            )
            together = np.minimum(n * self.per_connection_bytes_per_s, share)
            return np.where(n == 0, 0.0, together)  # even beside none of others


def link_rates(problem: ProblemContents) -> ConnectionRates:
    """Return b(n) of all links, in the first period.

    Examples
    --------
    >>> import datacollect as dc
    >>> link = dc.Link("S", "D", 4.0, capacity_bytes_per_s=12.0)
    >>> problem = dc.Problem.from_hosts([dc.Host("S"), dc.Host("D")], [link], "D")
    >>> link_rates(problem).rate(4)
    array([8.])
    """
    bandwidth = problem.bandwidth_bytes_per_s[0]
    columns = (getattr(problem, key) for key in RATE_COLUMNS)
    none = np.full(len(bandwidth), np.nan)
    return ConnectionRates(bandwidth, *(none if c is None else c for c in columns))


def rates_of(problem: ProblemContents, link: int) -> dict[str, float]:
    """Return what files say of a link's rates by connections; what follows from it is left out.

    Examples
    --------
    >>> import datacollect as dc
    >>> link = dc.Link("S", "D", 4.0, capacity_bytes_per_s=12.0)
    >>> rates_of(dc.Problem.from_hosts([dc.Host("S"), dc.Host("D")], [link], "D"), 0)
    {'capacity_bytes_per_s': 12.0, 'competitors': 2.0}
    """
    if problem.competitors is None or np.isnan(problem.competitors[link]):
        return {}
    found = {key: float(getattr(problem, key)[link]) for key in RATE_COLUMNS}
    finite = {key: value for key, value in found.items() if np.isfinite(value)}
    if "capacity_bytes_per_s" not in finite:
        del finite["competitors"]  # without a wire there are none
    return finite


def given_columns(problem: ProblemContents) -> dict[str, FloatArray]:
    """Return the columns that `rates_of` has of all links, NaN where it leaves them out."""
    if problem.competitors is None:
        return {}
    found = {key: getattr(problem, key) for key in RATE_COLUMNS}
    no_wire = np.isinf(found["capacity_bytes_per_s"])
    found["competitors"] = np.where(no_wire, np.nan, found["competitors"])
    return {key: np.where(np.isinf(column), np.nan, column) for key, column in found.items()}


def wire_rates(problem: ProblemContents) -> ConnectionRates:
    """Return b(n) of all shared bottlenecks.

    Examples
    --------
    >>> import datacollect as dc
    >>> wire = dc.SharedBottleneck("w", 4.0, [("S", "D")], competitors=2)
    >>> hosts, links = [dc.Host("S"), dc.Host("D")], [dc.Link("S", "D", 4.0)]
    >>> problem = dc.Problem.from_hosts(hosts, links, "D", shared=[wire])
    >>> wire_rates(problem).rate(4)
    array([8.])
    """

    def column(key: str) -> FloatArray:
        values = [getattr(wire, key) for wire in problem.shared]
        return np.array([np.nan if value is None else value for value in values], dtype=float)

    bandwidth = column("bandwidth_bytes_per_s")
    none = np.full(len(bandwidth), np.nan)
    columns = completed(bandwidth, none, column(RATE_COLUMNS[1]), column(RATE_COLUMNS[2]), str)
    return ConnectionRates(bandwidth, *columns)


def completed(
    bandwidth_bytes_per_s: FloatArray,
    per_connection_bytes_per_s: FloatArray,
    capacity_bytes_per_s: FloatArray,
    competitors: FloatArray,
    name: Callable[[int], str],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return r, C and m where some are given: what is left out follows from one connection's rate.

    Parameters
    ----------
    bandwidth_bytes_per_s : ndarray of float, shape (n,)
    per_connection_bytes_per_s, capacity_bytes_per_s, competitors : ndarray of float, shape (n,)
        NaN where not given, r and C infinite where nothing limits.
    name : function of int
        What a row is called in messages.

    Returns
    -------
    tuple of three ndarrays
        NaN where none of the three is given.

    Raises
    ------
    ProblemError
        A number is out of range, or what is given contradicts the bandwidth.

    Notes
    -----
    With b the bandwidth: m = C/b - 1 where C is given without m (0 where the connection itself is
    the limit, b = r); C = b (1 + m) where m is given without C; r = b where C and m would give more
    than b. r alone must be b: n connections then get n times as much.

    Examples
    --------
    >>> nan = np.array([np.nan])
    >>> completed(np.array([4.0]), nan, np.array([12.0]), nan, str)
    (array([inf]), array([12.]), array([2.]))
    """
    b = bandwidth_bytes_per_s
    r, c, m = (np.array(x, dtype=float) for x in _given(locals(), name))
    r = np.where(np.isinf(r), np.nan, r)  # says nothing
    has_r, has_c, has_m = (~np.isnan(x) for x in (r, c, m))
    some = has_r | has_c | has_m
    idle = some & (b == 0)
    r, c, m = np.where(has_r, r, np.inf), np.where(has_c, c, np.inf), np.where(has_m, m, 0.0)
    most, least = b * (1 + AGREES), b * (1 - AGREES)
    with np.errstate(invalid="ignore", divide="ignore"):
        _refuse(
            some & ~idle & (r < least),
            lambda i: (
                f"{name(i)}: per_connection_bytes_per_s must be at least the bandwidth, which is "
                f"what one connection gets, {b[i]:g}, got {r[i]:g}"
            ),
        )
        _refuse(
            some & ~idle & (c < least),
            lambda i: (
                f"{name(i)}: capacity_bytes_per_s must be at least the bandwidth, which is what "
                f"one connection gets, {b[i]:g}, got {c[i]:g}"
            ),
        )
        _refuse(
            some & ~idle & ~has_c & ~has_m & (r > most),
            lambda i: (
                f"{name(i)}: one connection gets only the bandwidth, {b[i]:g}, though "
                f"per_connection_bytes_per_s allows {r[i]:g}; say what limits it: "
                "capacity_bytes_per_s or competitors"
            ),
        )
        _refuse(
            has_r & has_c & ~has_m & ~idle & (r <= most) & (c > most),
            lambda i: (
                f"{name(i)}: competitors must be given where per_connection_bytes_per_s is the "
                f"bandwidth, {b[i]:g}: it does not tell how many share the capacity of {c[i]:g}; "
                "0 if nobody else does"
            ),
        )
        m = np.where(has_c & ~has_m & np.isfinite(c) & (r > most), np.maximum(c / b - 1, 0.0), m)
        c = np.where(has_m & ~has_c, b * (1 + m), c)
        share = np.where(np.isinf(c), np.inf, c / (1 + m))
        _refuse(
            some & ~idle & (share < least),
            lambda i: (
                f"{name(i)}: one connection beside competitors = {m[i]:g} of others gets "
                f"{share[i]:g} of capacity_bytes_per_s = {c[i]:g}, but the bandwidth is {b[i]:g}; "
                "correct one of the three"
            ),
        )
        r = np.where(has_c & has_m & ~has_r & (share > most), b, r)
        alone = np.minimum(r, share)
        _refuse(
            some & ~idle & (alone > most),
            lambda i: (
                f"{name(i)}: one connection would get {alone[i]:g} by per_connection_bytes_per_s, "
                f"capacity_bytes_per_s and competitors, but the bandwidth is {b[i]:g}; correct one "
                "of the four"
            ),
        )
    known = some & ~idle
    r, c, m = (np.where(known, x, np.nan) for x in (r, c, m))
    return r, c, m


def completed_links(
    names: Sequence[str],
    link_from: IndexArray,
    link_to: IndexArray,
    bandwidth_bytes_per_s: FloatArray,
    rates: Mapping[str, npt.ArrayLike | None],
    order: IntArray | None,
) -> dict[str, FloatArray]:
    """Return the links' columns of rates, sorted by `order`; none where no link has any.

    Raises
    ------
    ProblemError
        As `completed` does; or a link with such rates has a forecast.

    Examples
    --------
    >>> ends, b = np.array([0]), np.array([[4.0]])
    >>> found = completed_links(["S", "D"], ends, ends + 1, b, {"competitors": [2.0]}, None)
    >>> found["capacity_bytes_per_s"]
    array([12.])
    """
    if all(rates.get(key) is None for key in RATE_COLUMNS):
        return {}
    n_links = bandwidth_bytes_per_s.shape[1]
    columns = []
    for key in RATE_COLUMNS:
        values = rates.get(key)
        column = np.full(n_links, np.nan) if values is None else floats_of(key, values)
        if column.shape != (n_links,):
            raise ProblemError(
                f"{key} must have one number per link ({n_links}), got shape {column.shape}"
            )
        columns.append(column if order is None else column[order])

    def name(i: int) -> str:
        return f"link {names[link_from[i]]!r} -> {names[link_to[i]]!r}"

    first = bandwidth_bytes_per_s[0]
    changes = (bandwidth_bytes_per_s != first).any(axis=0)
    _refuse(
        changes & ~np.isnan(columns).all(axis=0),
        lambda i: (
            f"{name(i)}: its bandwidth must be the same in all periods, since "
            f"{', '.join(RATE_COLUMNS)} say how it grows; leave these out"
        ),
    )
    alone, capacity, competitors = columns
    found = completed(first, alone, capacity, competitors, name)
    return dict(zip(RATE_COLUMNS, found, strict=True))


def _given(columns: dict[str, object], name: Callable[[int], str]) -> list[FloatArray]:
    """Refuse numbers below 0, and 0 where nothing could move."""
    found = []
    for key in RATE_COLUMNS:
        values: FloatArray = np.asarray(columns[key], dtype=float)
        low, rule = (values < 0, ">= 0") if key == "competitors" else (values <= 0, "> 0")
        bad = low | (np.isinf(values) if key == "competitors" else np.zeros(len(values), bool))
        if bad.any():
            i = int(np.argmax(bad))
            raise ProblemError(f"{name(i)}: {key} must be {rule} and finite, got {values[i]:g}")
        found.append(values)
    return found


def _refuse(bad: BoolArray, message: Callable[[int], str]) -> None:
    if bad.any():
        raise ProblemError(message(int(np.argmax(bad))))
