"""Manifests: what is read, what is refused, and that files are exactly the backlogs."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import datacollect as dc
from datacollect.problem.manifest import Files, read_manifest, require_fit, with_hashes_of_both

HASH = "AB" * 32


def write(folder, text):
    path = folder / "files.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_files_of_each_host_follow_each_other(tmp_path):
    text = f'host,path,bytes,sha256\nS,"a,\nb",3,{HASH}\nT,x,0,\nS,c/d,4,\n'
    found = read_manifest(write(tmp_path, text))
    assert found["S"].paths == ("a,\nb", "c/d")
    assert found["S"].ends.tolist() == [3, 7]
    assert found["S"].sha256 == (HASH.lower(), "")
    assert found["T"].total_bytes == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host,bytes\nS,1\n", "line 1: the columns must be host, path, bytes .* no column 'path'"),
        ("host,path,bytes,crc32\n", "line 1: the columns must be .* sha256, adler32, md5; got"),
        ("host,path,bytes,md5,md5\n", "line 1: column md5 given twice; keep one"),
        ("host,path,bytes\nS,a\n", "line 2: must have 3 fields like the header, got 2"),
        ("host,path,bytes\nS,/a,1\n", "line 2: path must be relative, .* got '/a'"),
        ("host,path,bytes\nS,a/../b,1\n", "path must be relative"),
        ("host,path,bytes\nS,a//b,1\n", "path must be relative"),
        ("host,path,bytes\nS,a,1.5\n", "bytes must be a whole number .* got '1.5'"),
        ("host,path,bytes\nS,a,-1\n", "bytes must be a whole number"),
        (f"host,path,bytes\nS,a,{2**62}\n", r"below 2\*\*62"),
        ("host,path,bytes,sha256\nS,a,1,xyz\n", "sha256 must be 64 hexadecimal digits, got 'xyz'"),
        ("host,path,bytes,adler32\nS,a,1,1234\n", "adler32 must be 8 hexadecimal .* got '1234'"),
        (f"host,path,bytes,md5\nS,a,1,{HASH}\n", "md5 must be 32 hexadecimal digits"),
        ("host,path,bytes\nS,a,1\nS,a,2\n", "line 3: 'a' of 'S' is given twice"),
        ("host,path,bytes\nS,a/b,1\nS,a,2\n", "'a' of 'S' is a file, and a folder in 'a/b'"),
        (f"host,path,bytes\nS,{'é' * 100},1\n", "may have 190 bytes, .* got 200"),
        ("host,path,bytes\nS,a.datacollect-0-1,1\n", "marks what is still arriving"),
        ('host,path,bytes\nS,"a,1\n', "line 2: not a CSV file: unexpected end of data; close"),
        ('host,path,bytes\nS,"a"b,1\n', "line 2: not a CSV file: .*; close double quotes"),
        ("host,bytes,path\nS,1,a,\n", "line 2: must have 3 fields like the header, got 4"),
        ("\n\nhost,bytes\nS,1\n", "line 3: the columns must be host, path, bytes"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(dc.ProblemError, match=f"(?s)files.csv.*{message}"):
        read_manifest(write(tmp_path, text))


@pytest.mark.parametrize(
    "data",
    [
        b"host;path;bytes\nS;a,b;3\nT;c;4\n",
        b"host\tpath\tbytes\r\nS\ta,b\t3\r\nT\tc\t4\r\n",
        b'sep=,\r\n host,path ,bytes\nS,"a,b",3\nT,c,4\n',
        b',host,path,bytes\n0,S,"a,b",3\n1,T,c,4\n',
        b'host,path,bytes,\nS,"a,b",3,\nT,c,4,\n',
        "host;path;bytes\nS;a,b;3\n\nT;c;4\n".encode("utf-16"),
        gzip.compress(b'host,path,bytes\nS,"a,b",3\nT,c,4\n', mtime=0),
    ],
    ids=["semicolons", "tabs", "sep", "counted", "empty column", "UTF-16", "packed"],
)
def test_manifests_are_read_as_people_have_them(tmp_path, data):
    path = tmp_path / "files.csv"
    path.write_bytes(data)
    found = read_manifest(path)
    assert {host: (files.paths, files.total_bytes) for host, files in found.items()} == {
        "S": (("a,b",), 3),
        "T": (("c",), 4),
    }


def test_a_path_may_end_with_a_comma_if_it_is_quoted(tmp_path):
    found = read_manifest(write(tmp_path, 'host,bytes,path\nS,1,"a,"\n'))
    assert found["S"].paths == ("a,",)


def test_checksums_stand_in_columns_of_their_own(tmp_path):
    text = f"adler32,host,md5,path,bytes\n0BADF00D,S,{'C' * 32},a,3\n,S,,b,4\n"
    found = read_manifest(write(tmp_path, text))["S"]
    assert found.adler32 == ("0badf00d", "")
    assert found.checksums("md5") == ("c" * 32, "")
    assert found.sha256 == ("", "")


def test_sums_must_be_the_backlogs(tmp_path):
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    require_fit(problem, read_manifest(write(tmp_path, "host,path,bytes\nS,a,4\nS,b,6\n")), "f")
    with pytest.raises(dc.ProblemError, match="f: the files of 'S' have 4 bytes, its backlog"):
        require_fit(problem, read_manifest(write(tmp_path, "host,path,bytes\nS,a,4\n")), "f")
    with pytest.raises(dc.ProblemError, match="f: the problem has no host 'SS'; did you mean 'S'"):
        require_fit(problem, read_manifest(write(tmp_path, "host,path,bytes\nSS,a,4\n")), "f")


OWN = f"host,path,bytes,sha256\nS,a,4,{HASH}\nS,b,6,\nT,c,0,\n"


def test_hashes_of_two_that_agree_are_joined(tmp_path):
    """Hosts may come in another order: each source's backlog is its own."""
    own = read_manifest(write(tmp_path, OWN))
    text = f"host,path,bytes,sha256\nT,c,0,\nS,a,4,\nS,b,6,{HASH}\n"
    joined = with_hashes_of_both(read_manifest(write(tmp_path, text)), own, "f")
    assert joined["S"].paths == ("a", "b")
    assert joined["S"].sha256 == (HASH.lower(), HASH.lower())
    assert joined["T"].sha256 == ("",)


def test_two_may_know_different_checksums_but_none_that_differs(tmp_path):
    own = read_manifest(write(tmp_path, "host,path,bytes,adler32\nS,a,4,00000001\n"))
    row = f"host,path,bytes,sha256,adler32\nS,a,4,{HASH},"
    joined = with_hashes_of_both(read_manifest(write(tmp_path, f"{row}\n")), own, "f")
    assert (joined["S"].sha256, joined["S"].adler32) == ((HASH.lower(),), ("00000001",))
    given = read_manifest(write(tmp_path, f"{row}00000002\n"))
    with pytest.raises(dc.ProblemError, match=r"adler32 00000001, got .*adler32 00000002"):
        with_hashes_of_both(given, own, "f")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("S,b,6,\nS,a,4,\nT,c,0,\n", "file 1 is 'a' of 4 bytes with .*, got 'b' of 6 bytes"),
        ("S,a,5,\nS,b,5,\nT,c,0,\n", "file 1 is 'a' of 4 .*, got 'a' of 5 bytes"),
        ("S,a,4,\nT,c,0,\n", "whose file 2 is 'b' of 6 bytes, got none"),
        ("S,a,4,\nS,b,6,\nS,d,0,\nT,c,0,\n", "file 3 is none, got 'd' of 0 bytes"),
        (f"S,a,4,{'CD' * 32}\nS,b,6,\nT,c,0,\n", "sha256 abab.*, got .* sha256 cdcd"),
        ("S,a,4,\nS,b,6,\n", "only the problem's has files of 'T'"),
        ("S,a,4,\nS,b,6,\nT,c,0,\nU,d,0,\n", "only it has files of 'U'"),
    ],
)
def test_two_that_contradict_each_other_are_refused(tmp_path, rows, message):
    own = read_manifest(write(tmp_path, OWN))
    given = read_manifest(write(tmp_path, f"host,path,bytes,sha256\n{rows}"))
    with pytest.raises(dc.ProblemError, match=f"^f: .*contradicts the problem's own.*{message}"):
        with_hashes_of_both(given, own, "f")


@pytest.mark.parametrize("sizes", [[3, 0, 5], [0, 0, 1, 7, 0], [8]])
def test_each_byte_of_a_range_is_in_the_file_that_holds_it(sizes):
    """Against a list with an entry per byte of the backlog: its file, and its place there."""
    paths = tuple(f"f{i}" for i in range(len(sizes)))
    files = Files(paths, np.array(sizes), ("",) * len(sizes))
    byte = [(path, k) for path, size in zip(paths, sizes, strict=True) for k in range(size)]
    for begin in range(len(byte) + 1):
        for end in range(begin, len(byte) + 1):
            parts = files.within(begin, end - begin)
            found = [
                (part["path"], part["offset_bytes"] + k)
                for part in parts
                for k in range(part["bytes"])
            ]
            assert found == byte[begin:end]
            assert len({part["path"] for part in parts}) == len(parts)
