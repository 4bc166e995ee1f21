"""Whose requests a front answers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from datacollect.bistro.http.exchange import Asked, Reply
from datacollect.bistro.log_service.server import front
from datacollect.bistro.log_service.server.front import Front


class Keeper:
    async def ask(self, asked: Asked) -> Reply:
        return Reply(200, asked.path.encode())


def test_an_address_that_reads_too_much_is_told_and_others_are_served(monkeypatch):
    monkeypatch.setattr(front, "GETS_PER_S", 1e-6)
    monkeypatch.setattr(front, "GETS_AT_ONCE", 3.0)
    serving = Front(SimpleNamespace(behind=()), Keeper())

    def got(address: str) -> Reply:
        request = SimpleNamespace(method="GET", path="/checkpoint", remote=address)
        request.headers = SimpleNamespace(getall=lambda _, default: default)
        return asyncio.run(serving.handle(request))

    assert [got("192.0.2.1").status for _ in range(4)] == [200, 200, 200, 429]
    assert got("192.0.2.1").retry_after_s == 1
    # Whoever has one address of version 6 has a whole network of them.
    assert [got(f"2001:db8::{i}").status for i in range(4)] == [200, 200, 200, 429]
