"""A world for the collector's core: sessions at steady rates on a clock that only events move."""

import heapq
import math
from dataclasses import dataclass, field
from itertools import count

from datacollect.transfer.protocol.source import Verdict
from datacollect.transfer.pull.core.messages import (
    Answered,
    Ask,
    CloseSession,
    CollectorTicked,
    Confirmed,
    OpenSession,
    Plan,
    Planned,
    Request,
    Retire,
    SessionEnded,
    SessionOpened,
    Wake,
    Woken,
)


@dataclass
class World:
    """Rates by hosts of the route, in bytes per second; 0: no connection. Down: hosts by spans."""

    rates: dict
    down: dict = field(default_factory=dict)
    verdicts: dict = field(default_factory=dict)  # (source, piece) -> list of verdicts to come
    silent: set = field(default_factory=set)  # (source, piece) of which nothing comes
    begun_bytes: int = 0  # or only so much of each
    first_byte_s: float = 0.0  # what each answer takes before it begins
    pauses_s: dict = field(default_factory=dict)  # source -> what it asks for where it is down
    is_proved: bool = False  # whether sources show that they are there when a session opens
    latency_s: float = 0.05

    def run(self, core, until_s=600.0):
        """Let a core work; return the seconds it took and what each piece came by."""
        self.core, self.now_s, self.order = core, 0.0, count()
        self.queue, self.sessions, self.came, self.actions = [], {}, [], []
        self.ended = []
        self.has_come = set()
        self._at(0.25, None)
        self._do(core.start())
        while core.finished is None and self.queue and self.now_s < until_s:
            self.now_s, _, event = heapq.heappop(self.queue)
            self._happen(event)
        return self.now_s

    def _at(self, time_s, event):
        heapq.heappush(self.queue, (time_s, next(self.order), event))

    def _is_down(self, hosts):
        spans = (span for host in hosts for span in self.down.get(host, ()))
        return any(begin <= self.now_s < end for begin, end in spans)

    def _happen(self, event):
        match event:
            case None:
                self._tick()
            case ("open", number):
                if number in self.sessions:
                    self._opened(number)
            case ("answer", number, piece, generation):
                session = self.sessions.get(number)
                if session and session["generation"] == generation:
                    self._answer(session, piece)
            case _:
                if isinstance(event, SessionEnded):
                    self.ended.append(event)
                self._do(self.core.handle(event))

    def _tick(self):
        for number, session in list(self.sessions.items()):
            if self._is_down(session["hosts"]):
                self._end(number, "broken")
        arrived = {n: int(s["bytes"]) for n, s in self.sessions.items() if s["open"]}
        self._do(self.core.handle(CollectorTicked(self.now_s, arrived)))
        self._at(self.now_s + 0.25, None)

    def _opened(self, number):
        hosts = self.sessions[number]["hosts"]
        if self._is_down(hosts) or not self.rates.get(hosts):
            self._end(number, "unreachable")
            return
        self.sessions[number]["open"] = True
        self._do(self.core.handle(SessionOpened(self.now_s, number, self.is_proved)))

    def _end(self, number, why):
        wait_s = self.pauses_s.get(self.sessions.pop(number)["hosts"][0], 0.0)
        self._do(self.core.handle(SessionEnded(self.now_s, number, why, wait_s=wait_s)))

    def _answer(self, session, piece):
        source, n_bytes = session["hosts"][0], self.core.work[session["hosts"][0]].sizes[piece]
        session["asked"].remove(piece)
        session["bytes"] += n_bytes
        waiting = self.verdicts.get((source, piece), [])
        verdict = waiting.pop(0) if waiting else Verdict.VERIFIED
        is_new = verdict is Verdict.VERIFIED and (source, piece) not in self.has_come
        if is_new:
            self.has_come.add((source, piece))
            self.came.append((source, piece, session["hosts"], self.now_s))
        number = session["number"]
        self._do(
            self.core.handle(
                Answered(self.now_s, number, source, piece, n_bytes, verdict, is_new=is_new)
            )
        )

    def _do(self, actions):
        for action in actions:
            self.actions.append(action)
            match action:
                case OpenSession(number, source, relays):
                    hosts = (source, *reversed(relays), "D")
                    self.sessions[number] = {
                        "number": number,
                        "hosts": hosts,
                        "open": False,
                        "asked": [],
                        "bytes": 0.0,
                        "free_s": 0.0,
                        "generation": next(self.order),
                    }
                    self._at(self.now_s + self.latency_s, ("open", number))
                case Request(number, source, piece):
                    session = self.sessions[number]
                    session["asked"].append(piece)
                    begin_s = max(self.now_s + self.latency_s, session["free_s"])
                    begin_s += self.first_byte_s
                    n_bytes = self.core.work[source].sizes[piece]
                    rate = 0.0 if (source, piece) in self.silent else self.rates[session["hosts"]]
                    if not rate and session["free_s"] < math.inf:
                        session["bytes"] += self.begun_bytes
                    session["free_s"] = begin_s + n_bytes / rate if rate else math.inf
                    event = ("answer", number, piece, session["generation"])
                    if session["free_s"] < math.inf:  # what follows silence waits for ever
                        self._at(session["free_s"], event)
                case Ask(number, source, piece):
                    self._at(self.now_s, Confirmed(self.now_s, number, source, piece, (7,), ()))
                case CloseSession(number):
                    if number in self.sessions:
                        self.sessions.pop(number)
                        self._at(self.now_s, SessionEnded(self.now_s, number, ""))
                case Wake(time_s, tag):
                    self._at(max(time_s, self.now_s), Woken(max(time_s, self.now_s), tag))
                case _:
                    pass

    def retired(self):
        """What the core wanted retired."""
        return [action for action in self.actions if isinstance(action, Retire)]


class PlanningWorld(World):
    """A world that plans when it is asked to, at once."""

    plan_remaining = None
    plans = 0

    def _do(self, actions):
        super()._do(actions)
        for action in actions:
            if isinstance(action, Plan):
                self.plans += 1
                schedule = self.plan_remaining(action.progress)
                self._at(self.now_s, Planned(self.now_s, action.number, schedule))
