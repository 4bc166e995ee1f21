"""What others have written is read, or refused in words, whatever it is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from instances.events import event_bytes, event_of, key_of, owner_key, owner_of, proof_of, ticket_of
from instances.how_many import many

from datacollect.bistro.formats.event.amendments import read_amendment, sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import Ticket
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tiles import Tile, bundle_of, entries_of
from datacollect.bistro.formats.receipt.receipt import (
    PublishedAmendment,
    Receipt,
    amendments_data,
    read_acknowledgement,
    read_amendments,
    read_receipt,
)
from datacollect.bistro.formats.receipt.verify import verify
from datacollect.bistro.formats.sealing.keep import keep, read_keep
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.bistro.organiser.ticket_files import read_people
from datacollect.errors import DatacollectError

EVENT = event_of()
LOG = EVENT.services[0].log.name
NOTE = sign_amendment(EVENT, {"deadline": "2027-04-16T23:59:59-04:00"}, 1, key_of("organiser"))
COMMITMENT = Commitment(EVENT.id, bytes(32), 3, bytes(32), bytes(32), owner_of("mine"))
PROOF = proof_of(COMMITMENT.entry, LOG, EVENT.deadline_s)
WORD = acknowledge(LOG, COMMITMENT.entry, 0, EVENT.deadline_s, key_of("s0"))
RECEIPT = Receipt(COMMITMENT, (WORD,), (PROOF,), (b"token",))
TICKET = ticket_of(EVENT)


def from_file(read):
    """Return what reads bytes by a reader of files."""

    def reading(data: bytes, folder: Path):
        (folder / "file").write_bytes(data)
        return read(folder / "file")

    return reading


def judged(data: bytes, _: Path):
    receipt = read_receipt(data)
    verdict = verify(event_bytes(), receipt)
    # Of what was changed nothing but what still fits is proved.
    assert verdict.outcome != "in time" or receipt.commitment == COMMITMENT


SAMPLES = {
    "event": (event_bytes(), lambda data, _: read_event(data)),
    "receipt": (RECEIPT.data, judged),
    "proof": (PROOF.data, lambda data, _: LogProof.parse(data)),
    "checkpoint": (PROOF.signed.note.data, lambda data, _: SignedCheckpoint.parse(data)),
    "amendment": (NOTE, lambda data, _: read_amendment(data, EVENT)),
    "amendments": (
        amendments_data(EVENT.id, [PublishedAmendment(NOTE, (PROOF,))]),
        lambda data, _: read_amendments(data, EVENT.id),
    ),
    "acknowledgement": (
        json.dumps({"index": 0, "time_s": 1, "signature": "A" * 86 + "=="}).encode(),
        lambda data, _: read_acknowledgement(data, LOG),
    ),
    "bundle": (bundle_of([bytes(32)] * 3), lambda data, _: entries_of(data, Tile(-1, 0, 3))),
    "ticket": (TICKET.text.encode(), from_file(Ticket.from_file)),
    "people": (b"person,mail\nann,a@x\nbob,b@x\n", from_file(read_people)),
    "keep": (b"", from_file(read_keep)),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> bytes:
    """Return the bytes of a .keep."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "a").write_bytes(b"mine")
    inner = Inner(b"{}", bytes(32))
    keep(
        *(folder / "a", folder / "a.keep"),
        event=EVENT.id,
        salt=bytes(32),
        inner=inner,
        owner=owner_key("mine"),
        ticket=TICKET,
        recipients=EVENT.recipients,
    )
    return (folder / "a.keep").read_bytes()


PIECES = (
    b"\0",
    b"\xff",
    b"\n\n",
    b"\r\n",
    b"[" * 200,
    b'"',
    b"9" * 30,
    b"-1",
    b"null",
    b"= ",
    b",",
)


def noisy(good: bytes, chance: random.Random) -> bytes:
    data = bytearray(good)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                del data[at : at + chance.randint(1, 60)]
            case 1:
                data[at:at] = chance.choice(PIECES)
            case 2:
                data[at:at] = chance.randbytes(chance.randint(1, 9))
            case 3:
                data[at:at] = data[: chance.randint(1, 200)]
            case _ if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def read_noise(name: str, kept: bytes, folder: Path, seeds: range) -> None:
    good, read = SAMPLES[name]
    good = good or kept
    read(good, folder)
    for seed in seeds:
        data = noisy(good, random.Random(f"{name} {seed}"))
        assert refusal(data, folder, read).isprintable(), seed


def refusal(data: bytes, folder: Path, read) -> str:
    """Return why data is refused; nothing where it is read."""
    try:
        read(data, folder)
    except DatacollectError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", SAMPLES)
def test_noise_is_read_or_refused_in_words(name, kept, tmp_path):
    read_noise(name, kept, tmp_path, range(40))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_much_noise_is_read_or_refused_in_words(name, kept, tmp_path):
    read_noise(name, kept, tmp_path, range(40, 40 + many(100_000 // len(SAMPLES))))
