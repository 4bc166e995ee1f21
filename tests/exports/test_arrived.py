"""What has arrived, from the marks and parts that scripts leave."""

from __future__ import annotations

import json

import pytest

import datacollect as dc
from datacollect.exports.arrived import progress_toml, progress_tree, read_arrived
from datacollect.problem.manifest import read_manifest

MANIFEST = "host,path,bytes\nS,a,100\nS,d/b,200\nT,c,50\n"


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "files.csv").write_text(MANIFEST)
    return read_manifest(tmp_path / "files.csv")


def made(root, host, partial, files):
    (root / ".datacollect").mkdir(parents=True)
    about = {"host": host, "destination": "D", "partial": partial}
    (root / ".datacollect" / "export.json").write_text(json.dumps(about))
    (root / ".datacollect" / "started").write_text("1000\n")
    for name, size in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    return str(root)


def test_marks_parts_and_whole_files_count_once(tmp_path, manifest):
    """At D: a whole; of b bytes 0 to 50, and 30 of the part from 150 on. At K: b's 40 to 90.

    In the backlog of S, b begins at 100. K counts for bytes 50 to 90 of b only.
    """
    partial = ".datacollect/partial/S/d/b.datacollect"
    marks = {"S/a": 100, f"{partial}-0-50": 3, f"{partial}-150-50.part": 30}
    into = made(tmp_path / "into", "D", ".datacollect/partial", marks)
    relay = made(tmp_path / "K", "K", ".", {"S/d/b.datacollect-40-50": 3, "S/d/b": 90})
    tree = progress_tree([read_arrived(folder, manifest) for folder in (relay, into)], 5.0)
    assert tree == {
        "format": "datacollect-progress/1",
        "at_s": 5.0,
        "held": [
            {"host": "D", "source": "S", "offset_bytes": 0, "bytes": 150},
            {"host": "D", "source": "S", "offset_bytes": 250, "bytes": 30},
            {"host": "K", "source": "S", "offset_bytes": 150, "bytes": 40},
        ],
    }


def test_a_file_at_a_relay_is_not_complete_because_it_is_long(tmp_path, manifest):
    relay = made(tmp_path / "K", "K", ".", {"S/a": 100})
    assert read_arrived(relay, manifest).ranges == {}


def test_a_folder_that_other_tools_filled(tmp_path, manifest):
    (tmp_path / "into" / "T").mkdir(parents=True)
    (tmp_path / "into" / "T" / "c").write_bytes(bytes(50))
    with pytest.raises(dc.ProblemError, match="no exported script has worked there; --host HOST"):
        read_arrived(str(tmp_path / "into"), manifest)
    tree = progress_tree([read_arrived(str(tmp_path / "into"), manifest, "D")], None)
    assert tree["held"] == [{"host": "D", "source": "T", "offset_bytes": 0, "bytes": 50}]
    assert tree["at_s"] == 0
    with pytest.raises(dc.ProblemError, match="is no folder"):
        read_arrived(str(tmp_path / "nowhere"), manifest)


def test_time_counts_from_the_first_start(tmp_path, manifest, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1012.5)
    into = read_arrived(made(tmp_path / "into", "D", ".datacollect/partial", {}), manifest)
    assert progress_tree([into], None) == {"format": "datacollect-progress/1", "at_s": 12.5}


@pytest.mark.parametrize("name", ['a"b', "a\\b", "tab\t", "del\x7f", "line\nfeed", "ü漢😀"])
def test_names_survive_in_toml(name):
    import tomllib

    entry = {"host": name, "source": name, "offset_bytes": 1, "bytes": 2}
    tree = {"format": "datacollect-progress/1", "at_s": 0.5, "held": [entry]}
    assert tomllib.loads(progress_toml(tree)) == tree
