"""The fluid optimum with sources that make data, by a linear program that knows what is made only.

No hidden hosts: at the end of each interval what has left a host is at most what has come in and
what has been made there. Intervals end wherever a bandwidth changes or a source has made all.
"""

import numpy as np
from scipy.optimize import linprog


def earliest_end_s(tree, tolerance=1e-10):
    """Return by bisection the earliest end of a problem file's tree; None where there is none.

    Hosts may have backlogs, rates at which they are made, releases, uplinks and downlinks.
    """
    low, high = 0.0, 1.0
    while not _arrives(tree, high):
        low, high = high, high * 2
        if high > 1e9:
            return None
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _arrives(tree, middle) else (middle, high)
    return high


def _made(host, at_s):
    """Bytes of a host's own that may have left it by an instant."""
    since_s = at_s - host.get("release_s", 0.0)
    backlog = host.get("backlog_bytes", 0)
    if since_s < 0 or not backlog:
        return 0.0
    rate = host.get("produces_bytes_per_s")
    return backlog if rate is None else min(backlog, host.get("made_bytes", 0) + rate * since_s)


def _arrives(tree, end_s):
    hosts, links, target = tree["hosts"], tree["links"], tree["destination"]
    starts = tree.get("periods_s", [0.0])
    edges = {0.0, end_s, *(at for at in starts if at < end_s)}
    for host in hosts.values():
        edges.add(host.get("release_s", 0.0))
        if "produces_bytes_per_s" in host:
            left = host["backlog_bytes"] - host.get("made_bytes", 0)
            edges.add(host.get("release_s", 0.0) + left / host["produces_bytes_per_s"])
    edges = sorted(at for at in edges if at <= end_s)
    lengths = np.diff(edges)
    period = [sum(start <= at * (1 + 1e-12) for start in starts) - 1 for at in edges[:-1]]
    n_links, n_pieces = len(links), len(lengths)
    if n_links == 0 or n_pieces == 0:
        return sum(host.get("backlog_bytes", 0) for host in hosts.values()) == 0

    def rate(value, piece):
        return value[period[piece]] if isinstance(value, list) else value

    most = [
        rate(link["bandwidth_bytes_per_s"], piece) * lengths[piece]
        for piece in range(n_pieces)
        for link in links
    ]
    rows, limits = [], []
    for name, host in hosts.items():
        out = [j for j, link in enumerate(links) if link["from"] == name]
        into = [j for j, link in enumerate(links) if link["to"] == name]
        for piece in range(n_pieces):
            if name != target:
                row = np.zeros((n_pieces, n_links))
                row[: piece + 1, out] = 1
                row[: piece + 1, into] -= 1
                # What is released at the very end cannot have left before.
                later = host.get("release_s", 0.0) < edges[piece + 1]
                own = _made(host, edges[piece + 1]) if later else 0.0
                rows.append(row.ravel())
                limits.append(own)
            for key, ends in (("uplink_bytes_per_s", out), ("downlink_bytes_per_s", into)):
                if key in host:
                    row = np.zeros((n_pieces, n_links))
                    row[piece, ends] = 1
                    rows.append(row.ravel())
                    limits.append(host[key] * lengths[piece])
    gain = np.zeros((n_pieces, n_links))
    gain[:, [j for j, link in enumerate(links) if link["to"] == target]] = -1
    gain[:, [j for j, link in enumerate(links) if link["from"] == target]] = 1
    found = linprog(
        gain.ravel(),
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        bounds=[(0, each) for each in most],
        method="highs",
    )
    wanted = sum(host.get("backlog_bytes", 0) for name, host in hosts.items() if name != target)
    return found.status == 0 and -found.fun >= wanted * (1 - 1e-10)
