"""Messages of bistros, destinations and pushes, damaged or by liars: refused, or read alike."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

from instances.broken_trees import places, with_value
from instances.dressed_texts import damaged
from instances.events import event_of, key_of, owner_key, owner_of, proof_of, ticket_of

from datacollect.bistro.formats.assignment.loads import (
    FORMAT,
    PURPOSE,
    BistroLoad,
    Loads,
    Wire,
    read_loads,
)
from datacollect.bistro.formats.custody import verdicts
from datacollect.bistro.formats.custody.batches import (
    FIRST,
    ROW,
    opening,
    read_batch,
    row_of,
    sign_batch,
)
from datacollect.bistro.formats.custody.bistro_receipt import (
    ASSERTION,
    BistroReceipt,
    read_bistro_receipt,
)
from datacollect.bistro.formats.custody.segments import MOST_SEGMENT_BYTES, PIECE, read_index
from datacollect.bistro.formats.custody.verdicts import Covered, Verdict, read_covered, read_verdict
from datacollect.bistro.formats.log.checkpoints import log_key
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.notes import signed
from datacollect.bistro.formats.receipt.upload_wish import (
    Admission,
    commitment_json,
    commitment_of,
    metadata_of,
    metadata_text,
    push_metadata,
)
from datacollect.bistro.upload_server.tus import _checksum, _whole
from datacollect.errors import DatacollectError
from datacollect.net.keys import sign_token, unverified_payload

import numpy as np  # isort: skip

# Of one seed: to make what is damaged costs more than to read it.
N_TOGETHER = 100
LOG = log_key("dest.example/0123456789abcdef", key_of("verdicts").public)
ROWS = [
    {
        "name": "north",
        "url": "https://north.example",
        "key": key_of("north").public,
        "fingerprint": "sha256:" + "0" * 64,
    }
]
EVENT = event_of(bistros=ROWS, verdicts={"log": LOG.text})
NOW_S = EVENT.opens_s + 1
COMMITMENT = Commitment(EVENT.id, b"s" * 32, 1000, b"c" * 32, b"p" * 32, owner_of("words"))
TIME_S = 1_800_000_000
RECEIPT = BistroReceipt(EVENT.id, "north", COMMITMENT.entry, 1000, b"c" * 32, False, 3, TIME_S)
DEEP = b"[" * 10_000
VALUES = (
    *(None, True, False, 0, -1, 1, 0.5, 1e300, float("nan"), 2**62, 2**63, 2**64, 10**400),
    *("", "north", "0" * 64, "F" * 64, "é", "\x00", [], {}, [[]], {"": 1}, "x" * 5000),
)


def case(seed: int) -> str | None:
    """Read many of a kind, each damaged in another way; return what is wrong with one."""
    rng = random.Random(f"bistro words {seed}")
    reader = READERS[seed % len(READERS)]
    for _ in range(N_TOGETHER):
        try:
            found = reader(rng)
        except DatacollectError as error:
            found = None if str(error).strip() else "refused without a word"
        if found is not None:
            return f"{reader.__name__}: {found}"
    return None


def _tree(rng: random.Random, tree: dict) -> dict:
    for _ in range(rng.choice([1, 1, 2])):
        tree = with_value(tree, rng.choice([*places(tree)]), rng.choice(VALUES))
    return tree


def _receipt(rng: random.Random) -> str | None:
    """Tokens: damaged, or of odd claims that the bistro's own key signs."""
    token = RECEIPT.signed(key_of("north"))
    if rng.random() < 0.5:
        token = damaged(rng, token.encode()).decode("utf-8", "replace")
    else:
        payload = unverified_payload(token)
        odd = json.dumps(_tree(rng, json.loads(payload))).encode()
        payload = rng.choice([odd, odd, odd, damaged(rng, payload), DEEP])
        token = sign_token(key_of("north"), payload, ASSERTION)
    found = read_bistro_receipt(token, EVENT)
    again = read_bistro_receipt(found.signed(key_of("north")), EVENT)
    return None if again == found else f"{token} is read as {found}"


def _batch(rng: random.Random) -> str | None:
    """Batches: damaged, or with an odd note that the bistro's own key signs, or odd rows."""
    n_rows = rng.randrange(4)
    row = row_of(COMMITMENT, 1000, b"c" * 32, bytes(16), TIME_S, bytes(64))
    rows = np.array([row] * n_rows, ROW)
    raw = bytearray(rows.tobytes())
    if raw and rng.random() < 0.5:
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    rows = np.frombuffer(bytes(raw), ROW)
    batch = sign_batch(EVENT, "north", rng.randrange(9), FIRST, 0, rows, key_of("north"))
    data = batch.data
    if rng.random() < 0.5:
        data = damaged(rng, data)
    else:
        text = _odd_lines(rng, batch.note.text)
        note = signed(text, f"bistro/{EVENT.id.hex()[:16]}", key_of("north")).data
        data = len(note).to_bytes(4, "big") + note + rows.tobytes()
    found = read_batch(data, EVENT)
    opening(found.rows, EVENT.id)
    return None if found.data == data else "a batch is not what its file is"


def _odd_lines(rng: random.Random, text: str) -> str:
    """Return a note's text with a line of it changed, left out or doubled; it stays one."""
    lines = text.split("\n")[:-1]
    at = rng.randrange(len(lines))
    odd = damaged(rng, lines[at].encode()).decode("utf-8", "replace")
    odd = "".join(each if each.isprintable() else "?" for each in odd)
    lines[at : at + 1] = rng.choice([[odd], [], [lines[at]] * 2, [odd, lines[at]], ["9" * 4000]])
    # An empty line would end a note's text.
    return "".join(f"{line or '-'}\n" for line in lines or ["-"])


def _index(rng: random.Random) -> str | None:
    """Indices: rows that fill a segment, with numbers or bytes changed."""
    lengths = [rng.choice([0, 1, 100, 2**26, 2**26 + 1]) for _ in range(rng.randrange(5))]
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    rows = np.array([(7, 0, *pair) for pair in zip(starts, lengths, strict=True)], PIECE)
    for _ in range(rng.randrange(3)):
        if len(rows):
            column = rng.choice(["upload", "upload_offset", "segment_offset", "n_bytes"])
            rows[column][rng.randrange(len(rows))] = rng.choice(
                [0, 1, 2**63, 2**64 - 1, 2**64 - 100]
            )
    data = rows.tobytes() if rng.random() < 0.7 else damaged(rng, rows.tobytes())
    found = read_index(data)
    at = 0
    for row in found:
        if int(row["segment_offset"]) != at:
            return f"a piece begins at {row['segment_offset']}, not at {at}"
        at += int(row["n_bytes"])
    return None if at <= MOST_SEGMENT_BYTES else f"pieces end at {at}"


def _verdict(rng: random.Random) -> str | None:
    """Verdicts: of all words, damaged."""
    word, why = rng.choice(
        [
            (verdicts.COLLECTED, ""),
            (verdicts.COLLECTED, "0" * 64),
            (verdicts.SUPERSEDED, "f" * 64),
            *((verdicts.REFUSED, why) for why in verdicts.REASONS),
        ]
    )
    data = damaged(rng, Verdict(EVENT.id, COMMITMENT.entry, word, why).data)
    return None if read_verdict(data, EVENT.id).data == data else "a verdict is read as another"


def _covered(rng: random.Random) -> str | None:
    """Words on segments: damaged, or odd ones that the destination signs."""
    segments = verdicts.ranges_of([rng.randrange(50) for _ in range(rng.randrange(20))])
    covered = Covered(EVENT.id, "north", 7, 9, segments, TIME_S)
    note = covered.signed(EVENT, key_of("verdicts"))
    if rng.random() < 0.5:
        data = damaged(rng, note.data)
    else:
        name = LOG.for_purpose(verdicts.PURPOSE).name
        data = signed(_odd_lines(rng, note.text), name, key_of("verdicts")).data
    found = read_covered(data, EVENT)
    again = read_covered(found.signed(EVENT, key_of("verdicts")).data, EVENT)
    return None if again == found else "it is not read as it is written"


def _loads(rng: random.Random) -> str | None:
    """Tables of loads: damaged, or odd ones that the destination signs."""
    wires = (Wire(1e6, ("north",)),)
    table = Loads((BistroLoad("north", 5, 1e6),), wires, EVENT.id, 3, TIME_S)
    note = table.signed(EVENT, key_of("verdicts"))
    if rng.random() < 0.5:
        data = damaged(rng, note.data)
    else:
        tree = json.loads(note.text.split("\n")[1])
        text = DEEP.decode() if rng.random() < 0.02 else json.dumps(_tree(rng, tree))
        if rng.random() < 0.3:
            text = damaged(rng, text.encode()).decode("utf-8", "replace")
            text = "".join(each if each.isprintable() else "?" for each in text)
        name = LOG.for_purpose(PURPOSE).name
        data = signed(f"{FORMAT}\n{text}\n", name, key_of("verdicts")).data
    found = read_loads(data, EVENT)
    again = read_loads(found.signed(EVENT, key_of("verdicts")).data, EVENT)
    return None if again == found else "it is not read as it is written"


PROOF = proof_of(COMMITMENT.entry, EVENT.services[0].log.name, NOW_S)
METADATA = metadata_of(
    push_metadata(
        COMMITMENT,
        PROOF.data,
        event=EVENT,
        bistro_key=key_of("north").public,
        sha256=COMMITMENT.ciphertext_sha256,
        size=COMMITMENT.size,
        owner=owner_key("words"),
        ticket=ticket_of(EVENT),
    )
)
ADMISSION = Admission(EVENT, key_of("north").public, 10**6)


def _metadata(rng: random.Random) -> str | None:
    """What begins an upload: the header damaged, or one of its values."""
    if rng.random() < 0.2:
        text = metadata_text(METADATA)
    elif rng.random() < 0.5:
        text = damaged(rng, metadata_text(METADATA).encode()).decode("latin-1")
    else:
        name = rng.choice([*METADATA])
        text = metadata_text(METADATA | {name: damaged(rng, METADATA[name])})
    if rng.random() < 0.1:  # as if it were sealed anew, which nobody has signed
        text += f",sha256 {base64.b64encode(b'x' * 32).decode()}"
    wish = ADMISSION.wish_of(text, rng.choice([1000, 1000, 0, 999, 2**63 - 1]), NOW_S)
    if wish.commitment != COMMITMENT or wish.size != COMMITMENT.size or wish.sealed_anew:
        return f"{text} is taken as {wish}"
    values = metadata_of(text)
    return None if metadata_of(metadata_text(values)) == values else "not read as it is written"


def _commitment(rng: random.Random) -> str | None:
    """Commitments, as JSON of odd values, or damaged."""
    tree = json.loads(commitment_json(COMMITMENT))
    data = json.dumps(_tree(rng, tree)).encode()
    data = rng.choice([data, data, data, damaged(rng, data), DEEP])
    found = commitment_of(data, EVENT.id)
    again = commitment_of(commitment_json(found), EVENT.id)
    return None if again == found and len(found.entry) == 32 else "not read as it is written"


def _headers(rng: random.Random) -> str | None:
    """Numbers and checksums in headers."""
    text = rng.choice([b"0", b"100", b"9" * 18, b"9" * 19, b"9" * 20, b"+1", b"1_0", b" 1", b"-0"])
    text = damaged(rng, text).decode("latin-1") if rng.random() < 0.7 else text.decode()
    try:
        found = _whole({"upload-length": text}, "upload-length")
    except DatacollectError:
        pass
    else:
        if not 0 <= found < 2**63 or not text.isascii() or not text.isdigit():
            return f"{text!r} is read as {found}"
    name = rng.choice(["sha1", "sha256", "md5", "shake_128", "SHA1", "", "sha1 sha1"])
    value = f"{name} uqWglk0zIPvAxqkiFARTyFE+okQ="
    value = damaged(rng, value.encode()).decode("latin-1") if rng.random() < 0.7 else value
    sum_ = _checksum(value)
    assert sum_ is not None
    sum_[0].update(b"x")
    return None if sum_[0].digest() else "no digest"


READERS: tuple[Callable[[random.Random], str | None], ...] = (
    *(_receipt, _batch, _index, _verdict, _covered, _loads, _metadata, _commitment, _headers),
)
