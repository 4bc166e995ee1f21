"""Pushing what is sealed: a core's decisions by hand, and a real `upload` to a real bistro."""

from __future__ import annotations

import json

import pytest
from instances.bistros import bistro_event, commitment_to
from instances.events import key_of

from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.person.pushing import (
    LEAST_GAIN_BYTES,
    MORE_BYTES,
    MOST_FAILURES,
    MOST_WAIT_S,
    Begin,
    End,
    Look,
    Payload,
    Pushing,
    Send,
)
from datacollect.net.http_asking import Answer

DATA = b"x" * 1000


@pytest.fixture
def event(tmp_path):
    return bistro_event(tmp_path)


@pytest.fixture
def receipt(event):
    return Receipt(commitment_to(event, DATA))


def pushing(event, receipt, order):
    return Pushing(event, receipt, order, Payload.committed(receipt.commitment))


def token(receipt, name="north", signer=None, sha256=None):
    commitment = receipt.commitment
    word = BistroReceipt(
        commitment.event,
        name,
        commitment.entry,
        commitment.size,
        sha256 or commitment.ciphertext_sha256,
        False,
        0,
        77,
    )
    return word.signed(key_of(signer or name))


def held(receipt, **claims):
    return Answer(201, b"", None, {"datacollect-receipt": token(receipt, **claims)})


def at(offset, status=204, path="/tus/a"):
    return Answer(status, b"", None, {"location": path, "upload-offset": str(offset)})


def test_small_file_goes_with_the_first_request(event, receipt):
    core = pushing(event, receipt, [0, 1])
    assert core.step == Begin(0, len(DATA))
    core.take(held(receipt))
    assert (core.step, core.holder) == (None, ("north", 77))
    # Started again there is nothing to do.
    assert pushing(event, core.receipt, [0, 1]).step is None


def test_after_an_interruption_the_same_bistro_says_how_far_it_is(event, receipt):
    core = pushing(event, receipt, [0, 1])
    core.take(at(0, 201))
    assert core.step == Send(0, "/tus/a", 0)
    core.take(None, "cut")
    assert core.step == Look(0, "/tus/a")
    assert core.wait_s > 0
    core.take(at(400, 200))
    assert (core.step, core.wait_s) == (Send(0, "/tus/a", 400), 0)


def test_server_need_not_say_that_nothing_is_there_yet(event, receipt):
    core = pushing(event, receipt, [0])
    core.take(Answer(201, b"", None, {"location": "https://north.example/tus/a"}))
    assert core.step == Send(0, "/tus/a", 0)


def test_silent_or_full_bistro_is_left_for_the_next(event, receipt):
    core = pushing(event, receipt, [1, 0])
    for _ in range(MOST_FAILURES):
        assert core.step == Begin(1, len(DATA))
        core.take(None, "silent")
    assert core.step == Begin(0, len(DATA))
    core.take(Answer(507, b'{"why": "no room", "bistros": ["south"]}'))
    assert (core.step, core.holder) == (None, None)
    assert core.troubles == ["south: silent", "north: (507): no room"]


def test_only_the_bistros_own_word_on_these_bytes_counts(event, receipt):
    for claims in ({"signer": "south"}, {"name": "south"}, {"sha256": bytes(32)}):
        core = pushing(event, receipt, [0])
        core.take(held(receipt, **claims))
        assert (core.holder, core.step) == (None, None)
        assert core.troubles == ["north: its receipt does not count"]


def gone(step):
    return Answer(404, b"")


def elsewhere(step):
    return Answer(409, b"")


def redirected(step):
    return Answer(307, b"", None, {"location": "/tus/a"})


def put_off(step):
    return Answer(429, b"", 5.0)


def failing(step):
    return Answer(503, b"", 60.0)


def silent(step):
    return None


def at_zero(step):
    return at(0)


def back_and_forth(step):
    """Where it was sent from, and less, in turn."""
    return at(0 if step.offset else 10)


def byte_by_byte(step):
    return at(step.offset + 1)


@pytest.mark.parametrize("size", [1000, 10**9])
@pytest.mark.parametrize(
    "answer_to_send",
    [gone, elsewhere, redirected, put_off, failing, silent, at_zero, back_and_forth, byte_by_byte],
)
def test_bistro_that_takes_nothing_is_given_up_for_the_next_whatever_it_answers(
    event, receipt, answer_to_send, size
):
    core = Pushing(event, receipt, [0, 1], Payload(size, bytes(32)))
    n_steps, waited_s, offset = 0, 0.0, 0
    while core.step is not None and core.step.bistro == 0:
        waited_s += core.wait_s
        if isinstance(core.step, Send):
            answer = answer_to_send(core.step)
            if answer is not None and "upload-offset" in answer.headers:
                offset = int(answer.headers["upload-offset"])
        else:
            answer = at(offset, 201 if isinstance(core.step, Begin) else 200)
        core.take(answer, sent_bytes=1)
        n_steps += 1
        assert n_steps < 20
    assert core.step is not None
    assert waited_s <= MOST_FAILURES * MOST_WAIT_S
    assert len(core.troubles) == 1


def test_bistro_that_takes_a_little_each_time_costs_no_more_than_all_twice(event, receipt):
    """By its word it has enough more each time; what it is sent has an end."""
    size = 10**9
    core = Pushing(event, receipt, [0, 1], Payload(size, bytes(32)))
    core.take(at(0, 201))
    sent_bytes = 0
    while isinstance(core.step, Send):
        sent_bytes += size - core.step.offset
        core.take(at(core.step.offset + LEAST_GAIN_BYTES), sent_bytes=size - core.step.offset)
    assert core.step.bistro == 1
    assert sent_bytes <= 3 * size + MORE_BYTES


def test_connection_that_is_cut_often_and_takes_some_each_time_comes_to_its_end(event, receipt):
    size = 100 * LEAST_GAIN_BYTES
    core = Pushing(event, receipt, [0, 1], Payload(size, bytes(32)))
    core.take(at(0, 201))
    for n in range(1, 100):
        core.take(None, "cut", LEAST_GAIN_BYTES)
        core.take(at(n * LEAST_GAIN_BYTES, 200))
        assert core.step == Send(0, "/tus/a", n * LEAST_GAIN_BYTES)


def test_bistro_that_wants_to_be_left_alone_is_waited_for_within_limits(event, receipt):
    core = pushing(event, receipt, [0, 1])
    core.take(Answer(429, b"", 7.0))
    assert (core.step, core.wait_s) == (Begin(0, len(DATA)), 7.0)
    core.take(Answer(429, b"", MOST_WAIT_S + 1))
    assert core.step == Begin(1, len(DATA))
    assert "asks to try again in 61 s" in core.troubles[0]


def test_forgotten_upload_begins_again(event, receipt):
    core = pushing(event, receipt, [0])
    core.take(at(0, 201))
    core.take(Answer(404, json.dumps({"why": "gone"}).encode()))
    assert core.step == Begin(0, 0)


ANEW = Payload(1016, b"a" * 32, sealed_anew=True)


def word(receipt, *, size=1016, sha256=b"a" * 32, sealed_anew=True):
    commitment = receipt.commitment
    made = BistroReceipt(
        commitment.event, "north", commitment.entry, size, sha256, sealed_anew, 0, 78
    )
    return Answer(201, b"", None, {"datacollect-receipt": made.signed(key_of("north"))})


def test_a_word_on_what_was_sealed_anew_counts_for_that_alone(event, receipt):
    core = Pushing(event, receipt, [0], ANEW)
    core.take(word(receipt))
    assert core.holder == ("north", 78)
    # It says nothing of what was committed to, nor the other way round.
    assert pushing(event, core.receipt, [0]).holder is None
    first = pushing(event, receipt, [0])
    first.take(held(receipt))
    assert Pushing(event, first.receipt, [0], ANEW).holder is None


@pytest.mark.parametrize("claims", [{"size": 1000}, {"sha256": b"b" * 32}, {"sealed_anew": False}])
def test_a_word_on_other_bytes_than_were_sealed_anew_does_not_count(event, receipt, claims):
    core = Pushing(event, receipt, [0], ANEW)
    core.take(word(receipt, **claims))
    assert (core.holder, core.step) == (None, None)
    assert core.troubles == ["north: its receipt does not count"]


def test_what_was_sealed_anew_is_never_put_behind_another_seal_of_the_same_file(event, receipt):
    """Two seals of a file are equally long: put together they would open for nobody."""
    core = Pushing(event, receipt, [0], Payload(1016, b"a" * 32, sealed_anew=True, is_new=True))
    core.take(at(400, 201))
    assert core.step == End(0, "/tus/a")
    core.take(None, "cut")
    assert core.step == End(0, "/tus/a")
    core.take(Answer(204, b""))
    assert core.step == Begin(0, 1016)
    core.take(word(receipt))
    assert core.holder == ("north", 78)
    # Begun by an earlier start with the same bytes, it is gone on with.
    later = Pushing(event, receipt, [0], ANEW)
    later.take(at(400, 201))
    assert later.step == Send(0, "/tus/a", 400)


def test_a_bistro_that_does_not_forget_another_seal_is_given_up(event, receipt):
    core = Pushing(event, receipt, [0], Payload(1016, b"a" * 32, sealed_anew=True, is_new=True))
    n_steps = 0
    while core.step is not None:
        core.take(at(400, 201) if isinstance(core.step, Begin) else Answer(204, b""))
        n_steps += 1
        assert n_steps < 20
    assert core.holder is None


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (b'{"bistros": ["b3", "b1"]}', [1, 3, 2, 4]),
        (b'{"why": "full", "bistros": ["elsewhere", 7, null, "b4"]}', [4, 1, 2, 3]),
        (b'{"bistros": 7}', [1, 2, 3, 4]),
        (b'{"bistros": [["b4"]]}', [1, 2, 3, 4]),
        (b"noise", [1, 2, 3, 4]),
    ],
)
def test_bistros_that_a_full_one_names_are_tried_next(tmp_path, body, after):
    """Those of the event alone, in the person's own order; whoever was tried is not tried again."""
    rows = [
        {
            "name": f"b{i}",
            "url": f"https://b{i}.example",
            "key": key_of(f"b{i}").public,
            "fingerprint": "sha256:" + "0" * 64,
        }
        for i in range(5)
    ]
    event = bistro_event(tmp_path, bistros=rows)
    receipt = Receipt(commitment_to(event, DATA))
    core = pushing(event, receipt, [0, 1, 2, 3, 4])
    core.take(Answer(507, body))
    tried = []
    while core.step is not None:
        tried.append(core.step.bistro)
        core.take(Answer(403, b"no"))
    assert tried == after
