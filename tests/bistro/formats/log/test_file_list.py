"""Several files of one content: by hand, what they are committed to, and what no list of files is.

What the library says is held against hashes that are put together here, and against the verifier
that was written from the page alone.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import random
from dataclasses import replace
from functools import partial

import pyrage
import pytest
from judges import bistro_verifier as judge

from datacollect.bistro.formats.log.content import (
    content_code,
    content_digest,
    file_openings,
    header_bytes,
    n_files,
)
from datacollect.bistro.formats.log.file_list import FileListError, frame
from datacollect.bistro.formats.log.file_names import FileNames, name_fault
from datacollect.bistro.formats.log.opening import Among
from datacollect.bistro.formats.receipt.content_proof import proofs_of_files, read_content_proof
from datacollect.bistro.formats.sealing.sealed import Inner, open_sealed, seal
from datacollect.errors import ProblemError

EVENT, SECRET = bytes(range(32)), bytes(range(32, 64))
FILES = [("b.csv", b"1,2\n"), ("empty", b""), ("src/Übung.py", b"pass\n" * 9)]
IDENTITY = pyrage.x25519.Identity.generate()


def header_of(count=3, **more):
    told = {"content": "datacollect-content/3", "event": EVENT.hex(), "files": count}
    return header_bytes(told | {"ticket": "07" * 16} | more)


HEADER = header_of()


def body_of(files=FILES):
    return b"".join(frame(name, len(data)) + data for name, data in files)


def code_of(body, header=HEADER, step=7):
    code = content_code(SECRET, header)
    for at in range(0, len(body), step):
        code.update(body[at : at + step])
    return code


def openings_of(files=FILES, header=HEADER):
    found = code_of(body_of(files), header).files()
    names, codes = [each.name for each in found], [each.code for each in found]
    return [*file_openings(SECRET, header, names, codes)]


def mac(key, message):
    return hmac.digest(key, message, "sha256")


def sha(data):
    return hashlib.sha256(data).digest()


def test_several_files_are_committed_to_by_these_bytes():
    """Three leaves: the root is over the first two, and the third beside them."""
    key = partial(mac, SECRET)
    label = b"datacollect-content-key/2\n"
    codes = []
    for i, (name, data) in enumerate(FILES):
        named = mac(key(label + b"name %d" % i), name.encode())
        codes.append(mac(key(label + b"file %d" % i), b"datacollect-file/3\n" + named + data))
    one, two, three = (sha(b"\0" + code) for code in codes)
    root = sha(b"\1" + sha(b"\1" + one + two) + three)
    ticket = mac(key(label + b"ticket"), b"\7" * 16)
    p = sha(b"datacollect-content/3\n" + EVENT + ticket + b"\0\0\0\3" + root)
    code = code_of(body_of())
    assert code.digest() == p == content_digest(SECRET, HEADER, [body_of()])
    assert [each.code for each in code.files()] == codes
    assert [(each.name, each.n_bytes) for each in code.files()] == [
        ("b.csv", 4),
        ("empty", 0),
        ("src/Übung.py", 45),
    ]
    assert [each.path for each in openings_of()] == [
        (two, three),
        (one, three),
        (sha(b"\1" + one + two),),
    ]
    assert judge.content_of(SECRET, HEADER, body_of()) == p
    assert n_files(HEADER) == 3


def test_each_file_opens_what_all_are_committed_to_and_nothing_else_does():
    p = code_of(body_of()).digest()
    for opening, (_, data) in zip(openings_of(), FILES, strict=True):
        assert opening.digest([data[:1], data[1:]]) == p
        assert opening.digest([data + b"x"]) != p
        for other in openings_of():
            moved = replace(opening, among=other.among)
            assert (moved.digest([data]) == p) == (other.among == opening.among)
        # The path of the third fits a tree of two, too: the count is bound.
        for count in (2, 4, 5):
            shorter = replace(opening, among=Among(1, count))
            assert shorter.digest([data]) != p


def test_a_proof_of_one_file_shows_nothing_of_the_others():
    """Neither keys nor codes of names stand in it; the hashes on its path are of keyed codes."""
    proofs = [*proofs_of_files(b"e" * 32, Inner(HEADER, SECRET), code_of(body_of()).files())]
    for proof in proofs:
        assert read_content_proof(proof.data) == proof
        assert proof.among.text == f"file {proof.among.index + 1} of 3"
        for other in proofs:
            if other is not proof:
                assert other.key.hex().encode() not in proof.data
                assert other.name.hex().encode() not in proof.data
    # The same bytes under the same name, twice in two drafts, have nothing in common.
    again = [("b.csv", b"1,2\n"), ("c.csv", b"1,2\n")]
    one, other = openings_of(again, header_of(2))
    assert one.key != other.key
    assert one.path != other.path


LIES = {
    "fewer files than it says": body_of(FILES[:2]),
    "nothing": b"",
    "cut within a file": body_of()[:-1],
    "cut within a frame": body_of() + b"\0\0",
    "more files than it says": body_of([*FILES, ("d", b"")]),
    "bytes behind the last": body_of() + b"x",
    "a file that ends behind the body": body_of(FILES[:2]) + frame("c", 2**62) + b"x",
    "more bytes than there are": body_of(FILES[:2]) + frame("c", 2**63) + b"x",
    "a name of 2^32 bytes": b"\xff" * 4 + b"x",
    "an empty name": body_of(FILES[:2]) + frame("", 0),
    "10 000 empty names": frame("", 0) * 10_000,
    "a name twice": body_of([("a", b""), ("a", b""), ("b", b"")]),
    "a folder that is a file": body_of([("a", b""), ("a/b", b""), ("c", b"")]),
    "a file that is a folder": body_of([("a/b", b""), ("a", b""), ("c", b"")]),
    "a folder that is a proof": body_of([("a", b""), ("a.proof/b", b""), ("c", b"")]),
    "a proof that is a folder": body_of([("b/a.proof/c", b""), ("b/a", b""), ("c", b"")]),
    "up": body_of([("../a", b""), ("b", b""), ("c", b"")]),
    "from the root": body_of([("/etc/passwd", b""), ("b", b""), ("c", b"")]),
    "a zero": body_of([("a\0b", b""), ("b", b""), ("c", b"")]),
    "a backslash": body_of([("a\\b", b""), ("b", b""), ("c", b"")]),
    "no UTF-8": body_of(FILES[:2]) + b"\0\0\0\1\xff" + bytes(8),
    "a long part": body_of([("é" * 128, b""), ("b", b""), ("c", b"")]),
    "a long name": body_of([("/".join(["a" * 100] * 11), b""), ("b", b""), ("c", b"")]),
    "many parts": body_of([("/".join("a" * 17), b""), ("b", b""), ("c", b"")]),
}


@pytest.mark.parametrize("body", LIES.values(), ids=LIES)
def test_what_is_no_list_of_files_is_refused_by_the_library_and_by_the_page(body):
    with pytest.raises(FileListError, match=r"body"):
        code_of(body, step=1 + len(body) // 50).digest()
    with pytest.raises((ValueError, UnicodeDecodeError)):
        judge.list_of(SECRET, HEADER, body)


def deep(n_folders):
    """Return names that have so many folders in all, 15 each as far as that goes."""
    names = [f"{i:x}" + "/d" * 14 + "/f" for i in range(n_folders // 15)]
    return [*names, "z/" * (n_folders % 15) + "f"]


def test_a_body_makes_ten_thousand_folders_at_most():
    """Where each file may lie in 15 folders of its own, a short body would make 150 000."""
    for n_folders in (10_000, 10_001):
        files = [(name, b"") for name in deep(n_folders)]
        header, body = header_of(len(files)), body_of(files)
        if n_folders == 10_000:
            assert code_of(body, header, 2**16).digest() == judge.content_of(SECRET, header, body)
            continue
        with pytest.raises(FileListError, match="more than 10000 folders"):
            code_of(body, header, 2**16)
        with pytest.raises((ValueError, UnicodeDecodeError)):
            judge.list_of(SECRET, header, body)


HEADERS = {
    "one file": header_of(1),
    "no file": header_of(0),
    "a thousand million files": header_of(10**9),
    "10 001 files": header_of(10_001),
    "three and a half": header_of(3.5),
    "true": header_of(True),
    "a word": header_of("3"),
    "a name": header_of(name="a"),
    "spaces": HEADER.replace(b",", b", ", 2).replace(b", ", b",", 1),
    "short ticket": header_of(ticket="07"),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_refused_before_anything_of_the_body_is_read(header):
    with pytest.raises(FileListError, match=r"must be JSON as it is sealed, with event, files"):
        content_code(SECRET, header)


@pytest.mark.parametrize("name", ["a", "Übung 1.txt", "src/a b/…", "a" * 255, "a..b", ".x", "~"])
def test_names_of_files_as_people_have_them_are_taken(name):
    assert name_fault(name) is None
    assert FileNames().fault(name) is None


def test_several_files_are_sealed_and_opened_as_one_body():
    out, back = io.BytesIO(), io.BytesIO()
    inner = Inner(HEADER, SECRET)
    told = seal(io.BytesIO(body_of()), out, inner, [str(IDENTITY.to_public())])
    assert (told.content_p, told.files) == (code_of(body_of()).digest(), code_of(body_of()).files())
    found = open_sealed(io.BytesIO(out.getvalue()), back, [str(IDENTITY)])
    assert (found.content_p, back.getvalue(), found.n_bytes) == (
        told.content_p,
        body_of(),
        len(body_of()),
    )


@pytest.mark.parametrize("lie", ["bytes behind the last", "up", "cut within a file"])
def test_a_sealed_body_that_lies_is_told_from_one_that_does_not_open(lie):
    inner = Inner(HEADER, SECRET)
    with pytest.raises(FileListError):
        seal(io.BytesIO(LIES[lie]), io.BytesIO(), inner, [str(IDENTITY.to_public())])
    head = b'{"header":%s,"secret":"%s","ticket_signature":null}' % (
        b'"' + HEADER.replace(b'"', b'\\"') + b'"',
        SECRET.hex().encode(),
    )
    plain = b"datacollect-sealed/2\n" + len(head).to_bytes(4, "big") + head + LIES[lie]
    sealed = pyrage.encrypt(plain, [IDENTITY.to_public()])
    with pytest.raises(FileListError):
        open_sealed(io.BytesIO(sealed), io.BytesIO(), [str(IDENTITY)])


def test_bodies_that_are_changed_at_random_mean_the_same_to_both():
    chance = random.Random(50)
    n_taken = 0
    for _ in range(200):
        changed = bytearray(body_of())
        at = chance.randrange(len(changed))
        changed[at : at + chance.choice([0, 1])] = chance.choice([b"", b"x", b"\0", b"/"])
        try:
            mine = code_of(bytes(changed)).digest()
        except ProblemError:
            mine = None
        try:
            theirs = judge.list_of(SECRET, HEADER, bytes(changed))["content_p"]
        except ValueError:
            theirs = None
        assert mine == theirs, bytes(changed)
        n_taken += mine is not None
    assert 0 < n_taken < 200
