"""Limit on the impact on others: the rule, and that it is kept where wires are shared."""

from collections import Counter

import numpy as np
import pytest
from instances.ns3_networks import RATE, tree
from judges.pull_judge import Witness

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.adaptive.impact_limit import (
    ImpactLimit,
    busy_on_average,
    most_bearable,
    others_connections,
)
from datacollect.control.connection_counts import LinkRates
from datacollect.errors import ProblemError
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_fluid
from datacollect.simulation.network import BackgroundFlow


@pytest.mark.parametrize("n", [2, 5, 20])
@pytest.mark.parametrize("m", [1, 10, 45])
def test_others_are_counted_by_what_is_left_of_a_rate(n, m):
    """C/(1 + m) alone, C/(n + m) for each of n."""
    assert others_connections(n, (1 + m) / (n + m)) == pytest.approx(m, rel=1e-6)


def test_without_others_there_is_nobody_to_count():
    assert others_connections(4, 0.25) == 0.0
    assert others_connections(4, 0.2) == 0.0
    assert others_connections(4, 1.0) == others_connections(4, 1.3) == np.inf


@pytest.mark.parametrize(("first", "others"), [(1, 5), (7, 45), (3, 0)])
@pytest.mark.parametrize("harm", [0.05, 0.1, 0.5])
def test_the_most_that_is_bearable_costs_just_so_much(first, others, harm):
    """They have m/(n + m) of the wire: (1 - h) of m/(n₀ + m)."""
    n = most_bearable(first, others, harm)
    assert (first + others) / (n + others) == pytest.approx(1 - harm)


@pytest.mark.parametrize("harm", [-0.1, 1.0, float("nan")])
def test_no_part_of_a_rate_is_an_error(harm):
    with pytest.raises(ProblemError, match="harm must be >= 0 and < 1"):
        ImpactLimit(harm, 1.0, 1, 4)


def test_the_bound_follows_what_connections_get_step_by_step():
    """Direct would have 7: at first so many, then one more. Where 13 get 20/29 of what one got
    alone, others have 77/3: of a tenth 0.085 is used, 7 + (7 + 77/3) 0.085/0.915 = 10.03."""
    limit = ImpactLimit(0.1, 7.0, 1, 38)
    assert limit.most == 7
    rates = LinkRates({("A", "D"): 29.0, ("B", "D"): 29.0})
    assert limit.too_many(Counter({("A", "D"): 4}), rates) == []  # nothing is known yet
    for link in (("A", "D"), ("B", "D")):
        rates.moved(link, 290)
        rates.busy(link, 10.0)
    limit.too_many(Counter({("A", "D"): 4, ("B", "D"): 3}), rates)
    assert limit.most == 8  # as fast as alone: a step up
    slower = LinkRates({("A", "D"): 29.0, ("B", "D"): 29.0})
    for link in (("A", "D"), ("B", "D")):
        slower.moved(link, 200)
        slower.busy(link, 10.0)
    many = Counter({("A", "D"): 8, ("B", "D"): 5})
    given = [limit.too_many(many, slower) for _ in range(5)][-1]
    assert others_connections(13, 20 / 29) == pytest.approx(77 / 3, rel=0.01)
    assert limit.most == int(7 + (7 + 25.67) * 0.085 / 0.915) == 10
    assert set(given) == {("A", "D"), ("B", "D")}


def test_direct_transfers_have_fewer_connections_once_some_are_done():
    """10 s, 5 s and 1 s of 10 s; where nothing is known, one."""
    assert busy_on_average([100, 50, 10], [10.0] * 3) == pytest.approx(1.6)
    assert busy_on_average([], []) == 1.0


@pytest.mark.parametrize("harm", [None, 0.3, 0.1])
def test_others_keep_what_they_are_promised(harm):
    """One wire, 20 flows of others, a source: direct leaves 20/21; a tenth less is 3.3 connections
    of ours, 30 % less 10; up to 12 there might be."""
    others = tuple(BackgroundFlow("tcp", 0, 3) for _ in range(20))
    network = tree(["SX", "XY", "YD"], hosts=["S", "D"], background=others)
    n_bytes = 3_000_000
    problem = Problem.from_matrix(["S", "D"], [[0, RATE / 21], [0, 0]], [n_bytes, 0], "D")
    witness = Witness(AdaptiveController(problem, 12, harm=harm), problem, 12)
    run = simulate_fluid(network, {"S": n_bytes}, "D", witness)
    assert run.complete
    flows = run.background.pivot(index="flow", columns="phase", values="goodput_bytes_per_s").sum()
    lost = 1 - flows["during"] / (RATE * 20 / 21)
    if harm is None:
        assert lost == pytest.approx(1 - 21 / 32, abs=0.03)
    else:
        assert 0.3 * harm < lost <= harm
