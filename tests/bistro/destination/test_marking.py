"""By whose key entries are marked, also where another log of verdicts goes on."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from instances.bistro_folders import collecting_event
from instances.events import key_of, ticket_of

from datacollect.bistro.destination.marking import mark_keys
from datacollect.bistro.formats.event.event import EndedLog
from datacollect.bistro.formats.event.marks import own_mark_key
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.errors import ProblemError

EVENT = collecting_event()
SECOND = replace(
    EVENT,
    verdicts=log_key("verdicts/second", key_of("second").public),
    ended_verdicts=(EndedLog(EVENT.verdicts, None),),
)


def keys_with(mark_key):
    config = SimpleNamespace(key=key_of("second"), mark_key=mark_key)
    return mark_keys(EVENT, config, "destination.toml")


def test_people_mark_alike_whatever_log_goes_on():
    ticket = ticket_of(EVENT)
    before, after = own_mark_key(EVENT, ticket.key), own_mark_key(SECOND, ticket.key)
    assert before == after == keys_with(key_of("verdicts")).of(ticket.key.public)


def test_another_key_than_people_mark_by_is_refused_and_a_lost_one_is_none():
    with pytest.raises(ProblemError, match="mark_key must be the key of the first log"):
        keys_with(key_of("second"))
    assert keys_with(None) is None
