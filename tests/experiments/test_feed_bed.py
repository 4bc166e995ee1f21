"""Feeds in a bed beside the report: what is made of what was seen, and one short run."""

from __future__ import annotations

import feed_bed
import feed_bed_parts
import feed_bed_runs
import feed_bed_tables
import feed_noise
import numpy as np
import pytest


def test_a_message_is_there_with_its_last_byte():
    """Made at 1 and 2 s, ten bytes each; at 1.5 s there are 12 bytes, at 4 s all 20."""
    made = np.array([[1.0, 10], [2.0, 20]])
    assert feed_bed_runs.delays_s(made, np.array([[1.5, 12], [4.0, 20]])).tolist() == [0.5, 2.0]
    with pytest.raises(ValueError, match="not all that was made"):
        feed_bed_runs.delays_s(made, np.array([[1.5, 12]]))


def test_what_the_machine_does_later_is_not_the_losses():
    """A message each 0.5 s, 30 ms under way. A loss at 2 s: 230, 130, 80 and 40 ms; none is late
    for more than a second, then one is, by half a second, whose source was in time.

    The fourth, made at 3.5 s, is late by 10 ms, which counts as in time: so the third is the last,
    there at 3.08 s; 200 + 100 + 50 ms, half a second of making each.
    """
    made_s, delay_s = np.arange(0, 10, 0.5), np.full(20, 0.03)
    delay_s[4:8] = 0.23, 0.13, 0.08, 0.04
    delay_s[16] = 0.53
    found = feed_bed_runs.after_loss(made_s, delay_s, 2.0, 10.0)
    assert found == pytest.approx((0.23, 1.08, 0.175, 0.0))


def test_a_source_that_pauses_shows_that_the_machine_was_busy():
    """Half a second between messages, but for 1.25 s after the loss: 0.75 s more."""
    made_s = np.concatenate([np.arange(0, 2.5, 0.5), np.arange(3.25, 10.25, 0.5)])
    each_s = (made_s[-1] - made_s[0]) / (len(made_s) - 1)
    found = feed_bed_runs.after_loss(made_s, np.full(len(made_s), 0.03), 2.0, 9.0)
    assert found.machine_s == pytest.approx(1.25 - each_s)
    assert (found.late_for_s, found.worst_delay_s) == (0.0, 0.03)


def test_bursts_and_gaps_of_what_an_interface_counts():
    """100 and 200 bytes within 9 ms, then nothing for 21 ms."""
    seen = np.array([[0.0, 0], [0.005, 100], [0.009, 300], [0.02, 300], [0.03, 310]])
    assert feed_bed_parts.most_together(seen, 0.01) == 300
    assert feed_bed_parts.longest_gap_s(seen) == pytest.approx(0.021)


def test_a_setting_is_what_plan_is_asked_about():
    """Over two relays each hop has a third of the 50 ms: lateness falls with the square."""
    direct, relayed = (feed_bed_runs.Setting("reno", 20, n).plan() for n in (0, 2))
    assert relayed.via == ("K1", "K2")
    assert direct.worst_delay_s > 6 * relayed.worst_delay_s
    assert feed_bed_runs.Setting("bbr", 20).plan().worst_delay_s is None


def loss(worst_delay_s, lateness_s2, machine_s=0.0):
    return {
        "worst_delay_s": worst_delay_s,
        "late_for_s": 1.0,
        "lateness_s2": lateness_s2,
        "machine_s": machine_s,
    }


def test_what_windows_say_of_delays_stands_beside_them():
    """Twice what is needed: a round trip more than the fastest. Then 1.2 times, after more."""
    needed = 2.04e6 * 0.05
    losses = [
        {**loss(delay_s, 0.0), "window_bytes": int(part * needed), "rtt_s": 0.05, "sent_bytes": at}
        for part, delay_s, at in ((2.0, 0.08, 0), (1.2, 0.11, int(2.04e6 * 8)))
    ]
    row = {"part": "losses", "name": "cubic-20-0", "spacing_s": 8, "least_s": 0.03}
    lines = feed_bed_tables.windows_table([{**row, "losses": losses}]).splitlines()
    assert lines[2] == "| 2.00 | no | 0.080 | 0.080 |"
    assert lines[3].startswith("| 1.20 | yes | 0.11")
    assert feed_bed_tables.windows_table([]) == ""


def test_what_was_asked_stands_beside_what_was_found():
    """Lateness 1 directly, 0.1 relayed where the machine was in time; 3 of 4 within the plan."""
    direct = [loss(0.2, 1.0), loss(9.0, 1.0)]
    relayed = [loss(0.05, 0.1), loss(0.05, 5.0, machine_s=0.3)]
    rows = [
        {"part": "losses", "name": f"reno-20-{n}", "spacing_s": 20, "losses": losses}
        for n, losses in ((0, direct), (2, relayed))
    ]
    text = feed_bed_tables.asked_table(rows)
    assert "two relays ÷ direct, punctual losses | 0.100 | ≤ 0.333 |" in text
    assert "two relays ÷ direct, all losses | 2.550 | ≤ 0.333 |" in text
    assert "punctual losses | 2 of 3 | ≥ 95 % |" in text
    assert "all losses | 3 of 4 | ≥ 95 % |" in text
    assert "| reno, 20 Mbit/s | 2 of 2 |" in feed_bed_tables.losses_table(rows)


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch):
    path, asked = tmp_path / "results.jsonl", []

    def part(*names):
        return lambda: {name: lambda name=name: {"n": asked.append(name)} for name in names}

    monkeypatch.setattr(feed_bed, "PARTS", {"losses": part("one"), "gaps": part("two")})
    feed_bed.run(path, ["losses"], 2)
    feed_bed.run(path, ["losses", "gaps"], 2)
    assert asked == ["one", "two"]
    assert [row["part"] for row in feed_bed.rows_of(path)] == ["losses", "gaps"]


# Noise ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noise():
    """Twelve integrations; what they scatter by is small beside what is tested."""
    return feed_noise.recorded(12 * feed_noise.PACKETS, seed=3)


@pytest.mark.slow
def test_what_is_known_to_be_missing_costs_no_amplitude(noise):
    known = feed_noise.judged(noise, "single", 0.2, "left out")
    assert known.amplitude == pytest.approx(1.0, abs=0.05)
    for fill in feed_noise.FILLS:
        found = feed_noise.judged(noise, "single", 0.2, fill)
        assert found.amplitude < 0.85


@pytest.mark.slow
def test_what_is_closed_up_is_no_signal_any_more(noise):
    assert abs(feed_noise.judged(noise, "single", 0.01, "closed up").amplitude) < 0.1


def test_a_hole_reads_as_what_the_receiver_writes():
    """Zeros are the lowest level; the pattern's word begins with 0x44, two bits each."""
    zeros = feed_noise.unpacked(feed_noise.filled_in("zero", 2, 0))
    assert set(zeros.tolist()) == {-feed_noise.OUTER}
    pattern = feed_noise.filled_in("pattern", 4, 8)
    assert pattern.hex() == "44332211"
    # 0x44 is 01 00 01 00, the lowest first: 0, 1, 0, 1.
    assert feed_noise.unpacked(pattern)[:4].tolist() == [-feed_noise.OUTER, -1.0] * 2


# The bed --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("beds_possible")
def test_a_loss_makes_a_feed_late_over_a_relay_and_all_of_it_comes(monkeypatch):
    """One lost packet on the first hop of 25 ms: it is there once more a round trip later."""
    monkeypatch.setattr(feed_bed_runs, "QUIET_S", 2.0)
    setting = feed_bed_runs.Setting("reno", 20, 1, n_losses=1, spacing_s=2.0, rate_mbit=4.0)
    row = feed_bed_runs.row_of(setting, seed=1)
    assert row["lost_packets"] == 1
    assert row["least_s"] >= setting.rtt_s / 2
    (one,) = row["losses"]
    assert one["worst_delay_s"] >= setting.rtt_s / 2 + setting.rtt_s / 2
    assert len(row["tenths_s"]) == 10
