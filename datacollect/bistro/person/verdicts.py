"""Verdicts of the destination's log on an entry, asked for and judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from datacollect.bistro.formats.custody.verdicts import SUPERSEDED, read_verdict
from datacollect.bistro.formats.event.marks import own_mark_key
from datacollect.bistro.formats.log.one_meaning import json_file
from datacollect.bistro.formats.log.proofs import MOST_PROOF_BYTES, LogProof
from datacollect.bistro.formats.receipt.counted_time import verdict_time
from datacollect.errors import ProblemError, TransferError
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from datacollect.bistro.formats.custody.verdicts import Verdict
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Ticket
    from datacollect.net.http_asking import Askers

# Of a verdict and its proof in JSON, where a newline has two bytes.
MOST_ANSWER_BYTES = 2 * MOST_PROOF_BYTES


class Told(NamedTuple):
    """A verdict that the destination's log proves.

    Attributes
    ----------
    verdict : Verdict
    time_s : int
        By when it was logged, by the event's witnesses, seconds since 1970.
    proof : LogProof
    """

    verdict: Verdict
    time_s: int
    proof: LogProof


def asked_verdict(event: Event, entry: bytes, askers: Askers) -> Told | None:
    """Ask the log of verdicts what became of an entry; None: nothing is proved yet.

    Raises
    ------
    ProblemError, TransferError
        There is no answer, or one that does not count.
    """
    url = event.verdicts_url
    assert url is not None
    with askers.of(url) as asker:
        answer = asker.get(f"/verdict/{entry.hex()}", MOST_ANSWER_BYTES)
    if answer.status == 404:
        return None
    if answer.status != 200:
        said = safe_text(answer.body[:200].decode(errors="replace").strip())
        raise TransferError(f"{url}: answers {answer.status} where a verdict was asked for: {said}")
    return read_told(answer.body, event, entry, url)


def read_told(data: bytes, event: Event, entry: bytes, place: str) -> Told | None:
    """Return what an answer proves of an entry; None: no witnesses have signed it yet.

    Raises
    ------
    ProblemError
        It is none, of another entry, or its proof does not count.
    """
    tree = json_file(data, place)
    text, given = (tree.get("verdict"), tree.get("proof")) if isinstance(tree, dict) else (0, 0)
    if not isinstance(text, str) or not isinstance(given, str | None):
        raise ProblemError(f"{place} must answer JSON with the texts verdict and proof")
    # What no text of a log has in it does not count in any case.
    said = text.encode(errors="replace")
    verdict = read_verdict(said, event.id, f"{place}: the verdict")
    if verdict.entry != entry:
        raise ProblemError(f"{place}: the verdict is on another entry, {verdict.entry.hex()[:16]}…")
    if given is None:
        return None
    proof = LogProof.parse(given.encode(errors="replace"), place)
    found = verdict_time(proof, said, event)
    if found.time_s is None:
        raise ProblemError(f"{place}: the verdict does not count: {found.why_not}")
    return Told(verdict, found.time_s, proof)


def is_by_a_stranger(verdict: Verdict, event: Event, ticket: Ticket | None) -> bool:
    """Whether what is said to stand in a draft's place lacks the mark of the draft's own ticket.

    Then it is no draft of that ticket. It can still be true of who has copied somebody's sealed
    file: the original stands in the place of the copy.
    """
    key = None if ticket is None else own_mark_key(event, ticket.key)
    if key is None or verdict.word != SUPERSEDED:
        return False
    other = bytes.fromhex(verdict.why)
    return event.mark_in(other) != key.mark(other)
