"""Worker thread, which does jobs in turn, beside whatever else is under way."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Worker(Generic[T]):
    """Does jobs one after the other, in a thread that begins with the first.

    Parameters
    ----------
    name : str
        Of the thread.
    do : callable
        Takes a job. It is to look at `is_cancelled` from time to time.

    Attributes
    ----------
    is_cancelled : bool
        Whether nothing more is to be done.
    """

    def __init__(self, name: str, do: Callable[[T], None]) -> None:
        self._name, self._do = name, do
        self.is_cancelled = False
        self._wanted: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        """Return whether jobs that are wanted will be done."""
        return not self.is_cancelled and (self._thread is None or self._thread.is_alive())

    def add(self, job: T) -> None:
        """Have a job done."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):  # no thread is available: it is done here
                self._do(job)
                return
            self._thread = thread
        self._wanted.put(job)

    def cancel(self) -> None:
        """Let nothing more be done."""
        self.is_cancelled = True

    def close(self) -> None:
        """End, however much is left to be done."""
        self.cancel()
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (job := self._wanted.get()) is not None and not self.is_cancelled:
            self._do(job)
