"""What machines take in and send: by hand, at the edges, and never slower with more of anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.host_profiles import COSTS, RATES, cost, profile, rate

from datacollect.errors import ProblemError
from datacollect.machine.parts import GIB, Nic, PullUse

SLOW_NIC = Nic("eth0", 0.125 * GIB, 1500)

# What is asked for, GiB/s, what binds, what is next. Two processors; costs in `instances`.
BY_HAND = {
    # 2 cores / 0.5 s; memory 12 / 2 copies.
    "plain TCP": ({}, 4.0, "processor", "memory"),
    # 2 / 3; memory 12 / 3.
    "over TLS": ({"tls": True}, 2 / 3, "processor", "memory"),
    # 2 / (3 + 2); the disk 0.5.
    "over TLS to disk": ({"tls": True, "to_disk": True}, 0.4, "processor", "disk"),
    # 2 / 2.5 = 0.8; the disk 0.5.
    "to disk": ({"to_disk": True}, 0.5, "disk", "processor"),
    # 1 / 3.
    "on one of the cores": ({"tls": True, "cores": 1}, 1 / 3, "processor", "memory"),
    # One connection was seen to get 0.25.
    "one connection": ({"tls": True, "connections": 1}, 0.25, "connection", "processor"),
    # 1 / (1 / 0.25 + 2) each.
    "two connections to disk": (
        {"tls": True, "to_disk": True, "connections": 2},
        2 / 6,
        "connection",
        "processor",
    ),
    "a slow card": ({"nic_bytes_per_s": 0.125 * GIB}, 0.125, "NIC", "processor"),
    # 2**20 bytes each 0.01 s: 100 MiB/s.
    "a window": ({"window_bytes": 2**20, "rtt_s": 0.01}, 100 / 1024, "window", "processor"),
    # 1024 bytes: 0.5 µs and 1024 * 0.0625 / 2**30 s, on each of 2 cores.
    "datagrams": (
        {"packet_bytes": 1024},
        2 / (0.5e-6 / 1024 + 0.0625 / GIB) / GIB,
        "processor",
        "memory",
    ),
}


@pytest.mark.parametrize(("needs", "gib_per_s", "binds", "then"), BY_HAND.values(), ids=BY_HAND)
def test_by_hand(needs, gib_per_s, binds, then):
    found = profile().receives(**needs)
    assert found.bytes_per_s == pytest.approx(gib_per_s * GIB)
    assert (found.binds, found.next) == (binds, then)


# Of two processors a pull by one connection used a quarter, by sixteen four fifths.
PULLS = (PullUse(1, 0.25, 0.2, 0.3), PullUse(16, 0.8, 0.7, 0.9))


@pytest.mark.parametrize(
    ("needs", "gib_per_s"),
    [
        # 2 * 0.8 / 3; to disk 2 * 0.8 / 5.
        ({"tls": True}, 1.6 / 3),
        ({"tls": True, "to_disk": True}, 1.6 / 5),
        # 2 * 0.25 / 3, less than the 0.25 that one connection was seen to get.
        ({"tls": True, "connections": 1}, 0.5 / 3),
        # Two doublings of four on the way from a quarter to four fifths.
        ({"tls": True, "connections": 4}, 1.05 / 3),
        ({"tls": True, "connections": 64}, 1.6 / 3),
        ({"tls": True, "cores": 1}, 0.8 / 3),
        # Neither agent nor pull.
        ({}, 4.0),
    ],
)
def test_processors_that_wait_are_not_used(needs, gib_per_s):
    found = profile(pulls=PULLS).receives(**needs)
    assert found.bytes_per_s == pytest.approx(gib_per_s * GIB)


def shares(*tried):
    """Return what is used by so many connections where so much was, in thousandths."""
    parts = profile(pulls=tuple(PullUse(n, s, s, s) for n, s in tried)).parts
    return [round(1000 * parts.share_used(n)) for n in (1, 2, 3, 4, 8, 16, 32, None)]


def test_what_was_tried_counts_and_between_it_the_number_of_doublings():
    """8 is one of two doublings from 4 to 16; 3 is log2(1.5) = 0.585 of one from 2 to 4."""
    found = shares((1, 0.4), (2, 0.6), (4, 0.7), (16, 0.8))
    assert found == [400, 600, 658, 700, 750, 800, 800, 800]


def test_more_connections_that_used_less_count_together():
    """By 1, 2 and 4 as if 0.8 each; by 2, 4 and 16 as if 0.7. None below the first: its part."""
    assert shares((1, 0.9), (2, 0.8), (4, 0.7), (16, 0.85)) == [800, 800, 800, 800, 825, *3 * [850]]
    assert shares((16, 0.6), (1, 0.3), (2, 0.8), (4, 0.7))[:4] == [300, 700, 700, 700]
    assert shares((4, 0.8))[:4] == [200, 400, 600, 800]


def test_the_part_that_is_used_is_told_and_so_is_that_nobody_knows_it():
    tls = {"tls": True}
    assert profile(pulls=PULLS).receives(**tls).limits[0].why.endswith("there are 2, 80% used")
    assert profile().receives(**tls).limits[0].why.endswith("there are 2, without waiting")
    assert profile().receives().limits[0].why.endswith("there are 2")


def test_the_interval_holds_how_busy_pulls_were_in_any_repeat():
    found = profile(pulls=PULLS).receives(tls=True)
    assert found.low_bytes_per_s == pytest.approx(1.4 / 3 * GIB)
    assert found.high_bytes_per_s == pytest.approx(1.8 / 3 * GIB)


def test_a_pull_that_was_measured_beside_others_marks_what_is_over_tls():
    busy = profile(pulls=(replace(PULLS[1], load=0.5, forced=True),))
    assert (busy.receives(tls=True).load, busy.receives().load) == (0.5, 0.0)


def test_a_relay_receives_and_sends_and_takes_at_most_so_much():
    """0.5 + 0.5 s per GiB on 2 cores; what agents move within the kernel may be more."""
    found = profile().relays()
    assert found.bytes_per_s == pytest.approx(2 * GIB)
    assert found.is_least
    assert "at least" in found.rate_words


def test_ends_that_could_not_be_told_apart_are_a_lower_bound():
    both = (*(c for c in COSTS if c.work != "tcp"), cost("tcp", "both", 1.0))
    found = profile(costs=both).receives()
    assert found.bytes_per_s == pytest.approx(2 * GIB)
    assert found.is_least
    assert profile(costs=both).relays().bytes_per_s == pytest.approx(2 * GIB)  # counted once


def test_what_would_help_is_the_paper_s_remedies_least_gain_first():
    """Twice the cores leave the disk, 0.5; without TLS it is the disk, too; a faster disk: no."""
    found = profile().receives(tls=True, to_disk=True)
    assert [(r.what, r.bytes_per_s / GIB) for r in found.remedies] == [
        ("4 cores", pytest.approx(0.5)),
        ("without TLS", pytest.approx(0.5)),
    ]


def test_a_remedy_of_what_binds_not_is_none():
    found = profile(nics=(SLOW_NIC,)).receives()
    assert [r.what for r in found.remedies] == ["a NIC of 2.147 Gbit/s"]


def test_the_interval_is_that_of_the_slowest_and_the_fastest_repeats():
    tcp = replace(COSTS[1], low_s_per_gib=0.4, high_s_per_gib=1.0)
    found = profile(costs=(tcp,), rates=()).receives()
    ends = (found.low_bytes_per_s / GIB, found.high_bytes_per_s / GIB)
    assert ends == (pytest.approx(2.0), pytest.approx(5.0))


def test_only_what_a_busy_machine_spoils_is_marked():
    busy = rate("memory", 12.0, block_bytes=2**26, load=0.8)
    assert not profile(rates=(busy,)).receives().was_busy
    forced = replace(COSTS[1], load=0.8, forced=True)
    assert profile(costs=(forced,)).receives().load == 0.8


# What cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ({"cores": 3}, r"cores \(--cores\) must be at most 2, as many as there are, got 3"),
        ({"cores": 0}, r"must be a finite number > 0, got 0"),
        ({"connections": 0}, r"connections \(--connections\) must be a whole number >= 1, got 0"),
        ({"nic_bytes_per_s": "10"}, 'give the unit, such as "10 Gbit/s"'),
        ({"nic_bytes_per_s": float("nan")}, "must be a finite number of bytes per second > 0"),
        ({"nic_bytes_per_s": -1}, r"nic_bytes_per_s \(--nic\) .* got -1"),
        ({"window_bytes": 5}, r"\(--window\) and rtt_s \(--rtt\) belong together"),
        ({"rtt_s": 0, "window_bytes": 5}, "must be a finite number of seconds > 0, got 0"),
        ({"packet_bytes": 65_508}, "must be at most 65507: no datagram is longer; got 65508"),
        ({"packet_bytes": 64, "tls": True}, "leave out tls"),
    ],
)
def test_needs_that_make_no_sense_are_refused(needs, says):
    with pytest.raises(ProblemError, match=says):
        profile().receives(**needs)


def test_packets_are_no_longer_than_the_card_carries():
    with pytest.raises(ProblemError, match="at most 1472: eth0 carries packets of 1500"):
        profile(nics=(SLOW_NIC,)).sends(packet_bytes=1473)


def test_what_was_not_measured_is_named_with_the_remedy():
    with pytest.raises(ProblemError, match=r"no cost of tls .* `datacollect host calibrate"):
        profile(costs=COSTS[:2]).receives(tls=True)


# More of anything is never slower -----------------------------------------------------------------

_AMOUNT = st.floats(1e-3, 1e3)
_SHARES = st.lists(st.floats(1e-3, 1), max_size=3)
_NEEDS = st.fixed_dictionaries(
    {"tls": st.booleans(), "to_disk": st.booleans()},
    optional={
        "connections": st.integers(1, 64),
        "nic_bytes_per_s": st.floats(1e3, 1e12),
    },
)


@given(
    st.lists(_AMOUNT, min_size=len(COSTS), max_size=len(COSTS)),
    st.lists(_AMOUNT, min_size=len(RATES), max_size=len(RATES)),
    st.floats(0.5, 64),
    _SHARES,
    _NEEDS,
    st.sampled_from(
        ["processors", "costs", "rates", "shares", "connections", "nic_bytes_per_s", "window"]
    ),
)
def test_more_of_anything_is_never_slower(seconds, rates, processors, shares, needs, more):
    def made(cores, cheaper, faster, busier):
        costs = tuple(
            cost(c.work, c.end, s * cheaper, us_per_unit=c.us_per_unit)
            for c, s in zip(COSTS, seconds, strict=True)
        )
        quick = tuple(
            rate(r.of, g * faster, at_once=r.at_once, block_bytes=r.block_bytes)
            for r, g in zip(RATES, rates, strict=True)
        )
        used = tuple(
            PullUse(4**i, *3 * (min(share * busier, 1),)) for i, share in enumerate(shares)
        )
        return profile(cores, costs, quick, pulls=used)

    before = made(processors, 1, 1, 1).receives(**needs, window_bytes=1e6, rtt_s=0.01)
    factors = {
        "processors": (2, 1, 1, 1),
        "costs": (1, 0.5, 1, 1),
        "rates": (1, 1, 2, 1),
        "shares": (1, 1, 1, 2),
    }
    cores, cheaper, faster, busier = factors.get(more, (1, 1, 1, 1))
    asked = {**needs, "window_bytes": 2e6 if more == "window" else 1e6, "rtt_s": 0.01}
    if more in asked:
        asked[more] *= 2
    after = made(processors * cores, cheaper, faster, busier).receives(**asked)
    assert after.bytes_per_s >= before.bytes_per_s
    assert before.low_bytes_per_s == before.bytes_per_s == before.high_bytes_per_s
    assert before.bytes_per_s == min(limit.bytes_per_s for limit in before.limits)
