"""A small event, with the keys of all who take part in it."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

from datacollect.bistro.formats.event.draft import complete
from datacollect.bistro.formats.event.event import Event
from datacollect.bistro.formats.event.fields import EVENT
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.marks import own_mark_key, with_mark
from datacollect.bistro.formats.event.tickets import Ticket, new_ticket
from datacollect.bistro.formats.log.checkpoints import (
    Checkpoint,
    SignedCheckpoint,
    cosign,
    sign_checkpoint,
)
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.log.notes import Note
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.files.toml_tables import toml_of
from datacollect.net.keys import PrivateKey, public_key_bytes

# Thursday, 2027-04-15, a second before midnight in New York.
DEADLINE_S = 1_807_847_999

# Nobody has kept their identities.
RECIPIENTS = (
    "age1uq2m0r6zz2ghqcnqyeqafkvggmkvxprxrp0hj4n96zqhmuxlfcxqv5996p",
    "age1e3u85mtpdyuturdj9a85exxat0jevw85d8rmwsr5upg6dtenug3qy97g9l",
)


@cache
def key_of(who: str) -> PrivateKey:
    """Return the key of somebody, always the same one."""
    return PrivateKey(sha256(who.encode()).digest())


# By their public halves: who has handed something in.
_OWNERS: dict[bytes, PrivateKey] = {}


def owner_key(what: str) -> PrivateKey:
    """Return the key of whoever owns an entry, always the same one."""
    key = key_of(f"owner {what}")
    _OWNERS[public_key_bytes(key.public)] = key
    return key


def owner_of(what: str) -> bytes:
    """Return the public half of that, as a commitment names it."""
    return public_key_bytes(owner_key(what).public)


def owners_signature(statement: bytes, owner: bytes | None) -> bytes:
    """Return the signature of an owner that a test has made; zeros for any other."""
    key = _OWNERS.get(owner or b"")
    return bytes(64) if key is None else key.sign(statement)


def ticket_of(event: Event, number: int = 1) -> Ticket:
    """Return a ticket of an event, always the same one."""
    seed = sha256(f"ticket {number}".encode()).digest()
    return new_ticket(event, number.to_bytes(16, "big"), seed, key_of("organiser"))


def marked_by(event: Event, commitment: Commitment, number: int = 1) -> Commitment:
    """Return a commitment with the mark of a ticket, where those of the event have marks."""
    if not event.has_marks:
        return commitment
    return with_mark(commitment, own_mark_key(event, ticket_of(event, number).key))


def witness_names(n: int = 4) -> list[str]:
    return [f"w{i}.example" for i in range(n)]


def draft(n_witnesses: int = 4, n_services: int = 2, **changes: object) -> dict[str, object]:
    """Return the tree of a draft: 4 witnesses, 2 services, 2 recipients."""
    from datacollect.bistro.formats.log.checkpoints import witness_key

    tree: dict[str, object] = {
        "name": "Income tax 2026",
        "deadline": "2027-04-15T23:59:59-04:00",
        "timezone": "America/New_York",
        "collect_until": "2027-04-30T23:59:59-04:00",
        "keep_until": "2037-04-30T23:59:59-04:00",
        "recipients": list(RECIPIENTS),
        "services": [
            {"url": f"https://s{i}.example", "key": key_of(f"s{i}").public}
            for i in range(n_services)
        ],
        "witnesses": [
            {"url": f"https://{name}", "vkey": witness_key(name, key_of(name).public).text}
            for name in witness_names(n_witnesses)
        ],
    }
    tree |= changes
    return {key: value for key, value in tree.items() if value is not None}


def draft_text(**changes: object) -> str:
    """Return a draft as an organiser writes it."""
    tree = draft(**({"organiser": key_of("organiser").public} | changes))
    return toml_of(EVENT, tree)


def counting_bytes() -> object:
    """Return a source of bytes that are never the same, nor random."""
    n_calls = iter(range(1, 1000))
    return lambda n: next(n_calls).to_bytes(n, "big")


def before_proofs(data: bytes) -> bytes:
    """Return an event's file as one was before there were proofs, and several files in a draft."""
    without = data.replace(b'content = "datacollect-content/2"\n', b"")
    return without.replace(b", files = 10000", b"")


def event_bytes(**changes: object) -> bytes:
    return complete(draft(**changes), key_of("organiser").public, counting_bytes(), {})


def event_of(**changes: object) -> Event:
    return read_event(event_bytes(**changes))


def proof_of(
    entry: bytes, log: str, time_s: int, n_witnesses: int = 3, service: str = "s0"
) -> LogProof:
    """Return a proof of an entry that stands alone in a log; each witness signs a second later."""
    checkpoint = Checkpoint(log, 1, leaf_hash(entry))
    note = sign_checkpoint(checkpoint, key_of(service))
    lines = tuple(
        cosign(note.text, time_s + i, name, key_of(name))
        for i, name in enumerate(witness_names(n_witnesses))
    )
    whole = Note(note.text, note.signatures + lines)
    return LogProof(0, (), SignedCheckpoint(checkpoint, whole))
