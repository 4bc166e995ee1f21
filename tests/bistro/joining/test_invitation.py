"""Invitations and guests: for one use, for some days, for hosts that are different."""

from __future__ import annotations

import json

import pytest
from instances.events import key_of

from datacollect.bistro.formats.log.checkpoints import witness_key
from datacollect.bistro.joining.guests import DAY_S, JOIN, OPENED, Guests
from datacollect.bistro.joining.invitation import BEGINS, Invitation, fingerprint_of_half
from datacollect.errors import ProblemError, RefusedError

URL = "https://hand-in.example/join"


@pytest.fixture
def guests(tmp_path):
    return Guests(tmp_path / "guests", "hand-in.example")


def witness(host: str) -> dict[str, str]:
    key = witness_key(host, key_of(host).public).text
    return {"role": "witness", "url": f"https://{host}", "vkey": key}


def join(guests: Guests, invitation: Invitation, half: dict[str, str], now_s: float = 0.0):
    text = json.dumps(half)
    mac = invitation.mac(JOIN + text.encode())
    return guests.join(invitation.number, text, mac, now_s)


def test_line_is_read_back_and_a_changed_one_is_refused_without_showing_it(guests):
    made = guests.invite(URL, key_of("organiser").public, 7)
    assert Invitation.parse(f" {made.text}\n") == made
    assert "\n" not in made.text
    for changed in (made.text[:-1], made.text[:40] + "x" + made.text[41:], BEGINS, f"{BEGINS}ä"):
        with pytest.raises(ProblemError, match="copy the whole line again") as caught:
            Invitation.parse(changed)
        assert made.secret.hex() not in str(caught.value)
    with pytest.raises(ProblemError, match="must begin with"):
        Invitation.parse("hello")


def test_line_is_for_one_host_which_may_say_the_same_again(guests, tmp_path):
    made = guests.invite(URL, key_of("organiser").public, 7)
    for _ in range(2):
        assert join(guests, made, witness("w0.example")).half == witness("w0.example")
    with pytest.raises(RefusedError, match=r"used by https://w0.example.*event invite") as caught:
        join(guests, made, witness("w1.example"))
    assert caught.value.status == 409
    # Started again, who listens knows it still.
    again = Guests(tmp_path / "guests", "hand-in.example")
    assert [each.half for each in again.joined] == [witness("w0.example")]
    asked = OPENED + made.number.encode()
    again.require_joined(made.number, made.mac(asked), key_of("w0.example").sign(asked))


def test_line_expires_and_none_joins_without_its_secret(guests):
    made = guests.invite(URL, key_of("organiser").public, 7)
    with pytest.raises(RefusedError, match="has expired") as caught:
        join(guests, made, witness("w0.example"), made.expires_s + 1.0)
    assert caught.value.status == 410
    assert made.expires_s > 6 * DAY_S
    for number, secret in ((made.number, bytes(16)), ("00" * 8, made.secret), ("../x", bytes(16))):
        forged = Invitation(URL, made.organiser, number, secret, made.expires_s)
        with pytest.raises(RefusedError, match="is not for this event"):
            join(guests, forged, witness("w0.example"))
    assert guests.joined == []


def test_host_that_joins_twice_or_is_the_organisers_own_is_refused(guests):
    first, second = (guests.invite(URL, key_of("organiser").public, 7) for _ in range(2))
    join(guests, first, witness("w0.example"))
    twin = {**witness("w0.example"), "url": "https://W0.example:8443"}
    with pytest.raises(RefusedError, match="has joined as witness"):
        join(guests, second, twin)
    with pytest.raises(RefusedError, match="the organiser's own host"):
        join(guests, second, witness("hand-in.example"))
    # What is refused uses nothing up.
    join(guests, second, witness("w1.example"))
    assert len(guests.joined) == 2


@pytest.mark.parametrize(
    "half",
    [
        {"role": "king"},
        {"role": "witness", "url": "https://w"},
        {**witness("w"), "more": "x"},
        {**witness("w"), "url": "ftp://w"},
        {**witness("w"), "vkey": "w+x"},
        [],
    ],
)
def test_what_is_no_half_is_refused(guests, half):
    made = guests.invite(URL, key_of("organiser").public, 7)
    with pytest.raises(RefusedError, match="is not understood") as caught:
        join(guests, made, half)
    assert caught.value.status == 400


def test_fingerprint_is_of_all_that_was_told(guests):
    one = witness("w0.example")
    assert fingerprint_of_half(one) == fingerprint_of_half(dict(reversed(one.items())))
    assert fingerprint_of_half(one) != fingerprint_of_half({**one, "url": "https://x.example"})


def test_who_has_a_line_alone_is_told_nothing_of_what_the_host_with_its_keys_is(guests):
    # The line was copied from a mail, and is good for nothing once its host has joined.
    made = guests.invite(URL, key_of("organiser").public, 7)
    join(guests, made, witness("w0.example"))
    asked = OPENED + made.number.encode()
    for signature in (b"", key_of("thief").sign(asked), key_of("w0.example").sign(b"another")):
        with pytest.raises(RefusedError, match="not signed by the key of this host") as caught:
            guests.require_joined(made.number, made.mac(asked), signature)
        assert caught.value.status == 403


def test_nobody_joins_who_was_not_there_when_the_organiser_was_asked(guests):
    first, late = (guests.invite(URL, key_of("organiser").public, 7) for _ in range(2))
    join(guests, first, witness("w0.example"))
    assert [each.half for each in guests.settled()] == [witness("w0.example")]
    with pytest.raises(RefusedError, match="this event has all its hosts") as caught:
        join(guests, late, witness("w1.example"))
    assert caught.value.status == 409
    # Who has joined may say it again: the answer may have been lost.
    join(guests, first, witness("w0.example"))
    assert len(guests.joined) == 1


def test_mac_that_is_no_ascii_is_a_wrong_one(guests):
    made = guests.invite(URL, key_of("organiser").public, 7)
    with pytest.raises(RefusedError, match="is not for this event"):
        guests.join(made.number, json.dumps(witness("w0.example")), "ä", 0.0)
