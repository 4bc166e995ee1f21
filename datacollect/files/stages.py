"""Stages of work under way and their times, for listeners: by Python's logging, and as steps.

Nothing is written here. Stages are logged by the logger ``datacollect`` when they are over, at the
level INFO, and each program that a solver has solved at the level DEBUG. How many steps of how many
are done is reported at once, to the listener.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from datacollect.files.units import counted
from datacollect.numbers.pace import about_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOG = logging.getLogger("datacollect")


class _Solved:
    """Work of solvers within a stage."""

    def __init__(self) -> None:
        self.n, self.took_s = 0, 0.0
        self.names: dict[str, None] = {}
        self.largest = 0, ""

    def add(self, n: int, took_s: float, names: dict[str, None], largest: tuple[int, str]) -> None:
        self.n, self.took_s = self.n + n, self.took_s + took_s
        self.names |= names
        self.largest = max(self.largest, largest)

    @property
    def words(self) -> str:
        return (
            f"{counted(self.n, 'program')} by {', '.join(self.names)} in "
            f"{about_duration(self.took_s)}, the largest {self.largest[1]}"
        )


_solved: ContextVar[_Solved | None] = ContextVar("solved", default=None)
_listener: ContextVar[Callable[[int, int, str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def stage(what: str) -> Iterator[list[str]]:
    """Log, when a stage is over, how long it took, and what solvers had to do in it.

    Parameters
    ----------
    what : str
        What goes on, as in "reading plan.json".

    Yields
    ------
    list of str
        Further facts for the log, in a few words each.

    Examples
    --------
    >>> import sys
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> LOG.addHandler(handler), LOG.setLevel(logging.INFO)
    (None, None)
    >>> with stage("planning by direct") as facts:
    ...     facts.append("3 transfers")
    planning by direct took ...: 3 transfers
    >>> LOG.removeHandler(handler), LOG.setLevel(logging.NOTSET)
    (None, None)
    """
    inside, how = _Solved(), "ended without a result after"
    facts: list[str] = []
    token = _solved.set(inside)
    begun_s = time.perf_counter()
    try:
        yield facts
        how = "took"
    finally:
        took_s = time.perf_counter() - begun_s
        _solved.reset(token)
        if inside.n:
            facts.append(inside.words)
            if (around := _solved.get()) is not None:
                around.add(inside.n, inside.took_s, inside.names, inside.largest)
        words = f": {', '.join(facts)}" if facts else ""
        LOG.info("%s %s %s%s", what, how, about_duration(took_s), words)


@contextmanager
def solving(solver: Callable[[], str], size: int, words: str) -> Iterator[None]:
    """Log how long a solver took for a program, and count it in the stage that is under way.

    Parameters
    ----------
    solver : callable
        Returns the solver's name, once it has answered.
    size : int
        By which programs are compared.
    words : str
        What it is and how big, as in "a maximum flow over 5 arcs among 3 nodes".
    """
    begun_s = time.perf_counter()
    try:
        yield
    finally:
        took_s, name = time.perf_counter() - begun_s, solver()
        LOG.debug("%s by %s took %s", words, name, about_duration(took_s))
        if (around := _solved.get()) is not None:
            around.add(1, took_s, {name: None}, (size, words))


@contextmanager
def listening(listener: Callable[[int, int, str], None]) -> Iterator[None]:
    """Have steps reported to a function: how many are done, of how many, and of what.

    "0 of 0" is reported when what was counted is over, and other things go on.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def counting(everything: int, unit: str) -> Iterator[Callable[[], None]]:
    """Report to the listener how many steps are done; counts within a step are not reported.

    Parameters
    ----------
    everything : int
        How many there are.
    unit : str
        What they are, as in "deadlines".

    Yields
    ------
    callable
        To be called after each.

    Examples
    --------
    >>> with listening(print), counting(2, "deadlines") as step:
    ...     step()
    ...     step()
    0 2 deadlines
    1 2 deadlines
    2 2 deadlines
    0 0 deadlines
    """
    listener = _listener.get()
    if listener is None:
        yield lambda: None
        return
    token, done = _listener.set(None), 0

    def step() -> None:
        nonlocal done
        done += 1
        listener(done, everything, unit)

    try:
        listener(0, everything, unit)
        yield step
        listener(0, 0, unit)
    finally:
        _listener.reset(token)
