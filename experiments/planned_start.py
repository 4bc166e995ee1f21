"""Comparison of starts: by the planner of connections, or by hosts' data.

    python experiments/planned_start.py [--seeds 101 110]

The settings of reach.toml in the fluid engine. Adaptive begins with connections in proportion to
hosts' data, and moves them by what they bring. Here it is compared with two that ask the planner
(`coordinated` with as many connections), which is told all wires, their capacities and how many of
others' flows are on each, as no user could: *begins as planned* has the plan's numbers at first and
goes on as adaptive does; *plans anew* moves connections only to the numbers of a new plan of the
rest, made whenever what a connection brings on some link is off the plan's by a fifth, at most
every five seconds. Ratios are over adaptive's makespan in the same seed. Writes
planned_start_begins.csv in results/study/tables.txt, and docs/tables/study_*.md from it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

import pandas as pd
import published_tables
from adaptive_tables import RESULTS, geometric
from study_tables import HERE, fill

import datacollect as dc
from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.adaptive.moves import Move
from datacollect.methods.execution import ExecutionOptions, n_connections
from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.reference import true_problem
from datacollect.scenario.scenario import Scenario
from datacollect.simulation.fluid.engine import simulate_fluid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.control.connection_counts import Link
    from datacollect.scenario.outcome import Outcome

SETTINGS = {
    "20 flows 1:1": (20, [1, 1]),
    "60 flows 1:1": (60, [1, 1]),
    "60 flows 2:1": (60, [2, 1]),
    "60 flows 1:3": (60, [1, 3]),
    "none": (0, [1, 1]),
}
ADAPTIVE = {"method.name": "adaptive", "method.connections_as": "coordinated"}
# What a connection brings is off the plan's by this part, and plans are at least so far apart.
MARGIN, LEAST_APART_S = 0.2, 5.0
# A host's last seconds are not planned anew: connections that open then hardly begin.
LEAST_LEFT_S = 3.0


class AsPlanned(AdaptiveController):
    """Begins with a plan's numbers of connections.

    Parameters
    ----------
    problem : Problem
        What adaptive is told.
    wires : Problem
        What the planner is told, the wires that only the simulator knows.
    connections : int
    plans_anew : bool
        Whether connections move to the numbers of new plans, and no other way.
    """

    def __init__(
        self, problem: dc.Problem, wires: dc.Problem, connections: int, *, plans_anew: bool
    ) -> None:
        super().__init__(problem, connections)
        self._wires, self._plans_anew = wires, plans_anew
        self._planned_s = 0.0
        self._expected: dict[Link, float] = {}
        self.plans = 0

    def start(self):
        """Open what the plan has."""
        for parcel in self._market.problem.parcels:
            self._market.released(parcel)
        for link, n in self._plan().items():
            for _ in range(n):
                if self._market.free > 0:
                    self._open(link)
        return self._decided()

    def _plan(self) -> Counter[Link]:
        """Plan what is left; note what each connection should bring."""
        market = self._market
        names = [name for name in market.problem.names if name != market.destination]
        left = {name: market.work_bytes(name) for name in names}
        backlog_bytes = [left.get(name, 0) for name in self._wires.names]
        rest = self._wires.replace(backlog_bytes=backlog_bytes)
        rows = dc.coordinated(rest, connections=market.connections).transfers
        rows["rate"] = rows["bytes"] / (rows["finish_s"] - rows["start_s"])
        hops = rows.groupby(["route", "hop", "from", "to"]).agg({"streams": "max", "rate": "max"})
        links = hops.groupby(["from", "to"]).sum()
        self._expected = (links["rate"] / links["streams"]).to_dict()
        self._planned_s, self.plans = market.now_s, self.plans + 1
        return Counter(
            {
                link: int(n)
                for link, n in links["streams"].items()
                if link in market.next_hops.links
                and (link[1] == market.destination or left[link[0]])
            }
        )

    def _rebalance(self) -> None:
        if not self._plans_anew:
            super()._rebalance()
        elif self._market.now_s >= self._planned_s + LEAST_APART_S and self._is_off():
            wanted, active = self._plan(), +self._market.pulls.active
            less, more = active - wanted, wanted - active
            self._move(Move(tuple(less.elements()), tuple(more.elements())))

    def _is_off(self) -> bool:
        """Whether what connections bring differs from the plan by a margin."""
        views = [view for view in self._market.views() if view.connections]
        left_s = (v.work_bytes / (v.connections * max(1.0, v.rate_bytes_per_s)) for v in views)
        return max(left_s, default=0.0) > LEAST_LEFT_S and any(
            abs(self._market.rates.rate(link) - rate) > MARGIN * rate
            for link, rate in self._expected.items()
            if self._market.pulls.active[link]
        )


def over_adaptive(base: Scenario, flows: int, split: list[int], seed: int) -> dict[str, float]:
    """Return what both take over adaptive, and how often the second has planned."""
    small = {"scale": 0.1, "probe_scale": 0.1, "run.seed": seed}
    background = {"background.flows": flows, "background.split": split}
    outcome = carry_out(base.with_values(small | background | ADAPTIVE), engine="fluid")
    first = _makespan_s(outcome, plans_anew=False)[0]
    again, plans = _makespan_s(outcome, plans_anew=True)
    own_s = outcome.run.makespan_s
    return {"begins as planned": first / own_s, "plans anew": again / own_s, "plans": plans}


def _makespan_s(outcome: Outcome, *, plans_anew: bool) -> tuple[float, int]:
    setting = outcome.setting
    budget = n_connections(outcome.schedule, ExecutionOptions())
    controller = AsPlanned(outcome.problem, true_problem(setting), budget, plans_anew=plans_anew)
    run = simulate_fluid(
        setting.network,
        setting.backlog_bytes,
        setting.destination,
        controller,
        seed=setting.scenario.number("run"),
        header_bytes=setting.header_bytes,
    )
    assert run.complete
    return run.makespan_s, controller.plans


def table(seeds: Iterable[int]) -> pd.DataFrame:
    """Return the geometric means of both over adaptive, for each setting."""
    base = Scenario.from_file(HERE / "base.toml")
    rows = []
    for name, (flows, split) in SETTINGS.items():
        runs = pd.DataFrame([over_adaptive(base, flows, split, seed) for seed in seeds])
        for method in ("begins as planned", "plans anew"):
            mean, low, high = geometric(runs[method])
            rows.append(
                {
                    "setting": name,
                    "method": method,
                    "seeds": len(runs),
                    "over_adaptive": round(mean, 3),
                    "over_adaptive_low": round(low, 3),
                    "over_adaptive_high": round(high, 3),
                    "plans": 1 if method == "begins as planned" else round(runs["plans"].mean(), 1),
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    """Write the table, also as the page shows it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(101, 110), metavar="N")
    first, last = parser.parse_args().seeds
    found = table(range(first, last + 1))
    published_tables.keep(RESULTS, "planned_start_begins.csv", found.to_csv(index=False))
    print(found.to_string(index=False))
    fill()


if __name__ == "__main__":
    main()
