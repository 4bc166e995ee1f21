"""Names that others list never lead out of the folder."""

import os

import pytest

from datacollect.transfer.protocol.file_names import why_not_written
from datacollect.transfer.store.folder.paths import Folders, Folding, folding_of, mount_of


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        "a\0b",
        ".datacollect/state.sqlite",
        "x/.DataCollect",
        "x/.datacolle\u0063\uff54",  # a letter that normalises to t
        "\ud800",
        "x" * 256,
        "/".join(["a" * 200] * 30),
        "/".join(["a"] * 201),
    ],
)
def test_names_that_are_refused(path):
    assert why_not_written(path)


@pytest.mark.parametrize(
    "path", ["a", "a b/c\nd", "...", "-rf", "é/ü", "x" * 255, "a/.hidden", "~"]
)
def test_names_that_are_written(path):
    assert why_not_written(path) is None


@pytest.fixture
def root(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def test_folders_are_made_and_opened_step_by_step(tmp_path, root):
    folders = Folders(root)
    fd = folders.open(("S", "a", "b"), make=True)
    assert os.path.samestat(os.fstat(fd), (tmp_path / "S/a/b").stat())
    assert folders.changed == {(), ("S",), ("S", "a")}
    folders.sync()
    folders.close()


@pytest.mark.parametrize("link", ["S", "S/a"])
def test_links_are_not_followed(tmp_path, root, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(outside)
    with pytest.raises(OSError, match=link) as caught:
        Folders(root).open(("S", "a", "b"), make=True)
    assert caught.value.filename == link
    assert not list(outside.iterdir())


def test_folders_of_one_disk_lie_in_one_mount(tmp_path, root):
    (tmp_path / "a").mkdir()
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    assert not mount_of(fd).is_other(mount_of(root))
    os.close(fd)


def test_names_that_are_one_file_somewhere():
    assert Folding(case=True).key("A/b") == Folding(case=True).key("a/B")
    assert Folding().key("A") != Folding().key("a")
    assert Folding(form=True).key("é") == Folding(form=True).key("e\u0301")


def test_folding_is_found_out_and_leaves_nothing_behind(tmp_path, root):
    before = set(tmp_path.iterdir())
    found = folding_of(root)
    assert set(tmp_path.iterdir()) == before
    (tmp_path / "q").write_text("")
    assert found.case == (tmp_path / "Q").exists()
