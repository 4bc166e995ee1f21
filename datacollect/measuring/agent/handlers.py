"""Handlers of an agent that is measured: paths below `PREFIX`, each with a ticket.

The lease, the tools where this host sends, and what it has counted where it receives. Its clock is
told without a ticket, because tickets are by it. A lease ends with the connection over which it was
asked for.
"""

from __future__ import annotations

import json
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, ProblemError, RefusedError
from datacollect.files.kinds import shown
from datacollect.measuring.agent.far_agent import FarAgent
from datacollect.measuring.agent.host_tests import HostTests
from datacollect.measuring.agent.host_tool import (
    PREFIX,
    SETTLED_S,
    Host,
    Sending,
    body_of,
    number_in,
)
from datacollect.measuring.agent.host_tools import HOST_TOOLS
from datacollect.measuring.agent.measure_config import COUNTERS, measure_of
from datacollect.measuring.plan.host_lease import Granted
from datacollect.measuring.probes.interface_counters import interface_counters
from datacollect.net.connect import token_of
from datacollect.net.host_marks import IN_PULL, is_marked
from datacollect.net.names import host_and_port
from datacollect.net.tickets import NUMBER_STOP
from datacollect.transfer.agent.handlers import AgentHandlers, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.measuring.agent.host_tests import RunningTest
    from datacollect.measuring.agent.host_tool import HostTool
    from datacollect.measuring.plan.measure_tickets import MeasureTicket
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.shell.handling import Exchange, Handler

JSON = [("Content-Type", "application/json")]
TOKEN = re.compile("[!-~]{1,8000}", re.ASCII)
# At once with one lease.
MOST_TESTS = 64


class Measuring:
    """Answers for the tests of one agent.

    Parameters
    ----------
    config : AgentConfig
        With a table ``measure``.
    note : callable
        Takes a line of the log.
    """

    def __init__(self, config: AgentConfig, note: Callable[[str], None]) -> None:
        measure = measure_of(config)
        assert measure is not None
        self._config, self._measure, self._note = config, measure, note
        self._tests = HostTests(measure, config.certificate)
        self._host = Host(config, measure, self._tests)

    def handlers(self) -> dict[str, Handler]:
        """Return who answers, by path."""
        acts = {"lease": self._lease, COUNTERS: self._counters, "received": self._received}
        found: dict[str, Handler] = {
            f"{PREFIX}clock": _tell_clock,
            **{f"{PREFIX}{name}": self._answering(act) for name, act in acts.items()},
        }
        for name, tool in HOST_TOOLS.items():
            found[f"{PREFIX}{name}"] = self._answering(partial(self._send, tool))
            for path, answer in tool.answers.items():
                found[path] = self._answering(partial(answer, self._host))
        return found

    def reread(self, config: AgentConfig) -> None:
        """Count the tickets of the operators whom the file names now; a test of another ends."""
        measure = measure_of(config)
        self._tests.trust(frozenset() if measure is None else measure.operators)

    def _answering(
        self, act: Callable[[Exchange, MeasureTicket], dict[str, Any]]
    ) -> Callable[[Exchange], None]:
        def answer(exchange: Exchange) -> None:
            try:
                ticket = self._tests.admit(token_of(exchange.headers.get("authorization")))
                status, tree = 200, act(exchange, ticket)
            except RefusedError as error:
                status, tree = error.status, {"why": str(error)}
            except ProblemError as error:
                status = 503 if isinstance(error, NotWrittenError) else 400
                tree = {"why": str(error)}
            if status not in (200, 401):  # strangers fill no log
                self._log("measure refused", path=exchange.target, status=status, **tree)
            exchange.answer(status, JSON, json.dumps(tree).encode())

        return answer

    def _lease(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        asked = body_of(exchange)
        attempt = number_in(asked, "attempt", 0, 10**9)
        give_back = partial(self._tests.give_back, ticket, int(attempt))
        if exchange.method == "DELETE":
            give_back()
            return {}
        seconds = number_in(asked, "seconds", 0.001, 3600.0)
        n_tests = int(number_in({"tests": 1} | asked, "tests", 1, MOST_TESTS))
        answer = self._tests.ask(ticket, int(attempt), seconds, n_tests)
        exchange.at_end(f"{ticket.nonce}/{attempt}", give_back)
        if isinstance(answer, Granted):
            in_pull = exchange.beside_collectors or is_marked(IN_PULL)
            return {"granted_s": answer.seconds, "in_pull": in_pull}
        return {"wait_s": answer.wait_s, "ask_again_s": answer.ask_again_s}

    def _send(self, tool: HostTool, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Run a test from this host."""
        asked = body_of(exchange)
        far = self._far_agent(asked, ticket)
        numbers = {name: limits.read(asked, name) for name, limits in tool.numbers.items()}
        test = self._tests.begin_once(ticket, tool.name)
        sending = Sending(far, test, self._rate_of(exchange, test), exchange.throttle)
        self._log(tool.logged, to=far.name, **{name: numbers[name] for name in tool.logged_numbers})
        return tool.send(sending, **numbers)

    def _counters(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Tell what the host's interfaces have carried: no test, and so without a lease."""
        body_of(exchange)
        if COUNTERS not in ticket.tools:
            raise RefusedError(
                f"the ticket is for {', '.join(ticket.tools)}, not for counters", 403
            )
        return interface_counters()

    def _received(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Say how much has come of a test: when its connections have ended, and all is counted.

        What the kernel has acknowledged may not have been read yet, its connection's head included.
        """
        expected_bytes = number_in(body_of(exchange), "expected_bytes", 0, NUMBER_STOP)
        test = self._tests.running(ticket)

        def is_all() -> bool:
            return test.n_senders == 0 and test.received_bytes >= expected_bytes

        with test.changed:
            test.changed.wait_for(is_all, SETTLED_S)
            return {"received_bytes": test.received_bytes}

    def _rate_of(self, exchange: Exchange, test: RunningTest) -> float | None:
        """Return how fast a test may send: by the table ``measure``, and by the agent's limit."""
        rates = [] if exchange.throttle is None else [exchange.throttle.bytes_per_s]
        if self._measure.rate_bytes_per_s is not None:
            rates.append(self._measure.rate_bytes_per_s / test.n_beside)
        return min(rates, default=None)

    def _far_agent(self, asked: dict[str, Any], ticket: MeasureTicket) -> FarAgent:
        """Return the other end: at one of the addresses of this agent's own file, or nowhere."""
        to, token = asked.get("to"), asked.get("far_token")
        # The token is sent on in a header: nothing in it may end the line.
        if not isinstance(to, str) or not isinstance(token, str) or not TOKEN.fullmatch(token):
            raise ProblemError(
                "to must be the address of the test's other agent, and far_token the ticket for "
                "that agent"
            )
        address = host_and_port(to)
        for name, place in self._config.connect_to.items():
            if place == address:
                return FarAgent(name, place, ticket.receiver, token, self._config.congestion)
        raise RefusedError(
            f"{shown(to)} is not one of the addresses in this agent's connect_to, the only ones "
            "it sends to; write the address into connect_to, exactly as the operator's file has it",
            403,
        )

    def _log(self, what: str, **facts: Any) -> None:
        self._note(json.dumps({"time_s": round(time.time(), 3), "what": what, **facts}))


def _tell_clock(exchange: Exchange) -> None:
    exchange.answer(200, JSON, json.dumps({"time_s": time.time()}).encode())


def _start(config: AgentConfig, log: Callable[[str], None]) -> Started:
    measuring = Measuring(config, log)
    return Started(measuring.handlers(), measuring.reread)


MEASURE_HANDLERS = AgentHandlers("measure", _start)
