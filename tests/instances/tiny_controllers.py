"""Controllers small enough to see what an engine has to do with them."""

from __future__ import annotations

import os
from itertools import pairwise

from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import ConnectionHasRoom, RangeArrived
from datacollect.control.planned.direct import DirectController
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem


def pieces(n_bytes: int, number: int) -> list[tuple[int, int]]:
    """Divide a backlog: offsets and lengths."""
    edges = [n_bytes * i // number for i in range(number + 1)]
    return [(a, b - a) for a, b in pairwise(edges)]


class Straight(Controller):
    """Every source sends its backlog over `streams` connections of its own."""

    def __init__(self, backlog_bytes, destination, streams=1, number=1, pace_bytes_per_s=None):
        self.backlog_bytes = backlog_bytes
        self.destination = destination
        self.streams = streams
        self.number = number
        self.pace_bytes_per_s = pace_bytes_per_s

    def start(self):
        decisions = []
        connection = 0
        for source, total in self.backlog_bytes.items():
            for start, n in pieces(total, self.streams):
                decisions.append(
                    Open(connection, (source, self.destination), None, self.pace_bytes_per_s)
                )
                decisions += [
                    Send(connection, source, start + offset, length)
                    for offset, length in pieces(n, self.number)
                ]
                connection += 1
        return decisions

    def handle(self, event):
        return []


class Relayed(Controller):
    """S sends to D over R, in pieces; R forwards bytes as they arrive, or whole pieces."""

    def __init__(self, n_bytes, number, cut_through=False):
        self.pieces = pieces(n_bytes, number)
        self.cut_through = cut_through

    def start(self):
        hops = (0, 1) if self.cut_through else (0,)
        sends = [Send(hop, "S", *piece) for hop in hops for piece in self.pieces]
        return [Open(0, ("S", "R")), Open(1, ("R", "D")), *sends]

    def handle(self, event):
        if isinstance(event, RangeArrived) and event.host == "R" and not self.cut_through:
            return [Send(1, "S", event.offset_bytes, event.n_bytes)]
        return []


class Refilling(Controller):
    """S sends pieces of one size to D, another one whenever there is room."""

    def __init__(self, n_bytes, piece_bytes, window_bytes):
        self.left = [(a, piece_bytes) for a in range(0, n_bytes, piece_bytes)]
        self.window_bytes = window_bytes

    def start(self):
        return [Open(7, ("S", "D"), self.window_bytes)]

    def handle(self, event):
        if not isinstance(event, ConnectionHasRoom):
            return []
        assert 0 < event.room_bytes <= self.window_bytes
        return [Send(7, "S", *self.left.pop(0))] if self.left else []


class CloseAndGoOn(Controller):
    """S sends half, waits, drops the connection in the middle of the other half, resends it."""

    def __init__(self, n_bytes):
        self.first, self.second = pieces(n_bytes, 2)

    def start(self):
        return [Open(0, ("S", "D")), Send(0, "S", *self.first)]

    def handle(self, event):
        match type(event).__name__:
            case "RangeArrived" if event.connection == 0:
                return [Send(0, "S", *self.second), WakeMe(event.time_s + 1.0, 5)]
            case "Timer":
                again = [Open(1, ("S", "D")), Send(1, "S", *self.second)]
                return [Close(0, drop_queue=True), *again]
        return []


class Fatal(Controller):
    """Ends its process in one of several ways."""

    def __init__(self, how):
        self.how = how

    def start(self):
        match self.how:
            case "abort":
                os.abort()
            case "exit":
                os._exit(7)
            case "raise":
                raise RuntimeError("out of ideas")
            case "unknown host":
                return [Open(0, ("S", "X"))]
            case "beyond":
                return [Open(0, ("S", "D")), Send(0, "S", 1, 10)]
            case "no connection":
                return [Send(3, "S", 0, 10)]
        return []

    def handle(self, event):
        return []


class Scripted(Controller):
    """Decides at the start only, and keeps the events."""

    def __init__(self, *decisions):
        self.decisions, self.events = list(decisions), []

    def start(self):
        return self.decisions

    def handle(self, event):
        self.events.append(event)
        return []


def sends_of(*, backlog, destination="D", streams=1):
    """Direct from each source to the destination, whatever the network's capacities."""
    sources = sorted(backlog)
    problem = Problem.from_hosts(
        [*(Host(name, backlog[name]) for name in sources), Host(destination)],
        [Link(name, destination, 1.0) for name in sources],
        destination,
    )
    return DirectController(problem, streams)


class OneByOne(Controller):
    """S sends each piece of its data on a fresh connection, so many at a time."""

    def __init__(self, n_bytes, number, at_a_time=2):
        self.left = list(enumerate(pieces(n_bytes, number)))
        self.at_a_time = at_a_time

    def start(self):
        return [decision for _ in range(self.at_a_time) for decision in self._next()]

    def handle(self, event):
        if isinstance(event, RangeArrived):
            return [Close(event.connection), *self._next()]
        return []

    def _next(self):
        if not self.left:
            return []
        number, piece = self.left.pop(0)
        return [Open(number, ("S", "D")), Send(number, "S", *piece)]
