"""Sessions, a thread each: they connect, request, receive, verify and write.

They carry out the core's actions and report the outcomes; they decide nothing.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import DatacollectError, IdentityError
from datacollect.files.memory import is_memory_short
from datacollect.files.refusals import refusal_of
from datacollect.transfer.protocol.source import Confirmation, Verdict
from datacollect.transfer.pull.core.messages import (
    Answered,
    Ask,
    Confirmed,
    Event,
    OpenSession,
    Request,
    SessionEnded,
    SessionOpened,
)
from datacollect.transfer.store.state.pieces import MOST_BYTES
from datacollect.transfer.store.store import PieceKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.transfer.protocol.source import Peer, Segment
    from datacollect.transfer.store.store import Store

    # Opens the connection to a source, over relays.
    OpenPeer: TypeAlias = Callable[[str, tuple[str, ...]], Peer]

# How long the end of all waits for the thread of one.
LEAVES_S = 2.0


class Sessions:
    """All sessions of a collection, as long as the core knows them.

    A session is known from `open` until `forget`, which is called when the core learns of its end:
    whatever its thread has come to, the core may name it until then.

    Parameters
    ----------
    open_peer : callable
    store : Store
    tell : callable
        Takes an event, from any thread.
    now_s : callable
        Seconds since the core's start.
    """

    def __init__(
        self,
        open_peer: OpenPeer,
        store: Store,
        tell: Callable[[Event], None],
        now_s: Callable[[], float],
    ) -> None:
        self._open_peer, self._store, self._tell, self._now_s = open_peer, store, tell, now_s
        self._threads: dict[int, _SessionThread] = {}

    def open(self, wanted: OpenSession) -> None:
        """Open a session in a thread of its own."""
        thread = _SessionThread(wanted, self._open_peer, self._store, self._tell, self._now_s)
        self._threads[wanted.session] = thread
        try:
            thread.start()
        except RuntimeError as error:  # no more threads to be had
            self._tell(SessionEnded(self._now_s(), wanted.session, str(error)))

    def do(self, wanted: Request | Ask) -> None:
        """Let a session's thread carry an action out after those before."""
        self._threads[wanted.session].wanted.put(wanted)

    def close(self, session: int, *, is_stuck: bool = False) -> None:
        """End a session at once; `is_stuck`: because nothing comes."""
        self._threads[session].end(is_stuck=is_stuck)

    def forget(self, session: int) -> int:
        """Report a session's end to the core; return what it has received in all."""
        return self._threads.pop(session).received_bytes

    def arrived_bytes(self) -> dict[int, int]:
        """Return what each session has received."""
        return {number: thread.received_bytes for number, thread in self._threads.items()}

    def waiting(self) -> frozenset[int]:
        """Return the sessions that do not wait for an answer."""
        return frozenset(number for number, thread in self._threads.items() if thread.is_waiting)

    def end(self, patience_s: float = LEAVES_S) -> None:
        """End all; those that are still connecting are left to end by themselves."""
        for thread in self._threads.values():
            thread.end()
        for thread in self._threads.values():
            if thread.is_connected:
                thread.join(patience_s)


class _SessionThread(threading.Thread):
    """One session; what it is to do comes by the queue `wanted`, None ends it."""

    # What the core takes to say what follows an answer; the kernel takes data in meanwhile.
    decides_s = 0.02

    def __init__(
        self,
        opening: OpenSession,
        open_peer: OpenPeer,
        store: Store,
        tell: Callable[[Event], None],
        now_s: Callable[[], float],
    ) -> None:
        super().__init__(name=f"session-{opening.session}", daemon=True)
        self._opening, self._open_peer = opening, open_peer
        self._store, self._tell, self._now_s = store, tell, now_s
        self.wanted: queue.SimpleQueue[Request | Ask | None] = queue.SimpleQueue()
        self._asked: deque[tuple[Request, list[Segment]]] = deque()
        self._peer: Peer | None = None
        self._has_ended = self._asks_ahead = False
        self._buffer = bytearray()

    @property
    def is_connected(self) -> bool:
        return self._peer is not None

    @property
    def is_waiting(self) -> bool:
        return self._peer is not None and self._peer.is_waiting

    @property
    def received_bytes(self) -> int:
        return 0 if self._peer is None else self._peer.received_bytes

    def end(self, *, is_stuck: bool = False) -> None:
        """Let it end at once, whatever it waits for; from any thread."""
        self._has_ended = True
        self.wanted.put(None)
        if self._peer is not None:
            self._peer.abort(is_stuck=is_stuck)

    def run(self) -> None:
        number, why, is_final, wait_s = self._opening.session, "", False, 0.0
        try:
            self._peer = self._open_peer(self._opening.source, self._opening.relays)
            self._tell(SessionOpened(self._now_s(), number, self._peer.is_proved))
            while not self._has_ended:
                self._work(self._peer)
        except (DatacollectError, OSError) as error:
            why, is_final = str(error), is_final_error(error)
            wait_s = asked_wait_s(error)
            # Who answers over a relay is for the relay to say: another route may lead to the
            # source.
            is_final = is_final and not (self._opening.relays and isinstance(error, IdentityError))
        except Exception as error:  # noqa: BLE001 - the core is to know, whatever it is
            is_short = is_memory_short(error)
            why = str(refusal_of(error)) if is_short else f"{type(error).__name__}: {error}"
        finally:
            if self._peer is not None:
                with suppress(Exception):
                    self._peer.close()
        self._tell(SessionEnded(self._now_s(), number, why, is_final, wait_s))

    def _work(self, peer: Peer) -> None:
        """Do what is wanted; with nothing wanted receive an answer, or wait."""
        # The core asks for several pieces at a time, and is about to: its request must not wait
        # for all of the last answer, or the source has nothing to send meanwhile.
        is_awaited = self._asks_ahead and len(self._asked) == 1
        try:
            if is_awaited:
                wanted = self.wanted.get(timeout=self.decides_s)
            else:
                wanted = self.wanted.get(block=not self._asked)
        except queue.Empty:
            self._asks_ahead = self._asks_ahead and not is_awaited
            self._receive(peer)
            return
        match wanted:
            case Request():
                self._request(peer, wanted)
            case Ask():
                while self._asked:
                    self._receive(peer)
                self._ask(peer, wanted)
            case None:
                self._has_ended = True

    def _request(self, peer: Peer, wanted: Request) -> None:
        segments = self._store.segments(PieceKey(wanted.source, wanted.piece))
        while self._asked and not peer.has_room(segments):
            self._receive(peer)
        if segments:
            peer.request(segments)
            self._asked.append((wanted, segments))
            self._asks_ahead = self._asks_ahead or len(self._asked) > 1
        else:  # all its files are waited for no more
            while self._asked:
                self._receive(peer)
            self._put(wanted, segments, memoryview(b""), b"")

    def _receive(self, peer: Peer) -> None:
        wanted, segments = self._asked.popleft()
        if not self._buffer:
            self._buffer = bytearray(MOST_BYTES)
        view = memoryview(self._buffer)
        answer = peer.receive(view)
        # A request that has come before the core knows of this answer was for more at a time.
        self._asks_ahead = self._asks_ahead or not self.wanted.empty()
        if answer.verdict is Verdict.VERIFIED:
            self._put(wanted, segments, view[: answer.n_bytes], answer.digest)
        else:
            self._tell(
                Answered(
                    self._now_s(),
                    wanted.session,
                    wanted.source,
                    wanted.piece,
                    answer.n_bytes,
                    answer.verdict,
                    why=answer.why,
                    **self._refused_file(wanted, segments, answer.verdict),
                )
            )

    def _refused_file(
        self, wanted: Request, segments: list[Segment], verdict: Verdict
    ) -> dict[str, Any]:
        """Return what an event says of a refused file: of other servers a piece is of one."""
        if verdict is not Verdict.REFUSED:
            return {}
        file = segments[0].span.file
        return {"file": file, "pieces": self._store.pieces_of(wanted.source, file)}

    def _put(
        self, wanted: Request, segments: list[Segment], data: memoryview, digest: bytes
    ) -> None:
        key = PieceKey(wanted.source, wanted.piece)
        is_new = self._store.put(key, [segment.span for segment in segments], data, digest)
        self._tell(
            Answered(
                self._now_s(), wanted.session, *key, len(data), Verdict.VERIFIED, is_new=is_new
            )
        )

    def _ask(self, peer: Peer, wanted: Ask) -> None:
        segments = self._store.segments(PieceKey(wanted.source, wanted.piece))
        found = peer.confirm(segments) if segments else Confirmation()
        self._tell(
            Confirmed(
                self._now_s(),
                wanted.session,
                wanted.source,
                wanted.piece,
                tuple(found.changed),
                tuple(found.gone),
                tuple(found.unreadable),
            )
        )


def is_final_error(error: BaseException) -> bool:
    """Return whether a source is of no use any more, by whichever route."""
    return bool(getattr(error, "is_final", False))


def asked_wait_s(error: BaseException) -> float:
    """Return for how long a source has asked to be left alone; 0: it has not."""
    return float(getattr(error, "wait_s", 0.0))
