"""Inventories page by page, of folders that are slow, or whose files fail."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

from datacollect.transfer.agent.shell.files import Folder
from datacollect.transfer.agent.shell.listing import FolderInventory
from datacollect.transfer.protocol.messages import parse_page

REAL_SCANDIR = os.scandir


def listed(root, most=10_000, patterns=None, *, afresh=False, folder=None):
    """Return all files, and what is left out, page by page, as old collectors ask for them."""
    folder = folder or Folder(root)
    inventory, files, left_out, after = FolderInventory(folder), [], [], None
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
            inventory = FolderInventory(folder)


def detailed(folder, most=10_000, patterns=None, *, afresh=False):
    """Return all pages, as collectors ask for them that know of folders, modes and holes."""
    inventory, pages, after = FolderInventory(folder), [], None
    while not pages or after is not None:
        page = parse_page(inventory.page(after, most, patterns, detail=True))
        assert page.after is None or after is None or page.after > after
        pages.append(page)
        after = page.after
        if afresh:
            inventory = FolderInventory(folder)
    return pages


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


@contextmanager
def closed(mode, *folders):
    """Have folders of a mode that closes them to all but root, be they the tests' own or not."""
    before = [folder.stat().st_mode for folder in folders]
    for folder in reversed(folders):
        folder.chmod(mode)
    try:
        yield
    finally:
        for folder, old in zip(folders, before, strict=True):
            folder.chmod(old & 0o7777)


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
