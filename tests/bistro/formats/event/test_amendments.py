"""Amendments: what an organiser can change, who can, and what stays as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from instances.custody import custody_event
from instances.events import DEADLINE_S, event_of, key_of

from datacollect.bistro.formats.event import amendments
from datacollect.bistro.formats.event.amendments import (
    amended,
    missing_numbers,
    read_amendment,
    sign_amendment,
)
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.notes import VerifierKey, is_by, parse_note, signed
from datacollect.errors import ProblemError

EVENT, COLLECTED = event_of(), custody_event()
ORGANISER = key_of("organiser")
A_DAY_LATER = {"deadline": "2027-04-16T23:59:59-04:00"}
BISTRO = {
    "name": "b1",
    "url": "https://b1.example",
    "key": key_of("b1").public,
    "fingerprint": "sha256:" + "0" * 64,
}


def test_an_amendment_is_plain_text_that_the_organiser_has_signed():
    data = sign_amendment(EVENT, A_DAY_LATER, 1, ORGANISER)
    note = parse_note(data)
    assert f'event = "{EVENT.id.hex()}"' in note.text
    assert "deadline = 2027-04-16T23:59:59-04:00\n" in note.text
    assert is_by(note, log_key("organiser", ORGANISER.public))
    amendment = read_amendment(data, EVENT)
    assert (amendment.number, amendment.deadline_s) == (1, DEADLINE_S + 86_400)
    assert amendment.entry == data


def test_an_event_is_amended_by_what_amendments_say_and_by_nothing_else():
    ticket = "ab" * 32
    later = read_amendment(sign_amendment(EVENT, A_DAY_LATER, 1, ORGANISER), EVENT)
    more = read_amendment(
        sign_amendment(EVENT, {"bistros": [BISTRO], "revoked": [ticket]}, 2, ORGANISER), EVENT
    )
    event = amended(EVENT, [more, later])
    assert event.deadline_s == DEADLINE_S + 86_400
    assert event.revoked == {bytes.fromhex(ticket)}
    assert [each.name for each in event.bistros] == ["b1"]
    assert event.id == EVENT.id
    assert (event.quorum, event.witnesses) == (EVENT.quorum, EVENT.witnesses)
    assert missing_numbers([later, more]) == []
    assert missing_numbers([more]) == [1]


def test_an_event_that_was_cancelled_is_changed_by_nothing_more():
    why = {"cancelled": "the exam is moved"}
    ended = read_amendment(sign_amendment(EVENT, why, 1, ORGANISER), EVENT)
    event = amended(EVENT, [ended])
    assert event.cancelled_text == "the event was cancelled: the exam is moved"
    assert (EVENT.cancelled_text, event.deadline_s) == (None, EVENT.deadline_s)
    for changes in (A_DAY_LATER, {"cancelled": "for another reason"}):
        with pytest.raises(ProblemError, match="can no longer be changed"):
            sign_amendment(event, changes, 2, ORGANISER)


@pytest.mark.parametrize("why", ["two\nlines", "\x1b[2J", "x" * 301])
def test_why_an_event_was_cancelled_is_a_line(why):
    with pytest.raises(ProblemError, match="cancelled must be a line of at most 300 letters"):
        sign_amendment(EVENT, {"cancelled": why}, 1, ORGANISER)


def successor(number: int) -> VerifierKey:
    return log_key(f"verdicts.example/{number:016}", key_of(f"dest{number}").public)


def naming(number: int, log: VerifierKey):
    """Return the amendment of a number that names a log of verdicts; it stood there by then."""
    table = {"log": log.text, "url": f"https://verdicts{number}.example"}
    note = sign_amendment(COLLECTED, {"verdicts": table}, number, ORGANISER)
    return replace(read_amendment(note, COLLECTED), published_s=1000 * number)


def test_logs_of_verdicts_succeed_each_other_in_the_order_of_their_amendments():
    first, second = naming(1, successor(1)), naming(2, successor(2))
    event = amended(COLLECTED, [second, first])
    assert event.verdicts == successor(2)
    assert event.verdicts_url == "https://verdicts2.example"
    ended = [(each.log, each.ended_s) for each in event.ended_verdicts]
    assert ended == [(COLLECTED.verdicts, 1000), (successor(1), 2000)]
    assert event == amended(amended(COLLECTED, [first]), [second])


@pytest.mark.parametrize(
    "log",
    [
        COLLECTED.verdicts,
        successor(1),
        log_key(successor(1).name, key_of("dest2").public),
        log_key(COLLECTED.services[0].log.name, key_of("dest2").public),
        log_key("v.example/" + "0" * 16, COLLECTED.witnesses[0].vkey.key),
        log_key("v.example/" + "0" * 16, COLLECTED.bistros[0].key),
        log_key("v.example/" + "0" * 16, COLLECTED.organiser),
    ],
)
def test_a_log_that_the_event_has_had_succeeds_none_whoever_signs_that(log):
    """Else what it proves after its own end would count for nobody, for ever."""
    again = replace(naming(2, successor(2)), verdicts=log, deadline_s=COLLECTED.deadline_s + 60)
    event = amended(COLLECTED, [naming(1, successor(1)), again])
    assert event.verdicts == successor(1)
    assert [each.log for each in event.ended_verdicts] == [COLLECTED.verdicts]
    # What else it says counts.
    assert event.deadline_s == COLLECTED.deadline_s + 60
    assert amended(event, [naming(3, successor(3))]).verdicts == successor(3)


@pytest.mark.parametrize(
    ("event", "log", "what"),
    [
        ("none", "fresh", "the event has none"),
        ("one", "same", "verdicts.log must be another key than the log of verdicts"),
        ("one", "same origin", "an origin that no log of the event has had"),
        ("one", "a witness's key", "must be another key than witnesses"),
    ],
)
def test_successor_is_a_log_that_the_event_has_not_had(event, log, what):
    event = {"none": EVENT, "one": COLLECTED}[event]
    named = {
        "fresh": successor(1),
        "same": COLLECTED.verdicts,
        "same origin": log_key(COLLECTED.verdicts.name, key_of("dest1").public),
        "a witness's key": log_key("v.example/" + "0" * 16, COLLECTED.witnesses[0].vkey.key),
    }[log]
    with pytest.raises(ProblemError, match=what):
        sign_amendment(event, {"verdicts": {"log": named.text}}, 1, ORGANISER)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"deadline": "2027-04-15T23:59:59-04:00"}, "deadline must be later than Thu 2027-04-15"),
        ({"deadline": "2027-04-14T23:59:59-04:00"}, "can only move to later"),
        ({"deadline": "2027-04-16T23:59:59"}, "must have an offset"),
        ({"deadline": "2027-05-16T23:59:59-04:00"}, "collect_until must lie after deadline"),
        ({"quorum": 2}, "quorum: unknown key"),
        ({"recipients": ["x"]}, "recipients: unknown key"),
        ({"revoked": ["x"]}, r"revoked\[0\] must be 64 lowercase hexadecimal digits"),
        ({"bistros": [BISTRO, BISTRO]}, r"bistros\[1\].key must be another key"),
    ],
)
def test_nothing_else_can_be_changed(changes, what):
    with pytest.raises(ProblemError, match=what):
        sign_amendment(EVENT, changes, 1, ORGANISER)


def test_only_the_organiser_amends_and_only_this_event():
    with pytest.raises(ProblemError, match="the key must be the organiser's"):
        sign_amendment(EVENT, A_DAY_LATER, 1, key_of("s0"))
    data = sign_amendment(EVENT, A_DAY_LATER, 1, ORGANISER)
    text = parse_note(data).text
    with pytest.raises(ProblemError, match="must be signed by the organiser"):
        read_amendment(signed(text, "organiser", key_of("s0")).data, EVENT)
    with pytest.raises(ProblemError, match="must be signed by the organiser"):
        read_amendment(data.replace(b"04-16", b"04-17"), EVENT)
    with pytest.raises(ProblemError, match="this amendment is for another event"):
        read_amendment(data, event_of(name="another"))
    # A second signature would make another entry of the same words.
    twice = parse_note(data).with_more(parse_note(data).signatures[0]).data
    with pytest.raises(ProblemError, match="alone"):
        read_amendment(twice, EVENT)


def test_many_signatures_are_counted_and_not_verified(monkeypatch):
    """Anybody could hand in a published note with its line sixty times."""
    text, _, line = sign_amendment(EVENT, A_DAY_LATER, 1, ORGANISER).decode().rpartition("\n\n")
    monkeypatch.setattr(amendments, "is_by", None)
    with pytest.raises(ProblemError, match=r"must be signed by the organiser, .*, alone"):
        read_amendment(f"{text}\n\n{line * 60}".encode(), EVENT)
