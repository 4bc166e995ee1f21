"""Services: an honest one that crashes, and those that lie."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from bistro.simulation.witnesses import Witness
from bistro.simulation.world import EVENT, World
from instances.custody import StoredLog
from instances.events import key_of
from instances.log_store import LogStore

from datacollect.bistro.formats.event.statements import commit_statement
from datacollect.bistro.formats.event.tickets import Shown, Ticket
from datacollect.bistro.formats.log.acknowledgement import acknowledge
from datacollect.bistro.formats.log.notes import VerifierKey
from datacollect.bistro.formats.log.proofs import LogProof
from datacollect.bistro.log_service import messages, requests
from datacollect.bistro.log_service.core import ServiceCore
from datacollect.bistro.log_service.proving import proof_of
from datacollect.net.http_asking import Answer
from datacollect.net.keys import PrivateKey

Said: TypeAlias = messages.Acknowledge | messages.Refuse
Reply: TypeAlias = Callable[[Said], None]

PATIENCE_S = 1.5


def shown_to(service: Service, ticket: Ticket, entry: bytes) -> Shown:
    """Return what a person shows of a ticket: it has signed an entry, for one service."""
    said = commit_statement(EVENT.id, service.log.key, [entry])
    return Shown(ticket.token, ticket.key.sign(said))


class Service:
    """An honest service: a core, a disk, a network; it loses its power now and then."""

    def __init__(self, world: World, which: int, witnesses: list[Witness]) -> None:
        self.world, self.which, self.witnesses = world, which, witnesses
        self.name, self.key, self.log = self._identity(which)
        self.store = LogStore()
        self.core: ServiceCore | None = None
        self.n_crashes = self.n_requests = 0
        self._start()
        if world.has_faults:
            for _ in range(world.random.choice((0, 0, 1, 2, 3))):
                world.after(world.random.uniform(0, world.healed_s), self.crash)

    is_honest = True

    def _identity(self, which: int) -> tuple[str, PrivateKey, VerifierKey]:
        return f"s{which}", key_of(f"s{which}"), EVENT.services[which].log

    def _start(self) -> None:
        self.core = ServiceCore(EVENT, self.key, self.store.kept(), self.store)
        self._disk: deque[messages.Action] = deque()
        self._replies: dict[int, tuple[str, Reply]] = {}
        self._asks: dict[int, int] = {}
        self._wake_s = float("inf")
        self.tell(messages.Ticked(self.world.now()))

    def crash(self) -> None:
        """Lose the power: of what was under way to the disk a beginning is there, or nothing."""
        if self.core is None:
            return
        self.n_crashes += 1
        self.core = None
        for _ in range(self.world.random.randint(0, len(self._disk))):
            self._write(self._disk.popleft())
        if self._disk and isinstance(self._disk[0], messages.StoreHead):
            self.store.store_tiles(self._disk[0])
        self.world.after(self.world.random.uniform(0.1, 3.0), self._start)

    def tell(self, event: messages.Event) -> None:
        assert self.core is not None
        for action in self.core.handle(event):
            self._do(action)
        wake_s = self.core.wake_s
        if wake_s is not None and wake_s < self._wake_s:
            self._wake_s = wake_s
            self._later(max(wake_s - self.world.at_s, 1e-6), self._wake)

    def _wake(self) -> None:
        self._wake_s = float("inf")
        self.tell(messages.Ticked(self.world.now()))

    def _later(self, delay_s: float, do: Callable[[], None]) -> None:
        """Do something unless the power is lost before."""
        core = self.core
        self.world.after(delay_s, lambda: do() if self.core is core else None)

    def _do(self, action: messages.Action) -> None:
        if isinstance(action, messages.Store | messages.StoreHead | messages.Publish):
            self._disk.append(action)
            if len(self._disk) == 1:
                self._later(self.world.random.uniform(0.001, 0.03), self._written)
        elif isinstance(action, messages.AskWitness):
            self._ask(action)
        elif isinstance(action, messages.Acknowledge | messages.Refuse):
            client, reply = self._replies.pop(action.request)
            self._reply(client, reply, action)

    def _write(self, action: messages.Action) -> messages.Event:
        now = self.world.now()
        if isinstance(action, messages.Store):
            self.store.store(action)
            return messages.Stored(now, action.first + len(action.rows))
        if isinstance(action, messages.StoreHead):
            self.store.store_head(action)
            return messages.HeadStored(now, action.size)
        assert isinstance(action, messages.Publish)
        self.store.publish(action)
        return messages.Published(now, action.size)

    def _written(self) -> None:
        event = self._write(self._disk.popleft())
        if self._disk:
            self._later(self.world.random.uniform(0.001, 0.03), self._written)
        self.tell(event)

    def _ask(self, action: messages.AskWitness) -> None:
        witness, core = self.witnesses[action.witness], self.core
        self.n_requests += 1
        number = self._asks[action.witness] = self.n_requests

        def answered(status: int | None, body: bytes) -> None:
            # What comes after the patience has ended is not heard.
            if self.core is core and self._asks.get(action.witness) == number:
                del self._asks[action.witness]
                now = self.world.now()
                self.tell(messages.WitnessAnswered(now, action.witness, status, body))

        def arrived() -> None:
            witness.asked(
                action.body,
                lambda status, body: self.world.send(
                    witness.name, self.name, lambda: answered(status, body)
                ),
            )

        self.world.send(self.name, witness.name, arrived)
        self.world.after(PATIENCE_S, lambda: answered(None, b""))

    def _reply(self, client: str, reply: Reply, said: Said) -> None:
        self.world.send(self.name, client, lambda: reply(said))

    # What clients ask for.

    def commit(self, client: str, entry: bytes, shown: Shown, reply: Reply) -> None:
        """Take an entry; `reply` is told what it is answered."""
        if self.core is not None:
            random = self.world.random
            if (
                self.world.at_s < self.world.healed_s
                and self.world.has_faults
                and random.random() < 0.2
            ):
                # When it hurts most: while the entry is on its way to the disk, and its word out.
                self.world.after(random.uniform(0, 0.06), self.crash)
            number = self._number(client, reply)
            self.tell(requests.CommitAsked(self.world.now(), number, (entry,), shown, client))

    def amend(self, client: str, note: bytes, reply: Reply) -> None:
        """Take an amendment."""
        if self.core is not None:
            number = self._number(client, reply)
            self.tell(requests.AmendAsked(self.world.now(), number, note, client))

    def _number(self, client: str, reply: Reply) -> int:
        self.n_requests += 1
        self._replies[self.n_requests] = (client, reply)
        return self.n_requests

    def prove(self, client: str, entry: bytes) -> LogProof | None:
        """Return a proof, if there is one."""
        if self.core is None:
            return None
        index = self.store.index_of(entry)
        return None if index is None else proof_of(index, self.store)

    def show_log(self, reply: Callable[[StoredLog], None]) -> None:
        """Let somebody read its log."""
        if self.core is not None:
            reply(StoredLog(EVENT, self.store))

    def answer_proof(self, client: str, entry: bytes, reply: Callable[[Answer], None]) -> None:
        """Answer ``GET /proof/HEX``."""
        if self.core is not None:
            proof = self.prove(client, entry)
            is_known = proof is not None or self.store.index_of(entry) is not None
            reply(
                Answer(202 if is_known else 404, b"") if proof is None else Answer(200, proof.data)
            )


class LyingService(Service):
    """A service that treats some of its clients in another way; to auditors it shows the rest."""

    is_honest = False

    def __init__(
        self, world: World, which: int, witnesses: list[Witness], victims: set[str]
    ) -> None:
        self.victims = victims
        super().__init__(world, which, witnesses)


class Dropper(LyingService):
    """Acknowledges its victims' entries and logs none of them."""

    def commit(self, client, entry, shown, reply) -> None:
        if client not in self.victims:
            super().commit(client, entry, shown, reply)
            return
        n_entries = len(self.store.rows)
        now_s = int(self.world.now().unix_s) - 100
        word = acknowledge(self.log.name, entry, n_entries, now_s, self.key)
        self._reply(client, reply, messages.Acknowledge(0, (word,)))


class Silent(LyingService):
    """Answers all but its victims."""

    def commit(self, client, entry, shown, reply) -> None:
        if client not in self.victims:
            super().commit(client, entry, shown, reply)


class Forker(LyingService):
    """Shows its victims a second log, under the same key."""

    def __init__(self, world, which, witnesses, victims) -> None:
        super().__init__(world, which, witnesses, victims)
        self.second = Service(world, which, witnesses)

    def commit(self, client, entry, shown, reply) -> None:
        if client in self.victims:
            self.second.commit(client, entry, shown, reply)
        else:
            super().commit(client, entry, shown, reply)

    def prove(self, client, entry) -> LogProof | None:
        if client in self.victims:
            return self.second.prove(client, entry)
        return super().prove(client, entry)


class Restored(LyingService):
    """Loses its disk once, and goes on from an old copy as if nothing had happened."""

    def __init__(self, world, which, witnesses, victims) -> None:
        super().__init__(world, which, witnesses, victims)
        self.lost = LogStore()
        copied_s = world.random.uniform(0, world.healed_s)
        world.after(copied_s, self._copy)
        world.after(world.random.uniform(copied_s, world.healed_s), self._restore)

    def _copy(self) -> None:
        self._old = copy.deepcopy(self.store)

    def _restore(self) -> None:
        self.crash()
        self._disk.clear()
        self.lost, self.store = self.store, self._old


class Thief(LyingService):
    """Hands in at another service what it likes, with all that it has heard of tickets."""

    other: Service
    stolen: list[bytes]
    heard: list[Said]

    def commit(self, client, entry, shown, reply) -> None:
        super().commit(client, entry, shown, reply)
        if client in self.victims and len(self.stolen) < 5:
            theirs = bytes([len(self.stolen) + 1]) * 32
            self.stolen.append(theirs)
            self.other.commit(self.name, theirs, shown, lambda _: None)
            # What the victim has not handed in there itself, it may at least repeat.
            self.other.commit(self.name, entry, shown, self.heard.append)


LIARS = (Dropper, Silent, Forker, Restored, Thief)
