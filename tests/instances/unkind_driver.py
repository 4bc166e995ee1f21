"""A driver that lets things happen in any order: connections break, stall and open late."""

from __future__ import annotations

import heapq

from datacollect.control.decisions import Close, Open, Send, WakeMe
from datacollect.control.events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionStalled,
    HostLost,
    RangeArrived,
    Timer,
)


class UnkindDriver:
    """Carries a controller's decisions out; `random` says what happens next.

    Of each connection what was queued first arrives first; all else comes in any order. After
    `n_faults` faults nothing breaks any more.
    """

    def __init__(self, controller, destination, total_bytes, random, n_faults=30, lost=()):
        self.controller, self.destination, self.random = controller, destination, random
        self.left_bytes, self.n_faults, self.lost = total_bytes, n_faults, list(lost)
        self.there = set()
        self.now_s = 0.0
        self.opening, self.queues, self.ends, self.closing = [], {}, {}, set()
        self.timers = []
        self.gone_hosts = set()

    def run(self, most_steps=100_000):
        """Return whether all arrived."""
        self._do(self.controller.start())
        for _ in range(most_steps):
            if self.left_bytes == 0:
                return True
            if not self._step():
                return False
        return False

    def _step(self):
        self.now_s += float(self.random.exponential(0.01))
        busy = [n for n, queue in self.queues.items() if queue and n not in self.opening]
        chance = self.random.random()
        if self.timers and (self.timers[0][0] <= self.now_s or not (busy or self.opening)):
            at_s, _, tag = heapq.heappop(self.timers)
            self.now_s = max(self.now_s, at_s)
            self._tell(Timer(self.now_s, tag))
        elif self.lost and chance < 0.002:
            self._lose(self.lost.pop())
        elif self.n_faults and chance < 0.02 and self.queues:
            self._break(int(self.random.choice(sorted(self.queues))))
        elif self.opening and (chance < 0.5 or not busy):
            number = self.opening.pop(int(self.random.integers(len(self.opening))))
            self._tell(ConnectionOpened(self.now_s, number))
            self._end_if_drained(number)
        elif busy:
            self._deliver(int(self.random.choice(busy)))
        else:
            return False
        return True

    def _tell(self, event):
        self._do(self.controller.handle(event))

    def _do(self, decisions):
        for decision in decisions:
            match decision:
                case Open(number, hosts):
                    self.ends[number], self.queues[number] = (hosts[0], hosts[-1]), []
                    self.opening.append(number)
                case Send(number, source, offset_bytes, n_bytes):
                    if number in self.queues:
                        self.queues[number].append((source, offset_bytes, n_bytes))
                case Close(number, drop_queue):
                    self.closing.add(number)
                    if drop_queue:
                        self._end(number)
                    else:
                        self._end_if_drained(number)
                case WakeMe(at_s, tag):
                    heapq.heappush(self.timers, (at_s, len(self.ends) + len(self.timers), tag))

    def _deliver(self, number):
        piece = self.queues[number].pop(0)
        host = self.ends[number][1]
        if host == self.destination and piece not in self.there:
            self.there.add(piece)
            self.left_bytes -= piece[2]
        if self.left_bytes:
            self._tell(RangeArrived(self.now_s, number, host, *piece))
            self._end_if_drained(number)

    def _break(self, number):
        self.n_faults -= 1
        if self.random.random() < 0.5 and self.queues[number]:
            self._tell(ConnectionStalled(self.now_s, number))
        else:
            self._end(number)

    def _end_if_drained(self, number):
        if number in self.closing and number in self.queues and not self.queues[number]:
            self._end(number)

    def _end(self, number):
        if self.queues.pop(number, None) is not None:
            self.opening = [other for other in self.opening if other != number]
            self._tell(ConnectionClosed(self.now_s, number))

    def _lose(self, host):
        self.gone_hosts.add(host)
        for number in [n for n in self.queues if host in self.ends[n]]:
            self._end(number)
        self._tell(HostLost(self.now_s, host))
