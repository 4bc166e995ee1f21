"""Promises of pulls, kept line by line: what is cut, garbled or has no room is no promise."""

from __future__ import annotations

import errno
import json
import os
from multiprocessing import get_context

import pytest

from datacollect.errors import ProblemError
from datacollect.transfer.store import promises
from datacollect.transfer.store.promises import FILE, KeptPull, ShownRate, keep, kept_pulls


@pytest.fixture
def folder(tmp_path):
    (tmp_path / ".datacollect").mkdir()
    return tmp_path


def pull(took_s=10.0, p10_s=8.0, p90_s=12.0, *, complete=True):
    shown = (ShownRate("S", "D", 5.0), ShownRate("S", "", 5.0), ShownRate("", "D", 7.5))
    return KeptPull(1.7e9, "direct", complete, 10.0, p10_s, p90_s, took_s, ("slow",), shown)


def lines(folder):
    return (folder / ".datacollect" / FILE).read_bytes()


def test_what_is_kept_is_read_again(folder):
    keep(folder, pull())
    keep(folder, pull(13.0))
    found = kept_pulls(folder)
    assert found.pulls == (pull(), pull(13.0))
    assert found.n_damaged == 0


@pytest.mark.parametrize(
    ("one", "held"),
    [
        (pull(10.0), True),
        (pull(8.0), True),
        (pull(7.9), False),
        (pull(12.1), False),
        (pull(complete=False), None),
        (pull(p10_s=None, p90_s=None), None),
    ],
)
def test_a_promise_holds_where_its_interval_does_and_all_came(one, held):
    assert one.held is held


def test_how_often_the_interval_held_counts_those_that_had_one(folder):
    for one in (pull(), pull(20.0), pull(11.0), pull(complete=False), pull(p10_s=None)):
        keep(folder, one)
    found = kept_pulls(folder)
    assert (len(found.pulls), len(found.judged), found.n_held) == (5, 3, 2)


def test_a_cut_line_is_left_out_and_the_next_begins_behind_it(folder):
    """As a power loss leaves it, in the middle of a line."""
    keep(folder, pull())
    whole = lines(folder)
    keep(folder, pull(11.0))
    (folder / ".datacollect" / FILE).write_bytes(whole + lines(folder)[len(whole) : -30])
    keep(folder, pull(12.0))
    found = kept_pulls(folder)
    assert [one.took_s for one in found.pulls] == [10.0, 12.0]
    assert found.n_damaged == 1


GOOD = json.loads(json.dumps({"format": promises.FORMAT, **vars(pull()), "shown": []}))


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00",
        b"[" * 10_000,
        b"null",
        b"[]",
        b"{}",
        json.dumps(GOOD | {"format": "datacollect-promise/2"}).encode(),
        json.dumps(GOOD | {"took_s": "long"}).encode(),
        json.dumps(GOOD | {"took_s": -1.0}).encode(),
        json.dumps(GOOD | {"took_s": True}).encode(),
        json.dumps(GOOD | {"p90_s": float("nan")}).encode(),
        json.dumps(GOOD | {"ended_s": 1e300}).encode(),
        json.dumps(GOOD | {"complete": 1}).encode(),
        json.dumps(GOOD | {"method": None}).encode(),
        json.dumps(GOOD | {"more": 1}).encode(),
        json.dumps(GOOD | {"why": 3}).encode(),
        json.dumps(GOOD | {"shown": [{"tail": "S"}]}).encode(),
        json.dumps(GOOD | {"shown": [{"tail": 1, "head": "D", "bytes_per_s": 1.0}]}).encode(),
        json.dumps(GOOD | {"shown": [{"tail": "", "head": "D", "bytes_per_s": -1}]}).encode(),
        json.dumps({key: value for key, value in GOOD.items() if key != "took_s"}).encode(),
    ],
)
def test_lines_that_no_pull_has_written_are_counted(folder, line):
    (folder / ".datacollect" / FILE).write_bytes(line + b"\n")
    keep(folder, pull())
    found = kept_pulls(folder)
    assert found.pulls == (pull(),)
    assert found.n_damaged == 1


def test_a_full_disk_leaves_what_was_kept(folder, monkeypatch):
    keep(folder, pull())
    before = lines(folder)

    def full(fd, **_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(promises, "sync", full)
    with pytest.raises(OSError, match="No space"):
        keep(folder, pull(11.0))
    assert lines(folder) == before


def test_a_link_in_its_place_is_not_followed(folder, tmp_path):
    other = tmp_path / "other"
    other.write_text("")
    (folder / ".datacollect" / FILE).symlink_to(other)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        keep(folder, pull())
    assert other.read_text() == ""


def _keep_many(folder, n):
    for i in range(n):
        keep(folder, pull(float(i)))


def test_two_that_keep_at_once_lose_no_line(folder):
    context = get_context("spawn")
    both = [context.Process(target=_keep_many, args=(folder, 20)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    found = kept_pulls(folder)
    assert (len(found.pulls), found.n_damaged) == (40, 0)


def test_a_folder_without_any_end_has_no_promises(folder):
    assert kept_pulls(folder).pulls == ()


def test_a_folder_of_no_pull_is_refused(tmp_path):
    with pytest.raises(ProblemError, match="no pull has ever begun in this folder"):
        kept_pulls(tmp_path)
