"""A bistro takes what stood in a log in time, by a ticket that counted then."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest
from instances.custody import commitment_of, custody_event, sealed
from instances.events import key_of, owner_key, proof_of, ticket_of

from datacollect.bistro.formats.event.tickets import token_hash
from datacollect.bistro.formats.receipt.upload_wish import Admission, LateError, push_metadata
from datacollect.errors import RefusedError

EVENT = custody_event()
TICKET = ticket_of(EVENT)
REVOKED_S = EVENT.deadline_s - 100
HASH = token_hash(TICKET.token)
REVOKED = replace(EVENT, revoked=frozenset([HASH]), revoked_since=frozenset([(HASH, REVOKED_S)]))


def admitted(event, time_s):
    """Ask a bistro to take an upload whose entry stood in a log by then.

    The third witness, two seconds after the first, makes the time.
    """
    commitment, data, key = commitment_of(EVENT, "a"), sealed("a"), key_of("north").public
    metadata = push_metadata(
        commitment,
        proof_of(commitment.entry, EVENT.services[0].log.name, time_s - 2).data,
        event=EVENT,
        bistro_key=key,
        sha256=sha256(data).digest(),
        size=len(data),
        owner=owner_key("a"),
        ticket=TICKET,
    )
    wish = Admission(event, key, 1000).wish_of(metadata, len(data), event.deadline_s)
    assert wish.commitment == commitment


def test_who_was_revoked_pushes_what_a_log_held_before():
    for time_s in (REVOKED_S - 1, REVOKED_S):
        admitted(REVOKED, time_s)


def test_who_was_revoked_pushes_nothing_that_a_log_held_later():
    with pytest.raises(RefusedError, match="the ticket is revoked"):
        admitted(REVOKED, REVOKED_S + 1)


def test_where_nobody_knows_since_when_a_revoked_ticket_pushes_nothing():
    with pytest.raises(RefusedError, match="the ticket is revoked"):
        admitted(replace(REVOKED, revoked_since=frozenset()), REVOKED_S - 1)


def test_a_ticket_that_counts_pushes_until_the_deadline():
    admitted(EVENT, EVENT.latest_s)
    with pytest.raises(LateError):
        admitted(EVENT, EVENT.latest_s + 1)


def test_nothing_of_an_event_that_was_cancelled_is_taken():
    with pytest.raises(RefusedError, match="the event was cancelled: no room") as refused:
        admitted(replace(EVENT, cancelled="no room"), EVENT.deadline_s - 100)
    assert refused.value.status == 410
