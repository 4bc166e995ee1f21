"""A tool as a host runs it: what may be asked of it, who sends, who answers where data arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import ProblemError, RefusedError
from datacollect.files.documents import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.measuring.agent.far_agent import FarAgent
    from datacollect.measuring.agent.host_tests import HostTests, RunningTest
    from datacollect.measuring.agent.measure_config import MeasureConfig
    from datacollect.measuring.plan.measure_tickets import MeasureTicket
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.shell.handling import Exchange
    from datacollect.transfer.rates.throttle import Throttle

    Answer: TypeAlias = Callable[["Host", Exchange, MeasureTicket], dict[str, Any]]

PREFIX = "/measure/"
MOST_BODY_BYTES = 16 * 1024
# How long the last bytes of a test may take from the kernel to the one who counts them.
SETTLED_S = 5.0


@dataclass(frozen=True)
class Limits:
    """Limits on a number of a request.

    Attributes
    ----------
    least, most : float
    is_whole : bool
    is_optional : bool
        None, or left out, counts as None.
    """

    least: float
    most: float
    is_whole: bool = False
    is_optional: bool = False

    def read(self, asked: Mapping[str, Any], name: str) -> float | None:
        """Return a number of a request.

        Raises
        ------
        ProblemError
            It is none, or beyond these limits.
        """
        if self.is_optional and asked.get(name) is None:
            return None
        value = number_in(asked, name, self.least, self.most)
        return int(value) if self.is_whole else value


SECONDS = Limits(0.001, 60.0)


@dataclass(frozen=True)
class Sending:
    """A test in which this host sends.

    Attributes
    ----------
    far : FarAgent
        To whom.
    test : RunningTest
    rate_bytes_per_s : float or None
        No more on average.
    throttle : Throttle or None
        The limit of all that passes this agent.
    """

    far: FarAgent
    test: RunningTest
    rate_bytes_per_s: float | None = None
    throttle: Throttle | None = None


@dataclass(frozen=True)
class Host:
    """Facts of their host that answers of a tool know.

    Attributes
    ----------
    config : AgentConfig
    measure : MeasureConfig
    tests : HostTests
    """

    config: AgentConfig
    measure: MeasureConfig
    tests: HostTests


@dataclass(frozen=True)
class HostTool:
    """A tool that operators may have run between this host and another.

    Attributes
    ----------
    name : str
        As agents' files, tickets and requests call it.
    numbers : mapping of str to Limits
        What a request gives, beside where the test goes.
    logged : str
        What a line of the log calls a test.
    logged_numbers : tuple of str
        Those that the line says, too.
    send : callable
        Runs the test from here: gets a `Sending`, and numbers by their names.
    answers : mapping of str to callable
        By path, who answers the other end of a test beside `send`, for a ticket that counts.
    """

    name: str
    numbers: Mapping[str, Limits]
    logged: str
    logged_numbers: tuple[str, ...]
    send: Callable[..., dict[str, Any]]
    answers: Mapping[str, Answer] = field(default_factory=dict)


def require_receiver(ticket: MeasureTicket) -> None:
    """Raise unless data come to this host by a ticket."""
    if ticket.audience != ticket.receiver:
        raise RefusedError("the ticket names the other host as the receiver, not this one", 403)


def body_of(exchange: Exchange) -> dict[str, Any]:
    """Read the JSON object of a request."""
    if exchange.body_bytes > MOST_BODY_BYTES:
        raise RefusedError(f"a request's body has at most {MOST_BODY_BYTES} bytes", 413)
    body = bytearray()
    while data := exchange.read():
        body += data
    try:
        tree = parse_json(body.decode(), "the request")
    except UnicodeDecodeError:
        tree = None
    if not isinstance(tree, dict):
        raise ProblemError("a request must be a JSON object")
    return tree


def number_in(tree: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """Return a number of a request that lies between two."""
    value = tree.get(name)
    if not isinstance(value, int | float) or value is True or not least <= value <= most:
        raise ProblemError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")
    return value
