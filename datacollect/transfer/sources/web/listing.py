"""Listing what other servers have: each file is asked for its size and version, several at a time.

Files whose size and SHA-256 a manifest says are not asked for: their hash tells every change.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.net.fan_out import fan_out
from datacollect.transfer.protocol.source import LeftOut, Listed, Page
from datacollect.transfer.sources.web.messages import Worth
from datacollect.transfer.sources.web.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.transfer.sources.web.entries import ServerFile
    from datacollect.transfer.sources.web.peer import WebPeer

# Connections that ask, and how often one file is asked for.
ASKERS, MOST_TRIES = 8, 3


class WebListing:
    """Lists the files of one server.

    Parameters
    ----------
    files : sequence of ServerFile
    known : mapping of str to Listed
        What is known of files from an earlier start: a file that cannot be asked for now stays
        what it was.
    open_peer : callable
        Opens a session; waits as long as the server wants to be left alone.
    patience_s : float
        How long a server may be silent.
    """

    def __init__(
        self,
        files: Sequence[ServerFile],
        known: Mapping[str, Listed],
        open_peer: Callable[[], WebPeer],
        patience_s: float,
    ) -> None:
        self._known, self._open_peer, self._patience_s = known, open_peer, patience_s
        self._to_ask = [file for file in reversed(files) if not file.is_known]
        self._found = [_as_told(file) for file in files if file.is_known]
        self._left_out: list[LeftOut] = []
        self._lock = threading.Lock()
        self._failure: TransferError | None = None
        self._heard_s = time.monotonic()

    def run(self) -> Page:
        """Ask.

        Raises
        ------
        TransferError
            The server does not answer.
        """
        askers = [f"asker {n}" for n in range(min(ASKERS, len(self._to_ask)))]
        for outcome in fan_out(askers, self._work).values():
            outcome.result()
        if self._failure is not None:
            raise self._failure
        self._found.sort(key=lambda file: file.path.encode())
        return Page(self._found, self._left_out)

    def _work(self, _: str) -> None:
        tries = 0
        while self._failure is None and self._to_ask:
            try:
                peer = self._open_peer()
                try:
                    while self._failure is None and (file := self._next()) is not None:
                        try:
                            self._note(file, peer)
                            tries = 0
                        except TransferError:
                            self._to_ask.append(file)
                            raise
                finally:
                    peer.close()
            except TransferError as error:
                tries += 1
                if tries >= MOST_TRIES or time.monotonic() - self._heard_s > self._patience_s:
                    self._failure = error

    def _next(self) -> ServerFile | None:
        with self._lock:
            return self._to_ask.pop() if self._to_ask else None

    def _note(self, file: ServerFile, peer: WebPeer) -> None:
        answer = peer.size(file.path)
        self._heard_s = time.monotonic()
        why = answer.why
        if answer.worth is Worth.GOOD and file.n_bytes not in (None, answer.n_bytes):
            why = f"it has {answer.n_bytes} bytes, and {file.n_bytes} in {file.place}"
        with self._lock:
            if not why:
                version = Version(answer.version.etag, answer.version.modified, file.sha256)
                tag = version.tag()
                self._found.append(Listed(file.path, answer.n_bytes, 0, 0, tag, file.sha256))
            elif answer.worth in _LATER and file.path in self._known:
                self._found.append(self._known[file.path])
            else:
                self._left_out.append(LeftOut(file.path, f"{why} ({file.place})"))


_LATER = (Worth.REFUSED, Worth.UNREADABLE)


def _as_told(file: ServerFile) -> Listed:
    assert file.n_bytes is not None
    tag = Version(sha256=file.sha256).tag()
    return Listed(file.path, file.n_bytes, 0, 0, tag, file.sha256)
