"""Runs one round of a collection: the core's actions become sessions, timers and notes.

Here are clock, threads and queues; every decision is the core's.
"""

from __future__ import annotations

import heapq
import math
import queue
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from datacollect.control.plan_request import require_planner
from datacollect.errors import StoreError
from datacollect.net.fan_out import Begun
from datacollect.transfer.pull.core.messages import (
    Abandon,
    Action,
    Answered,
    Ask,
    CloseSession,
    CollectorTicked,
    Event,
    Finish,
    Interrupted,
    Note,
    OpenSession,
    Plan,
    Planned,
    Recorded,
    RegroupAsked,
    Request,
    Retire,
    SessionEnded,
    SetAside,
    StoreFailed,
    Unreadable,
    Wake,
    Woken,
)
from datacollect.transfer.pull.sessions import Sessions
from datacollect.transfer.store.history import MOVED, RouteTotals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datacollect.control.plan_request import RemainingPlanner
    from datacollect.net.fan_out import Outcome
    from datacollect.schedule.schedule import Schedule
    from datacollect.transfer.pull.core.core import CollectorCore
    from datacollect.transfer.pull.sessions import OpenPeer
    from datacollect.transfer.store.folder.log import Log
    from datacollect.transfer.store.store import PieceKey, Store

TICK_S = 0.25


class Round:
    """One core at work.

    Parameters
    ----------
    core : CollectorCore
    store : Store
    open_peer : callable
    log : Log
    plan_remaining : callable or None
        Returns a schedule for what a progress leaves, for a controller that asks for it.
    watch : callable, optional
        Called with the core every tick.
    is_more : callable, optional
        Takes the seconds since the start; whether more is to be planned by now.
    until_s : float, optional
        When it ends at the latest, by the monotonic clock: as if interrupted.
    held : callable, optional
        Returns the sources that limits hold back.
    """

    def __init__(
        self,
        core: CollectorCore,
        store: Store,
        open_peer: OpenPeer,
        log: Log,
        plan_remaining: RemainingPlanner | None,
        watch: Callable[[CollectorCore], None] | None = None,
        is_more: Callable[[float], bool] | None = None,
        until_s: float = math.inf,
        held: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._core, self._store, self._log = core, store, log
        self._plan_remaining = plan_remaining
        self._watch = watch or (lambda _: None)
        self._is_more = is_more or (lambda _: False)
        self._held = held
        self._has_regrouped = False
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._timers: list[tuple[float, int]] = []
        self._begun_s = time.monotonic()
        self._most_s = until_s - self._begun_s
        self._next_tick_s = TICK_S
        self._sessions = Sessions(open_peer, store, self._events.put, self._now_s)
        self._moved = RouteTotals()
        self._changed_sources: set[str] = set()
        self._failure: Exception | None = None

    def run(self) -> set[str]:
        """Carry it out to its end; return the sources whose files have changed meanwhile.

        Raises
        ------
        TransferError
            The disk is full or broken.
        KeyboardInterrupt
            What is verified is recorded.
        """
        self._store.start(self._recorded)
        self._log.write(MOVED, routes=self._moved.line())
        interruption: KeyboardInterrupt | None = None
        try:
            self._carry_out(self._core.start())
            while self._core.finished is None:
                try:
                    self._carry_out(self._core.handle(self._next()))
                except KeyboardInterrupt as error:
                    interruption = error
                    self._carry_out(self._core.handle(Interrupted(self._now_s())))
        finally:
            self._moved.arrived(self._sessions.arrived_bytes())
            self._log.write(MOVED, routes=self._moved.line())
            self._sessions.end()
            self._count_last()
            self._store.stop(at_once=interruption is not None, rereads=False)
        if interruption is not None:
            raise interruption
        if self._failure is not None:
            raise self._failure
        return self._changed_sources

    def _count_last(self) -> None:
        """Count what was stored before sessions ended, and is told after the core has finished."""
        while not self._events.empty():
            event = self._events.get()
            if isinstance(event, Answered):
                self._core.count(event)

    def _now_s(self) -> float:
        return time.monotonic() - self._begun_s

    def _recorded(self, pieces: list[PieceKey], failure: Exception | None) -> None:
        """Hear from the store's thread."""
        if failure is not None:
            self._failure = failure
            self._events.put(StoreFailed(self._now_s(), str(failure)))
        else:
            self._events.put(Recorded(self._now_s(), tuple(pieces)))

    def _next(self) -> Event:
        """Wait for the next event, timer or tick."""
        while True:
            now_s = self._now_s()
            if now_s >= self._most_s:
                return Interrupted(now_s)
            if self._timers and self._timers[0][0] <= now_s:
                _, tag = heapq.heappop(self._timers)
                return Woken(now_s, tag)
            if self._next_tick_s <= now_s:
                self._next_tick_s = now_s + TICK_S
                self._watch(self._core)
                try:
                    self._store.look()
                except StoreError as error:
                    self._failure = error
                    return StoreFailed(now_s, str(error))
                if not self._has_regrouped and self._is_more(now_s):
                    self._has_regrouped = True
                    return RegroupAsked(now_s)
                waiting = self._sessions.waiting()
                return CollectorTicked(now_s, self._arrived(now_s), waiting, self._held())
            first_s = min(
                self._next_tick_s, *(time_s for time_s, _ in self._timers[:1]), self._most_s
            )
            try:
                event = self._events.get(timeout=first_s - now_s)
            except queue.Empty:
                continue
            if isinstance(event, SessionEnded):
                self._moved.arrived({event.session: self._sessions.forget(event.session)})
            return event

    def _arrived(self, now_s: float) -> dict[int, int]:
        """Return what each session has received; note it from time to time."""
        arrived = self._sessions.arrived_bytes()
        self._moved.arrived(arrived)
        if self._moved.is_due(now_s):
            self._log.write(MOVED, routes=self._moved.line())
        return arrived

    def _plan(self, wanted: Plan) -> None:
        """Plan the remainder in its own thread; the controller gets an answer in every case."""

        def tell(outcome: Outcome[Schedule]) -> None:
            if outcome.error is not None:
                why = f"{type(outcome.error).__name__}: {outcome.error}"
                self._log.write("not planned", why=why)
            self._events.put(Planned(self._now_s(), wanted.number, outcome.value))

        Begun("plan", lambda _: require_planner(self._plan_remaining)(wanted.progress), tell)

    def _carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Request() | Ask():
                    self._sessions.do(action)
                case OpenSession():
                    self._log.write("session opens", **asdict(action))
                    self._moved.opened(action.session, (action.source, *reversed(action.relays)))
                    self._sessions.open(action)
                case CloseSession(session, is_stuck):
                    self._sessions.close(session, is_stuck=is_stuck)
                case Wake(time_s, tag):
                    heapq.heappush(self._timers, (time_s, tag))
                case Plan():
                    self._plan(action)
                case Note(what, about):
                    self._log.write(what, **about)
                case Finish(why):
                    self._log.write("round ends", why=why)
                case _:
                    self._settle(action)

    def _settle(self, action: Action) -> None:
        """Note what becomes of files."""
        match action:
            case Unreadable(source, files):
                self._store.unreadable(source, files)
                self._log.write("files unreadable", source=source, n=len(files))
            case Retire(source, files, why):
                self._changed_sources.add(source)
                self._store.retire(source, files, why)
                self._log.write("files retired", source=source, n=len(files), why=why)
            case Abandon(source, piece, why):
                self._store.abandon(source, piece, why)
                self._log.write("piece given up", source=source, piece=piece, why=why)
            case SetAside(source, file, why):
                self._store.set_aside(file, why)
                self._log.write("file set aside", source=source, why=why)
