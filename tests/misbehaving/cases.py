"""A file on a server that misbehaves, what a tool knows of it, and what came of it: the judge.

It knows behaviours and bytes, and nothing of the tools.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from judges.misbehaving_answers import CAP_BYTES, ServedFile
from judges.misbehaviour import HEADS_WITHOUT_END, HONEST, Behaviour
from judges.strict_client import Expectation, Known, expectation, versions

SMALL_BYTES, LARGE_BYTES, EVERY_LARGE = 3000, 150_000, 8
# What is on the way before a client can say that it does not want it: TCP's first ten segments (RFC
# 6928), and a head.
MOST_TIMES, BYTES_PER_REQUEST = 3, 16 * 1024
# What an endless answer has put into buffers before it is noticed that the client has gone.
ENDLESS_BYTES_PER_REQUEST = 1_000_000
MOST_REQUESTS = 60
# Numbers from here on are those of neighbours, and of twins.
NEIGHBOURS, TWINS = 1_000_000, 2_000_000
# From one neighbour of a case to the next.
NEXT_NEIGHBOUR = 100_000


class Verdict(Enum):
    """Verdict on a case; what is bad about it says its name."""

    IDENTICAL = "identical"
    REFUSED = "refused by name"
    DECEIVED = "wrong, as only a hash could tell"
    WRONG = "wrong bytes"
    LOST = "lost"
    SILENT = "silent"
    TOO_MANY = "too many bytes"
    DENIED = "honest and refused"
    HUNG = "hung"
    BROKEN = "internal error"

    @property
    def is_bad(self) -> bool:
        """Whether it may never be."""
        return self not in (Verdict.IDENTICAL, Verdict.REFUSED, Verdict.DECEIVED)


class Starts(Enum):
    """Number of a tool's starts, and the server's behaviour each time."""

    BAD = "bad"
    GOOD_BAD = "good, then bad"
    BAD_GOOD = "bad, then good"


@dataclass(frozen=True)
class Case:
    """A file, how its server behaves, and what the tool knows of it beforehand."""

    behaviour: Behaviour
    known: Known
    number: int

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"f{self.number:05d}"

    @cached_property
    def file(self) -> ServedFile:
        """Its bytes: every eighth is large."""
        rng = random.Random(self.number)
        # Numbers go up by four from one behaviour to the next: each kind of knowledge has some.
        is_large = (self.number + self.number // 4) % EVERY_LARGE == 0
        n = LARGE_BYTES if is_large else SMALL_BYTES
        return ServedFile(rng.randbytes(n), rng.randbytes(n), rng.randbytes(n + 13))

    @property
    def sha256(self) -> str:
        """The hash of its bytes."""
        return hashlib.sha256(self.file.data).hexdigest()

    @property
    def is_neighbour(self) -> bool:
        """Whether it is served as it should be, beside others that are not."""
        return NEIGHBOURS <= self.number < TWINS

    @property
    def words(self) -> str:
        """How it is served, in words that no other case has."""
        if self.is_neighbour:
            return f"a plain file beside others, {self.number - NEIGHBOURS}"
        return self.behaviour.key + ", again" * (self.number // TWINS)


def twins_of(case: Case, n: int) -> list[Case]:
    """Return other files that are served alike."""
    return [Case(case.behaviour, case.known, TWINS * (k + 1) + case.number) for k in range(n)]


@dataclass(frozen=True)
class Seen:
    """State of a file after a start, and what was said.

    Attributes
    ----------
    data : bytes or None
        Under its final name.
    why : str or None
        Why it is missing, where it is named as missing.
    is_complete : bool
        Whether the tool says that everything is there.
    n_requests, sent_bytes : int
        Since the start.
    """

    data: bytes | None
    why: str | None
    is_complete: bool
    n_requests: int
    sent_bytes: int


@dataclass
class Outcome:
    """Outcome of a case, and what was said of it."""

    case: Case
    starts: Starts
    verdict: Verdict
    why: str = ""
    n_requests: int = 0
    sent_bytes: int = 0


def judged(
    case: Case,
    behaviour: Behaviour,
    seen: Seen,
    *,
    was_there: bool = False,
    confirms: bool = True,
    most_head_bytes: int = 0,
) -> Verdict:
    """Return what came of a start in which the server behaved so.

    Parameters
    ----------
    case : Case
    behaviour : Behaviour
        In this start; the case's own, or honest.
    seen : Seen
    was_there : bool
        Whether the file was there, verified, when it started.
    confirms : bool
        Whether the tool asks the server about such files, and must say what it hears: pulls do,
        and scripts leave alone what is there.
    most_head_bytes : int
        What the tool may read of heads without end in a start, because it cannot do otherwise.
    """
    verdict = _of_bytes(case, behaviour, seen, was_there=was_there)
    must_say = was_there and confirms
    if verdict is Verdict.IDENTICAL and must_say and _passes_over(case, behaviour, seen):
        return Verdict.SILENT
    if not verdict.is_bad and is_too_much(case, behaviour, seen, most_head_bytes):
        return Verdict.TOO_MANY
    return verdict


def _passes_over(case: Case, behaviour: Behaviour, seen: Seen) -> bool:
    """Whether all is said to be there, though its server does not confirm it any more."""
    is_over = behaviour.is_one_page and behaviour.turn == "always"
    return is_over and seen.is_complete and not case.known.sha256


def _of_bytes(case: Case, behaviour: Behaviour, seen: Seen, *, was_there: bool) -> Verdict:
    if seen.data is None:
        return _absent(behaviour, seen, was_there=was_there)
    right = versions(case.behaviour, case.file)
    if case.known.sha256:
        right = right[:1]
    if case.known.n_bytes:
        right = tuple(each for each in right if len(each) == len(case.file.data))
    if seen.data in right:
        return Verdict.IDENTICAL
    tellers = [case.behaviour]
    if behaviour != case.behaviour:
        # What came at an earlier start may go on at this one, as where a server recovers.
        tellers += [replace(case.behaviour, turn=turn) for turn in ("recovers 1", "recovers 3")]
    told = {expectation(each, case.known) for each in tellers}
    return Verdict.DECEIVED if Expectation.ONLY_BY_HASH in told else Verdict.WRONG


def _absent(behaviour: Behaviour, seen: Seen, *, was_there: bool) -> Verdict:
    if was_there:
        return Verdict.LOST
    if seen.is_complete or not seen.why:
        return Verdict.SILENT
    if behaviour.is_plain:
        return Verdict.DENIED
    return Verdict.REFUSED


def is_too_much(case: Case, behaviour: Behaviour, seen: Seen, most_head_bytes: int = 0) -> bool:
    """Whether more was sent than three times the file, and a little for each request."""
    per_request = BYTES_PER_REQUEST
    if behaviour.body == "endless" or behaviour.timing in HEADS_WITHOUT_END:
        per_request = ENDLESS_BYTES_PER_REQUEST
    most_bytes = MOST_TIMES * len(case.file.grown) + per_request * seen.n_requests
    if behaviour.timing in HEADS_WITHOUT_END:
        most_bytes += most_head_bytes
    most_requests = MOST_REQUESTS
    # Each hop is a request of its own.
    if behaviour.redirect in ("ten times", "loop"):
        most_requests *= 6
    elif behaviour.redirect != "none":
        most_requests *= 2
    if behaviour.body == "capped":
        most_requests += MOST_TIMES * len(case.file.data) // CAP_BYTES
    return seen.sent_bytes > most_bytes or seen.n_requests > most_requests


def neighbours_of(case: Case, n: int = 1) -> list[Case]:
    """Return files that are served as they should be, to lie beside one that is not."""
    first = NEIGHBOURS + case.number
    return [Case(HONEST, case.known, first + k * NEXT_NEIGHBOUR) for k in range(n)]
