"""Messages of agents and collectors: every field checked, and never believed."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollect.errors import ProblemError
from datacollect.transfer.protocol import messages
from datacollect.transfer.protocol.messages import (
    AS_LISTED,
    CHANGED,
    FEATURES,
    AgentFacts,
    FileEntry,
    FolderEntry,
    InventoryPage,
    LeftOut,
    Read,
    SessionFacts,
    WireConfirmation,
    WireSegment,
    entry_line,
    last_line,
    parse_page,
)
from datacollect.transfer.protocol.pages import MALFORMED, MOST_PAGE_EXTENTS

# What stands where something else is expected, in JSON.
WRONG = (
    *("null", "true", "-1", "1.5", "1e400", "NaN", "9" * 30, '""', '"x"', '"\\ud800"', "[]", "{}"),
    *('[["a"]]', '"' + "x" * 100_000 + '"', "[" * 2000 + "]" * 2000, '{"a":' * 2000, '"\\u0000"'),
)
FILE = FileEntry("a/b", 5, 7, 9)
LAST = last_line(None)


def page_of(*entries, after=None) -> bytes:
    return b"".join(map(entry_line, entries)) + last_line(after)


# Pages ---------------------------------------------------------------------------------------


@given(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    st.integers(0),
    st.integers(),
    st.sampled_from([None, 0, 0o7777]),
    st.sampled_from([None, (), ((0, 3), (5, 9))]),
)
def test_the_line_of_a_file_is_json_whatever_its_name(path, n_bytes, mtime_ns, mode, extents):
    tree = {"path": path, "bytes": n_bytes, "mtime_ns": mtime_ns, "inode": n_bytes}
    tree |= {} if mode is None else {"mode": mode}
    tree |= {} if extents is None else {"extents": [list(row) for row in extents]}
    line = entry_line(FileEntry(path, n_bytes, mtime_ns, n_bytes, mode, extents))
    assert line.endswith(b"}\n")
    assert json.loads(line) == tree
    assert line.count(b"\n") == 1


def test_a_page_comes_back_as_it_was():
    files = (FILE, FileEntry("c", 9000, 2**70, 1, 0o4755, ((0, 10), (100, 8900))))
    folders = (FolderEntry("a", 0o2750, -(2**70)),)
    left_out = (LeftOut("d\\xff", "why", b"d\xff".hex()),)
    page = parse_page(page_of(*folders, *files, *left_out, after="d"))
    assert page == InventoryPage(files, left_out, "d", folders)
    assert [(file.mode, file.extents) for file in page.files] == [
        (None, None),
        (0o4755, ((0, 10), (100, 8900))),
    ]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("key", ["path", "bytes", "mtime_ns", "inode", "mode", "extents"])
def test_a_file_that_cannot_be_is_left_out_by_name_and_its_page_stays(key, wrong):
    """One of three; what is left out is fit for a database, a file and a terminal."""
    rows = {"path": '"b"', "bytes": "5", "mtime_ns": "7", "inode": "9"}
    line = ",".join(f'"{name}":{value}' for name, value in (rows | {key: wrong}).items())
    body = entry_line(FileEntry("a", 1, 1, 1)) + f"{{{line}}}\n".encode() + page_of(FILE)
    page = parse_page(body)
    assert {"a", "a/b"} <= {file.path for file in page.files}
    assert len(page.files) + len(page.left_out) == 3
    for one in page.left_out:
        one.name.encode()
        one.why.encode()
        with closing(sqlite3.connect(":memory:")) as db:
            db.execute("SELECT ?, ?", (one.name, one.why))
        assert one.why
        assert len(one.name) < 20_000


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../out", "its name holds '..'"),
        ("/etc/passwd", "its name is absolute"),
        ("a//b", "its name holds an empty part"),
        ("a\0b", "its name holds a NUL character"),
        ("a\ud800", "its name is not Unicode text"),
        ("x" * 5000, "its name has 5000 bytes, more than 4000"),
    ],
)
@pytest.mark.parametrize("key", ["path", "folder"])
def test_a_path_that_leads_elsewhere_is_left_out_and_says_why(path, why, key):
    line = {key: path, "bytes": 1, "mtime_ns": 1, "inode": 1, "mode": 1}
    page = parse_page(json.dumps(line).encode() + b"\n" + LAST)
    escaped = path.replace("\ud800", "\\ud800").replace("\0", "\\x00")
    assert page == InventoryPage((), (LeftOut(escaped, why),), None)


@pytest.mark.parametrize(
    "extents",
    [
        [[0, 0]],
        [[0, 6]],
        [[-1, 2]],
        [[2, 1], [0, 1]],
        [[0, 3], [2, 1]],
        [[0]],
        [[0, 1, 2]],
        [0, 1],
        [[0, True]],
        [[0, 2**62], [2**62, 2**62]],
        [[i, 1] for i in range(1001)],
    ],
)
def test_holes_that_cannot_be(extents):
    line = {"path": "a", "bytes": 1000, "mtime_ns": 1, "inode": 1, "extents": extents}
    if extents == [[0, 6]]:
        line["bytes"] = 5
    page = parse_page(json.dumps(line).encode() + b"\n" + LAST)
    assert page.left_out == (LeftOut("a", MALFORMED),)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"x", "line 2"),
        (b"", "line 2"),
        (b"[]", "line 2"),
        (b"\xff", "line 2"),
        (b'{"path":5}', "line 2"),
        (b'{"next":null}', "line 2"),
        (b'{"left_out":["x"]}', "line 2"),
        (b'{"what":1}', "line 2"),
        (b'{"path":"' + b"a" * 200_000 + b'"}', "line 2"),
        (b'{"left_out":"\\ud800","why":"\\udfff\\u001b[31m"}', "\\ud800"),
        (b'{"left_out":"n","why":[]}', "n"),
        (b'{"left_out":"n"}', "n"),
        (b'{"left_out":"n","why":"w","hex":"xyz"}', "n"),
        (b'{"left_out":"n","why":"w","hex":7}', "n"),
    ],
)
def test_a_line_that_says_nothing_is_named_by_its_number(line, name):
    page = parse_page(entry_line(FILE) + line + b"\n" + LAST)
    assert page.files == (FILE,)
    [left_out] = page.left_out
    assert (left_out.name, left_out.name_hex) == (name, None)
    assert left_out.why.isprintable()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"x",
        entry_line(FILE),
        LAST + entry_line(FILE),
        b'{"next":5}\n',
        b'{"next":"\\ud800"}\n',
        b'{"next":"' + b"x" * 20_000 + b'"}\n',
        b'{"next":null,"more":1}\n',
        b"\n" * 10_001 + LAST,
        b"\n" * 10_000_000,
    ],
)
def test_a_page_without_an_end_or_with_too_many_lines_is_an_error(body):
    with pytest.raises(ProblemError):
        parse_page(body)


@pytest.mark.parametrize(
    "body",
    [
        b"\n" * (16 * 2**20),
        b"\r" * (16 * 2**20),
        b"[" + b"[]," * (5 * 2**20) + b"[]]\n" + LAST,
        (b'{"path":"a","x":[' + b"[]," * 40_000 + b"[]]}\n") * 20 + LAST,
    ],
    ids=["lines", "carriage returns", "one long line", "long lines"],
)
def test_a_hostile_page_takes_little_memory(body):
    """All that may come in one answer, 16 MiB, and less than 50 MB besides."""
    tracemalloc.start()
    try:
        parse_page(body)
    except ProblemError:
        pass
    finally:
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 50e6


def test_so_many_holes_are_kept_of_a_page():
    extents = tuple((i * 2, 1) for i in range(1000))
    n = MOST_PAGE_EXTENTS // 1000
    page = parse_page(
        page_of(*[FileEntry(f"{i:03}", 2000, 1, 1, 0, extents) for i in range(n + 5)])
    )
    assert [file.extents is None for file in page.files] == [False] * n + [True] * 5


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(body):
    for parse in (
        parse_page,
        messages.parse_facts,
        messages.parse_confirmation,
        messages.parse_sessions,
        messages.parse_read,
        messages.parse_confirm,
        lambda body: messages.parse_digests(body, 3),
    ):
        for raw in (body, body + b"\n" + LAST):
            try:
                parse(raw)
            except ProblemError as error:
                str(error).encode()


# Facts ---------------------------------------------------------------------------------------

FACTS = AgentFacts("S1", "1.0", 5.0, True, ("S2",), FEATURES)


def test_facts_come_back_as_they_were():
    assert messages.parse_facts(messages.facts_body(FACTS)) == FACTS


def test_facts_of_agents_of_the_version_before_name_no_features():
    tree = json.loads(messages.facts_body(FACTS))
    del tree["features"]
    assert messages.parse_facts(json.dumps(tree).encode()).features == ()


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("key", [*json.loads(messages.facts_body(FACTS))])
def test_facts_that_cannot_be_are_refused_or_made_safe(key, wrong):
    tree = {
        name: json.dumps(value) for name, value in json.loads(messages.facts_body(FACTS)).items()
    }
    body = ",".join(f'"{name}":{value}' for name, value in (tree | {key: wrong}).items())
    try:
        facts = messages.parse_facts(f"{{{body}}}".encode())
    except ProblemError as error:
        str(error).encode()
        return
    for text in (facts.name, facts.version, *facts.relays_to, *facts.features):
        assert text.isprintable()
        assert len(text) <= 300


@pytest.mark.parametrize("key", ["relays_to", "features"])
def test_names_that_are_told_are_so_many_at_most(key):
    tree = json.loads(messages.facts_body(FACTS)) | {key: ["x"] * 10_001}
    with pytest.raises(ProblemError, match=f"{key}: at most 10000"):
        messages.parse_facts(json.dumps(tree).encode())


# Confirmations -------------------------------------------------------------------------------


def test_a_confirmation_comes_back_as_it_was():
    confirmation = WireConfirmation(("a",), ("b", "c"), (("d", "Permission denied"),))
    assert messages.parse_confirmation(messages.confirmation_body(confirmation)) == confirmation


def test_confirmations_of_agents_of_the_version_before_give_no_reasons():
    assert messages.parse_confirmation(b'{"changed":["a"],"gone":[]}') == WireConfirmation(("a",))


@pytest.mark.parametrize(
    "wrong", [*WRONG, '["../a"]', '["\\ud800"]', "[5]", '[["a"]]', '[["a",5]]']
)
@pytest.mark.parametrize("key", ["changed", "gone", "unreadable"])
def test_confirmations_that_cannot_be_are_refused(key, wrong):
    tree = {"changed": "[]", "gone": "[]", "unreadable": "[]"} | {key: wrong}
    body = ",".join(f'"{name}":{value}' for name, value in tree.items())
    if wrong == "[]":
        return
    with pytest.raises(ProblemError):
        messages.parse_confirmation(f"{{{body}}}".encode())


def test_reasons_are_made_safe():
    found = messages.parse_confirmation(
        b'{"changed":[],"gone":[],"unreadable":[["a","no\\u001b\\ud800"]]}'
    )
    assert found.unreadable == (("a", "no\\x1b\\ud800"),)


# Hashes --------------------------------------------------------------------------------------


def test_hashes_come_back_where_all_was_as_listed():
    body = messages.digests_body([(AS_LISTED, b"a" * 32), (CHANGED, b"b" * 32)])
    assert messages.parse_digests(body, 2) == (b"a" * 32, None)
    assert messages.parse_digests(b"", 0) == ()


@pytest.mark.parametrize("n", [1, 3])
def test_another_number_of_hashes_is_refused(n):
    body = messages.digests_body([(AS_LISTED, b"a" * 32)] * 2)
    with pytest.raises(ProblemError, match=f"{n} hashes have"):
        messages.parse_digests(body, n)


# Sessions ------------------------------------------------------------------------------------

ROW = {
    "session": 1,
    "kind": "relay",
    "nonce": "abc",
    "up_bytes": 5,
    "down_bytes": 6,
    "collector_side": {"rtt_s": 0.5},
    "far_side": None,
}


def test_sessions_come_back_as_they_were():
    assert messages.parse_sessions(messages.sessions_body([ROW])) == [SessionFacts(**ROW)]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("key", ROW)
def test_sessions_that_cannot_be_are_refused_or_made_safe(key, wrong):
    tree = {name: json.dumps(value) for name, value in ROW.items()} | {key: wrong}
    body = ",".join(f'"{name}":{value}' for name, value in tree.items())
    try:
        [row] = messages.parse_sessions(f'{{"sessions":[{{{body}}}]}}'.encode())
    except ProblemError:
        return
    assert all(type(number) is int for number in (row.session, row.up_bytes, row.down_bytes))
    for text in (row.kind, row.nonce):
        assert text.isprintable()
        assert len(text) <= 300
    for side in (row.collector_side, row.far_side):
        assert side is None or all(isinstance(value, float) for value in side.values())


# Requests ------------------------------------------------------------------------------------


def test_times_of_any_size_can_be_asked_for():
    for mtime_ns in (-(2**96), 2**96, 0):
        file = FileEntry("a", 5, mtime_ns, 9)
        read = Read((WireSegment(file, 0, 5),))
        assert messages.parse_read(messages.read_body(read)) == read
        assert messages.parse_confirm(messages.confirm_body([file])) == (file,)
    with pytest.raises(ProblemError, match="whole numbers"):
        messages.parse_confirm(messages.confirm_body([FileEntry("a", 5, 2**96 + 1, 9)]))


def test_modes_and_holes_make_no_other_file():
    """What is asked for is compared by size, time and number alone."""
    assert FileEntry("a", 5, 7, 9, 0o644, ((0, 5),)) == FileEntry("a", 5, 7, 9)
    file = FileEntry("a", 5, 7, 9, 0o644)
    assert messages.confirm_body([file]) == b'{"files":[["a",5,7,9]]}'
