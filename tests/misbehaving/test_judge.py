"""The judge of cases: each verdict where it belongs, and counts that go on where they ended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from judges.misbehaviour import HONEST, Behaviour
from judges.strict_client import Known
from misbehaving.cases import Case, Seen, Starts, Verdict, judged, neighbour_of, twins_of
from misbehaving.run import Result, cases_of, groups, main, results_in, summary, table

ALL, SIZE, NOTHING = Known(n_bytes=True, sha256=True), Known(n_bytes=True), Known()
ZEROS, BUSY = Behaviour(body="zeros"), Behaviour(status="503")
REPLACED = Behaviour(body="replaced")


def case(behaviour, known=NOTHING):
    return Case(behaviour, known, 1)


def seen(data=None, why=None, *, is_complete=False, n_requests=1, sent_bytes=0):
    return Seen(data, why, is_complete, n_requests, sent_bytes)


RIGHT = case(HONEST).file.data


@pytest.mark.parametrize(
    ("of", "found", "verdict"),
    [
        (case(HONEST), seen(RIGHT), "identical"),
        (case(BUSY), seen(why="503"), "refused by name"),
        (case(BUSY), seen(), "silent"),
        (case(BUSY), seen(why="503", is_complete=True), "silent"),
        (case(BUSY), seen(b"<html>"), "wrong bytes"),
        (case(HONEST), seen(why="it is not liked"), "honest and refused"),
        (case(ZEROS), seen(bytes(len(RIGHT))), "wrong, as only a hash could tell"),
        (case(ZEROS, ALL), seen(bytes(len(RIGHT))), "wrong bytes"),
        (case(HONEST), seen(RIGHT[:-1]), "wrong bytes"),
        # Another version is the file, too, but neither parts of two nor what a hash excludes.
        (case(REPLACED), seen(case(REPLACED).file.other), "identical"),
        (case(REPLACED, ALL), seen(case(REPLACED).file.other), "wrong bytes"),
        (case(REPLACED), seen(RIGHT[:9] + case(REPLACED).file.other[9:]), "wrong bytes"),
        (case(Behaviour(body="regrown"), SIZE), seen(case(HONEST).file.grown), "wrong bytes"),
        (case(HONEST), seen(RIGHT, sent_bytes=3 * len(RIGHT)), "identical"),
        (case(HONEST), seen(RIGHT, sent_bytes=9 * len(RIGHT)), "too many bytes"),
        (case(HONEST), seen(RIGHT, n_requests=61), "too many bytes"),
        (case(BUSY), seen(why="503", sent_bytes=9 * len(RIGHT)), "too many bytes"),
    ],
)
def test_verdicts(of, found, verdict):
    assert judged(of, of.behaviour, found) is Verdict(verdict)


def test_what_was_there_and_is_no_more_is_lost_whatever_is_said():
    assert judged(case(BUSY), BUSY, seen(why="503"), was_there=True) is Verdict.LOST


def test_neighbours_are_honest_and_twins_are_not_and_both_have_names_of_their_own():
    beside = neighbour_of(case(BUSY))
    assert beside.behaviour is HONEST
    assert beside.is_neighbour
    assert beside.name != case(BUSY).name
    assert beside.words != case(HONEST).words
    twins = twins_of(case(BUSY), 2)
    assert {(twin.behaviour, twin.is_neighbour) for twin in twins} == {(BUSY, False)}
    assert len({each.words for each in (case(BUSY), *twins)}) == 3


def test_all_groups_have_all_behaviours_each_with_a_number_of_its_own():
    found = groups(["pull", "curl"])
    assert len(found) == 3 * (4 + 2)
    numbers = [
        each.number for known in {group.known for group in found} for each in cases_of(known)
    ]
    assert len(set(numbers)) == len(numbers) > 4 * 2500
    large = [len(each.file.data) > 100_000 for each in cases_of(SIZE)[:80]]
    assert sum(large) == 10


@pytest.fixture
def folder(tmp_path):
    results = results_in(tmp_path / "results.jsonl")
    good = Result("pull", "bad", "nothing", "status: 503", 3000, "refused by name", "503", 1, 2)
    results.add(good, replace(good, tool="curl", verdict="wrong bytes", why="no word\nof it"))
    with results.path.open("a") as file:
        file.write('{"tool": "pul')  # where it was killed
    return tmp_path


def test_results_are_kept_counted_and_forgotten(folder, capsys):
    assert main(["--folder", str(folder), "--minutes", "0", "--table", str(folder / "t.md")]) == 1
    said = capsys.readouterr().out
    assert "2 cases" in said
    assert "wrong bytes: curl, bad (1 times)" in said
    assert "status: 503 | knows nothing | 1 requests, 2 of 3000 bytes\n      no word of it" in said
    results = results_in(folder / "results.jsonl")
    assert len(results.by_key) == 2
    results.forget(lambda each: each.is_bad)
    lines = (folder / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["tool"] for line in lines] == ["pull"]
    assert "1 refused by name" in summary([*results.by_key.values()])
    assert "wrong bytes:" not in summary([*results.by_key.values()])


def test_the_table_has_a_row_for_each_group_and_their_sum(folder):
    rows = table([*results_in(folder / "results.jsonl").by_key.values()]).splitlines()
    assert rows[0].startswith("| tool | server | known | cases | identical | refused by name |")
    assert rows[2].startswith("| pull | bad | nothing | 1 | 0 | 1 |")
    assert rows[-1].startswith("| all |  |  | 2 | 0 | 1 |")
    assert Starts("good, then bad") is Starts.GOOD_BAD
