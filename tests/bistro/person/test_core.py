"""Whom the client asks when, and what of their answers counts: no clock, no socket."""

from __future__ import annotations

import base64
import json
import random
import shutil
from dataclasses import replace

import pytest
from conftest import NO_OPENSSL
from instances.authorities import make_tsa
from instances.events import event_of, key_of, proof_of
from instances.how_many import many

from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.receipt import MOST_WORDS, Receipt, read_receipt
from datacollect.bistro.person.core import FINAL, LATE_S, MOST_OF_ONE_LOG, HandingIn
from datacollect.bistro.person.messages import (
    Answered,
    AskAuthority,
    AskProof,
    Commit,
    Save,
    Ticked,
)
from datacollect.net.http_asking import Answer

EVENT = event_of()
RECEIPT = Receipt(Commitment(EVENT.id, bytes(32), 3, bytes(32), bytes(32), bytes(32)))
OTHER = Receipt(Commitment(EVENT.id, bytes(31) + b"1", 3, bytes(32), bytes(32), bytes(32)))
TIME_S = EVENT.deadline_s - 100
PATIENCE_S = 60.0


def acknowledged(
    service: int, of: Receipt = RECEIPT, by: int | None = None, index: int = 0
) -> Answer:
    """Return a service's word, signed by its own key, or by that of another."""
    key = key_of(f"s{service if by is None else by}")
    log = EVENT.services[service].log.name
    word = acknowledge(log, of.entry, index, TIME_S, key)
    signature = base64.b64encode(word.signature).decode()
    tree = {"index": index, "time_s": TIME_S, "signature": signature}
    return Answer(200, json.dumps(tree).encode())


def proved(service: int, of: Receipt = RECEIPT, n_witnesses: int = 3) -> Answer:
    """Return a proof: the entry stands alone in the log."""
    log = EVENT.services[service].log.name
    return Answer(200, proof_of(of.entry, log, TIME_S, n_witnesses, f"s{service}").data)


class Clock:
    """A core, and who tells it the time."""

    def __init__(self, receipt: Receipt = RECEIPT, event=EVENT) -> None:
        self.now_s = 0.0
        self.core = HandingIn(event, receipt, range(len(event.services)), 0.0, PATIENCE_S)

    def tick(self) -> list:
        self.now_s = max(self.now_s, self.core.wake_s)
        return self.core.handle(Ticked(self.now_s))

    def answer(self, to, answer: Answer | None, why: str = "no answer") -> list:
        return self.core.handle(Answered(self.now_s, to, answer, "" if answer else why))


def test_acknowledged_and_proved_by_the_first():
    clock = Clock()
    assert clock.tick() == [Commit(0)]
    assert clock.answer(Commit(0), acknowledged(0)) == [Save()]
    assert clock.core.state == "acknowledged"
    assert clock.tick() == [AskProof(0)]
    assert clock.answer(AskProof(0), Answer(202, b"", 1.0)) == []
    assert clock.tick() == [AskProof(0)]
    assert clock.answer(AskProof(0), proved(0)) == [Save()]
    assert (clock.core.state, clock.core.time_s) == ("proved", TIME_S + 2)
    assert clock.core.wake_s is None
    assert read_receipt(clock.core.receipt.data) == clock.core.receipt


def test_next_service_is_asked_at_once_where_one_fails_and_soon_where_one_is_silent():
    clock = Clock()
    clock.tick()
    assert clock.answer(Commit(0), None) == [Commit(1)]
    silent = Clock()
    silent.tick()
    assert silent.tick() == [Commit(1)]
    assert silent.now_s == 3.0


@pytest.mark.parametrize(
    "answer",
    [
        acknowledged(0, by=1),
        acknowledged(0, of=OTHER),
        acknowledged(1),
        Answer(200, b""),
        Answer(200, b"[]"),
        Answer(200, b'{"index": -1, "time_s": 0, "signature": ""}'),
        Answer(200, b"\xff\xfe\x00"),
        Answer(200, b"[" * 60_000),
        Answer(301, b""),
        Answer(500, b"\x1b[31m"),
        Answer(204, b""),
    ],
)
def test_word_that_does_not_count_is_not_kept_and_the_next_is_asked(answer):
    clock = Clock()
    clock.tick()
    assert clock.answer(Commit(0), answer) == [Commit(1)]
    assert clock.core.receipt == RECEIPT
    [(_, _, why)] = clock.core.refusals
    assert why
    assert why.isprintable()


@pytest.mark.parametrize(
    "answer",
    [
        proved(1),
        proved(0, n_witnesses=2),
        proved(0, of=OTHER),
        Answer(200, proved(0).body[:-9]),
        Answer(200, b""),
        Answer(500, b""),
        None,
    ],
)
def test_proof_that_does_not_count_is_not_kept_and_another_service_is_tried(answer):
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), acknowledged(0))
    clock.tick()
    assert Save() not in clock.answer(AskProof(0), answer)
    assert clock.core.receipt.proofs == ()
    asked = []
    while Commit(1) not in asked:
        asked += clock.tick()
        if AskProof(0) in asked:
            clock.answer(AskProof(0), answer)
    assert clock.now_s <= 5.0


def test_receipt_stays_short_where_a_service_gives_its_word_and_breaks_it_again_and_again():
    event = replace(EVENT, services=EVENT.services[:1])
    clock = Clock(event=event)
    todo = clock.tick()
    for index in range(20):
        while Commit(0) not in todo:
            todo = clock.tick()
        todo = clock.answer(Commit(0), acknowledged(0, index=index))
        while AskProof(0) not in todo:
            todo = clock.tick()
        todo = clock.answer(AskProof(0), Answer(404, b""))
        clock.core._end_s = clock.now_s + PATIENCE_S
    kept = [word.index for word in clock.core.receipt.acknowledgements]
    assert kept == [0, 1, 2, 19]
    # Another log's words count apart.
    other = replace(clock.core.receipt.acknowledgements[0], log="other")
    assert len(clock.core.receipt.with_word(other).acknowledgements) == MOST_WORDS + 1


def test_of_many_proofs_of_one_log_only_those_that_prove_more_are_kept_beyond_the_first():
    log = EVENT.services[0].log.name
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), acknowledged(0))

    def prove(time_s: int) -> None:
        data = proof_of(RECEIPT.entry, log, time_s, 3, "s0").data
        clock.core.handle(Answered(clock.now_s, AskProof(0), Answer(200, data)))

    late_s = EVENT.latest_s + 1000
    for n in range(20):
        prove(late_s + n)
    assert len(clock.core.receipt.proofs) == MOST_OF_ONE_LOG
    prove(late_s - 100)
    assert len(clock.core.receipt.proofs) == MOST_OF_ONE_LOG + 1
    assert clock.core.time_s == late_s - 98


def test_service_that_has_forgotten_what_it_acknowledged_is_handed_it_again_and_its_word_kept():
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), acknowledged(0))
    clock.tick()
    assert clock.answer(AskProof(0), Answer(404, b"")) == [Commit(1)]
    assert len(clock.core.receipt.acknowledgements) == 1
    assert not clock.core.is_acknowledged


def test_service_that_is_busy_is_asked_again_when_it_wants_to_be():
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), Answer(429, b"too many", 7.0))
    clock.answer(Commit(1), Answer(403, b"no"))
    while (found := clock.tick()) == []:
        pass
    assert (found, clock.now_s) == ([Commit(0)], 7.0)


@pytest.mark.parametrize("status", FINAL)
def test_final_refusal_of_all_ends_it_at_once(status):
    clock = Clock()
    clock.tick()
    assert clock.answer(Commit(0), Answer(status, b"no")) == [Commit(1)]
    assert clock.answer(Commit(1), Answer(status, b"no")) == []
    assert (clock.core.state, clock.core.wake_s) == ("refused", None)


def test_silence_of_all_ends_with_patience_and_asks_less_and_less():
    clock = Clock()
    n_asked = 0
    while clock.core.wake_s is not None:
        asked = clock.tick()
        while asked:
            n_asked += len(asked)
            asked = [more for to in asked for more in clock.answer(to, None)]
    assert (clock.now_s, clock.core.state) == (PATIENCE_S, "unanswered")
    assert 8 <= n_asked <= 24


def test_another_start_goes_on_with_the_proof_and_hands_nothing_in_again():
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), acknowledged(0))
    again = Clock(read_receipt(clock.core.receipt.data))
    assert again.tick() == [AskProof(0)]
    again.answer(AskProof(0), proved(0))
    done = Clock(again.core.receipt)
    assert (done.tick(), done.core.wake_s) == ([], None)


def late(n_witnesses: int, first_s: int) -> Answer:
    """Return a proof of the first log; each witness signs a second later."""
    proof = proof_of(RECEIPT.entry, EVENT.services[0].log.name, first_s, n_witnesses)
    return Answer(200, proof.data)


def test_late_proof_is_asked_for_again_while_a_witness_is_missing():
    """w0 to w2 make it a second late; the fourth, whose clock is right, may make it in time."""
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), acknowledged(0))
    assert clock.tick() == [AskProof(0)]
    assert clock.answer(AskProof(0), late(3, EVENT.latest_s - 1)) == [Save()]
    assert clock.core.time_s == EVENT.latest_s + 1
    assert clock.tick() == [AskProof(0)]
    # Nothing new: nothing to save.
    assert clock.answer(AskProof(0), late(3, EVENT.latest_s - 1)) == []
    assert clock.tick() == [AskProof(0)]
    assert clock.answer(AskProof(0), late(4, EVENT.latest_s - 2)) == [Save()]
    assert (clock.core.time_s, clock.core.wake_s) == (EVENT.latest_s, None)


def test_late_proof_that_all_witnesses_have_signed_ends_it():
    clock = Clock()
    clock.tick()
    clock.answer(Commit(0), acknowledged(0))
    clock.tick()
    assert clock.answer(AskProof(0), late(4, EVENT.latest_s)) == [Save()]
    assert clock.core.wake_s is None


def test_another_start_asks_again_for_a_late_proof_for_some_seconds():
    first = Clock()
    first.tick()
    first.answer(Commit(0), acknowledged(0))
    first.tick()
    first.answer(AskProof(0), late(3, EVENT.latest_s))
    # Its log holds it, whether or not the service's word is there, too.
    clock, asked = Clock(replace(first.core.receipt, acknowledgements=())), []
    while clock.core.wake_s is not None:
        for to in clock.tick():
            asked.append(to)
            clock.answer(to, late(3, EVENT.latest_s))
    assert clock.now_s == LATE_S
    assert set(asked) == {AskProof(0)}
    assert len(asked) == 10


def test_outside_authorities_are_asked_once_all_services_have_failed():
    authorities = [
        {"url": f"https://a{i}.example", "certificate": certificate}
        for i, certificate in enumerate(PEMS)
    ]
    event = event_of(authorities=authorities)
    receipt = Receipt(Commitment(event.id, bytes(32), 3, bytes(32), bytes(32), bytes(32)))
    clock = Clock(receipt, event)
    clock.tick()
    assert clock.answer(Commit(0), None) == [Commit(1)]
    assert clock.answer(Commit(1), None) == [AskAuthority(0), AskAuthority(1)]
    clock.answer(AskAuthority(0), Answer(200, b"no token"))
    assert clock.core.receipt.tokens == ()


@pytest.mark.skipif(shutil.which("openssl") is None, reason=NO_OPENSSL)
def test_authority_whose_token_is_there_is_not_asked_again(tmp_path):
    """Each start would add a token, until the receipt held too many to be read."""
    two = [make_tsa(tmp_path / name, name) for name in ("one", "two")]
    authorities = [
        {"url": each.authority.url, "certificate": each.authority.certificate} for each in two
    ]
    event = event_of(authorities=authorities)
    receipt = Receipt(Commitment(event.id, bytes(32), 3, bytes(32), bytes(32), bytes(32)))
    clock = Clock(receipt.with_more(tokens=[two[0].token(receipt.entry)]), event)
    clock.tick()
    assert clock.answer(Commit(0), None) == [Commit(1)]
    assert clock.answer(Commit(1), None) == [AskAuthority(1)]


def certificates() -> list[str]:
    import trustme

    return [trustme.CA().cert_pem.bytes().decode() for _ in range(2)]


PEMS = certificates()


# Noise: seeded, and never the same as a good answer.


def mutated(answer: Answer, chance: random.Random) -> Answer:
    body = bytearray(answer.body)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(4):
            case 0:
                del body[at : at + chance.randint(1, 40)]
            case 1:
                body[at:at] = chance.randbytes(chance.randint(1, 9))
            case 2 if at < len(body):
                body[at] ^= 1 << chance.randrange(8)
            case _:
                body[at:at] = body[: chance.randint(1, 60)]
    status = chance.choice([200, 200, 200, 202, 404, 500, answer.status])
    retry_s = chance.choice([None, 0.0, 5.0, 3600.0])
    return Answer(status, bytes(body), retry_s)


def one_noisy_start(seed: int) -> None:
    """Hand in to services that answer noise; what is kept must count, or be nothing."""
    chance = random.Random(seed)
    clock = Clock()
    while clock.core.wake_s is not None:
        asked = clock.tick()
        while asked:
            to = asked.pop()
            if isinstance(to, Save):
                continue
            good = acknowledged(to.service) if isinstance(to, Commit) else proved(to.service)
            kind = chance.random()
            answer = None if kind < 0.1 else good if kind < 0.2 else mutated(good, chance)
            asked += clock.answer(to, answer)
    for word in clock.core.receipt.acknowledgements:
        assert word.is_by(EVENT.log_of(word.log), RECEIPT.entry)
    for proof in clock.core.receipt.proofs:
        assert proof.includes(RECEIPT.entry)
    assert read_receipt(clock.core.receipt.data) == clock.core.receipt
    assert (clock.core.state == "proved") == bool(clock.core.receipt.proofs)


def test_noise_is_never_kept():
    for seed in range(100):
        one_noisy_start(seed)


@pytest.mark.slow
def test_noise_is_never_kept_whatever_it_is():
    for seed in range(100, 100 + many(12_000)):
        one_noisy_start(seed)
