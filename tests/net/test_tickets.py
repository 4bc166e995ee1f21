"""Tickets: what makes them count, and what does not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from datacollect.errors import TicketError
from datacollect.net.keys import PrivateKey, sign_token
from datacollect.net.tickets import ASSERTIONS, Ticket, judge_ticket, read_ticket, sign_ticket

KEY, OTHER = PrivateKey(bytes(32)), PrivateKey(bytes(31) + b"x")
NONCE = "AAAAAAAAAAAAAAAAAAAAAA=="
SOURCE = Ticket(KEY.public, "S1", "source", "c1", 1000.0, 1600.0, source="S1", nonce=NONCE)
RELAY = Ticket(
    KEY.public, "R2", "relay", "c1", 1000.0, 1060.0, egress="S1", agents=("R1", "R2"), nonce=NONCE
)


@pytest.mark.parametrize("ticket", [SOURCE, RELAY, replace(SOURCE, files=("*.tar",), most_bytes=7)])
def test_a_ticket_is_read_as_it_was_signed(ticket):
    token = sign_ticket(ticket, KEY)
    assert read_ticket(token, ticket.kind, {KEY.public, OTHER.public}) == ticket


def test_strangers_are_refused():
    with pytest.raises(TicketError, match="not one of the agent's collectors"):
        read_ticket(sign_ticket(SOURCE, KEY), "source", {OTHER.public})


def test_a_forged_issuer_is_noticed():
    """Signed by one who is not trusted, in the name of one who is."""
    with pytest.raises(TicketError, match="signature"):
        read_ticket(sign_ticket(SOURCE, OTHER), "source", {KEY.public})


@pytest.mark.parametrize(("ticket", "other"), [(SOURCE, "relay"), (RELAY, "source")])
def test_one_kind_does_not_count_as_the_other(ticket, other):
    with pytest.raises(TicketError, match="purpose"):
        read_ticket(sign_ticket(ticket, KEY), other, {KEY.public})
    # Nor where the collector itself mixes them up.
    claims = json.loads(sign_payload(ticket))
    token = sign_token(KEY, json.dumps(claims).encode(), ASSERTIONS[other])
    with pytest.raises(TicketError, match=f"not a {other} ticket"):
        read_ticket(token, other, {KEY.public})


def sign_payload(ticket: Ticket) -> bytes:
    from datacollect.net.keys import unverified_payload

    return unverified_payload(sign_ticket(ticket, KEY))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("v", 2),
        ("v", None),
        ("aud", ""),
        ("aud", 5),
        ("kind", ["source"]),
        ("collection", None),
        ("iat", "1000"),
        ("exp", True),
        ("exp", -1),
        ("exp", float("nan")),
        ("exp", float("inf")),
        ("most_bytes", -1),
        ("most_bytes", 1.5),
        ("most_bytes", True),
        ("most_sockets", 0),
        ("most_sockets", None),
        ("nonce", ""),
        ("nonce", "AAAA"),
        ("nonce", NONCE[:-3] + "B=="),  # spare bits: the same bytes in another text
        ("nonce", 5),
        ("files", "*.tar"),
        ("files", [""]),
        ("files", ["a"] * 1001),
        ("via", None),
        ("agents", [1]),
        ("extra", 1),
    ],
)
def test_what_no_ticket_says(key, value):
    claims = json.loads(sign_payload(SOURCE))
    claims[key] = value
    token = sign_token(KEY, json.dumps(claims).encode(), ASSERTIONS["source"])
    with pytest.raises(TicketError):
        read_ticket(token, "source", {KEY.public})


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"null", b"\xff", b'{"iss":1}', b"[" * 5000, b'{"iss":"a","iss":"b"}']
)
def test_what_is_no_ticket_at_all(payload):
    with pytest.raises(TicketError):
        read_ticket(sign_token(KEY, payload, ASSERTIONS["source"]), "source", {KEY.public})


@pytest.mark.parametrize("now_s", [995.0, 1000.0, 1599.999])
def test_a_ticket_counts_until_it_expires(now_s):
    judge_ticket(SOURCE, "S1", now_s)


@pytest.mark.parametrize(
    ("change", "now_s", "why"),
    [
        ({"audience": "S2"}, 1000.0, "the ticket is for agent"),
        ({"source": "S2"}, 1000.0, "the ticket is for files of"),
        ({}, 1600.0, "expired 0 s ago"),
        ({}, 994.9, "was issued 5 s in the future"),
        ({"expires_s": 1000.0}, 999.0, "at most 86400 s, this one is valid for 0 s"),
        ({"expires_s": 1000.0 + 86401}, 1000.0, "at most 86400 s"),
    ],
)
def test_source_tickets_that_do_not_count(change, now_s, why):
    with pytest.raises(TicketError, match=why):
        judge_ticket(replace(SOURCE, **change), "S1", now_s)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"expires_s": 1060.5}, "at most 60 s"),
        ({"agents": ()}, "chain"),
        ({"agents": ("R2", "R1")}, "chain"),
        ({"agents": ("R2", "R1", "R2")}, "loop"),
        ({"egress": "R1"}, "loop"),
        ({"egress": "R2"}, "loop"),
        ({"agents": (*"abcdefgh", "R2")}, "at most 8"),
    ],
)
def test_relay_tickets_that_do_not_count(change, why):
    judge_ticket(RELAY, "R2", 1010.0)
    with pytest.raises(TicketError, match=why):
        judge_ticket(replace(RELAY, **change), "R2", 1010.0)
