"""Processes that a process has started, on systems with /proc."""

from __future__ import annotations

import os
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the numbers of the processes that a process's threads have started."""
    texts = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(each) for text in texts for each in text.split()]


def is_told(pid: int) -> bool:
    """Return whether the kernel is to send a process a signal when what it has open changes."""
    try:
        texts = [each.read_text() for each in Path(f"/proc/{pid}/fdinfo").iterdir()]
    except OSError:
        return False
    flags = [line.split()[1] for text in texts for line in text.splitlines() if "flags:" in line]
    return any(int(each, 8) & os.O_ASYNC for each in flags)


def command_of(pid: int) -> str:
    """Return what a process was started as; empty once it has ended, be it waited for or not."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
