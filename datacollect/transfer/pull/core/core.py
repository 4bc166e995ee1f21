"""The collector's core: events in, actions out. No clock, no threads, no sockets, no disk.

A controller (`datacollect.control`) decides on routes, connections and ranges of bytes. The core
makes sessions and requests for pieces of its decisions, judges answers and sessions, and tells the
controller what has become of them. Its copy by `copy.deepcopy` goes on as the original would.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from datacollect.control.decisions import Close, Decision, Open, PlanRest, Send, WakeMe, refuse
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    ConnectionOpened,
    ConnectionStalled,
    RangeArrived,
    RestPlanned,
    Timer,
)
from datacollect.transfer.protocol.source import GONE, Verdict
from datacollect.transfer.pull.core.books import TROUBLES, AskedRange, Session, SourceWork, stall_s
from datacollect.transfer.pull.core.late import Late
from datacollect.transfer.pull.core.messages import (
    Abandon,
    Action,
    Answered,
    Ask,
    CloseSession,
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
    Ticked,
    Unreadable,
    Wake,
    Woken,
)
from datacollect.transfer.pull.core.patience import Patience, Silence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.control.controller import Controller
    from datacollect.control.events import Event as ControlEvent

MOST_TRIES = 5  # after which a piece is given up whose answers are no good
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
        A source is given up that for so long brings no whole answer, nor more of one than before.
    silences : mapping of str to Silence
        What the round before has left of its patience with sources.
    late : mapping of str to set of int
        Pieces of files of which nothing came before, when it was their turn.
    stranded_after_s : mapping of str to float
        Sources for which there is another way than those that the controller knows: where nothing
        comes from one for so long, the core ends, so that more can be planned.

    Attributes
    ----------
    todo : dict of str to set of int
        Pieces that are not verified yet, but those that are left to the next round.
    late : Late
        Those of files of which nothing comes.
    given_up : dict of str to str
        Sources from which nothing more can be had, and why.
    route_bytes : Counter
        New bytes by hosts of the route.
    route_sessions : Counter
        Most sessions at a time on each route.
    refetched : Counter
        Bytes that came in vain, by the reason.
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
        silences: Mapping[str, Silence] | None = None,
        late: Mapping[str, set[int]] | None = None,
        stranded_after_s: Mapping[str, float] | None = None,
    ) -> None:
        self.work = dict(work)
        self.todo = {source: set(each.needed) for source, each in work.items()}
        self.given_up: dict[str, str] = {}
        self.route_bytes: Counter[tuple[str, ...]] = Counter()
        self.route_sessions: Counter[tuple[str, ...]] = Counter()
        self.refetched: Counter[str] = Counter()
        self.finished: str | None = None
        self._controller = controller
        self._in_flight_bytes, self._patience_s = in_flight_bytes, patience_s
        self.late = Late(self.work, late)
        self._sessions: dict[int, Session] = {}
        self._asked_bytes = 0
        self._tries: Counter[tuple[str, int]] = Counter()
        self._patience = Patience(work, patience_s, silences, stranded_after_s)
        self.stranded: set[str] = set()
        self._drains_until_s: float | None = None
        self._news: deque[ControlEvent] = deque()
        self._actions: list[Action] = []
        self._now_s = 0.0

    def start(self) -> list[Action]:
        """Return the first actions, at time 0."""
        self._obey(self._controller.start())
        return self._decided()

    def handle(self, event: Event) -> list[Action]:
        """Return what to do after an event."""
        self._now_s = max(self._now_s, event.time_s)
        if self.finished is not None:
            return []
        match event:
            case Answered():
                self._answered(event)
            case Ticked():
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
                self._news.append(RestPlanned(self._now_s, number, schedule))
            case RegroupAsked():
                self._drain()
            case StoreFailed(why=why):
                self._finish(why)
            case Interrupted():
                self._finish("interrupted")
        # Of `Recorded` nothing follows: what is verified is not asked for again.
        return self._decided()

    def silences(self) -> dict[str, Silence]:
        """Return what the next round is to know of sources that are silent."""
        return self._patience.silences(self._now_s)

    def troubles(self, silent_s: float) -> dict[str, str]:
        """Return why sources are tried again of which nothing has come for so long."""
        found = self._patience.troubles(silent_s, self._now_s)
        return {source: why for source, why in found.items() if self.todo.get(source)}

    def awaited(self, silent_s: float) -> dict[str, str]:
        """Return what is awaited of sources of which no session has got anything for so long."""
        return self._patience.awaited(self._sessions.values(), silent_s, self._now_s)

    @property
    def left_bytes(self) -> int:
        """What has yet to come."""
        return sum(self.work[s].sizes[piece] for s, todo in self.todo.items() for piece in todo)

    # What happens -----------------------------------------------------------------------------

    def _opened(self, event: SessionOpened) -> None:
        number = event.session
        session = self._sessions.get(number)
        if session is None or session.is_closing:
            return
        if event.is_proved:
            self._patience.proved(session.source, self._now_s)
        session.is_open = True
        session.seen_s = session.mark_s = session.moved_s = self._now_s
        on_route = sum(s.is_open and s.hosts == session.hosts for s in self._sessions.values())
        self.route_sessions[session.hosts] = max(self.route_sessions[session.hosts], on_route)
        self._note("session opened", session)
        self._news.append(ConnectionOpened(self._now_s, number))
        self._request(session)

    def _ended(self, event: SessionEnded) -> None:
        session = self._sessions.pop(event.session, None)
        if session is None:
            return
        self._asked_bytes -= session.asked_bytes
        source = session.source
        self._note("session ended", session, why=event.why)
        self._patience.asked_to_wait(source, event.wait_s)
        if not session.is_closing and event.why:
            self._patience.failed(source, event.why)
        if event.is_final and source not in self.given_up:
            self._give_up(source, event.why)
        self._news.append(ConnectionClosed(self._now_s, event.session))
        self._request_all()

    def _answered(self, event: Answered) -> None:
        session = self._sessions.get(event.session)
        if session is not None:
            self._asked_bytes -= session.answered(event.piece, self._now_s)
        is_late = event.verdict is Verdict.LATER
        if not is_late or self._is_newly_late(event.source, event.piece):
            self._patience.answered(event.source, self._now_s)
        if event.verdict is Verdict.VERIFIED:
            self._verified(event, session)
        else:
            self._no_good(event, session)
        if session is not None:
            self._request(session)

    def _verified(self, event: Answered, session: Session | None) -> None:
        self.todo[event.source].discard(event.piece)
        self.late.came(event.source, event.piece, self._now_s)
        self._tries.pop((event.source, event.piece), None)
        if not event.is_new:
            self.refetched["sent twice"] += event.n_bytes
        elif session is not None:
            self.route_bytes[session.hosts] += event.n_bytes
        if session is not None:
            self._came(session, event.piece)

    def _no_good(self, event: Answered, session: Session | None) -> None:
        key = (event.source, event.piece)
        self._tries[key] += event.verdict is not Verdict.LATER  # its source counts those
        self.refetched[event.verdict.value] += event.n_bytes
        about = {"source": event.source, "why": event.why or event.verdict.value}
        self._actions.append(Note("answer refused", about))
        if event.verdict is Verdict.REFUSED and event.file is not None:
            self.todo[event.source].difference_update(event.pieces)
            self._actions.append(SetAside(event.source, event.file, event.why))
            if session is not None:
                self._came(session, event.piece)
        elif self._tries[key] > MOST_TRIES:
            self._abandon(event.source, event.piece, event.why or TROUBLES[event.verdict])
            if session is not None:
                self._came(session, event.piece)
        elif session is None or session.is_closing:
            return  # its range goes to another connection
        elif event.piece not in self.todo[event.source]:
            self._came(session, event.piece)  # its file was set aside meanwhile
        elif event.verdict in (Verdict.CORRUPT, Verdict.LATER):
            session.queue.appendleft(event.piece)
        else:
            self._actions.append(Ask(session.number, event.source, event.piece))

    def _confirmed(self, event: Confirmed) -> None:
        source = event.source
        if event.changed:
            self._actions.append(Retire(source, event.changed, "changed while it was fetched"))
        if event.gone:
            self._actions.append(Retire(source, event.gone, GONE))
        if event.unreadable:
            self._actions.append(Unreadable(source, event.unreadable))
        session = self._sessions.get(event.session)
        if session is None:
            return
        session.queue.appendleft(event.piece)
        self._request(session)

    def _came(self, session: Session, piece: int) -> None:
        """Tell the controller of ranges that are entirely there."""
        for each in session.ranges_of.pop(piece, ()):
            each.left -= 1
        while session.ranges and not session.ranges[0].left:
            send = session.ranges.popleft().send
            self._news.append(
                RangeArrived(
                    self._now_s,
                    session.number,
                    session.hosts[-1],
                    send.source,
                    send.offset_bytes,
                    send.n_bytes,
                )
            )
        if session.drains and not session.ranges:
            self._close(session)

    def _ticked(self, event: Ticked) -> None:
        for number, arrived in event.arrived_bytes.items():
            session = self._sessions.get(number)
            if session is not None and session.is_open:
                self._observe(session, arrived, is_waiting=number in event.waiting)
                self._news.append(BytesMoved(self._now_s, number, arrived))
        self._request_all()
        for source, todo in self.todo.items():
            if source in self.given_up:
                continue
            if not todo:
                if self.late.put_off[source]:
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
        others_wait = self.late.others_wait(source, self.todo[source])
        most_s = stall_s(self._patience_s, others_wait=others_wait)
        is_stuck = session.observe(self._now_s, arrived_bytes, most_s, is_waiting=is_waiting)
        if is_stuck and not session.is_closing:
            session.is_stuck = True
            self._patience.failed(source, "stuck")
            self._note("session stuck", session)
            # Answers come in the order of requests: it waits for the first.
            if self._is_newly_late(source, next(iter(session.asked))):
                self._patience.excuse(source)
            self._news.append(ConnectionStalled(self._now_s, session.number))

    def _is_newly_late(self, source: str, piece: int) -> bool:
        return self.late.note(source, piece, self.todo[source], self._now_s)

    # What the controller wants ----------------------------------------------------------------

    def _drain(self) -> None:
        if self._drains_until_s is None:
            self._drains_until_s = self._now_s + DRAIN_S

    def _decided(self) -> list[Action]:
        while self._news and self.finished is None:
            self._obey(self._controller.handle(self._news.popleft()))
        if self.finished is None and not any(
            todo and source not in self.given_up for source, todo in self.todo.items()
        ):
            self._finish("nothing more can be had" if self.given_up else self.late.ending)
        elif self.finished is None and self._controller.finished and not self._sessions:
            self._finish("the controller has ended")
        elif self.finished is None and self._drains_until_s is not None:
            is_dry = not any(session.asked for session in self._sessions.values())
            if is_dry or self._now_s >= self._drains_until_s:
                self._finish("more is to be planned")
        actions, self._actions = self._actions, []
        return actions

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
                case PlanRest(number, progress):
                    self._actions.append(Plan(number, progress))

    def _open(self, wanted: Open) -> None:
        source, *relays, _ = wanted.hosts
        if source not in self.work:
            refuse(wanted, f"{source!r} is no source: relays hold nothing")
        self._sessions[wanted.connection] = Session(wanted.connection, wanted.hosts, self._now_s)
        self._actions.append(OpenSession(wanted.connection, source, tuple(reversed(relays))))

    def _send(self, send: Send) -> None:
        session = self._sessions.get(send.connection)
        if session is None:
            return  # it ended, and the controller is about to hear of it
        todo, work = self.todo[send.source], self.work[send.source]
        pieces = [p for p in work.beginning_in(send.offset_bytes, send.n_bytes) if p in todo]
        asked = AskedRange(send, len(pieces))
        session.ranges.append(asked)
        for piece in pieces:
            session.ranges_of[piece].append(asked)
        session.queue.extend(pieces)
        if not pieces:
            self._came(session, -1)
        self._request(session)

    def _let_go(self, close: Close) -> None:
        session = self._sessions.get(close.connection)
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
        for session in self._sessions.values():
            self._request(session)

    def _request(self, session: Session) -> None:
        """Ask for pieces, as many as keep the session busy."""
        sizes, todo = self.work[session.source].sizes, self.todo[session.source]
        while self._drains_until_s is None:
            piece = session.next_piece(sizes, self._in_flight_bytes - self._asked_bytes)
            if piece is None:
                return
            if piece not in todo:
                self._came(session, piece)
                continue
            session.ask(piece, sizes[piece])
            self._asked_bytes += sizes[piece]
            self._actions.append(Request(session.number, session.source, piece))

    # Ends -------------------------------------------------------------------------------------

    def _abandon(self, source: str, piece: int, why: str) -> None:
        self.todo[source].discard(piece)
        self._actions.append(Abandon(source, piece, why))

    def _give_up(self, source: str, why: str) -> None:
        self.given_up[source] = why
        self._actions.append(Note("source given up", {"source": source, "why": why}))
        for session in list(self._sessions.values()):
            if session.source == source:
                self._close(session)

    def _finish(self, why: str) -> None:
        self.finished = why
        for session in self._sessions.values():
            self._close(session)
        self._actions.append(Finish(why))

    def _note(self, what: str, session: Session, **about: Any) -> None:
        facts = {"session": session.number, "hosts": list(session.hosts), **about}
        self._actions.append(Note(what, facts))
