"""A mount that knows no sync is none that fails; what fails is never passed over."""

import errno
import os
import stat

import pytest

from datacollect.errors import NotWrittenError
from datacollect.files.documents import written_durably
from datacollect.files.durability import Promise, name_durably, promise_of, synchronise


def failing(monkeypatch, number, *, of_folders=True, of_files=False):
    """Have syncs of folders, or of files, fail."""
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def sync(fd, real=real):
            is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            if of_folders if is_folder else of_files:
                raise OSError(number, os.strerror(number))
            real(fd)

        monkeypatch.setattr(os, name, sync)


@pytest.fixture
def folder_fd(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_folders_are_not_synced_a_file_is_written_all_the_same(
    tmp_path, monkeypatch, folder_fd, number
):
    assert promise_of(folder_fd) == Promise(of_files=True, of_names=True)
    failing(monkeypatch, number)
    assert promise_of(folder_fd) == Promise(of_files=True, of_names=False)
    assert not synchronise(tmp_path)
    with written_durably(tmp_path / "a") as beside:
        beside.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_files_that_are_not_synced_are_told_apart_from_names(folder_fd, monkeypatch, tmp_path):
    failing(monkeypatch, errno.EINVAL, of_folders=False, of_files=True)
    assert promise_of(folder_fd) == Promise(of_files=False, of_names=True)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ESTALE])
@pytest.mark.parametrize("of_files", [True, False])
def test_a_disk_that_fails_is_never_passed_over(tmp_path, monkeypatch, number, of_files):
    path = tmp_path / "a"
    path.write_text("before")
    failing(monkeypatch, number, of_folders=not of_files, of_files=of_files)
    with pytest.raises(NotWrittenError, match=os.strerror(number)), written_durably(path) as beside:
        beside.write_text("after")
    assert not of_files or path.read_text() == "before"


@pytest.mark.parametrize("is_new", [False, True])
def test_a_file_gets_its_name_once_its_bytes_are_on_the_disk_and_its_folder_last(
    tmp_path, monkeypatch, is_new
):
    done, real = [], os.fsync
    beside, path = tmp_path / "beside", tmp_path / "path"
    beside.write_text("whole")

    def fsync(fd):
        kind = "folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "bytes"
        done.append((kind, path.exists()))
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    name_durably(beside, path, is_new=is_new)
    assert done == [("bytes", False), ("folder", True)]
    assert path.read_text() == "whole"
    assert beside.exists() == is_new


def test_nothing_is_named_over_what_must_not_be_there(tmp_path):
    (tmp_path / "beside").write_text("new")
    (tmp_path / "path").write_text("before")
    with pytest.raises(FileExistsError):
        name_durably(tmp_path / "beside", tmp_path / "path", is_new=True)
    assert (tmp_path / "path").read_text() == "before"


def test_a_mount_that_knows_no_sync_fails_where_others_were_promised_something(
    tmp_path, monkeypatch
):
    failing(monkeypatch, errno.EINVAL)
    (tmp_path / "beside").write_text("whole")
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        name_durably(tmp_path / "beside", tmp_path / "path", is_required=True)
