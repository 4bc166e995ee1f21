"""Strangers with a ticket of their own, and all that is public of somebody's entry, over HTTP."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from instances.bistros import (
    PUSH,
    Client,
    bistro_event,
    commitment_to,
    metadata,
    running_bistro,
)
from instances.events import key_of, owner_key, ticket_of

from datacollect.bistro.formats.custody.bistro_receipt import read_bistro_receipt
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.statements import give_up_statement, push_statement
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.upload_wish import metadata_of, metadata_text
from datacollect.net.keys import public_key_bytes

DATA = bytes(range(256)) * 400
JUNK = bytes(len(DATA))
# A key of small order: for it anybody makes signatures that some programs take.
NOBODYS = bytes([1] + 31 * [0])
STRANGER = 2


def said_for(
    event: Event, commitment: Commitment, bistro: str, data: bytes, number: int = STRANGER
) -> bytes:
    digest = hashlib.sha256(data).digest()
    key, ticket = key_of(bistro).public, ticket_of(event, number).number
    return push_statement(event.id, key, commitment.entry, digest, len(data), ticket)


def by_stranger(event: Event, commitment: Commitment, data: bytes, **more: bytes) -> str:
    """Return what a stranger's program sends: his ticket, his signatures, the victim's proof."""
    said = said_for(event, commitment, "north", data)
    ticket = ticket_of(event, STRANGER)
    values = metadata_of(metadata(event, commitment, STRANGER))
    values |= {"owner": owner_key("a stranger").sign(said), "holder": ticket.key.sign(said)}
    if data is not DATA:
        values["sha256"] = hashlib.sha256(data).digest()
    return metadata_text(values | more)


def heard(event: Event, commitment: Commitment) -> str:
    """Return what a lying bistro has heard, told to another one: signed for itself."""
    return metadata(event, commitment, 1, bistro="south")


def heard_with_another_ticket(event: Event, commitment: Commitment) -> str:
    values = metadata_of(metadata(event, commitment, 1, bistro="south"))
    said = said_for(event, commitment, "north", DATA)
    ticket = ticket_of(event, STRANGER)
    values |= {"ticket": ticket.token.encode(), "holder": ticket.key.sign(said)}
    return metadata_text(values)


def owners_with_a_stolen_token(event: Event, commitment: Commitment) -> str:
    """His own entry, by the token of somebody else, without its key."""
    own = replace(commitment, owner=public_key_bytes(owner_key("a stranger").public))
    values = metadata_of(metadata(event, own, 1))
    said = said_for(event, own, "north", DATA, 1)
    values |= {"holder": ticket_of(event, STRANGER).key.sign(said)}
    return metadata_text(values)


ATTACKS: dict[str, Callable[[Event, Commitment], str]] = {
    "his own signature": lambda e, c: by_stranger(e, c, DATA),
    "no signature": lambda e, c: by_stranger(e, c, DATA, owner=b""),
    "his own, of junk sealed anew": lambda e, c: by_stranger(e, c, JUNK),
    "what another bistro has heard": heard,
    "the same, with a ticket of his": heard_with_another_ticket,
    "a token that is not his": owners_with_a_stolen_token,
    "an owner who is nobody": lambda e, c: by_stranger(
        e, replace(c, owner=NOBODYS), DATA, owner=NOBODYS + bytes(32)
    ),
}


@pytest.fixture
def event(tmp_path):
    return bistro_event(tmp_path)


def attack(client: Client, event: Event, commitment: Commitment) -> list[int]:
    """Try everything; return how the bistro answers."""
    statuses = []
    for text in ATTACKS.values():
        for body in (None, DATA[:1], DATA[:-1], JUNK):
            headers = {"Upload_Length": str(len(DATA)), "Upload_Metadata": text(event, commitment)}
            if body is not None:
                headers["Content_Type"] = PUSH
            statuses.append(client.ask("POST", "/tus/", body, **headers)[0])
            client.close()
    return statuses


def give_up_as_stranger(client: Client, event: Event, path: str) -> int:
    said = give_up_statement(event.id, key_of("north").public, path.rpartition("/")[2])
    signature = base64.b64encode(owner_key("a stranger").sign(said)).decode()
    return client.ask("DELETE", path, Datacollect_Signature=signature)[0]


def test_nobody_but_its_owner_pushes_holds_or_spoils_an_entry(event, tmp_path):
    """Before the owner comes, while it pushes, once it is whole; and after each restart."""
    commitment = commitment_to(event, DATA)
    with running_bistro(tmp_path) as (client, _):
        assert {*attack(client, event, commitment)} <= {400, 403}
        assert client.facts()["stored_bytes"] == client.facts()["reserved_bytes"] == 0
        client.close()
    with running_bistro(tmp_path) as (client, _):
        path = client.create(event, commitment)[1]["location"]
        assert client.patch(path, 0, DATA[:50_000])[0] == 204
        assert {*attack(client, event, commitment)} <= {400, 403}
        assert give_up_as_stranger(client, event, path) == 403
        assert client.ask("HEAD", path)[1]["upload-offset"] == "50000"
        client.close()
    with running_bistro(tmp_path) as (client, _):
        assert {*attack(client, event, commitment)} <= {400, 403}
        found = client.patch(path, 50_000, DATA[50_000:])[1]
        word = read_bistro_receipt(found["datacollect-receipt"], event)
        assert (word.entry, word.sha256) == (commitment.entry, commitment.ciphertext_sha256)
        assert {*attack(client, event, commitment)} <= {400, 403}
        assert client.create(event, commitment)[1]["datacollect-receipt"]
        client.close()


def test_a_signed_request_that_comes_again_changes_nothing(event, tmp_path):
    commitment = commitment_to(event, DATA)
    headers = {
        "Upload_Length": str(len(DATA)),
        "Upload_Metadata": metadata(event, commitment),
    }
    with running_bistro(tmp_path) as (client, _):
        path = client.ask("POST", "/tus/", None, **headers)[1]["location"]
        client.patch(path, 0, DATA[:10])
        again = client.ask("POST", "/tus/", None, **headers)
        assert (again[0], again[1]["location"], again[1]["upload-offset"]) == (201, path, "10")
        client.close()
    with running_bistro(tmp_path) as (client, _):
        client.patch(path, 10, DATA[10:])
        again = client.ask("POST", "/tus/", None, **headers)
        assert "datacollect-receipt" in again[1]
        client.close()
    with running_bistro(tmp_path, "south") as (client, _):
        assert client.ask("POST", "/tus/", None, **headers)[0] == 403
        client.close()


def test_who_sees_a_token_takes_none_of_its_owners_places(event, tmp_path):
    """One that is shown to a bistro is known there: without its key it spends nothing."""
    most = event.commitments_per_ticket
    for n_starts in range(2):
        with running_bistro(tmp_path) as (client, _):
            for i in range(most + 1):
                commitment = commitment_to(event, DATA, 1000 + i)
                values = metadata_of(metadata(event, commitment, STRANGER))
                values["ticket"] = ticket_of(event, 1).token.encode()
                headers = {
                    "Upload_Length": str(len(DATA)),
                    "Upload_Metadata": metadata_text(values),
                }
                assert client.ask("POST", "/tus/", None, **headers)[0] == 403
            for i in range(n_starts, most):
                assert client.create(event, commitment_to(event, DATA, i), DATA)[0] == 201
                if not n_starts:
                    break
            if n_starts:
                assert client.create(event, commitment_to(event, DATA, most), DATA)[0] == 403
            client.close()


@pytest.mark.parametrize("n_bytes", [0, 1])
def test_promises_of_one_ticket_leave_room_for_others(tmp_path, n_bytes):
    """990 MB of a bistro's 1 GB, promised three times and never sent, or a byte of each."""
    size = 990_000_000
    event = bistro_event(tmp_path, limits={"bytes": size, "commitments_per_ticket": 3})
    for n_starts in range(2):
        with running_bistro(tmp_path) as (client, _):
            for i in range(3):
                large = replace(commitment_to(event, DATA, 100 + i), size=size)
                headers = {
                    "Upload_Length": str(size),
                    "Upload_Metadata": metadata(event, large, STRANGER),
                }
                status, begun, _ = client.ask("POST", "/tus/", None, **headers)
                assert status in (201, 507)
                if status == 201 and n_bytes:
                    offset = int(begun["upload-offset"])
                    assert client.patch(begun["location"], offset, bytes(n_bytes))[0] == 204
            honest = commitment_to(event, DATA, n_starts)
            assert "datacollect-receipt" in client.create(event, honest, DATA)[1]
            client.close()
