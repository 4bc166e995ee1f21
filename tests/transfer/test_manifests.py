"""Manifests of folders: what is listed, what is not, and what an interrupted call leaves."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import datacollect as dc
from datacollect.errors import ProblemError
from datacollect.problem.manifest import read_manifest
from datacollect.transfer import manifests

ODD = {"b/ü.bin": b"1", "a,b;c\t\"d'": b"22", "line\nbreak": b"333", "=sum": b"", "#x": b"5" * 5}


@pytest.fixture
def folder(tmp_path):
    """A folder of files, by their paths."""

    def filled(files, name="data"):
        for path, data in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return tmp_path / name

    return filled


def described(files):
    """What a manifest says of files."""
    return {path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in files.items()}


def listed(path, host="S"):
    files = read_manifest(path)[host]
    rows = zip(files.paths, files.n_bytes.tolist(), files.sha256, strict=True)
    return {name: (n_bytes, sha256) for name, n_bytes, sha256 in rows}


def test_what_is_written_is_what_is_read(folder, tmp_path):
    out = tmp_path / "files.csv"
    one, other = folder(ODD, "one"), folder({"x": b"x"}, "other")
    found = dc.write_manifest(out, {"S": one, "T": other})
    assert (found.n_files, found.n_bytes, found.left_out) == (len(ODD) + 1, 12, ())
    assert listed(out) == described(ODD)
    assert listed(out, "T") == described({"x": b"x"})
    assert not (tmp_path / "files.csv.part").exists()


def test_paths_come_in_the_order_of_their_bytes(folder, tmp_path):
    out = tmp_path / "files.csv"
    dc.write_manifest(out, {"S": folder(dict.fromkeys(["b", "a/z", "a-b", "é", "a/b"], b""))})
    assert read_manifest(out)["S"].paths == ("a-b", "a/b", "a/z", "b", "é")


def test_what_no_manifest_takes_is_named(folder, tmp_path):
    where = folder({"good": b"1", ".datacollect-x": b"2", "n" * 200: b"3"})
    (where / "link").symlink_to("good")
    os.mkfifo(where / "pipe")
    Path(os.fsdecode(bytes(where) + b"/\xff")).touch()
    out = tmp_path / "files.csv"
    found = dc.write_manifest(out, {"S": where})
    whys = {one.path: one.why for one in found.left_out}
    assert listed(out) == described({"good": b"1"})
    assert whys.keys() == {".datacollect-x", "n" * 200, "link", "pipe", "\\xff"}
    assert "a link to 'good'" in whys["link"]
    assert "UTF-8" in whys["\\xff"]
    assert "still arriving" in whys[".datacollect-x"]


def test_patterns_choose(folder, tmp_path):
    where = folder(dict.fromkeys(["run7/a", "run7/b.tmp", "run8/a"], b"1"))
    out = tmp_path / "files.csv"
    dc.write_manifest(out, {"S": where}, include=("run7/**",), exclude=("**/*.tmp",))
    assert list(listed(out)) == ["run7/a"]


def test_it_does_not_list_itself(folder, monkeypatch):
    where = folder({"a": b"1"})
    monkeypatch.chdir(where)
    dc.write_manifest("files.csv", {"S": "."})
    dc.write_manifest("files.csv", {"S": "."})
    assert listed("files.csv") == described({"a": b"1"})


class Stop(Exception):
    """Whoever is told of progress ends it."""


def stopping(after_bytes):
    def on_read(done, total):
        if done >= after_bytes:
            raise Stop

    return on_read


def test_what_has_been_read_is_not_read_again(folder, tmp_path):
    files = {"a": b"1" * 1000, "b": b"2" * 1000, "c": b"3" * 1000}
    where, out = folder(files), tmp_path / "files.csv"
    with pytest.raises(Stop):
        dc.write_manifest(out, {"S": where}, on_read=stopping(2500))
    assert not out.exists()
    (where / "a").write_bytes(b"4" * 1000)  # it has another time now
    os.utime(where / "a", ns=(1, 1))
    found = dc.write_manifest(out, {"S": where})
    assert found.n_read_bytes == 2000
    assert listed(out) == described(files | {"a": b"4" * 1000})


@pytest.mark.parametrize("torn", ['{"host": "S", "pa', "nothing of ours\n", "[1]\n", "{}\n"])
def test_a_line_that_is_not_whole_is_not_taken(folder, tmp_path, torn):
    files = {"a": b"1", "b": b"2"}
    where, out = folder(files), tmp_path / "files.csv"
    with pytest.raises(Stop):
        dc.write_manifest(out, {"S": where}, on_read=stopping(2))
    with (tmp_path / "files.csv.part").open("a") as part:
        part.write(torn)
    with pytest.raises(Stop):
        dc.write_manifest(out, {"S": where}, on_read=stopping(2))
    assert dc.write_manifest(out, {"S": where}).n_read_bytes <= 1
    assert listed(out) == described(files)


def test_killed_it_goes_on(folder, tmp_path):
    files = {f"{i:03}": bytes([i]) * 100 for i in range(50)}
    where, out = folder(files), tmp_path / "files.csv"
    program = (
        "import sys, datacollect as dc\n"
        "def tell(done, total):\n"
        "    print(done, flush=True)\n"
        "    if done >= 3000: sys.stdin.read()\n"
        "dc.write_manifest(sys.argv[1], {'S': sys.argv[2]}, on_read=tell)\n"
    )
    command = [sys.executable, "-c", program, str(out), str(where)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        while int(process.stdout.readline()) < 3000:
            pass
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    assert dc.write_manifest(out, {"S": where}).n_read_bytes <= 2100
    assert listed(out) == described(files)


def test_two_calls_do_not_mix(folder, tmp_path):
    where, out = folder({"a": b"1"}), tmp_path / "files.csv"

    def again(*_):
        with pytest.raises(ProblemError, match="another call is making it"):
            dc.write_manifest(out, {"S": where})

    dc.write_manifest(out, {"S": where}, on_read=again)
    assert listed(out) == described({"a": b"1"})


@pytest.mark.parametrize(("n_changes", "comes"), [(1, True), (9, False)])
def test_what_changes_while_it_is_read_is_read_again_then_left_out(
    folder, tmp_path, monkeypatch, n_changes, comes
):
    where, out = folder({"a": b"1" * 10, "b": b"2"}), tmp_path / "files.csv"
    left, real = [n_changes], os.readv

    def readv(number, buffers):
        n = real(number, buffers)
        if left[0] and n == 10 + n_changes - left[0]:
            left[0] -= 1
            with (where / "a").open("ab") as file:
                file.write(b"+")
        return n

    monkeypatch.setattr(manifests.os, "readv", readv)
    found = dc.write_manifest(out, {"S": where})
    assert [one.path for one in found.left_out] == ([] if comes else ["a"])
    assert ("a" in listed(out)) == comes
    if comes:
        assert listed(out)["a"] == described({"a": b"1" * 10 + b"+"})["a"]


def test_a_full_disk_keeps_what_was_read(folder, tmp_path, monkeypatch):
    files = {"a": b"1", "b": b"2", "c": b"3"}
    where, out = folder(files), tmp_path / "files.csv"
    real, n = manifests._Kept.add, [0]

    def add(self, row):
        n[0] += 1
        if n[0] == 3:
            full = os.open("/dev/full", os.O_WRONLY)
            os.dup2(full, self._number)
            os.close(full)
        real(self, row)

    monkeypatch.setattr(manifests._Kept, "add", add)
    with pytest.raises(ProblemError, match="cannot be written") as caught:
        dc.write_manifest(out, {"S": where})
    assert caught.value.exit_code == 3
    monkeypatch.undo()
    assert dc.write_manifest(out, {"S": where}).n_read_bytes == 1
    assert listed(out) == described(files)


def test_a_file_that_cannot_be_read_is_named(folder, tmp_path, monkeypatch):
    where, out = folder({"a": b"1", "b": b"2"}), tmp_path / "files.csv"
    real = os.readv

    def readv(number, buffers):
        if Path(f"/proc/self/fd/{number}").readlink().name == "a":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(number, buffers)

    monkeypatch.setattr(manifests.os, "readv", readv)
    (left_out,) = dc.write_manifest(out, {"S": where}).left_out
    assert left_out.path == "a"
    assert "cannot be read" in left_out.why


def test_no_folder(tmp_path):
    with pytest.raises(ProblemError, match="cannot be opened as a folder"):
        dc.write_manifest(tmp_path / "files.csv", {"S": tmp_path / "nowhere"})
