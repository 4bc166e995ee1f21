"""An event by its seed, with all who take part in it, and what must be true afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from bistro.simulation.audits import audited
from bistro.simulation.bistros import LYING_BISTROS, Bistro, Skipping
from bistro.simulation.collector import LYING_COLLECTORS, Collector, Denying, Parties, verdicts_of
from bistro.simulation.people import HandIn, Person, copy_of, file_of
from bistro.simulation.seals import open_sealed
from bistro.simulation.services import LIARS, Forker, Restored, Service
from bistro.simulation.witnesses import make_witnesses
from bistro.simulation.world import DEADLINE_S, EPOCH_S, EVENT, World
from instances.custody import StoredLog, write_batches

from datacollect.bistro.accepting import core as accepting
from datacollect.bistro.audit.custody_audit import Custody
from datacollect.bistro.custody.batches import read_batch
from datacollect.bistro.custody.verdicts import (
    COLLECTED,
    DOES_NOT_OPEN,
    REFUSED,
    SUPERSEDED,
    Verdict,
    read_verdict,
)
from datacollect.bistro.log.checkpoints import SignedCheckpoint, cosigned_times
from datacollect.bistro.log.tree import leaf_hash
from datacollect.bistro.opening import opening
from datacollect.bistro.receipt.receipt import Receipt
from datacollect.bistro.running import destination_round
from datacollect.bistro.service.messages import Row
from datacollect.errors import ProblemError

HEALED_S = 40.0
LATEST_S = DEADLINE_S + EVENT.lag_s
# By then all that can be done is done, until the collection ends, and at last what is kept goes.
CALM_S, MORE_S = 105.0, 15.0
LAST_S = [each - EPOCH_S for each in (EVENT.collect_until_s, EVENT.keep_until_s)]
IN_MEMORY = Path("/dev/shm")


@contextmanager
def quick_disks() -> Iterator[Path]:
    """Yield a folder, in memory where there is one, and open uploads in this process."""
    with (
        TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(opening, "open_sealed", open_sealed)
        patch.setattr(destination_round, "ThreadPoolExecutor", OneThread)
        yield Path(name)


class OneThread:
    """Takes the place of a pool: what is handed in is done when somebody waits for it."""

    def __init__(self, _: int) -> None:
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, do, *values):
        return SimpleNamespace(result=lambda: do(*values))


class WholeEvent:
    """An event that has been carried out."""

    def __init__(self, seed: int, folder: Path) -> None:
        world = self.world = World(seed, HEALED_S, may_duplicate=True)
        random = world.random
        self.folder = folder
        self.victims: set[bytes] = set()
        self.handed: dict[bytes, Receipt] = {}
        self.early_drops: list[tuple[str, bytes]] = []
        kind = random.choice(LIARS) if random.random() < 0.3 else None
        self.witnesses = make_witnesses(world, may_fork=kind in (Forker, Restored))
        self.people = [Person(world, i) for i in range(random.randint(2, 6))]
        self.harmed = {each.name for each in self.people if random.random() < 0.5}
        self.services = [Service(world, 0, self.witnesses)]
        self.services.append(self._second_service(kind))
        self.parties = Parties(self.services, self._bistros())
        make = random.choice(LYING_COLLECTORS) if random.random() < 0.35 else Collector
        secrets = {each.ticket_id: sha256(each.secret).digest() for each in self.people}
        self.collector: Collector = make(
            *(world, self.parties, self.witnesses, secrets, folder, self.victims)
        )
        self.parties.collector = self.collector
        self.files = [file for person in self.people for file in self._drafts(person)]
        self.copies: list[HandIn] = []
        if random.random() < 0.4:
            thief, victim = random.sample(self.people, 2)
            self._copy(thief, victim.handed_in[0])
        self._part()

    def run(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            most_bytes = self.world.random.choice((150, 1000, 2**26))
            patch.setattr(accepting, "MOST_SEGMENT_BYTES", most_bytes)
            self.world.run(CALM_S)
            for at_s in LAST_S:
                self.world.skip(at_s - MORE_S)
                self.world.run(at_s + MORE_S)

    def end(self) -> None:
        """Let go of all folders."""
        self.collector.end()
        for bistro in self.parties.bistros:
            bistro.end()

    # Who takes part -----------------------------------------------------------------------------

    def _second_service(self, kind: type | None) -> Service:
        if kind is None:
            return Service(self.world, 1, self.witnesses)
        liar = kind(self.world, 1, self.witnesses, self.harmed)
        liar.other, liar.stolen = self.services[0], []
        return liar

    def _bistros(self) -> list[Bistro]:
        kinds: list[type[Bistro]] = [Bistro] * len(EVENT.bistros)
        if self.world.random.random() < 0.6:
            kinds[0] = self.world.random.choice(LYING_BISTROS)
        return [
            kind(self.world, i, self.folder, self.victims, self._dropped)
            for i, kind in enumerate(kinds)
        ]

    def _drafts(self, person: Person) -> Iterator[HandIn]:
        random = self.world.random
        at_s = random.uniform(0.5, random.choice((0.6, 1.2)) * LATEST_S)
        for i in range(random.choice((1, 1, 2, 3))):
            file = file_of(person, f"{person.name} {i}", is_damaged=random.random() < 0.15)
            n_copies = random.choice((1, 1, 2))
            yield self._hand_in(HandIn(self.world, person, file, self.parties, at_s, n_copies))
            at_s += random.uniform(2, 8)

    def _hand_in(self, one: HandIn) -> HandIn:
        if one.person.name in self.harmed:
            self.victims.add(one.entry)
        return one

    def _copy(self, thief: Person, victim: HandIn) -> None:
        """Commit to somebody's ciphertext once it can be had of a bistro."""
        if victim.held:
            file = copy_of(victim.file, f"{thief.name} copies")
            one = HandIn(self.world, thief, file, self.parties, self.world.at_s)
            self.copies.append(self._hand_in(one))
        elif self.world.at_s < LATEST_S:
            self.world.after(0.2, lambda: self._copy(thief, victim))

    def _part(self) -> None:
        if self.world.has_faults:
            names = [each.name for each in (*self.people, *self.services, *self.witnesses)]
            names += ["destination", *(each.name for each in self.parties.bistros)]
            for _ in range(self.world.random.randint(0, 8)):
                self.world.part(*self.world.random.sample(names, 2))
            if self.world.random.random() < 0.3:
                # No verdict can be published meanwhile.
                names = [each.name for each in self.witnesses]
                self.world.isolate("destination", names, 2 * HEALED_S)

    # What is true -------------------------------------------------------------------------------

    def _dropped(self, bistro: Bistro, entries: set[bytes]) -> None:
        """Note whose data go before all can read what became of them."""
        if EPOCH_S + self.world.at_s < EVENT.keep_until_s:
            logged = verdicts_of(self.collector.log)
            promised = {
                entry
                for entry in entries - logged.keys()
                if any(bistro.store.whole(entry, sealed_anew=anew) for anew in (False, True))
            }
            self.early_drops += [(bistro.name, entry) for entry in promised]

    def times(self, services: list[Service]) -> dict[bytes, int]:
        """Return by when entries stood in logs, by what is published of them, and by receipts."""
        handed = [proof.signed for each in self.handed.values() for proof in each.proofs]
        found: dict[bytes, int] = {}
        for service in services:
            rows = service.store.rows
            hashes = [leaf_hash(row.entry) for row in rows]
            published = [SignedCheckpoint.parse(note) for note in service.store.published.values()]
            for signed in [*published, *(each for each in handed if each.is_of(service.log))]:
                size = signed.checkpoint.size
                if (
                    size > max(service.store.published, default=0)
                    or _root(hashes[:size]) != signed.checkpoint.root
                ):
                    continue
                said = sorted(cosigned_times(signed.note, EVENT.witness_keys).values())
                time_s = said[EVENT.quorum - 1]
                for row in rows[:size]:
                    found[row.entry] = min(time_s, found.get(row.entry, time_s))
        return found

    @property
    def handed_in(self) -> list[HandIn]:
        return [one for person in self.people for one in person.handed_in]

    def liars(self) -> set[str]:
        """Return who must not be trusted."""
        liars = {
            each.name for each in (*self.witnesses, *self.parties.bistros) if not each.is_honest
        }
        if not self.collector.is_honest:
            liars.add("destination")
        if not self.services[1].is_honest:
            # It takes back what it has said; alone, nobody can tell which service.
            liars |= {"services", self.services[1].log.name}
        return liars

    # The audit ----------------------------------------------------------------------------------

    def audit(self) -> tuple[Custody, set[str]]:
        share = self.world.random.choice((0.5, 1.0, 1.0))
        self.handed = {
            one.entry: one.receipt for one in self.handed_in if self.world.random.random() < share
        }
        receipts: dict[str, Receipt] = {k.hex(): v for k, v in self.handed.items()}
        batches = [
            read_batch(data, EVENT) for each in self.parties.bistros for data in each.shown()
        ]
        self.rows = {
            (batch.bistro, row["entry"].tobytes()) for batch in batches for row in batch.rows
        }
        where = write_batches(self.folder / "fetched", batches)
        logs = [StoredLog(EVENT, each.store) for each in self.services]
        verdicts = StoredLog(EVENT, self.collector.log.store).write(self.folder / "verdicts")
        return audited(EVENT, logs, receipts, where, verdicts, is_over=True)

    # What must be true --------------------------------------------------------------------------

    def check(self) -> set[str]:
        """Judge all from first principles; return what has happened."""
        found, accused = self.audit()
        liars = self.liars()
        assert accused <= liars, (accused, liars)
        for dispute in found.disputes:
            assert liars & set(dispute.between), (dispute, liars)
        self.final = verdicts_of(self.collector.log)
        self._check_counts(found)
        self._check_drops()
        self._check_people(found, accused)
        self._check_copies()
        self._check_refusals()
        self._check_late()
        self._check_named(accused)
        return self._happened(found, accused)

    def _check_counts(self, found: Custody) -> None:
        """Each entry in time is one of four, once."""
        times = self.times(self.services)
        in_time = {entry for entry, at_s in times.items() if at_s <= EVENT.latest_s}
        words = {entry: verdict.word for entry, verdict in self.final.items()}
        expected = Counter(words.get(entry, "missing") for entry in in_time)
        for word in ("collected", "refused", "superseded", "missing"):
            assert found.counts[word] == expected[word], word
        assert found.counts["in_time"] == len(in_time)

    def _check_drops(self) -> None:
        allowed = set() if self.collector.is_honest else self.victims
        assert {entry for _, entry in self.early_drops} <= allowed

    def _is_told(self, entry: bytes, found: Custody, accused: set[str]) -> bool:
        """Whether an audit says that the destination has not done its part."""
        return "destination" in accused or any(
            "destination" in each.between and entry.hex() in each.examples
            for each in found.disputes
        )

    def _check_people(self, found: Custody, accused: set[str]) -> None:
        """Whoever holds an honest bistro's receipt is collected, or an own later draft is."""
        honest = {each.name for each in self.parties.bistros if each.is_honest}
        times = self.times(self.services)
        # What only a lying service has proved, it may take back.
        sure = self.times([each for each in self.services if each.is_honest])
        own = [one for one in self.handed_in if one not in self.copies]
        for person in self.people if self.collector.is_honest else ():
            self._check_drafts([one for one in own if one.person is person], times)
        for one in own:
            entry, verdict = one.entry, self.final.get(one.entry)
            if not honest & one.held.keys() or sure.get(entry, 2**60) > EVENT.latest_s:
                continue
            if not self.collector.is_honest and entry in self.victims:
                is_unprovable = isinstance(self.collector, Denying)
                assert is_unprovable or self._is_told(entry, found, accused) or verdict
                continue
            assert verdict is not None, one.person.name
            is_whole = one.file.data != one.file.data[:-9] and _opens(one.file.data)
            if is_whole or one.anew_held_by in honest:
                assert verdict.word in (COLLECTED, SUPERSEDED), (one.person.name, verdict)
            else:
                assert (verdict.word, verdict.why) == (REFUSED, DOES_NOT_OPEN) or one.is_anew
            if verdict.word == SUPERSEDED:
                self._check_superseded(one, times)

    def _check_superseded(self, one: HandIn, times: dict[bytes, int]) -> None:
        """A later draft of the same person counts; or a copy did, until its original came."""
        contents = {each.file.commitment.content for each in one.person.handed_in}
        time_s = times.get(one.entry, 0)
        while (verdict := self.final[one.entry]).word == SUPERSEDED:
            (one,) = [each for each in self.handed_in if each.entry.hex() == verdict.why]
            assert one.file.commitment.content in contents, "superseded by somebody else's"
        assert verdict.word == COLLECTED
        assert one not in self.copies
        # Whoever is killed forgets which services have not answered yet: one may prove less.
        assert times.get(one.entry, 2**60) >= time_s or self.collector.n_killed

    def _check_refusals(self) -> None:
        """An honest destination refuses for what is so, whatever bistros show it."""
        opening = {one.entry for one in self.handed_in if _opens(one.file.data)}
        for row in self.collector.log.store.rows if self.collector.is_honest else ():
            verdict = read_verdict(row.entry, EVENT.id)
            assert verdict.why != DOES_NOT_OPEN or verdict.entry not in opening

    def _check_late(self) -> None:
        """Nobody honest takes what no log proves in time."""
        times = self.times(self.services)
        for entry, verdict in self.final.items() if self.collector.is_honest else ():
            if verdict.word in (COLLECTED, SUPERSEDED) and entry in times:
                assert times[entry] <= EVENT.latest_s
        names = {each.name for each in self.parties.bistros if each.is_honest}
        for one in self.handed_in:
            time_s = one.time_s
            assert time_s is None or time_s <= EVENT.latest_s or not names & one.held.keys()

    def _check_drafts(self, own: list[HandIn], times: dict[bytes, int]) -> None:
        """Of all drafts of a ticket that came, the last one counts, and no other."""
        came: dict[str, list[HandIn]] = {COLLECTED: [], SUPERSEDED: []}
        for one in own:
            verdict = self.final.get(one.entry)
            if verdict is not None and verdict.word in came:
                came[verdict.word].append(one)
        if came[COLLECTED] or came[SUPERSEDED]:
            (last,) = came[COLLECTED]
            # Of what a lying service has taken back nobody can say when it was there.
            known = [times.get(one.entry, 0) for one in (last, *came[SUPERSEDED])]
            assert known[0] in (0, max(known)) or self.collector.n_killed

    def _check_copies(self) -> None:
        """Who copies a ciphertext gains nothing."""
        for one in self.copies:
            verdict = self.final.get(one.entry)
            original = next(each for each in self.files if each.file.data == one.file.data)
            # Where the original was lost, its content may come as a copy.
            if self.collector.is_honest and verdict is not None and original.entry in self.final:
                assert verdict.word in (REFUSED, SUPERSEDED), verdict

    def _check_named(self, accused: set[str]) -> None:
        """Who has signed what does not fit together is accused."""
        liar = self.parties.bistros[0]
        for party in self.parties.bistros:
            if getattr(party, "has_lied", False):
                assert party.name in accused
        log = self.collector.log.store
        if _contradicts_itself(log.rows[: max(log.published, default=0)]):
            assert "destination" in accused
        if isinstance(liar, Skipping):
            promised = {
                entry
                for entry, receipt in self.handed.items()
                if entry in self.victims and liar.name in self._signers(receipt)
            }
            assert (liar.name in accused) == bool(promised)

    def _signers(self, receipt: Receipt) -> set[str]:
        from datacollect.bistro.custody.bistro_receipt import read_bistro_receipt

        return {read_bistro_receipt(each, EVENT).bistro for each in receipt.bistro_receipts}

    def _happened(self, found: Custody, accused: set[str]) -> set[str]:
        parties = (*self.witnesses, *self.services, *self.parties.bistros, self.collector)
        kinds = {type(each).__name__ for each in parties}
        happened = kinds | {name for name, n in found.counts.items() if n}
        names = {each.name: type(each).__name__ for each in parties}
        happened |= {f"{names.get(each, each)} accused" for each in accused}
        happened |= {
            f"{names[n]} in dispute" for d in found.disputes for n in d.between if n in names
        }
        happened |= {f"refused {why}" for why in found.refused}
        happened |= {"crash of Service" for each in self.services if each.n_crashes}
        happened |= {"crash of Bistro" for each in self.parties.bistros if each.n_crashes}
        happened |= {"killed Collector"} if self.collector.n_killed else set()
        happened |= {"sealed anew" for one in self.handed_in if one.anew_held_by}
        happened |= {"copied" for one in self.copies if one.held}
        happened |= {"run again" for one in self.handed_in if one.n_starts > 1}
        return happened


def _root(hashes: list[bytes]) -> bytes:
    """Return the root of a tree (RFC 6962)."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256().digest()
    half = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\1" + _root(hashes[:half]) + _root(hashes[half:])).digest()


def _contradicts_itself(rows: list[Row]) -> bool:
    """Whether a log of verdicts says what cannot be."""
    collected: set[bytes] = set()
    ever = {each.entry for each in map(_verdict, rows) if each and each.word == COLLECTED}
    for verdict in map(_verdict, rows):
        if verdict is None or (verdict.word == REFUSED and verdict.entry in collected):
            return True
        if verdict.word == SUPERSEDED:
            by = bytes.fromhex(verdict.why)
            if by == verdict.entry or by not in ever:
                return True
        if verdict.word == COLLECTED:
            collected.add(verdict.entry)
    return False


def _verdict(row: Row) -> Verdict | None:
    try:
        return read_verdict(row.entry, EVENT.id)
    except ProblemError:
        return None


def _opens(data: bytes) -> bool:
    return data.endswith(b"]")


def carried_out(seed: int) -> set[str]:
    """Carry an event out and judge it; return what has happened."""
    with quick_disks() as folder:
        whole = WholeEvent(seed, folder)
        try:
            whole.run()
            return whole.check()
        finally:
            whole.end()
