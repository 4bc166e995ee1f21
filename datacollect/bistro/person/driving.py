"""The shell of handing in: threads that ask, one clock, receipts written as they grow."""

from __future__ import annotations

import queue
import time
from typing import TYPE_CHECKING

from datacollect.bistro.person.messages import Answered, Save, Ticked
from datacollect.errors import DatacollectError
from datacollect.net.fan_out import LOOK_S, Begun

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Ticket
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.bistro.person.core import HandingIn
    from datacollect.bistro.person.messages import Question
    from datacollect.net.fan_out import Outcome
    from datacollect.net.http_asking import Answer, Askers


class Driver:
    """Carries out what `HandingIn` decides, for several entries at once.

    Parameters
    ----------
    event : Event
    askers : Askers
    """

    def __init__(self, event: Event, askers: Askers) -> None:
        self._event, self._askers = event, askers
        self._cores: list[HandingIn] = []
        self._save: list[Callable[[Receipt], None]] = []
        self._tickets: list[Ticket | None] = []
        self._arrived: queue.SimpleQueue[Outcome[Answer]] = queue.SimpleQueue()
        # By name of the call: whose it is, and what was asked.
        self._asked: dict[str, tuple[int, Question]] = {}
        self._begun: dict[str, Begun[Answer]] = {}
        self._n_calls = 0

    def add(self, core: HandingIn, ticket: Ticket | None, save: Callable[[Receipt], None]) -> None:
        """Begin to hand something in; `save` has the receipt on the disk when it returns."""
        self._cores.append(core)
        self._tickets.append(ticket)
        self._save.append(save)

    @property
    def are_all_acknowledged(self) -> bool:
        """Return whether a service holds each so far, or a time is proved."""
        return all(core.is_acknowledged for core in self._cores)

    @property
    def are_all_settled(self) -> bool:
        """Return whether nothing is waited for."""
        return all(core.is_settled for core in self._cores)

    def run(self, is_enough: Callable[[HandingIn], bool]) -> None:
        """Go on until there is enough of each, or its patience has ended.

        Raises
        ------
        NotWrittenError
            A receipt cannot be written.
        """
        while True:
            now_s = time.monotonic()
            for i, core in enumerate(self._cores):
                if core.wake_s is not None and core.wake_s <= now_s:
                    self._do(i, Ticked(now_s))
            waiting = [
                core.wake_s
                for core in self._cores
                if core.wake_s is not None and not is_enough(core)
            ]
            if not waiting:
                return
            try:
                wait_s = min(max(min(waiting) - time.monotonic(), 0.0), LOOK_S)
                self._take(self._arrived.get(timeout=wait_s))
            except queue.Empty:
                for begun in [*self._begun.values()]:
                    begun.look()

    def _take(self, outcome: Outcome[Answer]) -> None:
        i, to = self._asked.pop(outcome.name)
        del self._begun[outcome.name]
        if outcome.error is not None and not isinstance(outcome.error, DatacollectError):
            raise outcome.error
        why = "" if outcome.error is None else str(outcome.error)
        self._do(i, Answered(time.monotonic(), to, outcome.value, why))

    def _do(self, i: int, event: Ticked | Answered) -> None:
        for action in self._cores[i].handle(event):
            if isinstance(action, Save):
                self._save[i](self._cores[i].receipt)
            else:
                self._ask(i, action)

    def _ask(self, i: int, to: Question) -> None:
        self._n_calls += 1
        name = str(self._n_calls)
        entry, ticket = self._cores[i].receipt.entry, self._tickets[i]
        self._asked[name] = (i, to)

        def ask(_: str) -> Answer:
            with self._askers.of(to.url(self._event)) as asker:
                return to.ask(asker, self._event, entry, ticket)

        self._begun[name] = Begun(name, ask, self._arrived.put)
