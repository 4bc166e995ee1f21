"""One schedule by its seed: who takes part, what happens, and what must be true afterwards."""

from __future__ import annotations

from math import floor

from bistro.simulation.clients import Client, Organiser
from bistro.simulation.services import LIARS, Dropper, Forker, Restored, Service, Thief
from bistro.simulation.witnesses import make_witnesses
from bistro.simulation.world import DEADLINE_S, EPOCH_S, EVENT, EVENT_FILE, World
from instances.log_store import LogStore

from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint, cosigned_times
from datacollect.bistro.formats.log.tiles import TileReader
from datacollect.bistro.formats.log.tree import leaf_hash, tree_root
from datacollect.bistro.formats.receipt.evidence import (
    ReadLog,
    broken_words,
    clocks_set_back,
    two_heads,
)
from datacollect.bistro.formats.receipt.receipt import read_receipt
from datacollect.bistro.formats.receipt.verify import Verdict, verify
from datacollect.bistro.log_service.messages import Refuse

# An honest clock is wrong by 0.3 s at most, and times are whole seconds.
CLOCK_S = 1.3
LATEST_S = DEADLINE_S + EVENT.lag_s


class Schedule:
    """A schedule that has been carried out."""

    def __init__(self, seed: int) -> None:
        world = self.world = World(seed)
        random = world.random
        kind = random.choice((None, None, *LIARS))
        self.witnesses = make_witnesses(world, may_fork=kind in (Forker, Restored))
        n_clients = random.randint(1, 5)
        names = [f"c{i}" for i in range(n_clients)]
        self.services = [Service(world, 0, self.witnesses)]
        if kind is None:
            self.services.append(Service(world, 1, self.witnesses))
        else:
            victims = {name for name in names if random.random() < 0.5}
            liar = kind(world, 1, self.witnesses, victims)
            if isinstance(liar, Thief):
                liar.other, liar.stolen, liar.heard = self.services[0], [], []
            self.services.append(liar)
        self.clients = [
            Client(
                world, i, self.services, random.uniform(0.5, random.choice((0.5, 1.3)) * LATEST_S)
            )
            for i in range(n_clients)
        ]
        self.organiser = Organiser(
            world,
            self.services[0],
            random.uniform(1.0, LATEST_S + 4.0),
            is_secret=random.random() < 0.7,
        )
        if world.has_faults:
            hosts = [*names, *(each.name for each in (*self.services, *self.witnesses))]
            for _ in range(random.randint(0, 6)):
                world.part(*random.sample(hosts, 2))
        world.run()

    def verdict(self, client: Client, *, with_amendment: bool = False) -> Verdict:
        """Return what a client's receipt proves, read from its file."""
        receipt = read_receipt(client.receipt.data)
        assert receipt == client.receipt
        amendments = [self.organiser.published()] if with_amendment else []
        return verify(EVENT_FILE, receipt, ciphertext=[client.sealed], amendments=amendments)

    def audit(self, service: Service) -> tuple[set[str], ReadLog | None]:
        """Return whom the receipts of all clients show to have lied about a service's log."""
        published = service.store.published
        if not published:
            return set(), None
        head = SignedCheckpoint.parse(published[max(published)])
        reader = TileReader(head.checkpoint.size, service.store.tile)
        log = ReadLog(service.log, head, reader.node, is_final=True)
        receipts = [client.receipt for client in self.clients]
        heads = [proof.signed for each in receipts for proof in each.proofs]
        words = [(each.entry, word) for each in receipts for word in each.acknowledgements]
        own = [SignedCheckpoint.parse(note) for note in published.values()]
        lies = two_heads(log, heads + own, EVENT) + broken_words(log, words)
        lies += clocks_set_back(own, EVENT)
        return {lie.who for lie in lies}, log

    # What must be true ------------------------------------------------------------------------

    def check(self) -> None:
        for client in self.clients:
            self._check_time(client)
            self._check_kept(client)
        for service in self.services:
            self._check_named(service)
        self._check_honest_log(self.services[0])
        liar = self.services[1]
        if isinstance(liar, Forker):
            _check_one_log(liar.store, liar.second.store)
        if isinstance(liar, Restored):
            _check_one_log(liar.store, liar.lost)
        self._check_stolen()

    def _check_time(self, client: Client) -> None:
        """No receipt proves a time before the thing was there, nor in time what came late."""
        verdict = self.verdict(client)
        if verdict.time_s is None:
            return
        there_s = EPOCH_S + client.at_s
        assert verdict.time_s >= floor(there_s - CLOCK_S), (verdict.time_s - there_s, client.name)
        assert verdict.is_in_time == (verdict.time_s <= EVENT.deadline_s + 10)
        # What moves the deadline stands in a log, or moves nothing.
        amended = self.verdict(client, with_amendment=True)
        assert amended.is_in_time == (verdict.is_in_time or self.organiser.is_logged)

    def _check_kept(self, client: Client) -> None:
        """What an honest service has acknowledged is in its log, is published and proved."""
        entry = client.receipt.entry
        for service in self.services:
            words = [w for w in client.receipt.acknowledgements if w.log == service.log.name]
            if not words or not service.is_honest:
                continue
            index = service.store.index_of(entry)
            assert {word.index for word in words} == {index}
            assert self.verdict(client).time_s is not None, (client.name, service.name)
            if not self.world.has_faults:
                word_s = min(word.time_s for word in words)
                # Witnesses see it within seconds: what was acknowledged in time counts in time.
                assert self.verdict(client).time_s <= word_s + 10

    def _check_named(self, service: Service) -> None:
        """Who has lied to somebody is named by what that one holds; who has not is not named."""
        named, log = self.audit(service)
        lying_witnesses = {each.name for each in self.witnesses if not each.is_honest}
        assert named <= lying_witnesses | (set() if service.is_honest else {service.log.name})
        if log is None:
            return
        for client in self.clients:
            for word in client.receipt.acknowledgements:
                if word.log != service.log.name:
                    continue
                is_there = word.index < log.size and (
                    log.node(0, word.index) == leaf_hash(client.receipt.entry)
                )
                assert is_there or service.log.name in named

    def _check_honest_log(self, service: Service) -> None:
        """Published heads are beginnings of one log, and so is what honest witnesses signed."""
        store = service.store
        hashes = [leaf_hash(row.entry) for row in store.rows]
        if not store.published:
            return
        reader = TileReader(max(store.published), store.tile)
        assert [reader.node(0, i) for i in range(reader.size)] == hashes[: reader.size]
        for size, note in store.published.items():
            signed = SignedCheckpoint.parse(note)
            assert signed.checkpoint.root == tree_root(size, reader.node)
            assert len(cosigned_times(signed.note, EVENT.witness_keys)) >= EVENT.quorum
        for witness in self.witnesses:
            seen = witness.kept.get(service.log.name)
            if seen is not None and witness.is_honest and seen.size <= reader.size:
                assert seen.root == tree_root(seen.size, reader.node)

    def _check_stolen(self) -> None:
        """What a service has heard of tickets it can use nowhere else, nor burn a quota with."""
        thief = self.services[1]
        if isinstance(thief, Thief):
            assert not {row.entry for row in self.services[0].store.rows} & {*thief.stolen}
            assert all(isinstance(said, Refuse) for said in thief.heard)

    @property
    def events(self) -> set[str]:
        """What has happened in this schedule, to see that something does."""
        found = {type(each).__name__ for each in (*self.services, *self.witnesses)}
        found |= {f"crash of {type(s).__name__}" for s in self.services if s.n_crashes}
        found |= {self.verdict(client).outcome for client in self.clients}
        found |= {"extended" if self.organiser.is_logged else "not extended"}
        found |= {"restarted witness" for each in self.witnesses if each.n_starts > 1}
        liar = self.services[1]
        if isinstance(liar, Dropper | Forker) and liar.log.name in self.audit(liar)[0]:
            found.add(f"named {type(liar).__name__}")
        if isinstance(liar, Thief) and liar.heard:
            found.add("refused Thief")
        return found


def _check_one_log(one: LogStore, other: LogStore) -> None:
    """What was published of two logs under one key is one log as far as both go."""
    stop = min(max(each.published, default=0) for each in (one, other))
    assert one.entries(0, stop) == other.entries(0, stop), "two logs were published"
