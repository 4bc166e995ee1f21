"""Tests of a host: admission, its lease, and the bytes that a test has used."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from datacollect.errors import NotWrittenError, RefusedError, TicketError
from datacollect.files.kinds import shown
from datacollect.files.locks import take_lock
from datacollect.measuring.agent.used_bytes import UsedBytes
from datacollect.measuring.plan.host_lease import ASK_EVERY_S, Granted, HostLease, Wait
from datacollect.measuring.plan.measure_tickets import judge_measure_ticket, read_measure_ticket
from datacollect.net.tls import fingerprint_of_file

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.measuring.agent.measure_config import MeasureConfig
    from datacollect.measuring.plan.host_lease import LeaseAnswer
    from datacollect.measuring.plan.measure_tickets import MeasureTicket

# Less than an agent keeps a connection over which nothing moves: the lease ends with it.
LONGEST_LEASE_S = 70.0
ENDED_EARLY = "the lease ended before the test"


@dataclass
class RunningTest:
    """A test that this host takes part in, for as long as its lease.

    Attributes
    ----------
    ticket : MeasureTicket
    until_s : float
        By the monotonic clock; the test sends nothing from then on.
    n_beside : int
        So many tests share the lease at most, this one included, and with it the agent's rate.
    over : threading.Event
        Set when the lease has ended, by its time or before.
    sent_bytes, received_bytes : int
        Payload.
    n_senders : int
        Connections that are open from the other end.
    kept : dict
        What has come otherwise, as the tool at the receiving end keeps it, by its name.
    """

    ticket: MeasureTicket
    until_s: float
    n_beside: int = 1
    over: threading.Event = field(default_factory=threading.Event)
    sent_bytes: int = 0
    received_bytes: int = 0
    n_senders: int = 0
    kept: dict[str, Any] = field(default_factory=dict)
    is_begun: bool = False
    tools_run: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def took(self, n_bytes: int) -> None:
        """Count payload that has come from the other end.

        Raises
        ------
        RefusedError
            The test is over, or has taken more than its ticket allows.
        """
        with self.changed:
            self.received_bytes += n_bytes
        if self.over.is_set() or time.monotonic() >= self.until_s:
            raise RefusedError("the lease has ended, which ended the test", 409)
        if self.received_bytes > self.ticket.most_bytes:
            raise RefusedError("more bytes arrived than the ticket allows", 403)

    def take_to_send(self, n_bytes: int) -> int:
        """Return how many of some bytes may still be sent, and count them."""
        with self.changed:
            may = min(n_bytes, self.ticket.most_bytes - self.sent_bytes)
            self.sent_bytes += may
        return may


@dataclass
class _Leased:
    """Purpose of a lease: a test, or as many at once as were asked for, of one nonce."""

    token: str
    issuer: str
    nonce: str
    until_s: float
    n_tests: int
    timer: threading.Timer
    tests: dict[str, RunningTest] = field(default_factory=dict)

    def test_of(self, ticket: MeasureTicket) -> RunningTest:
        """Return the test of a ticket, which begins to be one here."""
        name = _test_name(ticket)
        if name not in self.tests:
            if len(self.tests) == self.n_tests:
                raise RefusedError(
                    f"the lease is for {self.n_tests} tests at once, and this test would be one "
                    "more",
                    409,
                )
            self.tests[name] = RunningTest(ticket, self.until_s, self.n_tests)
        return self.tests[name]


class HostTests:
    """The tests of one host, at most one at a time unless one lease is for several.

    For all threads.

    Parameters
    ----------
    config : MeasureConfig
    certificate : Path
        This agent's; it need not be there yet.

    Raises
    ------
    ProblemError
        The file that counts what tests have taken is damaged.
    """

    def __init__(self, config: MeasureConfig, certificate: Path) -> None:
        self._config, self._certificate = config, certificate
        self._operators = config.operators
        self._used = UsedBytes(config.used, config.bytes_per_hour)
        self._lease = HostLease(LONGEST_LEASE_S)
        self._lock = threading.RLock()
        self._held = -1
        self._leased: _Leased | None = None

    @cached_property
    def _fingerprint(self) -> str:
        """Return what tickets call this host."""
        return fingerprint_of_file(self._certificate)

    def trust(self, operators: frozenset[str]) -> None:
        """Count the tickets of these operators from now on; a lease of another's ends."""
        with self._lock:
            self._operators = operators
            if self._leased is not None and self._leased.issuer not in operators:
                self._lease.give_back(self._leased.token, time.monotonic())
                self._end(self._leased)

    def admit(self, token: str | None) -> MeasureTicket:
        """Return the ticket of a token, which counts here now.

        Raises
        ------
        RefusedError
            There is none, it does not count, or tests do not run at this hour.
        """
        if not token:
            raise RefusedError("measuring needs a ticket: Authorization: Bearer TOKEN", 401)
        try:
            ticket = read_measure_ticket(token, self._operators)
            judge_measure_ticket(ticket, self._fingerprint, time.time())
        except TicketError as error:
            raise RefusedError(f"the ticket does not count: {error}", 401) from None
        hours = self._config.hours
        if hours is not None and not is_within(hours, time.localtime().tm_hour):
            raise RefusedError(
                f"tests run from {hours[0]} to {hours[1]} o'clock by this host's clock, now it is "
                f"{time.strftime('%H:%M')}",
                403,
            )
        for tool in ticket.tools:
            if tool not in self._config.tools:
                raise RefusedError(
                    f"the tool {shown(tool)} is not one of this agent's: "
                    f"{', '.join(self._config.tools)}; write it into tools of [measure]",
                    403,
                )
        return ticket

    def ask(
        self, ticket: MeasureTicket, attempt: int, seconds: float, n_tests: int = 1
    ) -> LeaseAnswer:
        """Answer who asks for the lease, for the first time or again.

        With it so many tests may run at once, all with the nonce of this ticket.

        Raises
        ------
        RefusedError
            The test would take more bytes than are left.
        """
        now_s, token = time.monotonic(), _lease_token(ticket, attempt)
        with self._lock:
            self._end_what_is_over(now_s)
            is_held = self._leased is not None and self._leased.token == token
            left_bytes = self._used.left_bytes(time.time())
            if not is_held and ticket.most_bytes > left_bytes:
                raise RefusedError(
                    f"the test may take {ticket.most_bytes} bytes, and {max(left_bytes, 0)} of "
                    f"the {self._config.bytes_per_hour} of bytes_per_hour are left; ask for less, "
                    "or try later",
                    429,
                )
            if self._leased is None and not self._locked():
                return Wait(LONGEST_LEASE_S, ASK_EVERY_S)
            answer = self._lease.ask(token, seconds, now_s)
            if isinstance(answer, Granted) and not is_held:
                timer = self._ending_after(answer.seconds, ticket, attempt)
                until_s = now_s + answer.seconds
                self._leased = _Leased(token, ticket.issuer, ticket.nonce, until_s, n_tests, timer)
            elif self._leased is None:
                self._unlock()
            return answer

    def _ending_after(self, seconds: float, ticket: MeasureTicket, attempt: int) -> threading.Timer:
        """Return what ends a lease that has just been granted; without it there is none."""
        timer = threading.Timer(seconds, self.give_back, (ticket, attempt))
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # threads are used up
            self._lease.give_back(_lease_token(ticket, attempt), time.monotonic())
            self._unlock()
            raise RefusedError(
                "this host cannot start another test now; try again later", 503
            ) from None
        return timer

    def give_back(self, ticket: MeasureTicket, attempt: int) -> None:
        """End a lease and its test, or leave the queue."""
        token = _lease_token(ticket, attempt)
        with self._lock:
            self._lease.give_back(token, time.monotonic())
            if self._leased is not None and token == self._leased.token:
                self._end(self._leased)

    def running(self, ticket: MeasureTicket) -> RunningTest:
        """Return the test that a ticket is for, which has the lease.

        Raises
        ------
        RefusedError
            It does not have it, or as many as it is for are there.
        """
        with self._lock:
            self._end_what_is_over(time.monotonic())
            if self._leased is None or self._leased.nonce != ticket.nonce:
                raise RefusedError(
                    "this host is not leased for the test; ask for the lease first", 409
                )
            return self._leased.test_of(ticket)

    def begin(self, ticket: MeasureTicket, tool: str) -> RunningTest:
        """Return the test of a ticket, whose bytes are counted from now on.

        Raises
        ------
        RefusedError
            It lacks the lease, its ticket does not name the tool or has been used, or the bytes
            are more than are left.
        """
        if tool not in ticket.tools:
            raise RefusedError(f"the ticket is for {', '.join(ticket.tools)}, not for {tool}", 403)
        with self._lock:
            test = self.running(ticket)
            if not test.is_begun:
                self._used.reserve(_test_name(ticket), ticket.most_bytes, time.time())
                test.is_begun = True
            return test

    def begin_once(self, ticket: MeasureTicket, tool: str) -> RunningTest:
        """Return the test as `begin`, for the one who sends: a tool is run once."""
        with self._lock:
            if ticket.sender != self._fingerprint:
                raise RefusedError("this ticket lets only the other host send", 403)
            test = self.begin(ticket, tool)
            if tool in test.tools_run:
                raise RefusedError("this test has been run; ask for it with a new ticket", 403)
            test.tools_run.add(tool)
            return test

    def _end_what_is_over(self, now_s: float) -> None:
        if self._leased is not None and self._lease.holder(now_s) != self._leased.token:
            self._end(self._leased)

    def _end(self, leased: _Leased) -> None:
        self._leased = None
        self._unlock()
        leased.timer.cancel()
        for name, test in leased.tests.items():
            test.over.set()
            if test.is_begun:
                # The bytes stay counted as they were reserved, where the disk fails.
                with suppress(NotWrittenError):
                    self._used.settle(name, test.sent_bytes + test.received_bytes)

    def _locked(self) -> bool:
        """Take the kernel's lock, which ends with this process; whether it was free."""
        try:
            self._held = os.open(self._config.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            is_free = take_lock(self._held)
        except OSError as error:
            self._unlock()
            raise RefusedError(
                f"this host's lock, {self._config.lock.name}, cannot be taken: {error.strerror}",
                503,
            ) from None
        if not is_free:
            self._unlock()
        return is_free

    def _unlock(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def is_within(hours: tuple[int, int], hour: int) -> bool:
    """Return whether an hour of the day lies between two, the second one left out.

    >>> [is_within((22, 6), hour) for hour in (21, 22, 5, 6)], is_within((8, 24), 23)
    ([False, True, True, False], True)
    """
    first, last = hours
    return first <= hour < last if first < last else hour >= first or hour < last


def _lease_token(ticket: MeasureTicket, attempt: int) -> str:
    return f"{ticket.nonce}/{attempt}"


def _test_name(ticket: MeasureTicket) -> str:
    """Return what no two tests at this host share, however many run with one lease."""
    return f"{ticket.nonce} {ticket.sender} {ticket.receiver}"
