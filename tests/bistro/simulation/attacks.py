"""Those who would stop somebody's hand-in, by all that they hear of it or by sheer number.

Each tries what has stopped others once: where tickets were words that anybody could repeat, where
budgets were kept by what strangers said, and where a promise of bytes held all room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

from bistro.simulation.bistros import Bistro, LyingBistro, Reply
from bistro.simulation.people import PATIENCE_S, File, HandIn, Person, Stranger, file_of, given_up
from bistro.simulation.services import Said, Service, Thief
from bistro.simulation.world import DEADLINE_S, EVENT
from instances.events import marked_by, owner_key

from datacollect.bistro.formats.event.tickets import Shown
from datacollect.bistro.formats.receipt.upload_wish import metadata_of, metadata_text, push_metadata
from datacollect.bistro.person.pushing import Begin, End, Look, Step
from datacollect.net.http_asking import Answer

LATEST_S = DEADLINE_S + EVENT.lag_s
# So often each is tried: once, a place was lost for good after five times.
N_TRIES = 6
# What each entry of a flooder promises to send: together more than a bistro has.
PROMISED_BYTES = 2**28
N_FLOODING = 10
# Drafts of who chooses among them, and how many he sends.
N_CHOOSING, N_CHOSEN = EVENT.commitments_per_ticket + 3, 3


class Pestering(Stranger):
    """A stranger with a ticket who pushes, spoils and gives up another's entry, again and again."""

    def _look(self) -> None:
        if self.victim.receipt.proofs:
            for i in range(N_TRIES):
                for bistro in self.parties.bistros:
                    self.world.after(0.3 * i, lambda bistro=bistro: self._try(bistro))
        elif self.world.at_s < LATEST_S:
            self.world.after(0.05, self._look)

    def _try(self, bistro: Bistro) -> None:
        self._push(bistro)
        # Where an upload lies is told to its signer alone; so it is guessed.
        path = f"/tus/{self.world.random.randbytes(8).hex()}"
        end = End(0, path)
        self._ask(bistro, Look(0, path), b"")
        self._ask(bistro, end, given_up(owner_key(self.name), bistro, end))

    def _ask(self, bistro: Bistro, step: Step, sent: bytes) -> None:
        def answered(answer: Answer | None) -> None:
            self.answers += [] if answer is None else [answer]

        self.world.ask(
            *(self.name, bistro.name, lambda reply: bistro.tus(step, "", 0, sent, reply)),
            *(answered, PATIENCE_S),
        )


class Spending(Thief):
    """A service that spends, elsewhere, what it has heard of each ticket: all of its quota."""

    def __init__(self, *how) -> None:
        super().__init__(*how)
        self.shown: list[Shown] = []

    def commit(self, client, entry, shown, reply) -> None:
        super().commit(client, entry, shown, reply)
        if client in self.victims:
            self.shown.append(shown)
            for i in range(EVENT.commitments_per_ticket + 1):
                theirs = sha256(f"spent {client} {i}".encode()).digest()
                self.stolen.append(theirs)
                self.other.commit(self.name, theirs, shown, self.heard.append)


class Repeating(LyingBistro):
    """A bistro that pushes elsewhere, in a person's name, what it was shown; and goes on pushing.

    Attributes
    ----------
    others : list of Bistro
    service : Spending or None
        With whom it shares what both have heard.
    """

    def __init__(self, *how) -> None:
        self.others: list[Bistro] = []
        self.service: Service | None = None
        self.answers: list[Answer] = []
        super().__init__(*how)

    def tus(self, step: Step, metadata: str, size: int, data: bytes, reply: Reply) -> None:
        if isinstance(step, Begin):
            for other in self.others:
                for said in (metadata, *self._by_what_the_service_heard(metadata)):
                    self._push(other, said, size)
        super().tus(step, metadata, size, data, reply)

    def _push(self, other: Bistro, metadata: str, size: int) -> None:
        other.tus(Begin(0, size), metadata, size, bytes(size), self.answers.append)

    def _by_what_the_service_heard(self, metadata: str) -> list[str]:
        """Put what a ticket has signed for the service where its signature for a bistro belongs."""
        values = metadata_of(metadata)
        shown = self.service.shown if isinstance(self.service, Spending) else []
        return [
            metadata_text(values | {"ticket": each.token.encode(), "holder": each.signature})
            for each in shown[-3:]
        ]


class Flooding(HandIn):
    """Promises a lot to each bistro and sends nothing; asks a service without end."""

    def _push(self) -> None:
        self.answers = getattr(self, "answers", [])
        for bistro in self.parties.bistros:
            metadata = push_metadata(
                self.file.commitment,
                self.receipt.proofs[0].data if self.receipt.proofs else None,
                event=EVENT,
                bistro_key=bistro.listed.key,
                sha256=self.file.commitment.ciphertext_sha256,
                size=PROMISED_BYTES,
                owner=self.file.owner,
                ticket=self.person.ticket,
            )
            self._promise(bistro, metadata)
        for service in self.parties.services:
            self._flood(service)

    def _promise(self, bistro: Bistro, metadata: str) -> None:
        def asked(reply: Callable[[Answer], None]) -> None:
            bistro.tus(Begin(0, 0), metadata, PROMISED_BYTES, b"", reply)

        self.world.ask(self.person.name, bistro.name, asked, self._promised, PATIENCE_S)

    def _promised(self, answer: Answer | None) -> None:
        self.answers += [] if answer is None else [answer]

    def _flood(self, service: Service) -> None:
        """Commit to more than a ticket is good for, and sign nothing of it."""
        said: list[Said] = []
        for i in range(N_FLOODING):
            entry = sha256(f"flood {self.entry.hex()} {i}".encode()).digest()
            shown = Shown(self.person.ticket.token, bytes(64))
            service.commit(self.person.name, entry, shown, said.append)


def promised(person: Person, text: str) -> File:
    """Return a file that is never sent, as large as may be."""
    file = file_of(person, text, is_damaged=False)
    commitment = replace(file.commitment, size=PROMISED_BYTES)
    commitment = marked_by(EVENT, commitment, person.number)
    return File(commitment, file.data, None, file.owner)


class Choosing(HandIn):
    """One of more drafts than a ticket is good for, at several services; some come after the end.

    Those are pushed when the questions may be known, and none of the others ever is.

    Attributes
    ----------
    turn : int
        Which draft it is, from 0.
    """

    def __init__(self, turn: int, *how) -> None:
        self.turn = turn
        super().__init__(*how)

    def _order(self) -> list[int]:
        return [self.turn % len(EVENT.services)]

    def _push(self) -> None:
        if self.turn < N_CHOOSING - N_CHOSEN:
            return
        if self.world.at_s > LATEST_S + 2:
            super()._push()
        else:
            self._later(LATEST_S + 3 - self.world.at_s, self._push)


class Rewinding(HandIn):
    """Begins and gives up at all bistros until the deadline has passed; then pushes after all."""

    def _push(self) -> None:
        if self.world.at_s > LATEST_S + 2:
            super()._push()
            return
        for bistro in self.parties.bistros:
            self._spoil(bistro, N_TRIES)
        self._later(LATEST_S + 3 - self.world.at_s, self._push)

    def _spoil(self, bistro: Bistro, n_left: int) -> None:
        """Send all but a byte of something else, and give it up."""
        data = self.file.data[:-1]
        metadata = push_metadata(
            self.file.commitment,
            self.receipt.proofs[0].data if self.receipt.proofs else None,
            event=EVENT,
            bistro_key=bistro.listed.key,
            sha256=self.file.commitment.ciphertext_sha256,
            size=len(self.file.data),
            owner=self.file.owner,
            ticket=self.person.ticket,
        )

        def asked(reply: Callable[[Answer], None]) -> None:
            bistro.tus(Begin(0, len(data)), metadata, len(self.file.data), bytes(len(data)), reply)

        def answered(answer: Answer | None) -> None:
            if answer is not None and answer.status == 201 and n_left:
                end = End(0, answer.headers["location"])
                signature = given_up(self.file.owner, bistro, end)
                bistro.tus(end, "", 0, signature, lambda _: self._spoil(bistro, n_left - 1))

        self.world.ask(self.person.name, bistro.name, asked, answered, PATIENCE_S)
