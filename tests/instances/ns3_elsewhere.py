"""Tests' jobs in another process, which starts a worker of its own."""

from __future__ import annotations

from instances.ns3_networks import BACKLOG, BUSY, LINE, OPTIONS, straight

from datacollect.simulation.ns3.process import worker


def measured(seed):
    """What a run under traffic measures, in text, to the last digit."""
    run = straight(BUSY, BACKLOG, seed=seed, **OPTIONS)
    return repr((run.makespan_s, run.events, run.source_finish_s, run.background.to_dict()))


def worker_pid():
    return worker().pid


def collect_for_days():
    straight(LINE, {"S": 10**13}, time_limit_s=1e9)
