"""Tests beside what Reno's connections get at the losses seen: 1.22 · 1448 bytes / (RTT √p)."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.agent.pinging import HANDSHAKE, ICMP
from datacollect.measuring.results.mathis_check import compared_with_reno, notes_of
from datacollect.measuring.results.samples_to_problem import problem_of_samples

# By hand, at a round trip of 0.1 s and a loss of 1 %: 1766.56 bytes / (0.1 s · 0.1).
RENO_BYTES_PER_S = 176_656.0


def row(tool, tail="S", head="D", **more):
    return {"from": tail, "to": head, "time_s": 1.7e9, "tool": tool, "ended": "done", **more}


def tcp(rate, streams=1, **more):
    return row("tcp", bandwidth_bytes_per_s=rate, streams=streams, **more)


def ping(n_lost, n=1000, by=ICMP, rtt_s=0.1, **more):
    settings = json.dumps({"n": n, "every_s": 1.0, "by": by})
    return row("ping", rtt_s=rtt_s, loss=n_lost / n, settings=settings, **more)


def pairs(n_lost, n_pairs, **more):
    """Thirty pairs for the capacity, and so many more."""
    settings = json.dumps({"capacity_pairs": 30, "pairs": n_pairs})
    return row("pairs", loss=n_lost / (2 * (30 + n_pairs)), settings=settings, **more)


def table(*rows):
    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def test_a_link_is_compared_by_hand():
    """Ten of 1000 pings are lost, and two connections get 200 kB/s each."""
    [found] = compared_with_reno(table(tcp(400_000.0, 2), ping(10)))
    assert (found.link, found.n_lost, found.rtt_s) == (("S", "D"), 10, 0.1)
    assert found.loss == pytest.approx(0.01)
    assert found.per_connection_bytes_per_s == 200_000.0
    assert found.reno_bytes_per_s == pytest.approx(RENO_BYTES_PER_S)


@pytest.mark.parametrize(
    ("factor", "is_above", "is_below"),
    [(0.49, False, True), (0.51, False, False), (1.99, False, False), (2.01, True, False)],
)
def test_far_is_more_than_twice_or_less_than_half(factor, is_above, is_below):
    [found] = compared_with_reno(table(tcp(factor * RENO_BYTES_PER_S), ping(10)))
    assert (found.is_far_above, found.is_far_below) == (is_above, is_below)


def test_round_trips_are_those_of_the_tests_and_else_those_of_pings():
    """While tests fill queues a round trip takes 0.2 s, and Reno gets half as much."""
    [found] = compared_with_reno(table(tcp(1e5, rtt_s=0.2), ping(10)))
    assert found.reno_bytes_per_s == pytest.approx(RENO_BYTES_PER_S / 2)
    assert compared_with_reno(table(tcp(1e5), ping(10, rtt_s=None))) == []


def test_losses_are_those_of_all_samples_together():
    """Of 100 pings 3 are lost, of 400 packets of pairs 2, none of 1500 more pings: 5 of 2000."""
    rows = [tcp(1e5), ping(3, 100), pairs(2, 170), ping(0, 1500)]
    [found] = compared_with_reno(table(*rows))
    assert (found.n_lost, found.loss) == (5, pytest.approx(0.0025))
    assert found.reno_bytes_per_s == pytest.approx(2 * RENO_BYTES_PER_S)


def test_pairs_count_that_told_no_bandwidth():
    """Those that lose most tell the least of it."""
    rows = [tcp(1e5, rtt_s=0.1), pairs(20, 70, ended="fewer than 20 pairs have arrived")]
    assert compared_with_reno(table(*rows))[0].loss == pytest.approx(0.1)


@pytest.mark.parametrize(
    "rows",
    [
        [tcp(1e9), ping(4)],
        [tcp(1e9), ping(0, 10)],
        [tcp(1e9), row("ping", rtt_s=0.1, loss=0.5)],
        [tcp(1e9), row("ping", rtt_s=0.1, loss=0.5, settings='{"n": "10"}')],
        [tcp(1e9), ping(10, by=HANDSHAKE)],
        [tcp(1e9), ping(10, ended="the lease has ended")],
        [tcp(1e9, rtt_s=0.1), ping(10, 10, rtt_s=None)],
        [tcp(1e9, streams=None), ping(10)],
        [tcp(1e9, ended="cut off"), ping(10)],
        [row("pairs", bandwidth_bytes_per_s=1e9, streams=1), ping(10)],
        [tcp(1e9), ping(10, tail="K")],
    ],
    ids=[
        "four lost",
        "none lost",
        "of how many is not said",
        "of no number",
        "handshakes repeat what is lost",
        "ended early",
        "nobody answers pings",
        "over how many connections is not said",
        "failed",
        "no test with connections",
        "another link",
    ],
)
def test_where_too_little_is_known_nothing_is_compared(rows):
    assert compared_with_reno(table(*rows)) == []


def test_tests_with_the_fewest_connections_are_compared():
    """Eight fill the wire, and get 50 kB/s each; one alone gets 150, 200 or 400: 200."""
    rows = [tcp(400e3, 8), tcp(150e3), tcp(400e3), tcp(200e3), ping(10)]
    assert compared_with_reno(table(*rows))[0].per_connection_bytes_per_s == 200e3


def test_too_little_beside_many_losses_may_be_timeouts():
    """At 4 % and 0.1 s Reno's formula says 88 kB/s; what is above is above all the same."""
    [found] = compared_with_reno(table(tcp(30e3), ping(40)))
    assert found.reno_bytes_per_s == pytest.approx(RENO_BYTES_PER_S / 2)
    assert not found.is_far_below
    assert compared_with_reno(table(tcp(300e3), ping(40)))[0].is_far_above


def test_a_problem_has_the_comparison_and_notes_name_a_few_links():
    """Four links get 1 MB/s where Reno would get 177 kB/s, one gets 10 kB/s, one what Reno gets."""
    got = {"A": 1e6, "B": 1e6, "C": 1e6, "E": 1e6, "K": 1e4, "S": 2e5}
    rows = [
        each
        for tail, rate in got.items()
        for each in (tcp(rate) | {"from": tail}, ping(10, tail=tail))
    ]
    found = problem_of_samples(table(*rows), "D")
    assert [link.link for link in found.reno] == [(tail, "D") for tail in got]
    *_, above, below = found.notes
    assert above.startswith(
        "connections of 4 links get more than twice what Reno's would at the losses seen: A -> D "
        "(8 Mbit/s instead of 1.413 Mbit/s), B -> D (8 "
    )
    assert "and 1 more; either these are not the losses of TCP's own packets, or" in above
    assert below.startswith("connections of 1 link get less than half of what Reno's would at the")
    assert "K -> D (80 kbit/s instead of 1.413 Mbit/s); something else limits them" in below


def test_tests_beside_a_pull_are_not_compared():
    rows = [tcp(1e5), tcp(1e9, beside_pull=True), ping(10, beside_pull=True)]
    assert problem_of_samples(table(*rows), "D").reno == ()


def test_links_that_fit_need_no_note():
    assert notes_of(compared_with_reno(table(tcp(RENO_BYTES_PER_S), ping(10)))) == []
