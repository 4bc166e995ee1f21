"""What a stranger sends has one meaning, or none: every reader of the wing goes by these."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import pytest
from conftest import REPOSITORY
from instances.bistro_folders import HandedIn, collecting_event

from datacollect.bistro.destination import opening
from datacollect.bistro.formats.log.commit import read_commit
from datacollect.bistro.formats.log.one_meaning import hex_bytes, json_file, peer_json
from datacollect.bistro.formats.receipt.receipt import read_receipt
from datacollect.bistro.formats.receipt.upload_wish import (
    commitment_json,
    commitment_of,
    metadata_of,
)
from datacollect.bistro.formats.sealing import sealed
from datacollect.bistro.upload_server import tus
from datacollect.errors import ProblemError, RefusedError

EVENT = collecting_event()
TWO_MEANINGS = [
    b'{"a": 1, "a": 2}',
    b'{"b": {"a": 1, "a": 1}}',
    b'{"a": NaN}',
    b'{"a": -Infinity}',
    '{"a": 1}'.encode("utf-16"),
    '{"a": 1}'.encode("utf-32-le"),
    b'{"a": "\\ud800"}',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": "\xff"}',
]


@pytest.mark.parametrize("data", TWO_MEANINGS)
def test_json_that_others_would_read_otherwise_is_none(data):
    assert peer_json(data) is None
    with pytest.raises(ProblemError):
        json_file(data, "it")


@pytest.mark.parametrize("data", [b'{"a": "\xc3\xbc\\ud83d\\ude00"}', b'\xef\xbb\xbf{"a": 1}'])
def test_json_of_one_meaning_is_read(data):
    assert peer_json(data) == json_file(data, "it") == json.loads(data)


def test_hexadecimal_digits_are_lowercase_and_nothing_else():
    assert hex_bytes("00ff", 2) == b"\0\xff"
    for text in ("00FF", "00 ff", "00f", "00ff00", " 00ff", "00ff\n", "", None, 7, "\uff100ff"):
        assert hex_bytes(text, 2) is None


def twice(data: bytes, key: str) -> bytes:
    """Return a JSON object in which the first value of a key is another, which Python forgets."""
    return b'{"' + key.encode() + b'": "forgotten",' + data.removeprefix(b"{")


def test_what_pushes_and_commits_has_one_meaning():
    one = HandedIn(EVENT)
    good = commitment_json(one.commitment)
    assert commitment_of(good, EVENT) == one.commitment
    with pytest.raises(ProblemError):
        commitment_of(twice(good, "salt"), EVENT)
    body = json.dumps({"entry": one.entry.hex()}).encode()
    assert read_commit(body).entries == (one.entry,)
    with pytest.raises(ProblemError):
        read_commit(twice(body, "entry"))


@pytest.mark.parametrize("value", ["AB==", "A", "AA", "AA== =", "-_-_", "AA==AA=="])
def test_metadata_is_base64_that_has_one_way_to_be_written(value):
    assert metadata_of("a AA==") == {"a": b"\0"}
    with pytest.raises(ProblemError):
        metadata_of(f"a {value}")
    with pytest.raises(RefusedError):
        tus._checksum(f"sha256 {value}")


@pytest.mark.parametrize("text", ["007", "00", "+7", "7 ", "\u0667", "", str(2**63)])
def test_lengths_and_offsets_have_no_zero_before_them(text):
    assert tus._whole({"upload-length": "7"}, "upload-length") == 7
    with pytest.raises(RefusedError):
        tus._whole({"upload-length": text}, "upload-length")


def test_what_lies_inside_a_seal_has_one_meaning():
    inner = sealed.Inner(b'{"event":"0"}', bytes(32), bytes(64))
    told = sealed._head(inner)[len(sealed.MAGIC) + 4 :]
    assert sealed._inner(told) == inner
    spaced = told.replace(b'"' + b"00" * 32 + b'"', b'"' + b"00 " * 31 + b'00"')
    uppercase = sealed._head(replace(inner, secret=b"\xab" * 32))[len(sealed.MAGIC) + 4 :]
    for wrong in (twice(told, "secret"), spaced, uppercase.replace(b"ab" * 32, b"AB" * 32)):
        assert wrong != told
        with pytest.raises(ProblemError):
            sealed._inner(wrong)
    with pytest.raises(opening._RefusedError):
        opening._header(b'{"name":"a","name":"b"}')


def test_a_receipt_is_utf_8():
    good = b'{"format": "datacollect-receipt/2"}'
    for data in (twice(good, "format"), good.decode().encode("utf-16")):
        with pytest.raises(ProblemError, match=r"given twice|must be UTF-8"):
            read_receipt(data)


# Who reads what in other words, and why nothing rests on it.
ELSEWHERE = {
    "formats/log/one_meaning.py": "the door",
    "formats/log/notes.py": "the door of Base64",
    "http/exchange.py": "two processes of one service",
    "log_service/server/sequencer.py": "compared with how it is written",
    "log_service/server/verdict_log.py": "an answer of this process",
    "auditor/verdict_reading.py": "compared with how it is written",
    "person/delivering.py": "a verdict that was read",
    "person/pushing.py": "why a bistro refuses, in words",
    "destination/accepting.py": "what this program has written",
    "destination/file_sets.py": "what this program has written",
    "destination/run/kept_files.py": "what this program has written",
    "destination/forgetting.py": "what this program has written",
    "destination/people.py": "what this program has written",
    "destination/reminding.py": "what this program has written",
    "destination/register.py": "what this program has written",
    "destination/losses.py": "what this program has written",
    "destination/run/standing.py": "what this program has written",
    "destination/run/overview_server.py": "what this program has written",
    "destination/run/event_run.py": "numbers of tickets that were read",
    "destination/batch_faults.py": "numbers of tickets that were read",
    "formats/receipt/upload_wish.py": "the number of a ticket that was read",
    "formats/event/tickets.py": "compared with how it is written",
    "formats/custody/collected.py": "a verdict that was read",
    "formats/event/kinds.py": "digits that were read",
    "joining/invitation.py": "compared with how it is written",
    "formats/sealing/keep.py": "compared with how it is written",
}
READERS = {"json.loads", "base64.b64decode", "base64.urlsafe_b64decode", "bytes.fromhex"}
IMPORTED = {"peer_json", "parse_json", "b64decode"}


def readers_in(tree: ast.Module) -> set[str]:
    """Return which lenient readers a module calls or imports."""
    called = {
        ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)
    } & READERS
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not (node.module or "").endswith("one_meaning")
        for alias in node.names
    }
    return called | (imported & IMPORTED)


def test_no_reader_of_the_wing_goes_another_way():
    wing = REPOSITORY / "datacollect" / "bistro"
    found = {
        path.relative_to(wing).as_posix()
        for path in wing.rglob("*.py")
        if readers_in(ast.parse(path.read_text()))
    }
    assert found <= ELSEWHERE.keys()
