"""Problems with estimates gone wrong: which links, by which factors."""

from __future__ import annotations

import numpy as np
import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.perturbed import perturb, perturb_random
from datacollect.problem.problem import Problem


@pytest.fixture
def problem() -> Problem:
    """Links in order K->D 4, S->D 1, S->K 8; hosts D, K, S; two periods, the second halved."""
    first = np.array([[0, 0, 0], [4, 0, 0], [1, 8, 0]], dtype=float)
    matrix = np.stack([first, first / 2])
    return Problem.from_matrix(["D", "K", "S"], matrix, [0, 0, 10], "D", periods_s=[0, 60])


def test_perturb_multiplies_all_links_and_periods_by_default(problem):
    assert perturb(problem, 0.5).bandwidth_bytes_per_s.tolist() == [[2, 0.5, 4], [1, 0.25, 2]]
    assert problem.bandwidth_bytes_per_s[0].tolist() == [4, 1, 8]


def test_perturb_chooses_links_by_pairs_indices_or_mask(problem):
    """Each way names S->K, then K->D; factors follow the order given."""
    expected = [[12, 1, 16], [6, 0.5, 8]]
    by_pairs = perturb(problem, [2, 3], [("S", "K"), ("K", "D")])
    assert by_pairs.bandwidth_bytes_per_s.tolist() == expected
    by_index = perturb(problem, [2, 3], np.array([2, 0]))
    assert by_index.bandwidth_bytes_per_s.tolist() == expected
    by_mask = perturb(problem, [3, 2], np.array([True, False, True]))
    assert by_mask.bandwidth_bytes_per_s.tolist() == expected


def test_perturb_by_nothing_keeps_the_problem(problem):
    assert perturb(problem, 1.0).sha256 == problem.sha256
    assert perturb(problem, 7.0, []).sha256 == problem.sha256


@pytest.mark.parametrize(
    ("factor", "links", "message"),
    [
        (2.0, [("S", "Q")], r"links: unknown host 'Q'"),
        (2.0, [("D", "S")], r"the problem has no link 'D' -> 'S'"),
        (2.0, ["SD"], r"links: must hold pairs \(from, to\) of names, got 'SD'"),
        (2.0, [("S", "D"), ("S", "D")], r"given twice"),
        (2.0, np.array([3]), r"an index must lie in 0 \.\.\. 2, got 3"),
        (2.0, np.array([True]), r"a mask must have shape \(3,\), got \(1,\)"),
        ([1.0, 2.0], None, r"one per chosen link \(3\), got shape \(2,\)"),
        (-1.0, None, r"factor must be >= 0 and finite, got -1"),
        (float("nan"), None, r"factor must be >= 0 and finite, got nan"),
    ],
)
def test_perturb_refuses_unknown_links_and_bad_factors(problem, factor, links, message):
    with pytest.raises(ProblemError, match=message):
        perturb(problem, factor, links)


def test_random_noise_is_reproducible_and_has_median_one_and_the_given_spread():
    """Of 9900 factors the logarithms' median is 0 and their standard deviation sigma.

    The tolerances are over five standard errors: sigma·1.25/√9900 and sigma/√(2·9900).
    """
    names = [f"h{i}" for i in range(100)]
    problem = Problem.from_matrix(names, np.full((100, 100), 8.0), np.zeros(100, int), "h0")
    noisy = perturb_random(problem, 0.5, seed=3)
    logs = np.log(noisy.bandwidth_bytes_per_s[0] / 8)
    assert np.median(logs) == pytest.approx(0, abs=0.035)
    assert logs.std() == pytest.approx(0.5, abs=0.02)
    assert perturb_random(problem, 0.5, seed=3).sha256 == noisy.sha256
    assert perturb_random(problem, 0.5, seed=4).sha256 != noisy.sha256


def test_random_noise_keeps_to_the_chosen_links(problem):
    noisy = perturb_random(problem, 1.0, seed=0, links=[("S", "K")])
    ratio = noisy.bandwidth_bytes_per_s / problem.bandwidth_bytes_per_s
    assert ratio[:, :2].tolist() == [[1, 1], [1, 1]]
    assert ratio[0, 2] != 1
    assert ratio[0, 2] == pytest.approx(ratio[1, 2])
    with pytest.raises(ProblemError, match=r"sigma must be >= 0 and finite, got -1"):
        perturb_random(problem, -1, seed=0)
