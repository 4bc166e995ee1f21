"""Proofs of contents, by hand: what they open, and that nothing else is opened by them.

What the library says is held against HMACs that are put together here, and against the verifier
that was written from the page alone.
"""

from __future__ import annotations

import hmac
import json
import random
from dataclasses import replace

import pytest
from instances.custody import CHANGES
from instances.events import DEADLINE_S, event_bytes, marked_by, owner_of, proof_of, ticket_of
from judges import bistro_verifier as judge

from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.log.content import (
    content_code,
    content_digest,
    header_bytes,
    opening_of,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.file_list import frame
from datacollect.bistro.formats.receipt.content_proof import (
    proof_of_content,
    proofs_of_files,
    read_content_proof,
)
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.formats.receipt.verify import ShownContent, verify
from datacollect.bistro.formats.sealing.sealed import Inner
from datacollect.errors import ProblemError

DATA = event_bytes(**CHANGES)
EVENT = read_event(DATA)
TICKET = ticket_of(EVENT)
NAME, FILE = "Übung 1.txt", b"Drafts are due at noon.\n"


def header_of(name=NAME, number=TICKET.number, event=EVENT.id):
    fields = {"content": "datacollect-content/2", "event": event.hex(), "name": name}
    return header_bytes(fields | ({} if number is None else {"ticket": number.hex()}))


class HandedIn:
    """A file as its person has committed to it: header, secret, receipt, proof."""

    def __init__(self, secret=bytes(range(32)), file=FILE, header=None, salt=b"n" * 32):
        self.inner = Inner(header_of() if header is None else header, secret)
        self.content_p = content_digest(secret, self.inner.header, [file])
        parts = (salt, len(file), b"c" * 32, self.content_p, owner_of("somebody"))
        self.commitment = marked_by(EVENT, Commitment(EVENT.id, *parts))
        log = EVENT.services[0].log.name
        proof = proof_of(self.commitment.entry, log, DEADLINE_S - 60)
        self.receipt = Receipt(self.commitment, proofs=(proof,))
        self.proof = proof_of_content(self.commitment.entry, self.inner)


MINE = HandedIn()


def shows(data: bytes, receipt=MINE.receipt, file=FILE) -> bool:
    """Whether the library takes a proof for one of this receipt and this file."""
    try:
        proof = read_content_proof(data)
    except ProblemError:
        return False
    if proof.entry != receipt.entry:
        return False
    shown = ShownContent(proof.opening(EVENT.id), [file])
    return verify(DATA, receipt, content=shown).is_the_one is True


def shows_by_the_page(data: bytes, receipt=MINE.receipt, file=FILE) -> bool:
    try:
        return judge.shows(DATA, receipt.data, data, file)
    except ValueError:
        return False


def test_a_content_is_committed_to_by_these_bytes():
    """Keys of 32 bytes for file, name and number; the file's is over event, both codes and file."""
    secret = MINE.inner.secret

    def mac(key, message):
        return hmac.new(key, message, "sha256").digest()

    key, name_key, ticket_key = (
        mac(secret, b"datacollect-content-key/2\n" + what) for what in (b"file", b"name", b"ticket")
    )
    name = mac(name_key, b"\xc3\x9cbung 1.txt")
    ticket = mac(ticket_key, bytes(15) + b"\1")
    said = b"datacollect-content/2\n" + EVENT.id + name + ticket
    assert mac(key, said + FILE) == MINE.content_p
    proof = MINE.proof
    assert (proof.key, proof.name, proof.ticket) == (key, name, ticket)
    assert json.loads(proof.data) == {
        "format": "datacollect-proof/1",
        "entry": MINE.commitment.entry.hex(),
        "key": key.hex(),
        "name": name.hex(),
        "ticket": ticket.hex(),
    }
    # In pieces it is the same; without a ticket it is the code of nothing.
    assert content_digest(secret, MINE.inner.header, [FILE[:3], b"", FILE[3:]]) == MINE.content_p
    assert opening_of(secret, header_of(number=None)).ticket == mac(ticket_key, b"")


def test_a_proof_opens_its_receipt_by_the_library_and_by_the_page():
    assert shows(MINE.proof.data)
    assert shows_by_the_page(MINE.proof.data)
    assert read_content_proof(MINE.proof.data) == MINE.proof
    assert 300 <= len(MINE.proof.data) <= 340


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_each_flipped_byte_of_a_proof_is_refused():
    data = MINE.proof.data
    for at in range(len(data)):
        assert not shows(flipped(data, at, at % 8)), at


@pytest.mark.slow
def test_each_flipped_bit_of_a_proof_is_refused_by_the_library_and_by_the_page():
    """The page's verifier reads the event each time: it is shown one of eight."""
    data = MINE.proof.data
    for at in range(len(data)):
        assert not any(shows(flipped(data, at, bit)) for bit in range(8)), at
        assert not shows_by_the_page(flipped(data, at, at % 8)), at


def test_each_changed_file_is_refused():
    data = MINE.proof.data
    changed = [flipped(FILE, at, 0) for at in range(len(FILE))]
    for file in (*changed, FILE[:-1], FILE[1:], FILE + b"\0", b"", FILE * 2):
        assert not shows(data, file=file)
        assert not shows_by_the_page(data, file=file)
    # What moves from the codes into the file, or back, is something else.
    moved = MINE.proof.opening(EVENT.id).digest([b"D", FILE])
    assert moved != MINE.content_p


OTHERS = {
    "another file": HandedIn(secret=b"s" * 32, file=b"another"),
    "the same file again": HandedIn(secret=b"s" * 32),
    "the same secret, another name": HandedIn(header=header_of(name="a")),
    "the same secret, another ticket": HandedIn(header=header_of(number=bytes(16))),
    "the same secret, no ticket": HandedIn(header=header_of(number=None)),
    "the same content, another salt": HandedIn(salt=b"m" * 32),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_proof_opens_no_other_receipt(other):
    for one, receipt in ((MINE, other.receipt), (other, MINE.receipt)):
        assert not shows(one.proof.data, receipt)
        assert not shows_by_the_page(one.proof.data, receipt)
        # Nor where somebody has written the other one's entry into it, but for the same content.
        forged = replace(one.proof, entry=receipt.entry).data
        is_same = one.content_p == receipt.commitment.content
        assert shows(forged, receipt) == is_same
        assert shows_by_the_page(forged, receipt) == is_same


def test_a_proof_of_another_event_opens_nothing():
    """The event's id is in the code: with the receipt's other bytes in another event it fails."""
    opening = MINE.proof.opening(read_event(event_bytes(name="Another")).id)
    assert opening.digest([FILE]) != MINE.content_p
    # Nor is anything shown of what was sealed for another event, and committed to in this one.
    copied = HandedIn(header=header_of(event=bytes(32)))
    assert not shows(copied.proof.data, copied.receipt)
    assert not shows_by_the_page(copied.proof.data, copied.receipt)


def test_two_proofs_of_one_person_share_nothing_and_name_neither_file_nor_ticket():
    """Same ticket, name and file, another secret: no digits of one stand in the other."""
    again = HandedIn(secret=b"s" * 32)
    one, other = (json.loads(each.proof.data) for each in (MINE, again))
    assert one.keys() == other.keys()
    assert {*one.values()} & {*other.values()} == {"datacollect-proof/1"}
    told = MINE.proof.data
    for hidden in (
        *(TICKET.number.hex(), TICKET.key.public, NAME, MINE.inner.secret.hex()),
        *(MINE.commitment.salt.hex(), MINE.commitment.owner.hex()),
    ):
        assert hidden.encode() not in told
    assert MINE.proof.key.hex() not in repr(MINE.proof)
    assert MINE.proof.key.hex() not in repr(MINE.proof.opening(EVENT.id))


def test_what_a_proof_shows_tests_guesses_of_the_file_and_not_of_name_or_ticket():
    """With all that receipt and proof show, a guess of the name is as good as any other."""
    proof = MINE.proof
    opening = proof.opening(EVENT.id)
    assert opening.digest([FILE]) == MINE.content_p
    assert opening.digest([b"a wrong guess"]) != MINE.content_p
    known = (proof.entry, proof.key, proof.ticket, proof.name, MINE.commitment.salt, EVENT.id)
    for key in known:
        assert hmac.digest(key, NAME.encode(), "sha256") != proof.name
        assert hmac.digest(key, TICKET.number, "sha256") != proof.ticket


def test_headers_of_before_have_no_proof_and_the_code_that_they_had():
    header = header_bytes({"event": EVENT.id.hex(), "name": NAME, "ticket": TICKET.number.hex()})
    secret = MINE.inner.secret
    said = b"datacollect-content/1\n" + len(header).to_bytes(4, "big") + header + FILE
    by_hand = hmac.new(secret, said, "sha256").digest()
    assert content_digest(secret, header, [FILE]) == by_hand
    assert judge.content_of(secret, header, FILE) == by_hand
    assert proof_of_content(bytes(32), Inner(header, secret)) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"name"', '"nome"'),
        lambda text: text.replace('"name":"', '"name": "'),
        lambda text: text.replace(f'"{NAME}"', "7"),
        lambda text: text.replace("Ü", "\\u00dc"),
        lambda text: text.replace(EVENT.id.hex(), EVENT.id.hex().upper()),
        lambda text: text.replace(EVENT.id.hex(), ""),
        lambda text: text.replace(TICKET.number.hex(), TICKET.number.hex()[:-2]),
        lambda text: text.replace(f'"{TICKET.number.hex()}"', "null"),
        lambda text: text.replace("}", ',"zz":"more"}'),
        lambda text: text.replace("}", ',"ticket":""}'),
        lambda text: text[:-1],
        lambda text: text + " ",
    ],
)
def test_a_header_of_this_kind_has_one_way_to_be_written(change):
    """What moves between name and number, or is left out, would be committed to by nothing."""
    text = MINE.inner.header.decode()
    changed = change(text).encode()
    assert changed != MINE.inner.header
    with pytest.raises(ProblemError, match="must be JSON as it is sealed"):
        content_digest(MINE.inner.secret, changed, [FILE])


GOOD = json.loads(MINE.proof.data)
BAD = {
    "no JSON": b"",
    "no object": b"[]",
    "too long": MINE.proof.data + b" " * 4096,
    "a receipt": MINE.receipt.data,
    "of a later kind": json.dumps(GOOD | {"format": "datacollect-proof/2"}).encode(),
    "without a key": json.dumps({k: v for k, v in GOOD.items() if k != "key"}).encode(),
    "with more": json.dumps(GOOD | {"more": 1}).encode(),
    "short digits": json.dumps(GOOD | {"key": GOOD["key"][:-2]}).encode(),
    "capital digits": json.dumps(GOOD | {"key": GOOD["key"].upper()}).encode(),
    "a number": json.dumps(GOOD | {"name": 7}).encode(),
    "null": json.dumps(GOOD | {"ticket": None}).encode(),
    "a key twice": MINE.proof.data.replace(b"{", b'{"key":"' + b"00" * 32 + b'",', 1),
    "UTF-16": MINE.proof.data.decode().encode("utf-16"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_proof_is_refused_in_words_that_quote_no_key(data):
    with pytest.raises(ProblemError, match=r"a\.proof\b") as error:
        read_content_proof(data, "a.proof")
    assert GOOD["key"] not in str(error.value)
    assert GOOD["key"].upper() not in str(error.value)
    if data != BAD["too long"]:
        assert not shows_by_the_page(data)


def test_proofs_that_are_changed_at_random_mean_the_same_to_both():
    """Spaces between are nobody's lie: both skip them, as in a receipt."""
    chance = random.Random(50)
    data = MINE.proof.data
    n_taken = 0
    for _ in range(80):
        changed = bytearray(data)
        for _ in range(chance.choice([1, 1, 2])):
            at = chance.randrange(len(changed))
            changed[at : at + chance.choice([0, 1])] = chance.choice([b"", b" ", b"\n", b"0", b'"'])
        taken = shows(bytes(changed))
        assert taken == shows_by_the_page(bytes(changed)), bytes(changed)
        n_taken += taken
    assert 0 < n_taken < 80


# One of several files ----------------------------------------------------------------------------

NAMES = ("a", "b/c", "d", "e", "f")


class Several(HandedIn):
    """Five files in one draft, each with a proof of its own."""

    def __init__(self):
        fields = {"content": "datacollect-content/3", "event": EVENT.id.hex(), "files": 5}
        header = header_bytes(fields | {"ticket": TICKET.number.hex()})
        body = b"".join(frame(name, 1) + name[:1].encode() for name in NAMES)
        super().__init__(file=body, header=header)
        code = content_code(self.inner.secret, header)
        code.update(body)
        self.proofs = [*proofs_of_files(self.commitment.entry, self.inner, code.files())]


SEVERAL = Several()
THIRD = json.loads(SEVERAL.proofs[2].data)


def test_the_proof_of_one_of_several_files_opens_its_receipt_for_that_file_alone():
    for proof, name in zip(SEVERAL.proofs, NAMES, strict=True):
        for other in NAMES:
            given = (proof.data, SEVERAL.receipt, other[:1].encode())
            assert shows(*given) == shows_by_the_page(*given) == (other == name)
        assert read_content_proof(proof.data) == proof
        assert not shows(proof.data, MINE.receipt, name[:1].encode())


@pytest.mark.parametrize(
    "change",
    [
        *({"index": each} for each in (1, 3, 5, -1, 2.0, "2", None, True)),
        *({"count": each} for each in (1, 2, 3, 4, 6, 10_001, 0, "5", 5.0)),
        *({"path": each} for each in ([], THIRD["path"][:-1], THIRD["path"] * 5, None, [7], "ab")),
        {"path": THIRD["path"][::-1]},
        {"format": "datacollect-proof/1"},
        {"format": "datacollect-proof/3"},
        {"more": 1},
        {"ticket": THIRD["name"]},
        {"key": json.loads(SEVERAL.proofs[1].data)["key"]},
    ],
    ids=str,
)
def test_a_changed_proof_of_one_of_several_files_shows_nothing(change):
    given = (json.dumps(THIRD | change).encode(), SEVERAL.receipt, b"d")
    assert not shows(*given)
    assert not shows_by_the_page(*given)
    assert shows(json.dumps(THIRD).encode(), *given[1:])


@pytest.mark.parametrize("missing", ["index", "count", "path"])
def test_a_proof_of_one_of_several_files_says_which(missing):
    data = json.dumps({key: value for key, value in THIRD.items() if key != missing}).encode()
    with pytest.raises(ProblemError, match=rf"a\.proof: key {missing} is missing"):
        read_content_proof(data, "a.proof")
    assert not shows_by_the_page(data, SEVERAL.receipt, b"d")
