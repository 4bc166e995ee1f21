"""Serialisation of first requests: one session at a time until a file's first range has come.

A server that knows no ranges sends the whole file to each who asks for a part. So nobody else asks
for it meanwhile: it is sent once, whatever the number of connections.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOOK_S = 0.25


class Lanes:
    """Files of a server of which ranges have come in this start; for any thread."""

    def __init__(self) -> None:
        self._cond = threading.Condition()
        self._proved: set[str] = set()
        self._asked: set[str] = set()

    @contextmanager
    def lane(self, path: str, is_over: Callable[[], bool]) -> Iterator[bool]:
        """Wait until a range of a file has come, or nobody else asks for it; then have the block.

        The block learns whether another session has asked for the file in vain meanwhile.

        Parameters
        ----------
        path : str
        is_over : callable
            Whether to wait no more.
        """
        with self._cond:
            has_waited = False
            while path in self._asked and path not in self._proved and not is_over():
                has_waited = True
                self._cond.wait(LOOK_S)
            is_first = path not in self._proved and path not in self._asked
            if is_first:
                self._asked.add(path)
        try:
            yield has_waited and is_first
        finally:
            if is_first:
                with self._cond:
                    self._asked.discard(path)
                    self._cond.notify_all()

    def proved(self, path: str) -> None:
        """A range of a file comes, as it was asked for."""
        with self._cond:
            self._proved.add(path)
            self._cond.notify_all()
