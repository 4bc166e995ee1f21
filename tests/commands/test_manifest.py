"""The command manifest: what it writes and says, and its exit codes."""

from __future__ import annotations

import json
import os

from datacollect.commands.main import run

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_it_prints_the_manifest_of_a_folder_under_its_name(tmp_path, capsys):
    (tmp_path / "S1").mkdir()
    (tmp_path / "S1" / "a").write_bytes(b"abc")
    assert run(["manifest", str(tmp_path / "S1")]) == 0
    assert capsys.readouterr().out == f"host,path,bytes,sha256\nS1,a,3,{ABC}\n"


def test_what_is_not_listed_is_named_and_is_exit_1(tmp_path, capsys):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / os.fsdecode(b"\xff\n")).write_bytes(b"")
    out = str(tmp_path / "m.csv")
    assert run(["manifest", str(tmp_path), "--host", "S", "-o", out, "--json"]) == 1
    said = capsys.readouterr()
    tree = json.loads(said.out)
    assert (tree["files"], tree["bytes"], tree["known_files"]) == (0, 0, 0)
    assert [entry["path"] for entry in tree["not_listed"]] == ["'a'", r"'\udcff\n'"]
    assert "not listed: 'a': it is a symbolic link" in said.err
    assert (tmp_path / "m.csv").read_text() == "host,path,bytes,sha256\n"


def test_a_manifest_that_is_there_is_kept_without_force(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "m.csv").write_text("mine\n")
    command = ["manifest", str(tmp_path / "data"), "-o", str(tmp_path / "m.csv")]
    assert run(command) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert run([*command, "--force"]) == 0
    assert (tmp_path / "m.csv").read_text() == "host,path,bytes,sha256\n"


def test_bad_input_is_exit_2(tmp_path, capsys):
    assert run(["manifest", str(tmp_path / "absent")]) == 2
    assert "must be a folder" in capsys.readouterr().err
    assert run(["manifest", str(tmp_path), "--json"]) == 2
    assert "--json: needs -o FILE" in capsys.readouterr().err
    assert run(["manifest", "/"]) == 2
    assert "--host is missing" in capsys.readouterr().err
