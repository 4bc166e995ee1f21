"""Scripts keep what the plan promises: its deadline, and the storage of relays; derived by hand.

The line: S -> K -> D, 10 MB a second each, for 100 s; then nothing until 1000 s. 998 MB take
99.8 s, and a chunk of 0.1 s more over the relay.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import datacollect as dc
from datacollect.errors import InfeasibleError
from datacollect.exports.export import export
from datacollect.exports.fitting import stored_bytes
from datacollect.exports.templates import Templates
from datacollect.problem.manifest import Files

MB = 10**6
SIZE = 998 * MB
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
        hosts, links, "D", periods_s=[0.0, 100.0, 1000.0] if periods else None
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
    return problem, dc.coordinated(problem, chunk_s=0.1, deadline_s=100.0)


def test_pieces_are_so_small_that_the_deadline_holds(in_time):
    """A fiftieth, 20 MB, reaches the relay at 99.8 s and needs 2 s more: not by 100 s, but 1000."""
    found = written(*in_time)
    assert 99.8 < found.makespan_s <= 100.0
    assert max(job.piece.n_bytes for job in found.jobs.jobs) < 2 * MB


def test_without_a_deadline_a_window_that_closes_makes_pieces_small_too():
    problem = line()
    found = written(problem, dc.coordinated(problem, chunk_s=0.1))
    assert found.makespan_s <= 100.0


def test_a_size_that_misses_the_deadline_is_refused_with_one_that_holds(in_time):
    """A quarter of 19.96 MB takes 0.499 s, until 100.3 s; a sixteenth 0.125 s, until 99.93 s."""
    with pytest.raises(InfeasibleError, match="after the plan's deadline, 100 s") as refused:
        written(*in_time, piece_bytes=19_960_000)
    size = int(re.search(r"with --piece-bytes (\d+) it holds", str(refused.value))[1])
    assert size == 1_247_500
    assert written(*in_time, piece_bytes=size).makespan_s <= 100.0


def test_tools_that_fetch_whole_files_are_refused_where_curl_keeps_the_deadline(in_time):
    """The file is whole at the relay at 99.8 s: 998 MB more take until 1098 s and longer."""
    with pytest.raises(InfeasibleError, match="take --as curl or --as rclone"):
        written(*in_time, "rsync")
    for kind in ("curl", "rclone"):
        assert written(*in_time, kind).makespan_s <= 100.0


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
        with pytest.raises(InfeasibleError, match="; plan by an earlier deadline, or allow more"):
            export(problem, plan, files, kind, templates)


def test_a_piece_ends_where_the_rate_of_its_link_changes():
    """10 MB/s for 50 s, then 20: 998 MB in 74.9 s; at a mean of 13.3 MB/s they take 87 s."""
    hosts = [dc.Host("S", backlog_bytes=SIZE), dc.Host("D")]
    links = [dc.Link("S", "D", [10.0 * MB, 20.0 * MB])]
    problem = dc.Problem.from_hosts(hosts, links, "D", periods_s=[0.0, 50.0])
    found = written(problem, dc.coordinated(problem, deadline_s=75.0))
    assert found.makespan_s == pytest.approx(74.9)
    assert [job.piece.n_bytes for job in found.jobs.jobs] == [500 * MB, 498 * MB]


def test_pieces_are_so_small_that_their_copies_fit_into_storage():
    """A piece lies twice while it is copied: 1018 MB with fiftieths, 1003 with 200ths."""
    problem = line(storage_bytes=1008 * MB, periods=False)
    found = written(problem, dc.coordinated(problem))
    needed = stored_bytes(problem, found.jobs)["K"]
    assert SIZE < needed <= 1008 * MB
    with pytest.raises(InfeasibleError, match="nothing deletes at 'K'") as refused:
        written(problem, dc.coordinated(problem), piece_bytes=19_960_000)
    size = int(re.search(r"with --piece-bytes (\d+) it holds", str(refused.value))[1])
    assert (
        stored_bytes(problem, written(problem, dc.coordinated(problem), piece_bytes=size).jobs)["K"]
        <= 1008 * MB
    )


def test_a_relay_that_cannot_keep_what_it_forwards_is_refused_and_planned_around():
    """Room for 500 MB of 907; with the rest straight, at 1 MB/s, the end is near 508 s."""
    problem = line(storage_bytes=500 * MB, direct=1.0 * MB, periods=False)
    with pytest.raises(InfeasibleError, match="plan with --keep-relayed"):
        written(problem, dc.coordinated(problem))
    kept = dc.coordinated(problem, keep_relayed=True)
    kept.check(problem)
    found = written(problem, kept)
    assert stored_bytes(problem, found.jobs)["K"] <= 500 * MB
    assert 498 <= kept.makespan_s <= 530
    assert kept.lower_bound_s == pytest.approx(SIZE / (11 * MB), rel=1e-6)
    assert kept.problem_sha256 == problem.sha256


def test_where_nothing_may_pass_all_goes_straight():
    problem = line(storage_bytes=0, direct=1.0 * MB, periods=False)
    kept = dc.coordinated(problem, keep_relayed=True)
    assert kept.makespan_s == pytest.approx(998.0)


def test_data_that_only_a_full_relay_reaches_are_named():
    problem = line(storage_bytes=500 * MB, periods=False)
    with pytest.raises(InfeasibleError, match="relays"):
        dc.coordinated(problem, keep_relayed=True, deadline_s=200.0)


def test_what_a_relay_holds_of_others_takes_up_room():
    """500 MB lie at K: they count, and only the other 498 are fetched there."""
    problem = line(storage_bytes=1200 * MB, periods=False)
    held = problem.replace(held=[dc.Held("K", "S", 0, 500 * MB)])
    found = written(held, dc.coordinated(held))
    assert SIZE <= stored_bytes(held, found.jobs)["K"] <= 1200 * MB
