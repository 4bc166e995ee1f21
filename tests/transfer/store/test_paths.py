"""Names that others list never lead out of the folder."""

import os

import pytest

from datacollect.transfer.store.paths import (
    Folders,
    Folding,
    folding_of,
    place,
    size_there,
    why_not_written,
)


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


def incoming(tmp_path, name="1", text="x"):
    folder = tmp_path / "incoming"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return os.open(folder, os.O_RDONLY)


def test_a_file_gets_its_place_and_folders_are_made(tmp_path, root):
    folders, fd = Folders(root), incoming(tmp_path)
    assert place(folders, fd, "1", "S", "a/b/c.txt") is None
    folders.sync()
    folders.close()
    assert (tmp_path / "S/a/b/c.txt").read_text() == "x"
    assert size_there(Folders(root), "S", "a/b/c.txt") == 1
    os.close(fd)


@pytest.mark.parametrize("link", ["S", "S/a"])
def test_links_are_not_followed(tmp_path, root, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(outside)
    folders, fd = Folders(root), incoming(tmp_path)
    assert "cannot be written" in place(folders, fd, "1", "S", "a/b")
    assert not list(outside.iterdir())
    assert size_there(folders, "S", "a/b") is None
    os.close(fd)


def test_a_link_under_the_final_name_is_replaced_not_followed(tmp_path, root):
    (tmp_path / "S").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "S/a").symlink_to(victim)
    folders, fd = Folders(root), incoming(tmp_path)
    assert place(folders, fd, "1", "S", "a") is None
    assert victim.read_text() == "mine"
    assert not (tmp_path / "S/a").is_symlink()
    os.close(fd)


def test_a_file_where_a_folder_is_needed_is_said(tmp_path, root):
    (tmp_path / "S").mkdir()
    (tmp_path / "S/a").write_text("a file")
    folders, fd = Folders(root), incoming(tmp_path)
    assert "S/a/b cannot be written" in place(folders, fd, "1", "S", "a/b")
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
