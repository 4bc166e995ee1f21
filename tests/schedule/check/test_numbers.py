"""The judge of schedules: very large and very small numbers, and what rounding may do."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from instances.hand_made import PIPELINE, broken, direct, links, pipeline_problem, plan

from datacollect import Host, Problem, SharedBottleneck
from datacollect.schedule.check.judge import check_schedule


def test_a_petabyte_is_counted_to_the_byte():
    """10^15 bytes in 1000 transfers over two hops; the last lacks one byte."""
    n, size = 1000, 10**12
    problem = Problem.from_hosts(
        [Host("S", n * size), Host("K", storage_bytes=10 * size), Host("D")],
        links("S -> K 1e10, K -> D 1e10"),
        "D",
    )
    rows = [
        ("S", "S K D", hop, i * size, size, (i + hop) * 100.0, (i + hop + 1) * 100.0)
        for hop in range(2)
        for i in range(n)
    ]
    check_schedule(problem, plan(rows))
    rows[-1] = (*rows[-1][:4], size - 1, *rows[-1][5:])
    message = broken(problem, plan(rows))
    assert "arrives at 'K' must leave for 'D', missing: byte 999999999999999 of 'S'" in message


def test_slow_link_beside_fast_ones_is_judged_as_strictly():
    """Nine orders of magnitude apart; 2 bytes/s too many for 10 s on the slow one."""
    problem = Problem.from_hosts(
        [Host("S", 10**11), Host("T", 30), Host("D")], links("S -> D 1e9, T -> D 1"), "D"
    )
    rows = [("S", "S D", 0, i * 10**9, 10**9, i, i + 1.0) for i in range(100)]
    check_schedule(problem, plan([*rows, ("T", "T D", 0, 0, 30, 0.0, 30.0)]))
    message = broken(problem, plan([*rows, ("T", "T D", 0, 0, 30, 0.0, 10.0)]))
    assert re.search(
        "link 'T' -> 'D': .* 3 bytes/s together from 0 s to 10 s, .* 1 bytes/s: 20 bytes", message
    )


def test_one_byte_per_route_is_tolerated_whatever_the_number_of_its_transfers():
    """3 bytes/s for 10 transfers of 1 s each: one of them may have 4 bytes, no two of them."""
    for sizes, too_many in (
        ([3] * 10, None),
        ([3] * 9 + [4], None),
        ([4] * 10, "10 transfers .*: 10 bytes too many"),
        ([4, 4] + [3] * 8, "2 transfers .* from 0 s to 2 s, .*: 2 bytes too many"),
        ([4, 2, 4] + [3] * 7, None),
        ([4] + [3] * 8 + [4], "10 transfers .*: 2 bytes too many"),
        ([5] + [3] * 9, "1 transfer .*: 2 bytes too many"),
    ):
        problem = Problem.from_hosts([Host("S", sum(sizes)), Host("D")], links("S -> D 3"), "D")
        schedule = direct(*((size, i * 1.0, i + 1.0) for i, size in enumerate(sizes)))
        if too_many is None:
            check_schedule(problem, schedule)
        else:
            assert re.search(too_many, broken(problem, schedule))


@pytest.mark.parametrize("rate", [1e6, 2e6, 3e6, 5e6, 7e6, 1e7, 1e8, 1e9, 8e9, 3e12])
def test_a_millionth_too_fast_is_tolerated_and_no_more(rate):
    """Ten seconds, so that a millionth of a second's bytes is more than the byte of rounding."""
    fits = 10 * round(rate * (1 + 1e-6))
    for size, valid in ((fits, True), (fits + 1 + round(rate / 1e8), False)):
        problem = Problem.from_hosts([Host("S", size), Host("D")], links(f"S -> D {rate}"), "D")
        if valid:
            check_schedule(problem, direct((size, 0.0, 10.0)))
        else:
            assert "bytes too many" in broken(problem, direct((size, 0.0, 10.0)))


def two_routes(sizes, *, shared):
    """S and T send at once, ten times a second each, through a bottleneck."""
    problem = Problem.from_hosts(
        [Host("S", sum(sizes)), Host("T", sum(sizes)), Host("D", downlink_bytes_per_s=shared)],
        links("S -> D 9, T -> D 9"),
        "D",
    )
    offsets = [sum(sizes[:i]) for i in range(len(sizes))]
    rows = [
        (source, f"{source} D", 0, offset, size, i * 1.0, i + 1.0)
        for source in "ST"
        for i, (offset, size) in enumerate(zip(offsets, sizes, strict=True))
    ]
    return problem, plan(rows)


def test_each_route_has_a_byte_of_its_own():
    check_schedule(*two_routes([4, *[3] * 9], shared=6.0))
    message = broken(*two_routes([4, 4, *[3] * 8], shared=6.0))
    assert "downlink of host 'D': 4 transfers" in message
    assert "from 0 s to 2 s" in message
    assert ": 4 bytes too many" in message


def test_a_route_that_rounds_does_not_lend_its_byte_to_a_transfer_of_another():
    """1.8 bytes too many of one route, and another in use: together legal, alone not."""
    problem = Problem.from_hosts(
        [Host("S", 4), Host("T", 1), Host("D", downlink_bytes_per_s=4.0)],
        links("S -> D 9, T -> D 9"),
        "D",
    )
    rows = [("S", "S D", 0, 0, 4, 0.0, 0.55), ("T", "T D", 0, 0, 1, 0.25, 10.0)]
    assert re.search(
        "downlink of host 'D': bytes 0 to 3 of 'S'.* by itself has 7.27.* 4 bytes/s: 1.8 ",
        broken(problem, plan(rows)),
    )
    slower = [("S", "S D", 0, 0, 4, 0.0, 0.75), rows[1]]
    check_schedule(problem, plan(slower))


@pytest.mark.parametrize("n_ulp", [1, 2, 4, 8])
@pytest.mark.parametrize("limit", ["link", "uplink", "downlink", "shared"])
def test_no_speed_is_infinite(limit, n_ulp):
    """A gigabyte over 1000 bytes/s, between doubles that all but follow each other."""
    size, rate = 10**9, {"link": 1e30, "uplink": math.inf, "downlink": math.inf} | {limit: 1e3}
    problem = Problem.from_hosts(
        [
            Host("S", size, uplink_bytes_per_s=rate["uplink"]),
            Host("D", downlink_bytes_per_s=rate["downlink"]),
        ],
        links("S -> D 1"),
        "D",
    ).replace(
        bandwidth_bytes_per_s=[[rate["link"]]],
        shared=[SharedBottleneck("wire", rate.get("shared", 1e30), [("S", "D")])],
    )
    message = broken(problem, direct((size, 1.0, 1.0 + n_ulp * 2.0**-52)))
    assert "1000000000 bytes too many" in message


def test_bytes_one_by_one_have_no_infinite_speed_either():
    """1000 bytes over 1 byte/s, one in each nanosecond, with or without pauses, or all at once."""
    problem = Problem.from_hosts([Host("S", 1000), Host("D")], links("S -> D 1"), "D")
    for pieces in (
        [(1, i * 1e-9, (i + 1) * 1e-9) for i in range(1000)],
        [(1, i * 1e-9, (i + 0.5) * 1e-9) for i in range(1000)],
        [(1, i * 5e-324, (i + 1) * 5e-324) for i in range(1000)],
        [(1, 0.0, 1e-6)] * 1000,
        [(1, 0.0, 5e-324)] * 1000,
    ):
        assert "bytes too many" in broken(problem, direct(*pieces))
    check_schedule(problem, direct((1, 0.0, 5e-324), (999, 1e-9, 999.0)))


@pytest.mark.parametrize("n_ulp", [1, 2, 3, 4, 5])
def test_a_burst_leaves_no_rounding_behind(n_ulp):
    """A byte in no time has 10^15 bytes/s; what follows it is judged to the byte none the less."""
    for size, valid in ((10**5, True), (10**5 + 2, False)):
        problem = Problem.from_hosts([Host("S", 1 + size), Host("D")], links("S -> D 1e3"), "D")
        schedule = direct((1, 1.0, 1.0 + n_ulp * 2.0**-52), (size, 2.0, 102.0))
        if valid:
            check_schedule(problem, schedule)
        else:
            assert ": 2 bytes too many" in broken(problem, schedule)


def test_a_burst_amid_a_transfer_leaves_no_rounding_behind():
    """700.28 and 299.72 bytes/s fill the link; before, a byte came in 6 last digits of 1 s.

    Added to its 7.5 * 10^14 bytes/s, 700.28 would be rounded up by 0.04: 4 bytes in 98 s.
    """
    problem = Problem.from_hosts([Host("S", 10**5 + 1), Host("D")], links("S -> D 1e3"), "D")
    burst = (1, 1.0, 1.0 + 6 * 2.0**-52)
    check_schedule(problem, direct((70028, 0.0, 100.0), burst, (29972, 2.0, 102.0)))


def test_transfers_that_overlap_by_rounding_are_valid():
    """0.1 + 0.2 > 0.3: one transfer ends a rounding error after the next begins."""
    problem = Problem.from_hosts([Host("S", 2 * 10**9), Host("D")], links("S -> D 1e10"), "D")
    check_schedule(problem, direct((10**9, 0.2, 0.1 + 0.2), (10**9, 0.3, 0.4)))


def test_instants_rounded_at_petabytes_per_second_are_no_overlap():
    """At 100 s the last digit of an instant is 1.4e-14 s: 142 bytes at 10^16 bytes/s."""
    n, size = 1000, 10**15
    problem = Problem.from_hosts([Host("S", n * size), Host("D")], links("S -> D 1e16"), "D")
    pieces = [(size, i * 0.1, i * 0.1 + 0.1) for i in range(n)]
    assert any(a[2] > b[1] for a, b in pairwise(pieces))
    check_schedule(problem, direct(*pieces, slot_s=0.1))
    check_schedule(problem, direct(*pieces))


def test_only_consecutive_transfers_may_overlap_and_by_no_more_than_rounding():
    """10^9 s after time 0 the last digit of an instant is 1.2e-7 s: 119 bytes at 10^9 bytes/s."""
    last, size = 2.0**-23, 10**9
    problem = Problem.from_hosts([Host("S", 2 * size), Host("D")], links("S -> D 1e9"), "D")
    first = (size, 1e9 - 1, 1e9)
    for n in range(5):
        check_schedule(problem, direct(first, (size, 1e9 - n * last, 1e9 - n * last + 1)))
    for n, too_many in ((5, "596.04"), (8, "953.67")):
        late = direct(first, (size, 1e9 - n * last, 1e9 - n * last + 1))
        assert too_many in broken(problem, late)
    # As many of its last digits are more than a millionth of what lasts a tenth of a second.
    short = size // 10
    problem = problem.replace(backlog_bytes=[size + short, 0])
    assert "bytes too many" in broken(problem, direct(first, (short, 1e9 - last, 1e9 - last + 0.1)))
    # Nor do transfers that begin together overlap by rounding.
    assert "bytes too many" in broken(
        problem, direct((short, 1e9, 1e9 + 4 * last), (size, 1e9, 1e9 + 1))
    )


def test_cut_through_at_petabits_per_second_stores_nothing_but_rounding():
    """4.4 * 10^14 bytes/s, 17 s after time 0: the last digit of an amount is about a byte."""
    size, half = 386_937_487_576_809, 290_203_115_682_606
    problem = Problem.from_hosts(
        [Host("S", size), Host("K", storage_bytes=0), Host("D")],
        links("S -> K 442214271516353.1, K -> D 442214271516353.1"),
        "D",
    )
    rows = [
        ("S", "S K D", 0, 0, size, 17.0, 17.875),
        ("S", "S K D", 1, 0, half, 17.0, 17.65625),
        ("S", "S K D", 1, half, size - half, 17.65625, 17.875),
    ]
    check_schedule(problem, plan(rows, chunk_s=0.0))
    assert plan(rows, chunk_s=0.0).peak_storage_bytes == {}


def test_instants_are_on_the_grid_where_decimals_can_be_the_same():
    """Slots of a third of a second, and of 0.1 s: 0.3 is the third boundary, 3 * 0.1 too.

    With ten digits instants are 3e-11 s off: 100 bytes at 3e12 bytes/s.
    """
    for slot_s, instants in (
        (1 / 3, [0.0, 0.3333333333333333, 0.6666666666666666, 1.0]),
        (0.1, [0.0, 0.1, 0.2, 0.3]),
        (0.1, [0.0, 0.1, 0.2, 0.1 + 0.2]),
    ):
        size = int(3e12 * slot_s)
        problem = Problem.from_hosts([Host("S", 3 * size), Host("D")], links("S -> D 3e12"), "D")
        pieces = [(size, a, b) for a, b in pairwise(instants)]
        check_schedule(problem, direct(*pieces, slot_s=slot_s))
    problem = Problem.from_hosts([Host("S", 3 * 10**12), Host("D")], links("S -> D 3e12"), "D")
    digits = [(10**12, 0.0, 0.3333333333), (2 * 10**12, 0.3333333333, 1.0)]
    assert "3.33" in broken(problem, direct(*digits, slot_s=1 / 3))
    assert "off the grid" in broken(problem, direct(*digits, slot_s=1 / 3))


def test_slots_far_from_time_0_with_a_period_there():
    """10^9 s after time 0 a period begins amid a slot of 0.1 s: from that slot on, 5 fit."""
    problem = Problem.from_hosts(
        [Host("S", 20), Host("D")], links("S -> D 100 50"), "D", periods_s=[0.0, 1e9 + 0.05]
    )
    boundary = [slot * 0.1 for slot in range(10**10 - 1, 10**10 + 3)]
    slots = list(pairwise(boundary))
    fits = [(n, *slot) for n, slot in zip([10, 5, 5], slots, strict=True)]
    check_schedule(problem.replace(backlog_bytes=[20, 0]), direct(*fits, slot_s=0.1))
    fast = [(n, *slot) for n, slot in zip([10, 10], slots, strict=False)]
    message = broken(problem, direct(*fast, slot_s=0.1))
    assert re.search(r"\(forecast from 1000000000 s\): .* 50 bytes/s: 5 bytes too many", message)


def test_more_slots_than_can_be_counted_are_refused():
    problem = Problem.from_hosts([Host("S", 10), Host("D")], links("S -> D 10"), "D")
    message = broken(problem, direct((10, 0.0, 1.0), slot_s=1e-300))
    assert "slot_s must be at least 1/2^53 of the last finish, 1 s, so that" in message


def test_bandwidths_measured_again_are_what_counts():
    """The schedule was made for another problem; only what it does matters."""
    schedule = plan(PIPELINE, chunk_s=1.0, problem_sha256="of another problem")
    problem = pipeline_problem()
    check_schedule(
        problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s * 2), schedule
    )
    slower = problem.replace(bandwidth_bytes_per_s=problem.bandwidth_bytes_per_s / 2)
    assert "link 'S' -> 'K': 1 transfer at up to 100 bytes/s" in broken(slower, schedule)


@pytest.mark.parametrize(
    ("bandwidth", "periods_s"),
    [(1e308, (0.0, 10.0, 20.0)), (1e299, (0, 1e10, 2e10))],
)
def test_room_for_more_than_the_largest_number_excuses_nothing_later(bandwidth, periods_s):
    """Twice 100 bytes/s at once, behind pauses over periods that could carry 10^309 bytes."""
    problem = Problem.from_hosts(
        [Host("S", 2010), Host("D")],
        links("S -> D 1 1 1"),
        "D",
        periods_s=periods_s,
    ).replace(bandwidth_bytes_per_s=[[bandwidth], [bandwidth], [1e2]])
    late_s = periods_s[-1] + 2
    begins = (10, 0.0, 1.0)
    both = (1000, late_s, late_s + 10)
    after = (1000, late_s + 10, late_s + 20)
    check_schedule(problem, direct(begins, both, after))
    assert "2 transfers at up to 200 bytes/s" in broken(problem, direct(begins, both, both))


def test_much_room_takes_no_digits_from_what_follows():
    """10^27 bytes in the first period; between two bursts of 0.9 bytes are 0.5 bytes of room.

    At 100 bytes/s a pause of 0.005 s, which has three periods; alone, either burst is valid.
    """
    problem = Problem.from_hosts(
        [Host("S", 2000), Host("D")],
        links("S -> D 1 1 1 1"),
        "D",
        periods_s=[0.0, 1.0, 20.001, 20.003],
    ).replace(bandwidth_bytes_per_s=[[1e27], [100.0], [100.0], [100.0]])
    first = (1000, 10.009, 20.0)
    for pause_s, valid in ((0.005, False), (0.009, True)):
        schedule = direct(first, (1000, 20.0 + pause_s, 29.991 + pause_s))
        if valid:
            check_schedule(problem, schedule)
        else:
            assert ": 1.3 bytes too many" in broken(problem, schedule)


def test_a_link_of_almost_infinite_speed_hides_no_other():
    """In slots of 10 s, 10^308 bytes/s are more bytes per slot than a number can say."""
    problem = Problem.from_hosts(
        [Host("S", 40), Host("A", 10), Host("D")], links("A -> D 1, S -> D 1"), "D"
    )
    problem = problem.replace(bandwidth_bytes_per_s=[[1.0, 1e308]])  # S is the first host
    rows = [("A", "A D", 0, 0, 10, 0.0, 10.0), ("S", "S D", 0, 0, 40, 0.0, 40.0)]
    check_schedule(problem, plan(rows, slot_s=10.0))
    rows[1] = ("S", "S D", 0, 0, 40, 0.0, 20.0)
    assert "link 'S' -> 'D': 1 transfer at up to 2 bytes/s" in broken(
        problem, plan(rows, slot_s=10.0)
    )
