"""Remedies about plans, about solvers, and about plans that are carried out or made again."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from instances.hand_made import links
from instances.planned_anew import triangle
from instances.small_problems import relay
from remedies.problems import read
from remedies.trying import Example, told

import datacollect as dc
from datacollect.control.connections import Recovery
from datacollect.control.decisions import Open, WakeMe
from datacollect.control.planned.replanning import ReplanningController
from datacollect.flow.network.pools import pools_by_owner
from datacollect.methods.connections.fewest import fewest_connections, usable_links
from datacollect.methods.execution import ExecutionOptions, execution_of
from datacollect.methods.finishing.judging import judged
from datacollect.methods.remaining_planner import RemainingPlanner
from datacollect.simulation.fluid.engine import simulate_problem
from datacollect.solvers.budget import Budget
from datacollect.solvers.choice import load_flow_solver
from datacollect.solvers.networks import FlowNetwork

HELD = dc.Held("K", "S", 0, 10)
SLOTTED = dc.coordinated(triangle(), slot_s=1.0)
PIPELINED = dc.coordinated(triangle())
ONE_ARC = {"tail": np.array([0]), "head": np.array([1]), "capacity": np.array([10])}


def over_chains(relays="chains", problem=None, schedule=None):
    how = ExecutionOptions(name="coordinated", relays=relays)
    return lambda: execution_of(problem or triangle(), how, schedule=schedule)


def planned_again(schedule):
    return lambda: ReplanningController(triangle(), schedule, replan_s=2.0)


def run_again(plan_remaining):
    def run():
        controller = ReplanningController(triangle(), PIPELINED, replan_s=2.0)
        return simulate_problem(triangle(), controller, plan_remaining=plan_remaining)

    return run


class Deciding:
    """A controller that decides one thing, and waits."""

    watches_every_s, finished = None, True

    def __init__(self, decision):
        self.decision, self.answer = decision, {}

    def start(self):
        return [self.decision]

    def handle(self, event):
        return []


def decide(decision):
    return lambda: simulate_problem(triangle(), Deciding(decision))


def lost(backlog_bytes, hosts=("S",), held=()):
    """Plan the rest of 200 bytes at S, of which some are elsewhere."""
    problem = triangle(backlog_bytes)
    progress = dc.Progress(0.0, tuple(held), lost_hosts=hosts)
    return lambda: dc.replan(problem, dc.coordinated(problem), progress)


def priced(price=None):
    return lambda: dc.front(
        read(link={} if price is None else {"price_per_gb": price}), slack=[0.0]
    )


def flow(supply, cost=None, solver="ortools", **arcs):
    def solve():
        network = FlowNetwork(2, **(ONE_ARC | arcs), cost=None if cost is None else np.array(cost))
        return load_flow_solver(solver).min_cost_flow(network, np.array(supply))

    return solve


def relayed(**options):
    """S has 1000 bytes, which go over K at 100 a second."""
    hosts = [dc.Host("S", 1000), dc.Host("K", storage_bytes=98), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links("S -> K 100, K -> D 100"), "D")
    return lambda: dc.coordinated(problem, **options)


def in_the_longest_chunk():
    """Plan with the chunk that the message allows at most."""
    (longest_s,) = re.findall(r"at most (\S+) s, or leave", told(relayed(chunk_s=1.0)))
    return relayed(chunk_s=float(longest_s))()


def few(most_connections, ways="S -> K 5, K -> D 5"):
    """K, which forwards, has to have a connection to either side."""
    hosts = [dc.Host("S", 10), dc.Host("K", most_connections=most_connections), dc.Host("D")]
    problem = dc.Problem.from_hosts(hosts, links(ways), "D")
    pools, usable = pools_by_owner(problem), usable_links(problem)
    return lambda: fewest_connections(problem, pools, usable, Budget())


def changing(chunk_s):
    """Over K in the first ten seconds alone: what is sent last must have passed it by then."""
    hosts = [dc.Host("S", 1000), dc.Host("K"), dc.Host("D")]
    ways = links("S -> K 100 0, K -> D 100 0")
    problem = dc.Problem.from_hosts(hosts, ways, "D", periods_s=[0.0, 10.5])
    return lambda: dc.coordinated(problem, chunk_s=chunk_s)


def too_fast(n_bytes, by_s=None, **options):
    """Judge what plans on twice the wire, perhaps by a deadline."""
    hosts = [dc.Host("S", n_bytes), dc.Host("K"), dc.Host("D")]
    wire = dc.SharedBottleneck("wire", 20.0, [("S", "K"), ("K", "D")])
    ways = links("S -> K 50, K -> D 50")
    problem = dc.Problem.from_hosts(hosts, ways, "D", shared=[wire])

    def plan(less):
        wider = replace(less.shared[0], bandwidth_bytes_per_s=40.0)
        return dc.coordinated(less.replace(shared=[wider]), chunk_s=0.0)

    if options:
        return lambda: dc.coordinated(problem, **options)
    return lambda: judged(problem, plan, deadline_s=by_s)


def leaning(known=None, **options):
    """Return what is said of a plan whose source sends twice as much at once as one link shows."""
    tree = {
        "destination": "D",
        "hosts": {
            "S": {"backlog_bytes": 4_000_000, **(known or {})},
            "K": {"uplink_bytes_per_s": "none"},
            "D": {"downlink_bytes_per_s": "none"},
        },
        "links": [
            {"from": a, "to": b, "bandwidth_bytes_per_s": 1e6} for a, b in ("SD", "SK", "KD")
        ],
    }
    found = dc.coordinated(dc.Problem.from_dict(tree), **options).assumptions
    return found.advice if found.matter else ""


EXAMPLES = [
    Example("but no link has one; give links a price_per_gb", priced(), priced(0.1)),
    Example(
        "most_transfers is for pipelined plans; leave slot_s or most_transfers out",
        lambda: dc.coordinated(read(), slot_s=1.0, most_transfers=1),
        lambda: dc.coordinated(read(), most_transfers=1),
    ),
    Example(
        "leave slot_s or most_transfers out",
        lambda: dc.coordinated(read(), slot_s=1.0, most_transfers=1),
        lambda: dc.coordinated(read(), slot_s=1.0),
    ),
    *(
        Example(
            "slot_s and chunk_s cannot be combined; give one of them",
            lambda: dc.coordinated(read(), slot_s=1.0, chunk_s=0.1),
            lambda one=one: dc.coordinated(read(), **one),
        )
        for one in ({"slot_s": 1.0}, {"chunk_s": 0.1})
    ),
    *(
        Example(
            "the best ends at {}; allow more time or more transfers",
            lambda: dc.coordinated(relay(), deadline_s=2.4, most_transfers=1),
            lambda more=more: dc.coordinated(
                relay(), **({"deadline_s": 2.4, "most_transfers": 1} | more)
            ),
        )
        for more in ({"deadline_s": 10.0}, {"most_transfers": 3})
    ),
    Example(
        "was found: {}; allow more transfers at once",
        relayed(most_transfers=1),
        relayed(most_transfers=2),
    ),
    Example(
        "cannot drain before bandwidths change{}; use a shorter chunk",
        changing(1.0),
        changing(0.1),
    ),
    Example("use a shorter chunk, 0 for cut-through", changing(1.0), changing(0.0)),
    Example(
        "whose storage_bytes allow {}; use a shorter chunk, at most {} s",
        relayed(chunk_s=1.0),
        in_the_longest_chunk,
    ),
    Example("at most {} s, or leave it out", relayed(chunk_s=1.0), relayed()),
    Example(
        "slots of {} s, at most {} are allowed; use a longer slot",
        lambda: dc.coordinated(relay(), slot_s=0.1, deadline_s=1e6),
        lambda: dc.coordinated(relay(), slot_s=1e5, deadline_s=1e6),
    ),
    Example(
        "use a longer slot or an earlier deadline",
        lambda: dc.coordinated(relay(), slot_s=0.1, deadline_s=1e6),
        lambda: dc.coordinated(relay(), slot_s=0.1, deadline_s=10.0),
    ),
    Example(
        "planned on derate = {} of all links' bandwidths",
        lambda: dc.coordinated(relay(), deadline_s=2.4, derate=0.8),
        lambda: dc.coordinated(relay(), deadline_s=2.4),
    ),
    Example(
        "no plan is valid in whole bytes: {}; plan in slots (slot_s)",
        too_fast(1000),
        too_fast(1000, slot_s=10.0),
    ),
    Example(
        "no plan in time is valid in whole bytes: {}; allow more time (deadline_s)",
        too_fast(1000, by_s=100.0),
        too_fast(1000, deadline_s=200.0),
    ),
    Example(
        "can be there: most_by_s (--most-by) plans that",
        lambda: dc.coordinated(relay(), deadline_s=1.0),
        lambda: dc.coordinated(relay(), most_by_s=1.0),
    ),
    Example("hosts' most_connections ({}) leave no way for all; raise them", few(1), few(2)),
    Example(
        "leave no way for all; raise them, or add links",
        few(1),
        few(1, "S -> K 5, K -> D 5, S -> D 5"),
    ),
    Example(
        "as lost: they cannot arrive; set the backlog to what lies elsewhere",
        lost(200),
        lost(100, hosts=("S",), held=[dc.Held("K", "S", 0, 100)]),
    ),
    Example("or wait until the host is back", lost(200), lost(200, hosts=())),
    Example(
        'chains begin at sources; carry this out with relays = "queues"',
        over_chains(problem=triangle().replace(held=(HELD,))),
        over_chains("queues", problem=triangle().replace(held=(HELD,))),
    ),
    Example(
        "to be carried out over chains, which hold nothing, got slots of {} s; plan without slot_s",
        over_chains(schedule=SLOTTED),
        over_chains(schedule=PIPELINED),
    ),
    Example(
        "to be planned again while it runs, got slots of {} s; plan without slot_s",
        planned_again(SLOTTED),
        planned_again(PIPELINED),
    ),
    Example(
        "the engine has no planner; give it plan_remaining",
        run_again(None),
        run_again(RemainingPlanner(triangle(), PIPELINED)),
    ),
    Example(
        "stall_patience_s must be >= 0, got {}; None: never replace",
        lambda: Recovery(stall_patience_s=-1.0),
        lambda: Recovery(stall_patience_s=None),
    ),
    Example(
        "time_s must be >= 0; the collection begins at 0",
        decide(WakeMe(-1.0, 0)),
        decide(WakeMe(0.0, 0)),
    ),
    Example(
        "pace_bytes_per_s must be > 0; None leaves it to the transport",
        decide(Open(0, ("S", "D"), None, 0.0)),
        decide(Open(0, ("S", "D"), None, None)),
    ),
    Example(
        "progress: at_s must be >= 0 and finite, got {}; it counts seconds from the start",
        lambda: dc.Progress(-1.0),
        lambda: dc.Progress(0.0),
    ),
    Example(
        "without which nothing can be collected; plan for another destination",
        lambda: dc.remaining_problem(triangle(), dc.Progress(0.0, lost_hosts=("D",))),
        lambda: dc.remaining_problem(
            triangle().replace(destination="K"), dc.Progress(0.0, lost_hosts=("D",))
        ),
    ),
    Example(
        "time_limit_s must be > 0, got {}; leave it out",
        lambda: dc.coordinated(relay(), time_limit_s=0.0),
        lambda: dc.coordinated(relay()),
    ),
    Example(
        "supplies sum to {}, limit 2**62; count in larger units",
        flow([2**62, -(2**62)], [0]),
        flow([8, -8], [0]),
    ),
    Example("the network has no costs; give zeros for any flow", flow([8, -8]), flow([8, -8], [0])),
    Example(
        "lemon: costs up to {} on {} nodes must stay below 2**61 / n_nodes; count costs in larger",
        flow([8, -8], [2**61], "lemon"),
        flow([8, -8], [2**61 >> 20], "lemon"),
    ),
    Example(
        "costs are too large for 64 bits (about 2**63 / n_nodes**2 at most); count costs in larger",
        flow([8, -8], [2**61], "ortools"),
        flow([8, -8], [2**61 >> 20], "ortools"),
    ),
    Example(
        "count costs in larger units or choose 'networkx'",
        flow([8, -8], [2**61], "ortools"),
        flow([8, -8], [2**61], "networkx"),
    ),
    Example(
        "cbc: costs up to {} on {} nodes must stay below 2**53 / n_nodes; count costs in larger",
        flow([8, -8], [2**53], "pulp"),
        flow([8, -8], [2**53 >> 20], "pulp"),
    ),
    Example(
        "count costs in larger units or choose 'ortools'",
        flow([8, -8], [2**53], "pulp"),
        flow([8, -8], [2**53], "ortools"),
    ),
    Example(
        "margin_s must be less than deadline_s, {}, got {}; take a smaller margin",
        lambda: dc.coordinated(relay(), deadline_s=4, margin_s=5),
        lambda: dc.coordinated(relay(), deadline_s=4, margin_s=1),
    ),
    Example(
        "--cautious plans by the second number.",
        leaning,
        lambda: leaning(cautious=True),
    ),
    Example(
        'If you know, state {} of {}, "none" if it has no limit.{}',
        leaning,
        lambda: leaning({"uplink_bytes_per_s": "none"}),
    ),
]
