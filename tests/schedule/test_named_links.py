"""New estimates by hosts' names: mappings, tables, periods, prices, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import datacollect as dc


@pytest.fixture
def problem():
    """S and T send to D, T also passes S's data on: 5 bytes/s each."""
    rates = [[0, 5.0, 5.0], [0, 0, 5.0], [0, 0, 0]]
    return dc.Problem.from_matrix(["S", "T", "D"], rates, [20, 0, 0], "D")


TABLE = pd.DataFrame({"from": ["T", "S"], "to": ["D", "T"], "bandwidth_bytes_per_s": [2.0, 1.0]})
SAID = {
    "by pairs": {("T", "D"): 2.0, ("S", "T"): "8 bit/s"},
    "nested, as in JSON": {"T": {"D": 2.0}, "S": {"T": 1.0}},
    "Series": TABLE.set_index(["from", "to"])["bandwidth_bytes_per_s"],
    "table": TABLE,
    "table in Mbit/s": TABLE[["from", "to"]].assign(bandwidth_mbit_per_s=[16e-6, 8e-6]),
}


@pytest.mark.parametrize("links", SAID.values(), ids=SAID)
def test_links_are_found_by_name_in_whatever_holds_them(problem, links):
    new = dc.NewLinks.from_names(problem, links)
    assert new.link_from.tolist() == [1, 0]
    assert new.link_to.tolist() == [2, 1]
    assert new.bandwidth_bytes_per_s == pytest.approx(np.array([[2.0, 1.0]]))
    assert new.periods_s.tolist() == [0.0]
    assert np.isnan(new.price_per_gb).all()


def test_what_estimate_returns_fits(problem):
    samples = pd.DataFrame(
        {"from": "S", "to": "D", "time_s": [0, 60], "bandwidth_bytes_per_s": [2.5, 2.5]}
    )
    new = dc.NewLinks.from_names(problem, dc.estimate(samples))
    assert (new.link_from.tolist(), new.link_to.tolist()) == ([0], [2])
    assert new.bandwidth_bytes_per_s.tolist() == [[2.5]]


def test_forecasts_have_a_number_for_each_period(problem):
    links = {("S", "D"): ["8 bit/s", 2.0], ("T", "D"): 3.0}
    new = dc.NewLinks.from_names(problem, links, periods_s=[0, "1 min"])
    assert new.bandwidth_bytes_per_s.tolist() == [[1.0, 3.0], [2.0, 3.0]]
    assert new.periods_s.tolist() == [0.0, 60.0]


def test_prices_stay_unless_a_table_gives_them(problem):
    for price in (0.0, 7.0):
        new = dc.NewLinks.from_names(problem, TABLE.assign(price_per_gb=price))
        assert new.price_per_gb.tolist() == [price, price]


@pytest.mark.parametrize(
    ("links", "periods_s", "message"),
    [
        ({("S", "E"): 1.0}, None, r"links: unknown host 'E'; hosts are 'S', 'T', 'D'$"),
        ({"S": {"d": 1.0}}, None, r"links: unknown host 'd'; did you mean 'D'\?"),
        (TABLE.assign(to="E"), None, "links: unknown host 'E'"),
        ({("S", 5): 1.0}, None, "links: unknown host 5"),
        ({("S", "S"): 1.0}, None, "links, 'S' -> 'S' must join two different hosts; remove it"),
        ({("S", "D"): -1.0}, None, "links, 'S' -> 'D' must be >= 0 and finite, got -1 bytes/s"),
        ({("S", "D"): math.nan}, None, "must be >= 0 and finite, got nan"),
        ({("S", "D"): math.inf}, None, "must be >= 0 and finite, got inf"),
        ({("S", "D"): None}, None, "must be >= 0 and finite, got nan"),
        ({("S", "D"): "5 parsecs"}, None, "links, 'S' -> 'D' must be a finite number of bytes per"),
        ({("S", "D"): {"a": 1}}, None, "links, 'S' -> 'D' must be a bandwidth, got {'a': 1}"),
        ({"S": {"D": {"a": 1}}}, None, "links, 'S' -> 'D' must be a bandwidth, got {'a': 1}"),
        ({("S", "D"): [1, 2]}, None, r"one number per period \(1\), got \[1, 2\]; periods_s lists"),
        ({("S", "D"): [1]}, [0, 9], r"one number per period \(2\), got \[1\]"),
        (
            {"S": 1.0},
            None,
            r"links must be named by \(from, to\), or by from and then by to, got 'S'",
        ),
        ([("S", "D", 1.0)], None, r"links must be named by .*, got list; write \{"),
        (1.0, None, "links must be named by .*, got float"),
        ({("S", "D"): 1.0, "S": {"D": 2.0}}, None, "links, 'S' -> 'D' given twice; keep one"),
        (TABLE.drop(columns="to"), None, "links must have a column to, got 'from'"),
        (TABLE.assign(competitors=1.0), None, "column competitors belongs in a problem"),
        (
            {("S", "D"): [1, 2]},
            [1, 2],
            r"periods_s must begin with 0 and rise, .* got \[1.0, 2.0\]",
        ),
        ({("S", "D"): [1, 2]}, [0, 0], "periods_s must begin with 0 and rise"),
        ({("S", "D"): []}, [], "periods_s must begin with 0 and rise"),
    ],
)
def test_what_is_no_new_link_is_refused_by_name(problem, links, periods_s, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.NewLinks.from_names(problem, links, periods_s=periods_s)


def test_of_many_hosts_a_few_are_named():
    names = [*(f"host-{i}" for i in range(99)), "D"]
    problem = dc.Problem.from_matrix(names, np.ones((100, 100)), [1] * 99 + [0], "D")
    with pytest.raises(dc.ProblemError, match=r"hosts are 'host-0', .*'host-9', …$"):
        dc.NewLinks.from_names(problem, {("elsewhere", "D"): 1.0})


def test_what_is_planned_again_is_what_a_file_with_the_same_links_says(problem):
    """20 bytes from S: 5/s directly and 5/s over T take 2 s. After 1 s 10 are left; at 1 byte/s
    directly and 4 over T they take 2 s.
    """
    plan = dc.coordinated(problem, chunk_s=0)
    tree = {
        "format": "datacollect-progress/1",
        "at_s": 1.0,
        "held": dc.Progress.from_schedule(problem, plan, 1.0).to_dict(problem)["held"],
        "links": [
            {"from": "S", "to": "D", "bandwidth_bytes_per_s": 1.0},
            {"from": "T", "to": "D", "bandwidth_bytes_per_s": 4.0},
        ],
    }
    links = {("S", "D"): 1.0, ("T", "D"): 4.0}
    of_file = dc.Progress.from_dict(tree, problem)
    ways = [
        dc.Progress.from_schedule(problem, plan, "1 s", links=links),
        dc.Progress.from_schedule(problem, plan, 1.0, links=dc.NewLinks.from_names(problem, links)),
        dc.Progress.from_schedule(problem, plan, 1.0).with_links(problem, links),
    ]
    assert dc.replan(problem, plan, of_file).makespan_s == pytest.approx(2.0)
    for progress in ways:
        assert progress.to_dict(problem) == of_file.to_dict(problem)
        assert dc.replan(problem, plan, progress) == dc.replan(problem, plan, of_file)


def test_links_that_are_not_named_again_stay(problem):
    first = dc.Progress(1.0).with_links(problem, {("S", "D"): 1.0, ("T", "D"): 2.0})
    later = first.with_links(problem, {("S", "D"): 3.0})
    assert later.to_dict(problem)["links"] == [
        {"from": "T", "to": "D", "bandwidth_bytes_per_s": 2.0},
        {"from": "S", "to": "D", "bandwidth_bytes_per_s": 3.0},
    ]
    assert len(first.links.link_from) == 2
    # Of different periods: in those of both.
    forecast = dc.NewLinks.from_names(problem, {("S", "D"): [4.0, 5.0]}, periods_s=[0, 10])
    both = later.with_links(problem, forecast).links
    assert both.periods_s.tolist() == [0.0, 10.0]
    assert both.bandwidth_bytes_per_s.tolist() == [[2.0, 4.0], [2.0, 5.0]]


def test_what_a_schedule_says_is_asked_of_its_own_problem_alone(problem):
    other = dc.Problem.from_matrix(["A", "B"], [[0, 5.0], [0, 0]], [20, 0], "B")
    with pytest.raises(dc.ProblemError, match="the schedule does not belong to the problem"):
        dc.Progress.from_schedule(problem, dc.direct(other), 1.0)
