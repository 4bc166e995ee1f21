"""Forecasts of an adaptive collection's end, against arithmetic and against what came."""

import pytest

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.adaptive.market import HostView
from datacollect.control.adaptive.outlook import HIGH, LOW, PARTS, Outlook, remaining_s
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_problem

MB = 1_000_000


def view(host, connections, rate, work, **rest):
    known = {"marginal": rate, "own_bytes": work, "feeders": 0, "feeds": False, **rest}
    return HostView(host, (host, "D"), connections, rate, work_bytes=work, **known)


def test_hosts_that_can_relay_for_each_other_are_done_together():
    """300 bytes at 2 · 1 + 1 · 1 bytes/s."""
    assert remaining_s([view("A", 2, 1.0, 100), view("B", 1, 1.0, 200)]) == pytest.approx(100.0)


def test_what_is_on_the_way_comes_first():
    assert remaining_s([view("A", 2, 1.0, 100)], 20) == pytest.approx(60.0)


def test_fast_hosts_are_done_when_they_are_and_leave_their_connections():
    """B's connection brings 10, four times the mean of 2.8: 50 bytes in 5 s. Then 400 bytes at
    4 · 1, and by B's place half as much as one of A's brings: 4.5."""
    views = [view("A", 4, 1.0, 400), view("B", 1, 10.0, 50)]
    assert remaining_s(views) == pytest.approx(400 / 4.5)


def test_what_goes_over_chains_counts():
    views = [view("A", 1, 1.0, 100, chained_bytes_per_s=3.0), view("B", 0, 1.0, 0)]
    assert remaining_s(views) == pytest.approx(25.0)


def test_nothing_left_takes_no_time_and_nothing_known_says_nothing():
    assert remaining_s([view("A", 2, 1.0, 0)]) == 0.0
    assert remaining_s([view("A", 0, 1.0, 10)]) is None


def test_it_follows_what_it_sees_and_its_interval_closes():
    outlook = Outlook(1000)
    outlook.look(0.0, 0, [view("A", 1, 10.0, 1000)])
    assert outlook.forecast is None  # nothing has arrived
    for second in range(1, 100):
        outlook.look(float(second), 10 * second, [view("A", 1, 10.0, 1000 - 10 * second)])
    forecast = outlook.forecast
    assert forecast.makespan_s == pytest.approx(100.0)
    assert forecast.low_s < forecast.makespan_s < forecast.high_s
    assert [round(noted["done"], 2) for noted in outlook.noted] == [n / 10 for n in range(1, 10)]
    spans = [noted["high_s"] - noted["low_s"] for noted in outlook.noted]
    assert spans == sorted(spans, reverse=True)


def test_its_factors_are_in_order():
    assert len(PARTS) == len(LOW) == len(HIGH)
    assert all(low < 1 < high for low, high in zip(LOW, HIGH, strict=True))


def test_with_fixed_rates_it_is_right_from_the_start():
    """Two sources, 20 MB each at 1 MB/s; two connections share a link."""
    links = [[0, 0, MB], [0, 0, MB], [0, 0, 0]]
    problem = Problem.from_matrix(["A", "B", "D"], links, [20 * MB, 20 * MB, 0], "D")
    controller = AdaptiveController(problem, 4)
    run = simulate_problem(problem, controller)
    for noted in controller.answer["forecasts"]:
        assert noted["makespan_s"] == pytest.approx(run.makespan_s, rel=0.15)
        assert noted["low_s"] < run.makespan_s < noted["high_s"]


def test_what_was_predicted_is_believed_first_and_what_is_seen_later():
    """Predicted 80 s, seen 100: 80 until a tenth is there, 90 half-way to four tenths, then 100."""
    outlook = Outlook(1000, expected_s=80.0)
    for done, end_s in ((100, 80.0), (250, 90.0), (400, 100.0)):
        outlook.look(done / 10, done, [view("A", 1, 10.0, 1000 - done)])
        assert outlook.forecast.makespan_s == pytest.approx(end_s)
        assert outlook.forecast.low_s < end_s < outlook.forecast.high_s


def test_the_end_is_never_expected_before_now():
    outlook = Outlook(1000, expected_s=5.0)
    outlook.look(10.0, 100, [view("A", 1, 10.0, 900)])
    assert outlook.forecast.makespan_s == 10.0
