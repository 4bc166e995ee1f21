"""The folder of feeds: names, on file systems that know less than others."""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import closing

import pytest

from datacollect.feeds.receiver.disk import NO_LINKS, PIECE_BYTES, Folder


@pytest.fixture(params=NO_LINKS)
def without_links(monkeypatch, request):
    """As FAT and some folders of other hosts are."""

    def link(*_, **__):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(os, "link", link)


def written(folder, name: str = "a.part") -> Folder:
    found = Folder(folder)
    found.write(name, 0, [b"all of it"])
    return found


def test_a_file_gets_its_name_without_a_second_one(tmp_path, without_links):
    with closing(written(tmp_path)) as folder:
        folder.rename("a.part", "a")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"all of it")]


def test_what_has_the_name_stays(tmp_path, without_links):
    (tmp_path / "a").write_bytes(b"")
    with closing(written(tmp_path)) as folder, pytest.raises(FileExistsError):
        folder.rename("a.part", "a")
    assert (tmp_path / "a").read_bytes() == b""
    assert (tmp_path / "a.part").read_bytes() == b"all of it"


def stopped(*_):
    raise KeyboardInterrupt


def test_who_was_stopped_in_between_goes_on(tmp_path, without_links, monkeypatch):
    with closing(written(tmp_path)) as folder:
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", stopped)
            with pytest.raises(KeyboardInterrupt):
                folder.rename("a.part", "a")
        assert (tmp_path / "a").exists()
        folder.rename("a.part", "a")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"all of it")]


def test_a_loss_of_power_in_between_may_leave_an_empty_file(tmp_path, without_links, monkeypatch):
    """FAT keeps no order: a name may be there, and what was written under it not."""
    with closing(written(tmp_path)) as folder:
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", stopped)
            with pytest.raises(KeyboardInterrupt):
                folder.rename("a.part", "a")
        os.truncate(tmp_path / "a", 0)
        folder.rename("a.part", "a")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"all of it")]


def test_a_full_disk_in_between_is_no_end(tmp_path, without_links, monkeypatch):
    opened, n_left = os.open, [1]

    def full(path, flags, *more, **named):
        if flags & os.O_EXCL and n_left:
            n_left.pop()
            os.close(opened(path, flags, *more, **named))
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", full)
    with closing(written(tmp_path)) as folder:
        with pytest.raises(OSError, match="No space"):
            folder.rename("a.part", "a")
        folder.rename("a.part", "a")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"all of it")]


def test_what_somebody_wrote_in_between_stays(tmp_path, without_links, monkeypatch):
    with closing(written(tmp_path)) as folder:
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", stopped)
            with pytest.raises(KeyboardInterrupt):
                folder.rename("a.part", "a")
        (tmp_path / "a").write_bytes(b"theirs")
        for _ in range(2):
            with pytest.raises(FileExistsError):
                folder.rename("a.part", "a")
    assert (tmp_path / "a").read_bytes() == b"theirs"


def test_a_link_that_fails_for_another_reason_is_an_error(tmp_path, monkeypatch):
    def link(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", link)
    with closing(written(tmp_path)) as folder, pytest.raises(OSError, match="Input/output"):
        folder.rename("a.part", "a")
    assert [each.name for each in tmp_path.iterdir()] == ["a.part"]


def test_nothing_is_written_into_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "a.part")
    with closing(Folder(tmp_path)) as folder:
        assert folder.read("a.part") == b""
        with pytest.raises(FileExistsError, match="no file"):
            folder.write("a.part", 0, [b"x"])


def test_what_is_synced_and_done_does_not_stay_in_memory(tmp_path, monkeypatch):
    """Else a feed of days takes the memory of all other programs; only whole pages can go."""
    done = []
    monkeypatch.setattr(os, "fdatasync", lambda _: done.append("synced"))
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *what: done.append(what))
    page = mmap.PAGESIZE
    with closing(written(tmp_path)) as folder:
        folder.write("a.part", 0, [bytes(3 * page)])
        for done_bytes in (0, page - 1, 2 * page + 5, 2 * page + 6, 3 * page):
            folder.sync("a.part", done_bytes=done_bytes)
    let_go = [(0, n * page, os.POSIX_FADV_DONTNEED) for n in (2, 3)]
    assert done == [*["synced"] * 3, let_go[0], *["synced"] * 2, let_go[1]]


def test_a_piece_that_was_let_go_of_in_part_is_so_again(tmp_path, monkeypatch):
    """The system keeps such a piece as a whole."""
    let_go = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, begin, n, __: let_go.append((begin, n)))
    with closing(written(tmp_path)) as folder:
        for n in (2, 3):
            folder.sync("a.part", done_bytes=n * PIECE_BYTES)
    assert let_go == [(0, 2 * PIECE_BYTES), (PIECE_BYTES, 2 * PIECE_BYTES)]


def test_a_file_system_that_lets_nothing_go_is_no_end(tmp_path, monkeypatch):
    def unknown(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", unknown)
    with closing(written(tmp_path)) as folder:
        folder.sync("a.part", done_bytes=2**20)
    assert (tmp_path / "a.part").read_bytes() == b"all of it"
