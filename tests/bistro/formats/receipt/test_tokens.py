"""Outside authorities: two that OpenSSL plays, and all tokens that do not count."""

from __future__ import annotations

import hashlib
import math
import shutil
import time

import pytest
from conftest import NO_OPENSSL
from instances.authorities import Tsa, make_tsa
from instances.events import (
    event_bytes,
    key_of,
    marked_by,
    owner_key,
    owner_of,
    ticket_of,
)

from datacollect.bistro.formats.event.event import Authority
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.formats.receipt.tokens import outside_time, token_time
from datacollect.bistro.formats.receipt.upload_wish import Admission, push_metadata
from datacollect.bistro.formats.receipt.verify import verify
from datacollect.errors import ProblemError, RefusedError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason=NO_OPENSSL)

ENTRY = bytes(range(32))


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> list[Tsa]:
    folder = tmp_path_factory.mktemp("tsa")
    return [make_tsa(folder / name, name) for name in ("one", "two")]


def test_a_token_says_the_time_with_its_accuracy_rounded_up(two):
    """Accuracy 1.5 s: a token of the second t proves t + 2 s, never less."""
    before_s = int(time.time())
    found_s = token_time(two[0].token(ENTRY), ENTRY, two[0].authority)
    assert before_s + 2 <= found_s <= math.ceil(time.time() + 1.5)


def test_a_token_of_another_authority_or_over_other_data_is_refused(two):
    token = two[0].token(ENTRY)
    for message, authority in ((ENTRY, two[1].authority), (bytes(32), two[0].authority)):
        with pytest.raises(ProblemError, match="the time stamp is not one of"):
            token_time(token, message, authority)


@pytest.mark.parametrize("noise", [b"", b"\x30\x00", b"\x30\x80" * 100, bytes(100)])
def test_noise_is_no_token(two, noise):
    for token in (noise, two[0].token(ENTRY)[:-1], two[0].token(ENTRY)[: len(noise)]):
        with pytest.raises(ProblemError, match="the time stamp is not one of"):
            token_time(token, ENTRY, two[0].authority)


def test_two_authorities_make_a_time_and_one_does_not(two):
    authorities = [each.authority for each in two]
    one = two[0].token(ENTRY)
    assert outside_time([], ENTRY, authorities) == (None, [])
    time_s, why = outside_time([one, two[0].token(ENTRY)], ENTRY, authorities)
    assert time_s is None
    assert why == ["Tokens of 2 authorities of the event make a time; this receipt has those of 1."]
    time_s, why = outside_time([one, two[1].token(ENTRY)], ENTRY, authorities)
    assert time_s >= token_time(one, ENTRY, authorities[0])
    assert why == []


def test_one_authority_below_two_roots_is_one(two, tmp_path):
    """Two roots have signed its key: it could backdate alone."""
    again = make_tsa(tmp_path / "again", "again", signer=two[0])
    tokens = [two[0].token(ENTRY), again.token(ENTRY)]
    authorities = [two[0].authority, again.authority]
    assert token_time(tokens[1], ENTRY, again.authority)
    time_s, why = outside_time(tokens, ENTRY, authorities)
    assert time_s is None
    assert "one key vouches for all of them" in why[0]
    time_s, why = outside_time(
        [*tokens, two[1].token(ENTRY)], ENTRY, [*authorities, two[1].authority]
    )
    assert (time_s is not None, why) == (True, [])


def test_certificate_that_cannot_be_read_judges_no_token():
    empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    with pytest.raises(ProblemError, match="one cannot be read"):
        token_time(b"x", ENTRY, Authority("http://a.example", empty))


def test_tokens_stand_in_where_no_service_answers(two):
    """A deadline long ago and one to come; the event's file holds what judges them."""
    authorities = [
        {"url": each.authority.url, "certificate": each.authority.certificate} for each in two
    ]
    past = {
        "deadline": "2020-04-15T23:59:59-04:00",
        "collect_until": "2020-04-30T23:59:59-04:00",
    }
    far = {
        "deadline": "2499-04-15T23:59:59-04:00",
        "collect_until": "2499-04-30T23:59:59-04:00",
        "keep_until": "2499-04-30T23:59:59-04:00",
    }
    for changes, outcome in ((past, "late"), (far, "in time")):
        file = event_bytes(authorities=authorities, **changes)
        digest = hashlib.sha256(b"").digest()
        commitment = Commitment(read_event(file).id, bytes(32), 0, digest, bytes(32), bytes(32))
        tokens = tuple(each.token(commitment.entry) for each in two)
        assert verify(file, Receipt(commitment, tokens=tokens)).outcome == outcome
        other = verify(file, Receipt(commitment, tokens=(tokens[0], two[1].token(ENTRY))))
        assert other.outcome == "not proved"
        assert any("Token 2 does not count" in reason for reason in other.reasons)


def test_by_tokens_any_number_of_drafts_proves_its_time_and_no_bistro_takes_one(two):
    """Nobody else knows of them: among these anybody can choose, and this is said to be so."""
    authorities = [
        {"url": each.authority.url, "certificate": each.authority.certificate} for each in two
    ]
    north = {
        "name": "north",
        "url": "https://north.example",
        "key": key_of("north").public,
        "fingerprint": "sha256:" + "0" * 64,
    }
    file = event_bytes(
        authorities=authorities,
        bistros=[north],
        verdicts={"key": key_of("verdicts").public, "url": "https://verdicts.example"},
        limits={"commitments_per_ticket": 1},
        deadline="2499-04-15T23:59:59-04:00",
        collect_until="2499-04-30T23:59:59-04:00",
        keep_until="2499-04-30T23:59:59-04:00",
    )
    event, ticket = read_event(file), ticket_of(read_event(file))
    admission = Admission(event, key_of("north").public, 1000)
    for number in range(3):
        digest, owner = hashlib.sha256(b"%d" % number).digest(), owner_key(f"{number}")
        made = Commitment(event.id, digest, 1, digest, digest, owner_of(f"{number}"))
        commitment = marked_by(event, made)
        tokens = tuple(each.token(commitment.entry) for each in two)
        assert verify(file, Receipt(commitment, tokens=tokens)).outcome == "in time"
        metadata = push_metadata(
            commitment,
            None,
            event=event,
            bistro_key=key_of("north").public,
            sha256=digest,
            size=1,
            owner=owner,
            ticket=ticket,
        )
        with pytest.raises(RefusedError, match="proof"):
            admission.wish_of(metadata, 1, event.deadline_s)
