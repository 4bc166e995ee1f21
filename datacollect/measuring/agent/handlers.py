"""What an agent answers to whoever measures: paths below `PREFIX`, each with a ticket.

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

from datacollect.errors import NotWrittenError, ProblemError, RefusedError, TransferError
from datacollect.files.documents import parse_json
from datacollect.files.kinds import shown
from datacollect.measuring.agent.far_agent import FarAgent
from datacollect.measuring.agent.host_tests import HostTests
from datacollect.measuring.agent.pair_receiving import PairReceiver
from datacollect.measuring.agent.pair_sending import ARRIVED_PATH, OPEN_PATH, send_pairs
from datacollect.measuring.agent.pinging import ping
from datacollect.measuring.agent.sending import SINK_PATH, send_tcp
from datacollect.measuring.agent.table import COUNTERS, measure_of
from datacollect.measuring.agent.tracing import trace
from datacollect.measuring.plan.host_lease import Granted
from datacollect.measuring.probes.interface_counters import interface_counters
from datacollect.measuring.probes.pair_packets import PAGE
from datacollect.net.connect import token_of
from datacollect.net.host_marks import IN_PULL, is_marked
from datacollect.net.names import host_and_port
from datacollect.net.tickets import NUMBER_STOP
from datacollect.transfer.agent.handlers import AgentHandlers, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.measuring.agent.host_tests import RunningTest
    from datacollect.measuring.plan.measure_tickets import MeasureTicket
    from datacollect.transfer.agent.config.file import AgentConfig
    from datacollect.transfer.agent.shell.handling import Exchange, Handler

PREFIX = "/measure/"
JSON = [("Content-Type", "application/json")]
TOKEN = re.compile("[!-~]{1,8000}", re.ASCII)
MOST_BODY_BYTES = 16 * 1024
MOST_SECONDS = 60.0
MOST_STREAMS = 64
MOST_HOPS = 64
# At once with one lease.
MOST_TESTS = 64
MOST_WINDOW_BYTES = 2**30
# How long the last bytes of a test may take from the kernel to the one who counts them.
SETTLED_S = 5.0


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

    def handlers(self) -> dict[str, Handler]:
        """Return who answers, by path."""
        return {
            f"{PREFIX}clock": _tell_clock,
            f"{PREFIX}lease": self._answering(self._lease),
            f"{PREFIX}ping": self._answering(self._ping),
            f"{PREFIX}trace": self._answering(self._trace),
            f"{PREFIX}tcp": self._answering(self._tcp),
            f"{PREFIX}counters": self._answering(self._counters),
            f"{PREFIX}received": self._answering(self._received),
            f"{PREFIX}pairs": self._answering(self._pairs),
            SINK_PATH: self._answering(self._sink),
            OPEN_PATH: self._answering(self._open_udp),
            ARRIVED_PATH: self._answering(self._arrived),
        }

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
        asked = _body(exchange)
        attempt = _number(asked, "attempt", 0, 10**9)
        give_back = partial(self._tests.give_back, ticket, int(attempt))
        if exchange.method == "DELETE":
            give_back()
            return {}
        seconds = _number(asked, "seconds", 0.001, 3600.0)
        n_tests = int(_number({"tests": 1} | asked, "tests", 1, MOST_TESTS))
        answer = self._tests.ask(ticket, int(attempt), seconds, n_tests)
        exchange.at_end(f"{ticket.nonce}/{attempt}", give_back)
        if isinstance(answer, Granted):
            in_pull = exchange.beside_collectors or is_marked(IN_PULL)
            return {"granted_s": answer.seconds, "in_pull": in_pull}
        return {"wait_s": answer.wait_s, "ask_again_s": answer.ask_again_s}

    def _tcp(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        asked = _body(exchange)
        far = self._far_agent(asked, ticket)
        streams = int(_number(asked, "streams", 1, MOST_STREAMS))
        seconds = _number(asked, "seconds", 0.001, MOST_SECONDS)
        window_bytes = asked.get("window_bytes")
        if window_bytes is not None:
            window_bytes = int(_number(asked, "window_bytes", 1, MOST_WINDOW_BYTES))
        test = self._tests.begin_once(ticket, "tcp")
        rate = self._rate_of(exchange, test)
        self._log("tcp test", to=far.name, streams=streams, seconds=seconds)
        return send_tcp(far, test, streams, seconds, rate, window_bytes, exchange.throttle)

    def _ping(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        asked = _body(exchange)
        far = self._far_agent(asked, ticket)
        n = int(_number(asked, "n", 1, 100))
        every_s = _number(asked, "every_s", 0.2, 10.0)
        test = self._tests.begin_once(ticket, "ping")
        self._log("ping test", to=far.name, n=n)
        return ping(far, test, n, every_s)

    def _trace(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        asked = _body(exchange)
        far = self._far_agent(asked, ticket)
        hops = int(_number(asked, "hops", 1, MOST_HOPS))
        seconds = _number(asked, "seconds", 0.001, MOST_SECONDS)
        test = self._tests.begin_once(ticket, "trace")
        self._log("trace", to=far.name, hops=hops)
        return trace(far, test, hops, seconds)

    def _counters(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Tell what the host's interfaces have carried: no test, and so without a lease."""
        _body(exchange)
        if COUNTERS not in ticket.tools:
            raise RefusedError(f"the ticket is for {', '.join(ticket.tools)}, not counters", 403)
        return interface_counters()

    def _pairs(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        asked = _body(exchange)
        far = self._far_agent(asked, ticket)
        half_width = _number(asked, "half_width", 0.01, 1.0)
        seconds = _number(asked, "seconds", 0.001, MOST_SECONDS)
        test = self._tests.begin_once(ticket, "pairs")
        rate = self._rate_of(exchange, test)
        self._log("pairs test", to=far.name, half_width=half_width, seconds=seconds)
        return send_pairs(far, test, half_width, seconds, rate, exchange.throttle)

    def _open_udp(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Open this host's port for the packets of a test, as long as the connection lasts."""
        _require_receiver(ticket)
        _body(exchange)
        port = self._measure.udp_port
        if not port:
            raise RefusedError(
                "this agent takes no UDP packets: its file has no udp_port in [measure], or 0; "
                "write one, open it in the firewall, and start the agent again",
                403,
            )
        test = self._tests.begin(ticket, "pairs")
        with test.changed:
            if test.packets is not None:
                raise RefusedError("the port has been opened for this test before", 409)
            address = (self._config.listen[0], port)
            test.packets = PairReceiver(address, ticket.nonce, test.took, test.over)
        exchange.at_end(f"udp {ticket.nonce}", test.packets.close)
        return {"nonce": ticket.nonce, "port": port}

    def _arrived(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Say which packets of a test have arrived, and when, by the kernel."""
        asked = _body(exchange)
        packets = self._tests.running(ticket).packets
        if packets is None:
            raise RefusedError("no port has been opened for this test", 409)
        first = int(_number(asked, "first", 0, NUMBER_STOP))
        n = int(_number(asked, "n", 1, PAGE))
        return packets.told(first, n, _number(asked, "wait_s", 0.0, SETTLED_S))

    def _sink(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Take what the sender sends, and throw it away."""
        _require_receiver(ticket)
        test = self._tests.begin(ticket, "tcp")
        with test.changed:
            test.n_senders += 1
        try:
            while data := exchange.read():
                try:
                    test.took(len(data))
                except RefusedError as error:
                    exchange.cut(str(error))
                    raise TransferError(str(error)) from None
        finally:
            with test.changed:
                test.n_senders -= 1
                test.changed.notify_all()
        return {}

    def _received(self, exchange: Exchange, ticket: MeasureTicket) -> dict[str, Any]:
        """Say how much has come of a test: when its connections have ended, and all is counted.

        What the kernel has acknowledged may not have been read yet, its connection's head included.
        """
        expected_bytes = _number(_body(exchange), "expected_bytes", 0, NUMBER_STOP)
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
            raise ProblemError("to and far_token must say where the test goes, and by what right")
        address = host_and_port(to)
        for name, place in self._config.connect_to.items():
            if place == address:
                return FarAgent(name, place, ticket.receiver, token, self._config.congestion)
        raise RefusedError(
            f"{shown(to)} is none of the addresses in this agent's connect_to, and nothing is sent "
            "elsewhere; write it there, as it stands in the operator's file",
            403,
        )

    def _log(self, what: str, **facts: Any) -> None:
        self._note(json.dumps({"time_s": round(time.time(), 3), "what": what, **facts}))


def _require_receiver(ticket: MeasureTicket) -> None:
    if ticket.audience != ticket.receiver:
        raise RefusedError("by this ticket the other host receives", 403)


def _tell_clock(exchange: Exchange) -> None:
    exchange.answer(200, JSON, json.dumps({"time_s": time.time()}).encode())


def _body(exchange: Exchange) -> dict[str, Any]:
    if exchange.body_bytes > MOST_BODY_BYTES:
        raise RefusedError(f"a body has at most {MOST_BODY_BYTES} bytes", 413)
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


def _number(tree: dict[str, Any], name: str, least: float, most: float) -> float:
    value = tree.get(name)
    if not isinstance(value, int | float) or value is True or not least <= value <= most:
        raise ProblemError(f"{name} must be a number from {least:g} to {most:g}, got {value!r}")
    return value


def _start(config: AgentConfig, log: Callable[[str], None]) -> Started:
    measuring = Measuring(config, log)
    return Started(measuring.handlers(), measuring.reread)


MEASURE_HANDLERS = AgentHandlers("measure", _start)
