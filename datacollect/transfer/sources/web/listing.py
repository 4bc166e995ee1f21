"""Listing what other servers have: each file is asked for its size and version, several at a time.

Files whose size and SHA-256 a manifest says are not asked for: their hash shows every change. What
was answered stays answered: where the server goes away in between, the next try asks for the
others.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from datacollect.errors import IdentityError, TransferError
from datacollect.net.fan_out import LOOK_S, Begun
from datacollect.transfer.protocol.source import LeftOut, Listed, Page
from datacollect.transfer.sources.web.conversation import Failed
from datacollect.transfer.sources.web.core.messages import Worth
from datacollect.transfer.sources.web.core.refusals import login_page
from datacollect.transfer.sources.web.core.sameness import Sameness, is_page, is_page_elsewhere
from datacollect.transfer.sources.web.core.versions import Version
from datacollect.transfer.sources.web.peer import contradicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from datacollect.net.fan_out import Outcome
    from datacollect.transfer.sources.web.core.messages import Answer
    from datacollect.transfer.sources.web.entries import ServerFile
    from datacollect.transfer.sources.web.peer import WebPeer

    _Found: TypeAlias = Listed | LeftOut

# Connections that ask, and how often each finds the server away before it is.
ASKERS, MOST_TRIES = 8, 3
# The most files of a page that are asked for, and in all: what is listed counts as progress.
ASKED_OF_PAGE, MOST_OF_PAGE = 8, 1000


class WebListing:
    """Lists the files of one server; to be tried until it comes to its end.

    Parameters
    ----------
    name : str
    files : sequence of ServerFile
    known : mapping of str to Listed
        What is known of files from an earlier start: a file that cannot be asked for now, or of
        which the server contradicts itself, stays what it was.
    open_peer : callable
        Opens a session; waits as long as the server wants to be left alone.
    patience_s : float
        How long a server may be silent.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[ServerFile],
        known: Mapping[str, Listed],
        open_peer: Callable[[], WebPeer],
        patience_s: float,
    ) -> None:
        self._name = name
        self._known, self._open_peer, self._patience_s = known, open_peer, patience_s
        self._files = sorted(files, key=lambda file: file.path.encode(errors="surrogatepass"))
        self._n_asked = sum(not file.is_known for file in self._files)
        self._sameness = Sameness()
        self._found: dict[str, _Found] = {}
        # What may be one and the same page: only when all were asked it is known.
        self._held: dict[str, tuple[ServerFile, _Found]] = {}
        self._cond = threading.Condition()
        self._to_ask: deque[ServerFile] = deque()
        self._failure: BaseException | None = None
        self._has_ended = False
        self._heard_s = 0.0

    def pages(self) -> Iterator[Page]:
        """Ask for what is not known yet; yield page after page as they are ready.

        Raises
        ------
        TransferError
            The server does not answer, or with the same page for all.
        """
        self._to_ask = deque(
            file for file in self._files if not (file.is_known or self._is_answered(file.path))
        )
        self._failure, self._has_ended, self._heard_s = None, False, time.monotonic()
        n_askers = min(ASKERS, len(self._to_ask))
        askers = [Begun(f"asker {n}", self._work, self._ended) for n in range(n_askers)]
        try:
            for files in self._groups():
                asked = [file for file in files if not file.is_known]
                self._await([file.path for file in asked], askers)
                yield _page([self._found.get(file.path) or _as_told(file) for file in files])
        finally:
            self._has_ended = True

    def _is_answered(self, path: str) -> bool:
        return path in self._found or path in self._held

    def _groups(self) -> Iterator[list[ServerFile]]:
        group: list[ServerFile] = []
        n_asked = 0
        for file in self._files:
            group.append(file)
            n_asked += not file.is_known
            if n_asked >= ASKED_OF_PAGE or len(group) >= MOST_OF_PAGE:
                yield group
                group, n_asked = [], 0
        if group or not self._files:
            yield group

    def _await(self, paths: Sequence[str], askers: Sequence[Begun[None]]) -> None:
        """Wait until some files were answered for, or nobody asks any more."""
        with self._cond:
            while not all(path in self._found for path in paths):
                if self._failure is not None:
                    raise self._failure
                self._cond.wait(LOOK_S)
                for asker in askers:
                    asker.look()

    # Asking, each in a thread of its own -------------------------------------------------------

    def _ended(self, outcome: Outcome[None]) -> None:
        """Hear that an asker has ended; the first that fails ends all."""
        if outcome.error is not None:
            with self._cond:
                self._failure = self._failure or outcome.error
                self._cond.notify_all()

    def _work(self, _: str) -> None:
        n_tries, n_found = 0, -1
        while self._is_more():
            try:
                peer = self._open_peer()
                try:
                    while (file := self._next()) is not None:
                        self._ask(file, peer)
                finally:
                    peer.close()
            except IdentityError:
                raise
            except TransferError as error:
                # Where others are answered, it is there; who asks to wait is waited for.
                wait_s = error.wait_s if isinstance(error, Failed) and error.status else None
                n_tries = n_tries + (wait_s is None) if n_found == len(self._found) else 1
                n_found = len(self._found)
                silent_s = time.monotonic() - self._heard_s - (wait_s or 0.0)
                if n_tries >= MOST_TRIES or silent_s > self._patience_s:
                    raise

    def _is_more(self) -> bool:
        return bool(self._to_ask) and self._failure is None and not self._has_ended

    def _next(self) -> ServerFile | None:
        with self._cond:
            return self._to_ask.popleft() if self._is_more() else None

    def _ask(self, file: ServerFile, peer: WebPeer) -> None:
        try:
            first = peer.size(file.path, others_first=True)
            if first.worth is Worth.LATER:
                self._put_off(file, first.why)
                return
            found = self._judged(file, first, peer)
        except BaseException:
            with self._cond:
                self._to_ask.append(file)
            raise
        is_told = file.n_bytes is not None and first.n_bytes == file.n_bytes
        with self._cond:
            self._heard_s = time.monotonic()
            if not is_told and self._sameness.suspects(file.path, first):
                self._held[file.path] = file, found
            else:
                self._found[file.path] = found
            self._look_at_all()

    def _put_off(self, file: ServerFile, why: str) -> None:
        """Ask for a file after all others, until nothing has come for as long as the patience.

        Raises
        ------
        TransferError
            It is over, and nothing has come of any file.
        """
        with self._cond:
            if time.monotonic() - self._heard_s > self._patience_s:
                if not self._found and not self._held:
                    raise TransferError(f"{self._name}: {why}")
                self._found[file.path] = self._later(file, why)
                self._look_at_all()
            else:
                self._to_ask.append(file)

    def _look_at_all(self) -> None:
        """Judge together what was held back, once all files were answered for or given up."""
        if len(self._found) + len(self._held) == self._n_asked:
            self._judge_together()
        self._cond.notify_all()

    def _judge_together(self) -> None:
        """All were asked: judge what may be one page for many; the whole server, if it is all.

        Raises
        ------
        IdentityError
            Whoever answers has that page alone.
        """
        whys = {path: self._sameness.why(path) for path in self._held}
        if not self._found and self._n_asked == len(self._files) and all(whys.values()):
            raise IdentityError(f"{self._name}: {next(iter(whys.values()))}")
        for path, (file, found) in self._held.items():
            why = whys[path]
            self._found[path] = found if why is None else self._later(file, why)
        self._held = {}

    def _judged(self, file: ServerFile, answer: Answer, peer: WebPeer) -> _Found:
        """Judge an answer; ask another question, too, where it contradicts what is known."""
        known = self._known.get(file.path)
        if file.n_bytes is None or answer.n_bytes != file.n_bytes:
            if is_page_elsewhere(file.path, file.target, answer):
                assert answer.landed is not None
                return self._later(file, login_page(answer.landed))
            if known is not None and contradicts(answer, known) and is_page(file.path, answer):
                return self._later(file, "it is HTML now, and was collected before: a login page?")
        is_new = answer.worth is Worth.GOOD and file.n_bytes not in (None, answer.n_bytes)
        if is_new or (known is not None and contradicts(answer, known)):
            answer = peer.size(file.path, is_doubted=True)
        return self._settled(file, answer, known)

    def _settled(self, file: ServerFile, answer: Answer, known: Listed | None) -> _Found:
        if answer.worth in (Worth.REFUSED, Worth.UNREADABLE):
            return self._later(file, answer.why)
        if answer.worth is not Worth.GOOD:
            return LeftOut(file.path, f"{answer.why} ({file.place})")
        if file.n_bytes not in (None, answer.n_bytes):
            why = f"it has {answer.n_bytes} bytes, and {file.n_bytes} in {file.place}"
            return LeftOut(file.path, f"{why} ({file.place})")
        proof = file.sha256, answer.n_bytes
        if known is not None and file.sha256 and proof == (known.sha256, known.n_bytes):
            return known  # by another ETag, perhaps: the hash decides
        version = answer.version if file.sha256 is None else Version(sha256=file.sha256)
        return Listed(file.path, answer.n_bytes, 0, 0, version.tag(), file.sha256)

    def _later(self, file: ServerFile, why: str) -> _Found:
        """Return what is known of a file that cannot be asked for now, or why it is missing."""
        return self._known.get(file.path) or LeftOut(file.path, f"{why} ({file.place})")


def _page(found: Sequence[_Found]) -> Page:
    files = [each for each in found if isinstance(each, Listed)]
    return Page(files, [each for each in found if isinstance(each, LeftOut)])


def _as_told(file: ServerFile) -> Listed:
    assert file.n_bytes is not None
    tag = Version(sha256=file.sha256).tag()
    return Listed(file.path, file.n_bytes, 0, 0, tag, file.sha256)
