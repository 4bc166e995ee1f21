"""A witness's decisions, one for each rule of the protocol and of its clock."""

from __future__ import annotations

import random

import pytest
from instances.events import event_of, key_of
from instances.logs import SmallLog

from datacollect.bistro.formats.log.checkpoints import time_of, witness_key
from datacollect.bistro.formats.log.notes import parse_signatures
from datacollect.bistro.formats.log.tree import consistency_proof, leaf_hash
from datacollect.bistro.formats.log.witnessing import AddCheckpoint
from datacollect.bistro.now import Now
from datacollect.bistro.witness.core import Cosigned, Refused, Seen, WitnessCore
from datacollect.errors import ProblemError

EVENT = event_of()
LOG = SmallLog(EVENT, 0, [bytes([i]) * 32 for i in range(7)])
KEY = witness_key("w", key_of("w").public)
START = Now(50.0, 1_800_000_000.0)


def later(by_s: float, moved_s: float = 0.0, **more: bool) -> Now:
    """Return the instant so long after the start, the clock moved besides."""
    return Now(START.monotonic_s + by_s, START.unix_s + by_s + moved_s, **more)


def witness(seen: dict[str, Seen] | None = None, last_s: int = 0, now: Now = START) -> WitnessCore:
    return WitnessCore("w", key_of("w"), [EVENT.services[0].log], seen or {}, last_s, now)


def asked(size: int, old_size: int = 0, log: SmallLog = LOG, proof: list | None = None) -> bytes:
    proof = consistency_proof(old_size, size, log.node) if proof is None else proof
    return AddCheckpoint(old_size, tuple(proof), log.head({}, size)).data


def test_what_has_only_grown_is_signed_with_the_time():
    core = witness()
    for old_size, size in ((0, 3), (3, 7), (7, 7)):
        decision = core.add_checkpoint(asked(size, old_size), later(size))
        assert isinstance(decision, Cosigned)
        assert decision.origin == LOG.origin
        assert decision.seen == Seen(size, LOG.head({}, size).checkpoint.root)
        assert decision.time_s == START.unix_s + size
        (line,) = parse_signatures(decision.answer.decode(), "the answer")
        assert time_of(line, LOG.head({}, size).note.text, KEY) == decision.time_s


def test_who_asks_again_gets_the_same_answer_for_a_while():
    """Whoever reads a published checkpoint can ask: that must not cost a signature each time."""
    core = witness()
    first = core.add_checkpoint(asked(3), later(1))
    for by_s in (2, 10):
        assert core.add_checkpoint(asked(3, 3), later(by_s)) is first
    again = core.add_checkpoint(asked(3, 3), later(11))
    assert again.time_s == first.time_s + 10


def test_a_log_that_asks_too_often_is_told_and_others_are_served():
    core = WitnessCore("w", key_of("w"), [each.log for each in EVENT.services], {}, 0, START)
    long = SmallLog(EVENT, 0, [bytes([i]) * 32 for i in range(60)])
    other = SmallLog(EVENT, 1, [bytes([i]) * 32 for i in range(7)])
    for size in range(1, 51):
        assert isinstance(core.add_checkpoint(asked(size, size - 1, long), later(1)), Cosigned)
    assert core.add_checkpoint(asked(51, 50, long), later(1)).status == 429
    assert isinstance(core.add_checkpoint(asked(7, 0, other), later(1)), Cosigned)
    assert isinstance(core.add_checkpoint(asked(51, 50, long), later(1.2)), Cosigned)


def test_who_does_not_know_the_size_is_told():
    core = witness()
    core.add_checkpoint(asked(3), later(1))
    for old_size in (0, 2, 4):
        decision = core.add_checkpoint(asked(7, old_size), later(2))
        assert decision == Refused(409, b"3\n", "text/x.tlog.size")


def test_a_fork_is_refused_and_is_evidence():
    core = witness()
    core.add_checkpoint(asked(3), later(1))
    fork = SmallLog(EVENT, 0, [*LOG.entries[:2], b"x" * 32, *LOG.entries[3:]])
    decision = core.add_checkpoint(asked(3, 3, fork), later(2))
    assert (decision.status, decision.answer, decision.is_evidence) == (409, b"3\n", True)
    assert core.add_checkpoint(asked(7, 3, fork), later(2)).status == 422
    # What the log says that was signed goes on.
    assert isinstance(core.add_checkpoint(asked(7, 3), later(3)), Cosigned)


def test_a_rollback_is_refused():
    core = witness()
    core.add_checkpoint(asked(7), later(1))
    assert core.add_checkpoint(asked(3, 0), later(2)).answer == b"7\n"
    assert core.add_checkpoint(asked(3, 7, proof=[]), later(2)).status == 400


def test_strangers_are_refused():
    other = SmallLog(EVENT, 1, LOG.entries)
    assert witness().add_checkpoint(asked(3, log=other), later(1)).status == 404
    forged = AddCheckpoint(0, (), LOG.head({}, 3, key=key_of("s1"))).data
    assert witness().add_checkpoint(forged, later(1)).status == 403


def test_proofs_that_prove_nothing_are_refused():
    core = witness()
    assert core.add_checkpoint(asked(3, proof=[leaf_hash(b"")]), later(1)).status == 422
    core.add_checkpoint(asked(3), later(1))
    assert core.add_checkpoint(asked(7, 3, proof=[]), later(1)).status == 422


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"old 0\n",
        b"old 00\n\n" + LOG.head({}).note.data,
        b"old -1\n\n" + LOG.head({}).note.data,
        b"old 0\n" + LOG.head({}).note.data,
        b"size 0\n\n" + LOG.head({}).note.data,
        b"old 0\nAAAA\n\n" + LOG.head({}).note.data,
        b"old 0\n\n\n" + LOG.head({}).note.data,
        b"old \xff\n\n" + LOG.head({}).note.data,
        b"old 0\n\n" + b"x" * 40_000,
    ],
)
def test_what_is_no_request_is_refused(body):
    assert witness().add_checkpoint(body, later(1)).status == 400


def test_noise_never_stops_a_witness():
    random_of, core = random.Random(3), witness()
    whole = asked(7)
    for _ in range(2000):
        body = bytearray(whole)
        body[random_of.randrange(len(body))] = random_of.randrange(256)
        decision = core.add_checkpoint(bytes(body), later(1))
        if isinstance(decision, Cosigned):
            # Somebody's unknown signature, or none of the text: the log's own was whole.
            assert AddCheckpoint.parse(bytes(body)).signed.checkpoint == LOG.head({}).checkpoint
            core = witness()


def test_a_request_is_read_as_it_was_written():
    body = asked(7, 3)
    assert AddCheckpoint.parse(body).data == body
    assert body.startswith(b"old 3\n")
    with pytest.raises(ProblemError):
        AddCheckpoint.parse(body[:-1])


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (later(10, is_synchronised=False), b"not synchronised"),
        (later(10, moved_s=-1.5), b"has jumped by -1.5 s"),
        (later(10, moved_s=1.5), b"has jumped by 1.5 s"),
        (later(10, moved_s=1e9), b"has jumped by 1000000000.0 s"),
    ],
)
def test_no_time_is_signed_where_the_clock_is_in_doubt(now, why):
    core = witness()
    decision = core.add_checkpoint(asked(3), now)
    assert decision.status == 503
    assert why in decision.answer
    # Nothing was signed: who has set the clock right is served.
    assert isinstance(core.add_checkpoint(asked(3), later(11)), Cosigned)


@pytest.mark.parametrize(
    ("by_s", "moved_s", "is_good"),
    [
        # A thousandth is more than any clock drifts: 3.6 s in an hour.
        (3600, 4.5, True),
        (3600, 4.7, False),
        # Seconds, however long it runs: a year's thousandth would be most of a day.
        (86_400, 9.9, True),
        (86_400, 10.1, False),
        (365 * 86_400, -10.1, False),
        (365 * 86_400, 30_000, False),
    ],
)
def test_clocks_may_drift_by_seconds_but_not_jump(by_s, moved_s, is_good):
    decision = witness().add_checkpoint(asked(3), later(by_s, moved_s))
    assert isinstance(decision, Cosigned) == is_good


def test_times_never_go_back_over_a_start():
    last_s = int(START.unix_s) + 100
    core = witness(last_s=last_s)
    decision = core.add_checkpoint(asked(3), later(99))
    assert (decision.status, b"1 s behind what it has signed" in decision.answer) == (503, True)
    decision = core.add_checkpoint(asked(3), later(100))
    assert decision.time_s == last_s


def test_a_witness_goes_on_from_what_it_had_kept():
    kept = witness().add_checkpoint(asked(3), later(1))
    core = witness({kept.origin: kept.seen}, kept.time_s)
    assert core.add_checkpoint(asked(7, 0), later(2)).answer == b"3\n"
    assert isinstance(core.add_checkpoint(asked(7, 3), later(2)), Cosigned)
