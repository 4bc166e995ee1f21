"""The folder of feeds: names, on file systems that know less than others."""

from __future__ import annotations

import errno
import os
from contextlib import closing

import pytest

from datacollect.feeds.receiver.disk import NO_LINKS, Folder


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


def test_who_was_stopped_in_between_goes_on(tmp_path, without_links, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with closing(written(tmp_path)) as folder:
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", stopped)
            with pytest.raises(KeyboardInterrupt):
                folder.rename("a.part", "a")
        assert (tmp_path / "a").exists()
        folder.rename("a.part", "a")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"all of it")]


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
