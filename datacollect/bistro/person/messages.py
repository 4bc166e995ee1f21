"""Events and actions of the core of handing in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from datacollect.bistro.formats.event.statements import commit_statement
from datacollect.bistro.formats.log.commit import COMMIT_PATH, commit_body
from datacollect.bistro.formats.log.proofs import MOST_PROOF_BYTES
from datacollect.bistro.formats.receipt.tokens import query_of

if TYPE_CHECKING:
    from datacollect.bistro.formats.event.event import Event as OfEvent
    from datacollect.bistro.formats.event.tickets import Ticket
    from datacollect.net.http_asking import Answer, Asker

JSON_TYPE = "application/json"
QUERY_TYPE = "application/timestamp-query"

# What is told; `now_s` is a monotonic clock's.


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Answered:
    """Outcome of a question; `answer` None: there was none, `why` says it in words."""

    now_s: float
    to: Question
    answer: Answer | None
    why: str = ""


# What is asked for; a question says whom it goes to, and how it is asked: `driving` does that.


@dataclass(frozen=True, slots=True)
class Commit:
    """Send the entry to a service of the event, by its index."""

    service: int

    def url(self, event: OfEvent) -> str:
        """Return whom this is asked."""
        return event.services[self.service].url

    def ask(self, asker: Asker, event: OfEvent, entry: bytes, ticket: Ticket | None) -> Answer:
        """Ask it, signed for its log alone; raise `DatacollectError` where there is no answer."""
        if ticket is None:
            body = commit_body(entry, None)
        else:
            said = commit_statement(event.id, event.services[self.service].log.key, [entry])
            body = commit_body(entry, ticket.token, ticket.key.sign(said))
        return asker.post(COMMIT_PATH, body, JSON_TYPE)


@dataclass(frozen=True, slots=True)
class AskProof:
    """Ask a service for the proof of the entry."""

    service: int

    def url(self, event: OfEvent) -> str:
        """Return whom this is asked."""
        return event.services[self.service].url

    def ask(self, asker: Asker, _: OfEvent, entry: bytes, __: Ticket | None) -> Answer:
        """Ask it; raise `DatacollectError` where there is no answer."""
        return asker.get(f"/proof/{entry.hex()}", MOST_PROOF_BYTES)


@dataclass(frozen=True, slots=True)
class AskAuthority:
    """Ask an outside authority of the event, by its index, for a token over the entry."""

    authority: int

    def url(self, event: OfEvent) -> str:
        """Return whom this is asked."""
        return event.authorities[self.authority].url

    def ask(self, asker: Asker, _: OfEvent, entry: bytes, __: Ticket | None) -> Answer:
        """Ask it; raise `DatacollectError` where there is no answer."""
        return asker.post("", query_of(entry), QUERY_TYPE)


@dataclass(frozen=True, slots=True)
class Save:
    """Have the receipt on the disk before anything else is done."""


Event: TypeAlias = Ticked | Answered
Question: TypeAlias = Commit | AskProof | AskAuthority
Action: TypeAlias = Question | Save
