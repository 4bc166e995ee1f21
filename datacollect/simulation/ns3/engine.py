"""The packet engine: a controller's decisions carried out in ns-3, packet by packet."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, nearest_hint
from datacollect.simulation.control import DELAYED, controlled
from datacollect.simulation.ns3.messages import RunRequest
from datacollect.simulation.ns3.network_text import (
    check_network,
    hosts_of,
    ns3_defaults,
    scenario_text,
)
from datacollect.simulation.ns3.process import NS3_VERSION, worker
from datacollect.simulation.ns3.results import run_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.control.controller import Controller
    from datacollect.control.plan_request import RemainingPlanner
    from datacollect.files.choices import Control
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.simulation.run import OnProgress, Run


def simulate_ns3(
    network: SimulatedNetwork,
    backlog_bytes: Mapping[str, int],
    destination: str,
    controller: Controller,
    *,
    seed: int = 1,
    time_limit_s: float = 1e6,
    relay_buffer_bytes: int | None = None,
    stall_s: float = 30.0,
    warm_up_s: float = 0.0,
    cool_down_s: float = 0.0,
    plan_remaining: RemainingPlanner | None = None,
    control: Control = DELAYED,
    name: str = "",
    progress: OnProgress | None = None,
) -> Run:
    """Carry out a collection in ns-3 and return what was measured.

    Parameters
    ----------
    network : SimulatedNetwork
    backlog_bytes : mapping of str to int
        What each source holds at time 0.
    destination : str
    controller : Controller
        Pickled, and run in another process, which has to be able to import its class.
    seed : int
        Of the background's on and off times, and of drawn SYN time-outs (see Notes). All else is
        the same whatever it is.
    time_limit_s : float
        Simulated time after which the run ends incomplete.
    relay_buffer_bytes : int, optional
        Most of others' data that a relay holds; it stops reading where it is full. None: no bound.
        Data count until they have arrived at the next host.
    stall_s : float
        Time without an arrival after which a connection that has data to send is called stalled.
    warm_up_s, cool_down_s : float
        How long background traffic runs alone, before and after. Times count from the end of the
        warm-up; starts of background flows from its beginning.
    plan_remaining : callable, optional
        Plans the rest, from a `Progress` to a schedule, for a controller that asks for it; in no
        simulated time. Pickled, as the controller is.
    control : {"delayed", "free"}
        Whether messages take time between a controller that decides at the destination and other
        hosts: one propagation delay in each direction.
    name : str
        What errors call the run.
    progress : callable, optional
        Called now and then with the simulated time and the bytes collected.

    Returns
    -------
    Run
        ``settings["controller"]`` is what the controller has to say, its ``answer``, or None.

    Raises
    ------
    ProblemError
        The network or the backlogs make no sense.
    SimulationError
        ns-3 is not installed, aborted, or was asked for what it cannot do; or the network is too
        large.

    Notes
    -----
    SYNs that a queue drops together would be sent again, and dropped again, together for ever:
    timers of a simulation are in step, those of real hosts are not. So where more connections are
    opening than the network's shortest queue holds packets, each further one draws its first SYN
    time-out, 1 to 2 times `Transport.syn_timeout_s`. ``settings["drawn_syn_timeouts"]`` counts
    them. Data that overflow a queue still cost such collections time, as they would in earnest:
    1000 hosts with 20 kB each, all at once through one wire, take about twice what the wire needs.
    """
    hosts = hosts_of(network)
    backlog = check_backlog(network, backlog_bytes, destination)
    _check_options(network, time_limit_s, stall_s, warm_up_s, cool_down_s, relay_buffer_bytes, seed)
    apart = check_network(network)  # refuses what is too large before anything costs time
    scenario = scenario_text(
        network,
        backlog,
        destination,
        seed=seed,
        warm_up_s=float(warm_up_s),
        time_limit_s=float(time_limit_s),
        stall_s=float(stall_s),
        relay_buffer_bytes=relay_buffer_bytes,
    )
    controller = controlled(controller, network, destination, control)
    request = RunRequest(
        scenario, hosts, backlog, apart, controller, float(cool_down_s), plan_remaining
    )
    what = name or describe(network, seed)
    result = worker().run(request, what, progress)
    settings = {
        "version": NS3_VERSION,
        "seed": seed,
        "time_limit_s": time_limit_s,
        "relay_buffer_bytes": relay_buffer_bytes,
        "stall_s": stall_s,
        "warm_up_s": warm_up_s,
        "cool_down_s": cool_down_s,
        "transport": asdict(network.transport),
        "ns3_defaults": ns3_defaults(network.transport),
        "stopped": result.stopped or "complete",
        "end_s": result.end_s,
        "peak_memory_bytes": result.peak_memory_bytes,
        "controller": result.answer,
    }
    return run_of(network, backlog, destination, result, settings, what)


def describe(network: SimulatedNetwork, seed: int) -> str:
    """Return what errors call a run that has no name."""
    return (
        f"ns-3 run of {len(network.host_node)} hosts on {network.n_nodes} nodes with "
        f"{len(network.background)} background flows, seed {seed}"
    )


def check_backlog(
    network: SimulatedNetwork, backlog_bytes: Mapping[str, int], destination: str
) -> dict[str, int]:
    """Return the backlogs that have to travel."""
    for host in (destination, *backlog_bytes):
        if host not in network.host_node:
            raise ProblemError(
                f"host {host!r} is not in the simulated network"
                f"{nearest_hint(host, network.host_node)}"
            )
    for host, n in backlog_bytes.items():
        if int(n) != n or n < 0:
            raise ProblemError(f"host {host!r}: backlog_bytes must be whole and >= 0, got {n}")
    return {host: int(n) for host, n in backlog_bytes.items() if n and host != destination}


def _check_options(
    network: SimulatedNetwork,
    time_limit_s: float,
    stall_s: float,
    warm_up_s: float,
    cool_down_s: float,
    relay_buffer_bytes: int | None,
    seed: int,
) -> None:
    # ns-3 counts nanoseconds in 64 bits.
    for option, value in (("time_limit_s", time_limit_s), ("stall_s", stall_s)):
        if not 0 < value <= 1e9:
            raise ProblemError(f"{option} must be > 0 and <= 1e9, got {value}")
    for option, value in (("warm_up_s", warm_up_s), ("cool_down_s", cool_down_s)):
        if not 0 <= value <= 1e9:
            raise ProblemError(f"{option} must be >= 0 and <= 1e9, got {value}")
    least = 2 * network.transport.segment_bytes
    if relay_buffer_bytes is not None and relay_buffer_bytes < least:
        raise ProblemError(
            f"relay_buffer_bytes must be >= {least}, two segments, got {relay_buffer_bytes}; "
            "None: no bound"
        )
    if not 0 < seed < 1 << 63:
        raise ProblemError(f"seed must be >= 1, got {seed}")
