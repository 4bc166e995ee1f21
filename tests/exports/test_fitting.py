"""Scripts keep what the plan promises: its deadline, and the storage of relays; derived by hand.

The line: S -> K -> D, 10 MB a second each, for 10 000 s; then nothing until 100 000 s. 98 GB take
9800 s, and a chunk of 10 s more over the relay. Each piece's request takes half a second.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.exports.export import export
from datacollect.exports.fitting import RefusedScripts, stored_bytes
from datacollect.exports.makespan import finish_times_s
from datacollect.exports.missed import closes_after, window_owner
from datacollect.exports.templates import Templates
from datacollect.problem.manifest import Files

MB = 10**6
SIZE = 98_000 * MB
ADDRESSES = Templates({"": "https://{host}.example/{source}/{path}"}, {})


def line(*, storage_bytes=None, direct=0.0, periods=True):
    rate = [10.0 * MB, 0.0, 10.0 * MB] if periods else 10.0 * MB
    hosts = [
        dc.Host("S", backlog_bytes=SIZE),
        dc.Host("K", storage_bytes=np.inf if storage_bytes is None else storage_bytes),
        dc.Host("D"),
    ]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate)]
    if direct:
        links.append(dc.Link("S", "D", direct))
    return dc.Problem.from_hosts(
        hosts, links, "D", periods_s=[0.0, 10_000.0, 100_000.0] if periods else None
    )


def written(problem, plan, kind="curl", **options):
    files = {"S": Files(("a.tar",), np.array([SIZE]), ("",))}
    templates = (
        ADDRESSES
        if kind not in ("rsync", "rclone")
        else Templates({"": "{host}:/{source}/{path}"}, {})
    )
    return export(problem, plan, files, kind, templates, **options)


@pytest.fixture(scope="module")
def in_time():
    problem = line()
    return problem, dc.coordinated(problem, chunk_s=10.0, deadline_s=10_000.0)


def with_requests_s(problem, found):
    return finish_times_s(problem, found.jobs.jobs, requests=True).max()


def test_pieces_are_so_small_that_the_deadline_holds(in_time):
    """A fiftieth reaches the relay at 9800 s and needs 196 s more, and requests 31.

    A hundredth, 980 MB, needs 98 s more: 9898 s. A hundred requests of the relay's take 50 s, its
    last piece is seen 5 s later at most, and asked for once more: 9953.5 s.
    """
    problem, _ = in_time
    found = written(*in_time)
    assert max(job.piece.n_bytes for job in found.jobs.jobs) == 980 * MB
    assert found.makespan_s == pytest.approx(9898.0)
    assert with_requests_s(problem, found) == pytest.approx(9953.5)


def test_without_a_deadline_a_window_that_closes_makes_pieces_small_too():
    problem = line()
    found = written(problem, dc.coordinated(problem, chunk_s=10.0))
    assert with_requests_s(problem, found) <= 10_000.0


def test_a_size_that_misses_the_deadline_is_refused_with_one_that_holds(in_time):
    """A quarter of 1960 MB: 200 pieces, of 49 s; with requests 9954.5 s."""
    with pytest.raises(InfeasibleError, match="after the plan's deadline, 10000 s") as refused:
        written(*in_time, piece_bytes=1_960 * MB)
    size = int(re.search(r"with --piece-bytes (\d+) they keep it", str(refused.value))[1])
    assert size == 490 * MB
    assert written(*in_time, piece_bytes=size).makespan_s == pytest.approx(9849.0)


@pytest.mark.slow
def test_pieces_so_small_that_requests_take_too_long_are_refused(in_time):
    """4900 requests take 2450 s: the window closes before."""
    with pytest.raises(InfeasibleError, match="misses the window of the link") as refused:
        written(*in_time, piece_bytes=20 * MB)
    assert "leave --piece-bytes out: then they keep it" in str(refused.value)


def test_requests_may_end_within_a_twentieth_after_the_deadline():
    """98 GB straight take 9800 s, by 9800 s: a piece of all of it has one request, of 0.5 s."""
    hosts = [dc.Host("S", backlog_bytes=SIZE), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, [dc.Link("S", "D", 10.0 * MB)], "D")
    found = written(problem, dc.coordinated(problem, deadline_s=9800.0))
    assert found.makespan_s == pytest.approx(9800.0)
    assert with_requests_s(problem, found) == pytest.approx(9800.5)
    hurried = problem.replace(bandwidth_bytes_per_s=[[12_250.0 * MB]])
    with pytest.raises(InfeasibleError, match=r"ends at 8\.5 s with 0\.5 s for each request"):
        written(hurried, dc.coordinated(hurried, deadline_s=8.0))


def test_tools_that_fetch_whole_files_are_refused_where_curl_keeps_the_deadline(in_time):
    """The file is whole at the relay at 9800 s: 98 GB more take until 107 800 s and longer."""
    with pytest.raises(InfeasibleError, match="take --as curl or --as rclone"):
        written(*in_time, "rsync")
    for kind in ("curl", "rclone"):
        assert written(*in_time, kind).makespan_s <= 10_000.0


def test_tools_that_fetch_pieces_are_not_named_where_they_miss_the_deadline_too():
    """At 1 MB/s the last piece is at the relay at 99.8 s; the least, 1 MiB, takes a second."""
    hosts = [dc.Host("S", 99_800_000), dc.Host("K"), dc.Host("D")]
    rate = [1.0 * MB, 0.0, 1.0 * MB]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate)]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 100.0, 1000.0])
    plan = dc.coordinated(problem, chunk_s=0.1, deadline_s=100.0)
    files = {"S": Files(("a.tar",), np.array([99_800_000]), ("",))}
    templates = Templates({"": "{host}:/{source}/{path}"}, {})
    for kind in ("rsync", "rclone"):
        with pytest.raises(InfeasibleError, match=", or allow more time"):
            export(problem, plan, files, kind, templates)


def test_a_piece_ends_where_the_rate_of_its_link_changes():
    """10 MB/s for 5000 s, then 20: 98 GB in 7400 s; at a mean of 13.2 MB/s they take 8600 s."""
    hosts = [dc.Host("S", backlog_bytes=SIZE), dc.Host("D")]
    links = [dc.Link("S", "D", [10.0 * MB, 20.0 * MB])]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 5000.0])
    found = written(problem, dc.coordinated(problem, deadline_s=7401.0))
    assert found.makespan_s == pytest.approx(7400.0)
    assert [job.piece.n_bytes for job in found.jobs.jobs] == [50_000 * MB, 48_000 * MB]


def test_pieces_are_so_small_that_their_copies_fit_into_storage():
    """A piece lies twice while it is copied: 100.0 GB with fiftieths, 98.98 with hundredths."""
    problem = line(storage_bytes=99_000 * MB, periods=False)
    found = written(problem, dc.coordinated(problem))
    needed = stored_bytes(problem, found.jobs)["K"]
    assert SIZE < needed <= 99_000 * MB
    with pytest.raises(InfeasibleError, match="nothing deletes at 'K'") as refused:
        written(problem, dc.coordinated(problem), piece_bytes=1_960 * MB)
    size = int(re.search(r"with --piece-bytes (\d+) they keep it", str(refused.value))[1])
    assert (
        stored_bytes(problem, written(problem, dc.coordinated(problem), piece_bytes=size).jobs)["K"]
        <= 99_000 * MB
    )


def test_a_relay_that_cannot_keep_what_it_forwards_is_refused_and_planned_around():
    """Room for 50 GB of 89; with the rest straight, at 1 MB/s, the end is near 48 500 s."""
    problem = line(storage_bytes=50_000 * MB, direct=1.0 * MB, periods=False)
    with pytest.raises(InfeasibleError, match="plan with --keep-relayed"):
        written(problem, dc.coordinated(problem))
    kept = dc.coordinated(problem, keep_relayed=True)
    kept.check(problem)
    found = written(problem, kept)
    assert stored_bytes(problem, found.jobs)["K"] <= 50_000 * MB
    assert 48_000 <= kept.makespan_s <= 51_000
    assert kept.lower_bound_s == pytest.approx(SIZE / (11 * MB), rel=1e-6)
    assert kept.problem_sha256 == problem.sha256


def test_where_nothing_may_pass_all_goes_straight():
    problem = line(storage_bytes=0, direct=1.0 * MB, periods=False)
    kept = dc.coordinated(problem, keep_relayed=True)
    assert kept.makespan_s == pytest.approx(98_000.0)


def test_data_that_only_a_full_relay_reaches_are_named():
    problem = line(storage_bytes=50_000 * MB, periods=False)
    with pytest.raises(InfeasibleError, match="relays"):
        dc.coordinated(problem, keep_relayed=True, deadline_s=20_000.0)


def test_what_a_relay_holds_of_others_takes_up_room():
    """50 GB lie at K: they count, and only the other 48 are fetched there."""
    problem = line(storage_bytes=120_000 * MB, periods=False)
    held = problem.replace(held=[dc.Held("K", "S", 0, 50_000 * MB)])
    found = written(held, dc.coordinated(held))
    assert SIZE <= stored_bytes(held, found.jobs)["K"] <= 120_000 * MB


def full_window():
    """Plan 297 MB at 1 MB/s until 300 s, when all closes: pieces of 2 MiB or less are all late."""
    rate = [1.0 * MB, 0.0, 1.0 * MB]
    hosts = [dc.Host("S", 297 * MB), dc.Host("K"), dc.Host("D")]
    links = [dc.Link("S", "K", rate), dc.Link("K", "D", rate)]
    files = {"S": Files(("a.tar",), np.array([297 * MB]), ("",))}
    return dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 300.0, 3000.0]), files


@pytest.mark.slow
def test_the_window_that_is_missed_is_named_and_a_margin_that_helps():
    """142 requests or more of half a second: over a minute late."""
    problem, files = full_window()
    plan = dc.coordinated(problem, deadline_s=300.0)
    with pytest.raises(RefusedScripts) as refused:
        export(problem, plan, files, "curl", ADDRESSES)
    said = refused.value.what
    assert "misses the window of the link 'S' -> 'K' that closes at 300 s by" in said
    assert "and waits until 3000 s: it ends after the plan's deadline, 300 s" in said
    assert 15 < refused.value.late_s < 120
    assert re.search("; plan with --margin '[1-9]+ min', which ends", str(refused.value))


@pytest.mark.slow
def test_without_a_deadline_what_misses_a_window_is_said():
    problem, files = full_window()
    found = export(problem, dc.coordinated(problem), files, "curl", ADDRESSES)
    assert found.with_requests_s > 3000
    assert re.search("misses the window .* plan with --margin '.*' if", " ".join(found.notes))


def test_windows_are_named_by_their_host():
    hosts = [dc.Host("S", 10), dc.Host("K", open="20:00-06:00"), dc.Host("D")]
    links = [dc.Link("S", "K", 1.0), dc.Link("K", "D", 1.0), dc.Link("S", "D", 1.0)]
    problem = dc.Problem.from_hosts(
        hosts, links, "D", start="2026-11-22T20:00", timezone="Europe/Zurich"
    )
    assert closes_after(problem, ("S", "K"), 100.0) == (36_000.0, 86_400.0)
    assert window_owner(problem, ("S", "K"), 36_000.0) == "'K'"
    assert closes_after(problem, ("S", "D"), 100.0)[0] > 86_400.0 * 2
