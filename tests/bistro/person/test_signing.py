"""What a person signs: for each service and each bistro anew; keys themselves leave no host."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from instances.bistros import bistro_event
from instances.events import event_bytes, key_of, proof_of, ticket_of
from instances.logs import SmallLog

import datacollect as dc
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.statements import (
    commit_statement,
    give_up_statement,
    hand_in_statement,
    is_by_key,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.receipt import Receipt
from datacollect.bistro.formats.receipt.upload_wish import Admission, metadata_of
from datacollect.bistro.formats.sealing.keep import read_keep
from datacollect.bistro.person.items import items_of, kept_item, sealed_anew
from datacollect.bistro.person.messages import AskProof, Commit
from datacollect.bistro.person.pushing import Begin, End, Look, Payload, Send
from datacollect.bistro.person.sending import Sender
from datacollect.commands.main import run
from datacollect.errors import ProblemError, RefusedError
from datacollect.net.http_asking import Answer
from datacollect.net.keys import is_signed, public_key_bytes

CONTENT = b"mine"


@pytest.fixture
def event(tmp_path, monkeypatch):
    """An event with two bistros, in a folder with a file, in which somebody works."""
    monkeypatch.chdir(tmp_path)
    found = bistro_event(tmp_path)
    (tmp_path / "a.txt").write_bytes(CONTENT)
    (tmp_path / "my.ticket").write_text(ticket_of(found).text)
    return found


def handed_in(event, name="a.txt", into=None):
    """Seal a file, with a proof that it is in time; return its item, what is kept, its receipt."""
    [item] = items_of([name], into)
    with kept_item(item, event, b"", ticket_of(event)) as (kept, receipt):
        proof = proof_of(receipt.entry, event.services[0].log.name, event.latest_s - 2)
    return item, kept, receipt.with_more(proofs=[proof])


def test_each_file_has_an_owner_of_its_own_and_the_entry_commits_to_it(event, tmp_path):
    (tmp_path / "again").mkdir()
    first, second = (handed_in(event, into=into) for into in (None, "again"))
    owners = {kept.owner.seed for _, kept, _ in (first, second)}
    assert len(owners) == 2
    for item, kept, receipt in (first, second):
        assert receipt.commitment.owner == public_key_bytes(kept.owner.public)
        assert read_keep(item.keep) == kept
        assert kept.ticket == ticket_of(event)


def test_inside_the_seal_the_ticket_signs_for_this_owner_alone(event):
    _, kept, receipt = handed_in(event)
    ticket, signature = ticket_of(event), kept.inner.ticket_signature
    owner = receipt.commitment.owner
    assert is_signed(hand_in_statement(event.id, kept.salt, owner), signature, ticket.key.public)
    for said in (
        hand_in_statement(bytes(32), kept.salt, owner),
        hand_in_statement(event.id, bytes(32), owner),
        hand_in_statement(event.id, kept.salt, bytes(32)),
    ):
        assert not is_signed(said, signature, ticket.key.public)


class Recording:
    """A server that answers all alike, and what it was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def get(self, path, *_) -> Answer:
        return self.ask("GET", path, {})

    def post(self, path, body, *_) -> Answer:
        return self.ask("POST", path, {}, [body])

    def ask(self, method, path, headers, blocks=(), _=None) -> Answer:
        self.asked.append((method, path, dict(headers)))
        self.sent += [path.encode(), repr(headers).encode(), *blocks]
        return Answer(204, b"")


def test_a_service_gets_a_signature_that_no_other_log_takes(event):
    _, kept, receipt = handed_in(event)
    for own in (0, 1):
        asker = Recording()
        Commit(own).ask(asker, event, receipt.entry, kept.ticket)
        tree = json.loads(asker.sent[-1])
        assert tree.keys() == {"entry", "ticket", "signature"}
        signature = base64.b64decode(tree["signature"])
        fits = [
            is_signed(
                commit_statement(event.id, each.log.key, [receipt.entry]),
                signature,
                kept.ticket.key.public,
            )
            for each in event.services
        ]
        assert fits == [each == own for each in (0, 1)]


def test_where_no_ticket_is_needed_nothing_is_signed_for_a_service(event):
    asker = Recording()
    Commit(0).ask(asker, event, bytes(32), None)
    assert json.loads(asker.sent[-1]) == {"entry": "00" * 32}


@pytest.fixture
def asked(monkeypatch):
    """Return what bistros are sent."""
    asker = Recording()
    monkeypatch.setattr(Sender, "_asker", lambda *_: asker)
    return asker


def answer(event, item, kept, receipt, payload, step) -> None:
    sender = Sender(event, lambda _: None)
    sender._answer(step, receipt, item.anew if payload.sealed_anew else item.keep, kept, payload)


def wish(event, asked, bistro: int):
    """Return what a bistro makes of the last request to begin; raise what it says against it."""
    headers = asked.asked[-1][2]
    admission = Admission(event, event.bistros[bistro].key, 2**40)
    size = int(headers["Upload-Length"])
    return admission.wish_of(headers["Upload-Metadata"], size, event.deadline_s)


@pytest.mark.parametrize("own", [0, 1])
def test_a_bistro_gets_signatures_that_no_other_bistro_takes(event, asked, own):
    item, kept, receipt = handed_in(event)
    payload = Payload.committed(receipt.commitment)
    answer(event, item, kept, receipt, payload, Begin(own, 0))
    found = wish(event, asked, own)
    assert (found.commitment, found.sealed_anew) == (receipt.commitment, False)
    with pytest.raises(RefusedError, match="owner must be the signature of the entry's owner"):
        wish(event, asked, 1 - own)


def test_what_was_sealed_anew_is_signed_for_by_the_same_owner(event, asked):
    item, kept, receipt = handed_in(event)
    made, is_new = sealed_anew(item, kept, event)
    assert (is_new, made.owner, made.ticket) == (True, kept.owner, kept.ticket)
    assert made.inner == kept.inner
    payload = Payload(made.sealed.n_bytes, made.sealed.sha256, sealed_anew=True, is_new=True)
    answer(event, item, made, receipt, payload, Begin(0, 0))
    found = wish(event, asked, 0)
    assert (found.commitment, found.sealed_anew) == (receipt.commitment, True)
    assert (found.sha256, found.size) == (made.sealed.sha256, made.sealed.n_bytes)


def test_an_upload_is_given_up_by_its_owners_signature(event, asked):
    item, kept, receipt = handed_in(event)
    payload = Payload.committed(receipt.commitment)
    answer(event, item, kept, receipt, payload, End(1, "/tus/u17"))
    method, path, headers = asked.asked[-1]
    assert (method, path) == ("DELETE", "/tus/u17")
    signature = base64.b64decode(headers["Datacollect-Signature"], validate=True)
    owner = receipt.commitment.owner
    keys = [bistro.key for bistro in event.bistros]
    said = give_up_statement(event.id, keys[1], "u17")
    assert is_by_key(said, signature, owner)
    for other in (
        give_up_statement(event.id, keys[0], "u17"),
        give_up_statement(event.id, keys[1], "u18"),
    ):
        assert not is_by_key(other, signature, owner)
    # Whoever has the place alone goes on, as any client of tus does.
    for step in (Look(1, "/tus/u17"), Send(1, "/tus/u17", 0)):
        answer(event, item, kept, receipt, payload, step)
        assert "Datacollect-Signature" not in asked.asked[-1][2]


def test_no_key_is_ever_sent_or_sealed_or_shown(event, asked):
    item, kept, receipt = handed_in(event)
    payload = Payload.committed(receipt.commitment)
    for step in (
        *(Begin(0, 0), Begin(0, payload.n_bytes)),
        *(Send(0, "/tus/a", 0), Look(0, "/tus/a"), End(0, "/tus/a")),
    ):
        answer(event, item, kept, receipt, payload, step)
    for question in (Commit(0), AskProof(0)):
        question.ask(asked, event, receipt.entry, kept.ticket)
    sealed = (kept.inner.header, kept.inner.secret, kept.inner.ticket_signature)
    told = [*asked.sent, receipt.data, repr(kept).encode(), *sealed]
    for _, _, headers in asked.asked:
        told += metadata_of(headers.get("Upload-Metadata", "")).values()
    for seed in (kept.owner.seed, kept.ticket.seed):
        for form in (seed, seed.hex().encode(), base64.b64encode(seed).rstrip(b"=")):
            assert not any(form in each for each in told)


# What is of an older kind ---------------------------------------------------------------------


def older(data: bytes) -> bytes:
    return data.replace(b"datacollect-event/2", b"datacollect-event/1")


def test_nothing_is_handed_in_at_an_event_of_an_older_kind(event, capsys, tmp_path):
    (tmp_path / "old.toml").write_bytes(older(event_bytes()))
    assert run(["upload", "a.txt", "--event", "old.toml", "--ticket", "my.ticket"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "old.toml: format must be datacollect-event/2, got datacollect-event/1" in said
    assert "anyone who hears a ticket can use it" in said
    assert not (tmp_path / "a.txt.keep").exists()


def test_a_ticket_of_an_older_kind_is_refused_before_anything_is_sealed(event, capsys, tmp_path):
    (tmp_path / "event.toml").write_bytes(event_bytes())
    (tmp_path / "my.ticket").write_text(
        f'format = "datacollect-ticket/1"\nevent = "{event.id.hex()}"\ntoken = "v4.public.x"\n'
        f'secret = "{"5e" * 32}"\n'
    )
    assert run(["upload", "a.txt", "--event", "event.toml", "--ticket", "my.ticket"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "my.ticket: format must be datacollect-ticket/2, got datacollect-ticket/1" in said
    assert "ask the organiser for a new one" in said
    assert not (tmp_path / "a.txt.keep").exists()


def older_keep(tmp_path, event) -> Commitment:
    """Write what an older version has kept of a file, its receipt, and its event."""
    from datacollect.bistro.formats.log.content import content_digest

    sealed, secret, salt = b"age-encryption.org/v1\nsealed", b"s" * 32, b"n" * 32
    content_p = content_digest(secret, b"{}", [CONTENT])
    digest = hashlib.sha256(sealed).digest()
    tree = {
        "event": event.id.hex(),
        "salt": salt.hex(),
        "header": "{}",
        "secret": secret.hex(),
        "ticket_secret": "33" * 32,
        "ticket": "v4.public.x",
        "size": len(sealed),
        "ciphertext_sha256": digest.hex(),
        "content_p": content_p.hex(),
        "file": {"bytes": len(CONTENT), "mtime_ns": 1},
    }
    told = json.dumps(tree, separators=(",", ":")).encode()
    end = hashlib.sha256(told).digest() + len(told).to_bytes(4, "big") + b"datacollect-keep/1\n"
    (tmp_path / "a.txt.keep").write_bytes(sealed + told + end)
    return Commitment(event.id, salt, len(sealed), digest, content_p)


@pytest.mark.parametrize(
    ("file", "covers"),
    [(None, "some bytes"), ("a.txt", "the file"), ("a.txt.keep", "the sealed file")],
)
def test_what_was_handed_in_at_an_event_of_an_older_kind_is_still_verified(
    event, tmp_path, file, covers
):
    data = older(event_bytes())
    (tmp_path / "old.toml").write_bytes(data)
    commitment = older_keep(tmp_path, read_event(data))
    log = SmallLog(read_event(data), 0, [commitment.entry])
    times = {f"w{i}.example": 100 + i for i in range(3)}
    receipt = Receipt(commitment, proofs=(log.proof(commitment.entry, times),))
    (tmp_path / "a.txt.receipt.json").write_bytes(receipt.data)
    verdict = dc.verify_receipt("a.txt.receipt.json", "old.toml", file=file)
    assert (verdict.outcome, verdict.covers, verdict.time_s) == ("in time", covers, 102)
    assert "anyone who heard a ticket could use it" in verdict.reasons[0]


def test_a_keep_of_an_older_kind_is_called_so_and_left_alone(event, capsys, tmp_path):
    (tmp_path / "event.toml").write_bytes(data := event_bytes())
    older_keep(tmp_path, read_event(data))
    before = (tmp_path / "a.txt.keep").read_bytes()
    (tmp_path / "my.ticket").write_text(ticket_of(read_event(data)).text)
    for given in (["a.txt.keep"], ["a.txt", "--ticket", "my.ticket"]):
        assert run(["upload", *given, "--event", "event.toml"]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "a.txt.keep: was made by an older version of datacollect" in said
        assert "name another folder with -o" in said
    assert (tmp_path / "a.txt.keep").read_bytes() == before


def test_a_ticket_for_an_event_of_an_older_kind_is_not_made(event, capsys, tmp_path):
    from datacollect.bistro.organiser.ticket_files import write_tickets
    from datacollect.net.keys import write_private_key

    (tmp_path / "old.toml").write_bytes(older(event_bytes()))
    (tmp_path / "people.csv").write_text("person\nann\n")
    write_private_key(tmp_path / "organiser.key", key_of("organiser"))
    with pytest.raises(ProblemError, match="got datacollect-event/1"):
        write_tickets("old.toml", "people.csv", "organiser.key", "tickets")
    assert not (tmp_path / "tickets").exists()
