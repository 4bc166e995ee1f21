"""What bistros say of themselves is read, or refused by its reason."""

from __future__ import annotations

import json

import pytest

from datacollect.bistro.upload_server.standing import read_facts
from datacollect.errors import TransferError
from datacollect.net.http_asking import Answer

FACTS = {
    "bistro": "north",
    "event": "00" * 32,
    "free_bytes": 1,
    "stored_bytes": 2,
    "reserved_bytes": 0,
    "wait_s": 0.5,
    "oldest_s": None,
    "last_contact_s": 1_800_000_000,
}


def read(**changes):
    return read_facts(Answer(200, json.dumps(FACTS | changes).encode()), "north")


def test_facts_are_read():
    assert read() == FACTS


@pytest.mark.parametrize("key", ["wait_s", "oldest_s", "last_contact_s"])
def test_a_time_that_no_clock_shows_is_refused(key):
    with pytest.raises(TransferError, match=rf"{key} must be below \d+, got 1e\+308"):
        read(**{key: 1e308})
