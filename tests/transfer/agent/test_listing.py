"""The inventory: every file once, in the order of the paths' bytes, whatever their names."""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollect.transfer.agent import listing
from datacollect.transfer.agent.files import Folder
from datacollect.transfer.agent.listing import Inventory
from datacollect.transfer.protocol.messages import (
    FileEntry,
    FolderEntry,
    LeftOut,
    entry_line,
    parse_page,
)


def listed(root, most=10_000, patterns=None, *, afresh=False, folder=None):
    """Return all files, and what is left out, page by page, as old collectors ask for them."""
    folder = folder or Folder(root)
    inventory, files, left_out, after = Inventory(folder), [], [], None
    while True:
        page = parse_page(inventory.page(after, most, patterns))
        assert len(page.files) + len(page.left_out) <= most
        files += [file.path for file in page.files]
        left_out += [(one.name, one.why) for one in page.left_out]
        after = page.after
        if after is None:
            folder.close()
            return files, left_out
        if afresh:
            inventory = Inventory(folder)


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


@settings(max_examples=60)
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
    page = Inventory(folder).page(None, 10_000, None)
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


def detailed(folder, most=10_000, patterns=None, *, afresh=False):
    """Return all pages, as collectors ask for them that know of folders, modes and holes."""
    inventory, pages, after = Inventory(folder), [], None
    while not pages or after is not None:
        page = parse_page(inventory.page(after, most, patterns, detail=True))
        assert page.after is None or after is None or page.after > after
        pages.append(page)
        after = page.after
        if afresh:
            inventory = Inventory(folder)
    return pages


@pytest.fixture
def served(tmp_path):
    """A folder, opened as the agent opens it."""
    root = tmp_path / "data"
    root.mkdir()
    folder = Folder(root)
    yield root, folder
    folder.close()


@contextmanager
def as_nobody():
    """Be somebody to whom files of mode 0 are closed, where the tests run as root."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


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


@pytest.mark.parametrize("detail", [True, False])
def test_an_unreadable_file_is_named_with_the_systems_words(served, detail):
    root, folder = served
    for name in "abc":
        (root / name).write_text("x")
    (root / "b").chmod(0)
    with as_nobody():
        page = parse_page(Inventory(folder).page(None, 100, None, detail=detail))
    assert page.left_out == (LeftOut("b", "cannot be read: Permission denied"),)
    assert [file.path for file in page.files] == ["a", "c"]


class OddFolder(Folder):
    """A folder some of whose files cannot be opened, or are slow to open."""

    def __init__(self, root, failing=None, clock=None, slow_s=0.0):
        super().__init__(root)
        self.failing, self.clock, self.slow_s = failing or {}, clock, slow_s

    def open(self, path, *args):
        if path in self.failing:
            raise OSError(self.failing[path], "x")
        if self.clock is not None and path:
            self.clock.now_s += self.slow_s
        return super().open(path, *args)


class Clock:
    """A clock that stands."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


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
    assert b"hex" not in Inventory(folder).page(None, 100, None)


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
    assert b"extents" not in Inventory(folder).page(None, 100, None)


def test_a_file_with_too_many_holes_counts_in_full(served, monkeypatch):
    root, folder = served
    monkeypatch.setattr("datacollect.transfer.agent.files.MOST_EXTENTS", 3)
    with (root / "a").open("wb") as file:
        for i in range(5):
            file.seek(i * 2**20)
            file.write(b"x")
    [page] = detailed(folder)
    assert page.files[0].extents is None


# Time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("detail", [True, False])
def test_a_slow_file_system_is_listed_in_many_pages_each_soon_there(tmp_path, detail):
    """12 000 files, 3 ms each: 36 s, in pages of 2 s."""
    for i in range(12_000):
        (tmp_path / f"{i:05}").touch()
    clock = Clock()
    folder = OddFolder(tmp_path, clock=clock, slow_s=0.003)
    inventory, after, names, took_s = Inventory(folder, clock), None, [], []
    while after is not None or not names:
        began_s = clock.now_s
        page = parse_page(inventory.page(after, 10_000, None, detail=detail))
        took_s.append(clock.now_s - began_s)
        names += [file.path for file in page.files]
        after = page.after
    folder.close()
    assert len(names) == len(set(names)) == 12_000
    assert max(took_s) < 2.01
    assert 18 <= len(took_s) <= 20


def test_a_page_ends_in_time_also_where_nothing_matches(tmp_path):
    """And says where the next begins, which is further on each time."""
    for i in range(40):
        (tmp_path / f"d{i:02}").mkdir()
        (tmp_path / f"d{i:02}/f").touch()
    clock = Clock()
    folder = OddFolder(tmp_path, clock=clock, slow_s=0.3)
    after, n_pages = None, 0
    while n_pages == 0 or after is not None:
        # By sessions of their own: nothing is remembered but the place.
        page = parse_page(Inventory(folder, clock).page(after, 100, ("**/*.tar",), detail=True))
        assert (page.files, page.folders, page.left_out) == ((), (), ())
        assert after is None or page.after is None or page.after > after
        after, n_pages = page.after, n_pages + 1
    folder.close()
    assert n_pages >= 6


class SlowEntries:
    """Names of which the file system does not tell at once what they are: each takes a look."""

    def __init__(self, clock, number, fails_after=None):
        self.clock, self.entries, self.left = clock, REAL_SCANDIR(number), fails_after

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.entries.close()

    def __iter__(self):
        for entry in self.entries:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            self.clock.now_s += 0.003
            yield entry


REAL_SCANDIR = os.scandir


@pytest.mark.parametrize("afresh", [True, False])
@pytest.mark.parametrize("n", [20, 3000])
def test_a_page_ends_in_time_also_within_a_folder_that_is_slow_to_look_through(
    tmp_path, monkeypatch, n, afresh
):
    """Each page says a place further on; by sessions of their own none gets beyond 2 s of it."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for i in range(n):
            (tmp_path / folder / f"{i:04}").touch()
    clock, folder = Clock(), Folder(tmp_path)
    monkeypatch.setattr(os, "scandir", lambda number: SlowEntries(clock, number))
    inventory, pages, began_s = Inventory(folder, clock), [], []
    for _ in range(20):
        began_s.append(clock.now_s)
        after = pages[-1].after if pages else None
        pages.append(parse_page(inventory.page(after, 10_000, None, detail=True)))
        assert clock.now_s - began_s[-1] < 2.1
        assert pages[-1].after is None or after is None or pages[-1].after > after
        if pages[-1].after is None:
            break
        if afresh:
            inventory = Inventory(folder, clock)
    if n == 3000 and afresh:
        assert [page.files for page in pages] == [()] * 20
    else:
        assert len({file.path for page in pages for file in page.files}) == 2 * n
        assert [one.path for page in pages for one in page.folders] == ["a", "b"]
    folder.close()


@pytest.mark.parametrize("most", [1, 100])
@pytest.mark.parametrize("afresh", [True, False])
def test_a_folder_that_fails_halfway_is_named_and_listed_so_far(
    tmp_path, monkeypatch, most, afresh
):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        for i in range(5):
            (tmp_path / folder / f"{i}").touch()
    bad, folder = (tmp_path / "b").stat().st_ino, Folder(tmp_path)

    def scandir(number):
        fails_after = 2 if os.fstat(number).st_ino == bad else None
        return SlowEntries(Clock(), number, fails_after)

    monkeypatch.setattr(os, "scandir", scandir)
    pages = detailed(folder, most, afresh=afresh)
    files = [file.path for page in pages for file in page.files]
    assert files == sorted(set(files))
    assert [path[0] for path in files] == ["a"] * 5 + ["b"] * 2 + ["c"] * 5
    why = LeftOut("b/", "cannot be read: Input/output error")
    assert {one for page in pages for one in page.left_out} == {why}
    folder.close()


def test_what_no_pattern_means_is_not_looked_at(tmp_path):
    """No file is opened, and no folder entered, that cannot be meant."""
    for path in ("a/x.tar", "a/y.txt", "b/x.tar"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    opened = []
    folder = OddFolder(tmp_path)
    folder.open = lambda path, *args: opened.append(path) or Folder.open(folder, path, *args)
    assert listed(tmp_path, patterns=("a/*.tar",), folder=folder)[0] == ["a/x.tar"]
    assert opened == ["", "a", "a/x.tar"]


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
    inventory, files, left_out, after = Inventory(folder), [], [], None
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
