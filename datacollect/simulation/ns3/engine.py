"""The packet engine: a controller's decisions carried out in ns-3, packet by packet."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, SimulationError, nearest_hint
from datacollect.simulation.ns3_process import NS3_VERSION, worker
from datacollect.simulation.ns3_scenario import (
    check_network,
    hosts_of,
    ns3_defaults,
    scenario_text,
)
from datacollect.simulation.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from datacollect.control import Controller
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.simulation.run import Run


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
    name: str = "",
    progress: Callable[[float, int], None] | None = None,
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
        ns-3 is not installed, aborted, or was told to do what it cannot; or the network is too
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
    request = {
        "scenario": scenario_text(
            network,
            backlog,
            destination,
            seed=seed,
            warm_up_s=float(warm_up_s),
            time_limit_s=float(time_limit_s),
            stall_s=float(stall_s),
            relay_buffer_bytes=relay_buffer_bytes,
        ),
        "hosts": hosts,
        "backlog_bytes": backlog,
        "apart": apart,
        "controller": controller,
        "cool_down_s": float(cool_down_s),
    }
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
        "stopped": result["stopped"] or "complete",
        "end_s": result["end_s"],
        "peak_memory_bytes": result["peak_memory_bytes"],
        "controller": result["answer"],
    }
    return _assemble(network, hosts, backlog, destination, result, settings, what)


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


def _assemble(
    network: SimulatedNetwork,
    hosts: list[str],
    backlog: dict[str, int],
    destination: str,
    result: Mapping[str, Any],
    settings: Mapping[str, Any],
    what: str,
) -> Run:
    seen = Recorder(backlog, destination)
    for host, total in backlog.items():
        seen.put(host, host, 0.0, total)
    for entry, connection, *rest in result["log"]:
        getattr(seen, entry)(connection, *rest)
    rows = [line.split() for line in result["text"].splitlines()]
    for _, connection, source, start, finish, n, stored, freed in _rows_of(rows, "move"):
        number, sent_by = int(connection), hosts[int(source)]
        seen.moved(
            number,
            sent_by,
            float(start),
            float(finish),
            int(n),
            stored_bytes=int(stored),
            freed_bytes=int(freed),
        )
        if seen.connections[number].to_host == destination:
            seen.collected(sent_by, float(finish), int(stored))
    for _, connection, count in _rows_of(rows, "retransmissions"):
        seen.connections[int(connection)].retransmissions = int(count)
    for _, flow in _rows_of(rows, "broken"):
        raise SimulationError(
            f"{what}: background flow {flow} lost its connection; allow more data_retries or "
            "syn_retries, or fewer flows"
        )
    drawn = sum(int(count) for _, count in _rows_of(rows, "drawn_syn_timeouts"))
    return seen.finish(
        engine="ns3",
        background=_background_table(network, _rows_of(rows, "flow")),
        wires=_wire_table(network, _rows_of(rows, "wire")),
        events=result["events"],
        cpu_s=result["cpu_s"],
        settings={**settings, "drawn_syn_timeouts": drawn},
    )


def _rows_of(rows: list[list[str]], word: str) -> list[list[str]]:
    return [row for row in rows if row[0] == word]


def _background_table(network: SimulatedNetwork, rows: list[list[str]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "flow": [int(row[1]) for row in rows],
            "kind": [network.background[int(row[1])].kind for row in rows],
            "phase": [row[2] for row in rows],
            "goodput_bytes_per_s": [float(row[3]) for row in rows],
        }
    )


def _wire_table(network: SimulatedNetwork, rows: list[list[str]]) -> pd.DataFrame:
    import pandas as pd

    wires = [int(row[1]) for row in rows]
    used = [float(row[2]) for row in rows]
    return pd.DataFrame(
        {
            "wire": wires,
            "from": [network.node_names[network.tail[w]] for w in wires],
            "to": [network.node_names[network.head[w]] for w in wires],
            "utilisation": [u if math.isfinite(u) else 0.0 for u in used],
            "dropped_packets": [int(row[3]) for row in rows],
        }
    )
