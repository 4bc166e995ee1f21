"""Requests of a session's thread, beside what it receives."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from datacollect.transfer.protocol.source import Verdict
from datacollect.transfer.pull.core.messages import Answered, OpenSession, Request
from datacollect.transfer.pull.sessions import _SessionThread

N_PIECES = 6


class Peer:
    """Answers each piece at once, and notes what is done in which order."""

    is_proved, is_waiting, received_bytes = True, False, 0

    def __init__(self):
        self.done, self._asked = [], []

    def has_room(self, segments):
        return True

    def request(self, segments):
        self.done.append(("asks for", segments[0].piece))
        self._asked.append(segments[0].piece)

    def receive(self, view):
        self.done.append(("receives", self._asked.pop(0)))
        return SimpleNamespace(verdict=Verdict.VERIFIED, n_bytes=1, digest=b"")

    def close(self):
        pass


class Store:
    def segments(self, key):
        return [SimpleNamespace(piece=key.piece, span=None)]

    def put(self, *_):
        return True


def begun(peer, tell, decides_s):
    """Return a thread that has yet to be started."""
    thread = _SessionThread(OpenSession(0, "S", ()), lambda *_: peer, Store(), tell, lambda: 0.0)
    thread.decides_s = decides_s
    return thread


def run(thread, n_pieces):
    """Have it work from some pieces on that are asked for at once, to its end."""
    for piece in range(n_pieces):
        thread.wanted.put(Request(0, "S", piece))
    thread.start()
    thread.join(20.0)
    assert not thread.is_alive()


def request_of(piece):
    return None if piece is None else Request(0, "S", piece)


def test_who_has_asked_for_one_piece_waits_for_no_other():
    """Where no more may be under way the next request comes with the answer, and not before."""
    peer, numbers = Peer(), iter(range(1, N_PIECES))

    def tell(event):
        if isinstance(event, Answered):
            thread.wanted.put(request_of(next(numbers, None)))

    thread = begun(peer, tell, decides_s=600.0)
    run(thread, 1)
    assert peer.done[-1] == ("receives", N_PIECES - 1)


def test_a_core_that_was_late_once_asks_ahead_again():
    """The third request comes only while the second piece is received; then all is as before."""
    peer, numbers = Peer(), iter(range(2, N_PIECES))
    late = threading.Event()
    receive = peer.receive

    def receiving(view):
        answer = receive(view)
        if peer.done[-1] == ("receives", 1):
            thread.wanted.put(Request(0, "S", 2))
            thread.decides_s = 10.0
            late.set()
        return answer

    peer.receive = receiving

    def tell(event):
        if isinstance(event, Answered) and late.is_set():
            wanted = request_of(next(numbers, None))
            threading.Timer(0.01, thread.wanted.put, (wanted,)).start()

    next(numbers)
    thread = begun(peer, tell, decides_s=0.0)
    run(thread, 2)
    assert peer.done.index(("asks for", 4)) < peer.done.index(("receives", 3))
    assert peer.done.index(("asks for", 5)) < peer.done.index(("receives", 4))


def test_what_follows_an_answer_is_asked_for_before_the_last_one_is_received():
    """Of two pieces that are asked for one is being sent, and one request lies ready.

    A slow piece takes seconds: whoever asks only when it is there leaves the source idle for a
    round trip, each time.
    """
    peer, numbers = Peer(), iter(range(2, N_PIECES))

    def tell(event):
        if isinstance(event, Answered):
            wanted = request_of(next(numbers, None))
            # The core takes a while.
            threading.Timer(0.01, thread.wanted.put, (wanted,)).start()

    thread = begun(peer, tell, decides_s=10.0)
    run(thread, 2)
    expected = [("asks for", 0)]
    for piece in range(N_PIECES - 2):
        expected += [("asks for", piece + 1), ("receives", piece)]
    expected.append(("asks for", N_PIECES - 1))
    assert peer.done[: len(expected)] == expected
