"""The folder that is served: nothing outside, nothing by a link, nothing but files."""

from __future__ import annotations

import os
import threading

import pytest

from datacollect.transfer.agent.files import Folder, SegmentReader
from datacollect.transfer.wire.messages import (
    AS_LISTED,
    CHANGED,
    CUT_SHORT,
    Confirmation,
    FileEntry,
    Segment,
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
    assert folder.confirm([file]) == Confirmation(gone=("pipe",))
    assert read(folder, [Segment(FileEntry("pipe", 5, 0, 0), 0, 5)]) == (bytes(5), CUT_SHORT)


def test_what_has_changed_or_gone(folder, tmp_path):
    root = tmp_path / "data"
    files = [entry(root, "a"), entry(root, "x/y/b")]
    assert folder.confirm(files) == Confirmation()
    os.utime(root / "a", ns=(0, files[0].mtime_ns + 1))
    (root / "x/y/b").unlink()
    assert folder.confirm([*files, *files]) == Confirmation(changed=("a",), gone=("x/y/b",))
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
    segments = [Segment(a, 3, 7), Segment(b, 0, 5), Segment(a, 0, 0), Segment(b, 4, 1)]
    for block in (1, 2, 3, 7, 12, 13, 14, 100):
        assert read(folder, segments, block) == (b"3456789hello" + b"o", AS_LISTED)


def test_a_file_that_shrinks_is_filled_with_zeros_and_said_to_be_cut_short(folder, tmp_path):
    root = tmp_path / "data"
    a = entry(root, "a")
    (root / "a").write_bytes(b"01234")
    data, status = read(folder, [Segment(a, 0, 10), Segment(entry(root, "x/y/b"), 0, 5)])
    assert (data, status) == (b"01234" + bytes(5) + b"hello", CUT_SHORT)


def test_a_change_while_it_is_read_is_noticed(folder, tmp_path):
    root = tmp_path / "data"
    a = entry(root, "a")
    reader = SegmentReader(folder, [Segment(a, 0, 10)])
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
