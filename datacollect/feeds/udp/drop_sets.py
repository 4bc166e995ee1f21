"""Drop sets: which messages a sender leaves out on purpose, so that the rest fits the path.

The two of the EXPReS report (2009, section 3.2.1): single messages at a steady rate, and bunches of
one to ten. A set is known by its kind, part and seed; so who has these knows which are missing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from datacollect.errors import ProblemError
from datacollect.feeds.formats.udp_settings import BUNCHES, SINGLE

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_IN_BUNCH = 10
# Parts are taken as they are written, not as the nearest float.
_FINEST = 10**9


class DropSet(Protocol):
    """Says of one message after the other, from number 0 on, whether it is left out."""

    def drops(self) -> bool:
        """Return whether the next one is."""


@dataclass
class _Single:
    """Every 1/part-th; the seed says where to begin."""

    part: Fraction
    at: int

    def drops(self) -> bool:
        self.at += self.part.numerator
        is_full = self.at >= self.part.denominator
        self.at -= is_full * self.part.denominator
        return is_full


@dataclass
class _Bunches:
    """A bunch of n in 1…10, then n (1 / part - 1) that are sent."""

    part: Fraction
    rng: random.Random
    left: int = 0
    is_bunch: bool = False
    # What the last bunches are owed of messages to be sent, less than one.
    owed: Fraction = Fraction(0)
    in_bunch: int = 0

    def drops(self) -> bool:
        while not self.left:
            self.is_bunch = not self.is_bunch
            if self.is_bunch:
                self.left = self.in_bunch = self.rng.randint(1, MOST_IN_BUNCH)
            else:
                self.owed += self.in_bunch * (1 / self.part - 1)
                self.left = int(self.owed)
                self.owed -= self.left
        self.left -= 1
        return self.is_bunch


class _Nothing:
    def drops(self) -> bool:
        return False


_KINDS: dict[str, Callable[[Fraction, random.Random], DropSet]] = {
    SINGLE: lambda part, rng: _Single(part, rng.randrange(part.denominator)),
    BUNCHES: _Bunches,
}


def drop_set(kind: str, part: float, seed: int = 0) -> DropSet:
    """Return what says which messages are left out.

    Parameters
    ----------
    kind : str
        ``"single"`` ones, steadily, or ``"bunches"`` of one to ten.
    part : float
        Of all messages; from 0 on, below 1.
    seed : int

    Raises
    ------
    ProblemError
        There is no such kind, or no such part.

    Examples
    --------
    >>> some = drop_set("single", 0.25)
    >>> sum(some.drops() for _ in range(1000))
    250
    >>> bunches = drop_set("bunches", 0.1, seed=5)
    >>> "".join("-x"[bunches.drops()] for _ in range(60))
    'xxxx------------------------------------x---------xxxxx-----'
    """
    if kind not in _KINDS:
        raise ProblemError(
            f"drop set must be 1 or 2, got {kind!r}; 1 is single messages, 2 bunches"
        )
    if not 0 <= part < 1:
        raise ProblemError(f"the part to drop must be >= 0 and < 1, got {part!r}; 6.5 % is 0.065")
    exact = Fraction(part).limit_denominator(_FINEST)
    if not exact:
        return _Nothing()
    return _KINDS[kind](exact, random.Random(f"drop set {seed}"))


def dropped(kind: str, part: float, seed: int, n: int) -> list[int]:
    """Return which of the first `n` messages such a set leaves out.

    >>> dropped("single", 0.5, 0, 6)
    [0, 2, 4]
    """
    of = drop_set(kind, part, seed)
    return [number for number in range(n) if of.drops()]
