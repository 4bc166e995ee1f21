"""Progress of scripts, from the marks and parts that they leave."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

import datacollect as dc
from datacollect.exports import arrived
from datacollect.exports.arrived import progress_toml, progress_tree, read_arrived
from datacollect.problem.manifest import read_manifest

MANIFEST = "host,path,bytes\nS,a,100\nS,d/b,200\nT,c,50\n"


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "files.csv").write_text(MANIFEST)
    return read_manifest(tmp_path / "files.csv")


def made(root, host, partial, files, **about):
    """A folder with files of these sizes, or with these texts."""
    (root / ".datacollect").mkdir(parents=True)
    about |= {"host": host, "destination": "D", "partial": partial}
    (root / ".datacollect" / "export.json").write_text(json.dumps(about))
    (root / ".datacollect" / "started").write_text("1000\n")
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(content) if isinstance(content, int) else content.encode())
    return str(root)


def mark_of(offset_bytes, n_bytes):
    """What a script says of zeros."""
    digest = hashlib.sha256(bytes(n_bytes)).hexdigest()
    return f"datacollect-piece/1 {offset_bytes} {n_bytes} {digest}\n"


PARTIAL = ".datacollect/partial/S/d/b"


def held_in(folder, manifest):
    """Return what a folder has of S, as (offset in its backlog, bytes)."""
    ranges = read_arrived(folder, manifest).ranges
    return ranges["S"].ranges() if "S" in ranges else []


def test_marks_parts_and_whole_files_count_once(tmp_path, manifest):
    """At D: a whole; of b bytes 0 to 50, and 30 of the part from 150 on. At K: b's 40 to 90.

    In the backlog of S, b begins at 100. K counts for bytes 50 to 90 of b only.
    """
    files = {
        "S/a": 100,
        PARTIAL: 50,
        f"{PARTIAL}.datacollect-0-50": mark_of(0, 50),
        f"{PARTIAL}.datacollect-150-50.part": 30,
    }
    into = made(tmp_path / "into", "D", ".datacollect/partial", files)
    marks = {"S/d/b.datacollect-40-50": mark_of(40, 50), "S/d/b": 90}
    relay = made(tmp_path / "K", "K", ".", marks)
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


@pytest.mark.parametrize("host", ["D", "K"])
def test_what_a_script_at_work_puts_in_its_place_meanwhile_ends_nothing(
    tmp_path, manifest, monkeypatch, host
):
    """All of b is there once the folder has been walked through, and its marks have gone."""
    marks = {f"{PARTIAL}.datacollect-0-50": mark_of(0, 50)}
    marks |= {f"{PARTIAL}.datacollect-50-100{each}": 30 for each in (".part", ".at", ".head")}
    folder = made(tmp_path / "into", host, ".datacollect/partial", {PARTIAL: 200, **marks})
    walk, whole = os.walk, tmp_path / "into/S/d/b"

    def walked(top):
        found = [*walk(top)]
        if not whole.exists():
            whole.parent.mkdir(parents=True)
            (tmp_path / "into" / PARTIAL).rename(whole)
            for name in marks:
                (tmp_path / "into" / name).unlink()
        return found

    monkeypatch.setattr(arrived.os, "walk", walked)
    # A relay's files count by their marks.
    assert held_in(folder, manifest) == ([(100, 200)] if host == "D" else [])


@pytest.mark.parametrize(
    "text",
    ["", "ok\n", "<html>Sign in</html>", mark_of(0, 49), "datacollect-piece/1 0 50 0\n"],
)
def test_what_is_no_mark_of_its_range_does_not_count(tmp_path, manifest, text):
    files = {PARTIAL: 50, f"{PARTIAL}.datacollect-0-50": text}
    assert held_in(made(tmp_path / "D", "D", ".datacollect/partial", files), manifest) == []


def test_what_a_purge_took_has_not_arrived(tmp_path, manifest):
    """The file is gone, or cut; or it was begun again, and has a hole where its data were."""
    mark = {f"{PARTIAL}.datacollect-0-50": mark_of(0, 50)}
    folder = made(tmp_path / "D", "D", ".datacollect/partial", mark)
    assert held_in(folder, manifest) == []
    (tmp_path / "D" / PARTIAL).write_bytes(bytes(49))
    assert held_in(folder, manifest) == []
    (tmp_path / "D" / f"{PARTIAL}.datacollect-0-50").unlink()
    random = b"\1" * 2**20
    digest = hashlib.sha256(random).hexdigest()
    sizes = read_manifest(write(tmp_path / "large.csv", f"host,path,bytes\nS,d/b,{2**21}\n"))
    name = f"{PARTIAL}.datacollect-0-{2**20}"
    (tmp_path / "D" / name).write_text(f"datacollect-piece/1 0 {2**20} {digest}\n")
    with (tmp_path / "D" / PARTIAL).open("wb") as file:
        file.seek(2**20)
        file.write(random)
    assert held_in(folder, sizes) == []
    (tmp_path / "D" / PARTIAL).write_bytes(random)
    assert held_in(folder, sizes) == [(0, 2**20)]


def write(path, text):
    path.write_text(text)
    return path


def test_what_scripts_of_the_first_version_began_does_not_count(tmp_path, manifest):
    files = {"S/a": 100, PARTIAL: 50, f"{PARTIAL}.datacollect-0-50.part": 30}
    about = {"format": "datacollect-export/1"}
    folder = made(tmp_path / "D", "D", ".datacollect/partial", files, **about)
    assert held_in(folder, manifest) == [(0, 100)]


def test_what_a_relay_sent_counts_once_the_piece_is_whole(tmp_path, manifest):
    piece = f"{PARTIAL}.datacollect-0-50"
    files = {f"{piece}.part": 30, f"{piece}.ready": mark_of(0, 50)}
    assert held_in(made(tmp_path / "D", "D", ".datacollect/partial", files), manifest) == []


@pytest.mark.parametrize(
    ("head", "counts"),
    [
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 60-99/200\r\n\r\n", True),
        (
            "HTTP/1.1 302 F\r\nA: b\r\n\r\nHTTP/2 206\r\ncontent-range: bytes 60-99/200\r\n\r\n",
            True,
        ),
        ("2026/11/25 08:26:21 DEBUG : HTTP/1.1 206 P\nContent-Range: bytes 60-99/200\n\n", True),
        ('{\n\t"Size": 200,\n', True),
        ("Content-Length: 200\r\nAccept-ranges: bytes\r\n\r\n", True),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 60-99/300\r\n\r\n", False),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 0-99/200\r\n\r\n", False),
        ("HTTP/1.1 206 P\r\nContent-Range: bytes 60-99/200\r\n", False),
        ("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", False),
        (
            "HTTP/1.1 206 P\r\nContent-Range: bytes 60-99/200\r\nContent-Encoding: gzip\r\n\r\n",
            False,
        ),
        ('{\n\t"Size": 2001,\n', False),
        ("", False),
    ],
)
def test_what_is_not_appended_yet_counts_where_its_headers_fit(tmp_path, manifest, head, counts):
    """Of b's 50 bytes from 50 on ten are appended; 20 more have come."""
    piece = f"{PARTIAL}.datacollect-50-50"
    files = {f"{piece}.part": 10, f"{piece}.at": "10\n", f"{piece}.new": 20, f"{piece}.head": head}
    folder = made(tmp_path / "D", "D", ".datacollect/partial", files)
    assert held_in(folder, manifest) == [(150, 30 if counts else 10)]


def test_what_tools_have_begun_counts_where_the_files_hash_is_known(tmp_path):
    folder = {f"{PARTIAL}.datacollect-0-200.tmp/data": 120}
    folder |= {f"{PARTIAL}.datacollect-0-200.tmp/data.aria2": 180}
    folder = made(tmp_path / "D", "D", ".datacollect/partial", folder)
    for known, counts, unproved in (("0" * 64, [(0, 120)], 0), ("", [], 120)):
        text = f"host,path,bytes,sha256\nS,d/b,200,{known}\n"
        manifest = read_manifest(write(tmp_path / "files.csv", text))
        assert held_in(folder, manifest) == counts
        assert read_arrived(folder, manifest).unproved_bytes == unproved


def test_a_file_at_a_relay_is_not_complete_because_it_is_long(tmp_path, manifest):
    relay = made(tmp_path / "K", "K", ".", {"S/a": 100})
    assert read_arrived(relay, manifest).ranges == {}


def test_a_folder_that_other_tools_filled(tmp_path, manifest):
    (tmp_path / "into" / "T").mkdir(parents=True)
    (tmp_path / "into" / "T" / "c").write_bytes(bytes(50))
    with pytest.raises(
        dc.ProblemError, match="no exported script has worked in this folder; --host HOST"
    ):
        read_arrived(str(tmp_path / "into"), manifest)
    tree = progress_tree([read_arrived(str(tmp_path / "into"), manifest, "D")], None)
    assert tree["held"] == [{"host": "D", "source": "T", "offset_bytes": 0, "bytes": 50}]
    assert tree["at_s"] == 0
    with pytest.raises(dc.ProblemError, match="is not a folder"):
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
