"""Clients: each hands one thing in, and tries services until it holds a proof."""

from __future__ import annotations

import hashlib

from bistro.simulation.services import Said, Service, shown_to
from bistro.simulation.world import END_S, EVENT, World
from instances.events import key_of, marked_by, owner_of, ticket_of

from datacollect.bistro.formats.event.amendments import sign_amendment
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.counted_time import proved_time
from datacollect.bistro.formats.receipt.receipt import PublishedAmendment, Receipt
from datacollect.bistro.log_service.messages import Acknowledge

PATIENCE_S = 1.0
ASKS_EVERY_S = 0.9
# After so long without a proof another service is tried as well.
TRUSTS_S = 4.0

AN_HOUR_LATER = "2027-04-16T00:59:59-04:00"


class Client:
    """A person with a ticket, a file, and a receipt that grows."""

    def __init__(self, world: World, number: int, services: list[Service], at_s: float) -> None:
        self.world, self.name = world, f"c{number}"
        self.at_s = at_s
        self.sealed = self.name.encode()
        self.ticket = ticket_of(EVENT, number)
        digest = hashlib.sha256(self.sealed).digest()
        commitment = Commitment(
            *(EVENT.id, digest, len(self.sealed), digest, digest, owner_of(self.name))
        )
        self.receipt = Receipt(marked_by(EVENT, commitment, number))
        self._services = world.random.sample(services, len(services))
        self._next = 0
        world.after(at_s, self._commit)
        world.after(at_s + TRUSTS_S, self._doubt)
        world.after(at_s + ASKS_EVERY_S, self._prove)

    @property
    def has_proof(self) -> bool:
        return any(
            proved_time(proof, self.receipt.entry, EVENT).time_s is not None
            for proof in self.receipt.proofs
        )

    @property
    def _acknowledged_by(self) -> set[str]:
        return {word.log for word in self.receipt.acknowledgements}

    def _commit(self) -> None:
        """Ask the next service that has not acknowledged; again where nobody answers."""
        asked, entry = len(self.receipt.acknowledgements), self.receipt.entry
        service = self._services[self._next % len(self._services)]
        shown = shown_to(service, self.ticket, entry)
        self._next += 1
        self.world.send(
            self.name,
            service.name,
            lambda: service.commit(self.name, entry, shown, self._acknowledged),
        )

        def still_waiting() -> None:
            if len(self.receipt.acknowledgements) == asked and self.world.at_s < END_S - 5:
                self._commit()

        self.world.after(PATIENCE_S, still_waiting)

    def _acknowledged(self, said: Said) -> None:
        if isinstance(said, Acknowledge):
            self.receipt = self.receipt.with_more(said.words)

    def _doubt(self) -> None:
        if not self.has_proof and len(self._acknowledged_by) < len(self._services):
            self._commit()
            self.world.after(TRUSTS_S, self._doubt)

    def _prove(self) -> None:
        for service in self._services:
            if service.log.name in self._acknowledged_by:
                self._ask_for_proof(service)
        if not self.has_proof or self.world.at_s < END_S / 2:
            self.world.after(ASKS_EVERY_S, self._prove)

    def _ask_for_proof(self, service: Service) -> None:
        def arrived() -> None:
            proof = service.prove(self.name, self.receipt.entry)
            if proof is not None:
                self.world.send(service.name, self.name, lambda: self._proved(proof))

        self.world.send(self.name, service.name, arrived)

    def _proved(self, proof) -> None:
        self.receipt = self.receipt.with_more(proofs=[proof])


class Organiser:
    """Moves the deadline by an hour, for everybody to see or for some only."""

    def __init__(self, world: World, service: Service, at_s: float, *, is_secret: bool) -> None:
        self.world, self.service = world, service
        self.note = sign_amendment(EVENT, {"deadline": AN_HOUR_LATER}, 1, key_of("organiser"))
        self.is_logged = False
        if not is_secret:
            world.after(at_s, self._hand_in)

    def _hand_in(self) -> None:
        self.world.send(
            "organiser",
            self.service.name,
            lambda: self.service.amend("organiser", self.note, self._answered),
        )
        self.world.after(PATIENCE_S, lambda: None if self.is_logged else self._hand_in())

    def _answered(self, said: Said) -> None:
        self.is_logged = self.is_logged or isinstance(said, Acknowledge)

    def published(self) -> PublishedAmendment:
        """Return the amendment with what the log proves of it."""
        proof = self.service.prove("organiser", self.note)
        return PublishedAmendment(self.note, () if proof is None else (proof,))
