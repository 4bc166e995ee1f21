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
from datacollect.measurement.sample_store import DONE
from datacollect.measuring.operator.agents import AskedAgent
from datacollect.measuring.operator.lease_holding import leases_of
from datacollect.measuring.operator.pair_tests import row_of_test, said_of_test, tokens_for
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.operator.tools import FLOOD
from datacollect.measuring.probes.rates_at_once import rates_at_once
from datacollect.net.fan_out import Meanwhile
from datacollect.net.tickets import new_nonce

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey

    Ends = tuple[AskedAgent, AskedAgent]

# All connections of all pairs are there by then, as a rule, and all data begin to flow together.
BEGIN_S = 1.0


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
        {**row, "tool": FLOOD, "settings": json.dumps(json.loads(row["settings"]) | said)}
        for row in rows
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
            found, said = _measured(ends, of_each, patience_s, report)
    except TransferError as error:
        found, said = [{"ended": str(error)} for _ in pairs], {}
    return [
        row
        | {"from": sender.name, "to": receiver.name, "settings": json.dumps(asdict(one) | said)}
        | each
        for (sender, receiver), one, each in zip(pairs, of_each, found, strict=True)
    ]


def _measured(
    ends: Sequence[Ends],
    of_each: Sequence[TcpSettings],
    patience_s: float,
    report: Callable[[str], None],
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the rows, and what all have got together, where they were beside each other."""
    nonce = new_nonce()
    far_tokens = [
        tokens_for(sender, receiver, settings, nonce)
        for (sender, receiver), settings in zip(ends, of_each, strict=True)
    ]
    agents = [agent for pair in ends for agent in pair]
    longest_s = BEGIN_S + max(settings.cost.seconds for settings in of_each)
    with leases_of(agents, nonce, longest_s, patience_s, report):
        begun_s = time.time()
        running = [
            Meanwhile(
                f"{by.name} → {to.name}",
                partial(said_of_test, by, to, far_token, settings, begin_s=BEGIN_S),
            )
            for (by, to), far_token, settings in zip(ends, far_tokens, of_each, strict=True)
        ]
        found = [
            _row_of(pair, settings, test)
            for pair, settings, test in zip(ends, of_each, running, strict=True)
        ]
    rows = [{"time_s": begun_s} | row for row, _ in found]
    curves = [curve for _, curve in found]
    if any(curve is None for curve in curves):
        return rows, {}
    at_once = rates_at_once([curve for curve in curves if curve is not None])
    if at_once is None:
        return rows, {}
    for row, rate in zip(rows, at_once.rates_bytes_per_s, strict=True):
        row |= {"bandwidth_bytes_per_s": rate, "duration_s": at_once.duration_s}
    return rows, {"together_bytes_per_s": at_once.together_bytes_per_s}


def _row_of(
    ends: Ends, settings: TcpSettings, test: Meanwhile[dict[str, Any]]
) -> tuple[dict[str, Any], Sequence[tuple[float, int]] | None]:
    """Return the row of a test, and its curve, if all of it was done."""
    try:
        said = test.result()
        row = row_of_test(*ends, settings, said)
    except TransferError as error:
        return {"ended": str(error)}, None
    return row, said["curve"] if row["ended"] == DONE else None
