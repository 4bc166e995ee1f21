"""Pacing: quanta, and catching up no faster than a quarter more than the rate."""

from __future__ import annotations

import pytest

from datacollect.feeds.udp.pacing import MOST_IN_QUANTUM, Pacing


@pytest.mark.parametrize(("per_s", "quantum"), [(10, 1), (1_400, 1), (10_000, 5), (90_000, 40)])
def test_a_quantum_is_half_a_millisecond_or_forty_packets(per_s: float, quantum: int) -> None:
    assert Pacing(per_s).quantum == quantum <= MOST_IN_QUANTUM
    assert Pacing(per_s).take(0.0, 10**6) == quantum


def test_a_quantum_of_long_packets_is_what_one_call_sends() -> None:
    assert [Pacing(90_000, size).quantum for size in (1452, 8952, 65_507)] == [40, 7, 1]


def run(per_s: float, seconds: float, late_at_s: float = 99.0) -> list[tuple[float, int]]:
    """Send what a source makes, but for a pause of 0.3 s; return when how many left."""
    pacing, sent, now_s, left = Pacing(per_s), 0, 0.0, []
    while now_s < seconds:
        while n := pacing.take(now_s, int(now_s * per_s) + 1 - sent):
            sent += n
            left.append((now_s, n))
        now_s = max(pacing.next_s, now_s + 0.0004)
        if now_s >= late_at_s:
            now_s, late_at_s = now_s + 0.3, 99.0
    return left


@pytest.mark.parametrize("per_s", [50.0, 1_400.0, 78_000.0])
def test_the_rate_is_reached(per_s: float) -> None:
    left = run(per_s, 3.0)
    assert sum(n for _, n in left) == pytest.approx(3.0 * per_s, rel=0.005, abs=2)


@pytest.mark.parametrize("per_s", [1_400.0, 40_000.0])
def test_lateness_is_caught_up_at_a_quarter_more_than_the_rate(per_s: float) -> None:
    """In any stretch of time leaves 1.25 times the rate at most, and what may leave at once."""
    left = run(per_s, 3.0, late_at_s=1.0)
    times, n = [at for at, _ in left], [0]
    for _, more in left:
        n.append(n[-1] + more)
    most = max(1.25 * per_s * 0.002, Pacing(per_s).quantum) + 1
    for first in range(0, len(left), 37):
        for last in range(first, len(left), 53):
            assert n[last + 1] - n[first] <= 1.25 * per_s * (times[last] - times[first]) + most
    assert n[-1] == pytest.approx(3.0 * per_s, rel=0.005, abs=2)
