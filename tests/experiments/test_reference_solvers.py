"""Public solvers that planning is compared with: their answers are those of arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc

END_BY = ("end_by_glop", "end_by_highs")


@pytest.mark.parametrize("name", END_BY)
@pytest.mark.parametrize(
    ("changes", "end_s"),
    [
        ({}, 4.0),
        # S sends 2 MB/s, or D receives 1.5 MB/s.
        ({"uplink_bytes_per_s": np.array([2e6, np.inf, np.inf])}, 6.0),
        ({"downlink_bytes_per_s": np.array([np.inf, np.inf, 1.5e6])}, 8.0),
        # K passes on 1 MB/s through the shared wire, 1 MB/s go to D beside it.
        ({"shared": [dc.SharedBottleneck("w", 1e6, [("K", "D")])]}, 6.0),
        # Both ways into D share 1 MB/s.
        ({"shared": [dc.SharedBottleneck("w", 1e6, [("S", "D"), ("K", "D")])]}, 12.0),
    ],
)
def test_the_linear_program_ends_when_arithmetic_says(
    references, relay_problem, name, changes, end_s
):
    program = references.ConcurrentFlow.build(relay_problem.replace(**changes))
    assert getattr(program, name)() == pytest.approx(end_s, rel=1e-9)


@pytest.mark.parametrize("name", END_BY)
def test_what_enters_the_destination_cannot_pass_through_it(references, name):
    """S reaches D only by K, at 1 MB/s; a link from D back to K carries nothing of use."""
    rates = [[0, 3e6, 0], [0, 0, 1e6], [0, 5e6, 0]]
    problem = dc.Problem.from_matrix(["S", "K", "D"], rates, [12_000_000, 0, 0], "D")
    program = references.ConcurrentFlow.build(problem)
    assert getattr(program, name)() == pytest.approx(12.0, rel=1e-9)


@pytest.mark.parametrize("name", END_BY)
def test_a_stopped_program_has_no_answer(references, scripts, monkeypatch, name):
    program = references.ConcurrentFlow.build(scripts("synthetic_problems").shared_at_random(100))
    monkeypatch.setattr(references, "TIME_LIMIT_S", 1e-9)
    assert getattr(program, name)() is None
