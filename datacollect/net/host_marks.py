"""Marks that any process of a host can see, for as long as whoever has set them lives.

A mark is a socket with a name in Linux's abstract namespace, which needs no file and no right: the
kernel lists it for everybody of the host (man 7 unix), and forgets it with its process. Elsewhere
there are none. Processes with another value of ``DATACOLLECT_HOST`` stand for other hosts: tests
that run at once do.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_PULL = "in-pull"
# By the process's own folder: units of systemd with ProcSubset=pid have no /proc/net.
_LISTED = Path("/proc/self/net/unix")


@contextmanager
def marked(mark: str) -> Iterator[None]:
    """Set a mark on this host, for the time of a block; nothing where the kernel gives none.

    Examples
    --------
    >>> with marked("here"):
    ...     is_marked("here")
    True
    """
    name = f"\0{_prefix(mark)}{os.getpid()}-{threading.get_ident()}"
    with ExitStack() as held:
        with suppress(OSError):
            mine = held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            mine.bind(name.encode())
        yield


def is_marked(mark: str) -> bool | None:
    """Return whether somebody has set a mark on this host; None where the kernel does not tell."""
    with suppress(OSError):
        return f"@{_prefix(mark)}" in _LISTED.read_text(encoding="utf-8", errors="replace")
    return None


def _prefix(mark: str) -> str:
    return f"datacollect-{mark}-{os.environ.get('DATACOLLECT_HOST', '')}-"
