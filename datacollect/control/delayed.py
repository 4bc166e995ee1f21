"""Control from one place: news reach it late, and what it decides acts late elsewhere."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Decision, Open, Send, WakeMe
from datacollect.control.events import (
    BytesMoved,
    ConnectionClosed,
    Event,
    HostLost,
    RangeArrived,
    RemainingPlanned,
    Timer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    # What happened, or what is to be done at a host.
    Message: TypeAlias = Event | list[Decision]


@dataclass(frozen=True)
class ControlDelays:
    """Delays of messages between the host that decides and others, in seconds.

    Attributes
    ----------
    to_s, from_s : mapping of str to float
        By the other host.
    """

    to_s: Mapping[str, float]
    from_s: Mapping[str, float]


@dataclass(slots=True)
class _Channel:
    """Messages in flight from one host to another; the first sent is the first to arrive."""

    tag: int
    delay_s: float
    on_their_way: deque[Message] = field(default_factory=deque)

    def posted(self, message: Message, time_s: float) -> WakeMe:
        """Send a message; return the timer of its arrival."""
        self.on_their_way.append(message)
        return WakeMe(time_s + self.delay_s, self.tag)


class DelayedController(Controller):
    """Let a controller decide at one host, with messages that take time from and to all others.

    What it decides about a connection acts once a message has reached the connection's sender.
    That a connection is open, stalled or gone, or has room, it knows once a message from the sender
    has come, what has arrived once one from the receiver has; a lost host it misses when that
    host's next message would have come. Messages keep their order. Timers, and the planning of the
    rest, are where it decides. Nobody knows anything beforehand: its first decisions travel, too.

    Events tell when they got known, not when they happened.

    Parameters
    ----------
    controller : Controller
    delays : ControlDelays
        Of propagation.

    Attributes
    ----------
    answer : dict
        The controller's, and ``most_connections``: how many it had at most at a time, each from the
        decision to open it until its end was known; a chain counts its hops.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.control.planned.scheduled import AsapController
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> delays = ControlDelays(to_s={"S": 0.1, "D": 0.0}, from_s={"S": 0.1, "D": 0.0})
    >>> controller = DelayedController(AsapController(dc.direct(problem)), delays)
    >>> (timer,) = controller.start()
    >>> timer.time_s, [type(d).__name__ for d in controller.handle(Timer(0.1, timer.tag))]
    (0.1, ['Open', 'Send'])
    """

    def __init__(self, controller: Controller, delays: ControlDelays) -> None:
        self._controller = controller
        self.watches_every_s = controller.watches_every_s
        # Tags of timers: even ones are the controller's, odd ones number channels.
        hosts = [*delays.to_s, *delays.from_s]
        each_s = [*delays.to_s.values(), *delays.from_s.values()]
        self._channels = [_Channel(2 * i + 1, delay_s) for i, delay_s in enumerate(each_s)]
        n_to = len(delays.to_s)
        self._to = dict(zip(hosts[:n_to], self._channels[:n_to], strict=True))
        self._from = dict(zip(hosts[n_to:], self._channels[n_to:], strict=True))
        self._ends: dict[int, tuple[str, str]] = {}
        self._held: dict[int, int] = {}  # as how many connections each counts
        self._most_connections = 0

    def start(self) -> list[Decision]:
        """Return the first decisions, at time 0."""
        return self._decided(self._controller.start(), 0.0)

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        match event:
            case Timer():
                return self._woken(event)
            case RemainingPlanned():
                return self._told(event)
            case RangeArrived() | HostLost():
                channel = self._from[event.host]
            case BytesMoved():
                channel = self._from[self._ends[event.connection][1]]
            case _:
                channel = self._from[self._ends[event.connection][0]]
        if channel.delay_s == 0:
            return self._told(event)
        return [channel.posted(event, event.time_s)]

    def _woken(self, event: Timer) -> list[Decision]:
        """Wake the controller, or deliver a message."""
        number, is_message = divmod(event.tag, 2)
        if not is_message:
            return self._told(replace(event, tag=number))
        message = self._channels[number].on_their_way.popleft()
        if isinstance(message, list):
            return message
        return self._told(replace(message, time_s=event.time_s))

    def _told(self, event: Event) -> list[Decision]:
        if isinstance(event, ConnectionClosed):
            self._held.pop(event.connection, None)
        return self._decided(self._controller.handle(event), event.time_s)

    def _decided(self, decisions: Iterable[Decision], time_s: float) -> list[Decision]:
        """Return what acts here and now, and timers for what takes effect elsewhere."""
        now: list[Decision] = []
        later: dict[str, list[Decision]] = {}
        for decision in decisions:
            if isinstance(decision, WakeMe):
                decision = replace(decision, tag=2 * decision.tag)
            host = self._acts_at(decision)
            if host is None or self._to[host].delay_s == 0:
                now.append(decision)
            else:
                later.setdefault(host, []).append(decision)
        now += [self._to[host].posted(batch, time_s) for host, batch in later.items()]
        said = {} if self._controller.answer is None else self._controller.answer
        self.answer = {**said, "most_connections": self._most_connections}
        self.finished = self._controller.finished
        return now

    def _acts_at(self, decision: Decision) -> str | None:
        """Return the host where a decision acts; None where it takes no message.

        None as well for unknown hosts and connections: the driver rejects them.
        """
        match decision:
            case Open(number) if decision.from_host in self._to:
                self._ends[number] = decision.from_host, decision.to_host
                self._held[number] = decision.n_hops
                self._most_connections = max(self._most_connections, sum(self._held.values()))
                return decision.from_host
            case Send() | Close():
                ends = self._ends.get(decision.connection)
                return None if ends is None else ends[0]
        return None
