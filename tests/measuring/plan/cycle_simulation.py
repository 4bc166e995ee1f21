"""Whole cycles of one or two operators, who know the hosts by other names, in the simulated world.

Rounds are those of `plan_cycle`; the tests of a round run at the same time, each with leases of its
own, while messages overtake each other or are lost, and hosts and operators die at any instant.

`python tests/measuring/plan/cycle_simulation.py 10000` runs so many seeds.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass, field

from measuring.plan.lease_simulation import Operator, World

from datacollect.measuring.plan.rounds import full_mesh, plan_cycle


@dataclass
class Cycler:
    """An operator's process: it knows host ``f3`` as, say, ``B-f3``, and runs round after round."""

    name: str
    fingerprint_of: dict[str, str]
    rounds: list[tuple[tuple[str, str], ...]]
    wires: list[set[tuple[str, str]]]
    lanes: list[Lane] = field(default_factory=list)
    alive: bool = True
    next_round: int = 0


@dataclass
class Lane(Operator):
    """One test of a round."""

    owner: Cycler | None = None
    pair: tuple[str, str] = ("", "")


class CycleWorld(World):
    """Hosts, and the cycles of operators."""

    def __post_init__(self):
        self.cyclers = []
        self.ran = []  # (owner, pair, begin, end)
        super().__post_init__()
        self.operators = []
        for name in "AB"[: self.random.randint(1, 2)]:
            self.cyclers.append(self.cycler(name))
            self.at(self.random.uniform(0, 20), self.begin_round, self.cyclers[-1])
        if self.random.random() < 0.3:
            self.at(self.random.uniform(0, 200), self.cycler_dies, self.cyclers[0])

    def operator(self, name):
        """No operator of single tests."""
        return Operator(name, [])

    def crash_something(self):
        if self.random.random() < 0.3:
            host = self.random.choice(sorted(self.hosts))
            self.at(self.random.uniform(0, 200), self.host_dies, host)

    def cycler(self, name):
        hosts = self.random.sample(sorted(self.hosts), len(self.hosts))
        names = {f"{name}{i}": host for i, host in enumerate(hosts)}
        mesh = full_mesh(list(names))
        pairs = mesh if self.random.random() < 0.5 else self.random.sample(mesh, len(mesh) // 2)
        wires = [
            set(self.random.sample(mesh, min(len(mesh), 6)))
            for _ in range(self.random.randint(0, 2))
        ]
        planned = plan_cycle(pairs, wires, cycle=self.random.randint(0, 9), seed=self.seed)
        assert sorted(itertools.chain(*planned.rounds)) == sorted(pairs)
        return Cycler(name, names, list(planned.rounds), wires)

    def begin_round(self, cycler):
        if not cycler.alive or cycler.next_round == len(cycler.rounds):
            return
        cycler.lanes = []
        for pair in cycler.rounds[cycler.next_round]:
            ends = tuple(cycler.fingerprint_of[host] for host in pair)
            name = f"{cycler.name}-{'-'.join(pair)}"
            cycler.lanes.append(Lane(name, [ends], owner=cycler, pair=pair))
        self.operators += cycler.lanes
        cycler.next_round += 1
        for lane in cycler.lanes:
            super().next_test(lane)

    def next_test(self, one):
        """Go on where a test has ended: with the same again, or the next round after the last."""
        if one.done + one.gave_up < len(one.tests):
            super().next_test(one)
        elif all(lane.done + lane.gave_up for lane in one.owner.lanes):
            self.at(0.0, self.end_of_round, one.owner, one.owner.next_round)

    def end_of_round(self, cycler, number):
        if number == cycler.next_round:  # once, however many lanes have seen it
            self.begin_round(cycler)

    def end_test(self, one, taking):
        if one.name in self.running and one.owner is not None:
            begun = min((since_s for _, since_s in self.running[one.name]), default=self.now_s)
            self.ran.append((one.owner, one.pair, begun, self.now_s))
        super().end_test(one, taking)

    def cycler_dies(self, cycler):
        cycler.alive = False
        for lane in cycler.lanes:
            self.operator_dies(lane)

    def judge(self):
        super().judge()
        for cycler in self.cyclers:
            ran = [each for each in self.ran if each[0] is cycler]
            for wire in cycler.wires:
                on_wire = sorted((begin, end, pair) for _, pair, begin, end in ran if pair in wire)
                for one, other in itertools.pairwise(on_wire):
                    if other[0] < one[1]:
                        self.faults.append(f"two tests of a wire at once: {one} and {other}")
            if cycler.alive and cycler.next_round != len(cycler.rounds):
                self.faults.append(f"{cycler.name} has stopped at round {cycler.next_round}")


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        if faults := CycleWorld(seed).run():
            sys.stdout.write(f"seed {seed}: {faults}\n")
