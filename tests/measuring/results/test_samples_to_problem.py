"""From a table of measurements to a problem: which tests count, and what is not known."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.results.samples_to_problem import problem_of_samples
from datacollect.problem.connection_rates import link_rates

MONDAY_S = 1_767_571_200.0  # 5 January 2026, 0 h UTC
HOUR_S = 3600.0


def row(tail, head, rate=None, **more):
    said = {"from": tail, "to": head, "time_s": MONDAY_S, "tool": "tcp", "ended": "done"}
    return {**said, "bandwidth_bytes_per_s": rate, **more}


def table(*rows):
    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def rates(found):
    return {
        (link["from"], link["to"]): link["bandwidth_bytes_per_s"] for link in found.tree["links"]
    }


def by_both(*tested):
    """Links S0 -> D, S1 -> D, ... with such rates of tests, and probes that say twice as much."""
    return [
        each
        for i, rate in enumerate(tested)
        for each in (row(f"S{i}", "D", rate), row(f"S{i}", "D", 2 * rate, tool="pairs"))
    ]


def test_tests_with_connections_count_before_probes():
    found = problem_of_samples(table(*by_both(1.0, 2.0)), "D")
    assert rates(found) == {("S0", "D"): 1.0, ("S1", "D"): 2.0}
    assert found.calibration is None  # two points say little of a line


def test_probes_alone_are_turned_into_tests_by_the_line_through_links_with_both():
    """Probes say twice what tests do, on three links: 10 becomes 5 on the fourth."""
    rows = [*by_both(1.0, 2.0, 3.0), row("P", "D", 10.0, tool="pairs")]
    found = problem_of_samples(table(*rows), "D")
    assert rates(found)["P", "D"] == pytest.approx(5.0)
    assert (found.calibration.slope, found.calibration.n) == (pytest.approx(0.5), 3)
    assert "1 link by packet pairs alone (P -> D): their rates times 0.5" in found.notes[0]


def test_probes_that_do_not_follow_tests_are_taken_as_they_are_and_it_is_said():
    """Tests of 1, 2 and 3, probes of 3, 2 and 1: the line 10/14 x is worse than their mean."""
    rows = [row(f"S{i}", "D", rate) for i, rate in enumerate([1.0, 2.0, 3.0])]
    rows += [row(f"S{i}", "D", 3.0 - i, tool="pairs") for i in range(3)]
    found = problem_of_samples(table(*rows, row("P", "D", 10.0, tool="pairs")), "D")
    assert found.calibration.r_squared == pytest.approx(1 - (14 - 100 / 14) / 2)
    assert rates(found)["P", "D"] == 10.0
    assert "P -> D): their rates as they are" in found.notes[0]


def test_tests_beside_a_pull_and_with_varied_settings_do_not_count():
    rows = [
        row("S", "D", 5.0),
        row("S", "D", 1.0, beside_pull=True),
        row("S", "D", 9.0, tool="scan"),
        row("S", "D", 2.0, tool="flood"),
    ]
    assert rates(problem_of_samples(table(*rows), "D")) == {("S", "D"): 5.0}


def test_what_is_not_known_is_named_with_what_became_of_its_tests():
    rows = [
        row("S", "D", 5.0),
        row("D", "S", ended="the connection was lost"),
        row("K", "D", 1.0, beside_pull=True),
        row("K", "S", tool="ping"),
    ]
    found = problem_of_samples(table(*rows), "D", hosts={"S", "K", "D", "L"})
    assert found.unknown == {
        ("D", "S"): "tcp: the connection was lost",
        ("K", "D"): "only tested beside a pull",
        ("K", "S"): "only tested by ping",
        **dict.fromkeys([("D", "K"), ("S", "K")], "never tested"),
        **{pair: "never tested" for host in "DKS" for pair in [(host, "L"), ("L", host)]},
    }
    assert [*found.tree["hosts"]] == ["D", "K", "L", "S"]


def test_hosts_that_do_not_matter_are_left_out_and_named():
    rows = [row("S", "D", 5.0), row("X", "D", 9.0)]
    found = problem_of_samples(table(*rows), "D", hosts={"S", "D"})
    assert rates(found) == {("S", "D"): 5.0}
    assert found.notes == ("left out, as the hosts' file has no such hosts: tests of X",)


def by_hour(tail, hours, rate=8.0):
    """A test each hour; by day, from 8 to 20 h, a quarter as much."""
    return [
        row(tail, "D", rate / 4 if 8 <= h % 24 < 20 else rate, time_s=MONDAY_S + h * HOUR_S)
        for h in hours
    ]


def test_bandwidths_that_differ_every_day_have_a_number_for_each_part():
    start = "2026-01-12T00:00:00+00:00"
    found = problem_of_samples(
        table(*by_hour("S", range(168))), "D", backlog_bytes={"S": 100}, start=start
    )
    assert found.daily == ("08:00", "20:00")
    assert rates(found)["S", "D"] == pytest.approx([2.0, 8.0])
    # From midnight on 8 bytes a second.
    problem = dc.Problem.from_dict(found.tree)
    assert dc.direct(problem).makespan_s == pytest.approx(12.5)


def test_links_that_were_tested_in_one_part_alone_keep_one_number_and_are_named():
    by_night = [h for h in range(168) if not 8 <= h % 24 < 20]
    rows = [*by_hour("S", range(168)), *by_hour("K", by_night)]
    found = problem_of_samples(table(*rows), "D")
    assert found.daily == ()
    assert rates(found)["K", "D"] == pytest.approx(8.0)
    text, _ = found.notes
    assert text.startswith("bandwidths change every day at 08:00 and 20:00, but links have one")
    assert text.endswith("were not tested in both parts: K -> D")


def test_wires_are_in_it_with_the_links_that_are_known():
    wires = [
        {"name": "w", "bandwidth_bytes_per_s": 7.0, "links": [["S", "D"], ["K", "D"]]},
        {"name": "v", "bandwidth_bytes_per_s": 9.0, "links": [["K", "D"]]},
    ]
    found = problem_of_samples(table(row("S", "D", 5.0)), "D", shared=wires)
    assert found.tree["shared"] == [{**wires[0], "links": [["S", "D"]]}]
    assert dc.Problem.from_dict(found.tree).shared[0].name == "w"


def test_links_with_enough_tests_have_intervals():
    values = 1e6 + 1e5 * np.random.default_rng(1).standard_normal(100)
    rows = [row("S", "D", value, time_s=MONDAY_S + i) for i, value in enumerate(values)]
    [link] = problem_of_samples(table(*rows), "D").tree["links"]
    assert 0.9e6 < link["bandwidth_low_bytes_per_s"] < link["bandwidth_high_bytes_per_s"] < 1.1e6


def test_what_measures_nothing_is_refused():
    with pytest.raises(ProblemError, match="no test that counts has measured a bandwidth"):
        problem_of_samples(table(row("S", "D", rtt_s=0.1, tool="ping")), "D")
    with pytest.raises(ProblemError, match="destination must be a host that samples name, got 'd'"):
        problem_of_samples(table(row("S", "D", 1.0)), "d")


@pytest.mark.parametrize(
    ("ahead_s", "rate", "n_notes"),
    [(24 * HOUR_S, (2.0 + 64 * 8.0) / 65, 0), (24 * HOUR_S + 1, 2.0, 1)],
)
def test_samples_more_than_a_day_ahead_do_not_count(ahead_s, rate, n_notes):
    """A day after a sample of 2, six half-lives, one of 8 weighs 64 times as much."""
    rows = [row("S", "D", 2.0), row("S", "D", 8.0, time_s=MONDAY_S + ahead_s)]
    found = problem_of_samples(table(*rows), "D", now_s=MONDAY_S, half_life_s=4 * HOUR_S)
    assert rates(found)["S", "D"] == pytest.approx(rate)
    assert len(found.notes) == n_notes


def test_samples_ahead_are_named_and_their_links_are_not_known():
    ahead_s = MONDAY_S + 400 * 24 * HOUR_S
    rows = [
        row("S", "D", 2.0),
        *(row("S", "D", 8.0, time_s=ahead_s + i) for i in range(2)),
        row("K", "D", 9.0, time_s=ahead_s),
        curve([[1, 8.0]], 24.0, 2.0, time_s=ahead_s),
        flood("S", "D", 1.0, "S", time_s=ahead_s),
        flood("S", "K", 1.0, "S", time_s=ahead_s),
    ]
    found = problem_of_samples(table(*rows), "D", now_s=MONDAY_S)
    assert found.tree["links"] == [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 2.0}]
    [text] = found.notes
    assert "lies ahead by more than a day: 6 samples of 3 links (K -> D, S -> D, S -> K)" in text
    assert found.unknown["K", "D"] == "only tested at times in the future"
    with pytest.raises(ProblemError, match="test some links first; left out, as their time lies"):
        problem_of_samples(table(*rows[1:]), "D", now_s=MONDAY_S)


def test_the_present_is_that_of_the_clock():
    rows = [row("S", "D", 2.0, time_s=time.time()), row("S", "D", 8.0, time_s=time.time() + 1e6)]
    assert rates(problem_of_samples(table(*rows), "D"))["S", "D"] == 2.0


# Curves and floods ---------------------------------------------------------------------------


def curve(rates, c=None, m=None, **more):
    settings = json.dumps({"rates_bytes_per_s": rates})
    own = {"tool": "curve", "settings": settings, "capacity_bytes_per_s": c, "competitors": m}
    return row("S", "D", **own, **more)


def test_a_curve_says_what_more_connections_get():
    """Of 12 bytes/s beside two others one gets 4, and four get 8; the test alone got 5."""
    found = problem_of_samples(table(row("S", "D", 5.0), curve([[1, 5.0]], 12.0, 2.0)), "D")
    (link,) = found.tree["links"]
    assert (link["capacity_bytes_per_s"], link["competitors"]) == (12.0, 2.0)
    problem = dc.Problem.from_dict(found.tree)
    assert [float(link_rates(problem).rate(n)[0]) for n in (1, 4)] == [4.0, 8.0]


def test_the_newest_curve_counts_and_one_that_failed_does_not():
    rows = [
        row("S", "D", 5.0),
        curve([[1, 5.0]], 12.0, 2.0, time_s=MONDAY_S + 60),
        curve([[1, 5.0]], 12.0, 5.0),
        curve([[1, 5.0]], 12.0, 9.0, time_s=MONDAY_S + 90, beside_pull=True),
        curve([[1, 5.0]], 12.0, 9.0, time_s=MONDAY_S + 90) | {"ended": "the far end was away"},
        curve("none", 12.0, 9.0, time_s=MONDAY_S + 90),
    ]
    assert problem_of_samples(table(*rows), "D").tree["links"][0]["competitors"] == 2.0
    # Who asks for what four connections get has asked for a constant.
    four = table(*rows, row("S", "D", 8.0, streams=4))
    assert "competitors" not in problem_of_samples(four, "D", streams=4).tree["links"][0]


@pytest.mark.parametrize(
    ("rates", "at_eight"),
    [
        ([[1, 40.0], [2, 80.0], [4, 150.0], [8, 310.0]], 320.0),
        ([[1, 40.0], [2, 75.0], [4, 110.0], [8, 100.0]], 110.0),
    ],
)
def test_where_pairs_tell_no_capacity_rates_grow_as_far_as_was_seen(rates, at_eight):
    found = problem_of_samples(table(row("S", "D", 40.0), curve(rates)), "D")
    assert found.tree["links"][0]["per_connection_bytes_per_s"] == 40.0
    assert float(link_rates(dc.Problem.from_dict(found.tree)).rate(8)[0]) == at_eight


def test_intervals_hold_the_bandwidth_of_a_curve():
    rows = [row("S", "D", 5.0 + i % 3, time_s=MONDAY_S + 60 * i) for i in range(40)]
    link = problem_of_samples(table(*rows, curve([[1, 5.0]], 12.0, 2.0)), "D").tree["links"][0]
    assert link["bandwidth_low_bytes_per_s"] == link["bandwidth_bytes_per_s"] == 4.0
    assert link["bandwidth_high_bytes_per_s"] > 5.0


def test_a_bandwidth_that_changes_by_the_hour_keeps_its_two_numbers():
    rows = [
        row("S", "D", 9.0 if hour in range(8, 20) else 3.0, time_s=MONDAY_S + HOUR_S * i)
        for i in range(8 * 24)
        for hour in [i % 24]
    ]
    found = problem_of_samples(table(*rows, curve([[1, 5.0]], 12.0, 2.0)), "D")
    assert rates(found)["S", "D"] == pytest.approx([9.0, 3.0], abs=0.1)
    assert "curves do not count where bandwidths change by the hour" in " ".join(found.notes)


def flood(tail, head, rate, host, number=1, **more):
    settings = json.dumps({"host": host, "flood": str(number)})
    return row(tail, head, rate, tool="flood", settings=settings, **more)


def limits(found):
    return {name: host for name, host in found.tree["hosts"].items() if host}


def test_a_host_that_is_slower_to_all_at_once_than_to_each_has_a_limit():
    """Alone 5 each, at once 3 each: 6 of 10 is what S sends, and D receives less than it could."""
    alone = [row("S", "D", 5.0), row("S", "E", 5.0), row("E", "D", 5.0)]
    at_once = [flood("S", "D", 3.0, "S"), flood("S", "E", 3.0, "S")]
    found = problem_of_samples(table(*alone, *at_once), "D")
    assert limits(found) == {"S": {"uplink_bytes_per_s": 6.0}}
    dc.Problem.from_dict(found.tree)
    to_d = [flood("S", "D", 2.5, "D"), flood("E", "D", 2.5, "D")]
    found = problem_of_samples(table(*alone, *to_d), "D")
    assert limits(found) == {"D": {"downlink_bytes_per_s": 5.0}}
    assert (
        "2 hosts at once give D 40 bit/s; alone they add up to 80 bit/s: the downlink of D is "
        "taken as 40 bit/s"
    ) in found.notes


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([flood("S", "D", 4.6, "S"), flood("S", "E", 4.6, "S")], "was not reached"),
        (
            [flood("S", "D", 2.0, "S"), flood("S", "F", 2.0, "S")],
            "whether that is the limit of its uplink",
        ),
        ([flood("S", "D", 2.0, "S"), flood("S", "E", None, "S", ended="away")], ""),
        ([flood("S", "D", 2.0, "X"), flood("S", "E", 2.0, "X")], ""),
        ([row("S", "D", 2.0, tool="flood"), row("S", "E", 2.0, tool="flood")], ""),
    ],
)
def test_floods_that_say_no_limit_set_none(rows, why):
    alone = [row("S", "D", 5.0), row("S", "E", 5.0)]
    found = problem_of_samples(table(*alone, *rows), "D")
    assert limits(found) == {}
    assert why in " ".join(found.notes)


def test_a_flood_is_compared_with_tests_of_as_many_connections():
    """Links are known by one connection, and the flood had four of which each alone got 8."""
    alone = [row("S", to, 5.0, streams=1, time_s=MONDAY_S + i) for to in "DE" for i in range(3)]
    alone += [row("S", to, 8.0, streams=4) for to in "DE"]
    at_once = [flood("S", to, 5.0, "S", streams=4) for to in "DE"]
    found = problem_of_samples(table(*alone, *at_once), "D")
    assert rates(found)["S", "D"] == pytest.approx(5.0)
    assert limits(found) == {"S": {"uplink_bytes_per_s": 10.0}}


def test_the_newest_flood_counts():
    alone = [row("S", "D", 5.0), row("S", "E", 5.0)]
    rows = [
        *(flood("S", to, 3.0, "S", 2, time_s=MONDAY_S + 60) for to in "DE"),
        *(flood("S", to, 1.0, "S", 1) for to in "DE"),
    ]
    assert limits(problem_of_samples(table(*alone, *rows), "D"))["S"]["uplink_bytes_per_s"] == 6.0


def test_what_a_destination_receives_in_all_is_said_to_be_unknown_until_it_is_flooded():
    """Two links of 8 and 4 MB/s may lead over one wire."""
    rows = [*by_hour("S", range(3)), *by_hour("K", range(3))]
    assert any(
        "what D receives in all was not measured" in text
        for text in problem_of_samples(table(*rows), "D").notes
    )
    one = problem_of_samples(table(*by_hour("S", range(3))), "D")
    assert not any("receives in all" in text for text in one.notes)


def test_where_every_test_has_failed_the_last_reason_is_told():
    failed = {"from": "S", "to": "D", "time_s": 7.0, "tool": "tcp", "ended": "S: refuses: no"}
    with pytest.raises(ProblemError, match="1 test failed, the last one, tcp S → D, so: S: refus"):
        problem_of_samples(table(failed, failed | {"tool": "ping", "time_s": 9.0}), "D")
