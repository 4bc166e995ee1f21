"""Time of the adaptive controller's decisions, and of a run of it in the fluid engine.

    python experiments/decision_speed.py [--hosts 100] [--connections 200] [--relays queues]

Every host has 1 to 5 MB and a link to the destination of 0.05 to 1 MB/s; links between hosts have
0.5 to 2 MB/s. Processor time of each event that the controller is told, its own only, and of the
whole run.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.control.adaptive.controller import AdaptiveController
from datacollect.control.controller import Controller
from datacollect.control.relaying import QUEUES, RELAYING
from datacollect.problem.problem import Problem
from datacollect.simulation.fluid.engine import simulate_problem

if TYPE_CHECKING:
    from datacollect.control.decisions import Decision
    from datacollect.control.events import Event

MB = 1_000_000


class Timed(Controller):
    """Passes all on, and keeps how long each answer took."""

    decides_at_destination = True

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.took_s: list[float] = []

    @property
    def answer(self) -> Any:
        """What the controller says."""
        return self.controller.answer

    def start(self) -> list[Decision]:
        """Return the first decisions; not counted."""
        return self.controller.start()

    def handle(self, event: Event) -> list[Decision]:
        """Return what to do after an event."""
        began_s = time.thread_time()
        decisions = self.controller.handle(event)
        self.took_s.append(time.thread_time() - began_s)
        return decisions


def random_problem(n_hosts: int, seed: int = 1) -> Problem:
    """Return a problem in which every host has data and all links are there."""
    random = np.random.default_rng(seed)
    links = random.uniform(0.5, 2.0, (n_hosts + 1, n_hosts + 1)) * MB
    links[:-1, -1] = random.uniform(0.05, 1.0, n_hosts) * MB
    links[-1] = 0
    np.fill_diagonal(links, 0)
    backlog = np.append(random.integers(MB, 5 * MB, n_hosts), 0)
    names = [*(f"H{i}" for i in range(n_hosts)), "D"]
    return Problem.from_matrix(names, links, backlog, "D")


def main() -> None:
    """Print what it took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--hosts", type=int, default=100)
    arguments.add_argument("--connections", type=int, default=200)
    arguments.add_argument("--relays", choices=RELAYING, default=QUEUES)
    given = arguments.parse_args()
    problem = random_problem(given.hosts)
    controller = AdaptiveController(problem, given.connections, relays=given.relays)
    timed = Timed(controller)
    began_s = time.process_time()
    run = simulate_problem(problem, timed)
    spent_s = time.process_time() - began_s
    took_us = np.array(timed.took_s) * 1e6
    print(f"{given.hosts} hosts, {given.connections} connections, {given.relays}:")
    print(f"  run: {spent_s:.1f} s for {run.events} events, {run.makespan_s:.1f} s simulated")
    print(
        f"  {len(took_us)} decisions: median {np.median(took_us):.0f} µs, "
        f"99 of 100 within {np.percentile(took_us, 99) / 1e3:.1f} ms, "
        f"longest {took_us.max() / 1e3:.0f} ms"
    )


if __name__ == "__main__":
    main()
