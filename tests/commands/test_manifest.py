"""`datacollect manifest`: what it prints, and what it says of bad arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datacollect.commands.main import run
from datacollect.problem.manifest import read_manifest


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data/run7").mkdir(parents=True)
    Path("data/run7/a.bin").write_bytes(b"a" * 999)
    Path("data/b.tmp").write_bytes(b"b")
    return tmp_path


def test_files_are_listed(data, capsys):
    assert run(["manifest", "S1=data", "-o", "files.csv"]) == 0
    assert capsys.readouterr().out == "2 files, 1 kB listed in files.csv\n"
    assert read_manifest("files.csv")["S1"].paths == ("b.tmp", "run7/a.bin")


def test_patterns_are_options(data, capsys):
    for option in (["--include", "run7/**"], ["--exclude", "*.tmp"]):
        assert run(["manifest", "S1=data", "-o", "files.csv", "--force", *option]) == 0
        assert read_manifest("files.csv")["S1"].paths == ("run7/a.bin",)


def test_what_is_left_out_is_named_and_is_exit_code_1(data, capsys):
    Path("data/link").symlink_to("b.tmp")
    assert run(["manifest", "S1=data", "-o", "files.csv"]) == 1
    captured = capsys.readouterr()
    assert "left out: S1: link: a link to 'b.tmp'" in captured.err
    assert run(["manifest", "S1=data", "-o", "files.csv", "--force", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["n_files"] == 2
    assert answer["left_out"][0]["path"] == "link"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["data"], "'data': must be HOST=DIR; write S1=data"),
        (["=data"], "'=data': must be HOST=DIR; write S1=data"),
        (["S1=data", "S1=data/run7"], "host 'S1' is given twice"),
        (["S1=nowhere"], "nowhere: cannot be opened as a folder: No such file or directory"),
        (["S1=data/b.tmp"], "cannot be opened as a folder: Not a directory"),
    ],
)
def test_bad_arguments(data, capsys, given, said):
    assert run(["manifest", *given, "-o", "files.csv"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not Path("files.csv").exists()
