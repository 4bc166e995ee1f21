"""The inventory: every file once, in the order of the paths' bytes, whatever their names."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollect.transfer.agent import listing
from datacollect.transfer.agent.files import Folder
from datacollect.transfer.agent.listing import Inventory
from datacollect.transfer.wire.messages import parse_page


def listed(root, most=10_000, patterns=None, *, afresh=False):
    """Return all files, and what is left out, page by page."""
    folder = Folder(root)
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
        ("link", listing.A_LINK),
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
    inside = listing._inside(folder, "")
    (tmp_path / "d/a").unlink()
    (tmp_path / "d").rmdir()
    assert inside == [("d/", "")]
    assert listing._inside(folder, "d/") == [("d/", listing.NOT_READABLE)]
    assert list(walk) == []
    folder.close()
