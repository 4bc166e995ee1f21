"""Lies that signatures show, each planted by hand; honest logs show none."""

from __future__ import annotations

from instances.events import event_of, key_of
from instances.logs import SmallLog

from datacollect.bistro.formats.event.amendments import read_amendment, sign_amendment
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.receipt.evidence import (
    ReadLog,
    broken_words,
    clocks_set_back,
    contradictions,
    two_heads,
)

EVENT = event_of()
A, B, C, D = (letter * 32 for letter in (b"a", b"b", b"c", b"d"))
LOG = SmallLog(EVENT, 0, [A, B, C])
TIMES = {f"w{i}.example": 100 + i for i in range(4)}
ORIGIN = LOG.origin


def read(log: SmallLog = LOG, *, is_final: bool = False) -> ReadLog:
    return ReadLog(EVENT.services[0].log, log.head(TIMES), log.node, is_final)


def test_beginnings_of_a_log_are_no_lies():
    assert two_heads(read(), [LOG.head(TIMES, size) for size in range(4)], EVENT) == []


def test_a_fork_names_the_service_and_those_who_signed_both():
    """w0 and w1 have signed the other head, w1 to w3 the one that is shown."""
    fork = SmallLog(EVENT, 0, [A, D]).head({"w0.example": 1, "w1.example": 1})
    shown = LOG.head({f"w{i}.example": 100 for i in (1, 2, 3)})
    log = ReadLog(EVENT.services[0].log, shown, LOG.node)
    lies = two_heads(log, [fork], EVENT)
    assert [lie.who for lie in lies] == [ORIGIN, "w1.example"]
    assert lies[0].text == "It has signed two logs that differ within 2."


def test_a_head_that_was_taken_back_is_named():
    longer = SmallLog(EVENT, 0, [A, B, C, D]).head(TIMES)
    assert [lie.text for lie in two_heads(read(), [longer], EVENT)] == [
        "It has signed 4 entries, but shows only 3."
    ]


def test_what_others_have_signed_is_no_evidence_against_a_service():
    fork = SmallLog(EVENT, 0, [A, D]).head(TIMES, key=key_of("s1"))
    assert two_heads(read(), [fork], EVENT) == []
    word = acknowledge(ORIGIN, D, 1, 100, key_of("s1"))
    assert broken_words(read(), [(D, word)]) == []


def test_a_broken_word_is_named():
    kept = acknowledge(ORIGIN, B, 1, 100, key_of("s0"))
    assert broken_words(read(is_final=True), [(B, kept)]) == []
    other = acknowledge(ORIGIN, D, 1, 100, key_of("s0"))
    assert [lie.text for lie in broken_words(read(), [(D, other)])] == [
        "It has acknowledged an entry 1, but logged another one there."
    ]
    # What is to come may come until the event is over.
    dropped = acknowledge(ORIGIN, D, 3, 100, key_of("s0"))
    assert broken_words(read(), [(D, dropped)]) == []
    assert [lie.text for lie in broken_words(read(is_final=True), [(D, dropped)])] == [
        "It has acknowledged entry 3, but never logged it."
    ]


def test_a_witness_whose_time_goes_back_is_named():
    heads = [LOG.head({"w0.example": 100, "w1.example": 100}, 2), LOG.head({"w1.example": 99}, 3)]
    assert [lie.who for lie in clocks_set_back(heads, EVENT)] == ["w1.example"]
    # In whichever order they are read; and to sign one size twice is no lie.
    assert clocks_set_back(heads[::-1], EVENT) == clocks_set_back(heads, EVENT)
    same = [LOG.head({"w0.example": 100}, 2), LOG.head({"w0.example": 90}, 2)]
    assert clocks_set_back(same, EVENT) == []


def test_an_organiser_who_says_two_things_is_named():
    one, two = (
        read_amendment(
            sign_amendment(
                EVENT, {"deadline": f"2027-04-1{day}T23:59:59-04:00"}, 1, key_of("organiser")
            ),
            EVENT,
        )
        for day in (6, 7)
    )
    assert contradictions([one, one]) == []
    assert [lie.who for lie in contradictions([one, two])] == ["organiser"]
