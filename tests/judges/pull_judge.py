"""A witness between a driver and a controller that pulls: what it decides must be possible."""

from __future__ import annotations

from collections import Counter

from datacollect.control.controller import Controller
from datacollect.control.decisions import Close, Open, Send
from datacollect.control.events import ConnectionClosed, HostLost, RangeArrived
from datacollect.numbers.byte_ranges import ByteRanges


class Witness(Controller):
    """Passes all on, and fails where the controller breaks a rule.

    Never more than `connections` between the decision to open and the news of the end, chains
    counting their hops; nothing is
    sent that is not at the sender; nothing is given to a connection that was closed; no connection
    that was given nothing is kept while its host has data that were never sent.
    """

    decides_at_destination = True

    def __init__(self, controller, problem, connections):
        self.controller, self.destination, self.most = controller, problem.destination, connections
        names = problem.names
        self.at = {name: {} for name in names}  # what of each source is at each host
        for parcel in problem.parcels:
            host, source = names[parcel.host], names[parcel.source]
            self._put(host, source, parcel.offset_bytes, parcel.n_bytes)
        self.own_bytes = Counter()
        for parcel in problem.parcels:
            if parcel.release_s <= 0:
                self.own_bytes[names[parcel.host]] += parcel.n_bytes
        self.sent = {}
        self.ends = {}
        self.waiting = {}
        self.closing = set()
        self.known = {}  # hops of each
        self.peak = 0
        self.arrivals = Counter()  # at the destination

    def _put(self, host, source, offset_bytes, n_bytes):
        self.at[host].setdefault(source, ByteRanges()).add(offset_bytes, n_bytes)

    @property
    def answer(self):
        return self.controller.answer

    @property
    def twice_bytes(self):
        """Bytes that came to the destination more than once."""
        return sum((times - 1) * piece[2] for piece, times in self.arrivals.items())

    def start(self):
        return self._seen(self.controller.start())

    def handle(self, event):
        match event:
            case RangeArrived():
                piece = event.source, event.offset_bytes, event.n_bytes
                self._put(event.host, *piece)
                if piece in self.waiting[event.connection]:
                    self.waiting[event.connection].remove(piece)
                if event.host == self.destination:
                    self.arrivals[piece] += 1
            case ConnectionClosed():
                self.known.pop(event.connection, None)
            case HostLost():
                self.at[event.host] = {}
                self.own_bytes[event.host] = 0
        return self._seen(self.controller.handle(event))

    def _seen(self, decisions):
        for decision in decisions:
            match decision:
                case Open(number):
                    self.ends[number] = decision.from_host, decision.to_host
                    self.waiting[number] = []
                    self.known[number] = decision.n_hops
                    self.peak = max(self.peak, sum(self.known.values()))
                    assert self.peak <= self.most
                case Close(number):
                    self.closing.add(number)
                case Send(number, source, offset_bytes, n_bytes):
                    self._sends(number, (source, offset_bytes, n_bytes))
        self._none_idles()
        return decisions

    def _sends(self, number, piece):
        source, offset_bytes, n_bytes = piece
        host = self.ends[number][0]
        assert number not in self.closing
        assert not self.at[host][source].missing(offset_bytes, n_bytes), f"{piece} is not at {host}"
        self.waiting[number].append(piece)
        new = self.sent.setdefault((host, source), ByteRanges()).add(offset_bytes, n_bytes)
        self.own_bytes[host] -= new

    def _none_idles(self):
        for number in self.known.keys() - self.closing:
            host, to_host = self.ends[number]
            if to_host == self.destination and not self.waiting[number]:
                assert self.own_bytes[host] <= 0, f"{number} idles at {host}"
