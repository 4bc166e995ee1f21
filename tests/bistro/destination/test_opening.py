"""Opening: what is whole is written under a safe name; what is not is refused, and why."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from multiprocessing import active_children

import numpy as np
import pyrage
import pytest
from instances.bistro_folders import (
    FIRST_IDENTITY,
    SECOND_IDENTITY,
    HandedIn,
    MadeBistro,
    collecting_event,
    signature_inside,
)
from instances.events import DEADLINE_S, RECIPIENTS, key_of, marked_by, owner_of, ticket_of

from datacollect.bistro.destination.holdings import LOST, Opening, Upload
from datacollect.bistro.destination.keys import read_tickets, revoked_tickets, ticket_keys
from datacollect.bistro.destination.marking import MarkKeys
from datacollect.bistro.destination.opening import Opener, OpeningPool, safe_name
from datacollect.bistro.destination.pieces import PIECE_OF_UPLOAD
from datacollect.bistro.formats.custody.verdicts import (
    DOES_NOT_OPEN,
    OTHER_CONTENT,
    OTHER_MARK,
    OTHER_TICKET,
)
from datacollect.bistro.formats.event.amendments import Amendment, amended
from datacollect.bistro.formats.event.tickets import Admitted
from datacollect.bistro.formats.log.content import header_bytes
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.sealing.identities import opening_identities
from datacollect.errors import NotWrittenError, ProblemError, StoreError

EVENT = collecting_event()


@pytest.fixture
def north(tmp_path):
    return MadeBistro(EVENT, "north", tmp_path / "fetched" / "north")


@pytest.fixture
def opener(tmp_path):
    into = tmp_path / "into"
    into.mkdir()
    return Opener((str(FIRST_IDENTITY),), None, tmp_path / "fetched", into)


def with_tickets(opener, folder, *numbers):
    for number in numbers:
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.ticket").write_text(ticket_of(EVENT, number).text)
    keys = ticket_keys(read_tickets(folder, EVENT))
    return Opener(opener.identities, keys, opener.segments, opener.into)


def opening_of(upload, *parts, data=None, commitment=None):
    held = upload.sealed if data is None else data
    ticket = upload.ticket.hex() if any(upload.ticket) else None
    committed = commitment or upload.commitment
    what = Upload("north", len(held), sha256(held).digest(), committed, ticket)
    whole = [(0, 0, 0, len(held))] if held else []
    return Opening(what, np.array([*parts] or whole, PIECE_OF_UPLOAD), DEADLINE_S)


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_was_handed_in_is_written_under_its_entry_and_name(opener, north):
    upload = HandedIn(EVENT, content=b"x" * 200_000)
    north.segment((upload.entry, 0, upload.sealed))
    result = opener.open(opening_of(upload))
    assert (result.why, result.ticket) == ("", None)
    assert result.file == f"{upload.entry.hex()}/return.pdf"
    assert (opener.into / result.file).read_bytes() == upload.content
    # Again, as after a crash: nothing else is there.
    assert opener.open(opening_of(upload)) == result
    assert files_in(opener.into) == [result.file]


def test_pieces_of_several_segments_are_put_together(opener, north):
    upload = HandedIn(EVENT, content=b"abc" * 100_000)
    data, cuts = upload.sealed, (0, 7, 70_000, len(upload.sealed))
    parts = []
    for number, (start, stop) in enumerate(pairwise(cuts)):
        north.segment((b"z" * 32, 0, b"others'"), (upload.entry, start, data[start:stop]))
        parts.append((number, 7, start, stop - start))
    result = opener.open(opening_of(upload, *parts))
    assert (opener.into / result.file).read_bytes() == upload.content


def test_the_second_recipient_opens_all_where_the_first_key_is_lost(opener, north):
    uploads = [HandedIn(EVENT, number, b"%d" % number) for number in range(3)]
    second = Opener((str(SECOND_IDENTITY),), None, opener.segments, opener.into)
    for number, upload in enumerate(uploads):
        north.segment((upload.entry, 0, upload.sealed))
        result = second.open(opening_of(upload, (number, 0, 0, len(upload.sealed))))
        assert (second.into / result.file).read_bytes() == upload.content


@pytest.mark.parametrize("at", [0, 150, -1])
def test_a_changed_segment_is_its_bistros_doing(opener, north, at):
    upload = HandedIn(EVENT)
    data = bytearray(upload.sealed)
    data[at] ^= 1
    north.segment((upload.entry, 0, bytes(data)))
    assert opener.open(opening_of(upload)).why == LOST
    assert files_in(opener.into) == []


@pytest.mark.parametrize("n_bytes", [0, 1, 100])
def test_a_segment_that_was_cut_is_its_bistros_doing(opener, north, n_bytes):
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, upload.sealed[:n_bytes]))
    assert opener.open(opening_of(upload)).why == LOST


def test_a_segment_that_is_not_there_says_nothing_of_anybody(opener):
    with pytest.raises(StoreError, match="fetch it again"):
        opener.open(opening_of(HandedIn(EVENT)))


def test_a_truncated_ciphertext_that_was_committed_to_does_not_open(opener, north):
    upload = HandedIn(EVENT)
    cut = upload.sealed[:-5]
    north.segment((upload.entry, 0, cut))
    assert opener.open(opening_of(upload, data=cut)).why == DOES_NOT_OPEN


@pytest.mark.parametrize("data", [b"", b"no age at all", b"age-encryption.org/v1\n", bytes(500)])
def test_what_is_no_ciphertext_does_not_open(opener, north, data):
    north.segment((b"z" * 32, 0, data))
    upload = HandedIn(EVENT)
    assert opener.open(opening_of(upload, data=data)).why == DOES_NOT_OPEN


def test_what_is_sealed_for_others_does_not_open(opener, north):
    upload = HandedIn(collecting_event(recipients=list(RECIPIENTS)))
    north.segment((upload.entry, 0, upload.sealed))
    assert opener.open(opening_of(upload)).why == DOES_NOT_OPEN


def test_sealed_anew_the_content_decides(opener, north):
    upload, other = HandedIn(EVENT), HandedIn(EVENT, content=b"another")
    anew, _ = upload.seal_anew()
    assert anew != upload.sealed
    north.segment((upload.entry, 0, anew))
    assert opener.open(opening_of(upload, data=anew)).why == ""
    north.segment((upload.entry, 0, other.sealed))
    part = (1, 0, 0, len(other.sealed))
    assert opener.open(opening_of(upload, part, data=other.sealed)).why == OTHER_CONTENT


def test_a_file_of_another_event_is_not_what_was_committed_to(opener, north):
    """Somebody commits here to what was sealed for another event of the same recipients."""
    other = HandedIn(collecting_event(name="Another"))
    copied = Commitment(EVENT.id, bytes(32), *_rest(other.commitment))
    north.segment((copied.entry, 0, other.sealed))
    assert opener.open(opening_of(other, commitment=copied)).why == OTHER_CONTENT


def test_an_entry_with_another_mark_than_its_tickets_is_refused(opener, north, tmp_path):
    """Whoever marks as he likes would have a quota at each service."""
    opener = with_tickets(opener, tmp_path / "tickets", 1, 2)
    opener = replace(opener, marks=MarkKeys(EVENT, key_of("verdicts")))
    mine, others = HandedIn(EVENT, ticket=1), HandedIn(EVENT, ticket=1)
    others.commitment = marked_by(EVENT, others.commitment, 2)
    nobodys = replace(mine.commitment, mark=bytes(8))
    north.segment((mine.entry, 0, mine.sealed))
    north.segment((others.entry, 0, others.sealed))
    assert opener.open(opening_of(mine)).ticket == f"{1:032x}"
    assert opener.open(opening_of(mine, commitment=nobodys)).why == OTHER_MARK
    part = (1, 0, 0, len(others.sealed))
    assert opener.open(opening_of(others, part)).why == OTHER_MARK


def _rest(commitment):
    return commitment.size, commitment.ciphertext_sha256, commitment.content, commitment.owner


@pytest.mark.parametrize("header", [b"", b"[]", b"{", b"[" * 10_000, b'"x"', b"7", b"null"])
def test_a_header_that_is_none_is_refused(opener, north, header):
    upload = HandedIn(EVENT, header=header)
    north.segment((upload.entry, 0, upload.sealed))
    assert opener.open(opening_of(upload)).why == OTHER_CONTENT


def test_a_name_or_ticket_that_was_not_committed_to_is_refused(opener, north):
    """They are committed to apart: inside the seal each of them must be the one."""
    mine, event = HandedIn(EVENT), EVENT.id.hex()
    fields = {"content": EVENT.content, "event": event, "name": "return.pdf"}
    headers = (
        fields | {"name": "other.pdf"},
        fields | {"ticket": "00" * 16},
        {"event": event, "name": "return.pdf"},
    )
    for number, header in enumerate(headers):
        other = HandedIn(EVENT, header=header_bytes(header))
        north.segment((mine.entry, 0, other.sealed))
        part = (number, 0, 0, len(other.sealed))
        assert opener.open(opening_of(mine, part, data=other.sealed)).why == OTHER_CONTENT
    north.segment((mine.entry, 0, mine.sealed))
    assert opener.open(opening_of(mine, (3, 0, 0, len(mine.sealed)))).why == ""


def test_a_header_of_before_there_were_proofs_is_collected_as_ever(opener, north):
    """Whoever sealed by an older program has committed to it as a whole."""
    older = HandedIn(EVENT, header=header_bytes({"event": EVENT.id.hex(), "name": "return.pdf"}))
    north.segment((older.entry, 0, older.sealed))
    assert opener.open(opening_of(older)).why == ""


@pytest.mark.parametrize(
    "more", [b"", b"}", b'"event":"00"}', b'"event":null,"name":7,"ticket":[]}', b'"name":"a"} ']
)
def test_a_header_that_says_its_parts_are_apart_and_lacks_them_does_not_open(opener, north, more):
    """No honest program can seal it: it is put together here, for the destination's key."""
    header = b'{"content":"datacollect-content/2",' + more
    told = {"header": header.decode(), "secret": "00" * 32, "ticket_signature": None}
    head = json.dumps(told).encode()
    plain = b"datacollect-sealed/2\n" + len(head).to_bytes(4, "big") + head + b"income"
    recipients = [pyrage.x25519.Recipient.from_str(each) for each in EVENT.recipients]
    data, upload = pyrage.encrypt(plain, recipients), HandedIn(EVENT)
    north.segment((upload.entry, 0, data))
    assert opener.open(opening_of(upload, data=data)).why == DOES_NOT_OPEN
    assert files_in(opener.into) == []


def test_a_tickets_signature_must_be_inside(opener, north, tmp_path):
    opener = with_tickets(opener, tmp_path / "tickets", 1, 2)
    uploads = {
        "": HandedIn(EVENT, ticket=1),
        "stolen": HandedIn(EVENT, ticket=1, signature=signature_inside(EVENT, 1, 2)),
        "without": HandedIn(EVENT, ticket=1, signature=b"x" * 64),
        "for another entry": HandedIn(EVENT, 7, ticket=1, signature=signature_inside(EVENT, 8, 1)),
        "unknown": HandedIn(EVENT, ticket=3),
        "none": HandedIn(EVENT),
        "another than has pushed": HandedIn(EVENT, ticket=1),
    }
    found = {}
    for number, (name, upload) in enumerate(uploads.items()):
        north.segment((upload.entry, 0, upload.sealed))
        opening = opening_of(upload, (number, 0, 0, len(upload.sealed)))
        if name == "another than has pushed":
            pushed = opening.upload._replace(ticket=(2).to_bytes(16, "big").hex())
            opening = opening._replace(upload=pushed)
        result = opener.open(opening)
        found[name] = result.why
        if not name:
            assert result.ticket == (1).to_bytes(16, "big").hex()
    assert found.pop("") == ""
    assert {*found.values()} == {OTHER_TICKET}


def test_a_copy_of_somebodys_sealed_file_is_refused_and_the_original_is_not(
    opener, north, tmp_path
):
    """The copier has a ticket, a key of an own, and all that bistros and receipts show."""
    opener = with_tickets(opener, tmp_path / "tickets", 1, 2)
    upload = HandedIn(EVENT, ticket=1)
    north.segment((upload.entry, 0, upload.sealed))
    by_others_key = replace(upload.commitment, owner=owner_of("the copier"))
    with_others_salt = replace(by_others_key, salt=b"s" * 32)
    for copied in (by_others_key, with_others_salt):
        assert copied.entry != upload.entry
        assert opener.open(opening_of(upload, commitment=copied)).why == OTHER_TICKET
    assert opener.open(opening_of(upload)).why == ""


@pytest.mark.parametrize(
    ("time_s", "why"), [(999, ""), (1000, ""), (1001, OTHER_TICKET), (None, OTHER_TICKET)]
)
def test_a_revoked_ticket_counts_for_what_was_committed_to_before(
    opener, north, tmp_path, time_s, why
):
    """By the times of witnesses: neither who has stolen it nor its owner chooses them."""
    opener = with_tickets(opener, tmp_path / "tickets", 1)
    upload = HandedIn(EVENT, ticket=1)
    north.segment((upload.entry, 0, upload.sealed))
    opening = opening_of(upload)._replace(time_s=time_s)
    assert opener.open(opening).why == ""
    revoked = replace(opener, revoked_s={upload.ticket.hex(): 1000})
    assert revoked.open(opening).why == why


def test_a_ticket_is_revoked_since_the_first_log_has_published_it():
    tickets = {"a": Admitted("a", "ed25519:k", b"h"), "b": Admitted("b", "ed25519:l", b"i")}
    said = [
        Amendment(1, None, frozenset({b"h"}), (), b"", published_s=2000),
        Amendment(2, None, frozenset({b"h", b"x"}), (), b"", published_s=1500),
    ]
    assert revoked_tickets(tickets, amended(EVENT, said)) == {"a": 1500}
    assert revoked_tickets(tickets, amended(EVENT, reversed(said))) == {"a": 1500}
    assert revoked_tickets(tickets, EVENT) == {}


def test_tickets_of_others_are_refused_at_the_start(tmp_path):
    with pytest.raises(ProblemError, match="must hold everybody's tickets"):
        read_tickets(tmp_path, EVENT)
    other = collecting_event(name="Another")
    (tmp_path / "a.ticket").write_text(ticket_of(other).text)
    with pytest.raises(ProblemError, match="another event"):
        read_tickets(tmp_path, EVENT)


def test_an_identity_that_opens_nothing_is_refused_before_it_refuses_everybody(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(f"# a comment\n{FIRST_IDENTITY}\n")
    bad.write_text(f"{pyrage.x25519.Identity.generate()}\n")
    assert [*opening_identities([good], EVENT.recipients, "")] == [str(FIRST_IDENTITY)]
    with pytest.raises(ProblemError, match=r"bad: opens nothing .* another file"):
        opening_identities([good, bad], EVENT.recipients, "name another file")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.pdf", "a.pdf"),
        ("O'Neil, essay (2).pdf", "O'Neil, essay (2).pdf"),
        ("..", "file"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\x.doc", "x.doc"),
        ("a/", "file"),
        ("", "file"),
        ("\0\x1b[31m", "___31m"),
        ("\ud800", "_"),
        ("ü" * 500 + ".pdf", "ü" * 56 + ".pdf"),
        (["x"], "file"),
        (None, "file"),
    ],
)
def test_names_that_people_choose_stay_in_their_folder(name, expected):
    assert safe_name(name) == expected


def test_a_full_disk_refuses_nobody(opener, north, monkeypatch):
    upload = HandedIn(EVENT)
    north.segment((upload.entry, 0, upload.sealed))

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("datacollect.bistro.destination.opening.os.fsync", full)
    with pytest.raises(NotWrittenError, match="No space left") as caught:
        opener.open(opening_of(upload))
    assert caught.value.exit_code == 3
    assert files_in(opener.into) == []


def test_what_a_killed_process_had_opened_is_removed(opener):
    opener.into.mkdir(exist_ok=True)
    left = opener.into / f".{'a' * 64}.{2**22}.tmp"
    left.write_bytes(b"a person's words")
    with OpeningPool(1) as pool:
        assert [*pool.open_all(opener, [])] == []
    assert not left.exists()


@pytest.mark.slow
def test_processes_open_what_they_are_given_and_stay_for_more(opener, north, tmp_path):
    uploads = [HandedIn(EVENT, number, b"%d" % number) for number in range(5)]
    openings = []
    for number, upload in enumerate(uploads):
        north.segment((upload.entry, 0, upload.sealed))
        openings.append(opening_of(upload, (number, 0, 0, len(upload.sealed))))
    others = {each.pid for each in active_children()}
    with OpeningPool(2) as pool:
        # Whoever wants no more leaves nothing at work, and the pool as it was.
        next(pool.open_all(opener, openings))
        first = {each.pid for each in active_children()} - others
        results = [*pool.open_all(replace(opener), openings)]
        assert {each.pid for each in active_children()} - others == first != set()
        assert len([*pool.open_all(replace(opener, into=tmp_path / "other"), openings)]) == 5
        assert not {each.pid for each in active_children()} & first
    assert {each.pid for each in active_children()} <= others
    assert {each.upload.commitment.entry for each in results} == {each.entry for each in uploads}
    assert {each.why for each in results} == {""}
