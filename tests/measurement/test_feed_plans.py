"""Answers about feeds: against the report's equations, and what was measured."""

import math

import pandas as pd
import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.feed_models import (
    CUBIC,
    CUBIC_FALLING,
    RENO,
    Path,
    after_loss,
    deficit_bytes,
    least_spacing_s,
    mean_rate_bytes_per_s,
    recovery_s,
    regain_s,
)
from datacollect.measurement.feed_plans import FeedHop, feed_plan
from datacollect.measurement.feed_samples import measured_hop

RATE = 2e6


def answers(plan):
    return {one.name: one for one in plan.tcp}


@pytest.mark.parametrize("link_ratio", [1.05, 1.25, 1.5, 3.0])
def test_the_window_followed_step_by_step_is_the_closed_form(link_ratio):
    found = after_loss(RENO, RATE, Path(link_ratio * RATE, 0.05))
    late = deficit_bytes(RATE, 0.05, delayed_acks=True)
    again_s = regain_s(RATE, 0.05, link_ratio=link_ratio, delayed_acks=True)
    assert found.deficit_bytes == pytest.approx(late, rel=1e-3)
    assert found.regain_s == pytest.approx(again_s, rel=3e-3)


def test_no_deficit_where_the_link_carries_twice_as_much():
    for ratio in (2.0, 3.0):
        assert recovery_s(RATE, 0.05, window_ratio=ratio) == 0
        assert deficit_bytes(RATE, 0.05, window_ratio=ratio) == 0
    assert deficit_bytes(RATE, 0.05, window_ratio=1 / CUBIC.beta, beta=CUBIC.beta) < 1e-9


@pytest.mark.parametrize(
    ("wire_mbit", "relays", "transport", "delay_s", "late_s"),
    [
        # Measured: the worst delay, and how long messages were late.
        (20, 0, "reno", 0.274, 2.9),
        (18, 0, "reno", 0.655, 9.8),
        (36, 0, "reno", 0.409, 3.2),
        (20, 0, "cubic", 0.089, 0.04),
        (20, 2, "reno", 0.066, 0.3),
    ],
)
def test_what_was_measured_is_no_more_than_is_said(wire_mbit, relays, transport, delay_s, late_s):
    wire = wire_mbit * 1e6 / 8
    names = [f"K{i}" for i in range(relays)]
    hops = [FeedHop.of_wire(name, 0.05 / (relays + 1), wire) for name in [*names, "D"]]
    plan = feed_plan(RATE, FeedHop.of_wire("D", 0.05, wire), hops if relays else ())
    name = transport + (f" via {', '.join(names)}" if relays else "")
    found = answers(plan)[name]
    assert found.keeps_up
    assert delay_s <= found.worst_delay_s
    assert late_s <= found.late_s


@pytest.mark.parametrize(
    ("window_bytes", "law", "delay_s"),
    [
        # Measured, a loss each 8 s: windows before losses, as the kernel said, in two runs.
        (123080, CUBIC_FALLING, 0.152),
        (124528, CUBIC, 0.098),
        (128872, CUBIC, 0.093),
        (124528, CUBIC_FALLING, 0.135),
        (121632, CUBIC, 0.117),
        (120184, CUBIC_FALLING, 0.176),
        (120184, CUBIC_FALLING, 0.181),
        (127424, CUBIC_FALLING, 0.120),
    ],
)
def test_a_window_before_a_loss_says_how_late_messages_get(window_bytes, law, delay_s):
    """27 ms under way, and what could not be sent meanwhile; or the round trip of a repair.

    Heads add a fiftieth to the source's rate, and queues 1.5 ms to the round trip of 50 ms.
    """
    rate, rtt_s = 1.018 * RATE, 0.0515
    path = Path(2.35e6, rtt_s)
    found = after_loss(law, rate, path, window_ratio=window_bytes / (rate * rtt_s))
    said_s = 0.027 + max(rtt_s, found.deficit_bytes / rate)
    assert said_s == pytest.approx(delay_s, abs=0.02)


def test_windows_that_are_larger_or_were_smaller_are_less_late():
    path = Path(2.35e6, 0.05)
    for law in (RENO, CUBIC, CUBIC_FALLING):
        deficits = [
            after_loss(law, RATE, path, window_ratio=ratio).deficit_bytes
            for ratio in (1.0, 1.1, 1.2, 1.3, 1 / law.beta, 3.0)
        ]
        assert deficits == sorted(deficits, reverse=True)
        assert deficits[-2:] == [0, 0]
    for ratio in (1.0, 1.2):
        falling, other = (
            after_loss(law, RATE, path, window_ratio=ratio).deficit_bytes
            for law in (CUBIC_FALLING, CUBIC)
        )
        assert falling > 1.1 * other


def test_losses_decide_between_timely_late_and_behind():
    """Reno over 20 Mbit/s: timely again after 9 s, no more than 6.8 s apart it falls behind."""
    hop = FeedHop.of_wire("D", 0.05, 2.5e6)
    packets_per_s = RATE / 1448
    for each_s, verdict, keeps_up in (
        (20, "timely", True),
        (8, "late", True),
        (3, "behind", False),
    ):
        lossy = FeedHop.of_wire("D", 0.05, 2.5e6, 1 / (each_s * packets_per_s))
        found = answers(feed_plan(RATE, lossy))["reno"]
        assert found.losses_each_s == pytest.approx(each_s)
        assert (found.verdict, found.keeps_up) == (verdict, keeps_up)
    assert answers(feed_plan(RATE, hop))["reno"].verdict is None


def test_the_spacing_from_which_it_keeps_up_is_where_its_mean_rate_is_the_source_s():
    path = Path(2.2e6, 0.05)
    for law in (RENO, CUBIC):
        each_s = least_spacing_s(law, RATE, path)
        assert mean_rate_bytes_per_s(law, path, each_s) >= RATE
        assert mean_rate_bytes_per_s(law, path, each_s * 0.99) < RATE
    assert math.isinf(least_spacing_s(RENO, RATE, Path(RATE, 0.05)))


def test_a_path_that_is_too_narrow_lags_ever_more():
    plan = feed_plan(RATE, FeedHop("D", 0.05, 1.5e6, 1.5e6))
    assert not plan.keeps_up
    assert plan.best is None
    assert {one.lags_bytes_per_s for one in plan.tcp} == {0.5e6}
    assert plan.udp.drop == 0.25


def test_the_drop_set_of_the_report_fits():
    """1024 Mbit/s over 1 Gbit/s Ethernet: 6.5 %."""
    plan = feed_plan(128e6, FeedHop.of_wire("D", 0.01, 125e6))
    assert round(plan.udp.lost, 3) == 0.065
    assert 128e6 * (1 - plan.udp.drop) <= plan.direct.udp_bytes_per_s


def test_only_what_the_kernel_has_is_advised():
    hop = FeedHop.of_wire("D", 0.05, 2.5e6)
    assert feed_plan(RATE, hop, in_kernel=["reno", "cubic"]).best.transport == "cubic"
    assert feed_plan(RATE, hop, in_kernel=["reno"]).best.transport == "reno"


def frame(*rows):
    every = {"ended": "done", "loss": None, "bandwidth_bytes_per_s": None, "rtt_s": None}
    return pd.DataFrame([every | {"time_s": float(i)} | row for i, row in enumerate(rows)])


def test_measured_hops_are_medians_of_what_was_measured():
    pair = {"from": "S", "to": "D"}
    rows = frame(
        *(pair | {"bandwidth_bytes_per_s": rate} for rate in (1e6, 3e6, 2e6)),
        pair | {"rtt_s": 0.05, "loss": 0.001},
        pair | {"bandwidth_bytes_per_s": 9e9, "ended": "failed"},
        {"from": "D", "to": "S", "rtt_s": 9.0},
    )
    found = measured_hop(rows, "S", "D")
    assert (found.hop.tcp_bytes_per_s, found.hop.rtt_s, found.hop.loss) == (2e6, 0.05, 0.001)
    assert found.n_samples == 3
    with pytest.raises(ProblemError, match="there is no measurement of 'X'"):
        measured_hop(rows, "X", "D")
    with pytest.raises(ProblemError, match="no bandwidth was measured from 'D' to 'S'"):
        measured_hop(rows, "D", "S")
