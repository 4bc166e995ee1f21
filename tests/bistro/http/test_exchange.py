"""Requests that go from a process that speaks HTTP to the one that keeps the log."""

from __future__ import annotations

import json

import pytest

from datacollect.bistro.formats.event.tickets import Admitted, Shown
from datacollect.bistro.http.exchange import Asked


@pytest.mark.parametrize(
    "ticket",
    [None, Shown("v4.public.x"), Shown("v4.public.x", b"s" * 64), Admitted("1f", "k", b"t" * 32)],
)
def test_a_request_is_the_same_on_the_other_side(ticket):
    asked = Asked("commit", "192.0.2.1", b"e" * 64, "list", ticket)
    assert Asked.of(json.loads(json.dumps(asked.head)), asked.body) == asked
