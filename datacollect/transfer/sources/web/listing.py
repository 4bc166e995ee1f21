"""Listing of other servers: requests each file's size and version, several at a time.

Files whose size and SHA-256 a manifest says are not asked for: their hash shows every change. What
was answered stays answered: where the server goes away in between, the next try asks for the
others. What only all answers together can show to be a file (`core.genuine`) is held back until
then.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from datacollect.errors import IdentityError, TransferError
from datacollect.files.kinds import shown
from datacollect.net.fan_out import LOOK_S, Begun
from datacollect.transfer.protocol.source import BEGIN_BYTES, LeftOut, Listed, Page
from datacollect.transfer.sources.web.conversation import Failed
from datacollect.transfer.sources.web.core.genuine import Claim, Claims
from datacollect.transfer.sources.web.core.messages import Worth
from datacollect.transfer.sources.web.core.versions import Version, address_of_tag
from datacollect.transfer.sources.web.peer import contradicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from datacollect.net.fan_out import Outcome
    from datacollect.transfer.protocol.source import Copy, Known
    from datacollect.transfer.sources.web.core.messages import FileAnswer
    from datacollect.transfer.sources.web.entries import ServerFile
    from datacollect.transfer.sources.web.peer import WebPeer

    _Found: TypeAlias = Listed | LeftOut

# Connections that ask, and how often each finds the server away before it is.
ASKERS, MOST_TRIES = 8, 3
# The most files of a page that are asked for, and in all: what is listed counts as progress.
ASKED_OF_PAGE, MOST_OF_PAGE = 8, 1000


class _Held(NamedTuple):
    """A file, and what is found of it unless all answers together show that it is none."""

    file: ServerFile
    found: _Found


class WebListing:
    """Lists the files of one server; to be tried until it comes to its end.

    Parameters
    ----------
    name : str
    files : sequence of ServerFile
    known : Known
        What earlier starts know: a file that cannot be asked for now, of which the server
        contradicts itself, or what it says is doubtful, stays what it was.
    open_peer : callable
        Opens a session; waits as long as the server wants to be left alone.
    patience_s : float
        How long a server may be silent.
    refuse : callable
        Takes a path and why nothing of it is to be fetched in this start.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[ServerFile],
        known: Known,
        open_peer: Callable[[], WebPeer],
        patience_s: float,
        refuse: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._name, self._refuse = name, refuse
        self._known, self._open_peer, self._patience_s = known, open_peer, patience_s
        self._files = sorted(files, key=lambda file: file.path.encode(errors="surrogatepass"))
        self._n_asked = sum(not file.is_known for file in self._files)
        self._claims = Claims([file.target for file in self._files])
        self._found: dict[str, _Found] = {}
        self._held: dict[str, _Held] = {}
        # Of what is found, what is known and was not confirmed, and why.
        self._unconfirmed: dict[str, str] = {}
        self._notes: list[str] = []
        self._cond = threading.Condition()
        self._to_ask: deque[ServerFile] = deque()
        # Files that are held and of which the first bytes are wanted; those under way among them.
        self._to_look: deque[_Held] = deque()
        self._n_looks = 0
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
        n_askers = min(ASKERS, max(len(self._to_ask), self._n_looks))
        askers = [Begun(f"asker {n}", self._work, self._ended) for n in range(n_askers)]
        try:
            for files in self._groups():
                asked = [file for file in files if not file.is_known]
                self._await([file.path for file in asked], askers)
                yield self._page([self._found.get(file.path) or _as_told(file) for file in files])
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
                    while (wanted := self._next()) is not None:
                        if isinstance(wanted, _Held):
                            self._look(wanted, peer)
                        else:
                            self._ask(wanted, peer)
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
        is_open = len(self._found) < self._n_asked
        return is_open and self._failure is None and not self._has_ended

    def _next(self) -> ServerFile | _Held | None:
        """Return what is to be asked for, or looked at; that may depend on what others ask for."""
        with self._cond:
            while self._is_more():
                if self._to_ask:
                    return self._to_ask.popleft()
                if self._to_look:
                    return self._to_look.popleft()
                self._cond.wait(LOOK_S)
        return None

    def _ask(self, file: ServerFile, peer: WebPeer) -> None:
        try:
            first = peer.size(file.path, others_first=True)
            if first.worth is Worth.LATER:
                self._put_off(file, first.why)
                return
            found, claim = self._judged(file, first, peer)
        except BaseException:
            with self._cond:
                self._to_ask.append(file)
                self._cond.notify_all()
            raise
        with self._cond:
            self._heard_s = time.monotonic()
            if claim is not None and self._claims.add(claim):
                self._held[file.path] = _Held(file, found)
            else:
                self._found[file.path] = found
            self._look_at_all()

    def _look(self, held: _Held, peer: WebPeer) -> None:
        """Fetch the first bytes of a file, by which it is judged beside others."""
        try:
            assert isinstance(held.found, Listed)
            begins = peer.beginning(held.found, min(BEGIN_BYTES, held.found.n_bytes))
        except BaseException:
            with self._cond:
                self._to_look.append(held)
                self._cond.notify_all()
            raise
        with self._cond:
            self._heard_s = time.monotonic()
            self._claims.looked(held.file.path, begins)
            self._n_looks -= 1
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
        if len(self._found) + len(self._held) == self._n_asked and not self._n_looks:
            self._to_look.extend(self._held[path] for path in self._claims.to_look_at())
            self._n_looks = len(self._to_look)
            if not self._n_looks:
                self._judge_together()
        self._cond.notify_all()

    def _judge_together(self) -> None:
        """All were asked: judge what is doubtful by itself; the whole server, if it is all.

        Raises
        ------
        IdentityError
            Whoever answers has one page alone, and nothing is known that could be kept.
        """
        whys = {path: self._claims.why(path) for path in self._held}
        is_all = not self._found and self._n_asked == len(self._files)
        if is_all and len(whys) > 1 and all(whys.values()) and not self._claims.any_copies:
            raise IdentityError(f"{self._name}: {next(iter(whys.values()))}")
        for path, held in self._held.items():
            file, found = held
            why = whys[path]
            if why is not None:
                self._refuse(path, why)
                found = self._later(file, why)
            self._found[path] = found
        if pointers := self._claims.pointers():
            self._notes.append(_of_pointers(pointers))
        self._held = {}

    def _judged(
        self, file: ServerFile, first: FileAnswer, peer: WebPeer
    ) -> tuple[_Found, Claim | None]:
        """Judge an answer; ask another question, too, where it contradicts what is known.

        Returns
        -------
        found : Listed or LeftOut
        claim : Claim or None
            What is to be judged beside others; None: `found` holds.
        """
        known, copy = self._known.files.get(file.path), None
        is_elsewhere = known is not None and _is_elsewhere(file, known)
        if is_elsewhere or (
            known is None or first.worth is not Worth.GOOD or contradicts(first, known)
        ):
            copy = self._known.copy_of(file.path)
        if known is not None and copy is not None and _is_proved(file, known, copy):
            return known, None  # whatever the server has by now
        is_told = file.n_bytes is not None and first.n_bytes == file.n_bytes
        answer = first
        is_new = answer.worth is Worth.GOOD and file.n_bytes not in (None, answer.n_bytes)
        if is_new or (known is not None and contradicts(answer, known)):
            answer = peer.size(file.path, is_doubted=True)
        if answer.worth is Worth.GONE and known is not None and copy is not None:
            return self._later(file, answer.why), None
        found = self._settled(file, answer, known)
        if is_told or (first.worth is Worth.GOOD and (found is known or _is_left_out(found))):
            return found, None
        # What it has begun with, and where it lay, the first answer has said.
        claim = replace(first, n_bytes=answer.n_bytes, version=answer.version)
        return found, Claim(file.path, file.target, claim, copy)

    def _settled(self, file: ServerFile, answer: FileAnswer, known: Listed | None) -> _Found:
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
        if file.sha256 is not None:
            tag = Version(sha256=file.sha256).tag()
        elif known is None or _is_elsewhere(file, known):
            tag = answer.version.tag(file.target.mark)
        else:
            tag = answer.version.tag(address_of_tag(known.tag))
        return Listed(file.path, answer.n_bytes, 0, 0, tag, file.sha256)

    def _later(self, file: ServerFile, why: str) -> _Found:
        """Return what is known of a file that cannot be asked for now, or why it is missing."""
        known = self._known.files.get(file.path)
        if known is None:
            return LeftOut(file.path, f"{why} ({file.place})")
        if (other := _why_not_wanted(file, known)) is not None:
            return LeftOut(file.path, f"{why}; {other} ({file.place})")
        self._unconfirmed[file.path] = why
        return known

    def _page(self, found: Sequence[_Found]) -> Page:
        files = [each for each in found if isinstance(each, Listed)]
        left_out = [each for each in found if isinstance(each, LeftOut)]
        unconfirmed = [
            LeftOut(each.path, why)
            for each in files
            if (why := self._unconfirmed.get(each.path)) is not None
        ]
        notes, self._notes = self._notes, []
        return Page(files, left_out, unconfirmed=unconfirmed, notes=notes)


def _is_proved(file: ServerFile, known: Listed, copy: Copy) -> bool:
    """Return whether a verified copy is what the collection wants, by its hash."""
    if file.sha256 is None:
        return False
    return (file.sha256, copy.n_bytes) == (known.sha256, known.n_bytes)


def _is_elsewhere(file: ServerFile, known: Listed) -> bool:
    """Return whether a file was found at another address, where its version says nothing here."""
    return _is_moved(file, known) and not Version.of_tag(known.tag).is_of_bytes


def _is_moved(file: ServerFile, known: Listed) -> bool:
    """Return whether a file came from another address, or from an agent, whose files have numbers.

    What noted no address may be of the same.
    """
    address = address_of_tag(known.tag)
    return known.inode != 0 or (address is not None and address != file.target.mark)


def _why_not_wanted(file: ServerFile, known: Listed) -> str | None:
    """Return why what is known is not what the collection wants; None where it may be."""
    if file.sha256 is None and _is_moved(file, known):  # its server of now has never confirmed it
        return "what is here came from another address"
    if file.n_bytes not in (None, known.n_bytes):
        return f"what is here has {known.n_bytes} bytes, and must have {file.n_bytes}"
    if file.sha256 not in (None, known.sha256):
        return f"what is here is not known to have the SHA-256 {file.sha256}"
    return None


def _is_left_out(found: _Found) -> bool:
    return isinstance(found, LeftOut)


def _of_pointers(paths: Sequence[str]) -> str:
    return (
        f"{shown(paths[0])} and perhaps others are git-lfs pointers, and arrive as such: the data "
        "that they stand for lie in an LFS store"
    )


def _as_told(file: ServerFile) -> Listed:
    assert file.n_bytes is not None
    tag = Version(sha256=file.sha256).tag()
    return Listed(file.path, file.n_bytes, 0, 0, tag, file.sha256)
