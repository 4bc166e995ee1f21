"""The fastest flow under a budget of connections, against all columns at once."""

import numpy as np
import pytest
from scipy.optimize import linprog

import datacollect as dc
from datacollect.flow.connection_flow import fastest_flow
from datacollect.problem.connection_rates import link_rates, wire_rates
from datacollect.solvers.budget import Budget


def seconds(problem, connections):
    supply = problem.backlog_bytes.astype(float)
    supply[problem.destination_index] = 0.0
    return fastest_flow(problem, supply, connections, Budget())


def all_at_once(problem, connections):
    """The same by HiGHS: a column for each connection of each link and of each wire, no pricing."""
    n_links, n_hosts, n_wires = problem.n_links, problem.n_hosts, len(problem.shared)
    rates, wires = link_rates(problem), wire_rates(problem)
    counts = np.arange(1, connections + 1)
    rows, limits = [], []
    added = np.array(
        [rates.at(np.full(connections, i)).rate(counts) for i in range(n_links)]
    ).reshape(n_links, connections)
    added = np.diff(added, axis=1, prepend=0)
    gained = np.array(
        [wires.at(np.full(connections, i)).rate(counts) for i in range(n_wires)]
    ).reshape(n_wires, connections)
    gained = np.diff(gained, axis=1, prepend=0)
    size = n_links * connections
    width = size + n_links + n_wires * connections + 1  # idle ones of links, those of wires, share

    def row(of_link, of_idle=0.0, of_wire=None):
        """A row by what each connection of link i, and each idle one there, counts."""
        found = np.zeros(width)
        found[:size] = np.concatenate([of_link(i) for i in range(n_links)])
        found[size : size + n_links] = of_idle
        if of_wire is not None:
            wire, values = of_wire
            start = size + n_links + wire * connections
            found[start : start + connections] = values
        return found

    ones, nothing = np.ones(connections), np.zeros(connections)
    rows.append(row(lambda _: ones, 1.0))
    limits.append(connections)
    for host in range(n_hosts):
        at = (problem.link_from == host) | (problem.link_to == host)
        if problem.most_connections is not None and np.isfinite(problem.most_connections[host]):
            rows.append(row(lambda i, at=at: ones * at[i], at.astype(float)))
            limits.append(problem.most_connections[host])
        for ends, caps in (
            (problem.link_from, problem.uplink_bytes_per_s[0]),
            (problem.link_to, problem.downlink_bytes_per_s[0]),
        ):
            if np.isfinite(caps[host]):
                rows.append(row(lambda i, ends=ends, host=host: added[i] * (ends[i] == host)))
                limits.append(caps[host])
    for wire, links in enumerate(problem.shared_links):
        member = np.isin(np.arange(n_links), links)
        if wires.grows[wire]:
            rows.append(row(lambda i, m=member: added[i] * m[i], 0.0, (wire, -gained[wire])))
            rows.append(row(lambda i, m=member: -ones * m[i], -member.astype(float), (wire, ones)))
            limits += [0.0, 0.0]
        else:
            rows.append(row(lambda i, m=member: added[i] * m[i]))
            limits.append(wires.bandwidth_bytes_per_s[wire])
    equal, right = [], []
    for host in range(n_hosts):
        if host == problem.destination_index:
            continue

        def balance(i, host=host):
            leaves, comes = problem.link_from[i] == host, problem.link_to[i] == host
            return added[i] * (float(leaves) - float(comes)) if leaves or comes else nothing

        line = row(balance)
        line[-1] = -problem.backlog_bytes[host]
        equal.append(line)
        right.append(0.0)
    cost = np.zeros(width)
    cost[-1] = -1.0
    upper = np.ones(width)
    upper[size : size + n_links] = connections
    upper[-1] = np.inf
    found = linprog(
        cost,
        np.array(rows),
        limits,
        np.array(equal),
        right,
        np.column_stack([np.zeros(width), upper]),
    )
    return 1 / found.x[-1]


def drawn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    names = [f"h{i}" for i in range(n)]
    hosts = [
        dc.Host(
            name,
            int(rng.integers(0, 2) or i == 1) * int(rng.integers(1, 1000)),
            uplink_bytes_per_s=rng.choice([np.inf, 30.0]),
            most_connections=rng.choice([np.inf, 6.0]),
        )
        for i, name in enumerate(names)
    ]
    links = []
    for a in names:
        for b in names:
            if a != b and (rng.random() < 0.8 or b == "h0"):
                rate, kind = rng.uniform(1, 20), rng.integers(4)
                more = [
                    {},
                    {"competitors": int(rng.integers(0, 9))},
                    {"capacity_bytes_per_s": rate * rng.uniform(1, 9)},
                    {"per_connection_bytes_per_s": rate},
                ][kind]
                links.append(dc.Link(a, b, rate, **more))
    pairs = [(link.from_host, link.to_host) for link in links]
    crossed = [pairs[i] for i in rng.choice(len(pairs), 3, replace=False)]
    others = rng.choice([None, 4.0])
    wire = dc.SharedBottleneck("w", rng.uniform(2, 10), crossed, competitors=others)
    problem = dc.Problem.from_hosts(hosts, links, "h0", shared=[wire])
    return problem, int(rng.integers(2, 10))


@pytest.mark.parametrize("seed", range(25))
def test_few_columns_find_what_all_find(seed):
    problem, connections = drawn(seed)
    if problem.total_bytes == 0:
        return
    found = seconds(problem, connections)
    assert found.makespan_s == pytest.approx(all_at_once(problem, connections), rel=1e-6)
    assert found.connections.sum() <= connections * (1 + 1e-9)


def test_parts_of_connections_go_where_they_add_most():
    """By hand: 60 bytes at A and at B each; b(n) of A is 12 n/(n + 2), of B 4 for any n.

    B's one connection brings 60 bytes in 15 s at best, however many there are; A's first does, too.
    """
    links = [dc.Link("A", "D", 4.0, competitors=2), dc.Link("B", "D", 4.0)]
    hosts = [dc.Host("A", 60), dc.Host("B", 60), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    assert seconds(problem, 3).makespan_s == pytest.approx(15.0)
    # Half a connection each: 2 bytes/s.
    assert seconds(problem, 1).makespan_s == pytest.approx(30.0)


def test_a_wire_gives_to_each_connection_on_it():
    """Beside 4 of others on 12 bytes/s, 4 of ours get 6 bytes/s: 120 bytes take 20 s."""
    links = [dc.Link(s, "D", 2.4, per_connection_bytes_per_s=2.4) for s in "AB"]
    wire = dc.SharedBottleneck("w", 2.4, [("A", "D"), ("B", "D")], competitors=4)
    hosts = [dc.Host("A", 60), dc.Host("B", 60), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links, "D", shared=[wire])
    assert seconds(problem, 4).makespan_s == pytest.approx(20.0)


def test_the_price_of_the_budget_is_what_one_more_saves():
    links = [dc.Link("S", "D", 4.0, competitors=2)]
    problem = dc.Problem.from_hosts([dc.Host("S", 60), dc.Host("D")], links, "D")
    now, more = seconds(problem, 4), seconds(problem, 5)
    # By hand: b(4) = 8, b(5) = 60/7; 60/b falls at the rate of its slope, 60 (60/7 - 8)/8².
    assert now.saves_s == pytest.approx(60 * (60 / 7 - 8) / 64)
    assert now.makespan_s - more.makespan_s == pytest.approx(0.5)
