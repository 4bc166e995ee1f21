"""The inventory: every file once, in the order of the paths' bytes, whatever their names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import NO_PROC
from hypothesis import given
from hypothesis import strategies as st
from instances.inventories import OddFolder, as_nobody, detailed, listed

from datacollect.transfer.agent.shell import listing
from datacollect.transfer.agent.shell.files import Folder
from datacollect.transfer.agent.shell.listing import FolderInventory
from datacollect.transfer.protocol.messages import (
    FileEntry,
    FolderEntry,
    LeftOut,
    entry_line,
    parse_page,
)

# A file there says that it has 0 bytes, and has 37.
KERNELS_OWN = Path("/proc/sys/kernel/random")


def test_a_folder_sorts_as_its_paths_do(tmp_path):
    names = ["a/b", "a.b", "a-b", "a0", "a/b0", "ab", "A", "ä", "a/a/a", "\U0001f600", "\ufffd"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        if not (tmp_path / name).is_dir():
            (tmp_path / name).write_text("x") if name != "a/b" else None
    (tmp_path / "a/b").write_text("x")
    files, _ = listed(tmp_path)
    assert files == sorted(names, key=str.encode)


NAMES = st.lists(
    st.lists(st.text("ab-.0/ä\n\\", min_size=1, max_size=3), min_size=1, max_size=3),
    max_size=12,
)


@given(names=NAMES, most=st.integers(1, 5), afresh=st.booleans())
def test_pages_hold_every_file_once_in_order(tmp_path_factory, names, most, afresh):
    root, made = tmp_path_factory.mktemp("data"), set()
    for parts in names:
        path = "/".join(part for part in parts if part not in (".", ".."))
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        if not parts:
            continue
        file = root.joinpath(*parts)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
        made.add("/".join(parts))
    files, left_out = listed(root, most, afresh=afresh)
    assert files == sorted(made, key=str.encode)
    assert left_out == []


@pytest.mark.parametrize("most", [1, 2, 100])
def test_what_is_left_out_is_named(tmp_path, most):
    (tmp_path / "good").write_text("x")
    (tmp_path / "link").symlink_to("good")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"bad\xff")).write_text("x")
    folder = tmp_path / os.fsdecode(b"\xfe")
    folder.mkdir()
    (folder / "inside").write_text("x")
    files, left_out = listed(tmp_path, most, afresh=True)
    assert files == ["good"]
    assert left_out == [
        ("\\xfe/", listing.NO_UTF_8),
        ("bad\\xff", listing.NO_UTF_8),
        ("link", listing.A_LINK.format("'good'")),
        ("pipe", listing.NO_FILE),
    ]


def test_patterns_choose(tmp_path):
    for path in ("a.tar", "run7/x/b", "run7/c", "run8/d.tar"):
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_text("x")
    (tmp_path / "run8/link").symlink_to("d.tar")
    files, left_out = listed(tmp_path, patterns=("*.tar", "run7/**"))
    assert files == ["a.tar", "run7/c", "run7/x/b"]
    assert left_out == []


def test_a_page_ends_where_it_would_be_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "PAGE_BYTES", 100)
    for i in range(9):
        (tmp_path / f"{i}").write_text("x")
    folder = Folder(tmp_path)
    page = FolderInventory(folder).page(None, 10_000, None)
    folder.close()
    assert len(parse_page(page).files) < 4
    assert listed(tmp_path)[0] == list("012345678")


def test_a_folder_with_too_many_names_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "MOST_NAMES", 3)
    (tmp_path / "d").mkdir()
    for i in range(5):
        (tmp_path / f"d/{i}").write_text("x")
    files, left_out = listed(tmp_path)
    assert len(files) == 3
    assert left_out == [("d/", listing.TOO_MANY)]


def test_a_folder_that_vanishes_is_named(tmp_path):
    (tmp_path / "d").mkdir()
    folder = Folder(tmp_path)
    walk = listing.walk(folder)
    (tmp_path / "d/a").write_text("x")
    assert next(walk) == ("d/", None, True)
    (tmp_path / "d/a").unlink()
    (tmp_path / "d").rmdir()
    assert list(walk) == []
    why = "cannot be read: No such file or directory"
    assert list(listing._enter(folder, "d/", [])) == [("d/", LeftOut("d/", why), False)]
    folder.close()


@pytest.mark.parametrize("is_back", [False, True], ids=["gone", "another"])
def test_a_served_folder_that_is_lost_never_looks_empty(tmp_path, is_back):
    """It is removed, or something is mounted in its place: what is held open is empty, too."""
    served = tmp_path / "data"
    served.mkdir()
    (served / "a").write_text("x")
    folder = Folder(served)
    held = tmp_path / "held"
    served.rename(held)
    (held / "a").unlink()
    if is_back:
        served.mkdir()
        (served / "b").write_text("x")
    else:
        held.rmdir()
    page = parse_page(listing.FolderInventory(folder).page(None, 100, ("run7/**",)))
    [left_out] = page.left_out
    assert (page.files, left_out.name, page.after) == ((), ".", None)
    assert left_out.why.startswith("the folder that is served ")
    assert left_out.why.endswith("put it back, or restart the agent")
    if is_back:
        (served / "b").unlink()
        served.rmdir()
        held.rename(served)
        (served / "c").write_text("x")
        page = parse_page(listing.FolderInventory(folder).page(None, 100, None))
        assert ([file.path for file in page.files], page.left_out) == (["c"], ())
    folder.close()


@pytest.mark.skipif(not KERNELS_OWN.is_dir(), reason=NO_PROC)
def test_a_file_whose_size_the_kernel_makes_up_is_left_out_by_name():
    """Such as those in /proc: 0 bytes by its size, and something in it: never an empty file."""
    folder = Folder(KERNELS_OWN)
    page = parse_page(listing.FolderInventory(folder).page(None, 100, ("uuid",), detail=True))
    assert (page.files, [tuple(each)[:2] for each in page.left_out]) == (
        (),
        [("uuid", listing.NO_SIZE)],
    )
    folder.close()


def test_a_file_that_grows_while_it_is_looked_at_is_listed_as_it_is_then(served, monkeypatch):
    root, folder = served
    (root / "a").write_text("")
    real = os.pread

    def pread(number, n_bytes, offset):
        (root / "a").write_text("xyz")
        return real(number, n_bytes, offset)

    monkeypatch.setattr(os, "pread", pread)
    [file] = parse_page(listing.FolderInventory(folder).page(None, 100, ("a",))).files
    assert file.n_bytes == 3


def test_a_file_that_vanishes_while_its_folder_is_listed_is_not_there(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("x")
    folder = Folder(tmp_path)
    walk = listing.walk(folder)
    assert next(walk).entry.path == "a"
    (tmp_path / "b").unlink()
    assert list(walk) == [("b", None, True)]
    folder.close()


# With detail ---------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path):
    """A folder, opened as the agent opens it."""
    root = tmp_path / "data"
    root.mkdir()
    folder = Folder(root)
    yield root, folder
    folder.close()


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("afresh", [True, False])
def test_folders_are_told_with_modes_and_times(served, most, afresh):
    root, folder = served
    (root / "a/b").mkdir(parents=True)
    (root / "a.b").mkdir(mode=0o700)
    (root / "a/b/f").write_text("x")
    (root / "a/b/f").chmod(0o640)
    (root / "empty").mkdir()
    (root / "empty").chmod(0o2555)
    os.utime(root / "empty", ns=(0, 12345))
    pages = detailed(folder, most, afresh=afresh)
    folders = [entry for page in pages for entry in page.folders]
    # In the order of paths with a slash behind, as the walk meets them.
    assert [entry.path for entry in folders] == ["a.b", "a", "a/b", "empty"]
    assert folders[-1] == FolderEntry("empty", 0o2555, 12345)
    [file] = [file for page in pages for file in page.files]
    assert (file.path, file.mode) == ("a/b/f", 0o640)
    assert all(len(page.files) + len(page.folders) <= most for page in pages)


def test_of_folders_only_those_are_told_that_patterns_mean(served):
    """Those of which all is meant, empty or not, and those that hold a file that is meant."""
    root, folder = served
    for path in ("run7/in", "run7/empty", "run8/in", "x/y/z"):
        (root / path).mkdir(parents=True)
    (root / "x/y/z/f.tar").write_text("x")
    (root / "run8/in/f.tar").write_text("x")
    [page] = detailed(folder, patterns=("run7/**", "x/**/*.tar"))
    told = [entry.path for entry in page.folders]
    assert told == ["run7", "run7/empty", "run7/in", "x", "x/y", "x/y/z"]
    assert [file.path for file in page.files] == ["x/y/z/f.tar"]


def test_what_lies_before_the_first_file_of_patterns_is_told_on_the_same_page(served):
    root, folder = served
    (root / "x/y").mkdir(parents=True)
    for name in ("a.tar", "x/b.tar", "x/y/c.tar"):
        (root / name).write_text("x")
    pages = detailed(folder, 2, patterns=("**/*.tar",))
    assert [[file.path for file in page.files] for page in pages] == [
        ["a.tar"],
        ["x/b.tar"],
        ["x/y/c.tar"],
        [],
    ]
    assert [[one.path for one in page.folders] for page in pages] == [[], ["x"], ["x/y"], []]


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize("patterns", [None, ("d/*.tar",), ("**/*.tar",), ("d/**",)])
def test_an_unreadable_folder_is_named_with_the_systems_words(served, patterns):
    """Also where patterns mean some of its files alone, of which nobody knows whether they are."""
    root, folder = served
    for name in ("c", "d", "e"):
        (root / name).mkdir()
        (root / name / "f.tar").write_text("x")
    (root / "d").chmod(0)
    with as_nobody():
        [page] = detailed(folder, patterns=patterns)
    (root / "d").chmod(0o755)
    assert page.left_out == (LeftOut("d/", "cannot be read: Permission denied"),)
    wanted = ["c/f.tar", "e/f.tar"] if patterns in (None, ("**/*.tar",)) else []
    assert [file.path for file in page.files] == wanted


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize("detail", [True, False])
def test_an_unreadable_file_is_named_with_the_systems_words(served, detail):
    root, folder = served
    for name in "abc":
        (root / name).write_text("x")
    (root / "b").chmod(0)
    with as_nobody():
        page = parse_page(FolderInventory(folder).page(None, 100, None, detail=detail))
    assert page.left_out == (LeftOut("b", "cannot be read: Permission denied"),)
    assert [file.path for file in page.files] == ["a", "c"]


def test_a_file_that_fails_is_left_out_never_its_page(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text("x")
    files, left_out = listed(tmp_path, folder=OddFolder(tmp_path, {"b": 5}))
    assert files == ["a", "c"]
    assert left_out == [("b", "cannot be read: Input/output error")]


def test_names_that_are_not_utf_8_are_told_in_hexadecimal(served):
    root, folder = served
    (root / os.fsdecode(b"bad\xff")).write_text("x")
    # Another has the very name that it is told by.
    (root / "bad\\xff").write_text("x")
    pages = detailed(folder, 1, afresh=True)
    assert [one for page in pages for one in page.left_out] == [
        LeftOut("bad\\xff", listing.NO_UTF_8, b"bad\xff".hex())
    ]
    assert [file.path for page in pages for file in page.files] == ["bad\\xff"]
    assert b"hex" not in FolderInventory(folder).page(None, 100, None)


def test_a_link_says_where_it_leads_whatever_that_is(served):
    root, folder = served
    (root / "d").mkdir()
    (root / "d/l").symlink_to(os.fsdecode(b"../\xff\n"))
    [page] = detailed(folder)
    why = "a link to '../\\udcff\\n'; only what lies in the folder itself is served"
    assert page.left_out == (LeftOut("d/l", why),)


# Times ---------------------------------------------------------------------------------------


def test_a_time_beyond_2262_is_left_out_by_name_for_old_collectors_alone(served, monkeypatch):
    """Not every file system has such times: what the kernel says of one is changed."""
    root, folder = served
    for name in "abc":
        (root / name).write_text("x")
    far_ns = 330 * 365 * 86400 * 10**9 * 10
    inode, real = (root / "b").stat().st_ino, os.fstat

    def fstat(number):
        found = real(number)
        if found.st_ino != inode:
            return found
        fields = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
        return type("Found", (), fields | {"st_mtime_ns": far_ns})()

    monkeypatch.setattr(os, "fstat", fstat)
    files, left_out = listed(root, folder=Folder(root))
    assert files == ["a", "c"]
    assert left_out == [("b", listing.NO_TIME)]
    [page] = detailed(folder)
    assert [file.mtime_ns for file in page.files][1] == far_ns
    # It can be asked for by this time, too.
    assert folder.confirm(page.files).changed == ()


# Holes ---------------------------------------------------------------------------------------


def test_holes_are_told_where_there_are_any(served):
    root, folder = served
    (root / "full").write_bytes(b"x" * 100_000)
    with (root / "sparse").open("wb") as file:
        file.seek(2**20)
        file.write(b"x" * 4096)
        file.truncate(2**30)
    with (root / "void").open("wb") as file:
        file.truncate(2**40)
    [page] = detailed(folder)
    full, sparse, void = page.files
    assert full.extents is None
    assert void.extents == ()
    assert sparse.extents is not None
    assert sum(length for _, length in sparse.extents) < 2**20
    assert any(
        offset <= 2**20 and offset + length >= 2**20 + 4096 for offset, length in sparse.extents
    )
    assert b"extents" not in FolderInventory(folder).page(None, 100, None)


def test_a_file_with_too_many_holes_counts_in_full(served, monkeypatch):
    root, folder = served
    monkeypatch.setattr("datacollect.transfer.agent.shell.files.MOST_EXTENTS", 3)
    with (root / "a").open("wb") as file:
        for i in range(5):
            file.seek(i * 2**20)
            file.write(b"x")
    [page] = detailed(folder)
    assert page.files[0].extents is None


# Old collectors ------------------------------------------------------------------------------


def old_parse_page(body):
    """What collectors of the version before make of a page."""
    lines = [json.loads(line) for line in body.splitlines()]
    assert lines
    assert lines[-1].keys() == {"next"}
    after = lines.pop()["next"]
    assert after is None or isinstance(after, str)
    files, left_out = [], []
    for line in lines:
        if "left_out" in line:
            left_out.append((str(line["left_out"]), str(line.get("why", ""))))
        else:
            row = [line.get(key) for key in ("path", "bytes", "mtime_ns", "inode")]
            assert all(type(number) is int for number in row[1:])
            assert all(0 <= number < 2**63 for number in (row[1], row[3]))
            assert -(2**63) <= row[2] < 2**63
            assert line.keys() == {"path", "bytes", "mtime_ns", "inode"}
            files.append(row)
    return files, left_out, after


def test_old_collectors_get_what_they_know(served):
    root, folder = served
    (root / "d").mkdir()
    (root / "d/link").symlink_to("f")
    (root / os.fsdecode(b"bad\xff")).write_text("x")
    with (root / "d/sparse").open("wb") as file:
        file.truncate(2**20)
    inventory, files, left_out, after = FolderInventory(folder), [], [], None
    while True:
        some, others, after = old_parse_page(inventory.page(after, 1, None))
        files += some
        left_out += others
        if after is None:
            break
    found = (root / "d/sparse").stat()
    assert files == [["d/sparse", found.st_size, found.st_mtime_ns, found.st_ino]]
    assert [name for name, _ in left_out] == ["bad\\xff", "d/link"]


def test_pages_of_old_agents_are_read(served):
    entry = FileEntry("a", 5, 7, 9)
    lines = b'{"path":"a","bytes":5,"mtime_ns":7,"inode":9}\n{"left_out":"p","why":"w"}\n'
    page = parse_page(lines + b'{"next":null}\n')
    assert (page.files, page.left_out, page.folders) == ((entry,), (LeftOut("p", "w"),), ())
    assert entry_line(entry) == lines.splitlines(keepends=True)[0]
