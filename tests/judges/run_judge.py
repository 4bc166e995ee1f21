"""Judge of a run, from its tables alone."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

STORED = ("own_bytes", "others_bytes")


def stored_at(run, host, time_s, column="others_bytes"):
    """What a host stores at an instant: linear between the points of its curve."""
    table = rows_of(run.storage, "host", "time_s", column)
    rows = [(at_s, n) for name, at_s, n in table if name == host]
    for (t0, v0), (t1, v1) in pairwise(rows):
        if t0 <= time_s <= t1 and t1 > t0:
            return v0 + (v1 - v0) * (time_s - t0) / (t1 - t0)
    return rows[-1][1]


def conserved(run, problem):
    """Every byte is collected once, and every relay passes on exactly what it gets."""
    total = int(problem.backlog_bytes.sum() - problem.backlog_bytes[problem.destination_index])
    assert run.complete
    assert run.collected_bytes == total
    last = {host: amounts for host, *amounts in rows_of(run.storage, "host", *STORED)}
    assert last.pop(problem.destination)[1] == pytest.approx(total)
    assert (
        max((n for amounts in last.values() for n in amounts), default=0.0) <= 1e-9 * total + 0.01
    )
    assert (run.wires["utilisation"] <= 1.0).all()
    # In and out at each host: what stays is the source's at first, the destination's at last.
    gain = Counter()
    for source, tail, head, n in rows_of(run.routes, "source", "from", "to", "bytes"):
        gain[source, tail] -= n
        gain[source, head] += n
    expected = Counter()
    for source, n in zip(problem.names, problem.backlog_bytes.tolist(), strict=True):
        expected[source, problem.destination] += n
        expected[source, source] -= n
    for part in problem.held:
        expected[part.source, part.source] += part.n_bytes
        expected[part.source, part.host] -= part.n_bytes
    assert {key: n for key, n in gain.items() if n} == {key: n for key, n in expected.items() if n}
    there = sum(h.n_bytes for h in problem.held if h.host == problem.destination)
    into = rows_of(run.routes, "to", "bytes")
    assert sum(n for head, n in into if head == problem.destination) == total - there


def rows_of(table, *columns):
    """The rows of a table; faster than pandas where tables are small and many."""
    return list(zip(*(table[column].tolist() for column in columns), strict=True))
