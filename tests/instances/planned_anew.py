"""Small collections whose remainder is planned again, and planners with given schedules."""

from __future__ import annotations

from instances.by_hand import ByHand
from instances.hand_made_plans import plan_of

from datacollect.control.decisions import PlanRemaining
from datacollect.control.plan_request import remaining_planned
from datacollect.control.planned.replanning import ReplanningController
from datacollect.problem.hosts import Host, Link
from datacollect.problem.problem import Problem

STRAIGHT = ("S", "D")
OVER_K = ("S", "K", "D")


def triangle(n_bytes=200, **hosts):
    """S holds some bytes; to D lead 10 bytes/s straight, 5 over K."""
    known = {"S": {"backlog_bytes": n_bytes}, "K": {}, "D": {}}
    return Problem.from_hosts(
        [Host(name, **(known[name] | hosts.get(name, {}))) for name in known],
        [Link("S", "D", 10.0), Link("S", "K", 5.0), Link("K", "D", 5.0)],
        "D",
    )


def straight(offset=0, n_bytes=200, finish_s=20.0):
    return plan_of([STRAIGHT], [(0, 0, offset, n_bytes, 0.0, finish_s)])


def over_k(offset=0, n_bytes=200):
    return plan_of([OVER_K], [(0, hop, offset, n_bytes, 0.0, 40.0) for hop in (0, 1)])


def never(progress):
    raise AssertionError("nothing is to be planned")


class Planner:
    """Answers with the schedules it was given, and keeps what it was asked."""

    def __init__(self, *schedules):
        self.schedules = list(schedules)
        self.asked = []

    def __call__(self, progress):
        self.asked.append(progress)
        answer = self.schedules.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class PlansByHand(ByHand):
    """Answers a controller that asks for a plan of the rest at once, in place of its question."""

    def __init__(self, controller, plan_remaining):
        super().__init__(controller)
        self.plan_remaining = plan_remaining

    def tell(self, event):
        decisions = []
        for decision in super().tell(event):
            if isinstance(decision, PlanRemaining):
                decisions += self.tell(
                    remaining_planned(self.plan_remaining, decision, event.time_s)
                )
            else:
                decisions.append(decision)
        return decisions


def drive_of(schedule, plan_remaining=never, problem=None, **options):
    options = {"replan_s": 10.0, "piece_bytes": 10} | options
    controller = ReplanningController(problem or triangle(), schedule, **options)
    drive = PlansByHand(controller, plan_remaining)
    return drive, drive.start()


def held(progress):
    return [(h.host, h.source, h.offset_bytes, h.n_bytes) for h in progress.held]


def observed(progress, names=("S", "K", "D")):
    links = progress.links
    if links is None:
        return {}
    pairs = zip(links.link_from.tolist(), links.link_to.tolist(), strict=True)
    rates = links.bandwidth_bytes_per_s[0].tolist()
    return {(names[a], names[b]): r for (a, b), r in zip(pairs, rates, strict=True)}
