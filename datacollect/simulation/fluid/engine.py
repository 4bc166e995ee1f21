"""The fluid engine: carries a collection out at max-min fair rates instead of packet by packet.

Long-lived TCP connections share wires about max-min fairly, so between two events (a range has
left, a connection is open, others' traffic changes) every rate is constant, and a run costs a few
thousand events instead of millions. What a fluid does not have: slow start, losses, time-outs,
queues, different round-trip times' unequal shares.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from datacollect.errors import ProblemError
from datacollect.simulation.control import DELAYED, controlled
from datacollect.simulation.fluid.driver import FluidDriver
from datacollect.simulation.fluid.problem_network import ProblemNetwork
from datacollect.simulation.fluid.wires import WireNetwork
from datacollect.simulation.network import SimulatedNetwork

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.control.controller import Controller
    from datacollect.control.plan_request import RemainingPlanner
    from datacollect.files.choices import Control
    from datacollect.problem.hosts import Held
    from datacollect.problem.problem import Problem
    from datacollect.simulation.fluid.wires import FluidNetwork
    from datacollect.simulation.run import OnProgress, Run

VERSION = "fluid 1"


class FluidOptions(TypedDict, total=False):
    """Options of `simulate_fluid` that are no part of the problem."""

    seed: int
    time_limit_s: float
    stall_s: float
    relay_buffer_bytes: float
    warm_up_s: float
    udp_on_off: bool
    header_bytes: int
    lost_hosts_s: Mapping[str, float]
    plan_remaining: RemainingPlanner | None
    control: Control
    event_limit: int
    progress: OnProgress


def simulate_fluid(
    network: SimulatedNetwork | ProblemNetwork,
    backlog_bytes: Mapping[str, int],
    destination: str,
    controller: Controller,
    *,
    seed: int = 0,
    time_limit_s: float = math.inf,
    stall_s: float = 30.0,
    relay_buffer_bytes: float = math.inf,
    warm_up_s: float = 0.0,
    udp_on_off: bool = False,
    header_bytes: int = 0,
    release_s: Mapping[str, float] | None = None,
    held: Iterable[Held] = (),
    lost_hosts_s: Mapping[str, float] | None = None,
    plan_remaining: RemainingPlanner | None = None,
    control: Control = DELAYED,
    event_limit: int = 10_000_000,
    progress: OnProgress | None = None,
) -> Run:
    """Carry a collection out in a network of fluids.

    Parameters
    ----------
    network : SimulatedNetwork or ProblemNetwork
    backlog_bytes : mapping of str to int
        What each source holds.
    destination : str
    controller : Controller
        Decides; used up by the run.
    seed : int
        For the on and off times of UDP; nothing else is random.
    time_limit_s : float
        Simulated time after which the run ends, incomplete.
    stall_s : float
        A connection with data to send that has not moved for this time is reported as stalled.
    relay_buffer_bytes : float
        Room for others' data at each relay, besides what a problem's hosts have. A relay that is
        full takes no more than it passes on, until half of that is free. Store-and-forward needs
        room for whole ranges: a relay that is full of parts of some can pass none of them on.
    warm_up_s : float
        Others' traffic runs for this time before the collection starts at time 0; their goodput
        before and after are averages over this time. With 0 they are those of a steady state.
    udp_on_off : bool
        Follow UDP's on and off times instead of its mean rate: slower, and depends on the seed.
    header_bytes : int
        Added to each segment of the transport; 54 for TCP with time stamps over PPP.
    release_s : mapping of str to float, optional
        When sources' data are there, by default at time 0.
    held : iterable of Held, optional
        Parts of backlogs that already lie elsewhere.
    lost_hosts_s : mapping of str to float, optional
        When hosts are lost with all that they store.
    plan_remaining : callable, optional
        Plans the rest, from a `Progress` to a schedule, for a controller that asks for it; in no
        simulated time.
    control : {"delayed", "free"}
        Whether messages take time between a controller that decides at the destination and other
        hosts: one propagation delay each way. The links of a `ProblemNetwork` have none.
    event_limit : int
        Against controllers that never come to an end.
    progress : callable, optional
        Called now and then with the simulated time and the bytes collected.

    Returns
    -------
    Run
        Incomplete after the time limit, or where nothing moves any more.
        ``settings["controller"]`` is what the controller has to say, its ``answer``, or None.

    Raises
    ------
    ProblemError
        Hosts, amounts or times do not fit the network.
    SimulationError
        The controller decided something impossible, or there were too many events.

    Notes
    -----
    Opening a connection takes one round trip without queues. Between hops data pass without
    delay; a range's arrival is reported late by the delays of its wires, summed over the hops
    that passed it on as it came. A connection's rate is bounded by the transport's buffer per
    round trip, and by its pace.

    Examples
    --------
    >>> import datacollect as dc
    >>> from datacollect.control.planned.scheduled import AsapController
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> controller = AsapController(dc.direct(problem))
    >>> simulate_fluid(ProblemNetwork(problem), {"S": 10}, "D", controller).makespan_s
    2.0
    """
    settings: dict[str, Any] = {
        "engine": VERSION,
        "seed": seed,
        "time_limit_s": time_limit_s,
        "stall_s": stall_s,
        "relay_buffer_bytes": relay_buffer_bytes,
        "warm_up_s": warm_up_s,
        "udp_on_off": udp_on_off,
        "header_bytes": header_bytes,
        "release_s": dict(release_s or {}),
        "lost_hosts_s": dict(lost_hosts_s or {}),
    }
    _require_positive(time_limit_s=time_limit_s, stall_s=stall_s, relay_buffer=relay_buffer_bytes)
    if not 0 <= warm_up_s < math.inf:
        raise ProblemError(f"warm_up_s must be >= 0 and finite, got {warm_up_s}")
    shares: FluidNetwork
    if isinstance(network, SimulatedNetwork):
        if destination in network.host_node:  # else the driver says so
            controller = controlled(controller, network, destination, control)
        settings["transport"] = dict(vars(network.transport))
        shares = WireNetwork(
            network,
            udp_on_off=udp_on_off,
            seed=seed,
            start_s=warm_up_s,
            header_bytes=header_bytes,
        )
    else:
        shares = network
        settings["storage_bytes"] = dict(network.storage_bytes)
    began_s = time.process_time()
    drive = FluidDriver(
        shares, backlog_bytes, destination, controller, stall_s, relay_buffer_bytes, plan_remaining
    )
    before = drive.background_rates(-warm_up_s, 0.0)
    drive.prepare(release_s or {}, tuple(held), lost_hosts_s or {})
    drive.run(time_limit_s, event_limit, progress)
    end_s = drive.end_s
    settings["controller"] = controller.answer
    return drive.recorder.finish(
        engine="fluid",
        background=shares.background_table(
            before,
            drive.background_goodput(),
            drive.background_rates(end_s, end_s + warm_up_s),
            0.0,
            end_s,
        ),
        wires=shares.wire_table(drive.state.carried_bytes(), 0.0, end_s),
        events=drive.n_events,
        cpu_s=time.process_time() - began_s,
        settings=settings,
    )


def simulate_problem(
    problem: Problem,
    controller: Controller,
    *,
    truth: Problem | None = None,
    **options: Unpack[FluidOptions],
) -> Run:
    """Carry out a collection on a problem's own links, or on those of another.

    Parameters
    ----------
    problem : Problem
        Who holds what, from when on, and where it must go.
    controller : Controller
    truth : Problem, optional
        Whose links and limits are the true ones; by default those of `problem`.
    **options
        As for `simulate_fluid`.

    Examples
    --------
    A plan counts on 5 bytes per second and finds 4:

    >>> import datacollect as dc
    >>> from datacollect.control.planned.scheduled import PlannedController
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> truth = dc.Problem.from_matrix(["S", "D"], [[0, 4.0], [0, 0]], [20, 0], "D")
    >>> plan = dc.direct(problem)
    >>> run = simulate_problem(problem, PlannedController(plan), truth=truth)
    >>> plan.makespan_s, run.makespan_s
    (4.0, 5.0)
    """
    names = problem.names
    amounts = zip(names, problem.backlog_bytes.tolist(), strict=True)
    release = zip(names, problem.release_s.tolist(), strict=True)
    return simulate_fluid(
        ProblemNetwork(truth or problem),
        {name: n for name, n in amounts if n},
        problem.destination,
        controller,
        release_s={name: at_s for name, at_s in release if at_s},
        held=problem.held,
        **options,
    )


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ProblemError(f"{name} must be > 0, got {value}")
