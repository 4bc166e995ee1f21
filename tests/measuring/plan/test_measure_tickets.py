"""Tickets for measuring: whose count, where, for what, how long."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from datacollect.errors import TicketError
from datacollect.measuring.plan.measure_tickets import (
    ASSERTION,
    MeasureTicket,
    judge_measure_ticket,
    read_measure_ticket,
    sign_measure_ticket,
)
from datacollect.net.keys import PrivateKey, sign_token
from datacollect.net.tickets import ASSERTIONS, Ticket, read_ticket, sign_ticket

KEY = PrivateKey(b"the key of the tests' operator!!")
OTHER = PrivateKey(b"the key of somebody else in here")
TICKET = MeasureTicket(KEY.public, "f1", "f1", "f2", ("tcp",), 1000, 100.0, 160.0)


def test_what_was_signed_is_read():
    assert read_measure_ticket(sign_measure_ticket(TICKET, KEY), [KEY.public]) == TICKET


def test_only_operators_sign():
    token = sign_measure_ticket(replace(TICKET, issuer=OTHER.public), OTHER)
    with pytest.raises(TicketError, match="not one of the agent's operators"):
        read_measure_ticket(token, [KEY.public])


def test_nobody_signs_in_the_name_of_an_operator():
    token = sign_measure_ticket(TICKET, OTHER)
    with pytest.raises(TicketError):
        read_measure_ticket(token, [KEY.public])


def test_a_changed_byte_counts_for_nothing():
    token = sign_measure_ticket(TICKET, KEY)
    place = len("v4.public.") + 40
    changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
    with pytest.raises(TicketError):
        read_measure_ticket(changed, [KEY.public])


def test_tickets_of_other_kinds_are_none_and_the_other_way_round():
    source = Ticket(KEY.public, "f1", "source", "c", issued_s=100.0, expires_s=160.0)
    with pytest.raises(TicketError):
        read_measure_ticket(sign_ticket(source, KEY), [KEY.public])
    with pytest.raises(TicketError):
        read_ticket(sign_measure_ticket(TICKET, KEY), "source", [KEY.public])
    assert ASSERTION not in ASSERTIONS.values()


@pytest.mark.parametrize(
    ("changed", "at", "why"),
    [
        ({"audience": "f2"}, 120.0, "the ticket is for the agent"),
        ({"sender": "f3"}, 120.0, "two different hosts"),
        ({"receiver": "f1"}, 120.0, "two different hosts"),
        ({"expires_s": 5000.0}, 120.0, "at most 3600 s"),
        ({"expires_s": 100.0}, 120.0, "at most 3600 s"),
        ({}, 94.0, "issued 6 s in the future"),
        ({}, 160.0, "expired 0 s ago"),
    ],
)
def test_a_ticket_counts_at_its_agent_in_its_time_alone(changed, at, why):
    judge_measure_ticket(TICKET, "f1", 120.0)
    judge_measure_ticket(TICKET, "f1", 95.0)
    with pytest.raises(TicketError, match=why):
        judge_measure_ticket(replace(TICKET, **changed), "f1", at)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("v", 2),
        ("aud", ""),
        ("from", 3),
        ("to", "x" * 201),
        ("tools", "tcp"),
        ("tools", [1]),
        ("most_bytes", -1),
        ("most_bytes", 1.5),
        ("most_bytes", True),
        ("nonce", "short"),
        ("iat", float("nan")),
        ("exp", None),
        ("more", 1),
    ],
)
def test_what_no_ticket_says_is_refused(name, value):
    claims = {
        "v": 1,
        "iss": KEY.public,
        "aud": "f1",
        "from": "f1",
        "to": "f2",
        "tools": ["tcp"],
        "most_bytes": 1,
        "nonce": TICKET.nonce,
        "iat": 1.0,
        "exp": 2.0,
    }
    token = sign_token(KEY, json.dumps(claims).encode(), ASSERTION)
    assert read_measure_ticket(token, [KEY.public]).most_bytes == 1
    token = sign_token(KEY, json.dumps(claims | {name: value}).encode(), ASSERTION)
    with pytest.raises(TicketError):
        read_measure_ticket(token, [KEY.public])
