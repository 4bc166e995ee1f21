"""Public objects: equal by content, shown in notebooks."""

from __future__ import annotations

import time

import numpy as np

import datacollect as dc


def problem():
    matrix = [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]]
    return dc.Problem.from_matrix(["<S>", "K", "D"], matrix, [4_000_000, 0, 0], "D")


def test_what_says_the_same_is_equal_and_hashes_alike():
    for make in (problem, lambda: dc.coordinated(problem()), lambda: dc.compare(problem())):
        one, other = make(), make()
        assert one == other
        assert hash(one) == hash(other)
        assert {one: 1}[other] == 1
        assert one != "something else"
    assert dc.direct(problem()) != dc.coordinated(problem())
    assert dc.Schedule.from_dict(dc.direct(problem()).to_dict()) == dc.direct(problem())
    assert dc.Problem.from_networkx(problem().to_networkx()) == problem()
    other = problem().replace(backlog_bytes=[1, 0, 0])
    assert other != problem()
    assert dc.compare(other) != dc.compare(problem())


def test_a_byte_moved_elsewhere_is_another_schedule():
    plan = dc.coordinated(problem())
    tree = plan.to_dict()
    tree["transfers"][0]["bytes"] -= 1
    assert dc.Schedule.from_dict(tree) != plan


def test_notebooks_show_what_others_named_as_text():
    for shown in (problem(), dc.coordinated(problem()), dc.compare(problem())):
        html = shown._repr_html_()
        assert "<table>" in html
        assert "<S>" not in html
    assert "&lt;S&gt;" in problem()._repr_html_()
    assert "coordinated" in dc.compare(problem())._repr_html_()


def test_a_large_problem_becomes_a_graph_in_seconds():
    """300 hosts, all linked: 89 700 links; a million take eleven times as long."""
    n = 300
    matrix = np.ones((n, n)) - np.eye(n)
    backlog = np.ones(n, dtype=np.int64)
    backlog[0] = 0
    large = dc.Problem.from_matrix([f"h{i}" for i in range(n)], matrix, backlog, "h0")
    began = time.process_time()
    graph = large.to_networkx()
    assert time.process_time() - began < 2.0
    assert graph.number_of_edges() == n * (n - 1)
