"""From a table of measurements to a problem: which tests count, and what is not known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measurement.samples_to_problem import problem_of_samples

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
    [text] = found.notes
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
