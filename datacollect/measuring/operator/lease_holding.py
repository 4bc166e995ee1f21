"""Leases of both ends of a test, as long as it runs: the world around `LeaseTaking`."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from datacollect.errors import RefusedError, TransferError
from datacollect.measuring.plan.lease_taking import (
    Ask,
    Ended,
    GiveBack,
    LeaseTaking,
    Ready,
    Waiting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from datacollect.measuring.operator.agents import AskedAgent
    from datacollect.measuring.plan.lease_taking import LeaseAction

# Leases are asked for so much longer than the test is, for waiting with one for the other.
SPARE_S = 8.0


@contextmanager
def leases_of(
    agents: Sequence[AskedAgent],
    nonce: str,
    test_s: float,
    patience_s: float,
    report: Callable[[str], None],
) -> Iterator[None]:
    """Hold the leases of all hosts of a test.

    Parameters
    ----------
    agents : sequence of AskedAgent
        With tickets for the test; of a host of several tests at once as many, and the first of
        them has its lease.
    nonce : str
        Theirs.
    test_s : float
        How long the test takes at most.
    patience_s : float
        How long another's test is waited for.
    report : callable
        Takes a line: who has to wait is told for whom, and how long.

    Raises
    ------
    RefusedError
        An agent takes part in no such test.
    TransferError
        The leases could not be had in time.
    """
    by_fingerprint = {agent.fingerprint: agent for agent in reversed(agents)}
    n_tests = Counter(agent.fingerprint for agent in agents)
    give_up_s = time.monotonic() + patience_s
    taking = LeaseTaking(nonce, tuple(by_fingerprint), test_s, test_s + SPARE_S, give_up_s)
    try:
        _take(taking, by_fingerprint, n_tests, report)
        yield
    finally:
        for action in taking.finish(time.monotonic()):
            _give_back(action, by_fingerprint)


def _take(
    taking: LeaseTaking,
    agents: dict[str, AskedAgent],
    n_tests: Mapping[str, int],
    report: Callable[[str], None],
) -> None:
    """Return when all leases are there."""
    todo = taking.begin(time.monotonic())
    while True:
        for action in todo:
            if isinstance(action, Ready):
                return
            if isinstance(action, Ended):
                raise TransferError(f"the hosts are not available: {action.reason}")
            if isinstance(action, Waiting):
                name = agents[action.fingerprint].name
                report(f"{name} is in another test; at most {action.wait_s:.0f} s until it is free")
            _give_back(action, agents)
        asked = next((action for action in todo if isinstance(action, Ask)), None)
        if asked is not None:
            todo = _asked(taking, asked, agents[asked.fingerprint], n_tests[asked.fingerprint])
        else:
            time.sleep(max(taking.next_s - time.monotonic(), 0.0))
            todo = taking.tick(time.monotonic())


def _asked(taking: LeaseTaking, asked: Ask, agent: AskedAgent, n_tests: int) -> list[LeaseAction]:
    try:
        answer = agent.ask_lease(_attempt(asked.token), asked.seconds, n_tests)
    except RefusedError:
        raise
    except TransferError:
        return taking.lost(asked.fingerprint, time.monotonic())
    return taking.answered(asked.fingerprint, asked.number, answer, time.monotonic())


def _give_back(action: LeaseAction, agents: dict[str, AskedAgent]) -> None:
    if isinstance(action, GiveBack):
        agents[action.fingerprint].give_back(_attempt(action.token))


def _attempt(token: str) -> int:
    """Return the number of an attempt: agents know the rest by the ticket."""
    return int(token.rpartition("/")[2])
