"""The lease of a host: at most one test at a time, whoever asks.

Nothing here has a clock: who calls says what time it is, on a clock that never jumps. A lease ends
when its holder gives it back, when the connection over which it was asked for ends, when the
process that keeps it ends, and in any case by its time. Who has to wait has a place in the queue
as long as it keeps asking, and is told after how long at most it is its turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from datacollect.errors import ProblemError

# Who waits asks so often; a place in the queue lapses after the second, so that one lost message
# costs no place.
ASK_EVERY_S = 2.0
PLACE_S = 6.0


@dataclass(frozen=True)
class Granted:
    """The host is the asker's.

    Attributes
    ----------
    seconds : float
        For so long from the instant of the answer on.
    """

    seconds: float


@dataclass(frozen=True)
class Wait:
    """The host is another's.

    Attributes
    ----------
    wait_s : float
        After so many seconds at most it is the asker's turn, as long as it keeps its place.
    ask_again_s : float
        It keeps its place by asking again after so many seconds.
    """

    wait_s: float
    ask_again_s: float


LeaseAnswer: TypeAlias = Granted | Wait


@dataclass
class _Place:
    seconds: float
    lapses_s: float


@dataclass
class HostLease:
    """Lease of a host: who may test it now, and who is next.

    Attributes
    ----------
    longest_s : float
        No lease is longer, whatever is asked for.

    Examples
    --------
    >>> lease = HostLease(60.0)
    >>> lease.ask("a", 30.0, now_s=0.0)
    Granted(seconds=30.0)
    >>> lease.ask("b", 30.0, now_s=10.0)
    Wait(wait_s=20.0, ask_again_s=2.0)
    >>> lease.give_back("a", now_s=11.0)
    >>> lease.ask("b", 30.0, now_s=12.0)
    Granted(seconds=30.0)
    """

    longest_s: float
    _holder: str | None = None
    _until_s: float = 0.0
    _queue: dict[str, _Place] = field(default_factory=dict)

    def holder(self, now_s: float) -> str | None:
        """Return whose the host is, None where it is nobody's."""
        return self._holder if now_s < self._until_s else None

    def ask(self, token: str, seconds: float, now_s: float) -> LeaseAnswer:
        """Answer who asks for the host, for the first time or again.

        Parameters
        ----------
        token : str
            The asker's, of one attempt: a lease that was given back is not taken up again.
        seconds : float
            For how long, > 0; more than the longest becomes the longest.
        now_s : float

        Raises
        ------
        ProblemError
            The seconds are none.
        """
        if not seconds > 0:
            raise ProblemError(f"a lease must be for > 0 s, got {seconds!r}; say for how long")
        holder = self.holder(now_s)
        if holder == token:
            return Granted(self._until_s - now_s)
        seconds = min(seconds, self.longest_s)
        self._queue = {
            other: place for other, place in self._queue.items() if now_s < place.lapses_s
        }
        self._queue.setdefault(token, _Place(seconds, 0.0)).lapses_s = now_s + PLACE_S
        if holder is None and next(iter(self._queue)) == token:
            del self._queue[token]
            self._holder, self._until_s = token, now_s + seconds
            return Granted(seconds)
        left_s = 0.0 if holder is None else self._until_s - now_s
        return Wait(left_s + self._ahead_s(token), ASK_EVERY_S)

    def give_back(self, token: str, now_s: float) -> None:
        """End a lease, or leave the queue; also where the asker's connection has ended."""
        self._queue.pop(token, None)
        if self.holder(now_s) == token:
            self._holder = None

    def _ahead_s(self, token: str) -> float:
        """Return how long those ahead may take: to ask again or lose their place, and then."""
        ahead = list(self._queue)[: list(self._queue).index(token)]
        return sum(PLACE_S + self._queue[other].seconds for other in ahead)
