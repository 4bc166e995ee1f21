"""Manifests of folders: what is listed, what is not and why, and how a start goes on."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import datacollect as dc
from datacollect.exports import inventory
from datacollect.exports.inventory import NEW, NOTES, save_manifest, stream_manifest
from datacollect.problem.manifest import LONGEST_NAME_BYTES, read_manifest

HOSTILE = (
    "a\nb",
    "a\rb",
    "a,b",
    'a"b',
    " a ",
    "a;b\t",
    "ümläut",
    "path",
    "sep=;",
    "-o",
    "日本.tar",
    "=1+1",
    "x" * LONGEST_NAME_BYTES,
)


@pytest.fixture(autouse=True)
def all_are_old(monkeypatch):
    """Files of a test are a moment old; users' are older."""
    monkeypatch.setattr(inventory, "YOUNG_NS", -(10**18))


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "data"
    made.mkdir()
    return made


def filled(folder, names, text=b"text of "):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text + os.fsencode(name))
    return folder


def listed(path, host="S"):
    """What a manifest says, and what the rows are by their own bytes."""
    return dict(zip(read_manifest(path)[host].paths, read_manifest(path)[host].sha256, strict=True))


def expected(folder, names):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_comes_back_as_it_is(name, folder, tmp_path):
    names = [name, f"in/{name}", f"{name}.d/f"] if len(name) < 100 else [name]
    made = save_manifest(filled(folder, names), "S", tmp_path / "m.csv")
    assert (made.n_files, made.not_listed) == (len(names), ())
    assert listed(tmp_path / "m.csv") == expected(folder, names)


def test_all_hostile_names_together_are_what_a_problem_reads(folder, tmp_path):
    made = save_manifest(filled(folder, HOSTILE), "S", tmp_path / "m.csv")
    tree = {
        "destination": "D",
        "manifest": "m.csv",
        "hosts": {"S": {}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5.0}],
    }
    problem = dc.Problem.from_dict(tree, base_dir=tmp_path)
    assert problem.total_bytes == made.n_bytes == sum(f.stat().st_size for f in folder.iterdir())


def test_the_rows_are_in_the_order_of_folders_and_bytes(folder, tmp_path):
    names = ["a/z", "a.b", "a-b", "b", "B", "a/b/c"]
    save_manifest(filled(folder, names), "S", tmp_path / "m.csv")
    assert list(listed(tmp_path / "m.csv")) == ["B", "a/b/c", "a/z", "a-b", "a.b", "b"]


def test_what_cannot_be_listed_is_named_and_the_rest_listed(folder, tmp_path):
    filled(folder, ["good", "x.datacollect-y", "y" * (LONGEST_NAME_BYTES + 1)])
    (folder / os.fsdecode(b"\xff.tar")).write_bytes(b"x")
    (folder / "link").symlink_to("good")
    (folder / "around").symlink_to(".")
    os.mkfifo(folder / "pipe")
    made = save_manifest(folder, "S", tmp_path / "m.csv")
    assert list(listed(tmp_path / "m.csv")) == ["good"]
    why = {os.fsencode(entry.path)[:4]: entry.why for entry in made.not_listed}
    assert why.keys() == {b"\xff.ta", b"link", b"arou", b"pipe", b"x.da", b"yyyy"}
    assert why[b"link"] == why[b"arou"] == "it is a symbolic link; links are not followed"
    assert why[b"pipe"] == "this is not a regular file"
    assert "must be Unicode text" in why[b"\xff.ta"]


def test_files_and_folders_that_cannot_be_read_are_named(folder, tmp_path, monkeypatch):
    """For root everything can be read: the system's answer is put in its place."""
    filled(folder, ["closed/a", "open/a", "secret"])
    real_scan, real_open = os.scandir, os.open

    def refusing(real, end):
        def call(path, *rest):
            if str(path).endswith(f"/{end}"):
                raise PermissionError(13, "Permission denied")
            return real(path, *rest)

        return call

    monkeypatch.setattr(inventory.os, "scandir", refusing(real_scan, "closed"))
    monkeypatch.setattr(inventory.os, "open", refusing(real_open, "secret"))
    made = save_manifest(folder, "S", tmp_path / "m.csv")
    assert list(listed(tmp_path / "m.csv")) == ["open/a"]
    assert made.not_listed == (
        ("closed", "the folder cannot be read to its end: Permission denied"),
        ("secret", "the file cannot be read: Permission denied"),
    )


def test_a_file_that_grows_while_it_is_read_is_read_again(folder, tmp_path, monkeypatch):
    """Once it grows during its first reading, then it rests; another never rests."""
    filled(folder, ["always", "once"])
    real, times = os.read, {"always": 0, "once": 0}

    def read(number, most):
        block = real(number, most)
        name = Path(f"/proc/self/fd/{number}").readlink().name
        if block and (name == "always" or times[name] == 0):
            times[name] += 1
            with (folder / name).open("ab") as file:
                file.write(b"more")
        return block

    monkeypatch.setattr(inventory.os, "read", read)
    made = save_manifest(folder, "S", tmp_path / "m.csv")
    assert listed(tmp_path / "m.csv") == expected(folder, ["once"])
    assert made.not_listed == (
        ("always", "the file has changed while it was read, 3 times in a row"),
    )
    assert times["once"] == 1


def test_a_file_that_another_replaces_by_a_pipe_is_not_waited_for(folder, tmp_path, monkeypatch):
    filled(folder, ["a"])
    real = inventory._looked_up

    def replaced(base, path, *rest):
        (folder / path).unlink()
        os.mkfifo(folder / path)
        return real(base, path, *rest)

    monkeypatch.setattr(inventory, "_looked_up", replaced)
    made = save_manifest(folder, "S", tmp_path / "m.csv")
    assert made.not_listed == (("a", "this is not a regular file"),)


class Stop(BaseException):
    """As Ctrl-C."""


def stopping_after(n):
    def tell(n_files, _n_bytes):
        if n_files == n:
            raise Stop

    return tell


def counting(monkeypatch):
    """The files whose bytes are read."""
    read, real = [], inventory._digest

    def digest(number, size, reading):
        read.append(Path(f"/proc/self/fd/{number}").readlink().name)
        return real(number, size, reading)

    monkeypatch.setattr(inventory, "_digest", digest)
    return read


def test_a_start_goes_on_where_others_ended_and_reads_no_file_twice(folder, tmp_path, monkeypatch):
    names = list("abcdefgh")
    filled(folder, names)
    read = counting(monkeypatch)
    for n in (3, 5):
        with pytest.raises(Stop):
            save_manifest(folder, "S", tmp_path / "m.csv", stopping_after(n))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data", f"m.csv{NOTES}"]
    made = save_manifest(folder, "S", tmp_path / "m.csv")
    assert read == names
    assert (made.n_files, made.n_known_files) == (8, 5)
    assert listed(tmp_path / "m.csv") == expected(folder, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "m.csv"]


def test_what_has_changed_between_two_starts_is_read_again(folder, tmp_path, monkeypatch):
    """One is another, one is gone, one is new before those; one changes keeping size and time."""
    filled(folder, list("bcdef"))
    with pytest.raises(Stop):
        save_manifest(folder, "S", tmp_path / "m.csv", stopping_after(5))
    before = (folder / "d").stat()
    filled(folder, ["a", "c"], b"other ")
    (folder / "d").write_bytes(b"TEXT OF d")
    os.utime(folder / "d", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (folder / "d").stat().st_size == before.st_size
    (folder / "e").unlink()
    read = counting(monkeypatch)
    save_manifest(folder, "S", tmp_path / "m.csv")
    assert read == ["a", "c", "d"]
    assert listed(tmp_path / "m.csv") == expected(folder, list("abcdf"))


def test_a_file_that_has_just_changed_is_not_noted(folder, tmp_path, monkeypatch):
    """Within a tick of the clock it may change again, and its times stay as they are."""
    monkeypatch.setattr(inventory, "YOUNG_NS", 10**18)
    filled(folder, list("ab"))
    with pytest.raises(Stop):
        save_manifest(folder, "S", tmp_path / "m.csv", stopping_after(2))
    assert (tmp_path / f"m.csv{NOTES}").read_bytes() == b""


@pytest.mark.parametrize("n_cut", [1, 10, 70])
def test_torn_notes_count_as_far_as_they_are_whole(n_cut, folder, tmp_path, monkeypatch):
    """The last note is cut, as by a power failure, or followed by what is none."""
    filled(folder, list("abcd"))
    with pytest.raises(Stop):
        save_manifest(folder, "S", tmp_path / "m.csv", stopping_after(3))
    notes = tmp_path / f"m.csv{NOTES}"
    notes.write_bytes(notes.read_bytes()[:-n_cut] + b"\0" * 5)
    read = counting(monkeypatch)
    with pytest.raises(Stop):
        save_manifest(folder, "S", tmp_path / "m.csv", stopping_after(4))
    assert read == ["c", "d"]
    assert save_manifest(folder, "S", tmp_path / "m.csv").n_known_files == 4
    assert listed(tmp_path / "m.csv") == expected(folder, list("abcd"))


KILLED = """
    import os, signal, sys
    from datacollect.exports import inventory
    inventory.YOUNG_NS = -(10**18)
    def tell(n_files, n_bytes):
        if n_files == 4:
            os.kill(os.getpid(), signal.SIGKILL)
    inventory.save_manifest(sys.argv[1], "S", sys.argv[2], tell)
"""


def test_a_killed_process_leaves_notes_and_no_manifest(folder, tmp_path, monkeypatch):
    names = list("abcdef")
    filled(folder, names)
    (tmp_path / "m.csv").write_text("before\n")
    command = [sys.executable, "-c", textwrap.dedent(KILLED), folder, tmp_path / "m.csv"]
    done = subprocess.run(command, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "m.csv").read_text() == "before\n"
    read = counting(monkeypatch)
    assert save_manifest(folder, "S", tmp_path / "m.csv").n_known_files == 4
    assert read == ["e", "f"]
    assert listed(tmp_path / "m.csv") == expected(folder, names)
    assert not (tmp_path / f"m.csv{NEW}").exists()


FULL = """
    import resource, sys
    from datacollect.errors import NotWrittenError
    from datacollect.exports.inventory import save_manifest
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    try:
        save_manifest(sys.argv[1], "S", sys.argv[2])
    except NotWrittenError as error:
        sys.exit(str(error))
"""


def test_where_nothing_more_can_be_written_no_manifest_is_left(folder, tmp_path):
    filled(folder, [f"{i:03}" for i in range(50)])
    command = [sys.executable, "-c", textwrap.dedent(FULL), folder, tmp_path / "m.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    remedy = "raise `ulimit -f`, or take a folder where files may be as large"
    assert done.stderr == f"{tmp_path / 'm.csv'}: cannot be written: File too large; {remedy}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", f"m.csv{NOTES}"]


def test_a_manifest_within_the_folder_does_not_list_itself(folder, monkeypatch):
    filled(folder, ["a", "m.csv.txt"])
    for _ in range(2):
        save_manifest(folder, "S", folder / "m.csv")
        assert list(listed(folder / "m.csv")) == ["a", "m.csv.txt"]


def test_two_processes_do_not_make_the_same_manifest(folder, tmp_path):
    filled(folder, ["a"])

    def again(*_):
        with pytest.raises(dc.ProblemError, match="another process is making this manifest"):
            save_manifest(folder, "S", tmp_path / "m.csv")

    assert save_manifest(folder, "S", tmp_path / "m.csv", again).n_files == 1


@pytest.mark.parametrize("name", ["absent", "file"])
def test_what_is_no_folder_is_refused_before_anything_is_written(name, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(dc.ProblemError, match=f"{name}: must be a folder that can be read"):
        save_manifest(tmp_path / name, "S", tmp_path / "m.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_lines_are_told_as_they_are_saved(folder, tmp_path):
    rows = []
    made = stream_manifest(filled(folder, HOSTILE), "S", rows.append)
    assert save_manifest(folder, "S", tmp_path / "m.csv") == made
    assert "".join(rows).encode() == (tmp_path / "m.csv").read_bytes()
