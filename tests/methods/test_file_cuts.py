"""Plans of files: cut at boundaries within the tolerance, the fewest files split."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.methods.finishing.file_cuts import files_split, stretches
from datacollect.problem.manifest import Files

if TYPE_CHECKING:
    from pathlib import Path


def _files(sizes: list[int]) -> Files:
    return Files(tuple(f"f{i}" for i in range(len(sizes))), np.array(sizes), ("",) * len(sizes))


def _problem(sizes: list[int], **more: Any) -> dc.Problem:
    """A source with two ways of 1 MB/s each, directly and by K."""
    rates = [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]]
    backlog = [sum(sizes), 0, 0]
    problem = dc.Problem.from_matrix(["S", "K", "D"], rates, backlog, "D")
    return problem.replace(manifest={"S": _files(sizes)}, **more)


def _fewest(shares: list[int], ends: list[int], tolerance: float) -> int:
    """By trying everything: each end at either file's end beside it, or where it is exact."""
    exact = np.cumsum(shares).tolist()
    around = [
        {e, max(x for x in [0, *ends] if x <= e), min(x for x in ends if x >= e)} for e in exact
    ]
    best = len(shares)
    for chosen in itertools.product(*around):
        if chosen[-1] != exact[-1]:
            continue
        sizes = np.diff(chosen, prepend=0)
        if all(
            0 <= size <= np.floor(s * (1 + tolerance))
            for size, s in zip(sizes, shares, strict=True)
        ):
            best = min(best, sum(end not in (0, *ends) for end in chosen))
    return best


@pytest.mark.parametrize("seed", range(60))
def test_fewest_files_are_split_of_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 60, rng.integers(1, 12))
    n_routes = int(rng.integers(1, 5))
    total = int(sizes.sum())
    if total < n_routes:
        return
    inner = np.sort(rng.permutation(np.arange(1, total))[: n_routes - 1])
    shares = np.diff([0, *inner, total])
    tolerance = float(rng.choice([0.0, 0.01, 0.1, 0.5]))
    ends = np.cumsum(sizes)
    found = stretches(shares, ends, tolerance)
    assert found[-1] == total
    grown = np.diff(found, prepend=0)
    assert (grown >= 0).all()
    assert (grown <= np.floor(shares * (1 + tolerance))).all()
    n_split = int((~np.isin(found, [0, *ends])).sum())
    assert n_split == _fewest(shares.tolist(), ends.tolist(), tolerance)


def test_a_plan_takes_a_little_longer_and_splits_nothing() -> None:
    """Half of 2 MB by each way would split the first file, of 1.002 MB; 2 parts in 1000 longer."""
    problem = _problem([1_002_000, 998_000])
    whole = dc.coordinated(problem.replace(manifest=None))
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert files_split(problem, plan) == (0, 0)
    assert whole.makespan_s < plan.makespan_s <= whole.makespan_s * 1.0021


def test_a_large_file_is_split_once_and_costs_nothing() -> None:
    problem = _problem([1_500_000, 500_000])
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert files_split(problem, plan) == (1, 2)
    assert plan.makespan_s == dc.coordinated(problem.replace(manifest=None)).makespan_s


def test_no_tolerance_costs_nothing() -> None:
    problem = _problem([1_002_000, 998_000], file_tolerance=0.0)
    assert files_split(problem, dc.coordinated(problem)) == (1, 2)


def test_files_of_nothing_have_a_place() -> None:
    problem = _problem([0, 1_000_000, 0, 1_000_000, 0])
    plan = dc.coordinated(problem)
    plan.check(problem)
    assert files_split(problem, plan)[0] == 0


def test_a_million_files_are_shared_at_the_nearest_boundary() -> None:
    sizes = np.random.default_rng(1).integers(1, 10**7, 10**6)
    half = int(sizes.sum()) // 2
    found = stretches(np.array([half, sizes.sum() - half]), np.cumsum(sizes), 0.01)
    ends = np.cumsum(sizes)
    assert abs(found[0] - half) == np.abs(ends - half).min()


@pytest.mark.slow
@pytest.mark.parametrize("n_routes", [8, 64])
@pytest.mark.parametrize("kind", ["alike", "uniform", "lognormal", "one holds a third", "empty"])
def test_plans_of_a_million_files_are_near_what_no_plan_can_beat(kind: str, n_routes: int) -> None:
    """Against the plan without files, and the files that fit no route whole: of each instance."""
    rng = np.random.default_rng(n_routes)
    sizes = rng.integers(1, 10**7, 10**6)
    if kind == "alike":
        sizes[:] = 10**6
    elif kind == "lognormal":
        sizes = rng.lognormal(13, 2, 10**6).astype(np.int64) + 1
    elif kind == "one holds a third":
        sizes[rng.integers(10**6)] = int(sizes.sum()) // 2
    elif kind == "empty":
        sizes[rng.random(10**6) < 0.5] = 0
    relays = [f"K{i}" for i in range(1, n_routes)]
    rates = rng.lognormal(18, 0.7, n_routes)
    links = [dc.Link("S", "D", rates[0])]
    for relay, rate in zip(relays, rates[1:], strict=True):
        links += [dc.Link("S", relay, rate), dc.Link(relay, "D", rate)]
    hosts = [dc.Host("S", int(sizes.sum())), *map(dc.Host, relays), dc.Host("D")]
    whole = dc.Problem.from_hosts(hosts, links, "D")
    problem = whole.replace(manifest={"S": _files(sizes.tolist())})
    without, plan = dc.coordinated(whole), dc.coordinated(problem)
    plan.check(problem)
    gap = plan.makespan_s / without.makespan_s - 1
    assert -1e-12 <= gap <= problem.file_tolerance
    n_split, n_ranges = files_split(problem, plan)
    largest_share = without.transfers.query("hop == 0").groupby("route")["bytes"].sum().max()
    least = int((sizes > largest_share * 1.01).sum())
    assert least <= n_split <= least + (0 if sizes.max() < 10**8 else 2)
    assert n_ranges <= n_split + n_routes - 1


def test_a_range_of_the_backlog_is_parts_of_files() -> None:
    files = _files([3, 0, 5])
    assert files.within(2, 4) == [
        {"path": "f0", "offset_bytes": 2, "bytes": 1},
        {"path": "f2", "offset_bytes": 0, "bytes": 3},
    ]
    assert files.within(0, 8)[-1] == {"path": "f2", "offset_bytes": 0, "bytes": 5}
    assert files.within(3, 0) == []


# Problem files ------------------------------------------------------------------------------


def _written(folder: Path, rows: str, host: str = "") -> Path:
    (folder / "files.csv").write_text(f"host,path,bytes\n{rows}")
    path = folder / "collect.toml"
    path.write_text(
        f'destination = "D"\nmanifest = "files.csv"\n[hosts.S]\n{host}\n[hosts.D]\n'
        '[[links]]\nfrom = "S"\nto = "D"\nbandwidth_bytes_per_s = 1\n'
    )
    return path


def test_a_backlog_is_the_sum_of_its_files(tmp_path: Path) -> None:
    problem = dc.Problem.from_file(_written(tmp_path, "S,a,3\nS,run/b,5\n"))
    assert problem.backlog_bytes.tolist() == [8, 0]
    assert problem.manifest is not None
    assert problem.manifest["S"].paths == ("a", "run/b")
    with pytest.raises(ProblemError, match="files of 'S' have 8 bytes, its backlog_bytes is 9"):
        problem.replace(backlog_bytes=[9, 0])


@pytest.mark.parametrize(
    ("rows", "host", "message"),
    [
        ("S,a,3\n", "backlog_bytes = 4", "hosts.S.backlog_bytes must be the sum of its 1 file"),
        ("", "backlog_bytes = 4", "must be the sum of its 0 files in files.csv, 0 bytes, got 4"),
        ("T,a,3\n", "", "the problem has no host 'T'"),
        ("S,a,3\nS,a,3\n", "", "'a' of 'S' is given twice"),
        ("S,../a,3\n", "", "path must be relative"),
        ("S,a,3.5\n", "", "bytes must be a whole number"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, rows: str, host: str, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        dc.Problem.from_file(_written(tmp_path, rows, host))
