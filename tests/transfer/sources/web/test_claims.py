"""Claims of one server, judged together; no sockets, and contents by hand."""

import pytest

from datacollect.files.media import ContentKind
from datacollect.transfer.protocol.source import BEGIN_BYTES, Copy
from datacollect.transfer.sources.web.core.genuine import SAMPLE, Claim, Claims
from datacollect.transfer.sources.web.core.messages import FileAnswer, Worth
from datacollect.transfer.sources.web.core.urls import target_of
from datacollect.transfer.sources.web.core.versions import Version

BASE = "https://x.example/"
LOGIN = "https://x.example/login?next="


def page(etag=None, landed=None, n_bytes=700, begins=b"<", media=ContentKind.HTML):
    where = None if landed is None else target_of(landed)
    return FileAnswer(Worth.GOOD, "", n_bytes, Version(etag), where, media=media, begins=begins)


def claim(path, answer, copy=None):
    return Claim(path, target_of(BASE + path), answer, copy)


def judged(served, copies=None, etag=None):
    """Why files with these bytes are not taken, by path; what is looked at is there."""
    claims = Claims([target_of(BASE + path) for path in served])
    for path, data in served.items():
        own = {"etag": etag(path)} if etag is not None else {}
        answer = page(n_bytes=len(data), begins=data[:1], **({"media": None} | own))
        copy = (copies or {}).get(path)
        claims.add(claim(path, answer, None if copy is None else Copy(len(copy), copy)))
    n_looks = 0
    while paths := claims.to_look_at():
        for path in paths:
            claims.looked(path, served[path][:BEGIN_BYTES])
            n_looks += 1
    return {path: why for path in claims.held() if (why := claims.why(path))}, n_looks


@pytest.mark.parametrize(
    ("answers", "are_pages"),
    [
        ([page('"p"')] * 2, True),
        ([page('"p"'), page('W/"p"')], True),
        ([page(), page()], False),
        ([page(), page(), page()], True),
        ([page('"p"'), page('"q"')], False),
        ([page(None, LOGIN + "a", 700), page(None, LOGIN + "b", 701)], True),
        ([page(None, f"{BASE}1/f0.bin", 700), page(None, f"{BASE}2/f1.bin", 701)], False),
        ([page('"p"', begins=b"\x1f")] * 3, False),
        ([page(n_bytes=n) for n in (1, 2, 3)], False),
    ],
)
def test_what_is_one_page_for_many_files(answers, are_pages):
    claims = Claims()
    for n, answer in enumerate(answers):
        claims.add(claim(f"f{n}.bin", answer))
    whys = [claims.why(path) for path in claims.held()]
    assert [why is not None for why in whys] == [are_pages] * len(whys)
    assert whys or not are_pages


def test_one_file_that_is_asked_for_twice_is_one():
    claims = Claims()
    assert claims.add(claim("f.bin", page('"p"')))
    assert claims.add(claim("f.bin", page('"p"')))
    assert claims.why("f.bin") is None


def test_pages_that_are_called_so_are_none():
    claims = Claims()
    for n in range(3):
        claims.add(claim(f"{n}.html", page('"p"')))
    assert not any(claims.why(path) for path in claims.held())


@pytest.mark.parametrize(("to", "is_elsewhere"), [("/login", True), ("/mirror/f.bin?s=1", False)])
def test_a_redirect_to_the_same_name_leads_to_the_file(to, is_elsewhere):
    claims = Claims()
    claims.add(claim("a/f.bin", page(landed=f"https://x.example{to}")))
    assert (claims.why("a/f.bin") is not None) == is_elsewhere


DATA = [b"\x93" + bytes([n]) * 999 for n in range(40)]
ERROR = b'{"error": {"code": 401, "message": "token expired"}}'


def test_equal_documents_are_no_files_where_their_names_do_not_promise_them():
    found, _ = judged({"a.bin": ERROR, "b.bin": ERROR, "c.bin": DATA[0], "d": b"{}"})
    assert found.keys() == {"a.bin", "b.bin"}
    assert "the same JSON for 2 files ('401: token expired')" in found["a.bin"]
    assert judged({"a.json": b'{"n": 1}', "b.json": b'{"n": 1}'})[0] == {}


def test_equal_errors_are_no_files_whatever_their_names_promise():
    for text in (b"Error: quota exceeded", ERROR, b"<Error><Code>NoSuchKey</Code></Error>"):
        assert len(judged({"a.txt": text, "b.csv": text, "c.json": text, "d.xml": text})[0]) == 4


@pytest.mark.parametrize("begins", [b"<!DOCTYPE html>", b"<?xml version='1.0'?>", b'{"a": "'])
def test_long_documents_are_no_files_either(begins):
    """Whatever type the server says; pages to log in are longer than what is looked at."""
    document = begins + b"x" * 2 * BEGIN_BYTES
    found, _ = judged({"a.bin": document, "b.bin": document, "c.bin": DATA[0] * 40})
    assert found.keys() == {"a.bin", "b.bin"}
    # For two names they differ, and neither was a document when it came.
    later = {"a.bin": document, "b.bin": document + b"x"}
    assert judged(later, dict(zip(later, DATA, strict=False)))[0].keys() == later.keys()


def test_long_files_whose_names_promise_documents_are_not_looked_at():
    files = {f"{n}.json": b'{"n": 1}' + b" " * 2 * BEGIN_BYTES for n in range(9)}
    assert judged(files) == ({}, 0)


def test_errors_that_differ_by_the_name_alone_are_the_same():
    told = {path: b"<Error>no access to " + path.encode() + b"</Error>" for path in ("a/1", "b/22")}
    assert judged(told)[0].keys() == told.keys()


@pytest.mark.parametrize(
    "served",
    [
        dict.fromkeys(("a.bin", "b.bin", "c"), DATA[0]),
        dict.fromkeys(("a.bin", "b.bin"), b""),
        dict.fromkeys(("a.dat", "b.dat"), b"0.25 0.5\n"),
        {"a.bin": ERROR},
        {"a.bin": ERROR, "b.bin": b'{"id": 1}'},
    ],
)
def test_equal_files_and_single_documents_are_taken_at_a_first_start(served):
    assert judged(served)[0] == {}


def pointer(digit):
    oid = digit * 64
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 5\n".encode()


def test_one_pointer_for_all_is_no_file_and_pointers_that_differ_are_and_are_told():
    served = {"a.bin": pointer("a"), "b.bin": pointer("a")}
    assert len(judged(served)[0]) == 2
    # A duplicate among files that are pointers each of its own.
    served |= {"c.bin": pointer("c")}
    claims = Claims()
    for path, data in served.items():
        claims.add(claim(path, page(n_bytes=len(data), begins=b"v", media=None)))
        claims.looked(path, data)
    assert [claims.why(path) for path in claims.held()] == [None] * 3
    assert claims.pointers() == ["a.bin", "b.bin", "c.bin"]


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        (DATA[0], b"hello", "it is text now, and was data"),
        (DATA[0], ERROR, "it is JSON now ('401: token expired'), and was data"),
        (DATA[0], b"<a/>", "it is XML now, and was data"),
        (DATA[0], b"<html>", "it is HTML now, and was data when it came: a login page?"),
        (DATA[0], pointer("a"), "it is a git-lfs pointer now"),
        (b"1,2\n", ERROR, "it is JSON now"),
        (b"1,2\n", b"Access denied", "it now mentions an error ('Access denied')"),
        (b"1,2\n", b"1,2\n3,4\n", None),
        (ERROR, ERROR[:-1] + b" }", None),
        (DATA[0], DATA[1], None),
        (DATA[0], DATA[1][:5], None),
        (DATA[0], b"", "it is empty now, and had"),
        (pointer("a"), pointer("b"), None),
    ],
)
def test_what_may_replace_a_verified_copy(was, now, why):
    found, _ = judged({"a": now}, {"a": was})
    assert (found == {}) if why is None else (why in found["a"])
    assert why is None or "start with --overwrite" in found["a"]


def test_one_answer_for_copies_that_differed_replaces_none_of_them():
    names = ["a", "b", "c"]
    copies = dict(zip(names, DATA, strict=False))
    for now in (b"\x89PNG" + bytes(90), b""):
        found, _ = judged(dict.fromkeys(names, now), copies)
        assert found.keys() == set(names)
        assert "for 3 files that differed" in found["a"]
    # Duplicates stay duplicates.
    assert judged(dict.fromkeys(names, DATA[9]), dict.fromkeys(names, DATA[0]))[0] == {}


def test_copies_are_not_replaced_by_what_shrank_together_and_are_by_one_that_shrank():
    copies = {str(n): DATA[n] for n in range(10)}
    shrunk = {name: DATA[20 + int(name)][:400] for name in copies}
    assert len(judged(shrunk, copies)[0]) == 10
    others = {name: DATA[30 + int(name)] for name in copies}
    assert judged(others | {"1": shrunk["1"]}, copies)[0] == {}
    # Four of ten are a minority.
    assert judged(others | {n: shrunk[n] for n in "1234"}, copies)[0] == {}
    assert len(judged(others | {n: shrunk[n] for n in "12345"}, copies)[0]) == 5


def test_few_are_looked_at_unless_some_are_equal():
    """Texts of one size: eight are looked at, by size and kind at once; all where two are equal."""
    texts = {f"{n}.dat": b"%04d" % (n + 1000) for n in range(100)}
    found, n_looks = judged(texts)
    assert (found, n_looks) == ({}, SAMPLE)
    _, n_looks = judged(texts | {"0.dat": b"1005"})
    assert n_looks == 100
    # By their ETags they differ; some are looked at all the same, in case these are new each time.
    assert judged(texts, etag=lambda path: f'"{path}"') == ({}, SAMPLE)
    # Binary files need no look.
    assert judged({str(n): DATA[n] for n in range(40)}) == ({}, 0)


def test_what_cannot_be_looked_at_is_judged_by_its_media_type():
    claims = Claims()
    answer = page(n_bytes=len(ERROR), begins=b"{", media=ContentKind.JSON)
    claims.add(claim("a.bin", answer, Copy(1000, DATA[0])))
    assert claims.to_look_at() == ["a.bin"]
    claims.looked("a.bin", None)
    assert "it is JSON now, and was data" in claims.why("a.bin")
