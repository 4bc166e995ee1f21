"""Messages to and from the process of ns-3: plain data.

All of it is pickled. The types lie apart from the process's module, which is ``__main__`` there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacollect.control.controller import Controller
    from datacollect.control.events import ConnectionClosed, ConnectionOpened, ConnectionStalled
    from datacollect.control.plan_request import RemainingPlanner


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run.

    Attributes
    ----------
    scenario : str
        As `network_text.scenario_text` writes it.
    hosts : sequence of str
        In the order in which the scenario numbers them.
    backlog_bytes : mapping of str to int
    apart : set of pairs of str
        Hosts that cannot reach each other.
    controller : Controller
    cool_down_s : float
    plan_remaining : callable or None
    """

    scenario: str
    hosts: Sequence[str]
    backlog_bytes: Mapping[str, int]
    apart: set[tuple[str, str]]
    controller: Controller
    cool_down_s: float
    plan_remaining: RemainingPlanner | None = None


@dataclass(frozen=True, slots=True)
class ConnectionAsked:
    """The controller asked for a connection, or a chain."""

    time_s: float
    connection: int
    hosts: tuple[str, ...]


LogEntry: TypeAlias = "ConnectionAsked | ConnectionOpened | ConnectionStalled | ConnectionClosed"


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run.

    Attributes
    ----------
    stopped : str
        Why it ended before all was collected; empty where all was.
    end_s : float
    log : list of LogEntry
        What happened to connections, in the order of time.
    text : str
        What was measured, a line per thing; `results` reads it.
    events : int
    cpu_s : float
    peak_memory_bytes : int
    answer : object
        The controller's.
    """

    stopped: str
    end_s: float
    log: list[LogEntry]
    text: str
    events: int
    cpu_s: float
    peak_memory_bytes: int
    answer: Any


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The run is under way: its simulated time, and what has been collected."""

    time_s: float
    collected_bytes: int


@dataclass(frozen=True, slots=True)
class RunRefused:
    """The controller decided what cannot be done."""

    words: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The controller, or what drives it, raised an exception."""

    words: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Died:
    """The run's process ended; the exit code is minus a signal's number if one ended it."""

    exit_code: int
