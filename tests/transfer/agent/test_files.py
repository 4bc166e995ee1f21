"""The folder that is served: nothing outside, nothing by a link, nothing but files."""

from __future__ import annotations

import errno
import os
import threading

import pytest
from instances.inventories import as_nobody

from datacollect.transfer.agent.shell.files import ENDS_EARLY, Folder, SegmentReader
from datacollect.transfer.agent.shell.listing import FolderInventory
from datacollect.transfer.protocol.messages import (
    AS_LISTED,
    CHANGED,
    CUT_SHORT,
    FileEntry,
    WireConfirmation,
    WireSegment,
    parse_page,
)


@pytest.fixture(params=[True, False], ids=["openat2", "by parts"])
def folder(request, tmp_path):
    """A folder with files, beside it a secret; opened by the kernel's rule, or part by part."""
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "data"
    (root / "x/y").mkdir(parents=True)
    (root / "a").write_bytes(b"0123456789")
    (root / "x/y/b").write_bytes(b"hello")
    opened = Folder(root, use_openat2=request.param)
    yield opened
    opened.close()


def entry(root, path: str) -> FileEntry:
    found = (root / path).stat()
    return FileEntry(path, found.st_size, found.st_mtime_ns, found.st_ino)


def read(folder, segments, block: int = 7) -> tuple[bytes, int]:
    reader = SegmentReader(folder, segments)
    data = b"".join(bytes(part) for part in reader.blocks(memoryview(bytearray(block))))
    return data, reader.status


@pytest.mark.parametrize("path", ["a", "x/y/b"])
def test_files_are_opened(folder, tmp_path, path):
    assert folder.state_of(entry(tmp_path / "data", path)) == AS_LISTED


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "x/../../secret",
        "x/y/../../../secret",
        "{}/secret",
        "a/b",
        "a/",
        "no",
        "x/no",
    ],
)
def test_paths_that_lead_elsewhere(folder, tmp_path, path):
    with pytest.raises(OSError):  # noqa: PT011 - which one, the kernel decides
        folder.open(path.format(tmp_path))


@pytest.mark.parametrize("target", ["../secret", "{}/secret", "a", "/proc/self/fd/0"])
@pytest.mark.parametrize("path", ["link", "x/link"])
def test_links_are_not_followed_wherever_they_lead(folder, tmp_path, target, path):
    (tmp_path / "data" / path).symlink_to(target.format(tmp_path))
    for opening in (folder.open, folder.stat):
        with pytest.raises(OSError, match="symbolic links"):
            opening(path)


def test_folders_that_are_links_are_not_entered(folder, tmp_path):
    (tmp_path / "data/out").symlink_to(tmp_path)
    (tmp_path / "data/in").symlink_to("x")
    for path in ("out/secret", "in/y/b"):
        with pytest.raises(OSError):  # noqa: PT011
            folder.open(path)


def test_a_pipe_is_no_file_and_nobody_waits_for_it(folder, tmp_path):
    os.mkfifo(tmp_path / "data/pipe")
    file = entry(tmp_path / "data", "pipe")
    assert folder.confirm([file]) == WireConfirmation(gone=("pipe",))
    assert folder.stale([file]) == WireConfirmation(gone=("pipe",))
    assert read(folder, [WireSegment(FileEntry("pipe", 5, 0, 0), 0, 5)]) == (bytes(5), CUT_SHORT)


def test_what_has_changed_or_gone(folder, tmp_path):
    root = tmp_path / "data"
    files = [entry(root, "a"), entry(root, "x/y/b")]
    assert folder.confirm(files) == WireConfirmation()
    os.utime(root / "a", ns=(0, files[0].mtime_ns + 1))
    (root / "x/y/b").unlink()
    assert folder.confirm([*files, *files]) == WireConfirmation(changed=("a",), gone=("x/y/b",))
    # Another file under the old name, of the same size and time.
    (root / "x/y/c").write_bytes(b"HELLO")
    (root / "x/y/c").rename(root / "x/y/b")
    os.utime(root / "x/y/b", ns=(0, files[1].mtime_ns))
    other = entry(root, "x/y/b")
    assert (other.n_bytes, other.mtime_ns) == (files[1].n_bytes, files[1].mtime_ns)
    assert folder.confirm([files[1]]).changed == (
        ("x/y/b",) if other.inode != files[1].inode else ()
    )


def test_segments_follow_each_other_in_blocks_of_any_size(folder, tmp_path):
    root = tmp_path / "data"
    a, b = entry(root, "a"), entry(root, "x/y/b")
    segments = [
        WireSegment(a, 3, 7),
        WireSegment(b, 0, 5),
        WireSegment(a, 0, 0),
        WireSegment(b, 4, 1),
    ]
    for block in (1, 2, 3, 7, 12, 13, 14, 100):
        assert read(folder, segments, block) == (b"3456789hello" + b"o", AS_LISTED)


def test_a_file_that_shrinks_is_filled_with_zeros_and_said_to_be_cut_short(folder, tmp_path):
    root = tmp_path / "data"
    a = entry(root, "a")
    (root / "a").write_bytes(b"01234")
    data, status = read(folder, [WireSegment(a, 0, 10), WireSegment(entry(root, "x/y/b"), 0, 5)])
    assert (data, status) == (b"01234" + bytes(5) + b"hello", CUT_SHORT)


def test_a_change_while_it_is_read_is_noticed(folder, tmp_path):
    root = tmp_path / "data"
    a = entry(root, "a")
    reader = SegmentReader(folder, [WireSegment(a, 0, 10)])
    blocks = reader.blocks(memoryview(bytearray(5)))
    assert bytes(next(blocks)) == b"01234"
    (root / "a").write_bytes(b"abcdefghij")
    assert bytes(next(blocks)) == b"fghij"
    assert list(blocks) == []
    assert reader.status == CHANGED


def test_links_swapped_in_meanwhile_never_lead_out(folder, tmp_path):
    """A folder turns into a link to outside and back, thousands of times, while it is read."""
    root, stop = tmp_path / "data", threading.Event()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/f").write_bytes(b"secret")
    (root / "d").mkdir()
    (root / "d/f").write_bytes(b"public")
    (root / "link").symlink_to(tmp_path / "outside")

    def swap():
        while not stop.is_set():
            (root / "d").rename(root / "e")
            (root / "link").rename(root / "d")
            (root / "d").rename(root / "link")
            (root / "e").rename(root / "d")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                number = folder.open("d/f")
            except OSError:
                continue
            seen.add(os.read(number, 10))
            os.close(number)
    finally:
        stop.set()
        thread.join()
    # Whoever comes too early or too late is refused; nobody sees what lies outside.
    assert seen <= {b"public"}
    with os.fdopen(folder.open("d/f"), "rb") as file:
        assert file.read() == b"public"


# What cannot be read -------------------------------------------------------------------------


@pytest.mark.usefixtures("usual_umask")
def test_a_file_that_may_not_be_opened_is_unreadable_in_the_systems_words(folder, tmp_path):
    root = tmp_path / "data"
    files = [entry(root, "a"), entry(root, "x/y/b")]
    (root / "a").chmod(0)
    with as_nobody():
        found = folder.confirm(files)
        stale = folder.stale(files)
        data, status = read(folder, [WireSegment(files[1], 0, 5), WireSegment(files[0], 0, 10)])
    assert found == WireConfirmation(unreadable=(("a", "Permission denied"),))
    # Reading goes on with the others, and tells it at the end.
    assert stale == WireConfirmation()
    assert (data, status) == (b"hello" + bytes(10), CUT_SHORT)


def test_a_file_in_a_folder_that_may_not_be_entered_is_not_gone(folder, tmp_path):
    root = tmp_path / "data"
    file = entry(root, "x/y/b")
    (root / "x").chmod(0)
    with as_nobody():
        found = folder.confirm([file])
    (root / "x").chmod(0o755)
    assert found == WireConfirmation(unreadable=(("x/y/b", "Permission denied"),))


def test_a_read_that_failed_is_remembered_until_one_succeeds(folder, tmp_path, monkeypatch):
    root = tmp_path / "data"
    a, b = entry(root, "a"), entry(root, "x/y/b")
    failures, real = {}, os.preadv

    def preadv(number, buffers, offset):
        if os.fstat(number).st_ino == a.inode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(number, buffers, offset)

    def once():
        reader = SegmentReader(folder, [WireSegment(a, 0, 10), WireSegment(b, 0, 5)], failures)
        return b"".join(map(bytes, reader.blocks(memoryview(bytearray(99))))), reader.status

    with monkeypatch.context() as patch:
        patch.setattr(os, "preadv", preadv)
        assert once() == (bytes(10) + b"hello", CUT_SHORT)
    assert failures == {"a": "Input/output error"}
    confirmation = folder.confirm([a, b], failures)
    assert confirmation == WireConfirmation(unreadable=(("a", "Input/output error"),))
    assert once() == (b"0123456789hello", AS_LISTED)
    assert folder.confirm([a, b], failures) == WireConfirmation()


def test_a_file_that_changed_is_not_called_unreadable(folder, tmp_path):
    root = tmp_path / "data"
    a = entry(root, "a")
    (root / "a").write_bytes(b"01")
    reader = SegmentReader(folder, [WireSegment(a, 0, 10)])
    list(reader.blocks(memoryview(bytearray(99))))
    assert reader.failures == {"a": ENDS_EARLY}
    assert folder.confirm([a], reader.failures) == WireConfirmation(changed=("a",))


def test_only_so_many_failures_are_remembered(folder, monkeypatch):
    monkeypatch.setattr("datacollect.transfer.agent.shell.files.MOST_FAILURES", 3)
    failures = {}
    for i in range(9):
        segments = [WireSegment(FileEntry(f"no{i}", 5, 0, 0), 0, 5)]
        list(SegmentReader(folder, segments, failures).blocks(memoryview(bytearray(9))))
    assert list(failures) == ["no6", "no7", "no8"]


@pytest.mark.parametrize("found_at", ["open", "fstat"])
def test_a_file_that_fails_in_between_takes_no_others_with_it(
    folder, tmp_path, monkeypatch, found_at
):
    root = tmp_path / "data"
    a, b = entry(root, "a"), entry(root, "x/y/b")
    real_open, real_fstat = folder.open, os.fstat

    def fails(*_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    if found_at == "open":
        monkeypatch.setattr(folder, "open", lambda p, *f: fails() if p == "a" else real_open(p, *f))
    else:
        monkeypatch.setattr(
            os, "fstat", lambda n: fails() if real_fstat(n).st_ino == a.inode else real_fstat(n)
        )
    data, status = read(folder, [WireSegment(a, 0, 10), WireSegment(b, 0, 5)])
    assert (data[10:], status) == (b"hello", CUT_SHORT)


def test_a_file_number_beyond_63_bits_travels(folder, tmp_path, monkeypatch):
    """Some file systems use all 64 bits; the same file must be found by what travelled."""
    root = tmp_path / "data"
    found = (root / "a").stat()
    real = os.fstat

    def fstat(number):
        fields = {n: getattr(real(number), n) for n in dir(found) if n.startswith("st_")}
        return type("Found", (), fields | {"st_ino": 2**63 + 77})()

    monkeypatch.setattr(os, "fstat", fstat)
    [file] = parse_page(FolderInventory(folder).page(None, 1, None)).files
    assert file.inode == 77
    assert folder.confirm([file]) == WireConfirmation()
