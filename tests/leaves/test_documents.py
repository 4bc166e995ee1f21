"""Text of files, whatever they are called, packed or not; TOML or JSON by their content."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re

import pytest

from datacollect.errors import ProblemError
from datacollect.files.documents import read_bytes, read_tree, text_of

TEXT = '{"destination": "Zürich"}\n'


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.encode("utf-16"),
        lambda text: "\ufeff".encode("utf-16-be") + text.encode("utf-16-be"),
        lambda text: text.encode("utf-32"),
        lambda text: gzip.compress(text.encode("utf-16"), mtime=0),
        lambda text: bz2.compress(text.encode()),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.toml", "a.txt", "a.json.gz"])
def test_text_is_what_its_bytes_say(tmp_path, encode, name):
    assert text_of(encode(TEXT), name) == TEXT
    (tmp_path / name).write_bytes(encode(TEXT))
    assert read_tree(tmp_path / name) == {"destination": "Zürich"}


@pytest.mark.parametrize(
    "text", ['destination = "D"', "# note\na = 1", "[hosts.D]", '[[links]]\nfrom = "S"', '"a b"=1']
)
def test_toml_is_toml_under_any_name(tmp_path, text):
    trees = []
    for name in ("a.json", "a.toml", "a"):
        (tmp_path / name).write_text(text)
        trees.append(read_tree(tmp_path / name))
    assert trees[0] == trees[1] == trees[2] != {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            gzip.compress(TEXT.encode(), mtime=0)[:-9],
            r"a\.txt: a packed file that is cut off or damaged",
        ),
        (b"\x1f\x8bnothing", r"a packed file that is cut off or damaged"),
        (b"BZh9nothing", r"a packed file that is cut off or damaged"),
        (TEXT.encode("utf-16")[:-1], r"a\.txt: begins as UTF-16, but byte 52 is malformed"),
        ("a\0".encode("utf-16"), r"line 1: must be text, got a NUL character"),
        (lzma.compress(TEXT.encode()), r"must be text, but is packed by xz; unpack it first"),
        (b"PK\3\4\x14\0", r"a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV"),
        (
            gzip.compress(gzip.compress(TEXT.encode(), mtime=0), mtime=0),
            r"must be text, but is packed twice; unpack it once",
        ),
        (TEXT.encode("latin-1"), r"line 1: must be UTF-8 text, got byte 0xfc; save it as UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(data, message):
    with pytest.raises(ProblemError, match=message):
        text_of(data, "a.txt")


def test_a_missing_file_is_taken_for_one_whose_name_is_alike_not_its_ending(tmp_path):
    for name in ("prices.toml", "v.json", "alps.toml"):
        (tmp_path / name).write_text("")
    for name, hint in [
        ("nowhere.toml", "check the path"),
        ("nope.json", "check the path"),
        ("alp.toml", "did you mean 'alps.toml'?"),
    ]:
        with pytest.raises(ProblemError, match=re.escape(f"no such file; {hint}")):
            read_bytes(tmp_path / name)
