"""Sources that make their backlogs at a constant rate: what files and objects say of them.

Such a source makes byte after byte, in the order of offsets, from its release on. What is there
already is the beginning of its backlog. Plans see it by `datacollect.flow.makers`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.problem.numbers import one_per_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    import numpy.typing as npt

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.contents import ProblemContents
    from datacollect.problem.hosts import Host

PRODUCTION_COLUMNS = ("produces_bytes_per_s", "made_bytes")


def production_of_hosts(hosts: Sequence[Host]) -> dict[str, Any]:
    """Return what hosts say of what they make, as columns.

    Raises
    ------
    ProblemError
        A host makes data at a rate, and has no backlog.
    """
    rows: list[tuple[str, Any, Any, Any]] = [
        (f"host {h.name!r}", h.backlog_bytes, h.produces_bytes_per_s, h.made_bytes) for h in hosts
    ]
    return _columns(rows)


def production_of_trees(
    hosts: Mapping[str, Mapping[str, Any]], backlog_bytes: Iterable[int]
) -> dict[str, Any]:
    """Return what a file's hosts say of what they make, as columns; see `production_of_hosts`."""
    rows = [
        (f"hosts.{name}", backlog, host["produces_bytes_per_s"] or math.inf, host["made_bytes"])
        for (name, host), backlog in zip(hosts.items(), backlog_bytes, strict=True)
    ]
    return _columns(rows)


def _columns(rows: Sequence[tuple[str, Any, Any, Any]]) -> dict[str, Any]:
    for where, backlog, rate, made in rows:
        if math.isfinite(rate) and not backlog:
            raise ProblemError(
                f"{where}: produces_bytes_per_s needs backlog_bytes, which is how much is made in "
                f"all, got {rate:g} bytes/s of nothing; add it: the rate times the seconds"
            )
        if made and math.isinf(rate):
            raise ProblemError(
                f"{where}: made_bytes needs produces_bytes_per_s, got {made} alone; add the rate, "
                "or leave it out where all is there at release_s"
            )
    if not any(math.isfinite(rate) for _, _, rate, _ in rows):
        return {}
    return {
        "produces_bytes_per_s": np.array([rate for _, _, rate, _ in rows], dtype=float),
        "made_bytes": [made for _, _, _, made in rows],
    }


def production_tree(problem: ProblemContents, host: int) -> dict[str, Any]:
    """Return what files say of what a host makes; nothing of one whose data are all there."""
    rates, made = problem.produces_bytes_per_s, problem.made_bytes
    if rates is None or made is None or math.isinf(rates[host]):
        return {}
    tree: dict[str, Any] = {"produces_bytes_per_s": float(rates[host])}
    return tree | ({"made_bytes": int(made[host])} if made[host] else {})


def changed_production(problem: ProblemContents, changed: Set[str]) -> dict[str, Any]:
    """Check what sources make where it has changed; return both columns, frozen, or two None.

    Raises
    ------
    ProblemError
        A rate is not above 0, or more is there than is to be made.
    """
    if not changed & {"names", "backlog_bytes", *PRODUCTION_COLUMNS}:
        return {}
    if problem.produces_bytes_per_s is None:
        return dict.fromkeys(PRODUCTION_COLUMNS)
    rates = _rates(problem.names, problem.produces_bytes_per_s)
    rates[problem.backlog_bytes == 0] = math.inf
    if np.isinf(rates).all():
        return dict.fromkeys(PRODUCTION_COLUMNS)
    made = _made(problem, problem.made_bytes, rates)
    for column in (rates, made):
        column.flags.writeable = False
    return {"produces_bytes_per_s": rates, "made_bytes": made}


def _rates(names: Sequence[str], values: npt.ArrayLike) -> FloatArray:
    rates = one_per_host("produces_bytes_per_s", values, len(names))
    bad = ~(rates > 0)
    if bad.any():
        i = int(np.argmax(bad))
        raise ProblemError(
            f"host {names[i]!r}: produces_bytes_per_s must be > 0, got {rates[i]:g}; leave it out "
            "where all is there at release_s"
        )
    return rates


def _made(problem: ProblemContents, values: Any, rates: FloatArray) -> IntArray:
    n_hosts = len(problem.names)
    given = np.zeros(n_hosts) if values is None else np.asarray(values)
    if given.ndim == 0:
        given = np.full(n_hosts, given)
    if given.shape != (n_hosts,):
        raise ProblemError(
            f"made_bytes must be a number or one number per host ({n_hosts}), got shape "
            f"{given.shape}"
        )
    # Integers stay what they are: floats would lose digits of large ones.
    given = np.where(np.isinf(rates), 0, given)
    for i in np.flatnonzero(given).tolist():
        made, backlog = given[i], int(problem.backlog_bytes[i])
        if not (0 <= made <= backlog and made == int(made)):
            raise ProblemError(
                f"host {problem.names[i]!r}: made_bytes must be whole and at most the backlog of "
                f"{backlog} bytes, got {made:.15g}; made_bytes says how many of these exist at "
                "release_s"
            )
    return given.astype(np.int64)


def reject_early_held(problem: ProblemContents) -> None:
    """Raise `ProblemError` where data lie elsewhere that their source has yet to make."""
    rates, made = problem.produces_bytes_per_s, problem.made_bytes
    if rates is None or made is None or not problem.held:
        return
    index = {name: i for i, name in enumerate(problem.names)}
    for held in problem.held:
        source = index[held.source]
        end = held.offset_bytes + held.n_bytes
        if math.isfinite(rates[source]) and held.n_bytes and end > made[source]:
            raise ProblemError(
                f"held data of {held.source!r} at {held.host!r}: the range ends at byte {end}, "
                f"but {held.source!r} has made {made[source]} bytes so far; set made_bytes to at "
                "least the end of the range"
            )


def made_by(problem: ProblemContents, host: int, at_s: FloatArray) -> FloatArray:
    """Return how many bytes a source has made by some instants, not before its release.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", produces_bytes_per_s=2.0, release_s=1.0
    ... )
    >>> made_by(problem, 0, np.array([1.0, 2.0, 9.0])).tolist()
    [0.0, 2.0, 10.0]
    """
    assert problem.produces_bytes_per_s is not None
    assert problem.made_bytes is not None
    since_s = np.maximum(at_s - problem.release_s[host], 0.0)
    made = problem.made_bytes[host] + problem.produces_bytes_per_s[host] * since_s
    most: FloatArray = np.minimum(made, float(problem.backlog_bytes[host]))
    return most


def last_made_s(problem: ProblemContents) -> float:
    """Return when the last byte is made that sources make; 0 where none makes any.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D", produces_bytes_per_s=2.0, release_s=1.0
    ... )
    >>> last_made_s(problem)
    6.0
    """
    rates, made = problem.produces_bytes_per_s, problem.made_bytes
    if rates is None or made is None:
        return 0.0
    # Where all is there nothing is left to be made: the rate is infinite.
    ends: FloatArray = problem.release_s + (problem.backlog_bytes - made) / rates
    ends = ends[np.isfinite(rates) & (np.array(problem.names) != problem.destination)]
    return float(ends.max(initial=0.0))
