"""Agenda of a controller: decisions not yet returned, and what it does when it is woken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.control.decisions import Decision, WakeMe

if TYPE_CHECKING:
    from collections.abc import Callable


class Agenda:
    """Decisions to be said, in order, and acts for later.

    Attributes
    ----------
    alarms : list of callable
        By the tags of the timers that were asked for.

    Examples
    --------
    >>> agenda = Agenda()
    >>> agenda.wake(2.0, lambda: print("now"))
    >>> [decision] = agenda.taken()
    >>> agenda.alarms[decision.tag]()
    now
    >>> agenda.taken()
    []
    """

    def __init__(self) -> None:
        self.alarms: list[Callable[[], None]] = []
        self._decisions: list[Decision] = []

    def add(self, decision: Decision) -> None:
        """Say this next."""
        self._decisions.append(decision)

    def wake(self, time_s: float, act: Callable[[], None]) -> None:
        """Do something at an instant."""
        self.add(WakeMe(time_s, len(self.alarms)))
        self.alarms.append(act)

    def taken(self) -> list[Decision]:
        """Return what is to be said, once."""
        decisions, self._decisions = self._decisions, []
        return decisions
