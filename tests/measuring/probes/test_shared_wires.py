"""Two links together and alone: wires whose sharing is known."""

from __future__ import annotations

import numpy as np
import pytest

from datacollect.errors import ProblemError
from datacollect.measuring.probes.shared_wires import decide_shared


def decided(random, *, shared, others, noise):
    """Three tests with n = 4 on wires of 10, each connection with an equal share, and noise."""

    def rate(ours):
        return 10 * 4 / (ours + others) * np.exp(random.normal(0, noise))

    alone = [(rate(4), rate(4)) for _ in range(3)]
    together = [(rate(8 if shared else 4), rate(8 if shared else 4)) for _ in range(3)]
    return decide_shared(alone, together)


def f1(others, noise):
    random = np.random.default_rng(1000 + others)
    truth = np.arange(600) % 2 == 0
    found = np.array(
        [decided(random, shared=s, others=others, noise=noise).is_shared for s in truth]
    )
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


def test_idle_wires_are_told_apart():
    assert f1(others=0, noise=0.05) >= 0.95


def test_wires_beside_six_flows_are_told_apart():
    assert f1(others=6, noise=0.15) >= 0.8


def test_the_median_decides_and_how_often_it_held_is_told():
    """Of 10 alone: 7, 9 and 8 together are below 82.5 % twice."""
    found = decide_shared([(5, 5)] * 3, [(3, 4), (4, 5), (4, 4)])
    assert (found.is_shared, found.held, found.n_tests) == (True, 2, 3)
    assert found.bandwidth_bytes_per_s == 8.0
    assert not decide_shared([(5, 5)] * 3, [(3, 4), (4, 5), (5, 5)]).is_shared


@pytest.mark.parametrize(
    ("alone", "together", "message"),
    [
        ([], [], "at least one, got 0 and 0"),
        ([(1, 1)], [], "at least one, got 0 and 1"),
        ([(1, 0)], [(1, 1)], r"must get some bandwidth alone, got \[\(1, 0\)\]; test again"),
    ],
)
def test_tests_that_are_none_are_refused(alone, together, message):
    with pytest.raises(ProblemError, match=message):
        decide_shared(alone, together)
