"""State machine (sans I/O) of a session with another server: events in, actions out.

One request is under way at a time: not every server, and not every proxy before one, knows what to
do with more. Its copy by `copy.deepcopy` goes on as the original would.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import h11

from datacollect.errors import ProblemError
from datacollect.files.media import said_in
from datacollect.net.safe_text import safe_text
from datacollect.transfer.sources.web.core.evidence import (
    Evidence,
    by_first_byte,
    by_range,
    by_whole,
    settled,
)
from datacollect.transfer.sources.web.core.heads import TOO_MANY, Head, HeadBytes, head_of, wait_s
from datacollect.transfer.sources.web.core.messages import (
    Action,
    AskRange,
    AskSize,
    Connect,
    Connected,
    ConnectionLost,
    Disconnect,
    Event,
    Fail,
    FileAnswer,
    Fill,
    Filled,
    Greet,
    Received,
    SendBytes,
    Take,
    Worth,
)
from datacollect.transfer.sources.web.core.refusals import endless_head, quoted
from datacollect.transfer.sources.web.core.urls import Origin, Target, redirected

if TYPE_CHECKING:
    from datacollect.transfer.sources.web.core.redirects import RedirectRule

MOST_HEAD_BYTES = 64 * 1024
# By which status h11 would have a server answer such a head.
HEAD_TOO_LONG = 431
MOST_REDIRECTS = 5
# A range comes in at most this many answers, where the server sends less than it is asked for.
MOST_PARTS = 1024
# What an answer that is of no use may say, before the connection is rather closed.
MOST_NEEDLESS_BYTES = 16 * 1024
# Of it so much is read for what it says.
MOST_SAID_BYTES = 4096
REDIRECTS = (301, 302, 303, 307, 308)


class WebCore:
    """Ask a server for ranges of files, and judge what it answers.

    Tell it `AskRange` or `AskSize`, then what happens, until it says `FileAnswer` or `Fail`; after
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
        self._first_evidence: Evidence | None = None  # then the size is asked for without a range
        self._is_first_use = True
        self._has_heard = False
        self._answer: FileAnswer | None = None
        # Of a range: what has come, where the answer under way ends, answers so far.
        self._taken = self._part_end = self._n_parts = self._needless = 0
        self._begins = b""  # of a body that is no part of the range
        self._is_error = False  # the answer under way: its body may say why
        self._failing: Fail | None = None  # once that body is there
        self._head_bytes = HeadBytes()
        self._sha256: bytes | None = None  # of the range, as the answer under way says
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
            case ConnectionLost(why, is_late):
                if self._asked is None:
                    return self._disconnect()
                if self._is_error:  # what its head says stands
                    return self._over()
                again = [] if is_late else self._asked_again()
                return again or [*self._disconnect(), Fail(why)]

    # Asking -----------------------------------------------------------------------------------

    def _begin(self) -> list[Action]:
        assert self._asked is not None
        self._n_redirects = self._n_parts = self._taken = 0
        self._first_evidence = None
        return self._ask_where_it_is()

    def _ask_where_it_is(self) -> list[Action]:
        assert self._asked is not None
        moved = self._moved.get(self._asked.path)
        self._is_from_memory = moved is not None
        return self._ask(moved or self._asked.target)

    def _ask(self, target: Target) -> list[Action]:
        """Ask for a target, over the connection that is there if it leads to its server."""
        assert self._asked is not None
        self._target = target
        self._answer, self._needless, self._has_heard, self._begins = None, 0, False, b""
        self._is_error, self._failing = False, None
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
        self._head_bytes = HeadBytes()
        return [SendBytes(data)]

    def _range_headers(self) -> list[tuple[str, str]]:
        asked = self._asked
        if not isinstance(asked, AskRange):
            return [] if self._first_evidence is not None else [("Range", "bytes=0-0")]
        remaining = self._remaining(asked)
        last = remaining.offset_bytes + remaining.n_bytes - 1
        headers = [("Range", f"bytes={remaining.offset_bytes}-{last}")]
        # Where the hash decides, nodes of a farm may call the same bytes by other names.
        if asked.version.strong_etag is not None and asked.version.sha256 is None:
            headers.append(("If-Range", asked.version.strong_etag))
        return headers

    def _remaining(self, asked: AskRange) -> AskRange:
        """Return what of a range has yet to come."""
        if not self._taken:
            return asked
        return replace(
            asked,
            offset_bytes=asked.offset_bytes + self._taken,
            n_bytes=asked.n_bytes - self._taken,
        )

    # Answers ----------------------------------------------------------------------------------

    def _received(self, event: Received) -> list[Action]:
        if self._view is None or self._asked is None:
            return self._disconnect()  # nothing was asked
        if not event.data and (again := self._asked_again()):
            return again
        self._has_heard = True
        actions: list[Action] = []
        try:
            self._feed(self._view, event.data)
            actions += self._read(event.now_unix_s)
        except h11.RemoteProtocolError as error:
            if (self._answer or self._failing) is not None and not self._wants_body:
                return self._over()
            if error.error_status_hint == HEAD_TOO_LONG:
                # Each try would cost as much again, however small the file is.
                return [*self._disconnect(), self._refused(endless_head(MOST_HEAD_BYTES))]
            why = f"malformed or truncated response: {safe_text(str(error))}"
            return [*self._disconnect(), Fail(why)]
        return actions + self._fill()

    def _feed(self, view: h11.Connection, data: bytes) -> None:
        if passed := self._head_bytes.passed(data):
            view.receive_data(passed)
        if not data:
            view.receive_data(b"")

    def _read(self, now_unix_s: float) -> list[Action]:
        """Return what follows of all that can be read by now."""
        actions: list[Action] = []
        while self._view is not None:
            match self._view.next_event():
                case h11.Response() as response:
                    actions += self._head(response, now_unix_s)
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
        return actions

    def _fill(self) -> list[Action]:
        """Have the remainder of a range put where it belongs, where it comes as it is."""
        asked, view = self._asked, self._view
        if not (self._is_bare and self._wants_body and isinstance(asked, AskRange)):
            return []
        if view is None or view.their_state is not h11.SEND_BODY or self._taken >= self._part_end:
            return []
        return [Fill(self._part_end - self._taken)]

    def _filled(self, n_bytes: int) -> list[Action]:
        """Go on behind what has come past HTTP."""
        asked = self._asked
        if not isinstance(asked, AskRange) or self._view is None:
            return self._disconnect()
        self._taken += n_bytes
        if self._taken < self._part_end:
            return self._cut_short(asked)
        # What HTTP has not seen it cannot count: the next answer has a view of its own.
        self._view = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD_BYTES)
        self._is_first_use = False
        return self._part_is_there(asked, can_go_on=not self._ends)

    def _head(self, response: h11.Response, now_unix_s: float) -> list[Action]:
        assert self._target is not None
        assert self._asked is not None
        head = head_of(response)
        self._is_error = head.status >= 400
        if head.status in REDIRECTS and "location" in head.headers:
            return self._redirect(head.headers["location"])
        if (wait := wait_s(head, now_unix_s)) is not None:
            is_asked = head.status == TOO_MANY or "retry-after" in head.headers
            asks = f", and asks to wait {wait:g} s" if is_asked else ""
            why = f"the server is not available ({head.status}){asks}"
            self._failing = Fail(why, wait, head.status, is_asked)
            return self._needless_body(head)
        if self._is_from_memory and head.status in (401, 403, 404, 410):
            # Where it led on may have been for a while only: ask where it leads by now.
            self._moved.pop(self._asked.path)
            return [*self._disconnect(), *self._ask_where_it_is()]
        if isinstance(self._asked, AskSize):
            return self._size_head(self._asked, head, now_unix_s)
        self._answer = by_range(self._remaining(self._asked), head, self._target, now_unix_s)
        self._part_end = self._taken + self._answer.n_bytes
        is_all = self._answer.n_bytes == self._asked.file_bytes
        is_range = self._answer.n_bytes == self._asked.n_bytes
        self._sha256 = head.sha256(is_all=is_all) if is_range else None
        self._is_bare = head.length is not None and "transfer-encoding" not in head.headers
        closes = "close" in head.headers.get("connection", "").lower()
        self._ends = closes or response.http_version < b"1.1"
        return [] if self._wants_body else self._needless_body(head)

    def _size_head(self, asked: AskSize, head: Head, now_unix_s: float) -> list[Action]:
        """Judge what a head says of a file's size; ask otherwise where that is no proof."""
        assert self._target is not None
        if self._first_evidence is not None:
            answer = settled(self._first_evidence, by_whole(asked, head, self._target, now_unix_s))
            # The head says enough: all that follows it may be large.
            return [*self._disconnect(), self._answered(self._described(answer, head))]
        evidence = by_first_byte(asked, head, self._target, now_unix_s)
        is_enough = evidence.is_proof and not (asked.is_doubted and evidence.may_be_doubted)
        if not (is_enough or asked.is_probe):
            self._first_evidence = evidence
            return [*self._disconnect(), *self._ask(self._target)]
        self._answer = self._described(evidence.answer, head)
        return self._needless_body(head)

    def _described(self, answer: FileAnswer, head: Head) -> FileAnswer:
        """Return an answer with what distinguishes pages from files."""
        assert self._target is not None
        assert self._asked is not None
        landed = None if self._target == self._asked.target else self._target
        version = answer.version if answer.worth is Worth.GOOD else head.version
        return replace(answer, version=version, landed=landed, media=head.media)

    def _needless_body(self, head: Head) -> list[Action]:
        """Let a body pass that is of no use, unless it is long: then end the connection.

        Of an error it is of use, also where its length is not said: it may say why.
        """
        n_bytes = head.length
        is_short = self._is_error if n_bytes is None else n_bytes <= MOST_NEEDLESS_BYTES
        return [] if is_short else self._over()

    def _over(self) -> list[Action]:
        """End an answer that has said enough."""
        if self._failing is not None:
            return [
                *self._disconnect(),
                replace(self._failing, why=self._with_reason(self._failing.why)),
            ]
        return [*self._disconnect(), self._answered()]

    def _with_reason(self, why: str) -> str:
        """Return why a server does not give a file, with what it says itself."""
        if not self._is_error or self._target is None:
            return why
        return why + quoted(said_in(self._begins), self._target)

    def _redirect(self, location: str) -> list[Action]:
        assert self._target is not None
        assert self._asked is not None
        self._n_redirects += 1
        try:
            if self._n_redirects > MOST_REDIRECTS:
                raise ProblemError(f"the server redirects more than {MOST_REDIRECTS} times")
            target = redirected(self._target, location)
            why = self._rule.why_not(self._target.origin, target.origin)
            if why is not None and target.origin != self._asked.target.origin:
                raise ProblemError(why)
        except ProblemError as error:
            return [*self._disconnect(), self._refused(str(error))]
        self._is_from_memory = False
        return [*self._disconnect(), *self._ask(target)]

    @property
    def _wants_body(self) -> bool:
        is_good = self._answer is not None and self._answer.worth is Worth.GOOD
        return is_good and isinstance(self._asked, AskRange)

    def _body(self, data: bytes) -> list[Action]:
        asked = self._asked
        if self._wants_body and isinstance(asked, AskRange):
            self._taken += len(data)
            if self._taken > self._part_end:
                why = f"the server was asked for {asked.n_bytes} bytes, and sends more"
                return [*self._disconnect(), Fail(why)]
            return [Take(data)]
        self._begins += data[: MOST_SAID_BYTES - len(self._begins)]
        self._needless += len(data)
        return self._over() if self._needless > MOST_NEEDLESS_BYTES else []

    def _done(self) -> list[Action]:
        asked, view = self._asked, self._view
        can_go_on = view is not None and view.our_state is h11.DONE and view.their_state is h11.DONE
        if self._wants_body and isinstance(asked, AskRange):
            if self._taken < self._part_end:
                return self._cut_short(asked)
            return self._part_is_there(asked, can_go_on=can_go_on)
        if self._failing is not None:
            return self._over()
        answer = self._answered()
        return [answer] if can_go_on else [*self._disconnect(), answer]

    def _part_is_there(self, asked: AskRange, *, can_go_on: bool) -> list[Action]:
        """Answer, or ask for the remainder of a range of which the server has sent a part."""
        gone = [] if can_go_on else self._disconnect()
        if self._taken == asked.n_bytes:
            return [*gone, self._answered(FileAnswer(Worth.GOOD, sha256=self._sha256))]
        self._n_parts += 1
        if self._n_parts >= MOST_PARTS:
            why = (
                f"the server sends {self._taken // self._n_parts} bytes at a time, where "
                f"{asked.n_bytes} were asked for; set a smaller piece_bytes in [limits]"
            )
            return [*gone, self._refused(why)]
        assert self._target is not None
        return [*gone, *self._ask(self._target)]

    def _cut_short(self, asked: AskRange) -> list[Action]:
        why = f"the server was asked for {asked.n_bytes} bytes, and ends after {self._taken}"
        return [*self._disconnect(), Fail(why)]

    def _answered(self, answer: FileAnswer | None = None) -> FileAnswer:
        answer = answer or self._answer
        assert answer is not None
        assert self._asked is not None
        if answer.worth is Worth.GOOD and self._target not in (None, self._asked.target):
            self._moved[self._asked.path] = self._target
        else:  # where it led on may have been for a while only
            self._moved.pop(self._asked.path, None)
        if answer.worth is not Worth.GOOD:
            answer = replace(answer, why=self._with_reason(answer.why))
        if self._begins:
            answer = replace(answer, begins=self._begins[:1])
        self._answer = self._asked = None
        return answer

    def _refused(self, why: str) -> FileAnswer:
        return self._answered(FileAnswer(Worth.REFUSED, why))

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
