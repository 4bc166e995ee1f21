"""How many connections others can bear: the rule, and that it is kept where wires are shared."""

import numpy as np
import pytest
from instances.ns3_networks import RATE, tree
from judges.pull_judge import Witness

from datacollect.control.adaptive import AdaptiveController
from datacollect.control.harm import Caution, most_bearable, others_connections
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
    problem = Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    with pytest.raises(ProblemError, match="harm must be >= 0 and < 1"):
        Caution(harm, problem, 4)


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
