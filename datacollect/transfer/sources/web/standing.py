"""Status of a server's files in one start: failures, responses, alternating versions.

One file that fails costs itself alone, and a server that is away costs no file: whether it is there
is asked by another file.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from datacollect.transfer.sources.web.core.versions import Version


# How often whoever waits for a file's first range looks whether that is over.
LOOK_S = 0.25


class Lanes:
    """Files of a server of which ranges have come in this start; for any thread.

    A server that knows no ranges sends the whole file to each who asks for a part. So nobody else
    asks for it meanwhile: it is sent once, whatever the number of connections.
    """

    def __init__(self) -> None:
        self._cond = threading.Condition()
        self._proved: set[str] = set()
        self._asked: set[str] = set()

    @contextmanager
    def lane(self, path: str, is_over: Callable[[], bool]) -> Iterator[bool]:
        """Wait until a range of a file has come, or nobody else asks for it; then have the block.

        The block learns whether another session has asked for the file meanwhile, and failed.

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


# A file that has failed this often, while others were answered, is given up.
MOST_FAILURES = 4
# A file has at most this many versions in one start: listed, and changed three times.
MOST_VERSIONS = 4
# What is said of a file of which nothing comes.
SILENT = "no data, or too little, arrives on request"
# So many others are asked whether the server is there.
MOST_WITNESSES, MOST_LOOKED_AT = 4, 100


class Failures(NamedTuple):
    """Number of failures of a file, and the reason of the last."""

    n: int
    why: str

    @property
    def are_too_many(self) -> bool:
        """Return whether the file is to be given up, if the server is there."""
        return self.n >= MOST_FAILURES

    @property
    def text(self) -> str:
        """Return why it was given up."""
        return f"{self.why}; it failed {self.n} times, while the server answered for other files"


NONE = Failures(0, "")


class Standing:
    """Failures and versions of the files of one server; for any thread.

    Parameters
    ----------
    paths : iterable of str
        All its files.

    Attributes
    ----------
    lanes : Lanes
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._lock = threading.Lock()
        self._failures: dict[str, Failures] = {}
        self.lanes = Lanes()
        self._good: deque[str] = deque(maxlen=2)
        self._is_doubted = False
        self._next = 0
        self._seen: dict[str, list[str]] = {}
        self._alternating: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    # Failures ---------------------------------------------------------------------------------

    @property
    def is_alone(self) -> bool:
        """Return whether there is one file, and no other to ask by whether the server is there."""
        return len(self._paths) < 2

    def failures(self, path: str) -> Failures:
        """Return how a file has failed since it was last answered for."""
        return self._failures.get(path, NONE)

    def answered(self, path: str, *, is_good: bool) -> None:
        """A file was answered for; `is_good`: with what was asked for."""
        with self._lock:
            self._failures.pop(path, None)
            if is_good:
                self._is_doubted = False
                if path not in self._good:
                    self._good.append(path)

    @property
    def is_doubted(self) -> bool:
        """Return whether the server was silent, and has answered nothing since."""
        return self._is_doubted

    def silent(self, path: str) -> None:
        """Nothing comes of a file; whether anything of others does is not known."""
        with self._lock:
            self._failed(path, SILENT)
            self._is_doubted = True

    def failed(self, path: str, why: str) -> int:
        """A file has failed; return how often it has since it was last answered for."""
        with self._lock:
            return self._failed(path, why)

    def _failed(self, path: str, why: str) -> int:
        failures = Failures(self.failures(path).n + 1, why)
        self._failures[path] = failures
        if path in self._good:
            self._good.remove(path)
        return failures.n

    def witnesses(self, path: str) -> list[str]:
        """Return other files, by which to ask whether the server is there: good ones first."""
        with self._lock:
            chosen = [other for other in self._good if other != path]
            for _ in range(min(len(self._paths), MOST_LOOKED_AT)):
                if len(chosen) >= MOST_WITNESSES:
                    break
                other = self._paths[self._next % len(self._paths)]
                self._next += 1
                if other != path and other not in chosen and other not in self._failures:
                    chosen.append(other)
        return chosen

    def good(self) -> list[str]:
        """Return files for which the server has answered not long ago."""
        with self._lock:
            return list(self._good)

    # Versions ---------------------------------------------------------------------------------

    def mark(self, path: str) -> int:
        """Return, before a request, how many versions of a file were seen by then."""
        return len(self._seen.get(path, ()))

    def refuse(self, path: str, why: str) -> None:
        """Ask for a file no more in this start, in which the server contradicts itself."""
        self._refused[path] = why

    def why_not(self, path: str, *, is_hashed: bool) -> str | None:
        """Return why a file is not to be asked for; None where it is.

        `is_hashed`: a hash of it is known, so that versions need not prove anything.
        """
        alternates = None if is_hashed else self._alternating.get(path)
        return self._refused.get(path) or alternates

    def note(self, path: str, found: Version, mark: int, was: Version | None = None) -> str | None:
        """Note which version an answer was of; return why, where versions prove nothing.

        A version that comes again, in answer to a request that was made after another one was
        seen, is no change: nodes of a farm differ. Nor is a new one in every answer.

        Parameters
        ----------
        path : str
        found : Version
        mark : int
            Of `mark`, before the request.
        was : Version or None
            Which one was expected, where this one is another.
        """
        name = _name(found)
        if name is None or (was is None and path not in self._seen):
            return self._alternating.get(path)
        with self._lock:
            seen = self._seen.setdefault(path, [])
            if not seen and was is not None and (expected := _name(was)) is not None:
                seen.append(expected)
            if name in seen[: max(0, mark - 1)]:
                names = " and ".join(safe_text(each) for each in (name, seen[mark - 1]))
                told = f"calls it {names} in turn: nodes behind it differ"
                self._alternating.setdefault(path, f"the server {told}; {_REMEDY}")
            elif name not in seen:
                seen.append(name)
                if len(seen) >= MOST_VERSIONS:
                    told = f"has a new version of it each time, at last {safe_text(name)}"
                    self._alternating.setdefault(path, f"the server {told}; {_REMEDY}")
        return self._alternating.get(path)


_REMEDY = "give its bytes and sha256 in a manifest: then the hash decides, not the version"


def _name(version: Version) -> str | None:
    return version.etag or version.modified
