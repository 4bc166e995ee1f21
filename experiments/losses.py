"""Losses of the adaptive method against full knowledge, where relays are lost or links collapse.

    python experiments/losses.py [--seeds 101 120]

3 to 6 sources with 200 to 1000 MB, links of 0.5 to 2 MB/s straight and of 2 to 8 MB/s to and from
two relays that have nothing; two connections for each host. Half-way through the coordinated plan
the relay that carries most is gone for good, or the link into the destination that carries most has
a tenth of its rate. Compared is with the coordinated plan that knew of it from the start: rates are
fixed and nothing is shared, so no method can take less. Direct, which needs no relay, stands
beside; adaptive is told nothing beforehand. Runs are the fluid engine's. Writes
losses_optimum.csv in results/study/tables.txt, and docs/tables/study_*.md from it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from relayed import AS_MANY, LABELS, MB, publish

import datacollect as dc
from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.relaying import RELAYING
from datacollect.simulation.fluid.engine import simulate_problem

if TYPE_CHECKING:
    from collections.abc import Mapping

RELAYS = ("R0", "R1")
CUT_TO = 0.1
UNDISTURBED, LOST, CUT = (
    "nothing happens",
    "a relay lost half-way",
    "a link cut to a tenth half-way",
)


def problem_of(seed: int) -> tuple[list[str], np.ndarray, list[int]]:
    """Return names, rates and backlogs of sources, two relays and the destination."""
    random = np.random.default_rng(seed)
    n_sources = int(random.integers(3, 7))
    n = n_sources + len(RELAYS) + 1
    links = np.zeros((n, n))
    links[:n_sources, -1] = random.uniform(0.5, 2.0, n_sources) * MB
    links[:n_sources, n_sources:-1] = random.uniform(2, 8, (n_sources, len(RELAYS))) * MB
    links[n_sources:-1, -1] = random.uniform(2, 8, len(RELAYS)) * MB
    backlog = np.zeros(n, dtype=int)
    backlog[:n_sources] = random.uniform(200, 1000, n_sources) * MB
    return [*(f"S{i}" for i in range(n_sources)), *RELAYS, "D"], links, backlog.tolist()


def over_who_knew(seed: int, kind: str) -> dict[str, float]:
    """Return what methods take over the plan that knew what would happen."""
    names, links, backlog = problem_of(seed)
    told = dc.Problem.from_matrix(names, links, backlog, "D")
    plan = dc.coordinated(told, settle_ties=False)
    half_s = plan.makespan_s / 2
    carried = plan.transfers
    into = carried[carried["to"] == "D"].groupby("from")["bytes"].sum()
    after = links.copy()
    lost: Mapping[str, float] = {}
    if kind == CUT:
        after[names.index(into.idxmax()), -1] *= CUT_TO
    elif kind == LOST:
        gone = into.reindex(RELAYS, fill_value=0).idxmax()
        after[names.index(gone)] = after[:, names.index(gone)] = 0
        lost = {gone: half_s}
    periods = np.array([links, after])
    truth = dc.Problem.from_matrix(names, periods, backlog, "D", periods_s=[0, half_s])
    best_s = dc.coordinated(truth, settle_ties=False).makespan_s
    found = {"direct": dc.direct(truth).makespan_s / best_s}
    if kind == UNDISTURBED:
        as_many = dc.coordinated(told, connections=2 * told.n_hosts)
        found[AS_MANY] = as_many.makespan_s / best_s
    for relays in RELAYING:
        controller = AdaptiveController(told, 2 * told.n_hosts, relays=relays)
        run = simulate_problem(told, controller, truth=truth, lost_hosts_s=lost)
        found[LABELS[relays]] = run.makespan_s / best_s
    return found


def main() -> None:
    """Write the table, also as the page shows it."""
    kinds = (UNDISTURBED, LOST, CUT)
    publish("losses", __doc__ or "", {kind: partial(over_who_knew, kind=kind) for kind in kinds})


if __name__ == "__main__":
    main()
