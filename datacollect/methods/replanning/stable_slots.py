"""Slots replanned with few changes: little goes over links that the old plan does not use.

Often the old plan's links suffice in as few slots as all links need. Then none of the others takes
part at all. Else they are looked at, and dear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from datacollect.errors import TimeLimitError
from datacollect.flow.network.layered import breakpoints_s
from datacollect.flow.network.preference import COST_RANGE, LONGEST_PATH, Costs
from datacollect.flow.network.smallest_sufficient import smallest
from datacollect.methods.replanning.other_links import union
from datacollect.methods.replanning.stable_flow import stable_plan
from datacollect.methods.slotted.bound import slots_at_least
from datacollect.methods.slotted.plan import flow_in_slots, might_need_fewer, require_arrival
from datacollect.methods.slotted.pricing import Discount, cheapest
from datacollect.methods.slotted.search import all_at_once, links_of_paths
from datacollect.methods.slotted.shared import cheapest_shared
from datacollect.methods.timing.slots import fewest_slots, require_slots, slots_within
from datacollect.schedule.data.contents import HEURISTIC, OPTIMAL, TIME_LIMIT

if TYPE_CHECKING:
    from datacollect.methods.replanning.earliest_end import ProvedOptimum
    from datacollect.methods.replanning.stable_flow import OldPlan
    from datacollect.methods.slotted.graph import TimeExpandedGraph
    from datacollect.methods.slotted.search import Found
    from datacollect.numbers.arrays import BoolArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.solvers.budget import Budget


# A byte beyond what the old plan sends over a link weighs as much as this many slots at a relay.
MORE = 4


class StableSlots(NamedTuple):
    """A flow of whole bytes through a time-expanded graph, and what is known about it.

    ``new_bytes`` cross links that the old plan does not use.
    """

    graph: TimeExpandedGraph
    flow: IntArray
    new_bytes: int
    status: str
    solver: str


def stable_slots(
    problem: Problem,
    old: OldPlan,
    optimum: ProvedOptimum,
    bound_s: float,
    slot_s: float,
    stability: float,
    budget: Budget,
) -> StableSlots:
    """Return a plan in slots that changes little.

    Parameters
    ----------
    problem : Problem
    old : OldPlan
    optimum : ProvedOptimum
        The earliest end without slots.
    bound_s : float
        No schedule ends earlier.
    slot_s : float
    stability : float
        How many more slots than necessary the plan may take, as a part of them.
    budget : Budget

    Raises
    ------
    InfeasibleError
        Not all can arrive in slots of this length.
    """
    search = _SlotSearch(problem, old, slot_s, budget)
    fewest = fewest_slots(optimum.found.makespan_s, slot_s)
    require_slots(fewest)
    links, found = old.links, search.on_old_links(fewest)
    if found is None:
        links = search.likely_links(optimum, fewest)
        require_arrival(problem, slot_s, links, budget)
        found = search.on_all_links(fewest, links) or smallest(
            lambda n: search.on_any_links(n, links),
            max(fewest + 1, slots_at_least(problem, slot_s, budget)),
        )
    n_slots = found[0].graph.n_slots
    latest = slots_within(n_slots * slot_s * (1 + stability), slot_s)
    if search.is_on_old_links(found) or latest <= n_slots:
        plan = search.cheapest(found)
    elif search.on_old_links(latest) is not None:
        plan = search.cheapest(smallest(search.on_old_links, n_slots + 1))
    else:
        plan = search.cheapest(found)
        later = search.on_all_links(latest, links)
        later_plan = plan if later is None else search.cheapest(later)
        plan = later_plan if later_plan.new_bytes < plan.new_bytes else plan
    if search.undecided:
        return plan._replace(status=HEURISTIC)
    too_many = n_slots > fewest_slots(bound_s, slot_s)
    if too_many and might_need_fewer(problem, slot_s, n_slots, links, budget):
        return plan._replace(status=HEURISTIC)
    return plan


class _SlotSearch:
    """Flows in slots on the old plan's links, and on all."""

    def __init__(self, problem: Problem, old: OldPlan, slot_s: float, budget: Budget) -> None:
        self.problem, self.old, self.slot_s, self.budget = problem, old, slot_s, budget
        self.few = problem.with_links(old.links)
        self.undecided: list[int] = []  # numbers of slots for which no flow was found, nor refuted

    def on_old_links(self, n_slots: int) -> Found | None:
        """Return a flow in `n` slots on the old plan's links alone; None if there is none."""
        return self._attempt(self.few, n_slots, np.arange(self.few.n_links))

    def on_all_links(self, n_slots: int, links: IntArray) -> Found | None:
        """Return a flow in `n` slots, beginning with some links; None if there is none."""
        return self._attempt(self.problem, n_slots, links)

    def on_any_links(self, n_slots: int, links: IntArray) -> Found | None:
        """Try old links first."""
        return self.on_old_links(n_slots) or self.on_all_links(n_slots, links)

    def is_on_old_links(self, found: Found) -> bool:
        """Return whether a flow is one on the old plan's links alone."""
        return found[0].expansion.problem is self.few

    def _attempt(self, problem: Problem, n_slots: int, links: IntArray) -> Found | None:
        return flow_in_slots(problem, self.slot_s, n_slots, links, self.budget, self.undecided)

    def likely_links(self, optimum: ProvedOptimum, n_slots: int) -> IntArray:
        """Choose links to begin with: the old ones, and those of a plan without slots."""
        problem = self.problem
        if all_at_once(problem, n_slots, self.budget):
            return np.arange(problem.n_links)
        use, latest_s = self.old.use(breakpoints_s(problem)), n_slots * self.slot_s
        plan = stable_plan(problem, use, optimum, 0.0, latest_s, self.budget)
        return union(problem, self.old.links, links_of_paths(problem, plan.paths))

    def cheapest(self, found: Found) -> StableSlots:
        """Return the flow that changes least in the slots of one that empties all pools."""
        part, flow = found
        problem, n_slots = part.expansion.problem, part.graph.n_slots
        old = self.old.use(self.slot_s * np.arange(n_slots, dtype=np.float64))
        links = np.arange(len(old.links)) if self.is_on_old_links(found) else old.links
        is_new = np.ones(problem.n_links, dtype=bool)
        is_new[links] = False
        costs, less = _costs(is_new, n_slots, part.graph.n_nodes)
        n_bytes = np.rint(old.n_bytes).astype(np.int64)
        slot, position = np.nonzero(n_bytes)
        keys = slot * problem.n_links + links[position]
        discount = Discount(keys, n_bytes[slot, position], less)
        status = OPTIMAL
        try:
            if problem.shared:
                (part, flow), is_proved = cheapest_shared(
                    problem, found, costs, self.budget, discount
                )
                status = OPTIMAL if is_proved else HEURISTIC
            else:
                part, flow = cheapest(part, costs, self.budget, discount)
        except TimeLimitError:
            status = TIME_LIMIT  # the flow is complete, but may change more than necessary
        graph = part.graph
        over_links = np.flatnonzero(graph.link >= 0)
        new_bytes = int(flow[over_links[is_new[graph.link[over_links]]]].sum())
        solver = self.budget.linear_solver() if problem.shared else self.budget.flow_solver()
        return StableSlots(graph, flow, new_bytes, status, solver.name)


def _costs(is_new: BoolArray, n_slots: int, n_nodes: int) -> tuple[Costs, int]:
    """Weigh changes: one byte on a new link outweighs all else on a path.

    Then slots that others' data spend at relays, at least one at each, and `MORE` for each hop
    beyond what the old plan sends over the link in the same slot, are added up. Strictly one after
    the other would take solvers far longer, for plans that hardly differ.

    Returns
    -------
    tuple of (Costs, int)
        And how much less a byte costs that the old plan sends over the link in the same slot.
    """
    stored, hop, new = 1, 0, MORE * (LONGEST_PATH + 1) + n_slots
    if new * LONGEST_PATH > COST_RANGE // n_nodes**2:
        # More than solvers bear: count relays only.
        stored, hop, new = 0, 1, (1 + MORE) * (LONGEST_PATH + 1)
    link = np.where(is_new, new, hop + MORE)
    return Costs(link, np.full(n_slots, stored), np.zeros(n_slots, dtype=np.int64)), MORE
