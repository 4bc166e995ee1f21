"""Manifests: what is read, what is refused, and that files are exactly the backlogs."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.exports.manifest import read_manifest, require_fit

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
        ("host,path,bytes,md5\n", "line 1: the columns must be"),
        ("host,path,bytes\nS,a\n", "line 2: must have 3 cells, got 2"),
        ("host,path,bytes\nS,/a,1\n", "line 2: path must be relative, .* got '/a'"),
        ("host,path,bytes\nS,a/../b,1\n", "path must be relative"),
        ("host,path,bytes\nS,a//b,1\n", "path must be relative"),
        ("host,path,bytes\nS,a,1.5\n", "bytes must be a whole number .* got '1.5'"),
        ("host,path,bytes\nS,a,-1\n", "bytes must be a whole number"),
        (f"host,path,bytes\nS,a,{2**62}\n", r"below 2\*\*62"),
        ("host,path,bytes,sha256\nS,a,1,xyz\n", "sha256 must be 64 hexadecimal digits, got 'xyz'"),
        ("host,path,bytes\nS,a,1\nS,a,2\n", "line 3: 'a' of 'S' is given twice"),
        ("host,path,bytes\nS,a/b,1\nS,a,2\n", "'a' of 'S' is a file, and a folder in 'a/b'"),
        (f"host,path,bytes\nS,{'é' * 100},1\n", "may have 190 bytes, .* got 200"),
        ("host,path,bytes\nS,a.datacollect-0-1,1\n", "marks what is still arriving"),
        ('host,path,bytes\nS,"a,1\n', "not valid CSV"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(dc.ProblemError, match=f"(?s)files.csv.*{message}"):
        read_manifest(write(tmp_path, text))


def test_sums_must_be_the_backlogs(tmp_path):
    problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    require_fit(problem, read_manifest(write(tmp_path, "host,path,bytes\nS,a,4\nS,b,6\n")), "f")
    with pytest.raises(dc.ProblemError, match="f: the files of 'S' have 4 bytes, its backlog"):
        require_fit(problem, read_manifest(write(tmp_path, "host,path,bytes\nS,a,4\n")), "f")
    with pytest.raises(dc.ProblemError, match="f: the problem has no host 'SS'; did you mean 'S'"):
        require_fit(problem, read_manifest(write(tmp_path, "host,path,bytes\nSS,a,4\n")), "f")
