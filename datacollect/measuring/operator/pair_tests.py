"""A test of one ordered pair of hosts: both ends asked, leased and run, and the row of it."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from datacollect.errors import TransferError
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.lease_holding import leases_of
from datacollect.net.tickets import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from datacollect.measuring.operator.tool import Settings
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

# Connecting, and answers.
AROUND_S = 10.0


def measure_pair(
    sender: AgentEntry,
    receiver: AgentEntry,
    key: PrivateKey,
    settings: Settings,
    patience_s: float = 600.0,
    report: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure a pair of hosts, and return a row for the table of samples.

    Parameters
    ----------
    sender, receiver : AgentEntry
        Under the operator's names for them.
    key : PrivateKey
        The operator's.
    settings : Settings
    patience_s : float
        How long to wait for others' tests.
    report : callable, optional
        Takes a line where somebody has to wait.

    Returns
    -------
    dict
        ``ended`` says why where it was not ``"done"``.
    """
    row: dict[str, Any] = {
        "from": sender.name,
        "to": receiver.name,
        "time_s": time.time(),
        "tool": settings.tool,
        "settings": json.dumps(asdict(settings)),
        "concurrency": 0,
    }
    try:
        with (
            closing(AskedAgent(sender, key)) as sending,
            closing(AskedAgent(receiver, key)) as receiving,
        ):
            return row | _measured(sending, receiving, settings, patience_s, report)
    except TransferError as error:
        return row | {"ended": str(error)}


def in_one_test(
    sender: AgentEntry,
    receiver: AgentEntry,
    key: PrivateKey,
    settings: Settings,
    patience_s: float = 600.0,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Yield the one row of `measure_pair`."""
    yield measure_pair(sender, receiver, key, settings, patience_s, report)


def _measured(
    sender: AskedAgent,
    receiver: AskedAgent,
    settings: Settings,
    patience_s: float,
    report: Callable[[str], None],
) -> dict[str, Any]:
    nonce = new_nonce()
    far_token = tokens_for(sender, receiver, settings, nonce)
    with leases_of((sender, receiver), nonce, settings.cost.seconds, patience_s, report):
        begun_s = time.time()
        return {"time_s": begun_s, **leased_test(sender, receiver, far_token, settings)}


def tokens_for(sender: AskedAgent, receiver: AskedAgent, settings: Settings, nonce: str) -> str:
    """Give both ends their tickets for a test, and return the receiver's."""
    ends = (sender.fingerprint, receiver.fingerprint)
    _, far_token = (
        agent.token_for(*ends, settings.tool, int(settings.cost.n_bytes), nonce)
        for agent in (sender, receiver)
    )
    return far_token


def leased_test(
    sender: AskedAgent,
    receiver: AskedAgent,
    far_token: str,
    settings: Settings,
) -> dict[str, Any]:
    """Have a test run whose ends have leases and tickets, and return what its row says of it."""
    said = said_of_test(sender, receiver, far_token, settings)
    return row_of_test(sender, receiver, settings, said)


def said_of_test(
    sender: AskedAgent, receiver: AskedAgent, far_token: str, settings: Settings, **more: object
) -> dict[str, Any]:
    """Have a test run whose ends have leases and tickets, and return what the sender says of it.

    Parameters
    ----------
    sender, receiver : AskedAgent
    far_token : str
    settings : Settings
    **more
        What the sender is asked for besides; an agent that does not know it leaves it out.
    """
    body = {"to": receiver.place, "far_token": far_token, **asdict(settings), **more}
    return sender.run(settings.tool, body, settings.cost.seconds + 2 * AROUND_S)


def row_of_test(
    sender: AskedAgent, receiver: AskedAgent, settings: Settings, said: dict[str, Any]
) -> dict[str, Any]:
    """Return what the row of a test says, if both ends agree."""
    beside_pull = any_known((sender.is_in_pull, receiver.is_in_pull))
    return {**settings.row(sender, receiver, said), "beside_pull": beside_pull}


def any_known(answers: Iterable[bool | None]) -> bool | None:
    """Return whether one of them is yes; None where none is, and one is not known."""
    found = set(answers)
    return True if True in found else None if None in found else False
