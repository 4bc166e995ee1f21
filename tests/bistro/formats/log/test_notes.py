"""Notes, verifier keys, checkpoints, cosignatures, proofs: what counts, and all that does not."""

from __future__ import annotations

import base64
import random

import pytest

from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    cosigned_times,
    log_key,
    sign_checkpoint,
    time_of,
    witness_key,
)
from datacollect.bistro.formats.log.notes import (
    OF_NOTE,
    OF_WITNESS,
    NoteSignature,
    VerifierKey,
    is_by,
    parse_note,
    signed,
)
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import leaf_hash, node_hash
from datacollect.errors import ProblemError
from datacollect.net.keys import PrivateKey

KEY, OTHER, THIRD = (PrivateKey(bytes([i]) * 32) for i in (1, 2, 3))
ORIGIN = "log.example/0123456789abcdef"
HEAD = Checkpoint(ORIGIN, 2, node_hash(leaf_hash(b"a"), leaf_hash(b"b")))
TIME_S = 1_800_000_000

# The example of golang.org/x/mod/sumdb/note, signed by another implementation.
NEUMANN = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
ANSWER = """If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
""".encode()  # noqa: E501


def test_a_note_of_another_implementation_is_read_and_verified():
    key = VerifierKey.parse(NEUMANN, OF_NOTE, "the key")
    assert key.text == NEUMANN
    note = parse_note(ANSWER)
    assert note.data == ANSWER
    assert is_by(note, key)
    assert not is_by(parse_note(ANSWER.replace(b"your problem is", b"your problem was")), key)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (NEUMANN.replace("c74f20a3", "c74f20a4"), "its ID must be c74f20a3"),
        (NEUMANN.replace("ARpc", "BBpc"), "must be the verifier key of a log, got one of a witn"),
        (NEUMANN[:-4], "must be a verifier key"),
        (NEUMANN + "\n", "must be a verifier key"),
        (NEUMANN.replace("Peter", "Peter "), "must be a verifier key"),
        ("ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=", "must be a verifier key"),
    ],
)
def test_other_verifier_keys_are_refused(text, what):
    with pytest.raises(ProblemError, match=what):
        VerifierKey.parse(text, OF_NOTE, "services[0].log")


def test_a_key_of_a_log_is_none_of_a_witness():
    witness = witness_key("w", KEY.public)
    assert VerifierKey.parse(witness.text, OF_WITNESS, "w") == witness
    with pytest.raises(ProblemError, match="of a witness, got one of a log"):
        VerifierKey.parse(log_key("w", KEY.public).text, OF_WITNESS, "w")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        b"text\n\nno signature\n",
        b"text\r\n\n\xe2\x80\x94 a AAAAAAA=\n",
        b"text\n\n\xe2\x80\x94 a AAAAAAB=\n",
        b"text\n\n\xe2\x80\x94 a AAAAAAA=",
        b"text\n\n\xe2\x80\x94 a+b AAAAAAA=\n",
        b"text\n\n\xe2\x80\x94  AAAAAAA=\n",
        b"text\n\n\xe2\x80\x94 a AAAA\n",
        b"t\xff\n\n\xe2\x80\x94 a AAAAAAA=\n",
        b"text\n\n" + b"\xe2\x80\x94 a AAAAAAA=\n" * 65,
        b"t" * 70_000,
    ],
)
def test_what_is_no_note_is_refused(data):
    with pytest.raises(ProblemError):
        parse_note(data)


def test_strangers_do_not_count_and_forgeries_spoil():
    note = signed("tea\n", "kettle", KEY)
    key, other = log_key("kettle", KEY.public), log_key("kettle", OTHER.public)
    forged = NoteSignature("kettle", key.key_id, OTHER.sign(b"tea\n"))
    assert is_by(note, key)
    assert not is_by(note, other)
    assert not is_by(note, log_key("pot", KEY.public))
    assert not is_by(note.with_more(forged), key)


def test_a_checkpoint_is_read_as_it_was_signed():
    found = SignedCheckpoint.parse(sign_checkpoint(HEAD, KEY).data)
    assert found.checkpoint == HEAD
    assert found.is_of(log_key(ORIGIN, KEY.public))
    assert not found.is_of(log_key(ORIGIN, OTHER.public))
    # Signed by a log in another one's name.
    other = signed(HEAD.text, "other.example/1", KEY)
    assert not SignedCheckpoint(HEAD, other).is_of(log_key("other.example/1", KEY.public))


@pytest.mark.parametrize(
    "text",
    [
        HEAD.text + "extension\n",
        HEAD.text.replace("\n2\n", "\n02\n"),
        HEAD.text.replace("\n2\n", "\n-2\n"),
        HEAD.text.replace("\n2\n", "\n\u0662\n"),
        HEAD.text.replace("\n2\n", f"\n{2**63}\n"),
        HEAD.text.replace(ORIGIN, ""),
        HEAD.text[:-5] + "\n",
    ],
)
def test_other_checkpoints_are_refused(text):
    with pytest.raises(ProblemError):
        SignedCheckpoint.parse(signed(text, ORIGIN, KEY).data)


def test_a_cosignature_is_what_the_format_says():
    """Signed by hand: the time stands before the signature, and in the text that is signed."""
    line = cosign(HEAD.text, TIME_S, "w.example", KEY)
    assert line.signature[:8] == TIME_S.to_bytes(8, "big")
    message = f"cosignature/v1\ntime {TIME_S}\n{HEAD.text}".encode()
    assert line.signature[8:] == KEY.sign(message)


def test_times_are_counted_by_key_and_only_where_they_are_signed():
    one, two = witness_key("one", KEY.public), witness_key("two", OTHER.public)
    note = sign_checkpoint(HEAD, THIRD).with_more(
        cosign(HEAD.text, TIME_S + 5, "one", KEY),
        cosign(HEAD.text, TIME_S, "one", KEY),
        cosign(HEAD.text.replace("\n2\n", "\n3\n"), TIME_S, "two", OTHER),
        cosign(HEAD.text, TIME_S, "three", THIRD),
    )
    assert cosigned_times(note, [one, two]) == {KEY.public: TIME_S}
    # A key under two names is one key: the signature does not cover the name.
    again = note.with_more(cosign(HEAD.text, TIME_S + 1, "uno", KEY))
    assert len(cosigned_times(again, [one, witness_key("uno", KEY.public)])) == 1


def test_a_time_beyond_calendars_is_none():
    """2**34 s since 1970 lie in the year 2514."""
    for time_s, counts in ((2**34 - 1, True), (2**34, False), (2**62, False)):
        note = signed(HEAD.text, HEAD.origin, KEY).with_more(cosign(HEAD.text, time_s, "w", OTHER))
        assert bool(cosigned_times(note, [witness_key("w", OTHER.public)])) == counts


def test_a_cosignature_with_another_time_before_it_does_not_count():
    line = cosign(HEAD.text, TIME_S, "w", KEY)
    witness = witness_key("w", KEY.public)
    for time_s in (TIME_S - 1, 2**63, 2**64 - 1):
        moved = NoteSignature("w", line.key_id, time_s.to_bytes(8, "big") + line.signature[8:])
        assert time_of(moved, HEAD.text, witness) is None
    assert time_of(NoteSignature("w", line.key_id, b"short"), HEAD.text, witness) is None


def proof() -> LogProof:
    signed_head = SignedCheckpoint(HEAD, sign_checkpoint(HEAD, KEY))
    return LogProof(1, (leaf_hash(b"a"),), signed_head)


def test_a_proof_is_read_as_it_was_written():
    found = LogProof.parse(proof().data)
    assert found == proof()
    assert found.includes(b"b")
    assert not found.includes(b"a")
    lines = proof().data.decode().split("\n")
    assert lines[:2] == ["c2sp.org/tlog-proof@v1", "index 1"]
    assert lines[2] == base64.b64encode(leaf_hash(b"a")).decode()
    assert lines[3] == ""
    # Somebody's remark, which nobody signs.
    with_extra = proof().data.replace(b"index", b"extra AAAA\nindex", 1)
    assert LogProof.parse(with_extra) == proof()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"@v1", b"@v2"),
        (b"index 1", b"index 01"),
        (b"index 1", b"indices 1"),
        (b"index 1\n", b""),
        (b"\n\nlog.example", b"\nlog.example"),
        (base64.b64encode(leaf_hash(b"a")), b"AAAA"),
        (b"index 1\n", b"index 1\n" + b"A" * 43 + b"=\n" + (b"A" * 43 + b"=\n") * 63),
    ],
)
def test_other_proofs_are_refused(old, new):
    with pytest.raises(ProblemError):
        LogProof.parse(proof().data.replace(old, new, 1))


def fuzzed(times: int) -> None:
    """Parsers end with a value that is written as it was read, or with the error for bad input."""
    random_of = random.Random(1)
    valid = [proof().data, sign_checkpoint(HEAD, KEY).data, ANSWER]
    for _ in range(times):
        kind = random_of.randrange(len(valid))
        data = bytearray(valid[kind])
        for _ in range(random_of.randint(1, 4)):
            at = random_of.randrange(len(data))
            data[at : at + random_of.randrange(3)] = random_of.randbytes(random_of.randrange(3))
        parser = (LogProof.parse, SignedCheckpoint.parse, parse_note)[kind]
        try:
            found = parser(bytes(data))
        except ProblemError:
            continue
        if kind:
            note = found.note if kind == 1 else found
            assert note.data == bytes(data)


def test_parsers_hold_against_noise():
    fuzzed(2_000)


@pytest.mark.slow
def test_parsers_hold_against_much_noise():
    fuzzed(100_000)
