"""Assignment of uploads to bistros: rules, beside the best that is possible.

    python experiments/bistro_assignment.py [--seeds 20] [-o results/bistro_assignment.csv]

20 bistros with lognormal uplinks, two wires that five of them share each, 200 regions with 4 near
bistros each; uploads pile up at the deadline. All clients choose alone, by a table that the
destination makes every few seconds, but for the rules that are said to know more. A rule's makespan
is that of a collection that begins when all is pushed: the most loaded bottleneck's bytes over its
capacity; the optimum is a linear program's over all regions and bistros. The wait is a client's in
its bistro's queue, 99th percentile, over W, the last wait if all bistros together were one queue
(below a minute: over a minute). Means over seeds, with 95 % intervals (Student's t).
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linprog
from scipy.stats import t as student

from datacollect.bistro.formats.assignment.assigning import assign, by_rendezvous
from datacollect.bistro.formats.assignment.loads import BistroLoad, Loads, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHOWN = Path(__file__).parent.parent / "docs" / "tables" / "bistro_assignment.md"
COLUMNS = (
    *("rule", "patience_w", "age_s", "load", "liars"),
    *("makespan_over_optimum", "makespan_half_width", "wait_over_w", "wait_half_width"),
)
FIRST_SEED = 100
N_BISTROS, N_REGIONS, N_NEAR, N_WIRES, ON_WIRE = 20, 200, 4, 2, 5
N_UPLOADS, SIZE_BYTES = 10_000, 1_000_000
WINDOW_S = 3600.0
LEAST_W_S = 60.0


@dataclass(frozen=True)
class Setting:
    """A row of the table."""

    rule: str
    patience_w: float = 1.0
    age_s: float = 10.0
    load: float = 1.5
    liars: int = 0


class World:
    """A seed's bistros, regions and uploads."""

    def __init__(self, seed: int, load: float) -> None:
        rng = np.random.default_rng(seed)
        self.names = [f"b{i}" for i in range(N_BISTROS)]
        self.uplink = rng.lognormal(math.log(2e6), 1.0, N_BISTROS)
        self.members = rng.permutation(N_BISTROS)[: N_WIRES * ON_WIRE].reshape(N_WIRES, ON_WIRE)
        self.wire = np.array([0.4 * self.uplink[each].sum() for each in self.members])
        self.near = np.array(
            [rng.choice(N_BISTROS, N_NEAR, replace=False) for _ in range(N_REGIONS)]
        )
        # Ingest has nothing to do with the uplink: a disk, a network nearby.
        ingest = rng.lognormal(0.0, 0.5, N_BISTROS)
        total = N_UPLOADS * SIZE_BYTES
        self.ingest = ingest * total / (load * WINDOW_S * ingest.sum())
        # Piled at the deadline: half of all in the last eighth of the time.
        self.at_s = np.sort(WINDOW_S * (1 - rng.exponential(0.18, N_UPLOADS) % 1))
        self.region = rng.integers(0, N_REGIONS, N_UPLOADS)
        self.entries = [rng.bytes(32) for _ in range(N_UPLOADS)]
        self.first_liars = rng.permutation(N_BISTROS)
        self.w_s = max(self._last_wait_s(), LEAST_W_S)

    def _last_wait_s(self) -> float:
        end_s = 0.0
        for at_s in self.at_s:
            end_s = max(end_s, at_s) + SIZE_BYTES / self.ingest.sum()
        return float(end_s - self.at_s[-1])

    def makespan_s(self, stored: np.ndarray) -> float:
        """Return how long the most loaded bottleneck takes."""
        wires = [stored[each].sum() / c for each, c in zip(self.members, self.wire, strict=True)]
        return float(max((stored / self.uplink).max(), *wires))

    def shares(self) -> tuple[np.ndarray, float]:
        """Return the optimum: what part of a region's bytes goes to each near one; the makespan."""
        bytes_of = np.bincount(self.region, minlength=N_REGIONS) * float(SIZE_BYTES)
        n = N_REGIONS * N_NEAR
        rows, columns, values = [], [], []
        for i in range(n):
            bistro = self.near.flat[i]
            places = [bistro] + [N_BISTROS + w for w in range(N_WIRES) if bistro in self.members[w]]
            for place in places:
                capacity = self.uplink[place] if place < N_BISTROS else self.wire[place - N_BISTROS]
                rows.append(place)
                columns.append(i)
                values.append(bytes_of[i // N_NEAR] / capacity)
        upper = np.zeros((N_BISTROS + N_WIRES, n + 1))
        upper[rows, columns] = values
        upper[:, n] = -1.0
        equal = np.zeros((N_REGIONS, n + 1))
        equal[np.arange(n) // N_NEAR, np.arange(n)] = 1.0
        cost = np.zeros(n + 1)
        cost[n] = 1.0
        found = linprog(cost, upper, np.zeros(len(upper)), equal, np.ones(N_REGIONS))
        assert found.status == 0
        return found.x[:n].reshape(N_REGIONS, N_NEAR), float(found.x[n])


class Run:
    """Uploads of a world, one after the other, under a setting."""

    def __init__(self, world: World, setting: Setting, seed: int, shares: np.ndarray) -> None:
        self.world, self.setting, self.shares = world, setting, shares
        self.rng = np.random.default_rng([seed, 1])
        self.stored = np.zeros(N_BISTROS)
        self.free_s = np.zeros(N_BISTROS)  # when each bistro's queue is empty
        self.liars = world.first_liars[: setting.liars]
        self.table_s = -math.inf

    def outcome(self) -> tuple[float, float]:
        """Return the collection's makespan and the 99th percentile of waits, in seconds."""
        world = self.world
        choose = CHOICES[self.setting.rule]
        waits = []
        for i, at_s in enumerate(world.at_s):
            if at_s - self.table_s >= self.setting.age_s:
                self.table_s = at_s
                self.make_table(at_s)
            bistro = choose(self, i, at_s)
            self.free_s[bistro] = max(self.free_s[bistro], at_s) + SIZE_BYTES / world.ingest[bistro]
            waits.append(self.free_s[bistro] - at_s)
            self.stored[bistro] += SIZE_BYTES
        return world.makespan_s(self.stored), float(np.percentile(waits, 99))

    def make_table(self, at_s: float) -> None:
        """Have all clients see what is so now; liars say that they are empty."""
        self.seen_stored, self.seen_wait_s = self.stored.copy(), np.maximum(self.free_s - at_s, 0)
        self.seen_stored[self.liars] = self.seen_wait_s[self.liars] = 0
        world = self.world
        rows = zip(world.names, self.seen_stored, world.uplink, self.seen_wait_s, strict=True)
        self.loads = Loads(
            tuple(BistroLoad(n, int(s), float(u), wait_s=float(w)) for n, s, u, w in rows),
            tuple(
                Wire(float(c), tuple(world.names[j] for j in each))
                for each, c in zip(world.members, world.wire, strict=True)
            ),
        )

    def near(self, i: int) -> np.ndarray:
        """Return the near bistros of an upload."""
        return self.world.near[self.world.region[i]]


def _by_assign(run: Run, i: int, _: float) -> int:
    near = [run.world.names[j] for j in run.near(i)]
    patience_s = run.setting.patience_w * run.world.w_s
    return run.world.names.index(assign(run.loads, near, SIZE_BYTES, patience_s)[0])


def _two_by(key: Callable[[Run, int], float]) -> Callable[[Run, int, float], int]:
    def choose(run: Run, i: int, _: float) -> int:
        two = run.rng.choice(run.near(i), 2, replace=False)
        return int(min(two, key=lambda j: key(run, j)))

    return choose


def _by_shares(run: Run, i: int, _: float) -> int:
    shares = np.maximum(run.shares[run.world.region[i]], 0)
    return int(run.rng.choice(run.near(i), p=shares / shares.sum()))


def _by_hash(run: Run, i: int, _: float) -> int:
    near = [run.world.names[j] for j in run.near(i)]
    return run.world.names.index(by_rendezvous(run.world.entries[i], near)[0])


CHOICES: dict[str, Callable[[Run, int, float], int]] = {
    "assign": _by_assign,
    "two, shorter queue": _two_by(lambda run, j: run.seen_wait_s[j]),
    "two, stored / uplink": _two_by(lambda run, j: run.seen_stored[j] / run.world.uplink[j]),
    "linear program's shares": _by_shares,
    "hash of the entry": _by_hash,
}


def settings() -> Iterator[Setting]:
    """Yield the rows of the table."""
    base = Setting("assign")
    yield from (replace(base, patience_w=w) for w in (1.0, 2.0, math.inf))
    yield from (Setting(rule) for rule in CHOICES if rule != "assign")
    yield from (replace(base, age_s=age_s) for age_s in (0.0, 60.0, 600.0))
    yield from (replace(base, load=load) for load in (0.5, 3.0))
    yield from (replace(base, liars=n) for n in (1, 3))


def interval(values: list[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % interval."""
    n = len(values)
    half = student.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n)
    return float(np.mean(values)), float(half)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    results = Path(__file__).parent / "results" / "bistro_assignment.csv"
    parser.add_argument("-o", type=Path, default=results)
    options = parser.parse_args()
    rows = []
    for setting in settings():
        makespans, waits = [], []
        for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
            world = World(seed, setting.load)
            shares, best_s = world.shares()
            makespan_s, wait_s = Run(world, setting, seed, shares).outcome()
            makespans.append(makespan_s / best_s)
            waits.append(wait_s / world.w_s)
        numbers = [f"{each:.2f}" for each in (*interval(makespans), *interval(waits))]
        rows.append([*vars(setting).values(), *numbers])
        print(*rows[-1], sep=", ", flush=True)
    with options.o.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    SHOWN.write_text("".join(shown(rows)))


def shown(rows: list[list[Any]]) -> Iterator[str]:
    """Yield the lines of the table in the documentation."""
    yield "| rule | patience | table's age | load | liars | makespan / optimum | wait / W |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for rule, patience_w, age_s, load, liars, *numbers in rows:
        patience = "" if rule != "assign" else f"{patience_w:g} W" if patience_w < 9 else "any"
        makespan, wait = (f"{numbers[i]} ± {numbers[i + 1]}" for i in (0, 2))
        yield f"| {rule} | {patience} | {age_s:g} s | {load:g} | {liars} | {makespan} | {wait} |\n"


if __name__ == "__main__":
    main()
