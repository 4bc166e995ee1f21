"""What receipts prove: small ones, whose times and quorum fit in the head."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from functools import cache

import pytest
from instances.events import (
    DEADLINE_S,
    event_bytes,
    event_of,
    key_of,
    marked_by,
    owner_of,
    proof_of,
)
from instances.logs import SmallLog

from datacollect.bistro.formats.custody.collected import collected_text
from datacollect.bistro.formats.custody.verdicts import Verdict
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import cosign, log_key
from datacollect.bistro.formats.log.content import content_digest
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.receipt import (
    PublishedAmendment,
    Receipt,
    amendments_data,
    read_amendments,
    read_receipt,
)
from datacollect.bistro.formats.receipt.verify import Content, verify
from datacollect.errors import ProblemError

EVENT_FILE = event_bytes()
EVENT = event_of()
SECRET, HEADER, FILE, SEALED = bytes(range(32)), b"{}", b"form", b"sealed form"
COMMITMENT = Commitment(
    EVENT.id,
    bytes(32),
    len(SEALED),
    hashlib.sha256(SEALED).digest(),
    content_digest(SECRET, HEADER, [FILE]),
    owner_of("form"),
)
ENTRY = COMMITMENT.entry
LATEST_S = DEADLINE_S + 10


def times_of(*times_s: int | None) -> dict[str, int]:
    """Return by witness w0, w1 … when it signed; None: it did not."""
    return {f"w{i}.example": t for i, t in enumerate(times_s) if t is not None}


def log_with(*entries: bytes, which: int = 0) -> SmallLog:
    return SmallLog(EVENT, which, list(entries))


def receipt_at(*times_s: int | None, which: int = 0) -> Receipt:
    """Return a receipt of a log of three entries, ours the second."""
    log = log_with(b"a" * 32, ENTRY, b"b" * 32, which=which)
    return Receipt(COMMITMENT, proofs=(log.proof(ENTRY, times_of(*times_s)),))


@pytest.mark.parametrize(
    ("times_s", "time_s", "outcome"),
    [
        # All honest: the third of four.
        ((100, 101, 102, 103), 102, "in time"),
        # To the second: deadline and lag, and one more.
        ((LATEST_S - 1,) * 4, LATEST_S - 1, "in time"),
        ((LATEST_S,) * 4, LATEST_S, "in time"),
        ((LATEST_S + 1,) * 4, LATEST_S + 1, "late"),
        # Two backdate: an honest one still decides.
        ((0, 0, LATEST_S + 1, LATEST_S + 1), LATEST_S + 1, "late"),
        # Three backdate: that is what 3 of 4 does not withstand.
        ((0, 0, 0, LATEST_S + 1), 0, "in time"),
        # One post-dates, or is dead.
        ((100, 101, 102, 2**40), 102, "in time"),
        ((100, 101, 102, None), 102, "in time"),
        # Two are dead.
        ((100, 101, None, None), None, "not proved"),
    ],
)
def test_the_time_is_the_third_smallest_of_four(times_s, time_s, outcome):
    verdict = verify(EVENT_FILE, receipt_at(*times_s), amendments=[])
    assert (verdict.time_s, verdict.outcome) == (time_s, outcome)
    assert verdict.is_in_time == (outcome == "in time")
    assert verdict.covers == "some bytes"


def test_the_least_time_of_all_logs_counts():
    late, early = receipt_at(*[LATEST_S + 5] * 4), receipt_at(*[LATEST_S] * 4, which=1)
    both = late.with_more(proofs=early.proofs)
    assert verify(EVENT_FILE, both).time_s == LATEST_S
    assert both.with_more(proofs=early.proofs) == both


def test_one_key_counts_once_however_often_it_signs():
    """Two witnesses, one of them three times, once under another name: two keys."""
    receipt = receipt_at(100, 101)
    signed = receipt.proofs[0].signed
    again = [cosign(signed.note.text, 99 - i, "w0.example", key_of("w0.example")) for i in (0, 1)]
    note = signed.note.with_more(
        *again, cosign(signed.note.text, 99, "w9.example", key_of("w0.example"))
    )
    proof = replace(receipt.proofs[0], signed=replace(signed, note=note))
    verdict = verify(EVENT_FILE, Receipt(COMMITMENT, proofs=(proof,)))
    assert verdict.outcome == "not proved"
    assert "Proof 1 does not count: 2 witnesses have signed it, and 3 make a time." in (
        verdict.reasons
    )


def test_what_is_proved_is_said_by_what_was_given():
    receipt = receipt_at(100, 101, 102)
    assert any("for some bytes" in reason for reason in verify(EVENT_FILE, receipt).reasons)
    verdict = verify(EVENT_FILE, receipt, ciphertext=[SEALED[:3], SEALED[3:]])
    assert (verdict.outcome, verdict.covers) == ("in time", "the sealed file")
    verdict = verify(EVENT_FILE, receipt, content=Content(SECRET, HEADER, [FILE]))
    assert (verdict.outcome, verdict.covers) == ("in time", "the file")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"ciphertext": [SEALED + b"!"]}, "The sealed file is not the one"),
        ({"ciphertext": [b"another one"]}, "The sealed file is not the one"),
        ({"content": Content(SECRET, HEADER, [b"from"])}, "was changed since"),
        ({"content": Content(bytes(32), HEADER, [FILE])}, "was changed since"),
        ({"content": Content(SECRET, b"{ }", [FILE])}, "was changed since"),
    ],
)
def test_another_file_is_not_proved(given, why):
    verdict = verify(EVENT_FILE, receipt_at(100, 101, 102), **given)
    assert verdict.outcome == "not proved"
    assert any(why in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("proof", "why"),
    [
        (log_with(b"a" * 32).proof(b"a" * 32, times_of(1, 2, 3)), "of another entry"),
        (
            replace(
                log_with(ENTRY).proof(ENTRY, times_of(1, 2, 3)),
                signed=log_with(ENTRY).head(times_of(1, 2, 3), key=key_of("w0.example")),
            ),
            "not signed by the log's key",
        ),
        (
            # Right at another size of the log.
            replace(
                log_with(b"a" * 32, ENTRY).proof(ENTRY, times_of(1, 2, 3)),
                signed=log_with(b"a" * 32, ENTRY, b"b" * 32).head(times_of(1, 2, 3)),
            ),
            "of another entry",
        ),
    ],
)
def test_other_proofs_do_not_count(proof, why):
    verdict = verify(EVENT_FILE, Receipt(COMMITMENT, proofs=(proof,)))
    assert verdict.outcome == "not proved"
    assert any(why in reason for reason in verdict.reasons)


def test_a_log_of_nobody_does_not_count():
    other = event_of(services=[{"url": "https://else.example", "key": key_of("s0").public}])
    proof = SmallLog(other, 0, [ENTRY]).proof(ENTRY, times_of(1, 2, 3))
    verdict = verify(EVENT_FILE, Receipt(COMMITMENT, proofs=(proof,)))
    assert "Proof 1 does not count: it is of a log that is none of the event's." in verdict.reasons


def test_the_word_of_a_service_alone_proves_nothing():
    origin = EVENT.services[0].log.name
    good = acknowledge(origin, ENTRY, 0, DEADLINE_S, key_of("s0"))
    forged = acknowledge(origin, ENTRY, 0, DEADLINE_S, key_of("s1"))
    verdict = verify(EVENT_FILE, Receipt(COMMITMENT, acknowledgements=(good, forged)))
    assert verdict.outcome == "not proved"
    assert verdict.reasons[2:] == (
        "Handed in at Thu 2027-04-15 23:59:59 -04:00, according to the service alone.",
        "An acknowledgement does not count: no service of the event gave it.",
        "Nothing here proves a time: ask the services for proofs again.",
    )


def test_a_receipt_of_another_event_is_refused():
    with pytest.raises(ProblemError, match="another event, or another version of its file"):
        verify(event_bytes(name="another"), receipt_at(1, 2, 3))
    with pytest.raises(ProblemError, match="line ends were changed"):
        verify(EVENT_FILE.replace(b"\n", b"\r\n"), receipt_at(1, 2, 3))


def amendment(deadline: str, number: int = 1) -> bytes:
    return sign_amendment(EVENT, {"deadline": deadline}, number, key_of("organiser"))


def test_an_extension_counts_once_a_log_has_published_it():
    """A receipt an hour late; an extension by a day, logged after the deadline."""
    receipt = receipt_at(*[DEADLINE_S + 3600] * 4)
    note = amendment("2027-04-16T23:59:59-04:00")
    log = log_with(ENTRY, note)
    times = times_of(*[DEADLINE_S + 7200] * 3)
    published = PublishedAmendment(note, (log.proof(note, times),))
    verdict = verify(EVENT_FILE, receipt, amendments=[published, published])
    assert (verdict.outcome, verdict.deadline_s) == ("in time", DEADLINE_S + 86_400)
    # Not before: two witnesses are no quorum, and a note in a drawer is no extension.
    alone = PublishedAmendment(note, (log.proof(note, times_of(1, 2)),))
    for unpublished in (alone, PublishedAmendment(note)):
        verdict = verify(EVENT_FILE, receipt, amendments=[unpublished])
        assert verdict.outcome == "late"
        assert any("it is not published" in reason for reason in verdict.reasons)
    verdict = verify(EVENT_FILE, receipt)
    assert verdict.outcome == "late"
    assert "No amendments were given: a later deadline would not be seen." in verdict.reasons


def test_what_a_receipt_proves_of_an_event_that_was_cancelled_stays_proved():
    note = sign_amendment(EVENT, {"cancelled": "no room"}, 1, key_of("organiser"))
    proof = log_with(note).proof(note, times_of(1, 2, 3))
    verdict = verify(
        EVENT_FILE, receipt_at(1, 2, 3), amendments=[PublishedAmendment(note, (proof,))]
    )
    assert verdict.is_in_time
    assert "The event was cancelled: no room." in verdict.reasons


def test_a_missing_amendment_is_named():
    note = amendment("2027-04-16T23:59:59-04:00", number=3)
    proof = log_with(note).proof(note, times_of(1, 2, 3))
    verdict = verify(
        EVENT_FILE, receipt_at(1, 2, 3), amendments=[PublishedAmendment(note, (proof,))]
    )
    assert {"Amendment 1 is missing.", "Amendment 2 is missing."} <= {*verdict.reasons}


def test_files_of_amendments_are_read_as_they_were_written():
    note = amendment("2027-04-16T23:59:59-04:00")
    published = [PublishedAmendment(note, (log_with(note).proof(note, times_of(1, 2, 3)),))]
    assert read_amendments(amendments_data(EVENT.id, published), EVENT.id) == published
    with pytest.raises(ProblemError, match="take the file of this event"):
        read_amendments(amendments_data(bytes(32), published), EVENT.id)


@cache
def whole_receipt() -> Receipt:
    origin = EVENT.services[0].log.name
    word = acknowledge(origin, ENTRY, 1, DEADLINE_S, key_of("s0"))
    more = receipt_at(1, 2, 3).with_more([word], tokens=[b"token"])
    return replace(more, bistro_receipts=("v4.public.x",), collected="yes")


def test_a_receipt_is_read_as_it_was_written():
    data = whole_receipt().data
    assert read_receipt(data) == whole_receipt()
    tree = json.loads(data)
    assert tree["format"] == "datacollect-receipt/2"
    assert tree["owner"] == owner_of("form").hex()
    assert tree["ciphertext_sha256"] == hashlib.sha256(SEALED).hexdigest()
    assert read_receipt(Receipt(COMMITMENT).data) == Receipt(COMMITMENT)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"salt": "00"}, "salt must be 64 lowercase hexadecimal digits"),
        ({"size": -1}, "size must be a whole number of bytes"),
        ({"size": "11 B"}, "size must be a whole number of bytes, in digits alone"),
        ({"size": 11.0}, "size must be a whole number of bytes, in digits alone"),
        ({"sise": 1}, "sise: unknown key; did you mean 'size'"),
        ({"proofs": ["x"]}, r"proofs\[0\] must begin with c2sp.org/tlog-proof@v1"),
        ({"proofs": [""] * 65}, "proofs must be a list of at most 64 proofs"),
        ({"tokens": ["A"]}, r"tokens\[0\] must be at most 65536 bytes in Base64"),
        ({"acknowledgements": [{"log": "a"}]}, "keys index, time_s, signature are missing"),
        ({"format": "datacollect-event/2"}, "this is an event"),
        ({"owner": None}, "owner if its format is datacollect-receipt/2, and only then"),
        ({"format": "datacollect-receipt/1"}, "owner if its format is datacollect-receipt/2"),
        ({"owner": "00"}, "owner must be 64 lowercase hexadecimal digits"),
    ],
)
def test_what_is_no_receipt_is_refused(changes, what):
    tree = json.loads(whole_receipt().data) | changes
    with pytest.raises(ProblemError, match=what):
        read_receipt(json.dumps(tree).encode())


def fuzzed(times: int) -> None:
    """Receipts end as a verdict or as bad input; noise never makes a late one in time."""
    random_of = random.Random(2)
    late = receipt_at(*[LATEST_S + 1] * 4).data
    for _ in range(times):
        data = bytearray(late)
        for _ in range(random_of.randint(1, 3)):
            at = random_of.randrange(len(data))
            data[at : at + random_of.randrange(3)] = random_of.randbytes(random_of.randrange(3))
        try:
            verdict = verify(EVENT_FILE, read_receipt(bytes(data)))
        except ProblemError:
            continue
        assert not verdict.is_in_time


def test_noise_makes_no_receipt_better():
    fuzzed(100)


@pytest.mark.slow
def test_much_noise_makes_no_receipt_better():
    fuzzed(100_000)


def test_times_beyond_calendars_end_no_judgement():
    """A lying service's, and those of two of four witnesses."""
    word = acknowledge(EVENT.services[0].log.name, ENTRY, 1, 10**12, key_of("s0"))
    with pytest.raises(ProblemError, match="time_s must be a whole number of seconds"):
        read_receipt(Receipt(COMMITMENT, (word,)).data)
    verdict = verify(EVENT_FILE, receipt_at(1, 2, 2**62, 2**62))
    assert verdict.outcome == "not proved"


# Events of an older kind ----------------------------------------------------------------------


def older(event_file: bytes) -> bytes:
    return event_file.replace(b"datacollect-event/2", b"datacollect-event/1")


OLDER_KIND = "The event is of an older kind, in which anyone who heard a ticket could use it."


def older_receipt(event_file: bytes, owner: bytes | None = None) -> Receipt:
    event = read_event(event_file)
    commitment = replace(COMMITMENT, event=event.id, owner=owner)
    proof = SmallLog(event, 0, [commitment.entry]).proof(commitment.entry, times_of(1, 2, 3))
    return Receipt(commitment, proofs=(proof,))


def test_a_receipt_of_an_event_of_an_older_kind_is_verified_and_it_is_said():
    """As it was written then: its entry has no owner."""
    event_file = older(EVENT_FILE)
    receipt = older_receipt(event_file)
    tree = json.loads(receipt.data)
    assert (tree["format"], "owner" in tree) == ("datacollect-receipt/1", False)
    verdict = verify(event_file, read_receipt(receipt.data), ciphertext=[SEALED], amendments=[])
    assert (verdict.outcome, verdict.covers, verdict.time_s) == ("in time", "the sealed file", 3)
    assert verdict.reasons[0] == OLDER_KIND


def test_where_there_are_no_tickets_nothing_is_said_of_them():
    event_file = event_bytes(admission="open")
    for file, owner in ((older(event_file), None), (event_file, COMMITMENT.owner)):
        verdict = verify(file, older_receipt(file, owner), amendments=[])
        assert (verdict.outcome, OLDER_KIND in verdict.reasons) == ("in time", False)


@pytest.mark.parametrize(
    ("event_file", "owner", "wanted"),
    [(older(EVENT_FILE), COMMITMENT.owner, 1), (EVENT_FILE, None, 2)],
)
def test_a_receipt_is_of_the_kind_of_its_event(event_file, owner, wanted):
    """An entry that nobody owns proves nothing where owners push: it cannot be handed in."""
    with pytest.raises(
        ProblemError, match=f"the receipt must have the format datacollect-receipt/{wanted}"
    ):
        verify(event_file, older_receipt(event_file, owner), amendments=[])


# The destination's word -----------------------------------------------------------------------

ORIGIN = "destination.example/0123456789abcdef"
COLLECTING_FILE = event_bytes(
    verdicts={"log": log_key(ORIGIN, key_of("verdicts").public).text},
)
COLLECTING = read_event(COLLECTING_FILE)
COLLECTED = marked_by(COLLECTING, replace(COMMITMENT, event=COLLECTING.id))


def word_of(word="collected", entry=COLLECTED.entry, n_witnesses=3, key="verdicts", log=ORIGIN):
    data = Verdict(COLLECTING.id, entry, word).data
    return proof_of(data, log, DEADLINE_S + 100, n_witnesses, key).data.decode()


def verdict_with(collected, event_file=COLLECTING_FILE, commitment=COLLECTED):
    proof = proof_of(commitment.entry, COLLECTING.services[0].log.name, DEADLINE_S)
    receipt = Receipt(commitment, proofs=(proof,), collected=collected)
    found = verify(event_file, read_receipt(receipt.data), amendments=[])
    assert found.outcome == "in time"
    return found


@pytest.mark.parametrize(
    ("event_file", "mark"), [(COLLECTING_FILE, None), (EVENT_FILE, COLLECTED.mark)]
)
def test_a_receipt_has_a_mark_where_its_event_has_marks(event_file, mark):
    commitment = replace(COMMITMENT, event=read_event(event_file).id, mark=mark)
    with pytest.raises(ProblemError, match=r"must have (no|a) mark, as all receipts of"):
        verify(event_file, Receipt(commitment), amendments=[])


def test_the_destinations_word_is_a_proof_that_it_was_collected():
    found = verdict_with(word_of())
    # Witnesses signed at 100, 101, 102 s after the deadline: the third makes the time.
    assert found.collected_s == DEADLINE_S + 102
    assert any(reason.startswith("Collected by ") for reason in found.reasons)
    assert verdict_with(None).collected_s is None


# A draft that was superseded, by an entry, and counts again.
AGAIN = Verdict(COLLECTING.id, COLLECTED.entry, "collected", "ab" * 32)
AGAIN_PROOF = LogProof.parse(word_of(f"collected: {AGAIN.why}").encode())


def test_the_word_that_a_draft_counts_again_is_a_proof_that_it_was_collected():
    """It says which other had superseded it: whoever has the receipt alone must know that."""
    text = collected_text(AGAIN_PROOF, AGAIN)
    assert text.split("\n")[1].startswith("extra ")
    # Others read the same proof in it.
    assert LogProof.parse(text.encode()) == AGAIN_PROOF
    assert verdict_with(text).collected_s == DEADLINE_S + 102


def test_what_somebody_else_has_added_to_a_proof_is_not_kept():
    plain = Verdict(COLLECTING.id, COLLECTED.entry, "collected")
    told = word_of().replace("\nindex", f"\nextra {'A' * 43}=\nindex")
    assert verdict_with(told).collected_s is None
    kept = collected_text(LogProof.parse(told.encode()), plain)
    assert verdict_with(kept).collected_s == DEADLINE_S + 102


@pytest.mark.parametrize(
    "collected",
    [
        word_of("refused: is late"),
        AGAIN_PROOF.data.decode(),
        # The line "extra" in another Base64 of the same bytes, and one that says nothing.
        collected_text(AGAIN_PROOF, AGAIN).replace("s=\nindex", "t=\nindex"),
        word_of().replace("\nindex", "\nextra \nindex"),
        collected_text(AGAIN_PROOF, replace(AGAIN, why="ac" * 32)),
        word_of(entry=b"x" * 32),
        word_of(n_witnesses=2),
        word_of(key="s0"),
        word_of(log=COLLECTING.services[0].log.name, key="s0"),
        "no proof",
    ],
)
def test_another_word_is_no_proof_that_it_was_collected(collected):
    found = verdict_with(collected)
    assert found.collected_s is None
    assert "does not count" in found.reasons[-1]
