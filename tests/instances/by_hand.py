"""A controller driven by hand: what a test says happens, and nothing else."""

from __future__ import annotations

from datacollect.control.decisions import Open, Send, WakeMe
from datacollect.control.events import RangeArrived


class ByHand:
    """A driver that does nothing by itself: the test says what happens."""

    def __init__(self, controller):
        self.controller = controller
        self.ends = {}
        self.queue = {}

    def start(self):
        return self._note(self.controller.start())

    def tell(self, event):
        return self._note(self.controller.handle(event))

    def arrive(self, time_s, connection):
        """The oldest range on a connection is at its receiver."""
        sent = self.queue[connection].pop(0)
        where = (sent.source, sent.offset_bytes, sent.n_bytes)
        return self.tell(RangeArrived(time_s, connection, self.ends[connection][1], *where))

    def _note(self, decisions):
        for decision in decisions:
            if isinstance(decision, Open):
                assert decision.connection not in self.ends, "numbered twice"
                self.ends[decision.connection] = (decision.from_host, decision.to_host)
                self.queue[decision.connection] = []
            elif isinstance(decision, Send):
                self.queue[decision.connection].append(decision)
        return decisions


def sends(decisions):
    return [(d.connection, d.offset_bytes, d.n_bytes) for d in decisions if isinstance(d, Send)]


def opens(decisions):
    return [(d.connection, d.from_host, d.to_host) for d in decisions if isinstance(d, Open)]


def wakes(decisions):
    return [d.time_s for d in decisions if isinstance(d, WakeMe)]
