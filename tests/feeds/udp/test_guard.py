"""The guard, with a clock that is given: when it fires, what it says, what becomes of input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from datacollect.feeds.udp.guard import CHANCE, Guard, GuardLimits, Phase, Reason, is_chance

MOST_LOSS = 0.01


class Path:
    """Sends at a rate to a receiver that reports each tenth of a second, with losses by chance."""

    def __init__(self, packets_per_s: float, bunch: int = 1, grace_s: float = 2.0) -> None:
        self.guard = Guard(GuardLimits(MOST_LOSS, bunch, grace_s), 0.0)
        self.per_tick, self.bunch = int(packets_per_s / 10), bunch
        self.rng = np.random.default_rng(5)
        self.tick = self.sent = self.newest = self.events = self.host = 0

    def run(self, seconds: float, loss: float, *, host: bool = False) -> Phase:
        """Go on for so long; stop where the guard fires. Return the phase."""
        phase = self.guard.look(self.tick / 10)
        before = self.guard.alarm
        n = round(seconds * 10)
        events = self.rng.poisson(self.per_tick * loss / self.bunch, n)
        for more in events.tolist():
            self.tick += 1
            self.sent += self.per_tick
            self.guard.sent(self.tick / 10 - 0.05, self.sent)
            if loss < 1:
                self.newest, self.events = self.sent, self.events + more
            self.host += host and more > 0
            lost = self.events * self.bunch
            self.guard.report(self.tick / 10, self.newest, lost, self.events, self.host)
            phase = self.guard.look(self.tick / 10)
            if self.guard.alarm is not before:
                break
        return phase


@pytest.mark.parametrize("expected", [0.001, 0.04, 0.272, 1.3, 40.0, 7600.0])
def test_what_is_no_chance_is_none_by_the_exact_distribution(expected: float) -> None:
    """Never fires where Poisson's exact tail would not, and an event in a thousand later."""
    least = next(k for k in range(int(expected), 10**5) if not is_chance(k, expected))
    assert poisson.sf(least - 1, expected) <= CHANCE
    exact = int(poisson.isf(CHANCE, expected)) + 1
    assert least <= exact + expected / 1000


@pytest.mark.parametrize("bunch", [1, 5, 10])
@pytest.mark.parametrize("packets_per_s", [136, 1_360, 76_000])
def test_half_the_path_gone_fires_within_a_second(packets_per_s: int, bunch: int) -> None:
    path = Path(packets_per_s, bunch)
    assert path.run(30, 0.9 * MOST_LOSS) is Phase.WELL
    began = path.tick
    assert path.run(2, 0.5) is Phase.WARNED
    assert (path.tick - began) / 10 <= 1.0
    assert path.guard.alarm is not None
    assert path.guard.alarm.reason is Reason.PATH
    assert "send less" in path.guard.alarm.text


@pytest.mark.slow
@pytest.mark.parametrize("bunch", [1, 5, 10])
def test_two_hours_of_bearable_loss_cause_no_alarm(bunch: int) -> None:
    path = Path(7_600, bunch)
    assert path.run(7_200, 0.9 * MOST_LOSS) is Phase.WELL
    assert path.guard.n_alarms == 0


def test_losses_that_the_receiving_host_caused_have_another_remedy() -> None:
    path = Path(7_600)
    assert path.run(5, 0.05, host=True) is Phase.WARNED
    assert path.guard.alarm is not None
    assert path.guard.alarm.reason is Reason.HOST
    assert "rmem_max" in path.guard.alarm.text


def test_bunches_far_larger_than_declared_count_as_they_are() -> None:
    """A third is lost, a thousand at a time: a few events, which would be bearable one by one."""
    guard = Guard(GuardLimits(MOST_LOSS, 1.0), 0.0)
    for tick in range(1, 50):
        guard.report(tick / 10, 7_600 * tick, 2_500 * tick, 2 * tick, 0)
        if guard.look(tick / 10) is not Phase.WELL:
            break
    assert guard.alarm is not None
    assert guard.alarm.at_s <= 3.0


def test_one_pause_of_the_path_is_none() -> None:
    """Of 10 s a quarter of a second is lost, at once."""
    guard = Guard(GuardLimits(MOST_LOSS, 1.0), 0.0)
    for tick in range(1, 200):
        gone = tick > 100
        guard.report(tick / 10, 7_600 * tick, 19_000 * gone, 1 * gone, 0)
        assert guard.look(tick / 10) is Phase.WELL


@pytest.mark.parametrize(("n_lost", "n_events"), [(5, 4), (5, 5), (4, 5), (9, 4), (0, 0)])
def test_losses_that_become_fewer_are_none(n_lost: int, n_events: int) -> None:
    """Packets that come out of order are missing until they are there."""
    guard = Guard(GuardLimits(MOST_LOSS, 1.0), 0.0)
    guard.report(0.1, 100, 5, 5, 0)
    guard.report(0.2, 1000, n_lost, n_events, 0)
    assert guard.look(0.2) is Phase.WELL
    guard.report(0.5, 2000, n_lost, n_events, 0)
    assert guard.look(0.5) is Phase.WELL


def test_a_second_without_reports_fires() -> None:
    path = Path(1_000)
    path.run(3, 0.0)
    assert path.guard.look(4.0) is Phase.WELL
    assert path.guard.look(4.01) is Phase.WARNED
    assert path.guard.alarm is not None
    assert path.guard.alarm.reason is Reason.SILENT


def test_reports_that_nothing_arrives_fire_after_a_second() -> None:
    path = Path(1_000)
    path.run(3, 0.0)
    assert path.run(5, 1.0) is Phase.WARNED
    assert path.guard.alarm is not None
    assert path.guard.alarm.reason is Reason.LOST
    assert 1.0 <= path.tick / 10 - 3.0 <= 1.2


def test_a_source_that_pauses_is_no_alarm() -> None:
    path = Path(1_000)
    path.run(3, 0.0)
    for tick in range(31, 100):
        path.guard.report(tick / 10, path.newest, 0, 0, 0)
        assert path.guard.look(tick / 10) is Phase.WELL
    path.guard.sent(10.0, path.sent + 100)
    assert path.guard.look(10.9) is Phase.WELL


def test_input_is_dropped_after_the_grace_and_the_feed_ends_after_ten_seconds() -> None:
    path = Path(7_600)
    path.run(5, 0.5)
    assert path.guard.alarm is not None
    fired_s = path.guard.alarm.at_s
    assert path.run(1.9, 0.5) is Phase.WARNED
    assert path.run(0.1, 0.5) is Phase.DROPPING
    assert path.guard.look(fired_s + 9.9) is Phase.DROPPING
    assert path.guard.look(fired_s + 10.0) is Phase.ENDED


def test_what_was_transient_or_remedied_in_time_is_well_again() -> None:
    """Lost for the first second of the grace, well in the second; and what was, is forgotten."""
    path = Path(7_600)
    path.run(5, 0.5)
    path.run(0.9, 0.5)
    assert path.run(1.2, 0.001) is Phase.WELL
    assert path.guard.alarm is None
    assert path.run(20, 0.001) is Phase.WELL
    assert path.guard.n_alarms == 1
