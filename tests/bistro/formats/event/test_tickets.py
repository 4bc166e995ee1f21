"""Tickets: which count, and what each party learns from them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import pytest
from instances.events import event_of, key_of, ticket_of

from datacollect.bistro.formats.event.tickets import (
    ASSERTION,
    Ticket,
    admitted,
    new_ticket,
    number_of,
    owned,
    read_ticket,
)
from datacollect.errors import ProblemError, TicketError
from datacollect.net.keys import PrivateKey, sign_token

EVENT = event_of()
NUMBER, SEED = bytes(range(16)), bytes(range(32))
TICKET = new_ticket(EVENT, NUMBER, SEED, key_of("organiser"))
NOW_S = EVENT.deadline_s


def test_a_ticket_tells_a_service_its_number_and_its_public_key_alone():
    found = admitted(TICKET.token, EVENT, NOW_S)
    assert found.id == NUMBER.hex()
    assert found.key == TICKET.key.public == PrivateKey(SEED).public
    assert found.token_sha256 == hashlib.sha256(TICKET.token.encode()).digest()
    said = base64.urlsafe_b64decode(TICKET.token.split(".")[2] + "==")
    assert SEED not in said
    assert SEED.hex().encode() not in said


def test_a_ticket_is_a_file_for_its_owner(tmp_path):
    path = tmp_path / "ann.toml"
    path.write_text(TICKET.text)
    assert Ticket.from_file(path) == TICKET


@pytest.mark.parametrize(
    "change",
    [
        lambda text, digits: text.replace(digits, digits.upper()),
        lambda text, digits: text.replace(digits, digits[:58]),
        lambda text, _: text.rstrip()[:-1],
        lambda text, digits: text.replace(f'"{digits}"', digits),
    ],
)
def test_no_message_shows_digits_of_the_seed(tmp_path, change):
    """People send messages on; the seed may be most of it."""
    path = tmp_path / "a.ticket"
    path.write_text(change(TICKET.text, SEED.hex()))
    with pytest.raises(ProblemError, match="copy") as caught:
        Ticket.from_file(path)
    assert SEED.hex()[:8] not in str(caught.value).lower()
    assert str(SEED) not in repr(TICKET)
    assert TICKET.token not in repr(TICKET)


def test_a_ticket_of_an_older_kind_is_called_so(tmp_path):
    """Its file, as it was written then: a token, and a secret."""
    path = tmp_path / "ann.ticket"
    path.write_text(
        f'format = "datacollect-ticket/1"\nevent = "{EVENT.id.hex()}"\ntoken = "v4.public.x"\n'
        f'secret = "{SEED.hex()}"\n'
    )
    with pytest.raises(
        ProblemError,
        match=r"ann\.ticket: format must be datacollect-ticket/2, got "
        "datacollect-ticket/1: a ticket of an older kind.* ask the organiser for a new one",
    ) as said:
        Ticket.from_file(path)
    assert SEED.hex()[:8] not in str(said.value)


def test_a_token_of_an_older_kind_does_not_count():
    claims = f'{{"v":1,"event":"{EVENT.id.hex()}","id":"{NUMBER.hex()}"}}'.encode()
    token = sign_token(key_of("organiser"), claims, "datacollect-event-ticket/1")
    with pytest.raises(TicketError, match="of another key, or for another purpose"):
        admitted(token, EVENT, NOW_S)


def test_a_ticket_is_its_owners_where_its_key_is_that_of_its_token():
    assert owned(TICKET, EVENT).id == NUMBER.hex()
    with pytest.raises(TicketError, match="its key is not the one that its token names"):
        owned(replace(TICKET, seed=bytes(32)), EVENT)


def test_a_ticket_counts_until_files_are_collected():
    assert admitted(TICKET.token, EVENT, EVENT.collect_until_s - 1)
    with pytest.raises(TicketError, match="has expired 0 s ago"):
        admitted(TICKET.token, EVENT, EVENT.collect_until_s)


def test_other_tickets_do_not_count():
    with pytest.raises(TicketError, match="for another event"):
        admitted(TICKET.token, event_of(name="another"), NOW_S)
    with pytest.raises(TicketError, match="of another key"):
        admitted(TICKET.token, replace(EVENT, organiser=key_of("other").public), NOW_S)
    with pytest.raises(TicketError, match="of another key, or for another purpose"):
        admitted(sign_token(key_of("organiser"), b"{}", "datacollect-source-ticket/1"), EVENT, 0)
    with pytest.raises(TicketError, match="fields are not those of a ticket"):
        admitted(sign_token(key_of("organiser"), b"{}", ASSERTION), EVENT, 0)
    with pytest.raises(TicketError, match="this is not a token"):
        admitted("", EVENT, NOW_S)


def test_zeros_are_no_tickets_number():
    """They stand for none, where one is written down."""
    with pytest.raises(TicketError, match="all zeros"):
        admitted(ticket_of(EVENT, 0).token, EVENT, NOW_S)


def test_a_revoked_ticket_does_not_count():
    token_sha256 = admitted(TICKET.token, EVENT, NOW_S).token_sha256
    with pytest.raises(TicketError, match="is revoked"):
        admitted(TICKET.token, replace(EVENT, revoked=frozenset({token_sha256})), NOW_S)


def test_only_the_organiser_makes_tickets():
    with pytest.raises(ProblemError, match="the key must be the organiser's"):
        new_ticket(EVENT, NUMBER, SEED, key_of("s0"))


def test_a_link_is_short_and_brings_the_same_ticket(tmp_path):
    """Of 96 bytes Base64 makes 128 letters; the rest stands in the event's file."""
    number = number_of(TICKET.key.public)
    ticket = new_ticket(EVENT, number, SEED, key_of("organiser"))
    assert len(ticket.link) == len("#t=") + 128
    assert Ticket.from_link(f"https://page.example/hand-in/{ticket.link}", EVENT) == ticket
    path = tmp_path / "ann.link"
    path.write_text(f"https://page.example/{ticket.link}\n")
    assert read_ticket(path, EVENT) == ticket
    assert owned(ticket, EVENT).id == number.hex()


def test_a_link_carries_a_number_that_is_not_that_of_the_key():
    assert number_of(TICKET.key.public) != NUMBER
    assert len(TICKET.link) == len("#t=") + 150
    assert Ticket.from_link(TICKET.link, EVENT) == TICKET


@pytest.mark.parametrize("cut", [1, 3, 60, 128])
def test_a_cut_link_is_called_so_and_shows_nothing(tmp_path, cut):
    ticket = new_ticket(EVENT, number_of(TICKET.key.public), SEED, key_of("organiser"))
    path = tmp_path / "ann.link"
    path.write_text(f"https://page.example/{ticket.link[:-cut]}\n")
    with pytest.raises(ProblemError, match=r"ann\.link: the link is damaged.*whole") as caught:
        read_ticket(path, EVENT)
    assert ticket.link[3:13] not in str(caught.value)


def test_a_link_is_written_in_one_way():
    """Bits behind the last byte, which Base64 forgets, are none of a link."""
    last = TICKET.link[-1]
    assert last in "AQgw"  # 150 letters hold 112 bytes and 4 bits
    with pytest.raises(TicketError, match="the link is damaged"):
        Ticket.from_link(TICKET.link[:-1] + chr(ord(last) + 1), EVENT)


def test_letters_of_the_other_base64_are_none_of_a_link():
    ticket = Ticket.from_link("#t=" + "-_" * 64, EVENT)
    assert ticket.link == "#t=" + "-_" * 64
    with pytest.raises(TicketError, match="the link is damaged"):
        Ticket.from_link("#t=" + "+/" * 64, EVENT)


def test_a_link_of_another_event_or_a_changed_one_does_not_count():
    """What the organiser has signed names the event: read for another, nobody has signed it."""
    ticket = new_ticket(EVENT, number_of(TICKET.key.public), SEED, key_of("organiser"))
    other = replace(EVENT, id=bytes(32))
    with pytest.raises(TicketError, match="signature"):
        owned(Ticket.from_link(ticket.link, other), other)
    first = "B" if ticket.link[3] != "B" else "C"
    with pytest.raises(TicketError):
        owned(Ticket.from_link(f"#t={first}{ticket.link[4:]}", EVENT), EVENT)
