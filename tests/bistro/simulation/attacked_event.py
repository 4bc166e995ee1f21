"""An event in which somebody wants to stop others, and an honest person beside each such.

The network and the power are well: whatever then goes wrong for the honest was somebody's doing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bistro.simulation.attacks import (
    N_CHOOSING,
    N_FLOODING,
    Choosing,
    Flooding,
    Pestering,
    Repeating,
    Rewinding,
    Spending,
    promised,
)
from bistro.simulation.bistros import LYING_BISTROS, Bistro
from bistro.simulation.collector import Collector
from bistro.simulation.event import HEALED_S, quick_disks
from bistro.simulation.judged_event import JudgedEvent
from bistro.simulation.people import HandIn, Person, file_of
from bistro.simulation.services import LIARS, Dropper, Forker, Restored, Service
from bistro.simulation.world import EVENT, World

from datacollect.bistro.auditor.custody_audit import Custody
from datacollect.bistro.formats.custody.verdicts import COLLECTED
from datacollect.bistro.formats.log.tree import leaf_hash
from datacollect.bistro.log_service.messages import Refuse

STRANGER, SERVICE, BISTRO = "stranger with a ticket", "lying service", "lying bistro"
TOGETHER, FLOODER, REWINDER = "service and bistro together", "flooder", "rewinder"
CHOOSER = "chooser"
CHEATS = (STRANGER, SERVICE, BISTRO, TOGETHER, FLOODER, REWINDER, CHOOSER)
N_HONEST = 2
# What whoever may not do it is told, wherever he tries.
REFUSALS = {403, 404, 409, 413, 507}


class AttackedEvent(JudgedEvent):
    """An event by its seed: one of the cheats, or several."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.first = CHEATS[seed % len(CHEATS)]
        super().__init__(seed, folder)

    # Who takes part -----------------------------------------------------------------------------

    def _made_world(self, seed: int) -> World:
        world = World(seed, HEALED_S, has_faults=False)
        # More than all that one ticket can reserve.
        world.rooms = (10**9,)
        more = world.random.sample(CHEATS, world.random.choice((0, 0, 1, 2, len(CHEATS))))
        self.cheats = {self.first, *more}
        return world

    def _lying_service(self) -> type | None:
        if TOGETHER in self.cheats:
            return Spending
        kinds = (Spending, Spending, *LIARS)
        return self.world.random.choice(kinds) if SERVICE in self.cheats else None

    def _second_service(self, kind: type | None) -> Service:
        made = super()._second_service(kind)
        self.liar = made
        return made

    def _n_people(self) -> int:
        return N_HONEST + 3

    def _those_who_are_harmed(self) -> set[str]:
        return {each.name for each in self.honest}

    @property
    def honest(self) -> list[Person]:
        return self.people[:N_HONEST]

    def _kind_of_collector(self) -> type[Collector]:
        return Collector

    def _bistros(self) -> list[Bistro]:
        kinds: list[type[Bistro]] = [Bistro] * len(EVENT.bistros)
        if TOGETHER in self.cheats:
            kinds[0] = Repeating
        elif BISTRO in self.cheats:
            kinds[0] = self.world.random.choice((Repeating, Repeating, *LYING_BISTROS))
        found = [
            kind(self.world, i, self.folder, self.victims, self._dropped)
            for i, kind in enumerate(kinds)
        ]
        first = found[0]
        if isinstance(first, Repeating):
            first.others = found[1:]
            first.service = self.liar if TOGETHER in self.cheats else None
        return found

    def _drafts(self, person: Person) -> Iterator[HandIn]:
        random = self.world.random
        at_s = random.uniform(0.3, 3.0)
        kind = self.people.index(person)
        if person in self.honest:
            # Two copies: who has one, at a liar, learns of it by the verdict that is missing.
            file = file_of(person, person.name, is_damaged=False)
            yield self._hand_in(HandIn(self.world, person, file, self.parties, at_s, 2))
        elif kind == N_HONEST and FLOODER in self.cheats:
            for i in range(N_FLOODING):
                file = promised(person, f"{person.name} {i}")
                yield self._hand_in(Flooding(self.world, person, file, self.parties, 0.1))
        elif kind == N_HONEST + 1 and REWINDER in self.cheats:
            for i in range(3):
                file = file_of(person, f"{person.name} {i}", is_damaged=False)
                one = Rewinding if i < 2 else HandIn
                yield self._hand_in(one(self.world, person, file, self.parties, at_s + i))

        elif kind == N_HONEST + 2 and CHOOSER in self.cheats:
            at_s = random.uniform(0.3, 1.0)
            for i in range(N_CHOOSING):
                file = file_of(person, f"{person.name} {i}", is_damaged=False)
                one = Choosing(i, self.world, person, file, self.parties, at_s + 0.3 * i)
                yield self._hand_in(one)

    def _come_others(self) -> None:
        if STRANGER in self.cheats:
            victim = self.world.random.choice(self.honest).handed_in[0]
            self.stranger = Pestering(self.world, self.parties, victim)

    # What must be true --------------------------------------------------------------------------

    def check(self) -> set[str]:
        happened = super().check()
        for person in self.honest:
            self._check_honest(*person.handed_in)
        first = self.parties.bistros[0]
        if isinstance(first, Repeating):
            assert {each.status for each in first.answers} <= REFUSALS
            happened |= {"repeated in vain"} if first.answers else set()
        happened |= {f"beside: {each}" for each in self.cheats}
        happened |= {"chosen in vain"} if self._n_beyond() else set()
        return happened

    def _n_beyond(self) -> int:
        """Return how many drafts came that their ticket is not good for any more."""
        times, chooser = self.times(self.services), self.people[N_HONEST + 2]
        verdicts = {entry: self.final.get(entry) for entry in self.entries_of(chooser, times)}
        beyond = verdicts.keys() - self.first_of(chooser, times)
        return sum(verdicts[each] is not None for each in beyond)

    def _check_honest(self, one: HandIn) -> None:
        """Whoever does as the documentation says is in time, is held, and is collected."""
        names = {each.name for each in self.parties.bistros if each.is_honest}
        assert one.time_s is not None, "not proved"
        assert one.time_s <= EVENT.latest_s, "late"
        assert names & one.held.keys(), "held by nobody honest"
        verdict = self.final.get(one.entry)
        if isinstance(self.liar, Forker | Restored) and verdict is None:
            # With witnesses' help a service may take back what it alone has proved; it is named.
            assert one.entry not in self.handed or self.liar.log.name in self.accused
            return
        assert verdict is not None, "without a verdict"
        assert verdict.word == COLLECTED, verdict.text

    def _check_strangers(self) -> None:
        answers = self.stranger.answers if self.stranger else []
        assert {each.status for each in answers} <= REFUSALS
        if isinstance(self.liar, Spending):
            assert not {row.entry for row in self.services[0].store.rows} & {*self.liar.stolen}
            assert all(isinstance(said, Refuse) for said in self.liar.heard)

    def _check_named(self, found: Custody, accused: set[str]) -> None:
        """Whose signed word somebody holds, and does not keep it, is accused by it."""
        self.accused = accused
        super()._check_named(found, accused)
        if isinstance(self.liar, Dropper):
            rows = [leaf_hash(row.entry) for row in self.liar.store.rows]
            words = [
                (one, word)
                for one in self.handed.values()
                for word in one.acknowledgements
                if word.log == self.liar.log.name
            ]
            is_broken = any(
                word.index >= len(rows) or rows[word.index] != leaf_hash(one.entry)
                for one, word in words
            )
            assert (self.liar.log.name in accused) == is_broken


def carried_out(seed: int) -> set[str]:
    """Carry an event out and judge it; return what has happened."""
    with quick_disks() as folder:
        whole = AttackedEvent(seed, folder)
        try:
            whole.run()
            return whole.check()
        finally:
            whole.end()
