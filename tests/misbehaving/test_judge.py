"""The judge of cases: each verdict where it belongs, and counts that go on where they ended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from judges.misbehaviour import HONEST, Behaviour, enumerate_behaviours
from judges.strict_client import Known
from misbehaving.cases import Case, Seen, Verdict, judged, neighbours_of, twins_of
from misbehaving.code_state import code_state, meaning
from misbehaving.run import (
    Result,
    batches,
    cases_of,
    groups,
    main,
    options_of,
    results_in,
    summary,
    table,
)

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


def test_a_head_without_end_may_have_what_its_tool_is_known_to_read():
    head = Behaviour(timing="endless head")
    of, found = case(head), seen(why="no end", sent_bytes=4_000_000)
    assert judged(of, head, found) is Verdict.TOO_MANY
    assert judged(of, head, found, most_head_bytes=5_000_000) is Verdict.REFUSED
    assert judged(of, BUSY, found, most_head_bytes=5_000_000) is Verdict.TOO_MANY


def test_a_lie_that_ends_midway_may_be_gone_on_with_at_the_next_start():
    """The beginning of another version, under the file's own ETag: then the rest of the file."""
    stalls = Behaviour(body="other version", timing="stall")
    file = case(stalls).file
    mixed = seen(file.other[: len(RIGHT) // 2] + RIGHT[len(RIGHT) // 2 :])
    assert judged(case(stalls, SIZE), HONEST, mixed) is Verdict.DECEIVED
    assert judged(case(stalls, SIZE), stalls, mixed) is Verdict.WRONG
    assert judged(case(stalls, ALL), HONEST, mixed) is Verdict.WRONG
    assert judged(case(BUSY, SIZE), HONEST, mixed) is Verdict.WRONG


def test_what_was_there_and_is_no_more_is_lost_whatever_is_said():
    assert judged(case(BUSY), BUSY, seen(why="503"), was_there=True) is Verdict.LOST


def test_verified_copies_that_nobody_confirms_are_not_passed_over_in_silence():
    """The server has one page for all by now; where a hash is known, the copy is proved by it."""
    page = Behaviour(body="error JSON")
    for known, verdict in ((NOTHING, Verdict.SILENT), (ALL, Verdict.IDENTICAL)):
        of = case(page, known)
        right = seen(of.file.data, is_complete=True)
        assert judged(of, page, right, was_there=True) is verdict
        assert judged(of, page, right, was_there=True, confirms=False) is Verdict.IDENTICAL
        assert judged(of, HONEST, right, was_there=True) is Verdict.IDENTICAL
        named = seen(of.file.data, why="it is JSON now")
        assert judged(of, page, named, was_there=True) is Verdict.IDENTICAL
    assert judged(of, page, seen(b"{}"), was_there=True) is Verdict.WRONG


def test_neighbours_are_honest_and_twins_are_not_and_both_have_names_of_their_own():
    beside, other = neighbours_of(case(BUSY), 2)
    assert beside.words != other.words
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


def state(tool):
    """As the code is now, for these tests."""
    return "now"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("misbehaving.run.code_state", state)
    results = results_in(tmp_path / "results.jsonl")
    good = Result(
        "pull", "bad", "nothing", "status: 503", 3000, "refused by name", "503", 1, 2, state("pull")
    )
    results.add(good, replace(good, tool="curl", verdict="wrong bytes", why="no word\nof it"))
    results.add(replace(good, starts="good, then bad", code="of yesterday"))
    with results.path.open("a") as file:
        file.write('{"tool": "pul')  # where it was killed
    return tmp_path


def test_results_are_kept_counted_and_forgotten(folder, capsys):
    assert main(["--folder", str(folder), "--minutes", "0", "--table", str(folder / "t.md")]) == 1
    said = capsys.readouterr().out
    assert "1 results are of other code: they do not count" in said
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


def test_what_was_bad_is_done_again_and_stays_bad_until_then(folder, monkeypatch):
    """Twins and plain files are served for the sake of a case: that one is carried out."""
    [page, *_] = [each for each in cases_of(NOTHING) if each.behaviour.body == "error JSON"]
    [late, *_] = [each for each in cases_of(SIZE) if each.behaviour.timing == "late"]
    results = results_in(folder / "results.jsonl")
    results.forget(lambda _: True)
    right = Result("pull", "bad", "", "", 3000, "identical", "", 1, 2, "now")
    for case, whole in ((page, twins_of(page, 2)[1]), (late, neighbours_of(late, 2)[1])):
        right_one = replace(right, known=str(case.known), behaviour=case.words)
        results.add(right_one, replace(right_one, behaviour=whole.words, verdict="lost"))
    done = []

    def carried_out(*batch):
        done.append(batch)
        return []

    monkeypatch.setattr("misbehaving.run.carry_out", carried_out)
    monkeypatch.setattr("misbehaving.run.digest_now", state)
    assert main(["--folder", str(folder), "--tools", "pull", "--bad"]) == 1
    [(tool, starts, cases)] = done
    assert (tool, starts.value) == ("pull", "bad")
    assert {case.number for case in cases} == {page.number, late.number}
    assert sum(each.is_bad for each in results_in(folder / "results.jsonl").by_key.values()) == 2


def test_the_table_has_a_row_for_each_group_and_their_sum(folder):
    rows = table([*results_in(folder / "results.jsonl").by_key.values()]).splitlines()
    assert rows[0].startswith("| tool | server | known | cases | identical | refused by name |")
    assert rows[2].startswith("| pull | bad | nothing | 1 | 0 | 1 |")
    assert rows[3].startswith("| all |  |  | 2 | 0 | 1 |")
    n = len(enumerate_behaviours())
    assert rows[-2:] == [
        f"- {tool}: 1 of {n} behaviours, by the code whose digest is `now`"
        for tool in ("pull", "curl")
    ]


@pytest.mark.slow
def test_each_row_has_its_first_cases_before_any_has_its_next_ones(folder):
    """One row is ahead: the others come first, until they are as far."""
    results = results_in(folder / "results.jsonl")
    ahead = ["--tools", "aria2,curl", "--starts", "bad"]
    first = batches(options_of(ahead), results, set())
    of_row = [each for each in first if (each.tool, each.cases[0].known) == ("aria2", SIZE)]
    results.add(
        *(
            Result("aria2", "bad", "size", case.words, 3000, "identical", "", 1, 2, "now")
            for case in (*of_row[0].cases, *of_row[1].cases)
        )
    )
    again = batches(options_of(ahead), results, set())
    began = [(each.tool, each.cases[0].known) for each in again]
    assert began[:6] == [("aria2", ALL), ("curl", SIZE), ("curl", ALL)] * 2
    assert set(began[6:10]) == {("aria2", SIZE), *began[:3]}
    left = {case.words for each in again if each.tool == "aria2" for case in each.cases}
    assert len(left) == len(enumerate_behaviours())
    # Rows of a tool begin with other behaviours.
    seen = [{case.words for case in each.cases} for each in first[:4]]
    assert not seen[0] & seen[1]
    assert not seen[2] & seen[3]


def test_what_was_tried_while_the_code_changed_does_not_count(folder, monkeypatch, capsys):
    monkeypatch.setattr("misbehaving.run.digest_now", lambda _: "then")
    monkeypatch.setattr("misbehaving.run.carry_out", lambda *_: [])
    main(["--folder", str(folder), "--tools", "curl", "--sample", "3"])
    assert "the code has changed, the last 3 cases do not count" in capsys.readouterr().out
    assert len(results_in(folder / "results.jsonl").by_key) == 2


@pytest.mark.slow
def test_a_digest_tells_code_and_nothing_else():
    assert code_state("curl") not in (code_state("aria2"), code_state("pull"))
    assert meaning('def f():\n    "It."\n    return 1  # it\n') == meaning("def f(): return 1")
    assert meaning("class C:\n    'It.'") == "class C:\n    pass"
