"""The core of a session with another server: events in, actions out. No clock, no sockets.

One request is under way at a time: not every server, and not every proxy before one, knows what to
do with more. Its copy by `copy.deepcopy` goes on as the original would.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import h11

from datacollect.errors import ProblemError
from datacollect.net.safe_text import safe_text
from datacollect.transfer.sources.web.judging import Head, judged, tells_no_size, wait_s
from datacollect.transfer.sources.web.messages import (
    Action,
    Answer,
    AskRange,
    AskSize,
    Connect,
    Connected,
    Disconnect,
    Event,
    Fail,
    Fill,
    Filled,
    Greet,
    Lost,
    Received,
    Send,
    Take,
    Worth,
)
from datacollect.transfer.sources.web.urls import Origin, Target, redirected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.transfer.sources.web.redirects import RedirectRule

MOST_HEAD_BYTES = 64 * 1024
MOST_REDIRECTS = 5
# What an answer that is of no use may say, before the connection is rather closed.
MOST_NEEDLESS_BYTES = 64 * 1024
REDIRECTS = (301, 302, 303, 307, 308)


class WebCore:
    """Ask a server for ranges of files, and judge what it answers.

    Tell it `AskRange` or `AskSize`, then what happens, until it says `Answer` or `Fail`; after
    `Fail` it is of no use any more.

    Parameters
    ----------
    rule : RedirectRule
    agent : str
        What this program calls itself.
    """

    def __init__(self, rule: RedirectRule, agent: str = "datacollect") -> None:
        self._rule, self._agent = rule, agent
        self._asked: AskRange | AskSize | None = None
        self._target: Target | None = None
        self._connected_to: Origin | None = None
        self._view: h11.Connection | None = None
        self._n_redirects = 0
        self._moved: dict[str, Target] = {}
        self._is_from_memory = False
        self._asks_for_all = False  # the size by a request without a range
        self._is_first_use = True
        self._has_heard = False
        self._answer: Answer | None = None
        self._taken = self._needless = 0
        self._is_bare = False  # the answer under way: of a known length, not in chunks
        self._ends = False  # the connection, after the answer under way

    def handle(self, event: Event) -> list[Action]:
        """Return what to do after an event."""
        match event:
            case AskRange() | AskSize():
                self._asked = event
                return self._begin()
            case Greet(origin):
                self._connected_to = origin
                return [Connect(origin)]
            case Connected():
                self._is_first_use = True
                self._view = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD_BYTES)
                return self._send() if self._asked is not None else []
            case Received():
                return self._received(event)
            case Filled(n_bytes):
                return self._filled(n_bytes)
            case Lost(why):
                if self._asked is None:
                    return self._disconnect()
                return self._asked_again() or [*self._disconnect(), Fail(why)]

    # Asking -----------------------------------------------------------------------------------

    def _begin(self) -> list[Action]:
        assert self._asked is not None
        self._n_redirects = 0
        self._asks_for_all = False
        moved = self._moved.get(self._asked.path)
        self._is_from_memory = moved is not None
        return self._ask(moved or self._asked.target)

    def _ask(self, target: Target) -> list[Action]:
        """Ask for a target, over the connection that is there if it leads to its server."""
        assert self._asked is not None
        self._target = target
        self._answer, self._taken, self._needless, self._has_heard = None, 0, 0, False
        if self._connected_to == target.origin and self._view is not None:
            return self._send()
        actions = self._disconnect()
        self._connected_to = target.origin
        return [*actions, Connect(target.origin, target.origin != self._asked.target.origin)]

    def _send(self) -> list[Action]:
        assert self._target is not None
        assert self._view is not None
        if self._view.our_state is h11.DONE:
            self._is_first_use = False
            self._view.start_next_cycle()
        headers = [
            ("Host", self._target.origin.authority),
            ("User-Agent", self._agent),
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
            *self._range_headers(),
        ]
        if self._target.authorization is not None:
            headers.append(("Authorization", self._target.authorization))
        request = h11.Request(method="GET", target=self._target.path, headers=headers)
        data = (self._view.send(request) or b"") + (self._view.send(h11.EndOfMessage()) or b"")
        return [Send(data)]

    def _range_headers(self) -> list[tuple[str, str]]:
        asked = self._asked
        if not isinstance(asked, AskRange):
            return [] if self._asks_for_all else [("Range", "bytes=0-0")]
        last = asked.offset_bytes + asked.n_bytes - 1
        headers = [("Range", f"bytes={asked.offset_bytes}-{last}")]
        if asked.version.strong_etag is not None:
            headers.append(("If-Range", asked.version.strong_etag))
        return headers

    # Answers ----------------------------------------------------------------------------------

    def _received(self, event: Received) -> list[Action]:
        if self._view is None or self._asked is None:
            return self._disconnect()  # nothing was asked
        if not event.data and (again := self._asked_again()):
            return again
        self._has_heard = True
        actions: list[Action] = []
        try:
            self._view.receive_data(event.data)
            while self._view is not None:
                match self._view.next_event():
                    case h11.Response() as response:
                        actions += self._head(response, event.now_unix_s)
                    case h11.Data(data=data):
                        actions += self._body(bytes(data))
                    case h11.EndOfMessage():
                        actions += self._done()
                        break
                    case h11.InformationalResponse():
                        continue
                    case h11.ConnectionClosed():
                        actions += [*self._disconnect(), Fail("the server ends the connection")]
                    case _:
                        break
        except h11.RemoteProtocolError as error:
            if self._answer is not None and not self._wants_body:
                return [*self._disconnect(), self._answered()]
            why = f"the server's answer is cut short, or no HTTP: {safe_text(str(error))}"
            return [*self._disconnect(), Fail(why)]
        return actions + self._fill()

    def _fill(self) -> list[Action]:
        """Have the rest of a range put where it belongs, where it comes as it is."""
        asked, view = self._asked, self._view
        if not (self._is_bare and self._wants_body and isinstance(asked, AskRange)):
            return []
        if view is None or view.their_state is not h11.SEND_BODY or self._taken >= asked.n_bytes:
            return []
        return [Fill(asked.n_bytes - self._taken)]

    def _filled(self, n_bytes: int) -> list[Action]:
        """Go on behind what has come past HTTP."""
        asked = self._asked
        if not isinstance(asked, AskRange) or self._view is None:
            return self._disconnect()
        self._taken += n_bytes
        if self._taken < asked.n_bytes:
            why = f"the server was asked for {asked.n_bytes} bytes, and ends after {self._taken}"
            return [*self._disconnect(), Fail(why)]
        # What HTTP has not seen it cannot count: the next answer has a view of its own.
        self._view = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD_BYTES)
        self._is_first_use = False
        answer = self._answered()
        return [*self._disconnect(), answer] if self._ends else [answer]

    def _head(self, response: h11.Response, now_unix_s: float) -> list[Action]:
        assert self._target is not None
        assert self._asked is not None
        head = Head(response.status_code, _headers(response))
        if head.status in REDIRECTS and "location" in head.headers:
            return self._redirect(head.headers["location"])
        if (wait := wait_s(head, now_unix_s)) is not None:
            why = f"the server cannot now ({head.status}), and asks to wait {wait:g} s"
            return [*self._disconnect(), Fail(why, wait)]
        if self._is_from_memory and head.status in (401, 403, 404, 410):
            # Where it led on may have been for a while only: ask where it leads by now.
            self._moved.pop(self._asked.path, None)
            return [*self._disconnect(), *self._begin()]
        if isinstance(self._asked, AskSize) and tells_no_size(head) and not self._asks_for_all:
            self._asks_for_all = True
            return [*self._disconnect(), *self._ask(self._target)]
        self._answer = judged(self._asked, head, self._target, now_unix_s)
        self._is_bare = head.length is not None and "transfer-encoding" not in head.headers
        closes = "close" in head.headers.get("connection", "").lower()
        self._ends = closes or response.http_version < b"1.1"
        length = head.length
        if self._wants_body or (length is not None and length <= MOST_NEEDLESS_BYTES):
            return []
        return [*self._disconnect(), self._answered()]

    def _redirect(self, location: str) -> list[Action]:
        assert self._target is not None
        assert self._asked is not None
        self._n_redirects += 1
        try:
            if self._n_redirects > MOST_REDIRECTS:
                raise ProblemError(f"the server leads on more than {MOST_REDIRECTS} times")
            target = redirected(self._target, location)
            why = self._rule.why_not(self._target.origin, target.origin)
            if why is not None and target.origin != self._asked.target.origin:
                raise ProblemError(why)
        except ProblemError as error:
            return [*self._disconnect(), self._refused(str(error))]
        self._moved[self._asked.path] = target
        self._is_from_memory = False
        return [*self._disconnect(), *self._ask(target)]

    @property
    def _wants_body(self) -> bool:
        return isinstance(self._asked, AskRange) and self._answer == Answer(Worth.GOOD)

    def _body(self, data: bytes) -> list[Action]:
        asked = self._asked
        if self._wants_body and isinstance(asked, AskRange):
            self._taken += len(data)
            if self._taken > asked.n_bytes:
                why = f"the server was asked for {asked.n_bytes} bytes, and sends more"
                return [*self._disconnect(), Fail(why)]
            return [Take(data)]
        self._needless += len(data)
        if self._needless > MOST_NEEDLESS_BYTES:
            return [*self._disconnect(), self._answered()]
        return []

    def _done(self) -> list[Action]:
        asked, view = self._asked, self._view
        if self._wants_body and isinstance(asked, AskRange) and self._taken < asked.n_bytes:
            why = f"the server was asked for {asked.n_bytes} bytes, and ends after {self._taken}"
            return [*self._disconnect(), Fail(why)]
        answer = self._answered()
        can_go_on = view is not None and view.our_state is h11.DONE and view.their_state is h11.DONE
        return [answer] if can_go_on else [*self._disconnect(), answer]

    def _answered(self) -> Answer:
        assert self._answer is not None
        answer, self._answer, self._asked = self._answer, None, None
        return answer

    def _refused(self, why: str) -> Answer:
        self._answer = Answer(Worth.REFUSED, why)
        return self._answered()

    # Ends -------------------------------------------------------------------------------------

    def _disconnect(self) -> list[Action]:
        if self._connected_to is None:
            return []
        self._connected_to = self._view = None
        return [Disconnect()]

    def _asked_again(self) -> list[Action]:
        """Ask once more where a connection ends that has answered before, and has not now."""
        if self._has_heard or self._is_first_use or self._target is None:
            return []
        return [*self._disconnect(), *self._ask(self._target)]


def _headers(response: h11.Response) -> Mapping[str, str]:
    """Return the headers of an answer; those given twice have both values, which fit nothing."""
    found: dict[str, str] = {}
    for name, value in response.headers:
        key = name.decode("ascii", "replace")
        text = re.sub(r"\s+", " ", value.decode("latin-1"))
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
