"""The published results on cloud regions: computed again, checked, and as the page shows them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
GBIT = 1e9
GB = 1e9


@pytest.fixture(scope="module")
def experiment(scripts):
    return scripts("cloud_regions")


@pytest.fixture(scope="module")
def into_destination(cloud_grids):
    """Measured bit/s from each region to the destination, read without the code under test."""
    with (cloud_grids / "grid_2022-11.csv").open(newline="") as file:
        return {
            row["src"]: float(row["received_bps"])
            for row in csv.DictReader(file)
            if row["dst"] == "gcp:us-central1-a" != row["src"]
        }


CASES = [
    (workload, limits)
    for workload in ("16 AWS regions, 100 GB each", "70 regions, 10 GB each")
    for limits in ("none", "per machine", "per machine, links at a quarter")
]


@pytest.mark.parametrize(("workload", "limits"), CASES)
def test_the_published_results_come_out_again(workload, limits, experiment, published, cloud_grids):
    """Within 0.1 %, and every schedule is valid."""
    grid = experiment.read_grid(cloud_grids / "grid_2022-11.csv")
    problem = experiment.problem_of(grid, workload, limits)
    plans = experiment.plans_of(problem)
    rows = experiment.rows_of(workload, limits, plans)
    for plan in plans:
        plan.check(problem)
    assert [row.method for row in rows] == ["direct", "best-path", "coordinated"]
    for row, known in zip(rows, published[workload, limits], strict=True):
        assert row.method == known.method
        assert row.makespan_s == pytest.approx(known.makespan_s, rel=1e-3)
        assert row.lower_bound_s == pytest.approx(known.lower_bound_s, rel=1e-3)
        assert row.over_lower_bound == pytest.approx(known.over_lower_bound, rel=1e-3)
        assert row.bottleneck_kind == known.bottleneck_kind
        assert row.bottleneck == known.bottleneck


def test_the_problems_are_those_of_the_page(experiment, cloud_grids):
    grid = experiment.read_grid(cloud_grids / "grid_2022-11.csv")
    aws, everybody = (
        experiment.problem_of(grid, workload, "per machine") for workload in experiment.WORKLOADS
    )
    for problem in (aws, everybody):
        assert (problem.n_hosts, problem.n_links) == (71, 71 * 70)
        assert problem.destination == "gcp:us-central1-a"
    assert len(aws.sources) == 16
    assert (aws.sources[0], aws.sources[-1]) == ("aws:af-south-1", "aws:eu-west-1")
    assert aws.total_bytes == 1600 * GB
    assert len(everybody.sources) == 70
    assert everybody.total_bytes == 700 * GB
    limits = {
        name: (up * 8 / GBIT, down * 8 / GBIT)
        for name, up, down in zip(
            aws.names, aws.uplink_bytes_per_s[0], aws.downlink_bytes_per_s[0], strict=True
        )
    }
    assert limits["aws:us-east-1"] == (5.0, 10.0)
    assert limits["gcp:us-central1-a"] == (7.0, 16.0)
    assert limits["azure:eastus"] == (16.0, 16.0)


def test_without_limits_the_bound_is_all_data_over_all_links(published, into_destination):
    """1.6 TB, or 700 GB, over the sum of what was measured into the destination."""
    total_bit_per_s = sum(into_destination.values())
    for workload, gb in (("16 AWS regions, 100 GB each", 1600), ("70 regions, 10 GB each", 700)):
        for row in published[workload, "none"]:
            assert row.lower_bound_s == pytest.approx(gb * GB * 8 / total_bit_per_s, rel=1e-5)


def test_without_limits_direct_takes_as_long_as_the_slowest_link(published, into_destination):
    aws = sorted(name for name in into_destination if name.startswith("aws:"))[:16]
    for workload, sources, gb in (
        ("16 AWS regions, 100 GB each", aws, 100),
        ("70 regions, 10 GB each", list(into_destination), 10),
    ):
        slowest = min(into_destination[name] for name in sources)
        direct = published[workload, "none"][0]
        assert direct.method == "direct"
        assert direct.makespan_s == pytest.approx(gb * GB * 8 / slowest, rel=1e-5)


def test_with_limits_the_destinations_machine_binds(published):
    """1.6 TB into 16 Gbit/s: 800 s. 700 GB: 350 s. Whatever links carry."""
    for (workload, limits), rows in published.items():
        if limits == "none":
            continue
        expected_s = 800.0 if workload.startswith("16") else 350.0
        for row in rows:
            assert row.lower_bound_s == pytest.approx(expected_s)
            assert row.bottleneck_kind == "destination"
            assert "downlink" in row.bottleneck


def test_the_page_shows_the_published_results(experiment, rows, scripts):
    words = " ".join((REPOSITORY / "docs/clouds.md").read_text(encoding="utf-8").split())
    for workload, name in experiment.TABLES.items():
        assert experiment.markdown_table(rows, workload) == scripts("shown_tables").shown(name)
    for row in rows:
        assert row.bottleneck in words


def test_the_page_says_what_was_measured(experiment, cloud_grids):
    page = " ".join((REPOSITORY / "docs/clouds.md").read_text(encoding="utf-8").split())
    for sentence in experiment.facts(experiment.read_grid(cloud_grids / "grid_2022-11.csv")):
        assert sentence in page


def test_every_method_is_at_or_above_the_bound_and_coordinated_a_chunk_from_it(published):
    assert sorted(published) == sorted(CASES)
    for rows in published.values():
        assert all(row.over_lower_bound >= 1 - 1e-9 for row in rows)
        coordinated = rows[-1]
        assert coordinated.method == "coordinated"
        assert coordinated.over_lower_bound <= 1.001 + 1e-6
