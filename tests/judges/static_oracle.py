"""The earliest end of larger problems where nothing changes, by HiGHS with all links at once."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from datacollect.problem.problem import Problem


def static_end_s(problem: Problem) -> float:
    """The earliest end by HiGHS, with a column per link: data at a rate in proportion to supply.

    Rates r are of all data per 1000 s; most s with r out - r in = s * part held, limits on sums.
    """
    unit = float(problem.total_bytes) / 1000.0
    n, m = problem.n_hosts, problem.n_links
    tail, head, link = problem.link_from, problem.link_to, np.arange(m)
    held = problem.backlog_bytes / problem.total_bytes
    kept = np.arange(n) != problem.destination_index
    balance = coo_array(
        (
            np.concatenate([np.ones(m), -np.ones(m), -held]),
            (
                np.concatenate([tail, head, np.arange(n)]),
                np.concatenate([link, link, np.full(n, m)]),
            ),
        ),
        shape=(n, m + 1),
    ).tocsr()
    members = problem.shared_links
    rows = [tail, head + n] + [np.full(len(one), 2 * n + i) for i, one in enumerate(members)]
    columns = np.concatenate([link, link, *members])
    limits = coo_array(
        (np.ones(len(columns)), (np.concatenate(rows), columns)),
        shape=(2 * n + len(members), m + 1),
    )
    room = np.concatenate(
        [
            problem.uplink_bytes_per_s[0],
            problem.downlink_bytes_per_s[0],
            [shared.bandwidth_bytes_per_s for shared in problem.shared],
        ]
    )
    upper = np.append(problem.bandwidth_bytes_per_s[0] / unit, np.inf)
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=limits,
        b_ub=room / unit,
        A_eq=balance[kept],
        b_eq=np.zeros(n - 1),
        bounds=np.column_stack([np.zeros(m + 1), upper]),
        method="highs",
    )
    assert found.status == 0, found.message
    return 1000.0 / -found.fun
