"""The collector's state machine (sans I/O): events in, actions out.

A controller (`datacollect.control`) decides on routes, connections and ranges of bytes. The core
makes sessions and requests for pieces of its decisions, judges answers and sessions, and tells the
controller what has become of them. Its copy by `copy.deepcopy` goes on as the original would.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from datacollect.control.decisions import Close, Decision, Open, PlanRemaining, Send, WakeMe, refuse
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    ConnectionOpened,
    ConnectionStalled,
    RangeArrived,
    RemainingPlanned,
    Timer,
)
from datacollect.transfer.protocol.source import GONE, Verdict
from datacollect.transfer.pull.core.messages import (
    Abandon,
    Action,
    Answered,
    Ask,
    CloseSession,
    CollectorTicked,
    Confirmed,
    Event,
    Finish,
    Interrupted,
    Note,
    OpenSession,
    Plan,
    Planned,
    RegroupAsked,
    Request,
    Retire,
    SessionEnded,
    SessionOpened,
    SetAside,
    StoreFailed,
    Unreadable,
    Wake,
    Woken,
)
from datacollect.transfer.pull.core.patience import Patience
from datacollect.transfer.pull.core.todo import Remains, SourceWork, Todo
from datacollect.transfer.pull.core.under_way import Session, UnderWay, stall_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.control.controller import Controller
    from datacollect.control.events import Event as ControlEvent

# Why a piece is given up whose answers are no good.
TROUBLES = {
    Verdict.CORRUPT: "its bytes differed from the source's hashes each time",
    Verdict.CHANGED: "it changed each time while it was fetched",
    Verdict.UNREADABLE: "the source cannot read it to its end",
}
DRAIN_S = 3.0  # in which what was asked for may come before more is planned


class CollectorCore:
    """Fetch all needed pieces, by the decisions of a controller.

    Parameters
    ----------
    work : mapping of str to SourceWork
    controller : Controller
        Of chains only: all its connections end at the destination.
    in_flight_bytes : int
        Most that is asked for and has not come.
    patience_s : float
        A source is given up that for this time brings no whole answer, nor more of one than before.
    timeout_s : float
        How long the first byte of an answer may take.
    before : Remains, optional
        What the rounds before have left: late files, and of the patience with sources.
    stranded_after_s : mapping of str to float
        Sources with another route than those that the controller knows: where nothing
        comes from one for this time, the core ends, so that more can be planned.

    Attributes
    ----------
    todo : Todo
        What has yet to come.
    under_way : UnderWay
        Sessions, and what is asked for on them.
    route_bytes : Counter
        New bytes by hosts of the route.
    route_sessions : Counter
        Most sessions at a time on each route.
    refetched : Counter
        Bytes received twice, by the reason.
    finished : str or None
        Why it has ended.
    stranded : set of str
        Sources for which it has ended early.
    """

    def __init__(
        self,
        work: Mapping[str, SourceWork],
        controller: Controller,
        *,
        in_flight_bytes: int = 256 * 2**20,
        patience_s: float = 60.0,
        timeout_s: float = 20.0,
        before: Remains | None = None,
        stranded_after_s: Mapping[str, float] | None = None,
    ) -> None:
        before = before or Remains()
        self.work = dict(work)
        self.todo = Todo(self.work, before)
        self.under_way = UnderWay(in_flight_bytes)
        self.route_bytes: Counter[tuple[str, ...]] = Counter()
        self.route_sessions: Counter[tuple[str, ...]] = Counter()
        self.refetched: Counter[str] = Counter()
        self.finished: str | None = None
        self.stranded: set[str] = set()
        self._controller, self._patience_s = controller, patience_s
        self._patience = Patience(
            work,
            patience_s,
            before.silences,
            stranded_after_s,
            timeout_s=timeout_s,
        )
        self._drains_until_s: float | None = None
        self._news: deque[ControlEvent] = deque()
        self._actions: list[Action] = []
        self._now_s = self._ticked_s = 0.0

    def start(self) -> list[Action]:
        """Return the first actions, at time 0."""
        self._obey(self._controller.start())
        return self._decided()

    def handle(self, event: Event) -> list[Action]:
        """Return what to do after an event; nothing once it has finished."""
        self._now_s = max(self._now_s, event.time_s)
        if self.finished is not None:
            return []
        self._happened(event)
        # Of `Recorded` nothing follows: what is verified is not asked for again.
        return self._decided()

    def _happened(self, event: Event) -> None:
        match event:
            case Answered():
                self._answered(event)
            case CollectorTicked():
                self._ticked(event)
            case Confirmed():
                self._confirmed(event)
            case SessionOpened():
                self._opened(event)
            case SessionEnded():
                self._ended(event)
            case Woken():
                self._news.append(Timer(self._now_s, event.tag))
            case Planned(_, number, schedule):
                self._news.append(RemainingPlanned(self._now_s, number, schedule))
            case RegroupAsked():
                self._drain()
            case StoreFailed(why=why):
                self._finish(why)
            case Interrupted():
                self._finish("interrupted")

    def leave(self, remains: Remains) -> None:
        """Note what the next round is to know."""
        remains.note(self.todo, self._patience.silences(self._now_s))

    def troubles(self, silent_s: float) -> dict[str, str]:
        """Return why sources are tried again of which nothing has come for that time."""
        found = self._patience.troubles(silent_s, self._now_s)
        return {source: why for source, why in found.items() if self.todo.pieces.get(source)}

    def awaited(self, silent_s: float) -> dict[str, str]:
        """Return what is awaited of sources of which no session has got anything for that time."""
        return self._patience.awaited(self.under_way.values(), silent_s, self._now_s)

    # What happens -----------------------------------------------------------------------------

    def _opened(self, event: SessionOpened) -> None:
        number = event.session
        session = self.under_way.get(number)
        if session is None or session.is_closing:
            return
        if event.is_proved:
            self._patience.proved(session.source, self._now_s)
        session.is_open = True
        session.seen_s = session.mark_s = session.moved_s = self._now_s
        hosts = session.hosts
        self.route_sessions[hosts] = max(self.route_sessions[hosts], self.under_way.n_open(hosts))
        self._note("session opened", session)
        self._news.append(ConnectionOpened(self._now_s, number))
        self._request(session)

    def _ended(self, event: SessionEnded) -> None:
        session = self.under_way.ended(event.session)
        if session is None:
            return
        source = session.source
        self._note("session ended", session, why=event.why)
        self._patience.asked_to_wait(source, event.wait_s)
        if not session.is_closing and event.why:
            self._patience.failed(source, event.why)
        if event.is_final and source not in self.todo.given_up:
            self._give_up(source, event.why)
        self._news.append(ConnectionClosed(self._now_s, event.session))
        self._request_all()

    def count(self, event: Answered) -> None:
        """Count the bytes of an answer: also of one that is told once all has finished."""
        if event.verdict is not Verdict.VERIFIED:
            self.refetched[event.verdict.value] += event.n_bytes
        elif not event.is_new:
            self.refetched["sent twice"] += event.n_bytes
        else:
            self.route_bytes[self.under_way.route(event.session)] += event.n_bytes

    def _answered(self, event: Answered) -> None:
        self.count(event)
        session = self.under_way.answered(event.session, event.piece, event.n_bytes, self._now_s)
        source, is_late = event.source, event.verdict is Verdict.LATER
        if not is_late or self.todo.is_newly_late(source, event.piece, self._now_s):
            self._patience.answered(source, self._now_s)
        if event.verdict is Verdict.VERIFIED:
            self.todo.came(source, event.piece, self._now_s)
            self._came(session, event.piece)
        else:
            self._no_good(event, session)
        if session is not None:
            self._request(session)

    def _no_good(self, event: Answered, session: Session | None) -> None:
        source, piece = event.source, event.piece
        # A source itself counts how often it asks for another time.
        is_hopeless = self.todo.count_failed(
            source, piece, counts=event.verdict is not Verdict.LATER
        )
        about = {"source": source, "why": event.why or event.verdict.value}
        self._actions.append(Note("answer refused", about))
        if event.verdict is Verdict.REFUSED and event.file is not None:
            self.todo.drop(source, event.pieces)
            self._actions.append(SetAside(source, event.file, event.why))
            self._came(session, piece)
        elif is_hopeless:
            self.todo.drop(source, (piece,))
            self._actions.append(Abandon(source, piece, event.why or TROUBLES[event.verdict]))
            self._came(session, piece)
        elif session is None or session.is_closing:
            return  # its range goes to another connection
        elif piece not in self.todo.pieces[source]:
            self._came(session, piece)  # its file was set aside meanwhile
        elif event.verdict in (Verdict.CORRUPT, Verdict.LATER):
            session.queue.appendleft(piece)
        else:
            self._actions.append(Ask(session.number, source, piece))

    def _confirmed(self, event: Confirmed) -> None:
        source = event.source
        if event.changed:
            self._actions.append(Retire(source, event.changed, "changed while it was fetched"))
        if event.gone:
            self._actions.append(Retire(source, event.gone, GONE))
        if event.unreadable:
            self._actions.append(Unreadable(source, event.unreadable))
        session = self.under_way.get(event.session)
        if session is None:
            return
        session.queue.appendleft(event.piece)
        self._request(session)

    def _came(self, session: Session | None, piece: int) -> None:
        """Tell the controller of ranges that are entirely there."""
        if session is None:
            return
        for send in session.came(piece):
            ends = session.number, session.hosts[-1]
            offset_bytes, n_bytes = send.offset_bytes, send.n_bytes
            self._news.append(RangeArrived(self._now_s, *ends, send.source, offset_bytes, n_bytes))
        if session.drains and not session.ranges:
            self._close(session)

    def _ticked(self, event: CollectorTicked) -> None:
        for source in event.held:
            self._patience.stand_still(source, self._now_s - self._ticked_s)
        self._ticked_s = self._now_s
        for number, arrived in event.arrived_bytes.items():
            session = self.under_way.get(number)
            if session is not None and session.is_open:
                self._observe(session, arrived, is_waiting=number in event.waiting)
                self._news.append(BytesMoved(self._now_s, number, arrived))
        self._request_all()
        for source, left in self.todo.pieces.items():
            if source in self.todo.given_up:
                continue
            if not left:
                if self.todo.put_off[source]:
                    self._drain()  # it is their turn
            elif self._patience.is_over(source, self._now_s):
                self._give_up(source, self._patience.why_over(source, self._now_s))
            elif self._patience.is_stranded(source, self._now_s):
                self.stranded.add(source)
                self._drain()

    def _observe(self, session: Session, arrived_bytes: int, *, is_waiting: bool) -> None:
        """Learn a session's rate; say so where it is stuck."""
        source = session.source
        self._patience.gained(source, arrived_bytes - session.answered_bytes, self._now_s)
        waited_s = session.observe(self._now_s, arrived_bytes, is_waiting=is_waiting)
        if waited_s is not None:
            self._patience.begun(source, waited_s)
        if not session.asked or is_waiting or session.is_closing:
            return
        shortest_s = stall_s(self._patience_s, others_wait=True)
        if session.waited_s >= shortest_s and session.is_silent(*self._limits_s(session)):
            session.is_stuck = True
            self._patience.failed(source, "stuck")
            self._note("session stuck", session)
            # Answers come in the order of requests: it waits for the first.
            if self.todo.is_newly_late(source, next(iter(session.asked)), self._now_s):
                self._patience.excuse(source)
            self._news.append(ConnectionStalled(self._now_s, session.number))

    def _limits_s(self, session: Session) -> tuple[float, float]:
        """Return how long a session may wait for a first byte, and with too little of an answer."""
        source, piece = session.source, next(iter(session.asked))
        others_wait = self.todo.others_wait(source, piece, self.under_way.awaited(source))
        first_s = self._patience.first_byte_s(source, self._now_s, others_wait=others_wait)
        # What has stalled before is not cut short again: each try would end at the same place.
        if not others_wait and piece in self.todo.late[source]:
            return first_s, first_s
        return first_s, stall_s(self._patience_s, others_wait=others_wait)

    # What the controller wants ----------------------------------------------------------------

    def _drain(self) -> None:
        if self._drains_until_s is None:
            self._drains_until_s = self._now_s + DRAIN_S

    def _decided(self) -> list[Action]:
        while self._news and self.finished is None:
            self._obey(self._controller.handle(self._news.popleft()))
        if self.finished is None and (why := self._ending()) is not None:
            self._finish(why)
        actions, self._actions = self._actions, []
        return actions

    def _ending(self) -> str | None:
        """Return why this round is over; None as long as it is not."""
        if (why := self.todo.ending) is not None:
            return why
        if self._controller.finished and not self.under_way:
            return "the controller has ended"
        until_s = self._drains_until_s
        # Of a stranded source nothing has come for long: it is waited for over another route.
        is_dry = until_s is not None and self.under_way.is_dry(self.stranded)
        if until_s is not None and (is_dry or self._now_s >= until_s):
            self._cut_off()
            return "more is to be planned"
        return None

    def _cut_off(self) -> None:
        """Count no silence of those who wait for a first byte while this round ends."""
        for source in self.work:
            waiting = [
                self._now_s - session.moved_s
                for session in self.under_way.of(source)
                if session.asked and not (session.has_begun or session.is_closing)
            ]
            self._patience.cut_off(source, max(waiting, default=0.0))

    def _obey(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            match decision:
                case Open():
                    self._open(decision)
                case Send():
                    self._send(decision)
                case Close():
                    self._let_go(decision)
                case WakeMe(time_s, tag):
                    self._actions.append(Wake(time_s, tag))
                case PlanRemaining(number, progress):
                    self._actions.append(Plan(number, progress))

    def _open(self, wanted: Open) -> None:
        source, *relays, _ = wanted.hosts
        if source not in self.work:
            refuse(wanted, f"{source!r} is not a source: relays hold nothing")
        self.under_way.begin(Session(wanted.connection, wanted.hosts, self._now_s))
        self._actions.append(OpenSession(wanted.connection, source, tuple(reversed(relays))))

    def _send(self, send: Send) -> None:
        session = self.under_way.get(send.connection)
        if session is None:
            return  # it ended, and the controller is about to hear of it
        todo, work = self.todo.pieces[send.source], self.work[send.source]
        pieces = [p for p in work.beginning_in(send.offset_bytes, send.n_bytes) if p in todo]
        session.wants(send, pieces)
        if not pieces:
            self._came(session, -1)
        self._request(session)

    def _let_go(self, close: Close) -> None:
        session = self.under_way.get(close.connection)
        if session is None:
            return
        if close.drop_queue or not session.ranges:
            self._close(session)
        session.drains = True

    def _close(self, session: Session) -> None:
        if not session.is_closing:
            session.is_closing = True
            self._actions.append(CloseSession(session.number, session.is_stuck))

    def _request_all(self) -> None:
        for session in self.under_way.values():
            self._request(session)

    def _request(self, session: Session) -> None:
        """Ask for pieces, as many as keep the session busy."""
        sizes, todo = self.work[session.source].sizes, self.todo.pieces[session.source]
        while self._drains_until_s is None:
            piece = self.under_way.next_piece(session, sizes)
            if piece is None:
                return
            if piece not in todo:
                self._came(session, piece)
                continue
            self.under_way.ask(session, piece, sizes[piece])
            self._actions.append(Request(session.number, session.source, piece))

    # Ends -------------------------------------------------------------------------------------

    def _give_up(self, source: str, why: str) -> None:
        self.todo.given_up[source] = why
        self._actions.append(Note("source given up", {"source": source, "why": why}))
        for session in self.under_way.of(source):
            self._close(session)

    def _finish(self, why: str) -> None:
        self.finished = why
        for session in self.under_way.values():
            self._close(session)
        self._actions.append(Finish(why))

    def _note(self, what: str, session: Session, **about: Any) -> None:
        facts = {"session": session.number, "hosts": list(session.hosts), **about}
        self._actions.append(Note(what, facts))
