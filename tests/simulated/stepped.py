"""A session's thread that is never started: the simulated clock has it do one thing at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectError
from datacollect.transfer.pull import sessions
from datacollect.transfer.pull.core import messages

if TYPE_CHECKING:
    from datacollect.transfer.store.store import Store


class Stepped(sessions._SessionThread):
    """One session, for a `simulated.pulls.Start`."""

    decides_s = 0.0  # by its own clock

    def __init__(self, opening: Any, open_peer: Any, opened: Store, start: Any) -> None:
        super().__init__(opening, open_peer, opened, start._tell, lambda: start.now_s)
        self.start_of = start
        self.relays = opening.relays
        self.rate_bytes_per_s = 1.0
        self.has_begun = self.is_over = False
        self._begins_s: float | None = None

    def begin(self) -> None:
        """Connect, or not."""
        start, number = self.start_of, self._opening.session
        source = start.pull.sources[self._opening.source]
        self.has_begun = True
        down = not source.is_up or bool(start.lost_relays & set(self.relays))
        if self._has_ended or down or start.draws.random() < source.trouble.refused:
            self._over("cannot be reached")
            return
        self._peer = self._open_peer(self._opening.source, self._opening.relays)
        self._tell(messages.SessionOpened(start.now_s, number))
        start._step_soon(self)

    def wait_s(self) -> float:
        """How long it takes until the next thing can be done."""
        if not self.wanted.empty() or self._has_ended or not self._asked:
            return 0.001
        n_bytes = sum(segment.span.n_bytes for segment in self._asked[0][1])
        source = self.start_of.pull.sources[self._opening.source]
        stuck_s = 60.0 if self.start_of.draws.random() < source.trouble.stuck else 0.0
        return 0.02 + self._first_s(source) + n_bytes / self.rate_bytes_per_s + stuck_s

    def _first_s(self, source: Any) -> float:
        """How long the answer that comes next takes to begin: whatever is asked for meanwhile."""
        if self._begins_s is None:
            self._begins_s = self.start_of.now_s + source.first_byte_s
        return max(0.0, self._begins_s - self.start_of.now_s)

    def step(self) -> None:
        """What its thread would do next."""
        start = self.start_of
        start.stepping.discard(self._opening.session)
        if self.is_over:
            return
        if self._has_ended:
            self._over("")
            return
        if self.wanted.empty() and not self._asked:
            return
        n_asked = len(self._asked)
        try:
            self._work(self._peer)
            if len(self._asked) < n_asked:
                self._begins_s = None
        except (DatacollectError, OSError) as error:
            start._require_power()
            if start.store._failure is not None:
                start.failure = str(start.store._failure)
                start._tell(messages.StoreFailed(start.now_s, start.failure))
            self._over(str(error), sessions.is_final_error(error))
            return
        start._require_power()
        if self._has_ended:
            self._over("")
        elif self._asked or not self.wanted.empty():
            start._step_soon(self)

    def _over(self, why: str, is_final: bool = False) -> None:
        self.is_over = True
        number = self._opening.session
        self.start_of.hops.pop(number, None)
        self._tell(messages.SessionEnded(self.start_of.now_s, number, why, is_final))
