"""Certainty of plans: quantiles by hand, scenarios by whole cycles, what is said of little."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.measurement.cycles import cycles_of
from datacollect.measurement.series.intervals import CONFIDENCE
from datacollect.problem.bandwidth_intervals import HIGH, LOW
from datacollect.problem.within_intervals import CERTAINTY
from datacollect.uncertainty.certainty import compared
from datacollect.uncertainty.draws import draws_from

NAMES = ["S", "T", "D"]
HOUR_S = 3600.0


@pytest.fixture
def two_hosts() -> dc.Problem:
    """60 bytes at 6 bytes/s: 10 s."""
    return dc.Problem.from_matrix(["S", "D"], [[0, 6.0], [0, 0]], [60, 0], "D")


@pytest.fixture
def two_sources() -> dc.Problem:
    """S and T have 60 bytes each, at 6 bytes/s: both take 10 s."""
    rates = [[0, 0, 6.0], [0, 0, 6.0], [0, 0, 0]]
    return dc.Problem.from_matrix(NAMES, rates, [60, 60, 0], "D")


def cycles(**rates: list[float | None]) -> pd.DataFrame:
    """Return tests of links such as S_D, one each hour, a second after each other."""
    rows = [
        (*link.split("_"), hour * HOUR_S + place, rate)
        for place, (link, of_link) in enumerate(rates.items())
        for hour, rate in enumerate(of_link)
        if rate is not None
    ]
    return pd.DataFrame(rows, columns=["from", "to", "time_s", "bandwidth_bytes_per_s"])


# Quantiles ------------------------------------------------------------------------------------


def test_each_cycle_leads_equally_often(two_hosts):
    """60 bytes at 3, 4, 5, 6 bytes/s take 20, 15, 12, 10 s: 50 scenarios each of 200."""
    found = dc.certainty(two_hosts, dc.direct(two_hosts), cycles(S_D=[6.0, 5.0, 4.0, 3.0]))
    assert found.makespan_s == 10.0
    assert sorted(set(found.makespans_s.tolist())) == [10.0, 12.0, 15.0, 20.0]
    assert (found.p10_s, found.p50_s, found.p90_s) == (10.0, 13.5, 20.0)
    assert (found.n_scenarios, found.n_cycles, found.origin) == (200, 4, "cycles")


def test_links_that_are_slow_together_stay_so(two_sources):
    """Either both carry 6, or both 3: 10 s or 20 s. Apart from each other, 3 of 4 take 20 s."""
    plan = dc.direct(two_sources)
    together = dc.certainty(two_sources, plan, cycles(S_D=[6.0, 3.0], T_D=[6.0, 3.0]))
    assert (together.makespans_s == 20.0).mean() == 0.5
    in_turn = dc.certainty(two_sources, plan, cycles(S_D=[6.0, 3.0], T_D=[3.0, 6.0]))
    assert (in_turn.makespans_s == 20.0).all()


def test_a_link_that_a_cycle_has_not_tested_is_as_in_another(two_sources):
    """T was tested in the first cycle alone, at 2 bytes/s: 30 s in all scenarios."""
    found = dc.certainty(
        two_sources, dc.direct(two_sources), cycles(S_D=[6.0, 3.0], T_D=[2.0, None])
    )
    assert (found.makespans_s == 30.0).all()
    assert found.n_cycles == 2


def test_a_link_without_samples_is_as_the_problem_says_and_that_is_said(two_sources):
    found = dc.certainty(two_sources, dc.direct(two_sources), cycles(S_D=[6.0, 3.0]))
    assert sorted(set(found.makespans_s.tolist())) == [10.0, 20.0]
    assert any("1 link that the plan uses has neither samples" in text for text in found.notes)
    assert any("T -> D" in text for text in found.notes)


def test_a_link_tested_twice_in_a_cycle_counts_with_its_mean(two_hosts):
    """4 and 8 in one named cycle: 6 bytes/s, 10 s."""
    samples = cycles(S_D=[4.0, 8.0, 3.0]).assign(named=["cycle-0-", "cycle-0-", "cycle-1-"])
    found = dc.certainty(two_hosts, dc.direct(two_hosts), samples)
    assert sorted(set(found.makespans_s.tolist())) == [10.0, 20.0]


def test_the_same_seed_gives_the_same_scenarios(two_sources):
    samples = cycles(S_D=[6.0, 3.0, 5.0], T_D=[None, 3.0, 4.0])
    plan = dc.direct(two_sources)
    first, again, other = (
        dc.certainty(two_sources, plan, samples, scenarios=7, seed=seed) for seed in (1, 1, 2)
    )
    assert first.makespans_s.tolist() == again.makespans_s.tolist()
    assert first.makespans_s.tolist() != other.makespans_s.tolist()


@pytest.mark.parametrize(("scenarios", "seed"), [(0, 0), (-1, 0)])
def test_scenarios_are_at_least_one(two_hosts, scenarios, seed):
    with pytest.raises(dc.ProblemError, match="scenarios must be >= 1"):
        dc.certainty(two_hosts, dc.direct(two_hosts), cycles(S_D=[6.0]), scenarios=scenarios)


# Intervals ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_intervals_have_their_bandwidth_in_the_middle_and_their_ends_at_5_and_95_percent():
    """3 to 12 around 6 bytes/s: 20 s at the lowest, 10 s in the middle, 5 s at the highest."""
    tree = {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 60}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 6.0, LOW: 3.0, HIGH: 12.0}],
    }
    problem = dc.Problem.from_dict(tree)
    found = dc.certainty(problem, dc.direct(problem), scenarios=4000, seed=1)
    assert (found.origin, found.n_cycles) == ("intervals", 0)
    assert found.p50_s == pytest.approx(10.0, rel=0.02)
    assert found.makespans_s.min() == 5.0
    assert found.makespans_s.max() == 20.0
    assert (found.makespans_s == 20.0).mean() == pytest.approx(0.05, abs=0.015)
    assert (found.makespans_s == 5.0).mean() == pytest.approx(0.05, abs=0.015)
    # z = 1.2816 of 1.6449: 6 - 3 * 0.7791 = 3.6626, and 6 + 6 * 0.7791 = 10.675.
    assert found.p90_s == pytest.approx(60 / 3.6626, rel=0.03)
    assert found.p10_s == pytest.approx(60 / 10.675, rel=0.03)


def test_without_samples_and_intervals_nothing_can_be_said(two_hosts):
    with pytest.raises(dc.ProblemError, match="no link of the problem has an interval"):
        dc.certainty(two_hosts, dc.direct(two_hosts))


# Little, or others ----------------------------------------------------------------------------


def test_one_cycle_gives_no_interval_and_says_so(two_hosts):
    found = dc.certainty(two_hosts, dc.direct(two_hosts), cycles(S_D=[3.0]))
    assert (found.p10_s, found.p50_s, found.p90_s) == (None, None, None)
    assert "no interval: one cycle" in found.text
    assert found.to_dict()["p90_s"] is None


def test_of_few_cycles_it_is_said_how_often_the_next_is_beyond_them(two_hosts):
    found = dc.certainty(two_hosts, dc.direct(two_hosts), cycles(S_D=[3.0, 6.0, 5.0]))
    assert any(
        "of 3 cycles the next one lies outside all of them in 50%" in text for text in found.notes
    )


def test_samples_of_other_hosts_alone_are_refused(two_hosts):
    with pytest.raises(
        dc.ProblemError, match=r"the samples are of the hosts X, Y, the problem's hosts are"
    ):
        dc.certainty(two_hosts, dc.direct(two_hosts), cycles(X_Y=[3.0, 4.0]))


def test_samples_of_other_hosts_are_left_out_and_named(two_hosts):
    found = dc.certainty(two_hosts, dc.direct(two_hosts), cycles(S_D=[3.0, 6.0], X_D=[1.0, 1.0]))
    assert found.n_cycles == 2
    assert any("no such links: samples of X -> D" in text for text in found.notes)


def test_samples_older_than_the_problem_are_told(two_hosts):
    problem = two_hosts.replace(measured_s=1.7e9 + 3 * 86_400)
    samples = cycles(S_D=[3.0, 6.0])
    samples["time_s"] += 1.7e9
    found = dc.certainty(problem, dc.direct(problem), samples)
    assert any("older than the problem's bandwidths" in text for text in found.notes)
    fresh = dc.certainty(two_hosts.replace(measured_s=1.7e9), dc.direct(two_hosts), samples)
    assert not any("older" in text for text in fresh.notes)


def test_other_bandwidths_than_the_problem_says_are_told_and_count(two_hosts):
    """The problem says 6 bytes/s, tests found 3 and 3.6: 20 and 16.7 s."""
    found = dc.certainty(two_hosts, dc.direct(two_hosts), cycles(S_D=[3.0, 3.6]))
    assert found.p90_s == 20.0
    assert any("other bandwidths than the problem says" in text for text in found.notes)


def test_scenarios_in_which_nothing_arrives_are_counted_and_are_no_number(two_hosts):
    """No cycle tests at 0: such a link has failed. An interval may begin there: 5 % never end."""
    tree = two_hosts.to_dict()
    tree["links"][0] |= {LOW: 0.0, HIGH: 6.0}
    problem = dc.Problem.from_dict(tree)
    found = dc.certainty(problem, dc.direct(problem), scenarios=1000)
    assert 0 < found.n_never < 100
    assert math.isfinite(found.p90_s)
    assert "some data never arrive" in found.text
    assert found.to_dict()["n_never"] == found.n_never


def test_a_quantile_that_never_comes_is_infinite_and_null_in_json():
    """Nineteen links, each of which fails in one of twenty scenarios: six of ten never end."""
    n = 19
    tree = {
        "destination": "D",
        "hosts": {**{f"S{i}": {"backlog_bytes": 10} for i in range(n)}, "D": {}},
        "links": [
            {"from": f"S{i}", "to": "D", "bandwidth_bytes_per_s": 5.0, LOW: 0.0, HIGH: 5.0}
            for i in range(n)
        ],
    }
    problem = dc.Problem.from_dict(tree)
    found = dc.certainty(problem, dc.direct(problem))
    assert found.p90_s == math.inf
    assert found.to_dict()["p90_s"] is None
    assert "never (p90)" in found.text


# Bandwidths by the hour -----------------------------------------------------------------------


def test_bandwidths_by_the_hour_vary_around_what_each_hour_brings():
    """By day 4, by night 8, as tests find exactly: nothing is uncertain, whatever they differ."""
    tree = {
        "destination": "D",
        "start": "2026-11-23T08:00:00+00:00",
        "timezone": "UTC",
        "daily_periods": ["08:00", "20:00"],
        "hosts": {"S": {"backlog_bytes": 400}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": [4.0, 8.0]}],
    }
    problem = dc.Problem.from_dict(tree)
    noon = pd.Timestamp("2026-11-20T12:00:00Z").timestamp()
    times = [noon + 12 * HOUR_S * i for i in range(4)]
    samples = pd.DataFrame({"from": "S", "to": "D", "time_s": times})
    samples["bandwidth_bytes_per_s"] = [4.0, 8.0, 4.0, 8.0]
    found = dc.certainty(problem, dc.direct(problem), samples)
    assert found.makespans_s.tolist() == pytest.approx([100.0] * 200)
    samples["bandwidth_bytes_per_s"] = [2.0, 8.0, 6.0, 8.0]
    found = dc.certainty(problem, dc.direct(problem), samples)
    assert sorted(set(np.round(found.makespans_s, 3).tolist())) == [66.667, 100.0, 200.0]


# Methods side by side -------------------------------------------------------------------------


def test_methods_meet_the_same_scenarios_and_all_that_end_first_win():
    """S has 60 bytes, 6 bytes/s straight and 6 over K. With K's link at 1, coordinated brings
    30 bytes over it: 30 s, direct 10 s; with 6, coordinated 5 s, direct 10 s."""
    rates = [[0, 6.0, 6.0], [0, 0, 6.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["S", "K", "D"], rates, [60, 0, 0], "D")
    plans = {
        "direct": dc.direct(problem),
        "best-path": dc.best_path(problem),
        "coordinated": dc.coordinated(problem, chunk_s=0.0),
    }
    samples = cycles(S_D=[6.0] * 4, S_K=[6.0] * 4, K_D=[6.0, 6.0, 6.0, 1.0])
    found = compared(problem, plans, cycles_of(samples))
    assert found.wins == {"direct": 0.25, "best-path": 0.25, "coordinated": 0.75}
    assert found.by_method["coordinated"].p90_s == pytest.approx(30.0)
    assert found.by_method["direct"].p90_s == 10.0


def test_one_cycle_tells_no_winner(two_hosts):
    found = compared(two_hosts, {"direct": dc.direct(two_hosts)}, cycles_of(cycles(S_D=[3.0])))
    assert found.wins == {}


# What costs most ------------------------------------------------------------------------------


def test_the_link_whose_errors_cost_most_comes_first_with_what_a_test_is_worth():
    """S and T have 60 bytes each. S's link carries 6 or 2, T's 6 or 5; D takes anything.

    As it is, p90 is 30 s; with S's link at 6, 12 s: 18 s. Nothing else can be done for S: a test
    saves nothing.
    """
    rates = [[0, 0, 6.0], [0, 0, 6.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(NAMES, rates, [60, 60, 0], "D")
    samples = cycles(S_D=[6.0, 2.0, 6.0, 2.0], T_D=[6.0, 6.0, 5.0, 5.0])
    found = dc.certainty(problem, dc.coordinated(problem), samples, costs=True)
    first = found.costs[0]
    assert (first.kind, first.hosts) == ("link", ("S", "D"))
    assert found.p90_s == pytest.approx(30.0)
    assert first.p90_s == pytest.approx(12.0)
    assert first.moves_p90_s == pytest.approx(18.0)
    assert first.test_saves_s == pytest.approx(0.0, abs=1e-6)
    assert "S → D" in first.text


def test_what_saves_from_never_is_told_without_an_endless_number():
    """20 bytes at 5 bytes/s: 4 s; in a third of the cycles nothing comes, so that p90 is never."""
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    samples = cycles(S_D=[5.0, 5.0, 0.0])
    (cost,) = dc.certainty(problem, dc.coordinated(problem), samples, costs=True).costs
    assert cost.text == "If S → D were as planned, p90 would be 4 s instead of never."
    assert cost.to_dict()["moves_p90_s"] is None
    assert cost.to_dict()["test_saves_s"] is None


def test_a_test_is_worth_what_the_plan_made_with_its_result_saves():
    """S has 60 bytes, two ways of 6 bytes/s: 30 bytes each, 5 s. K's link carries 6 or 2.

    At 2 the plan takes 15 s. Who knows it sends 45 straight and 15 over K: 7.5 s. Half of the
    scenarios: 3.75 s on average.
    """
    rates = [[0, 60.0, 6.0], [0, 0, 6.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["S", "K", "D"], rates, [60, 0, 0], "D")
    samples = cycles(S_D=[6.0] * 4, S_K=[60.0] * 4, K_D=[6.0, 2.0, 6.0, 2.0])
    found = dc.certainty(problem, dc.coordinated(problem, chunk_s=0.0), samples, costs=True)
    first = next(cost for cost in found.costs if cost.kind == "link")
    assert first.hosts == ("K", "D")
    assert first.moves_p90_s == pytest.approx(10.0)
    assert first.test_saves_s == pytest.approx(3.75, abs=0.1)


def test_an_assumption_costs_what_it_takes_if_it_is_wrong():
    """S is to send 12 bytes/s over two ways; each alone was shown to carry 6. With one line the
    60 bytes take 10 s instead of 5 s; a plan that knows it does no better."""
    rates = [[0, 6.0, 6.0], [0, 0, 6.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(["S", "K", "D"], rates, [60, 0, 0], "D")
    samples = cycles(S_D=[6.0] * 2, S_K=[6.0] * 2, K_D=[6.0] * 2)
    found = dc.certainty(problem, dc.coordinated(problem, chunk_s=0.0), samples, costs=True)
    cost = next(one for one in found.costs if one.hosts == ("S",))
    assert (cost.kind, cost.direction) == ("assumption", "out")
    assert cost.p90_s == pytest.approx(10.0)
    assert cost.moves_p90_s == pytest.approx(5.0)
    assert "a flood of S tells" in cost.text
    # 6 bytes/s for 5 s, and a quarter more.
    flood = "datacollect measure flood hosts.toml --from S --to D --to K"
    assert cost.command == f"{flood} --streams 4 --seconds 5 --bytes 38"
    assert cost.to_dict()["command"] == cost.command


def test_all_links_of_a_host_cost_more_than_one_where_they_are_slow_together():
    """All links into D are slow in half of the cycles: to know one of them changes nothing."""
    rates = [[0, 0, 6.0], [0, 0, 6.0], [0, 0, 0]]
    problem = dc.Problem.from_matrix(NAMES, rates, [60, 60, 0], "D")
    samples = cycles(S_D=[6.0, 3.0], T_D=[6.0, 3.0])
    found = dc.certainty(problem, dc.coordinated(problem), samples, costs=True)
    assert [(cost.kind, cost.hosts) for cost in found.costs] == [("host", ("D",))]
    assert found.costs[0].moves_p90_s == pytest.approx(10.0)


def test_costs_of_a_plan_from_a_file_and_of_one_that_is_simulated():
    problem = dc.Problem.from_hosts(
        [dc.Host("S", 20, release_s=10.0), dc.Host("D")], [dc.Link("S", "D", 5.0)], "D"
    )
    plan = dc.Schedule.from_dict(dc.coordinated(problem).to_dict())
    found = dc.certainty(problem, plan, cycles(S_D=[5.0, 2.5]), costs=True)
    assert found.costs[0].moves_p90_s == pytest.approx(4.0)


# Draws ----------------------------------------------------------------------------------------


def test_links_without_samples_vary_within_their_intervals(two_sources):
    tree = two_sources.to_dict()
    tree["links"][1] |= {LOW: 3.0, HIGH: 6.0}
    problem = dc.Problem.from_dict(tree)
    links = np.arange(2)
    found = draws_from(problem, links, cycles_of(cycles(S_D=[6.0, 3.0])), 50, 0)
    assert set(found.factors[:, 0].tolist()) == {1.0, 0.5}
    assert found.factors[:, 1].min() == 0.5
    assert found.varies.tolist() == [True, True]


def test_intervals_are_drawn_with_the_certainty_that_they_are_made_with():
    assert CERTAINTY == CONFIDENCE
