"""An event by its seed, with all who take part in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from bistro.simulation.bistros import LYING_BISTROS, Bistro
from bistro.simulation.collector import LYING_COLLECTORS, Collector, Parties, verdicts_of
from bistro.simulation.people import HandIn, Person, Stranger, copy_of, file_of
from bistro.simulation.seals import open_sealed
from bistro.simulation.services import LIARS, Forker, Restored, Service
from bistro.simulation.witnesses import make_witnesses
from bistro.simulation.world import DEADLINE_S, EPOCH_S, EVENT, World

from datacollect.bistro.destination import opening
from datacollect.bistro.destination.run import destination_round, logged_entries
from datacollect.bistro.destination.run.standing import SETTLES_AFTER_S
from datacollect.bistro.upload_server import core as accepting
from datacollect.errors import DatacollectError
from datacollect.net.fan_out import Outcome

T = TypeVar("T")

HEALED_S = 40.0
LATEST_S = DEADLINE_S + EVENT.lag_s
# By then all that can be done is done, until the collection ends; what never came is said some time
# later, and at last what is kept goes.
CALM_S, MORE_S = 105.0, 9.0
SAID_S = EVENT.collect_until_s + 10 * SETTLES_AFTER_S
LAST_S = [each - EPOCH_S for each in (EVENT.collect_until_s, SAID_S, EVENT.keep_until_s)]
IN_MEMORY = Path("/dev/shm")


@contextmanager
def quick_disks() -> Iterator[Path]:
    """Yield a folder, in memory where there is one, and have seals that cost nothing."""
    with (
        TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(opening, "open_sealed", open_sealed)
        patch.setattr(destination_round, "Meanwhile", Later)
        patch.setattr(logged_entries, "fan_out", one_by_one)
        yield Path(name)


def one_by_one(names: Iterable[str], call: Callable[[str], T]) -> dict[str, Outcome[T]]:
    """Take the place of `datacollect.net.fan_out.fan_out`, without threads."""
    found: dict[str, Outcome[T]] = {}
    for name in names:
        try:
            found[name] = Outcome(name, call(name), None)
        except DatacollectError as error:
            found[name] = Outcome(name, None, error)
    return found


class Later:
    """Takes the place of a thread: what it is to do is done when somebody waits for it."""

    def __init__(self, _: str, do: Callable[[], object]) -> None:
        self.result = do


class WholeEvent:
    """An event that has been carried out."""

    def __init__(self, seed: int, folder: Path) -> None:
        world = self.world = self._made_world(seed)
        self.folder = folder
        self.victims: set[bytes] = set()
        self.early_drops: list[tuple[str, bytes]] = []
        kind = self._lying_service()
        self.witnesses = make_witnesses(world, may_fork=kind in (Forker, Restored))
        self.people = [Person(world, i) for i in range(self._n_people())]
        self.harmed = self._those_who_are_harmed()
        self.services = [Service(world, 0, self.witnesses)]
        self.services.append(self._second_service(kind))
        self.parties = Parties(self.services, self._bistros())
        make = self._kind_of_collector()
        keys = {each.ticket_id: each.ticket.key.public for each in self.people}
        self.collector: Collector = make(
            *(world, self.parties, self.witnesses, keys, folder, self.victims)
        )
        self.parties.collector = self.collector
        self.files = [file for person in self.people for file in self._drafts(person)]
        self.copies: list[HandIn] = []
        self.stranger: Stranger | None = None
        self._come_others()

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

    def _made_world(self, seed: int) -> World:
        return World(seed, HEALED_S, may_duplicate=True)

    def _lying_service(self) -> type | None:
        random = self.world.random
        return random.choice(LIARS) if random.random() < 0.3 else None

    def _n_people(self) -> int:
        return self.world.random.randint(2, 6)

    def _those_who_are_harmed(self) -> set[str]:
        return {each.name for each in self.people if self.world.random.random() < 0.5}

    def _kind_of_collector(self) -> type[Collector]:
        random = self.world.random
        return random.choice(LYING_COLLECTORS) if random.random() < 0.35 else Collector

    def _come_others(self) -> None:
        """Let those come who want something of others; and let hosts be cut off."""
        random = self.world.random
        if random.random() < 0.4:
            thief, victim = random.sample(self.people, 2)
            self._copy(thief, victim.handed_in[0])
        if random.random() < 0.4:
            self.stranger = Stranger(self.world, self.parties, random.choice(self.files))
        self._part()

    def _second_service(self, kind: type | None) -> Service:
        if kind is None:
            return Service(self.world, 1, self.witnesses)
        liar = kind(self.world, 1, self.witnesses, self.harmed)
        liar.other, liar.stolen, liar.heard = self.services[0], [], []
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
        # Whoever has a receipt may show it to anybody.
        for bistro in self.parties.bistros:
            bistro.hear(one.file.commitment)
        return one

    def _copy(self, thief: Person, victim: HandIn) -> None:
        """Commit to somebody's ciphertext once it can be had of a bistro."""
        if victim.held:
            file = copy_of(victim.file, thief, f"{thief.name} copies")
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
        """Note whose data go before all can read what became of them, where they were reported."""
        if bistro.is_honest and EPOCH_S + self.world.at_s < EVENT.keep_until_s:
            logged = verdicts_of(self.collector.log)
            promised = {
                entry
                for entry in entries - logged.keys()
                if any(bistro.store.whole(entry, sealed_anew=anew) for anew in (False, True))
            }
            self.early_drops += [(bistro.name, entry) for entry in promised]

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
