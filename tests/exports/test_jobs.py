"""Jobs: pieces of files, their times and rates, how long they take, all derived by hand."""

from __future__ import annotations

import numpy as np
import pytest

import datacollect as dc
from datacollect.exports.jobs import Cuts, jobs_of
from datacollect.exports.makespan import finish_times_s
from datacollect.problem.manifest import Files


def files_of(*sizes):
    names = tuple(f"f{i}" for i in range(len(sizes)))
    return Files(names, np.array(sizes, dtype=np.int64), ("",) * len(sizes))


def line(*hosts, rates, backlog, **more):
    """A chain of hosts; the first one has the data."""
    pairs = zip(hosts, hosts[1:], rates, strict=False)
    links = [dc.Link(tail, head, rate) for tail, head, rate in pairs]
    made = [dc.Host(name, backlog_bytes=backlog if name == hosts[0] else 0) for name in hosts]
    return dc.Problem.from_hosts(made, links, hosts[-1], **more)


def test_direct_goes_file_by_file_at_the_rate_of_the_link():
    """100 bytes at 10 a second: the files of 30 and 70 begin at 0 and 3 s, both at 10."""
    problem = line("S", "D", rates=[10.0], backlog=100)
    jobs = jobs_of(problem, dc.direct(problem), {"S": files_of(30, 70)}).jobs
    assert [(j.piece.path, j.start_s, j.rate_bytes_per_s) for j in jobs] == [
        ("f0", 0.0, pytest.approx(10.0)),
        ("f1", pytest.approx(3.0), pytest.approx(10.0)),
    ]
    assert all(job.piece.is_whole and job.forward_to is None for job in jobs)
    assert finish_times_s(problem, jobs).tolist() == pytest.approx([3.0, 10.0])


def test_relays_forward_whole_pieces_one_after_another():
    """Four pieces of 25 at 10 a second over two hops: 100/10 + 25/10 = 12.5 s, not 10.

    The last piece reaches the relay at 10 s and needs 2.5 s more.
    """
    problem = line("S", "K", "D", rates=[10.0, 10.0], backlog=100)
    plan = dc.coordinated(problem, chunk_s=0.01)
    jobs = jobs_of(problem, plan, {"S": files_of(100)}, cuts=Cuts(25)).jobs
    assert [j.piece.n_bytes for j in jobs] == [25] * 8
    assert [j.after for j in jobs] == [None] * 4 + [0, 1, 2, 3]
    assert {(j.request_from, j.host, j.forward_to) for j in jobs} == {
        ("S", "K", "D"),
        ("K", "D", None),
    }
    assert finish_times_s(problem, jobs).max() == pytest.approx(12.5, rel=1e-3)


def test_what_runs_late_shares_what_is_there():
    """A slower link than planned for: 10 bytes a second instead of 20 double the time."""
    planned_on = line("S", "D", rates=[20.0], backlog=100)
    plan, slower = dc.direct(planned_on), line("S", "D", rates=[10.0], backlog=100)
    jobs = jobs_of(slower, plan, {"S": files_of(50, 50)}).jobs
    assert finish_times_s(slower, jobs).tolist() == pytest.approx([5.0, 10.0])


def test_forecasts_count():
    """10 a second for 4 s, then 20: a script limited to the mean of 100 / 7 s runs into it."""
    problem = line("S", "D", rates=[[10.0, 20.0]], backlog=100, periods_s=[0.0, 4.0])
    jobs = jobs_of(problem, dc.direct(problem), {"S": files_of(40, 60)}).jobs
    assert [j.rate_bytes_per_s for j in jobs] == pytest.approx([10.0, 20.0])
    assert finish_times_s(problem, jobs).tolist() == pytest.approx([4.0, 7.0])


def test_a_file_that_may_not_be_cut_goes_by_the_route_that_carries_most_of_it():
    """Two routes, 10 straight and 20 over K: 30 bytes cut at 10 or 20 go whole over K."""
    hosts = [dc.Host("S", backlog_bytes=30_000), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("S", "D", 10.0), dc.Link("S", "K", 20.0), dc.Link("K", "D", 20.0)]
    problem = dc.Problem.from_hosts(hosts, links, "D")
    plan = dc.coordinated(problem)
    whole = jobs_of(problem, plan, {"S": files_of(30_000)}, may_cut=False)
    assert whole.n_cut == 1
    assert [(j.request_from, j.host, j.piece.n_bytes) for j in whole.jobs] == [
        ("S", "K", 30_000),
        ("K", "D", 30_000),
    ]
    # 1500 s to the relay, 1500 s on.
    assert finish_times_s(problem, whole.jobs).max() == pytest.approx(3000, rel=1e-2)
    cut = jobs_of(problem, plan, {"S": files_of(30_000)})
    assert cut.n_cut == 0
    assert sum(j.piece.n_bytes for j in cut.jobs if j.host == "D") == 30_000


def test_every_byte_of_every_file_is_fetched_once_at_the_destination():
    """Whatever the plan: many files, four sources, relays, prices, slots."""
    rng = np.random.default_rng(5)
    for case in range(12):
        names = ["S1", "S2", "S3", "K", "D"]
        bandwidth = rng.integers(1, 9, (5, 5)).astype(float) * 1000
        sizes = [rng.integers(0, 4000, 6).tolist() for _ in range(3)]
        backlog = [sum(each) for each in sizes] + [0, 0]
        problem = dc.Problem.from_matrix(names, bandwidth, backlog, "D")
        manifest = {name: files_of(*each) for name, each in zip(names, sizes, strict=False)}
        plan = dc.coordinated(problem, slot_s=0.25 if case % 2 else None)
        jobs = jobs_of(problem, plan, manifest, cuts=Cuts(700)).jobs
        seen = {}
        for job in jobs:
            if job.host == "D":
                piece = job.piece
                ends = (piece.offset_bytes, piece.offset_bytes + piece.n_bytes)
                seen.setdefault((piece.source, piece.path), []).append(ends)
            if job.after is not None:
                assert jobs[job.after].piece == job.piece
                assert jobs[job.after].host == job.request_from
        for source, files in manifest.items():
            for path, size in zip(files.paths, files.n_bytes.tolist(), strict=True):
                ranges = sorted(seen.get((source, path), []))
                assert [0, *[b for _, b in ranges]] == [*[a for a, _ in ranges], size]
        finish_s = finish_times_s(problem, jobs)
        assert np.isfinite(finish_s).all()
        # No script ends before the plan, but for the rounding of rates over pieces.
        assert finish_s.max() >= 0.999 * plan.lower_bound_s


def test_parallel_connections_share_a_routes_rate():
    problem = line("S", "D", rates=[12.0], backlog=120)
    plan = dc.direct(problem)
    columns = plan.columns
    from dataclasses import replace

    plan = plan.replace(columns=replace(columns, streams=columns.streams * 3))
    jobs = jobs_of(problem, plan, {"S": files_of(120)}).jobs
    assert [j.piece.n_bytes for j in jobs] == [40, 40, 40]
    assert {j.lane for j in jobs} == {0, 1, 2}
    assert [j.rate_bytes_per_s for j in jobs] == pytest.approx([4.0] * 3)
