"""Problem of collecting, from receipts: what each bistro holds, and from when on."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.kinds import shown
from datacollect.problem.hosts import Held

if TYPE_CHECKING:
    import pandas as pd

    from datacollect.numbers.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem

COLUMNS = ("bistro", "bytes", "time_s")
# What all hosts together may hold is a whole number below this.
MOST_BYTES = 2**62
# Who sends nothing counts as this slow, so that its copies are taken last.
_LEAST_BYTES_PER_S = 1e-9
# Of a host without links, which limits nothing.
_UNLIMITED = {
    "release_s": 0.0,
    **dict.fromkeys(("storage_bytes", "uplink_bytes_per_s", "downlink_bytes_per_s"), np.inf),
    "most_connections": np.inf,
    **dict.fromkeys(("latitude", "longitude"), np.nan),
}


def problem_of(receipts: pd.DataFrame, network: Problem, *, now_s: float | None = None) -> Problem:
    """Return the problem of collecting what bistros hold.

    Parameters
    ----------
    receipts : DataFrame
        A row for each upload: ``bistro``, a host of the network; ``bytes``; ``time_s``, when it was
        there, in seconds since 1970. Other columns are left alone, but for ``entry``, if there is
        one: rows of one entry are copies, of which one is collected, from where it is there sooner
        with what else lies there.
    network : Problem
        Hosts and bandwidths; its backlogs are replaced.
    now_s : float, optional
        When the collection begins, on the clock of ``time_s``. What comes later waits, at each
        bistro, for the last of it. None: everything is there.

    Returns
    -------
    Problem
        The network with backlogs and releases by the receipts. Plan it with `coordinated`. Where a
        bistro has something now and gets more, what it has is the backlog of a further host,
        ``NAME (now)``, held at the bistro; with limited storage all waits for the last.

    Raises
    ------
    ProblemError
        A column is missing, a bistro is not in the network, a number is not valid.

    Examples
    --------
    >>> import datacollect as dc
    >>> import pandas as pd
    >>> network = dc.Problem.from_matrix(
    ...     ["north", "south", "D"], [[0, 9e6, 1e6], [9e6, 0, 4e6], [0, 0, 0]], [0, 0, 0], "D"
    ... )
    >>> receipts = pd.DataFrame(
    ...     {"bistro": ["north", "north", "south"], "bytes": [4e6, 4e6, 2e6], "time_s": [0, 9, 5]}
    ... )
    >>> problem = problem_of(receipts, network)
    >>> [int(n) for n in problem.backlog_bytes], round(dc.coordinated(problem).makespan_s, 1)
    ([8000000, 2000000, 0], 2.0)
    """
    hosts, n_bytes, times_s = _columns(receipts, network)
    if "entry" in receipts.columns:
        chosen = _one_of_each(receipts["entry"], hosts, n_bytes, network)
        hosts, n_bytes, times_s = hosts[chosen], n_bytes[chosen], times_s[chosen]
    if float(n_bytes.sum(dtype=np.float64)) >= MOST_BYTES:
        raise ProblemError(f"bytes must be below {MOST_BYTES} in all, got {n_bytes.sum():.3g}")
    is_later = times_s > (np.inf if now_s is None else now_s)
    there, later = (_added_up(network, hosts[of], n_bytes[of]) for of in (~is_later, is_later))
    release_s = np.zeros(network.n_hosts)
    if now_s is not None:
        np.maximum.at(release_s, hosts, times_s - now_s)
    problem = network.replace(
        backlog_bytes=there + later, release_s=release_s, held=(), manifest=None
    )
    # What is there counts as stored once it is held, so that limited storage forbids this.
    both = np.flatnonzero((there > 0) & (later > 0) & np.isinf(network.storage_bytes))
    return _held_apart(problem, both, there[both]) if len(both) else problem


def _added_up(network: Problem, hosts: IntArray, n_bytes: IntArray) -> IntArray:
    total = np.zeros(network.n_hosts, dtype=np.int64)
    np.add.at(total, hosts, n_bytes)
    return total


def _held_apart(problem: Problem, hosts: IntArray, there: IntArray) -> Problem:
    """Return a problem in which hosts hold part of their backlogs from the beginning on.

    A host has one release. What is there already is the backlog of a host without links, held at
    the first: held data may leave at once.
    """
    names = [f"{problem.names[host]} (now)" for host in hosts]
    backlog = np.append(problem.backlog_bytes, there)
    backlog[hosts] -= there
    columns = {key: getattr(problem, key) for key in _UNLIMITED}
    more = {
        key: np.append(column, np.full((*column.shape[:-1], len(names)), _UNLIMITED[key]), axis=-1)
        for key, column in columns.items()
        if column is not None
    }
    held = [
        Held(problem.names[host], name, 0, int(n))
        for host, name, n in zip(hosts, names, there, strict=True)
    ]
    changes: dict[str, Any] = {"names": (*problem.names, *names), "backlog_bytes": backlog}
    return problem.replace(**changes, **more, held=held, daily=problem.daily)


def _columns(receipts: pd.DataFrame, network: Problem) -> tuple[IntArray, IntArray, FloatArray]:
    """Return hosts' indices, bytes and times of the receipts, checked."""
    import pandas as pd

    missing = [name for name in COLUMNS if name not in receipts.columns]
    if missing:
        raise ProblemError(
            f"receipts must have columns {', '.join(COLUMNS)}, lacks {', '.join(missing)}; rename "
            "those that mean the same"
        )
    codes, names = pd.factorize(receipts["bistro"])
    index = {name: i for i, name in enumerate(network.names)}
    if (codes < 0).any():
        raise ProblemError(
            f"receipts: row {int(np.argmax(codes < 0))} names no bistro; leave such rows out"
        )
    for name in names:
        if name not in index:
            raise ProblemError(
                f"receipts: bistro must be a host of the network, got {shown(name)}"
                f"{nearest_hint(str(name), index)}"
            )
        if name == network.destination:
            raise ProblemError(
                f"receipts: {shown(name)} is the destination, which has collected what it holds; "
                "leave its rows out"
            )
    hosts = np.array([index[name] for name in names], dtype=np.int64)[codes]
    n_bytes = _numbers(receipts, "bytes")
    times_s = _numbers(receipts, "time_s")
    bad = (n_bytes < 0) | (n_bytes != np.floor(n_bytes)) | (n_bytes >= MOST_BYTES)
    if bad.any():
        row = int(np.argmax(bad))
        raise ProblemError(
            f"receipts: bytes must be whole numbers of 0 or more, got {n_bytes[row]:g} in row {row}"
        )
    return hosts, n_bytes.astype(np.int64), times_s


def _numbers(receipts: pd.DataFrame, name: str) -> FloatArray:
    try:
        found = receipts[name].to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError(
            f"receipts: {name} must be numbers, got {receipts[name].dtype}; convert the column "
            "with pandas.to_numeric"
        ) from None
    if not np.isfinite(found).all():
        row = int(np.argmax(~np.isfinite(found)))
        raise ProblemError(f"receipts: {name} must be a number, got {found[row]} in row {row}")
    return found


def _one_of_each(
    entries: pd.Series, hosts: IntArray, n_bytes: IntArray, network: Problem
) -> IntArray:
    """Return rows, one for each entry: of copies the one at the host that is empty sooner.

    The largest are placed first, as Graham's rule for machines in parallel has it (1969).
    """
    import pandas as pd

    codes = pd.factorize(entries, use_na_sentinel=False)[0]
    counts = np.bincount(codes)
    is_alone = counts[codes] == 1
    rates = sending_bytes_per_s(network)
    load = np.zeros(network.n_hosts)
    np.add.at(load, hosts[is_alone], n_bytes[is_alone])
    copies = np.flatnonzero(~is_alone)
    # Copies of an entry stand together, entries with the most bytes first.
    largest = np.zeros(len(counts), dtype=np.int64)
    np.maximum.at(largest, codes[copies], n_bytes[copies])
    copies = copies[np.lexsort((copies, codes[copies], -largest[codes[copies]]))]
    s_per_byte = (1 / np.maximum(rates, _LEAST_BYTES_PER_S)).tolist()
    busy_s = (load * s_per_byte).tolist()
    # Plain numbers: arrays of two or three cost ten times as much.
    columns = (codes[copies], copies, hosts[copies], n_bytes[copies])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    chosen = []
    for _, group in groupby(rows, key=itemgetter(0)):
        _, row, host, size = min(group, key=lambda c: busy_s[c[2]] + c[3] * s_per_byte[c[2]])
        busy_s[host] += size * s_per_byte[host]
        chosen.append(row)
    return np.sort(np.concatenate([np.flatnonzero(is_alone), np.array(chosen, dtype=np.int64)]))


def sending_bytes_per_s(network: Problem) -> FloatArray:
    """Return how fast each host can send at most, over all its links, at the beginning."""
    links = np.zeros(network.n_hosts)
    np.add.at(links, network.link_from, network.bandwidth_bytes_per_s[0])
    least: FloatArray = np.minimum(links, network.uplink_bytes_per_s[0])
    return least
