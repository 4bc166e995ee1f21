"""Dialling back: an agent says whether it reaches who asks, as it would for a relayed connection.

No host and no port comes from outside: of the places in its own `connect_to` those are dialled that
lead to the address that asks. So nobody learns more than by asking it to relay to himself.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.net.addresses import addresses_of, origin_of
from datacollect.net.buckets import Bucket
from datacollect.net.deadline import Deadline
from datacollect.net.dialling import dial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.transfer.agent.shell.handling import Exchange, Handler

PATH = "/v1/dial-back"
# Of all who ask: to look names up, and to dial, costs others something.
REQUESTS_PER_S, AT_ONCE = 0.5, 5.0
WITHIN_S = 5.0
MOST_NAMES = 64


def dial_back_handler(connect_to: Mapping[str, tuple[str, int]]) -> Handler:
    """Return what answers `PATH` for an agent with these places."""
    bucket, lock = Bucket(REQUESTS_PER_S, AT_ONCE), threading.Lock()

    def handle(exchange: Exchange) -> None:
        with lock:
            is_free = bucket.take(time.monotonic())
        if exchange.method != "GET":
            exchange.answer(405, [("Allow", "GET")])
        elif not is_free:
            exchange.answer(429, [("Retry-After", "10")])
        else:
            rows = _dialled(connect_to, exchange.address)
            body = json.dumps({"rows": rows}).encode()
            exchange.answer(200, [("Content-Type", "application/json")], body)

    return handle


def _dialled(connect_to: Mapping[str, tuple[str, int]], origin: str) -> list[dict[str, str]]:
    """Return, for each name that leads to who asks, why it is not reached; empty: it is."""
    rows = []
    for name, (host, port) in list(connect_to.items())[:MOST_NAMES]:
        try:
            addresses = addresses_of(host, port)
        except TransferError:
            continue
        there = [each for each in addresses if origin_of(each[0]) == origin]
        if there:
            rows.append({"name": name, "why": _why_not(name, there)})
    return rows


def _why_not(name: str, addresses: list[tuple[str, int]]) -> str:
    try:
        dial(addresses, name, Deadline(WITHIN_S)).close()
    except TransferError as error:
        return str(error)
    return ""
