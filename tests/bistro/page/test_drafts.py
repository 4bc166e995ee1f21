"""Which of a ticket's files the page shows as the one that counts."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from conftest import NO_NODE, REPOSITORY

DRAFTS = REPOSITORY / "datacollect" / "bistro" / "page" / "src" / "drafts.js"
SCRIPT = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0, "utf8"));
const { places } = await import(given.drafts);
const standingOf = ({ id, time, isLate }) => ({ entry: id, time, isLate });
const found = given.cases.map(({ items, event }) =>
  [...places(items, standingOf, event)].map(([id, other]) => [id, other?.id ?? null]),
);
console.log(JSON.stringify(found));
"""
LAST = {"counts": "last", "mostDrafts": 10}


def draft(id_, time, ticket="mine", word=None, why=""):
    verdict = {"verdict": {"word": word, "why": why}} if word else {}
    return {"id": id_, "time": time, "ticket": ticket, **verdict}


A, B, C = (draft(*each) for each in (("a", 1), ("b", 2), ("c", 3)))
LATE = draft("late", 9) | {"isLate": True}
CASES = {
    "the last one": ([A, B, C], LAST, {"a": "c", "b": "c", "c": None}),
    "the first one": ([A, B, C], LAST | {"counts": "first"}, {"a": None, "b": "a", "c": "a"}),
    "all": ([A, B], LAST | {"counts": "all"}, {"a": None, "b": None}),
    # By the time that is proved, not by the order in which they were handed in; by the entry in
    # the same second.
    "an earlier time": ([C, A], LAST, {"a": "c", "c": None}),
    "the same second": ([draft("y", 1), draft("x", 1)], LAST, {"x": "y", "y": None}),
    "not proved, or late": ([A, {"id": "new", "ticket": "mine"}, LATE], LAST, {"a": None}),
    "more than may count": ([A, B, C], LAST | {"mostDrafts": 2}, {"a": "b", "b": None}),
    "another's ticket": ([A, draft("b", 2, "other")], LAST, {"a": None, "b": None}),
    "without tickets": ([draft("a", 1, None), draft("b", 2, None)], LAST, {}),
    "refused for good": (
        [A, draft("b", 2, word="refused", why="is late")],
        LAST,
        {"a": None, "b": "a"},
    ),
    "to be sealed anew": (
        [A, draft("b", 2, word="refused", why="does not open")],
        LAST,
        {"a": "b", "b": None},
    ),
    "superseded": ([A, draft("b", 2, word="superseded", why="a")], LAST, {"a": None, "b": "a"}),
    "counts again": (
        [draft("a", 1, word="collected", why="b"), B],
        LAST,
        {"a": None, "b": "a"},
    ),
    "collected, and so is a later one": (
        [draft("a", 1, word="collected"), draft("b", 2, word="collected")],
        LAST,
        {"a": "b", "b": None},
    ),
}


def test_which_one_counts():
    if shutil.which("node") is None:
        pytest.skip(NO_NODE)
    given = [{"items": items, "event": event} for items, event, _ in CASES.values()]
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", SCRIPT],
        input=json.dumps({"drafts": DRAFTS.as_uri(), "cases": given}),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = dict(zip(CASES, map(dict, json.loads(done.stdout)), strict=True))
    assert found == {name: wanted for name, (_, _, wanted) in CASES.items()}
