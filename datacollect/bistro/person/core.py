"""State machine of handing in (sans I/O): asks services until a receipt proves a time.

Services are asked in turn, the next one where one refuses, is silent, or has acknowledged and
proves nothing. The entry is the same everywhere: in however many logs it stands, it is handed in
once. Where all services have failed, outside authorities are asked beside them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.formats.receipt.receipt import read_acknowledgement
from datacollect.bistro.formats.receipt.tokens import (
    AUTHORITIES_NEEDED,
    certified_by,
    outside_time,
    token_time,
)
from datacollect.bistro.person.messages import Answered, AskAuthority, AskProof, Commit, Save
from datacollect.errors import ProblemError
from datacollect.net.safe_text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from datacollect.bistro.formats.event.event import Event as OfEvent
    from datacollect.bistro.formats.receipt.receipt import Receipt
    from datacollect.bistro.person.messages import Action, Event, Question
    from datacollect.net.http_asking import Answer

State: TypeAlias = Literal["proved", "acknowledged", "refused", "unanswered"]

# How long a service is asked alone; a proof usually comes within three seconds.
IN_TURN_S = 3.0
TRUSTED_S = 5.0
# When who gave no answer is asked again: the first time, and at most.
AGAIN_S, MOST_AGAIN_S = 1.0, 15.0
PROOF_AGAIN_S = 1.0
# How long a late entry's proof is asked for again: one more witness may make it one in time.
LATE_S = 10.0
# Proofs of one log that are kept; beyond these, only such as prove an earlier time.
MOST_OF_ONE_LOG = 8
# With this an answer says that nothing will change by asking again.
FINAL = (400, 403, 410, 413)


@dataclass
class _Asked:
    """Facts known of a service or an authority."""

    name: str
    next_s: float = 0.0
    is_busy: bool = False
    n_failures: int = 0
    is_closed: bool = False
    status: int | None = None
    why: str = ""

    def may_be_asked(self, now_s: float) -> bool:
        return not self.is_busy and not self.is_closed and now_s >= self.next_s

    def failed(self, now_s: float, why: str, again_s: float | None = None) -> None:
        """Note a failure: each time it is left alone for longer."""
        self.why = why
        wait_s = min(AGAIN_S * 2.0**self.n_failures, MOST_AGAIN_S)
        self.n_failures = min(self.n_failures + 1, 10)
        self.next_s = now_s + (wait_s if again_s is None else max(again_s, AGAIN_S))


class HandingIn:
    """Hands one entry in, until a time is proved, or patience ends.

    Parameters
    ----------
    event : Event
        Of the file.
    receipt : Receipt
        As far as it is: of another start, it has what was proved by then.
    order : sequence of int
        The event's services, by their index, in which they are asked.
    now_s : float
        A monotonic clock's.
    patience_s : float
        After so long it ends, whatever is proved.

    Attributes
    ----------
    receipt : Receipt
    wake_s : float or None
        When to tell it that time has passed; None: it is over.
    """

    def __init__(
        self,
        event: OfEvent,
        receipt: Receipt,
        order: Sequence[int],
        now_s: float,
        patience_s: float,
    ) -> None:
        self.event, self.receipt = event, receipt
        self.wake_s: float | None = now_s
        self._order = order
        self._end_s = now_s + patience_s
        self._services = [_Asked(each.url) for each in event.services]
        self._authorities = [_Asked(each.url) for each in event.authorities]
        for i in certified_by(receipt.tokens, receipt.entry, event.authorities):
            self._authorities[i].is_closed = True
        # No time yet: nothing is late.
        self._late_end_s = math.inf
        # The next service is tried then, where nobody has failed before.
        self._turn_s = now_s
        self._holders = {
            i
            for i, service in enumerate(event.services)
            if any(word.is_by(service.log, receipt.entry) for word in receipt.acknowledgements)
            or any(proof.signed.is_of(service.log) for proof in receipt.proofs)
        }
        if self._holders:
            self._turn_s = now_s + TRUSTED_S
        self.time_s = self._time()

    @property
    def state(self) -> State:
        """Return how far it is."""
        if self.time_s is not None:
            return "proved"
        if self._holders:
            return "acknowledged"
        return "refused" if all(each.is_closed for each in self._services) else "unanswered"

    @property
    def is_acknowledged(self) -> bool:
        """Return whether a service holds it, or a time is proved without any."""
        return self.time_s is not None or bool(self._holders)

    @property
    def refusals(self) -> list[tuple[str, int | None, str]]:
        """URL, status and words of each that gave no help; status None: no answer."""
        asked = [*self._services, *self._authorities]
        return [(each.name, each.status, each.why) for each in asked if each.why]

    def handle(self, event: Event) -> list[Action]:
        """Take what has happened; return what to do now, in this order."""
        if self.wake_s is None:
            return []
        actions: list[Action] = []
        if isinstance(event, Answered):
            before = self.receipt
            self._take(event)
            if self.receipt != before:
                self.time_s = self._time()
                actions.append(Save())
        now_s = event.now_s
        is_hopeless = all(each.is_closed for each in [*self._services, *self._authorities])
        is_busy = any(each.is_busy for each in [*self._services, *self._authorities])
        if self.time_s is not None:
            self._late_end_s = min(self._late_end_s, now_s + LATE_S)
        is_over = now_s >= min(self._end_s, self._late_end_s)
        if self.is_settled or is_over or (is_hopeless and not is_busy):
            self.wake_s = None
            return actions
        actions += self._questions(now_s)
        waits = [each.next_s for each in [*self._services, *self._authorities]]
        waits += [self._turn_s, self._end_s, self._late_end_s]
        self.wake_s = min(each for each in waits if each > now_s)
        return actions

    @property
    def is_settled(self) -> bool:
        """Return whether asking again could make the time no earlier that counts."""
        if self.time_s is None:
            return False
        keys = self.event.witness_keys
        return (
            self.time_s <= self.event.latest_s
            or not self._holders
            or any(
                len(cosigned_times(p.signed.note, keys)) == len(keys) for p in self.receipt.proofs
            )
        )

    # What to ask ------------------------------------------------------------------------------

    def _questions(self, now_s: float) -> Iterator[Question]:
        for i in sorted(self._holders):
            if self._services[i].may_be_asked(now_s):
                self._services[i].is_busy = True
                yield AskProof(i)
        if self.time_s is not None:
            return
        if now_s >= self._turn_s:
            found = [i for i in self._order if i not in self._holders]
            free = [i for i in found if self._services[i].may_be_asked(now_s)]
            if free:
                # Who has failed least, in the order.
                i = min(free, key=lambda i: self._services[i].n_failures)
                self._services[i].is_busy = True
                self._turn_s = now_s + IN_TURN_S
                yield Commit(i)
        if len(self._authorities) >= AUTHORITIES_NEEDED and self._all_have_failed:
            for i, authority in enumerate(self._authorities):
                if authority.may_be_asked(now_s):
                    authority.is_busy = True
                    yield AskAuthority(i)

    @property
    def _all_have_failed(self) -> bool:
        return not self._holders and all(
            each.is_closed or each.n_failures for each in self._services
        )

    # What was answered ------------------------------------------------------------------------

    def _take(self, event: Answered) -> None:
        to, now_s = event.to, event.now_s
        asked = (
            self._authorities[to.authority]
            if isinstance(to, AskAuthority)
            else self._services[to.service]
        )
        asked.is_busy = False
        asked.status = None if event.answer is None else event.answer.status
        if event.answer is None:
            asked.failed(now_s, event.why)
        else:
            try:
                self._judge(to, asked, event.answer, now_s)
            except ProblemError as error:
                # It answers, but nothing that counts: that is its own matter, or an attacker's.
                asked.failed(now_s, safe_text(str(error)))
        if isinstance(to, Commit) and to.service not in self._holders:
            self._turn_s = now_s

    def _judge(self, to: Question, asked: _Asked, answer: Answer, now_s: float) -> None:
        match to:
            case Commit(i):
                self._committed(i, asked, answer, now_s)
            case AskProof(i):
                self._proved(i, asked, answer, now_s)
            case AskAuthority(i):
                self._certified(i, asked, answer, now_s)

    def _committed(self, i: int, asked: _Asked, answer: Answer, now_s: float) -> None:
        if answer.status != 200:
            self._refused(asked, answer, now_s)
            return
        log = self.event.services[i].log
        word = read_acknowledgement(answer.body, log.name)
        if not word.is_by(log, self.receipt.entry):
            raise ProblemError("the service's acknowledgement is not signed by the key of its log")
        self.receipt = self.receipt.with_word(word)
        self._holders.add(i)
        self._turn_s = now_s + TRUSTED_S
        asked.next_s, asked.n_failures, asked.why = now_s + PROOF_AGAIN_S, 0, ""

    def _proved(self, i: int, asked: _Asked, answer: Answer, now_s: float) -> None:
        if answer.status == 202:
            wait_s = answer.retry_after_s or PROOF_AGAIN_S
            asked.next_s = now_s + min(max(wait_s, PROOF_AGAIN_S), MOST_AGAIN_S)
            return
        if answer.status == 404:
            # It does not hold what it has acknowledged: its word in the receipt is evidence.
            self._holders.discard(i)
            asked.failed(now_s, "the service has acknowledged the entry, but does not hold it")
            self._turn_s = now_s
            return
        if answer.status != 200:
            self._refused(asked, answer, now_s)
            return
        proof = LogProof.parse(answer.body)
        found = proved_time(proof, self.receipt.entry, self.event)
        if found.log != self.event.services[i].log.name:
            raise ProblemError("the service's proof is of another log")
        if found.time_s is None:
            raise ProblemError(f"the service's proof does not count: {found.why_not}")
        n_own = sum(each.signed.checkpoint.origin == found.log for each in self.receipt.proofs)
        if n_own < MOST_OF_ONE_LOG or self.time_s is None or found.time_s < self.time_s:
            self.receipt = self.receipt.with_more(proofs=[proof])
        asked.next_s, asked.n_failures, asked.why = now_s + PROOF_AGAIN_S, 0, ""

    def _certified(self, i: int, asked: _Asked, answer: Answer, now_s: float) -> None:
        if answer.status != 200:
            self._refused(asked, answer, now_s)
            return
        token_time(answer.body, self.receipt.entry, self.event.authorities[i])
        self.receipt = self.receipt.with_more(tokens=[answer.body])
        asked.is_closed, asked.why = True, ""

    def _refused(self, asked: _Asked, answer: Answer, now_s: float) -> None:
        text = safe_text(answer.body.decode(errors="replace").strip())
        asked.failed(now_s, text or f"answers {answer.status}", answer.retry_after_s)
        asked.is_closed = answer.status in FINAL and answer.retry_after_s is None

    def _time(self) -> int | None:
        """Return the least time that the receipt proves by now."""
        found = [proved_time(each, self.receipt.entry, self.event) for each in self.receipt.proofs]
        outside_s, _ = outside_time(self.receipt.tokens, self.receipt.entry, self.event.authorities)
        times = [each.time_s for each in found] + [outside_s]
        return min((each for each in times if each is not None), default=None)
