"""Problems from Python objects and from matrices: what arrives where, and what does not fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from instances.three_hosts import MATRIX, ends_and_rates, from_hosts, from_matrix, small

import datacollect as dc
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


@pytest.mark.parametrize("build", [small, from_hosts, from_matrix])
def test_every_way_to_build_holds_the_same(build):
    problem = build()
    assert problem.names == ("S", "K", "D")
    assert (problem.n_hosts, problem.n_links, problem.n_periods) == (3, 3, 1)
    assert problem.backlog_bytes.tolist() == [10, 0, 0]
    assert problem.total_bytes == 10
    assert problem.sources == ("S",)
    assert problem.destination_index == 2
    assert problem.host_index == {"S": 0, "K": 1, "D": 2}
    assert ends_and_rates(problem) == [("S", "K", [4]), ("S", "D", [1]), ("K", "D", [2])]
    assert problem.price_per_gb is None
    assert problem.storage_bytes.tolist() == [math.inf] * 3
    assert problem.sha256 == small().sha256
    assert repr(problem) == "<Problem: 3 hosts, 3 links, 1 source, 10 bytes to 'D'>"


def test_host_attributes_arrive_in_their_columns():
    host = Host("S", 10, 1.5, 20, 3.0, 4.0)
    problem = from_hosts([host, Host("K"), Host("D")])
    columns = ("backlog_bytes", "release_s", "storage_bytes")
    columns += ("uplink_bytes_per_s", "downlink_bytes_per_s")
    assert [getattr(problem, name)[..., 0].item() for name in columns] == [10, 1.5, 20, 3.0, 4.0]
    assert [getattr(problem, name)[..., 1].item() for name in columns] == [0, 0.0, *[math.inf] * 3]


def test_one_number_stands_for_all_hosts_of_a_matrix():
    problem = from_matrix(release_s=2.0, storage_bytes=[1, 2, 3], uplink_bytes_per_s=5)
    assert problem.release_s.tolist() == [2.0, 2.0, 2.0]
    assert problem.storage_bytes.tolist() == [1, 2, 3]
    assert problem.uplink_bytes_per_s.tolist() == [[5.0, 5.0, 5.0]]
    assert problem.downlink_bytes_per_s.tolist() == [[math.inf] * 3]


def test_links_come_in_any_order_with_their_rates_and_prices():
    given = [Link("K", "D", 2.0, 0.5), Link("S", "D", 1.0), Link("S", "K", 4.0, 0.25)]
    problem = Problem.from_hosts([Host("S", 10), Host("K"), Host("D")], given, "D")
    assert ends_and_rates(problem) == [("S", "K", [4]), ("S", "D", [1]), ("K", "D", [2])]
    assert problem.price_per_gb.tolist() == [0.25, 0.0, 0.5]


def test_a_matrix_ignores_its_diagonal_and_zeros_are_no_links():
    matrix = np.array(MATRIX)
    matrix[1, 1], matrix[2, 2] = math.nan, 7.0
    assert from_matrix(matrix).sha256 == from_matrix().sha256
    assert from_matrix([[5.0]], [3], ["D"]).n_links == 0


def test_a_link_given_with_zero_stays_a_link():
    assert from_hosts(text="S -> D 0, S -> K 1").n_links == 2


def test_forecasts_have_a_row_per_period():
    """A pair that is 0 in one period only is a link; a constant one holds in all periods."""
    by_hosts = from_hosts(text="S -> K 4 0, S -> D 1, K -> D 2 3", periods_s=[0.0, 60.0])
    second = [[0, 0, 1.0], [0, 0, 3.0], [0, 0, 0]]
    by_matrix = from_matrix([MATRIX, second], periods_s=[0, 60])
    for problem in (by_hosts, by_matrix):
        assert problem.n_periods == 2
        assert problem.bandwidth_bytes_per_s.tolist() == [[4, 1, 2], [0, 1, 3]]
    assert by_hosts.sha256 == by_matrix.sha256


def test_a_full_mesh_of_many_hosts_lists_all_pairs():
    n = 40
    rates = np.arange(n * n, dtype=float).reshape(n, n) + 1
    problem = Problem.from_matrix([f"h{i}" for i in range(n)], rates, [1] * n, "h7")
    assert problem.n_links == n * (n - 1)
    assert problem.link_from.dtype == problem.link_to.dtype == np.int32
    i = problem.link_indices(3, 5).item()
    assert (problem.link_from[i], problem.link_to[i]) == (3, 5)
    assert problem.bandwidth_bytes_per_s[0, i] == rates[3, 5]


def test_what_a_matrix_was_built_from_may_change_later():
    matrix, backlog, storage = np.array(MATRIX), np.array([10, 0, 0]), np.array([1.0, 2.0, 3.0])
    problem = from_matrix(matrix, backlog, storage_bytes=storage)
    matrix[:], backlog[:], storage[:] = 9.0, 9, 9.0
    assert ends_and_rates(problem) == [("S", "K", [4]), ("S", "D", [1]), ("K", "D", [2])]
    assert problem.backlog_bytes.tolist() == [10, 0, 0]
    assert problem.storage_bytes.tolist() == [1, 2, 3]


def test_links_that_do_not_fit_together_are_refused():
    with pytest.raises(dc.ProblemError, match="a link's from: unknown host 'SS'"):
        from_hosts(text="SS -> D 1")
    with pytest.raises(
        dc.ProblemError, match=r"a link's to: unknown host 'lion'; did you mean 'lyon"
    ):
        from_hosts([Host("S"), Host("lyon"), Host("D")], text="S -> lion 1")
    with pytest.raises(dc.ProblemError, match=r"'S' -> 'D': .* one number per period \(1\), got 2"):
        from_hosts(text="S -> D 1 2")
    with pytest.raises(dc.ProblemError, match=r"shape \(3, 3\) for 3 names, .*, got \(1, 2, 2\)"):
        from_matrix([[0, 1], [1, 0]])
    with pytest.raises(dc.ProblemError, match=r"\(2, 3, 3\) with 2 period\(s\), got \(1, 3, 3\)"):
        from_matrix(periods_s=[0, 1])


def test_text_for_rates_is_refused():
    hosts = [dc.Host("S", 1), dc.Host("D")]
    with pytest.raises(dc.ProblemError, match=r"bandwidth_bytes_per_s must be a finite .*'fast'"):
        dc.Problem.from_hosts(hosts, [dc.Link("S", "D", "fast")], "D")
    with pytest.raises(dc.ProblemError, match=r"'wire': bandwidth_bytes_per_s must be .*'slow'"):
        dc.SharedBottleneck("wire", "slow", [("S", "D")])
    wire = dc.SharedBottleneck("wire", None, [("S", "D")])
    with pytest.raises(dc.ProblemError, match=r"bandwidth_bytes_per_s must be a number.*None"):
        dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 1.0)], "D", shared=[wire])
