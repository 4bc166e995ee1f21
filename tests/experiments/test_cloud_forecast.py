"""The published results on a day of changing bandwidth: computed again, as the page shows them."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import datacollect as dc

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def experiment(scripts):
    return scripts("cloud_forecast")


@pytest.fixture(scope="module")
def grids(experiment, cloud_grids):
    return experiment.common_grids(cloud_grids.parent)


def test_repeated_pairs_count_with_their_mean_and_self_pairs_not_at_all(grids, cloud_grids):
    january, november = grids
    measured = defaultdict(list)
    with (cloud_grids / "grid_2022-01.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            measured[row["src"], row["dst"]].append(float(row["received_bps"]) / 8)
    names = list(january.index)
    assert names == list(november.index)
    assert any(len(values) > 1 for values in measured.values())
    for a in names:
        for b in names:
            values = measured.get((a, b), [0.0]) if a != b else [0.0]
            assert january.loc[a, b] == pytest.approx(np.mean(values))


def test_the_forecast_moves_linearly_in_24_hours(experiment, grids):
    january, november = grids
    workload, limits = experiment.DRAWN
    problem = experiment.forecast_problem(january, november, workload, limits)
    np.testing.assert_allclose(problem.periods_s, 3600 * np.arange(24))
    a, b = problem.link_from, problem.link_to
    first, last = january.to_numpy()[a, b] / 4, november.to_numpy()[a, b] / 4
    for k in range(24):
        expected = first + (last - first) * k / 23
        np.testing.assert_allclose(problem.bandwidth_bytes_per_s[k], expected, rtol=1e-12)
    relays = np.arange(problem.n_hosts) != problem.destination_index
    assert (problem.storage_bytes[relays] == 50e9).all()
    assert problem.total_bytes == 160 * 10**12


@pytest.mark.parametrize("limits", ["none", "per machine", "per machine, links at a quarter"])
@pytest.mark.parametrize(
    "workload",
    [
        "16 AWS regions, 100 GB each",
        "all other regions, 10 GB each",
        "16 AWS regions, 10 TB each",
        "all other regions, 1 TB each",
    ],
)
def test_the_published_results_come_out_again(workload, limits, experiment, grids, published):
    """Within 0.1 %; `rows_of` checks every schedule, and storage stays within a chunk of 50 GB."""
    problem = experiment.forecast_problem(*grids, workload, limits)
    rows, plans = experiment.rows_of(workload, limits, problem)
    for row, known in zip(rows, published[workload, limits], strict=True):
        assert row.method == known.method
        assert row.makespan_s == pytest.approx(known.makespan_s, rel=1e-3)
        assert row.lower_bound_s == pytest.approx(known.lower_bound_s, rel=1e-3)
        assert row.november_s == pytest.approx(known.november_s, rel=1e-3)
        assert row.bottleneck == known.bottleneck
    assert max(plans["coordinated"].peak_storage_bytes.values(), default=0) <= 50e9


def test_the_destinations_downlink_bounds_what_machines_collect(published):
    """160 TB, or 55 TB, into 16 Gbit/s, whatever the forecast."""
    for (workload, limits), rows in published.items():
        if limits == "none":
            continue
        total = {"16 AWS regions, 10 TB each": 160e12, "all other regions, 1 TB each": 55e12}
        total |= {"16 AWS regions, 100 GB each": 1.6e12, "all other regions, 10 GB each": 550e9}
        for row in rows:
            assert row.lower_bound_s == pytest.approx(total[workload] / 2e9, rel=1e-5)


def test_a_shorter_chunk_comes_closer_to_the_bound(experiment, grids):
    """As the page says of the plan of its figure: 1.023 and 1.001 times, this by default."""
    problem = experiment.forecast_problem(*grids, *experiment.DRAWN)
    for chunk_s, ratio in ((80.0, 1.023), (None, 1.001)):
        plan = dc.coordinated(problem, chunk_s=chunk_s)
        assert plan.makespan_s / plan.lower_bound_s == pytest.approx(ratio, abs=5e-4)


def test_the_page_shows_the_published_results(experiment, rows, scripts):
    assert experiment.markdown_table(rows) == scripts("shown_tables").shown("cloud_forecast")


def test_the_page_says_what_the_forecast_is(experiment, grids):
    page = " ".join((REPOSITORY / "docs/clouds.md").read_text(encoding="utf-8").split())
    for sentence in experiment.facts(*grids):
        assert sentence in page
