"""Pages end in time, whatever the file system takes, and what fails halfway is named."""

from __future__ import annotations

import os

import pytest
from instances.inventories import Clock, OddFolder, SlowEntries, detailed, listed

from datacollect.transfer.agent.shell.files import Folder
from datacollect.transfer.agent.shell.listing import FolderInventory
from datacollect.transfer.protocol.messages import LeftOut, parse_page


@pytest.mark.parametrize("detail", [True, False])
def test_a_slow_file_system_is_listed_in_many_pages_each_soon_there(tmp_path, detail):
    """1200 files, 30 ms each: 36 s, in pages of 2 s."""
    for i in range(1200):
        (tmp_path / f"{i:05}").touch()
    clock = Clock()
    folder = OddFolder(tmp_path, clock=clock, slow_s=0.03)
    inventory, after, names, took_s = FolderInventory(folder, clock), None, [], []
    while after is not None or not names:
        began_s = clock.now_s
        page = parse_page(inventory.page(after, 10_000, None, detail=detail))
        took_s.append(clock.now_s - began_s)
        names += [file.path for file in page.files]
        after = page.after
    folder.close()
    assert len(names) == len(set(names)) == 1200
    assert max(took_s) < 2.04
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
        page = parse_page(
            FolderInventory(folder, clock).page(after, 100, ("**/*.tar",), detail=True)
        )
        assert (page.files, page.folders, page.left_out) == ((), (), ())
        assert after is None or page.after is None or page.after > after
        after, n_pages = page.after, n_pages + 1
    folder.close()
    assert n_pages >= 6


@pytest.mark.parametrize("afresh", [True, False])
@pytest.mark.parametrize("n", [20, 3000])
def test_a_page_ends_in_time_also_within_a_folder_that_is_slow_to_look_through(
    tmp_path, monkeypatch, n, afresh
):
    """Each page says a place further on; by sessions of their own none gets beyond 2 s of it.

    An empty one comes twice a second.
    """
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for i in range(n):
            (tmp_path / folder / f"{i:04}").touch()
    clock, folder = Clock(), Folder(tmp_path)
    monkeypatch.setattr(os, "scandir", lambda number: SlowEntries(clock, number))
    inventory, pages, began_s = FolderInventory(folder, clock), [], []
    for _ in range(60):
        began_s.append(clock.now_s)
        after = pages[-1].after if pages else None
        pages.append(parse_page(inventory.page(after, 10_000, None, detail=True)))
        is_empty = not (pages[-1].files or pages[-1].folders)
        assert clock.now_s - began_s[-1] < (0.6 if is_empty else 2.1)
        assert pages[-1].after is None or after is None or pages[-1].after > after
        if pages[-1].after is None:
            break
        if afresh:
            inventory = FolderInventory(folder, clock)
    if n == 3000 and afresh:
        assert [page.files for page in pages] == [()] * 60
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
