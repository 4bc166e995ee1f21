"""Requests that are posted to a log service: how each is read, told to the core, and answered.

A new one has its class and its row here; its form is in `formats`, and what it does is a method of
`ServiceCore`. What comes between, processes in front and the loop that keeps the log, goes by rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.assignment.loads import LOADS_PATH, MOST_LOADS_BYTES
from datacollect.bistro.formats.event.amendments import AMEND_PATH
from datacollect.bistro.formats.event.tickets import Shown
from datacollect.bistro.formats.log.commit import COMMIT_PATH, MOST_COMMIT_BYTES, read_commit
from datacollect.bistro.formats.log.entry import ENTRY_BYTES
from datacollect.bistro.formats.log.notes import MOST_NOTE_BYTES
from datacollect.bistro.formats.receipt.receipt import acknowledgements_body
from datacollect.bistro.http.exchange import JSON_TYPE, Asked, Reply
from datacollect.bistro.log_service.messages import Acknowledge, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from datacollect.bistro.formats.event.tickets import Admitted
    from datacollect.bistro.log_service.messages import Answer
    from datacollect.bistro.now import Now


@dataclass(frozen=True, slots=True)
class CommitAsked(Request):
    """Somebody wants entries to be taken.

    Attributes
    ----------
    entries : tuple of bytes
    ticket : Shown, Admitted or None
        As it came; or what another process has found in it, which has verified its signature.
    address : str
        Whom it is counted for: `datacollect.net.addresses.origin_of` of the address.
    """

    entries: tuple[bytes, ...]
    ticket: Shown | Admitted | None
    address: str


@dataclass(frozen=True, slots=True)
class AmendAsked(Request):
    """Somebody hands in an amendment."""

    note: bytes
    address: str


_LIST = "list"


def as_it_came(path: str, address: str, body: bytes) -> Asked:
    """Return a request whose body only the process that keeps the log reads."""
    return Asked(path.removeprefix("/"), address, body)


def acknowledged(answer: Answer, asked: Asked) -> Reply:
    """Return the answer that says where entries stand."""
    assert isinstance(answer, Acknowledge)
    body = acknowledgements_body(answer.words, is_list=asked.path == _LIST)
    return Reply(200, body, JSON_TYPE)


@dataclass(frozen=True)
class ServicePost:
    """A kind of request that is posted to a log service.

    Attributes
    ----------
    most_bytes : int
        Of its body.
    event : function or None
        Returns what the core is told, at an instant, by the number of a request. None: the core is
        not asked, the sequencer answers by itself.
    read : function
        Returns what is asked, by path, address and body; raises `ProblemError`, which is answered
        by 400. It runs where HTTP is spoken: the process that keeps the log is spared it.
    reply : function
        Returns the answer in HTTP that the core's is, to what was asked.
    signed_for : function or None
        Returns the entries for which a ticket signs, where the event admits by tickets. None: it
        needs no ticket.
    n_counts : int
        As so many requests of its address it counts, before anything of it is read.
    """

    most_bytes: int
    event: Callable[[Now, int, Asked], Request] | None = None
    read: Callable[[str, str, bytes], Asked] = as_it_came
    reply: Callable[[Answer, Asked], Reply] = acknowledged
    signed_for: Callable[[Asked], Sequence[bytes]] | None = None
    n_counts: int = 0


def _read_commit(path: str, address: str, body: bytes) -> Asked:
    entries, is_list, token, signature = read_commit(body)
    kind = path.removeprefix("/")
    ticket = None if token is None else Shown(token, signature)
    return Asked(kind, address, b"".join(entries), _LIST if is_list else "", ticket)


def _entries_of(asked: Asked) -> tuple[bytes, ...]:
    data = asked.body
    return tuple(data[i : i + ENTRY_BYTES] for i in range(0, len(data), ENTRY_BYTES))


def _commit_asked(now: Now, number: int, asked: Asked) -> CommitAsked:
    return CommitAsked(now, number, _entries_of(asked), asked.ticket, asked.address)


def _amend_asked(now: Now, number: int, asked: Asked) -> AmendAsked:
    return AmendAsked(now, number, asked.body, asked.address)


POSTS = {
    COMMIT_PATH: ServicePost(
        MOST_COMMIT_BYTES, _commit_asked, _read_commit, signed_for=_entries_of
    ),
    AMEND_PATH: ServicePost(MOST_NOTE_BYTES, _amend_asked),
    # What somebody says to be the destination's is read before it is known whose it is.
    LOADS_PATH: ServicePost(MOST_LOADS_BYTES, n_counts=100),
}

# What the log's owner hands in itself is answered as a list is.
OF_OWNER = Asked("record", path=_LIST)


def post_of(asked: Asked) -> ServicePost | None:
    """Return how a request is handled that was posted; None: it was not."""
    return POSTS.get(f"/{asked.kind}")
