"""Takes the leases of all hosts of a test: events in, actions out.

Leases are taken one after the other in the order of the hosts' fingerprints, which are the same
under whatever names operators know the hosts: of several who each hold a lease and wait for
another, the one whose next host is last in that order waits for nobody who waits, so there is no
circle (Havender, "Avoiding deadlock in multitasking systems", IBM Systems Journal 7, 1968).

A lease is counted from the instant at which it was asked for. The host counts from a later one,
so what is left by this count is left at the host as well, and no clocks are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from datacollect.errors import ProblemError
from datacollect.measuring.plan.host_lease import Granted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.measuring.plan.host_lease import LeaseAnswer

# An answer that is not there by then is lost: asking again does no harm.
ANSWER_S = 5.0
# Tests often end before their time: a host that is another's is asked for again after so long.
LONGEST_PAUSE_S = 10.0


@dataclass(frozen=True)
class Ask:
    """Ask a host for its lease; its answer comes back with the number."""

    fingerprint: str
    token: str
    number: int
    seconds: float


@dataclass(frozen=True)
class GiveBack:
    """Give a lease back, or a place in the queue."""

    fingerprint: str
    token: str


@dataclass(frozen=True)
class Waiting:
    """Tell the user that a host is another's, and for how long at most."""

    fingerprint: str
    wait_s: float


@dataclass(frozen=True)
class Ready:
    """All leases are there: the test may run until `until_s`."""

    until_s: float


@dataclass(frozen=True)
class Ended:
    """There are no leases any more: a running test stops.

    Attributes
    ----------
    reason : str
        Empty where the test was finished.
    """

    reason: str


LeaseAction: TypeAlias = Ask | GiveBack | Waiting | Ready | Ended


@dataclass
class LeaseTaking:
    """The leases of one test, from the first question to the end of the test.

    Attributes
    ----------
    name : str
        No two takings have the same, in whatever process.
    fingerprints : tuple of str
        Of the hosts, sorted.
    test_s : float
        The test takes so long: with less than that left it does not begin.
    hold_s : float
        Leases are asked for so long: what is above `test_s` is for waiting with the first ones
        for the last.
    give_up_s : float
        Instant from which on the test is given up, unless it runs.
    next_s : float
        `tick` is to be called then, at the latest.

    Examples
    --------
    >>> taking = LeaseTaking("me", ("f1", "f2"), test_s=10.0, hold_s=30.0, give_up_s=600.0)
    >>> taking.begin(0.0)
    [Ask(fingerprint='f1', token='me/1', number=1, seconds=30.0)]
    >>> taking.answered("f1", 1, Granted(30.0), 0.5)
    [Ask(fingerprint='f2', token='me/1', number=2, seconds=30.0)]
    >>> taking.answered("f2", 2, Granted(30.0), 1.0)
    [Ready(until_s=30.0)]
    """

    name: str
    fingerprints: tuple[str, ...]
    test_s: float
    hold_s: float
    give_up_s: float
    next_s: float = 0.0
    _attempt: int = 0
    _number: int = 0
    _asked: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    _until_s: dict[str, float] = field(default_factory=dict)
    _state: str = "new"  # then "asking", "pausing" (until next_s), "ready", "ended"

    def __post_init__(self) -> None:
        self.fingerprints = fingerprints_of(self.fingerprints)
        if not 0 < self.test_s <= self.hold_s:
            raise ProblemError(
                f"hold_s must be at least test_s, which must be > 0, got {self.hold_s!r} and "
                f"{self.test_s!r}"
            )

    def begin(self, now_s: float) -> list[LeaseAction]:
        """Ask for the first lease."""
        self._attempt += 1
        self._state, self._until_s = "asking", {}
        return self._ask(now_s)

    def answered(
        self, fingerprint: str, number: int, answer: LeaseAnswer, now_s: float
    ) -> list[LeaseAction]:
        """Take a host's answer to the question of this number, however late it comes."""
        asked_of, token, asked_s = self._asked.get(number, ("", "", 0.0))
        if asked_of != fingerprint:
            return []
        is_of_now = token == self._token and self._state in ("asking", "ready")
        if not is_of_now:
            # A lease of an attempt that is over, whose return was overtaken.
            return [GiveBack(fingerprint, token)] if isinstance(answer, Granted) else []
        if self._state == "ready" or fingerprint != self._next:
            return []
        if isinstance(answer, Granted):
            self._until_s[fingerprint] = asked_s + min(answer.seconds, self.hold_s)
            return self._ask(now_s) if self._next else self._all_held(now_s)
        if now_s + answer.wait_s + self.test_s > self._end_s:
            # The leases that are held would not last: others may have them meanwhile.
            pause_s = min(answer.wait_s, LONGEST_PAUSE_S)
            return [Waiting(fingerprint, answer.wait_s), *self._pause(pause_s, now_s)]
        self.next_s = now_s + answer.ask_again_s
        return [Waiting(fingerprint, answer.wait_s)]

    def tick(self, now_s: float) -> list[LeaseAction]:
        """Do what is due: ask again, begin again, give up, end."""
        if self._state == "ended" or now_s < self.next_s:
            return []
        if self._state == "ready":
            return self._end("the leases have ended", now_s)
        if now_s >= self.give_up_s:
            return self._end("another test, or no answer, until the time to wait was over", now_s)
        return self.begin(now_s) if self._state == "pausing" else self._ask(now_s)

    def lost(self, fingerprint: str, now_s: float) -> list[LeaseAction]:
        """Take it that the connection to a host, and with it the lease, has ended."""
        if self._state == "ready" and fingerprint in self._until_s:
            return self._end(f"the connection to {fingerprint} was lost", now_s)
        if self._state == "asking" and fingerprint in (self._next, *self._until_s):
            return self._pause(ANSWER_S, now_s)
        return []

    def finish(self, now_s: float) -> list[LeaseAction]:
        """Give all back: the test has ended, or is not wanted any more."""
        return [] if self._state == "ended" else self._end("", now_s)

    @property
    def _token(self) -> str:
        return f"{self.name}/{self._attempt}"

    @property
    def _next(self) -> str:
        """The host whose lease is the next to take; empty where all are held."""
        return next((one for one in self.fingerprints if one not in self._until_s), "")

    @property
    def _end_s(self) -> float:
        """Return when the first of the leases that are held ends."""
        return min(self._until_s.values(), default=float("inf"))

    def _ask(self, now_s: float) -> list[LeaseAction]:
        self._number += 1
        self._asked[self._number] = self._next, self._token, now_s
        self.next_s = now_s + ANSWER_S
        return [Ask(self._next, self._token, self._number, self.hold_s)]

    def _all_held(self, now_s: float) -> list[LeaseAction]:
        if self._end_s - now_s < self.test_s:
            return self._pause(ANSWER_S, now_s)
        self._state, self.next_s = "ready", self._end_s
        return [Ready(self._end_s)]

    def _pause(self, seconds: float, now_s: float) -> list[LeaseAction]:
        let_go = self._let_go()
        self._state, self.next_s = "pausing", min(now_s + seconds, self.give_up_s)
        return let_go

    def _end(self, reason: str, now_s: float) -> list[LeaseAction]:
        let_go = self._let_go()
        self._state, self.next_s = "ended", now_s
        return [*let_go, Ended(reason)]

    def _let_go(self) -> list[LeaseAction]:
        """Give back what is held, and the place at the next host."""
        if self._state not in ("asking", "ready"):
            return []
        hosts = [one for one in (*self._until_s, self._next) if one]
        return [GiveBack(host, self._token) for host in hosts]


def fingerprints_of(fingerprints: Iterable[str]) -> tuple[str, ...]:
    """Return the fingerprints of a test's hosts in the order in which leases are taken.

    Raises
    ------
    ProblemError
        Two are the same: one host under two names.

    Examples
    --------
    >>> fingerprints_of(["sha256:b", "sha256:a"])
    ('sha256:a', 'sha256:b')
    """
    found = sorted(fingerprints)
    twice = next((one for one, other in pairwise(found) if one == other), None)
    if twice is not None:
        raise ProblemError(
            f"two hosts of a test have the fingerprint {twice}: they are one under two names; "
            "keep one of the names"
        )
    return tuple(found)
