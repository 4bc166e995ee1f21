"""Test vectors of `docs/bistro/protocol.md`: what it describes, each with what it is made of.

``python tests/bistro/formats/test_vectors.py`` writes docs/bistro/vectors.json anew, by the library
and by fixed keys. The tests hold the file against the library, against the page's words in a few
lines of their own, and against the verifier that was written from the page.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyrage
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from instances.custody import CHANGES
from instances.events import (
    DEADLINE_S,
    before_proofs,
    event_bytes,
    key_of,
    marked_by,
    ticket_of,
    witness_names,
)
from instances.logs import SmallLog
from judges import bistro_verifier as judge

from datacollect.bistro.formats.custody.batches import ROW, read_batch, row_of, sign_batch
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt, read_bistro_receipt
from datacollect.bistro.formats.custody.collected import collected_text
from datacollect.bistro.formats.custody.segments import PIECE
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    REASONS,
    REFUSED,
    SUPERSEDED,
    Covered,
    Verdict,
    read_covered,
    read_verdict,
)
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.statements import (
    commit_statement,
    give_up_statement,
    hand_in_statement,
    push_statement,
)
from datacollect.bistro.formats.event.tickets import admitted
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    log_key,
    sign_checkpoint,
    witness_key,
)
from datacollect.bistro.formats.log.content import (
    content_code,
    content_digest,
    header_bytes,
    opening_of,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.file_list import FilesCode, frame
from datacollect.bistro.formats.log.notes import VerifierKey
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import inclusion_proof, leaf_hash, nodes_of, tree_root
from datacollect.bistro.formats.receipt.content_proof import proof_of_content, proofs_of_files
from datacollect.bistro.formats.receipt.receipt import (
    PublishedAmendment,
    Receipt,
    amendments_data,
    read_amendments,
    read_receipt,
)
from datacollect.bistro.formats.receipt.verify import published, verify
from datacollect.bistro.formats.sealing.keep import read_keep
from datacollect.bistro.formats.sealing.sealed import Inner, seal
from datacollect.net.keys import PrivateKey, public_key_bytes

FILE = Path(__file__).resolve().parents[3] / "docs" / "bistro" / "vectors.json"

EVENT_FILE = before_proofs(event_bytes(**CHANGES))
EVENT = read_event(EVENT_FILE)
NORTH = EVENT.bistros[0]
LOG, VERDICTS = EVENT.services[0].log, EVENT.verdicts
# The log of verdicts that an amendment names.
SUCCESSOR = log_key("verdicts2.example/00000000000000aa", key_of("dest2").public)
# Whose keys they are; seeds are told, so that anybody can sign the same.
WHO = ("organiser", "s0", "s1", "dest", "dest2", "north", "owner", *witness_names())
TICKET = ticket_of(EVENT)
OWNER = key_of("owner")
SALT, SECRET = bytes(range(32)), bytes(range(32, 64))
CONTENT = "Drafts are due at noon.\n"
# Stands for a file of age, which has other bytes each time.
SEALED = b"a file of age stands here"
HEADER = header_bytes({"name": "Übung 1.txt", "event": EVENT.id.hex(), "ticket": "1".zfill(32)})
P = content_digest(SECRET, HEADER, [CONTENT.encode()])
# The same, with its parts committed to apart; and where there are no tickets.
NAMED = {"content": "datacollect-content/2", "name": "Übung 1.txt", "event": EVENT.id.hex()}
OPENED_HEADERS = {
    "opened_content": header_bytes(NAMED | {"ticket": "1".zfill(32)}),
    "opened_content_without_ticket": header_bytes(NAMED),
}
SEALED_SHA256 = hashlib.sha256(SEALED).digest()
UNMARKED = Commitment(EVENT.id, SALT, len(SEALED), SEALED_SHA256, P, public_key_bytes(OWNER.public))
COMMITMENT = marked_by(EVENT, UNMARKED)
OPENED_P = content_digest(SECRET, OPENED_HEADERS["opened_content"], [CONTENT.encode()])
OPENED = marked_by(EVENT, replace(UNMARKED, content=OPENED_P))
PROOF = proof_of_content(OPENED.entry, Inner(OPENED_HEADERS["opened_content"], SECRET))
assert PROOF is not None
# Several files of one draft: a name with a folder, letters of two bytes, a file of 0 bytes.
FILES = (
    ("Übung 1.txt", CONTENT),
    ("empty", ""),
    ("src/main.py", "print()\n"),
    ("src/naïve.py", "pass\n"),
    ("😀.md", "# Done\n"),
)
SEVERAL = {"two_files": FILES[:2], "three_files": FILES[:3], "five_files": FILES}
ENTRY = COMMITMENT.entry
HAND_IN = TICKET.key.sign(hand_in_statement(EVENT.id, SALT, public_key_bytes(OWNER.public)))
UPLOAD = "0123456789abcdef" * 2
TIME_S = DEADLINE_S - 3600


def text64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def vector(value: Any, **inputs: Any) -> dict[str, Any]:
    return {"inputs": inputs, "value": value}


def statement(said: bytes, key: PrivateKey, **inputs: Any) -> dict[str, Any]:
    """Return a vector of something signed: the lines, and the signature in Base64."""
    return vector({"lines": said.decode(), "signature": text64(key.sign(said))}, **inputs)


def made() -> dict[str, Any]:
    """Return all vectors, by the library."""
    return {
        "about": "Test vectors of protocol.md. Seeds, hashes and keys without a prefix are HEX.",
        "keys": {
            **{who: {"seed": key_of(who).seed.hex(), "key": key_of(who).public} for who in WHO},
            "ticket": {"seed": TICKET.seed.hex(), "key": TICKET.key.public},
        },
        "event": vector(EVENT.id.hex(), file=EVENT_FILE.decode()),
        **handed_in(),
        **{name: several(files) for name, files in SEVERAL.items()},
        **signed(),
        **in_logs(),
        **of_bistros(),
        **of_verdicts(),
        **of_people(),
    }


def handed_in() -> dict[str, Any]:
    content = {"secret": SECRET.hex(), "header": HEADER.decode(), "file": CONTENT}
    committed = {
        "event": EVENT.id.hex(),
        "salt": SALT.hex(),
        "size": len(SEALED),
        "ciphertext_sha256": SEALED_SHA256.hex(),
        "content_p": P.hex(),
    }
    owner = public_key_bytes(OWNER.public).hex()
    plain = plaintext(Inner(HEADER, SECRET, HAND_IN))
    return {
        "content_code": vector(P.hex(), **content),
        **{name: opened_content(header) for name, header in OPENED_HEADERS.items()},
        "proof_file": vector(
            {"file": PROOF.data.decode(), "content_p": OPENED_P.hex()},
            event=EVENT.id.hex(),
            entry=PROOF.entry.hex(),
            secret=SECRET.hex(),
            header=OPENED_HEADERS["opened_content"].decode(),
            file=CONTENT,
        ),
        "entry": vector(ENTRY.hex(), **committed, owner=owner, mark=ENTRY[24:].hex()),
        "entry_without_mark": vector(UNMARKED.entry.hex(), **committed, owner=owner),
        "entry_of_version_1": vector(replace(UNMARKED, owner=None).entry.hex(), **committed),
        "mark": vector(
            ENTRY[24:].hex(),
            entry=ENTRY[:24].hex(),
            event=EVENT.id.hex(),
            by="ticket",
            other="dest",
        ),
        "sealed_plaintext": vector(text64(plain), **content, ticket_signature=HAND_IN.hex()),
        "sealed_plaintext_without_ticket": vector(
            text64(plaintext(Inner(HEADER, SECRET))), **content, ticket_signature=None
        ),
    }


def opened_content(header: bytes) -> dict[str, Any]:
    """Return the vector of a content whose parts are committed to apart."""
    opening = opening_of(SECRET, header)
    assert opening is not None
    return vector(
        {
            "key": opening.key.hex(),
            "name": opening.name.hex(),
            "ticket": opening.ticket.hex(),
            "content_p": opening.digest([CONTENT.encode()]).hex(),
        },
        secret=SECRET.hex(),
        header=header.decode(),
        file=CONTENT,
    )


def several(files: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Return the vector of several files: their body, what is committed to, and each one's proof.

    With a ticket, but for the two.
    """
    ticket = {} if len(files) == 2 else {"ticket": "1".zfill(32)}
    told = {"content": "datacollect-content/3", "event": EVENT.id.hex(), "files": len(files)}
    header = header_bytes(told | ticket)
    body = b"".join(frame(name, len(text.encode())) + text.encode() for name, text in files)
    code = content_code(SECRET, header)
    code.update(body)
    assert isinstance(code, FilesCode)
    framed = code.files()
    codes = [each.code for each in framed]
    root = tree_root(len(codes), nodes_of([*map(leaf_hash, codes)]))
    entry = marked_by(EVENT, replace(UNMARKED, content=code.digest())).entry
    proofs = [*proofs_of_files(entry, Inner(header, SECRET), framed)]
    return vector(
        {
            "body": text64(body),
            "keys": [each.key.hex() for each in proofs],
            "names": [each.name.hex() for each in proofs],
            "codes": [each.hex() for each in codes],
            "ticket": proofs[0].ticket.hex(),
            "root": root.hex(),
            "content_p": code.digest().hex(),
            "proofs": [each.data.decode() for each in proofs],
        },
        event=EVENT.id.hex(),
        entry=entry.hex(),
        secret=SECRET.hex(),
        header=header.decode(),
        files=[{"name": name, "file": text} for name, text in files],
    )


def plaintext(inner: Inner) -> bytes:
    """Return what is encrypted: sealed by the library, opened by age alone."""
    identity = pyrage.x25519.Identity.generate()
    out = BytesIO()
    seal(BytesIO(CONTENT.encode()), out, inner, [str(identity.to_public())])
    found: bytes = pyrage.decrypt(out.getvalue(), [identity])
    return found


def signed() -> dict[str, Any]:
    event, entry, owner = EVENT.id, ENTRY, public_key_bytes(OWNER.public)
    second = hashlib.sha256(b"another entry").digest()
    push = push_statement(event, NORTH.key, entry, SEALED_SHA256, len(SEALED), TICKET.number)
    pushed = {
        "event": event.hex(),
        "bistro_key": NORTH.key,
        "entry": entry.hex(),
        "sha256": SEALED_SHA256.hex(),
        "size": len(SEALED),
        "ticket": TICKET.number.hex(),
    }
    word = acknowledge(LOG.name, entry, 1, TIME_S, key_of("s0"))
    claims = {"event": event.hex(), "id": "1".zfill(32), "key": TICKET.key.public}
    receipt = bistro_receipt()
    said = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in vars(receipt).items()
    }
    return {
        "commit_statement": statement(
            commit_statement(event, LOG.key, [entry, second]),
            TICKET.key,
            by="ticket",
            event=event.hex(),
            log_key=LOG.key,
            entries=[entry.hex(), second.hex()],
        ),
        "push_statement_of_the_owner": statement(push, OWNER, by="owner", **pushed),
        "push_statement_of_the_ticket": statement(push, TICKET.key, by="ticket", **pushed),
        "give_up_statement": statement(
            give_up_statement(event, NORTH.key, UPLOAD),
            OWNER,
            by="owner",
            event=event.hex(),
            bistro_key=NORTH.key,
            upload=UPLOAD,
        ),
        "hand_in_statement": statement(
            hand_in_statement(event, SALT, owner),
            TICKET.key,
            by="ticket",
            event=event.hex(),
            salt=SALT.hex(),
            owner=owner.hex(),
        ),
        "acknowledgement": vector(
            {"log": word.log, "index": 1, "time_s": TIME_S, "signature": text64(word.signature)},
            by="s0",
            entry=entry.hex(),
        ),
        "ticket_token": vector(
            TICKET.token,
            by="organiser",
            assertion="datacollect-event-ticket/2",
            claims={"v": 1, **claims, "exp": EVENT.collect_until_s},
        ),
        "ticket_revoked_by": vector(
            hashlib.sha256(TICKET.token.encode()).hexdigest(), token=TICKET.token
        ),
        "bistro_receipt_token": vector(
            receipt.signed(key_of("north")),
            by="north",
            assertion="datacollect-bistro-receipt/1",
            claims={"v": 1, **said},
        ),
    }


def bistro_receipt() -> BistroReceipt:
    return BistroReceipt(EVENT.id, "north", ENTRY, len(SEALED), SEALED_SHA256, False, 0, DEADLINE_S)


# The log of the first service: our entry is the second of three.
SERVICE_LOG = SmallLog(EVENT, 0, [b"a" * 32, ENTRY, b"b" * 32])
TIMES_S = dict(zip(witness_names(), (TIME_S, TIME_S + 1, TIME_S + 2, 2**40), strict=True))


def in_logs() -> dict[str, Any]:
    head = SERVICE_LOG.head({})
    size, root = head.checkpoint.size, head.checkpoint.root
    line = cosign(head.note.text, TIME_S, "w0.example", key_of("w0.example"))
    path = inclusion_proof(1, 3, SERVICE_LOG.node)
    proof = SERVICE_LOG.proof(ENTRY, TIMES_S)
    return {
        "verifier_key_of_a_log": vector(LOG.text, name=LOG.name, key=LOG.key),
        "verifier_key_of_a_witness": vector(
            witness_key("w0.example", key_of("w0.example").public).text,
            name="w0.example",
            key=key_of("w0.example").public,
        ),
        "tree": vector(
            {"root": root.hex(), "path_of_1": [each.hex() for each in path]},
            entries=[each.hex() for each in SERVICE_LOG.entries],
        ),
        "checkpoint": vector(
            head.note.data.decode(), by="s0", origin=LOG.name, size=size, root=text64(root)
        ),
        "cosignature_line": vector(
            line.line, by="w0.example", checkpoint=head.note.text, time_s=TIME_S
        ),
        "proof": vector(
            {"text": proof.data.decode(), "time_s": TIME_S + 2},
            entry=ENTRY.hex(),
            index=1,
            path=[each.hex() for each in path],
            signed_at_s=TIMES_S,
            quorum=EVENT.quorum,
        ),
        "amendments": amendments(),
        "successor": successor(),
    }


def amendments() -> dict[str, Any]:
    """Return an amendment that a log proves after the deadline, and what it moves that to."""
    changes = {"deadline": "2027-04-16T23:59:59-04:00"}
    note = sign_amendment(EVENT, changes, 1, key_of("organiser"))
    log = SmallLog(EVENT, 1, [ENTRY, note])
    proof = log.proof(note, dict.fromkeys(witness_names(), DEADLINE_S + 60))
    file = amendments_data(EVENT.id, [PublishedAmendment(note, (proof,))])
    value = {"file": file.decode(), "deadline_s": DEADLINE_S + 86_400}
    return vector(value, by="organiser", note=note.decode())


def successor() -> dict[str, Any]:
    """Return an amendment that ends the log of verdicts, and what both logs prove then.

    The first log had said of the entry that it was collected when the amendment was published, and
    goes on: it says so of another checkpoint an hour later.
    """
    assert VERDICTS is not None
    named = {"log": SUCCESSOR.text, "url": "https://verdicts2.example"}
    note = sign_amendment(EVENT, {"verdicts": named}, 1, key_of("organiser"))
    log, ended_s = SmallLog(EVENT, 1, [ENTRY, note]), DEADLINE_S + 3600
    proof = log.proof(note, dict.fromkeys(witness_names(), ended_s))
    verdict = Verdict(EVENT.id, ENTRY, COLLECTED)
    value = {
        "file": amendments_data(EVENT.id, [PublishedAmendment(note, (proof,))]).decode(),
        "ended_s": ended_s,
        "before": collected_text(verdict_proof(verdict, VERDICTS, "dest", ended_s - 2), verdict),
        "before_time_s": ended_s,
        "too_late": collected_text(verdict_proof(verdict, VERDICTS, "dest", ended_s - 1), verdict),
        "by_it": collected_text(verdict_proof(verdict, SUCCESSOR, "dest2", ended_s + 8), verdict),
        "by_it_time_s": ended_s + 10,
    }
    return vector(value, by="organiser", note=note.decode())


def of_bistros() -> dict[str, Any]:
    number = TICKET.number
    push = push_statement(EVENT.id, NORTH.key, ENTRY, SEALED_SHA256, len(SEALED), number)
    signatures = OWNER.sign(push), TICKET.key.sign(push)
    held = (COMMITMENT, len(SEALED), SEALED_SHA256, number, DEADLINE_S)
    row = np.array([row_of(*held, *signatures, 12)], ROW)
    batch = sign_batch(EVENT, "north", 0, bytes(32), DEADLINE_S + 1, row, key_of("north"), 3)
    piece = np.array([(12, 5, 0, 20)], PIECE)
    return {
        "batch_row": vector(
            row.tobytes().hex(),
            entry=ENTRY.hex(),
            salt=SALT.hex(),
            content_p=P.hex(),
            committed_size=len(SEALED),
            committed_sha256=SEALED_SHA256.hex(),
            size=len(SEALED),
            sha256=SEALED_SHA256.hex(),
            ticket=number.hex(),
            time_s=DEADLINE_S,
            owner=public_key_bytes(OWNER.public).hex(),
            signature=signatures[0].hex(),
            ticket_signature=signatures[1].hex(),
            upload=12,
        ),
        "batch": vector(
            {
                "note": batch.note.data.decode(),
                "digest": batch.digest.hex(),
                "file": text64(batch.data),
            },
            by="north",
            number=0,
            previous=bytes(32).hex(),
            time_s=DEADLINE_S + 1,
            n_segments=3,
            rows=row.tobytes().hex(),
        ),
        "segment_index_row": vector(
            piece.tobytes().hex(),
            upload=12,
            offset_in_the_upload=5,
            offset_in_the_segment=0,
            n_bytes=20,
        ),
    }


VERDICT_WORDS = [
    (COLLECTED, ""),
    (COLLECTED, "ab" * 32),
    (SUPERSEDED, "cd" * 32),
    *((REFUSED, reason) for reason in REASONS),
]


def of_verdicts() -> dict[str, Any]:
    assert VERDICTS is not None
    verdicts = [Verdict(EVENT.id, ENTRY, word, why) for word, why in VERDICT_WORDS]
    covered = Covered(EVENT.id, "north", 7, 2, (range(5), range(7, 8)), DEADLINE_S + 2)
    return {
        "verdicts": vector(
            [each.data.decode() for each in verdicts],
            event=EVENT.id.hex(),
            entry=ENTRY.hex(),
            words=[each.text for each in verdicts],
        ),
        "collected": collected(verdicts[0]),
        "collected_again": collected(verdicts[1]),
        "covered_note": vector(
            covered.signed(EVENT, key_of("dest")).data.decode(),
            by="dest",
            name=VERDICTS.for_purpose("covered").name,
            event=EVENT.id.hex(),
            bistro="north",
            log_size=7,
            n_batches=2,
            segments="0-4,7-7",
            time_s=DEADLINE_S + 2,
        ),
    }


def collected(verdict: Verdict) -> dict[str, Any]:
    """Return the proof that stands in a receipt, and its time."""
    assert VERDICTS is not None
    proof = verdict_proof(verdict, VERDICTS, "dest", DEADLINE_S)
    value = {"text": collected_text(proof, verdict), "time_s": DEADLINE_S + 2}
    return vector(value, verdict=verdict.data.decode())


def verdict_proof(verdict: Verdict, key: VerifierKey, who: str, first_s: int) -> LogProof:
    """Return the proof of a verdict; witnesses sign one second after the other."""
    log = SmallLog(EVENT, 0, [b"a" * 200, verdict.data])
    checkpoint = Checkpoint(key.name, 2, tree_root(2, log.node))
    note = sign_checkpoint(checkpoint, key_of(who))
    lines = [cosign(note.text, first_s + i, w, key_of(w)) for i, w in enumerate(witness_names())]
    whole = SignedCheckpoint(checkpoint, note.with_more(*lines))
    return LogProof(1, (leaf_hash(b"a" * 200),), whole)


def of_people() -> dict[str, Any]:
    receipt = Receipt(
        COMMITMENT,
        (acknowledge(LOG.name, ENTRY, 1, TIME_S, key_of("s0")),),
        (SERVICE_LOG.proof(ENTRY, TIMES_S),),
        bistro_receipts=(bistro_receipt().signed(key_of("north")),),
        collected=of_verdicts()["collected"]["value"]["text"],
    )
    late = LogProof.parse(SERVICE_LOG.proof(ENTRY, late_times()).data)
    return {
        "keep_tail": vector(
            text64(keep_tail()), json=keep_json(), what_stands_before=SEALED.decode()
        ),
        "receipt": vector(
            {"outcome": "in time", "time_s": TIME_S + 2, "collected_s": DEADLINE_S + 2},
            file=receipt.data.decode(),
        ),
        "late_receipt": vector(
            {
                "outcome": "late",
                "outcome_with_the_amendments": "in time",
                "time_s": DEADLINE_S + 3600,
                "collected_s": None,
            },
            file=Receipt(COMMITMENT, proofs=(late,)).data.decode(),
        ),
    }


def late_times() -> dict[str, int]:
    return dict.fromkeys(witness_names(), DEADLINE_S + 3600)


def keep_json() -> str:
    """Return what stands behind the sealed file, by the page; whether it is so, a test says."""
    tree = {
        "event": EVENT.id.hex(),
        "salt": SALT.hex(),
        "header": HEADER.decode(),
        "secret": SECRET.hex(),
        "ticket_signature": HAND_IN.hex(),
        "owner_seed": OWNER.seed.hex(),
        "ticket": TICKET.token,
        "ticket_seed": TICKET.seed.hex(),
        "size": len(SEALED),
        "ciphertext_sha256": SEALED_SHA256.hex(),
        "content_p": P.hex(),
        "file": {"bytes": len(CONTENT), "mtime_ns": 1_800_000_000_123_456_789},
    }
    return json.dumps(tree, separators=(",", ":"))


def keep_tail() -> bytes:
    told = keep_json().encode()
    end = hashlib.sha256(told).digest() + len(told).to_bytes(4, "big")
    return told + end + b"datacollect-keep/2\n"


# Tests ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def test_the_file_holds_what_the_library_makes(vectors):
    """After a change that is meant: python tests/bistro/formats/test_vectors.py writes it anew."""
    now = made()
    assert vectors.keys() == now.keys()
    for name, found in now.items():
        assert vectors[name] == found, name


def lines(*values: object) -> str:
    return "".join(f"{value}\n" for value in values)


def push_by_the_page(i: dict[str, Any]) -> str:
    said = (i[name] for name in ("event", "bistro_key", "entry", "sha256", "size", "ticket"))
    return lines("datacollect-push/2", *said)


def sealed_by_the_page(i: dict[str, Any]) -> str:
    told = {name: i[name] for name in ("header", "secret", "ticket_signature")}
    head = json.dumps(told, separators=(",", ":")).encode()
    begins = b"datacollect-sealed/2\n" + len(head).to_bytes(4, "big")
    return text64(begins + head + i["file"].encode())


def opened_by_the_page(i: dict[str, Any]) -> dict[str, str]:
    secret, header, file = bytes.fromhex(i["secret"]), i["header"].encode(), i["file"].encode()
    names = ("key", "name", "ticket", "content_p")
    values = (*judge.opening_of(secret, header), judge.content_of(secret, header, file))
    return {name: value.hex() for name, value in zip(names, values, strict=True)}


def proof_by_the_page(i: dict[str, Any]) -> dict[str, str]:
    found = opened_by_the_page(i)
    content_p = found.pop("content_p")
    told = {"format": "datacollect-proof/1", "entry": i["entry"], **found}
    return {"file": json.dumps(told, separators=(",", ":")) + "\n", "content_p": content_p}


def several_by_the_page(i: dict[str, Any]) -> dict[str, Any]:
    body = b""
    for each in i["files"]:
        name, file = each["name"].encode(), each["file"].encode()
        body += len(name).to_bytes(4, "big") + name + len(file).to_bytes(8, "big") + file
    found = judge.list_of(bytes.fromhex(i["secret"]), i["header"].encode(), body)
    proofs = []
    for index, row in enumerate(found["files"]):
        told = {"format": "datacollect-proof/2", "entry": i["entry"]}
        told |= {"key": row["key"].hex(), "name": row["name"].hex()}
        told |= {"ticket": found["ticket"].hex(), "index": index, "count": len(i["files"])}
        told["path"] = [each.hex() for each in row["path"]]
        proofs.append(json.dumps(told, separators=(",", ":")) + "\n")
    return {
        "body": text64(body),
        "keys": [each["key"].hex() for each in found["files"]],
        "names": [each["name"].hex() for each in found["files"]],
        "codes": [each["code"].hex() for each in found["files"]],
        "ticket": found["ticket"].hex(),
        "root": found["root"].hex(),
        "content_p": found["content_p"].hex(),
        "proofs": proofs,
    }


def vkey_by_the_page(i: dict[str, Any], kind: int) -> str:
    key = bytes([kind]) + judge.public_key(i["key"])
    key_id = hashlib.sha256(i["name"].encode() + b"\n" + key).hexdigest()[:8]
    return f"{i['name']}+{key_id}+{text64(key)}"


# The page's words, in a line each: of the inputs of a vector.
BY_THE_PAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    "event": lambda i: hashlib.sha256(i["file"].encode()).hexdigest(),
    "content_code": lambda i: hmac.new(
        bytes.fromhex(i["secret"]),
        b"datacollect-content/1\n"
        + len(i["header"].encode()).to_bytes(4, "big")
        + (i["header"] + i["file"]).encode(),
        "sha256",
    ).hexdigest(),
    "opened_content": opened_by_the_page,
    "opened_content_without_ticket": opened_by_the_page,
    "proof_file": proof_by_the_page,
    **dict.fromkeys(SEVERAL, several_by_the_page),
    "entry": lambda i: judge.entry_of(i).hex(),
    "entry_without_mark": lambda i: judge.entry_of(i).hex(),
    "mark": lambda i: judge.mark_of(
        key_of("dest").seed,
        public_key_bytes(TICKET.key.public),
        bytes.fromhex(i["event"]),
        bytes.fromhex(i["entry"]),
    ).hex(),
    "entry_of_version_1": lambda i: judge.entry_of(i).hex(),
    "sealed_plaintext": sealed_by_the_page,
    "sealed_plaintext_without_ticket": sealed_by_the_page,
    "ticket_revoked_by": lambda i: hashlib.sha256(i["token"].encode()).hexdigest(),
    "verifier_key_of_a_log": lambda i: vkey_by_the_page(i, 1),
    "verifier_key_of_a_witness": lambda i: vkey_by_the_page(i, 4),
    "batch_row": lambda i: "".join(
        value.to_bytes(8, "big").hex() if isinstance(value, int) else value for value in i.values()
    ),
    "segment_index_row": lambda i: b"".join(each.to_bytes(8, "big") for each in i.values()).hex(),
    "verdicts": lambda i: [
        lines("datacollect-verdict/1", i["event"], i["entry"], word) for word in i["words"]
    ],
}
LINES_BY_THE_PAGE: dict[str, Callable[[dict[str, Any]], str]] = {
    "commit_statement": lambda i: lines(
        "datacollect-commit/2", i["event"], i["log_key"], *i["entries"]
    ),
    "push_statement_of_the_owner": push_by_the_page,
    "push_statement_of_the_ticket": push_by_the_page,
    "give_up_statement": lambda i: lines(
        "datacollect-give-up/2", i["event"], i["bistro_key"], i["upload"]
    ),
    "hand_in_statement": lambda i: lines(
        "datacollect-hand-in/2", i["event"], i["salt"], i["owner"]
    ),
}


@pytest.mark.parametrize("name", BY_THE_PAGE)
def test_values_are_what_the_page_says(vectors, name):
    assert BY_THE_PAGE[name](vectors[name]["inputs"]) == vectors[name]["value"]


@pytest.mark.parametrize("name", LINES_BY_THE_PAGE)
def test_statements_are_what_the_page_says_and_signed(vectors, name):
    inputs, value = vectors[name]["inputs"], vectors[name]["value"]
    assert LINES_BY_THE_PAGE[name](inputs) == value["lines"]
    key = judge.public_key(vectors["keys"][inputs["by"]]["key"])
    assert judge.is_signed(key, base64.b64decode(value["signature"]), value["lines"].encode())


@pytest.mark.parametrize("name", ["ticket_token", "bistro_receipt_token"])
def test_tokens_say_their_claims(vectors, name):
    inputs, token = vectors[name]["inputs"], vectors[name]["value"]
    key = judge.public_key(vectors["keys"][inputs["by"]]["key"])
    assert judge.claims_of(token, key, inputs["assertion"]) == inputs["claims"]
    with pytest.raises(ValueError, match="not as the page says"):
        judge.claims_of(token, key, "datacollect-another/1")


def test_tokens_count_for_the_library(vectors):
    found = admitted(vectors["ticket_token"]["value"], EVENT, TIME_S)
    assert (found.id, found.key) == ("1".zfill(32), vectors["keys"]["ticket"]["key"])
    assert found.token_sha256.hex() == vectors["ticket_revoked_by"]["value"]
    token = vectors["bistro_receipt_token"]["value"]
    assert read_bistro_receipt(token, EVENT) == bistro_receipt()


def test_words_of_logs_count(vectors):
    event = judge.event_of(vectors["event"]["inputs"]["file"].encode())
    word = vectors["acknowledgement"]
    entry = bytes.fromhex(word["inputs"]["entry"])
    assert judge.acknowledges(word["value"], entry, event)
    logs, given = event["logs"], vectors["checkpoint"]
    text, signatures = judge.note_of(given["value"])
    origin = given["inputs"]["origin"]
    assert text == lines(*(given["inputs"][name] for name in ("origin", "size", "root")))
    assert judge.is_by(origin, logs[origin], text, signatures)
    line = vectors["cosignature_line"]
    _, signed_at = judge.note_of(line["inputs"]["checkpoint"] + "\n" + line["value"])
    witness = event["witnesses"]["w0.example"]
    time_s = judge.witness_time("w0.example", witness, text, signed_at)
    assert time_s == line["inputs"]["time_s"]


def test_the_tree_and_the_proof_lead_to_the_root(vectors):
    event = judge.event_of(vectors["event"]["inputs"]["file"].encode())
    tree, proof = vectors["tree"], vectors["proof"]
    leaf = bytes.fromhex(tree["inputs"]["entries"][1])
    path = [bytes.fromhex(each) for each in tree["value"]["path_of_1"]]
    assert judge.root_of(leaf, 1, 3, path).hex() == tree["value"]["root"]
    found = judge.proof_of(proof["value"]["text"])
    assert found[:2] == (1, path)
    assert judge.time_of(found, leaf, event["logs"], event) == proof["value"]["time_s"]
    times_s = sorted(proof["inputs"]["signed_at_s"].values())
    assert times_s[proof["inputs"]["quorum"] - 1] == proof["value"]["time_s"]


@pytest.mark.parametrize("name", ["collected", "collected_again"])
def test_what_was_collected_is_proved(vectors, name):
    event = judge.event_of(vectors["event"]["inputs"]["file"].encode())
    value = vectors[name]["value"]
    assert judge.collected_of(value["text"], ENTRY, event) == value["time_s"]
    receipt = read_receipt(Receipt(COMMITMENT, collected=value["text"]).data)
    assert verify(EVENT_FILE, receipt).collected_s == value["time_s"]


@pytest.mark.parametrize(
    ("name", "time", "time_without"),
    [
        ("before", "before_time_s", "before_time_s"),
        ("too_late", None, "ended_s"),
        ("by_it", "by_it_time_s", None),
    ],
)
def test_succeeded_log_proves_what_it_had_proved(vectors, name, time, time_without):
    """Nobody who has not seen the amendment knows of either that it does, or does not, count."""
    event_file = vectors["event"]["inputs"]["file"].encode()
    value = vectors["successor"]["value"]
    receipt = Receipt(COMMITMENT, collected=value[name])
    later = 1 if name == "too_late" else 0
    wanted = {
        value["file"].encode(): time and value[time],
        None: time_without and value[time_without] + later,
    }
    for given, collected_s in wanted.items():
        assert judge.verdict(event_file, receipt.data, given)[2] == collected_s
        published = None if given is None else read_amendments(given, EVENT.id)
        assert verify(event_file, receipt, amendments=published).collected_s == collected_s


@pytest.mark.parametrize("name", ["receipt", "late_receipt"])
def test_receipts_prove_what_is_said(vectors, name):
    event_file = vectors["event"]["inputs"]["file"].encode()
    data, value = vectors[name]["inputs"]["file"].encode(), vectors[name]["value"]
    amendments_file = vectors["amendments"]["value"]["file"].encode()
    moved = value.get("outcome_with_the_amendments", value["outcome"])
    for given, outcome in ((None, value["outcome"]), (amendments_file, moved)):
        wanted = (outcome, value["time_s"], value["collected_s"])
        assert judge.verdict(event_file, data, given) == wanted
        published = None if given is None else read_amendments(given, EVENT.id)
        found = verify(event_file, read_receipt(data), amendments=published)
        assert (found.outcome, found.time_s, found.collected_s) == wanted
        if given:
            assert found.deadline_s == vectors["amendments"]["value"]["deadline_s"]


def test_an_amendment_counts_from_when_a_log_had_published_it(vectors):
    given = read_amendments(vectors["amendments"]["value"]["file"].encode(), EVENT.id)
    (found,) = published(EVENT, given, [])
    assert found.published_s == DEADLINE_S + 60


def test_batches_and_notes_are_read(vectors):
    batch = vectors["batch"]
    inputs, value = batch["inputs"], batch["value"]
    rows = bytes.fromhex(inputs["rows"])
    text, signatures = judge.note_of(value["note"])
    event = vectors["event"]["value"]
    digest = hashlib.sha256(rows).hexdigest()
    assert text == lines(
        *("datacollect-batch/2", event, "north", 0, inputs["previous"], inputs["time_s"]),
        *(inputs["n_segments"], 1, digest),
    )
    key = judge.public_key(vectors["keys"]["north"]["key"])
    assert judge.is_by(f"bistro/{event[:16]}", key, text, signatures)
    assert hashlib.sha256(text.encode()).hexdigest() == value["digest"]
    note = value["note"].encode()
    assert base64.b64decode(value["file"]) == len(note).to_bytes(4, "big") + note + rows
    assert read_batch(base64.b64decode(value["file"]), EVENT).digest.hex() == value["digest"]


def test_what_is_covered_is_signed_by_the_log_of_verdicts(vectors):
    covered = vectors["covered_note"]
    inputs = covered["inputs"]
    text, signatures = judge.note_of(covered["value"])
    names = ("event", "bistro", "log_size", "n_batches", "segments", "time_s")
    assert text == lines("datacollect-covered/2", *(inputs[name] for name in names))
    key = judge.public_key(vectors["keys"]["dest"]["key"])
    assert judge.is_by(inputs["name"], key, text, signatures)
    assert read_covered(covered["value"].encode(), EVENT).segments == (range(5), range(7, 8))


def test_verdicts_are_read(vectors):
    for text, (word, why) in zip(vectors["verdicts"]["value"], VERDICT_WORDS, strict=True):
        found = read_verdict(text.encode(), EVENT.id)
        assert (found.word, found.why) == (word, why)


def test_a_keep_is_read_by_its_tail(vectors, tmp_path):
    given = vectors["keep_tail"]
    told, tail = given["inputs"]["json"].encode(), base64.b64decode(given["value"])
    end = hashlib.sha256(told).digest() + len(told).to_bytes(4, "big") + b"datacollect-keep/2\n"
    assert tail == told + end
    file = tmp_path / "a.keep"
    file.write_bytes(given["inputs"]["what_stands_before"].encode() + tail)
    kept = read_keep(file)
    assert (kept.inner.secret, kept.owner.seed, kept.ticket) == (SECRET, OWNER.seed, TICKET)


def test_nothing_has_no_judge():
    """What is new in the file is held against the page's words, too."""
    others = {
        *("about", "keys", "acknowledgement", "checkpoint", "cosignature_line", "tree", "proof"),
        *("ticket_token", "bistro_receipt_token", "collected", "collected_again", "amendments"),
        "successor",
        *("receipt", "late_receipt", "batch", "covered_note", "keep_tail"),
    }
    assert made().keys() == others | BY_THE_PAGE.keys() | LINES_BY_THE_PAGE.keys()


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), indent=1, ensure_ascii=False) + "\n")
