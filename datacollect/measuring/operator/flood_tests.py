"""Tests of several pairs at once, such as of one host: what it sends, or receives, in all."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, TransferError
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.lease_holding import leases_of
from datacollect.measuring.operator.pair_tests import leased_test, tokens_for
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tools import FLOOD
from datacollect.net.fan_out import Meanwhile
from datacollect.net.tickets import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

    Ends = tuple[AskedAgent, AskedAgent]


def flooded_host(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the host that sends to all others of a flood, or receives from all.

    Raises
    ------
    ProblemError
        There is no such host, or only one other.

    Examples
    --------
    >>> flooded_host([("S", "D"), ("S", "E")]), flooded_host([("S", "D"), ("E", "D")])
    ('S', 'D')
    """
    senders, receivers = {tail for tail, _ in pairs}, {head for _, head in pairs}
    if len(pairs) < 2 or min(len(senders), len(receivers)) != 1:
        raise ProblemError(
            "a flood has one host that sends to at least two, or receives from at least two, got "
            f"{len(senders)} that send and {len(receivers)} that receive; name one by --from and "
            "the others by --to, or the other way round"
        )
    return (senders if len(senders) == 1 else receivers).pop()


def measure_flood(
    pairs: Sequence[tuple[AgentEntry, AgentEntry]],
    key: PrivateKey,
    settings: TcpSettings | Sequence[TcpSettings],
    patience_s: float = 600.0,
    report: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure all pairs at once, and return a row for each.

    Parameters
    ----------
    pairs : sequence of (AgentEntry, AgentEntry)
        Who sends and who receives; one host is in all of them.
    key : PrivateKey
        The operator's.
    settings : TcpSettings, or a sequence of these
        Of all pairs, or of each, in their order.
    patience_s, report
        As for `datacollect.measuring.operator.pair_tests.measure_pair`.

    Raises
    ------
    ProblemError
        No host is in all pairs.
    """
    host = flooded_host([(sender.name, receiver.name) for sender, receiver in pairs])
    said = {"host": host, "flood": secrets.token_hex(8)}
    of_each = _of_each(settings, len(pairs))
    rows = measure_at_once(pairs, key, of_each, patience_s, report)
    return [
        {**row, "tool": FLOOD, "settings": json.dumps(asdict(one) | said)}
        for one, row in zip(of_each, rows, strict=True)
    ]


def _of_each(settings: TcpSettings | Sequence[TcpSettings], n: int) -> Sequence[TcpSettings]:
    """Return the settings of each of so many pairs."""
    return [settings] * n if isinstance(settings, TcpSettings) else settings


def measure_at_once(
    pairs: Sequence[tuple[AgentEntry, AgentEntry]],
    key: PrivateKey,
    settings: TcpSettings | Sequence[TcpSettings],
    patience_s: float = 600.0,
    report: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure pairs at once, with the leases of all their hosts, and return a row for each.

    Parameters
    ----------
    pairs : sequence of (AgentEntry, AgentEntry)
        Who sends and who receives.
    key, settings, patience_s, report
        As for `measure_flood`.
    """
    of_each = _of_each(settings, len(pairs))
    row = {"time_s": time.time(), "tool": TcpSettings.tool, "concurrency": len(pairs) - 1}
    try:
        with ExitStack() as held:
            ends = [
                (
                    held.enter_context(closing(AskedAgent(sender, key))),
                    held.enter_context(closing(AskedAgent(receiver, key))),
                )
                for sender, receiver in pairs
            ]
            found = _measured(ends, of_each, patience_s, report)
    except TransferError as error:
        found = [{"ended": str(error)} for _ in pairs]
    return [
        row | {"from": sender.name, "to": receiver.name, "settings": json.dumps(asdict(one))} | each
        for (sender, receiver), one, each in zip(pairs, of_each, found, strict=True)
    ]


def _measured(
    ends: Sequence[Ends],
    of_each: Sequence[TcpSettings],
    patience_s: float,
    report: Callable[[str], None],
) -> list[dict[str, Any]]:
    nonce = new_nonce()
    far_tokens = [
        tokens_for(sender, receiver, settings, nonce)
        for (sender, receiver), settings in zip(ends, of_each, strict=True)
    ]
    agents = [agent for pair in ends for agent in pair]
    longest_s = max(settings.cost.seconds for settings in of_each)
    with leases_of(agents, nonce, longest_s, patience_s, report):
        begun_s = time.time()
        running = [
            Meanwhile(f"{by.name} → {to.name}", partial(leased_test, by, to, far_token, settings))
            for (by, to), far_token, settings in zip(ends, far_tokens, of_each, strict=True)
        ]
        return [{"time_s": begun_s} | _row_of(each) for each in running]


def _row_of(test: Meanwhile[dict[str, Any]]) -> dict[str, Any]:
    try:
        return test.result()
    except TransferError as error:
        return {"ended": str(error)}
