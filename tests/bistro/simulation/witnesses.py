"""Witnesses: honest ones that crash and whose clocks jump, and those that lie."""

from __future__ import annotations

from collections.abc import Callable

from bistro.simulation.world import EVENT, World
from instances.events import key_of

from datacollect.bistro.formats.log.checkpoints import cosign
from datacollect.bistro.formats.log.witnessing import AddCheckpoint
from datacollect.bistro.witness.core import Refused, Seen, WitnessCore

Reply = Callable[[int | None, bytes], None]

LOGS = [*(each.log for each in EVENT.services), EVENT.verdicts]


class Witness:
    """An honest witness: what it signs is on its disk before the answer leaves."""

    is_honest = True

    def __init__(self, world: World, which: int) -> None:
        self.world, self.which = world, which
        self.name = f"w{which}.example"
        self.key = key_of(self.name)
        self.kept: dict[str, Seen] = {}
        self.kept_s = 0
        self.n_starts = 0
        self.wrong_s = world.random.uniform(-0.3, 0.3)
        self._jumped_s = 0.0
        self._start()
        if world.has_faults:
            for _ in range(world.random.choice((0, 0, 1, 2))):
                world.after(world.random.uniform(0, world.healed_s), self._crash)
            if world.random.random() < 0.3:
                world.after(world.random.uniform(0, world.healed_s), self._jump)

    def _start(self) -> None:
        self.n_starts += 1
        # Whoever starts it again has set its clock.
        self._jumped_s = 0.0
        self.core: WitnessCore | None = WitnessCore(
            self.name, self.key, LOGS, self.kept, self.kept_s, self._now()
        )

    def _now(self):
        return self.world.now(self.wrong_s + self._jumped_s)

    def _crash(self) -> None:
        if self.core is not None:
            self.core = None
            self.world.after(self.world.random.uniform(0.1, 3.0), self._start)

    def _jump(self) -> None:
        self._jumped_s = self.world.random.choice((-500.0, -3.0, 3.0, 1e9))
        # Somebody looks after it.
        self.world.after(2.0, self._crash)

    def asked(self, body: bytes, reply: Reply) -> None:
        if self.core is None:
            return
        decision = self.core.add_checkpoint(body, self._now())
        if isinstance(decision, Refused):
            reply(decision.status, decision.answer)
            return
        start = self.n_starts

        def written() -> None:
            is_there = self.core is not None and self.n_starts == start
            # A crash in between: it may be on the disk, but nobody was answered.
            if is_there or self.world.random.random() < 0.5:
                old = self.kept.get(decision.origin)
                if old is None or old.size <= decision.seen.size:
                    self.kept[decision.origin] = decision.seen
                self.kept_s = max(self.kept_s, decision.time_s)
            if is_there:
                reply(200, decision.answer)

        self.world.after(self.world.random.uniform(0.001, 0.02), written)


class LyingWitness(Witness):
    """Signs whatever a service asks for, with whatever time."""

    is_honest = False

    def asked(self, body: bytes, reply: Reply) -> None:
        asked = AddCheckpoint.parse(body)
        time_s = self.time_of(int(self.world.now().unix_s))
        line = cosign(asked.signed.note.text, time_s, self.name, self.key)
        reply(200, line.line.encode())

    def time_of(self, now_s: int) -> int:
        """Return what it says instead."""
        return now_s


class Backdating(LyingWitness):
    """Says that all was there long ago."""

    def time_of(self, now_s: int) -> int:
        return self.world.random.choice((0, now_s - 1000, now_s - 2))


class Postdating(LyingWitness):
    """Says that it came later, by so little that nobody drops it, or by much."""

    def time_of(self, now_s: int) -> int:
        return now_s + self.world.random.choice((3, 3, 1000, 2**40))


class Claiming(Witness):
    """Says that it has signed more than there is."""

    is_honest = False

    def asked(self, body: bytes, reply: Reply) -> None:
        reply(409, b"%d\n" % self.world.random.choice((0, 1, 7, 10**6)))


class Dead(Witness):
    """Answers nobody."""

    is_honest = False

    def asked(self, body: bytes, reply: Reply) -> None:
        return


# Beside two that backdate, 3 of 4 withstand one that is late, or of no use.
WEAKENING = (Postdating, Claiming, Dead)


def make_witnesses(world: World, *, may_fork: bool) -> list[Witness]:
    """Return four witnesses, lying up to what the quorum withstands.

    Two that backdate sign forks as well: where a service lies, too, there is only one such.
    """
    kinds: list[type[Witness]] = [Witness] * 4
    n_backdating = world.random.choice((0, 1, 1 if may_fork else 2))
    for i in range(n_backdating):
        kinds[i] = world.random.choice((Backdating, LyingWitness))
    if world.random.random() < 0.5:
        # A witness that post-dates signs two logs, too; a fork takes two such.
        kinds[3] = world.random.choice(WEAKENING[int(may_fork and n_backdating > 0) :])
    return [kind(world, i) for i, kind in enumerate(kinds)]
