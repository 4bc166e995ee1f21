"""The library's judgement of receipts beside that of a verifier written from the page alone.

`tests/judges/bistro_verifier.py` imports nothing of the library. Honest receipts are changed in
many ways, and both must say the same of each: outcome, time, and time at which it was collected; or
both must refuse it.
"""

from __future__ import annotations

import base64
import copy
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from instances.custody import CHANGES, commitment_of, older_event_bytes, word_of
from instances.events import DEADLINE_S, event_bytes, key_of, ticket_of, witness_names
from instances.how_many import many
from instances.logs import SmallLog
from judges import bistro_verifier

from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt, read_bistro_receipt
from datacollect.bistro.formats.custody.collected import collected_text
from datacollect.bistro.formats.custody.verdicts import COLLECTED, REFUSED, Verdict
from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.tickets import admitted
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    log_key,
    sign_checkpoint,
)
from datacollect.bistro.formats.log.notes import NoteSignature, VerifierKey
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import inclusion_proof, tree_root
from datacollect.bistro.formats.receipt.receipt import (
    PublishedAmendment,
    Receipt,
    amendments_data,
    read_amendments,
    read_receipt,
)
from datacollect.bistro.formats.receipt.verify import verify
from datacollect.errors import ProblemError, TicketError

LATEST_S = DEADLINE_S + 10
DAY_S = 86_400
# Events by what is unlike in them: version 1, another quorum, another lag, no log of verdicts.
EVENT_FILES = {
    "tickets": event_bytes(**CHANGES),
    "older": older_event_bytes(),
    "two of three": event_bytes(**CHANGES, quorum=2, lag_s=0, n_witnesses=3),
    "all of four": event_bytes(**CHANGES, quorum=4, admission="open"),
    "without verdicts": event_bytes(),
}
REFUSED_BY_BOTH = "refused"


@dataclass
class Case:
    """What a verifier is given; the tree of the receipt is what changes."""

    event_file: bytes
    entry: bytes
    receipt: dict[str, Any]
    amendments: dict[str, Any] | None = None
    # Instead of the trees.
    data: bytes | None = None

    @property
    def receipt_file(self) -> bytes:
        return json.dumps(self.receipt).encode() if self.data is None else self.data

    @property
    def amendments_file(self) -> bytes | None:
        return None if self.amendments is None else json.dumps(self.amendments).encode()


def by_the_library(case: Case) -> object:
    try:
        event = read_event(case.event_file)
        receipt = read_receipt(case.receipt_file)
        given = case.amendments_file
        amendments = None if given is None else read_amendments(given, event.id)
        found = verify(case.event_file, receipt, amendments=amendments)
    except ProblemError:
        return REFUSED_BY_BOTH
    return found.outcome, found.time_s, found.collected_s


def by_the_page(case: Case) -> object:
    try:
        return bistro_verifier.verdict(case.event_file, case.receipt_file, case.amendments_file)
    except ValueError:
        return REFUSED_BY_BOTH


# Honest receipts --------------------------------------------------------------------------------


def witness_times(chance: random.Random, n: int) -> dict[str, int]:
    """Return when witnesses sign: around a time, some far off, some not at all."""
    about_s = chance.choice([0, 1000, LATEST_S - 1, LATEST_S, LATEST_S + 1, LATEST_S + DAY_S])
    odd = [0, LATEST_S, LATEST_S + 1, 2**34 - 1, 2**34, 2**63, 2**64 - 1]
    times = {}
    for name in witness_names(n):
        kind = chance.random()
        if kind < 0.85:
            times[name] = about_s + chance.choice([0, 0, 1, 2])
        elif kind < 0.95:
            times[name] = chance.choice(odd)
    return times


def proof_in(
    event: Event, chance: random.Random, leaf: bytes, origin: str, who: str, times: dict[str, int]
) -> LogProof:
    """Return a proof of a leaf, among others, in a log of that origin."""
    n_before, n_after = chance.choice([(0, 0), (0, 1), (1, 0), (2, 3), (6, 1), (8, 8), (12, 0)])
    others = [chance.randbytes(32) for _ in range(n_before + n_after)]
    log = SmallLog(event, 0, [*others[:n_before], leaf, *others[n_before:]])
    head = Checkpoint(origin, len(log.entries), tree_root(len(log.entries), log.node))
    note = sign_checkpoint(head, key_of(who))
    lines = [cosign(note.text, t, name, key_of(name)) for name, t in times.items()]
    path = inclusion_proof(n_before, len(log.entries), log.node)
    return LogProof(n_before, tuple(path), SignedCheckpoint(head, note.with_more(*lines)))


def in_service(event: Event, chance: random.Random, leaf: bytes) -> LogProof:
    which = chance.randrange(len(event.services))
    times = witness_times(chance, len(event.witnesses))
    return proof_in(event, chance, leaf, event.services[which].log.name, f"s{which}", times)


def collected_by(event: Event, chance: random.Random, entry: bytes) -> str | None:
    """Return what the log of verdicts proves of an entry; mostly that it was collected."""
    if event.verdicts is None or chance.random() < 0.2:
        return chance.choice([None, "nothing"])
    word = chance.choice([COLLECTED, COLLECTED, COLLECTED, REFUSED])
    why = {REFUSED: "is late"}.get(word, chance.choice(["", "ab" * 32]))
    verdict = Verdict(event.id, entry, word, why)
    times = witness_times(chance, len(event.witnesses))
    log, who = chance.choice(
        [(event.verdicts, "dest"), (event.verdicts, "dest")]
        + [(successor(number), f"dest{number}") for number in (1, 2)]
    )
    proof = proof_in(event, chance, verdict.data, log.name, who, times)
    return collected_text(proof, verdict) if word == COLLECTED else proof.data.decode()


def successor(number: int) -> VerifierKey:
    """Return the log of verdicts that the amendment of a number names."""
    return log_key(f"dest.example/{number:016}", key_of(f"dest{number}").public)


def extension(event: Event, chance: random.Random, number: int) -> PublishedAmendment:
    """Return an amendment that moves the deadline, adds nothing, or is not published."""
    later = f"2027-04-{chance.choice([16, 17, 18])}T23:59:59-04:00"
    changes = chance.choice([{"deadline": later}, {"deadline": later}, {"revoked": ["ab" * 32]}])
    if event.verdicts is not None and chance.random() < 0.4:
        changes = changes | {"verdicts": {"log": successor(number).text}}
    if chance.random() < 0.2:
        changes = changes | {"cancelled": "no room"}
    note = sign_amendment(event, changes, number, key_of("organiser"))
    proofs = [in_service(event, chance, note) for _ in range(chance.choice([0, 1, 1, 2]))]
    return PublishedAmendment(note, tuple(proofs))


@cache
def honest(kind: str, seed: int) -> Case:
    """Return a receipt as the library writes it, and perhaps amendments."""
    chance = random.Random(f"{kind} {seed}")
    event = read_event(EVENT_FILES[kind])
    commitment = commitment_of(event, f"{chance.randrange(3)}")
    receipt = Receipt(
        commitment,
        acknowledgements=tuple(
            acknowledge(event.services[i].log.name, commitment.entry, i, 100 + i, key_of(f"s{i}"))
            for i in range(chance.randrange(3))
        ),
        proofs=tuple(
            in_service(event, chance, commitment.entry)
            for _ in range(chance.choice([0, 1, 1, 2, 3]))
        ),
        tokens=(b"token",) * chance.randrange(2),
        bistro_receipts=tuple(
            word_of(event, event.bistros[0].name, commitment, 3)
            for _ in event.bistros[: chance.randrange(2)]
        ),
        collected=collected_by(event, chance, commitment.entry),
    )
    case = Case(EVENT_FILES[kind], commitment.entry, json.loads(receipt.data))
    n_amendments = chance.choice([None, 0, 1, 2])
    if n_amendments is not None and event.is_signed_for:
        notes = [extension(event, chance, i + 1) for i in range(n_amendments)]
        case.amendments = json.loads(amendments_data(event.id, notes))
    return case


# Changes ----------------------------------------------------------------------------------------

Change = Callable[[Case, random.Random], None]
ODD = [None, "", "x", 0, -1, 1, 1.0, 2**63, 2**63 - 1, True, "11", "11 B", [], [None], {}, "\ud800"]


def nothing(_: Case, __: random.Random) -> None:
    """Leave it as it is."""


def a_field(case: Case, chance: random.Random) -> None:
    """Put another value into a field of the receipt, leave it out, or add one."""
    tree = case.receipt
    name = chance.choice([*tree])
    how = chance.randrange(6)
    if how == 0:
        del tree[name]
    elif how == 1:
        tree[name + chance.choice(["", "s", " "])] = chance.choice(ODD)
    elif how == 2 and isinstance(tree[name], str):
        tree[name] = chance.choice([tree[name].upper(), tree[name][1:], tree[name] + "0", " "])
    elif how == 3 and isinstance(tree[name], str):
        tree[name] = chance.randbytes(32).hex()
    elif how == 4 and isinstance(tree[name], int):
        tree[name] += chance.choice([-1, 1, 2**32, 0.0])
    else:
        tree[name] = chance.choice(ODD)


def an_item(case: Case, chance: random.Random) -> None:
    """Change an item of a list of the receipt, or how many there are."""
    items = case.receipt[chance.choice(["acknowledgements", "proofs", "tokens", "bistro_receipts"])]
    if not items or chance.random() < 0.2:
        items.append(chance.choice(ODD))
        return
    i = chance.randrange(len(items))
    how = chance.randrange(4)
    if how == 0:
        items += copy.deepcopy(items)
    elif how == 1:
        del items[i]
    elif how == 2 and isinstance(items[i], dict):
        items[i][chance.choice([*items[i], "more"])] = chance.choice(ODD)
    elif how == 3 and isinstance(items[i], dict):
        del items[i][chance.choice([*items[i]])]
    else:
        items[i] = chance.choice(ODD)


def bytes_of_the_file(case: Case, chance: random.Random) -> None:
    """Change, add or take out bytes of the receipt's file."""
    data = bytearray(case.receipt_file)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        new = bytes(
            chance.choice(b'0aA"\\{}[],: \n=+/\xc3\x00') for _ in range(chance.randrange(3))
        )
        data[at : at + chance.randrange(3)] = new
    case.data = bytes(data)


def how_json_is_written(case: Case, chance: random.Random) -> None:
    """Write the same receipt in another way, or give a key twice."""
    tree = case.receipt
    shuffled = dict(sorted(tree.items(), key=lambda _: chance.random()))
    case.data = chance.choice(
        [
            json.dumps(shuffled, indent=chance.randrange(4)).encode(),
            b"\xef\xbb\xbf" + case.receipt_file,
            case.receipt_file + chance.choice([b"\n \n", b"x", b"{}"]),
            case.receipt_file.replace(b'"size"', b'"size": 1, "size"', 1),
            case.receipt_file.replace(b'"index"', b'"index": 1, "index"', 1),
            b"[" + case.receipt_file + b"]",
        ]
    )


def proof_texts(case: Case) -> list[tuple[Any, Any]]:
    """Return where texts of proofs stand: holders and keys."""
    places: list[tuple[Any, Any]] = [(case.receipt["proofs"], i) for i in range(9)]
    places = places[: len(case.receipt["proofs"])]
    if case.receipt["collected"]:
        places.append((case.receipt, "collected"))
    for row in (case.amendments or {}).get("amendments", []):
        places += [(row["proofs"], i) for i in range(len(row["proofs"]))]
    return places


def letters_of_a_proof(case: Case, chance: random.Random) -> None:
    """Change, add or take out letters of a proof."""
    for holder, key in chance.sample(proof_texts(case), min(1, len(proof_texts(case)))):
        text = holder[key]
        at = chance.randrange(len(text) + 1)
        new = "".join(
            chance.choice("0aA=+/ \n\t\r—é\x7f\u2003") for _ in range(chance.randrange(3))
        )
        holder[key] = text[:at] + new + text[at + chance.randrange(3) :]


def lines_of_a_proof(case: Case, chance: random.Random) -> None:
    """Change lines of a proof: in another order, twice, left out, added, numbers counted on."""
    for holder, key in chance.sample(proof_texts(case), min(1, len(proof_texts(case)))):
        lines = holder[key].split("\n")
        i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
        how = chance.randrange(6)
        if how == 0:
            lines[i], lines[j] = lines[j], lines[i]
        elif how == 1:
            lines.insert(i, lines[j])
        elif how == 2:
            del lines[i]
        elif how == 3:
            extra = base64.b64encode(chance.randbytes(chance.choice([0, 3, 31, 32, 33]))).decode()
            again = base64.b64encode(b"\xab" * 32).decode()
            odd = again[:-2] + chr(ord(again[-2]) + 1) + "="
            said = chance.choice([extra, again, odd, "", "x y", "\x00"])
            lines[1 : 1 + chance.randrange(2)] = [f"extra {said}"]
        elif how == 4:
            number = next((n for n, line in enumerate(lines) if line.startswith("index ")), 0)
            moved = chance.choice(["index 0", "index 1", "index 00", "index -1", f"index {2**63}"])
            lines[number] = moved
        else:
            gap = lines.index("") if "" in lines else 0
            lines[gap:gap] = [
                chance.choice([lines[i], base64.b64encode(bytes(32)).decode(), "AA=="])
            ]
        holder[key] = "\n".join(lines)


def signatures_of_a_proof(case: Case, chance: random.Random) -> None:
    """Sign a proof's checkpoint in other ways: other times, names, keys, twice, forged."""
    for holder, key in chance.sample(proof_texts(case), min(1, len(proof_texts(case)))):
        try:
            proof = LogProof.parse(holder[key].encode())
        except ProblemError:
            return
        note, text = proof.signed.note, proof.signed.note.text
        lines = list(note.signatures)
        name = chance.choice(witness_names(4))
        time_s = chance.choice([0, LATEST_S, LATEST_S + 1, 2**34 - 1, 2**34, 2**64 - 1])
        good = cosign(text, time_s, name, key_of(name))
        signer = chance.choice(["s0", "s1", "dest", "w0.example", "organiser"])
        as_log = sign_checkpoint(proof.signed.checkpoint, key_of(signer)).signatures[0]
        forged = replace(lines[0], signature=bytes(64))
        new = chance.choice(
            [
                good,
                replace(good, name="w9.example"),
                replace(good, key_id=bytes(4)),
                replace(good, signature=good.signature[:8] + bytes(64)),
                replace(good, signature=good.signature[:-1]),
                replace(good, signature=bytes(8) + good.signature[8:]),
                cosign(text, time_s, "w9.example", key_of(name)),
                cosign(text, time_s, name, key_of("nobody")),
                cosign(text + "x", time_s, name, key_of(name)),
                as_log,
                forged,
                replace(forged, key_id=bytes(4)),
                replace(forged, name=name),
                NoteSignature(name, good.key_id, key_of(name).sign(text.encode())),
            ]
        )
        how = chance.randrange(4)
        if how == 0:
            lines[chance.randrange(len(lines))] = new
        elif how == 1:
            lines.insert(chance.randrange(len(lines) + 1), new)
        elif how == 2:
            del lines[chance.randrange(len(lines))]
        else:
            lines = [*lines, new, good]
            chance.shuffle(lines)
        again = replace(
            proof, signed=replace(proof.signed, note=replace(note, signatures=tuple(lines)))
        )
        beginning, _, _ = holder[key].partition("\n\n")
        holder[key] = beginning + "\n\n" + again.signed.note.data.decode()


def a_head_of_its_own(case: Case, chance: random.Random) -> None:
    """Prove the entry in a log of another origin or key, or by another checkpoint of the log."""
    event = read_event(case.event_file)
    entry = case.entry
    origins = [each.log.name for each in event.services]
    if event.verdicts is not None:
        origins.append(event.verdicts.name)
    who = chance.choice(["s0", "s1", "dest", "w0.example"])
    times = dict.fromkeys(witness_names(len(event.witnesses)), 1000)
    leaf = chance.choice([entry, entry, entry.hex().encode(), entry[:31], b"\0" + entry])
    proof = proof_in(event, chance, leaf, chance.choice([*origins, "else.example/1"]), who, times)
    text = proof.data.decode()
    if chance.random() < 0.3:
        size = proof.signed.checkpoint.size
        text = text.replace(f"\n{size}\n", f"\n{size + 1}\n")
    case.receipt["proofs"].insert(0, text)


def proofs_swapped(case: Case, chance: random.Random) -> None:
    """Put proofs where others belong: of another receipt, of a verdict, of an amendment."""
    other = copy.deepcopy(honest(chance.choice([*EVENT_FILES]), chance.randrange(40)))
    places, others = proof_texts(case), proof_texts(other)
    if not places:
        return
    holder, key = chance.choice(places)
    taken, name = chance.choice([*places, *others])
    holder[key], taken[name] = taken[name], holder[key]
    if chance.random() < 0.2:
        case.receipt["collected"] = chance.choice(["", *case.receipt["proofs"]])


def another_kind(case: Case, chance: random.Random) -> None:
    """Say that the receipt is of another version, owner or event."""
    tree = case.receipt
    changes: list[dict[str, Any]] = [
        {"format": f"datacollect-receipt/{chance.choice([1, 2, 3])}"},
        {"owner": chance.choice([None, bytes(32).hex(), chance.randbytes(32).hex()])},
        {"event": read_event(EVENT_FILES[chance.choice([*EVENT_FILES])]).id.hex()},
        {"format": "datacollect-receipt/1", "owner": None},
    ]
    tree |= chance.choice(changes)
    if chance.random() < 0.4:
        tree.pop("owner", None)


def another_event(case: Case, chance: random.Random) -> None:
    """Give the file of another event, or one whose bytes were changed."""
    data = case.event_file
    case.event_file = chance.choice(
        [
            EVENT_FILES[chance.choice([*EVENT_FILES])],
            data.replace(b"\n", b"\r\n"),
            data + b"\n",
            data.replace(b"quorum = 3", b"quorum = 4"),
            data.replace(b"datacollect-event/2", b"datacollect-event/1"),
        ]
    )


def the_amendments(case: Case, chance: random.Random) -> None:
    """Change an amendment: its text, signature, proofs, or what the file of them says."""
    event = read_event(case.event_file)
    if case.amendments is None or not case.amendments["amendments"]:
        if not event.is_signed_for:
            return
        published = extension(event, chance, 1)
        case.amendments = json.loads(amendments_data(event.id, [published]))
    rows = case.amendments["amendments"]
    row = chance.choice(rows)
    elsewhere = read_event(EVENT_FILES["two of three"])
    other = sign_amendment(elsewhere, {"revoked": []}, 1, key_of("organiser")).decode()
    line = row["note"].rsplit("\n", 2)[1]
    new: list[dict[str, Any]] = [
        {"note": row["note"].replace("number = ", "number = 1")},
        {"note": row["note"] + line + "\n"},
        {"note": row["note"] + line.replace("organiser", "another") + "\n"},
        {"note": other},
        {"note": row["note"][:-1]},
        {"note": chance.choice(ODD)},
        {"proofs": []},
        {"proofs": chance.choice(ODD)},
        {"proofs": case.receipt["proofs"]},
        {"proofs": [in_service(event, chance, row["note"].encode()).data.decode()]},
        {
            "proofs": [
                in_service(event, chance, row["note"].split("\n\n")[0].encode()).data.decode()
            ]
        },
        {"more": 1},
    ]
    row |= chance.choice(new)
    if chance.random() < 0.2:
        name = chance.choice([*case.amendments])
        case.amendments[name] = chance.choice([*ODD, event.id.hex()])
    if chance.random() < 0.1:
        case.amendments.pop(chance.choice([*case.amendments]))


CHANGES_OF_CASES: list[Change] = [
    nothing,
    a_field,
    an_item,
    bytes_of_the_file,
    how_json_is_written,
    letters_of_a_proof,
    lines_of_a_proof,
    signatures_of_a_proof,
    a_head_of_its_own,
    proofs_swapped,
    another_kind,
    another_event,
    the_amendments,
]


def changed(seed: int) -> tuple[str, Case]:
    """Return the case of a number, and what was changed in it."""
    chance = random.Random(seed)
    change = CHANGES_OF_CASES[seed % len(CHANGES_OF_CASES)]
    case = copy.deepcopy(honest(chance.choice([*EVENT_FILES]), chance.randrange(40)))
    # Some have two things changed: what is wrong by one of them hides nothing of the other.
    first = chance.choice([nothing, nothing, signatures_of_a_proof, lines_of_a_proof])
    first(case, chance)
    change(case, chance)
    return f"{first.__name__}, {change.__name__}", case


def judged(seeds: range) -> Counter[object]:
    """Return how often each outcome came; both judges have said the same each time."""
    outcomes: Counter[object] = Counter()
    for seed in seeds:
        what, case = changed(seed)
        ours, theirs = by_the_library(case), by_the_page(case)
        assert ours == theirs, (seed, what, ours, theirs)
        outcomes[ours if isinstance(ours, str) else ours[0]] += 1
        outcomes["collected"] += not isinstance(ours, str) and ours[2] is not None
    return outcomes


def test_a_verifier_from_the_page_alone_says_what_the_library_says():
    outcomes = judged(range(325))
    assert min(outcomes[each] for each in ("in time", "late", "not proved", "collected")) >= 20


@pytest.mark.slow
def test_it_says_so_of_many_receipts():
    outcomes = judged(range(325, 325 + many(3500)))
    names = ("in time", "late", "not proved", "collected", REFUSED_BY_BOTH)
    assert min(outcomes[each] for each in names) >= many(200)


# What else a receipt shows ----------------------------------------------------------------------


def letters_changed(text: str, chance: random.Random) -> str:
    """Change a letter or two; half of the time none."""
    for _ in range(chance.choice([0, 0, 1, 2])):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice("Aa0_-.=+ ") + text[at + chance.randrange(2) :]
    return text


def claims_by_the_page(token: str, keys: dict[str, str], assertion: str) -> object:
    """Return what a token says by one of these keys, and whose key that is."""
    for name, key in keys.items():
        try:
            said = bistro_verifier.claims_of(token, bistro_verifier.public_key(key), assertion)
        except ValueError:
            continue
        return name, said
    return REFUSED_BY_BOTH


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_words_of_bistros_count_for_both_or_for_none(first):
    event = read_event(EVENT_FILES["tickets"])
    keys = {each.name: each.key for each in event.bistros}
    n_counted = 0
    for seed in range(1000 * first, 1000 * first + (1000 if first else 200)):
        chance = random.Random(seed)
        bistro, signer = chance.choice(["north", "south"]), chance.choice(["north", "south", "s0"])
        word = BistroReceipt(event.id, bistro, bytes(32), 1, bytes(32), bool(seed % 2), 0, seed)
        word = replace(word, event=chance.choice([event.id, event.id, bytes(32)]))
        token = letters_changed(word.signed(key_of(signer)), chance)
        found = claims_by_the_page(token, keys, "datacollect-bistro-receipt/1")
        whose, said = (None, {}) if isinstance(found, str) else found
        theirs = said.get("bistro") == whose is not None and said["event"] == event.id.hex()
        try:
            ours = read_bistro_receipt(token, event)
        except TicketError:
            assert not theirs, seed
            continue
        assert theirs, seed
        assert (ours.time_s, ours.sealed_anew) == (said["time_s"], said["sealed_anew"])
        n_counted += 1
    assert n_counted >= 10


def test_tickets_count_for_both_or_for_none():
    event = read_event(EVENT_FILES["tickets"])
    n_counted = 0
    for seed in range(200):
        chance = random.Random(seed)
        token = letters_changed(ticket_of(event, seed).token, chance)
        keys = {"organiser": event.organiser}
        theirs = claims_by_the_page(token, keys, "datacollect-event-ticket/2")
        try:
            ours = admitted(token, event, 0)
        except TicketError:
            assert theirs == REFUSED_BY_BOTH, seed
            continue
        assert not isinstance(theirs, str)
        _, said = theirs
        assert (ours.id, ours.key, said["event"]) == (said["id"], said["key"], event.id.hex())
        n_counted += 1
    assert n_counted >= 50
    other = ticket_of(event).token
    assert claims_by_the_page(other, keys, "datacollect-bistro-receipt/1") == REFUSED_BY_BOTH


def test_acknowledgements_count_for_both_or_for_none():
    data = EVENT_FILES["tickets"]
    event, tree = read_event(data), bistro_verifier.event_of(data)
    log, entry, key = event.services[0].log, b"e" * 32, key_of("s0")
    good = acknowledge(log.name, entry, 7, 100, key)
    words = [
        good,
        replace(good, index=8),
        replace(good, time_s=101),
        replace(good, log=event.services[1].log.name),
        replace(good, log="else.example/1"),
        replace(good, signature=bytes(64)),
        acknowledge(log.name, entry, 7, 100, key_of("s1")),
        acknowledge(log.name, b"f" * 32, 7, 100, key),
    ]
    for word in words:
        shown = json.loads(Receipt(commitment_of(event, "a"), (word,)).data)["acknowledgements"][0]
        theirs = bistro_verifier.acknowledges(shown, entry, tree)
        assert theirs == word.is_by(log, entry) == (word == good)
