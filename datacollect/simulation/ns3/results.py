"""Results of the packet engine, turned into a `Run`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from datacollect.control.events import ConnectionClosed, ConnectionOpened, ConnectionStalled
from datacollect.errors import SimulationError
from datacollect.simulation.ns3.messages import ConnectionAsked
from datacollect.simulation.ns3.network_text import hosts_of
from datacollect.simulation.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.simulation.ns3.messages import LogEntry, RunResult
    from datacollect.simulation.run import Run


class _WireUse(NamedTuple):
    wire: int
    utilisation: float
    dropped_packets: int


class _Goodput(NamedTuple):
    flow: int
    phase: str
    bytes_per_s: float


def run_of(
    network: SimulatedNetwork,
    backlog_bytes: Mapping[str, int],
    destination: str,
    result: RunResult,
    settings: Mapping[str, Any],
    what: str,
) -> Run:
    """Return the run that a result describes.

    Raises
    ------
    SimulationError
        A background flow lost its connection; the message begins with `what`.
    """
    seen = Recorder(backlog_bytes, destination)
    for host, total in backlog_bytes.items():
        seen.put(host, host, 0.0, total)
    _note(result.log, seen)
    hosts = hosts_of(network)
    wires: list[_WireUse] = []
    goodputs: list[_Goodput] = []
    n_drawn = 0
    for line in result.text.splitlines():
        match line.split():
            case ["move", connection, source, start_s, finish_s, n, stored, freed]:
                number, sent_by = int(connection), hosts[int(source)]
                seen.moved(
                    number,
                    sent_by,
                    float(start_s),
                    float(finish_s),
                    int(n),
                    stored_bytes=int(stored),
                    freed_bytes=int(freed),
                )
                if seen.connections[number].to_host == destination:
                    seen.collected(sent_by, float(finish_s), int(stored))
            case ["retransmissions", connection, count]:
                seen.connections[int(connection)].retransmissions = int(count)
            case ["drawn_syn_timeouts", count]:
                n_drawn = int(count)
            case ["wire", wire, used, dropped]:
                wires.append(_WireUse(int(wire), float(used), int(dropped)))
            case ["flow", flow, phase, rate]:
                goodputs.append(_Goodput(int(flow), phase, float(rate)))
            case ["broken", flow]:
                raise SimulationError(
                    f"{what}: background flow {flow} lost its connection; allow more data_retries "
                    "or syn_retries, or fewer flows"
                )
            case _:
                raise SimulationError(f"{what}: ns-3 reports {line!r}, which is unknown")
    return seen.finish(
        engine="ns3",
        background=_background_table(network, goodputs),
        wires=_wire_table(network, wires),
        events=result.events,
        cpu_s=result.cpu_s,
        settings={**settings, "drawn_syn_timeouts": n_drawn},
    )


def _note(log: Iterable[LogEntry], seen: Recorder) -> None:
    """Note what happened to connections."""
    for entry in log:
        match entry:
            case ConnectionAsked(time_s, connection, between):
                seen.asked(connection, between, time_s)
            case ConnectionOpened(time_s, connection):
                seen.opened(connection, time_s)
            case ConnectionStalled(_, connection):
                seen.stalled(connection)
            case ConnectionClosed(time_s, connection):
                seen.closed(connection, time_s)


def _background_table(network: SimulatedNetwork, rows: list[_Goodput]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "flow": [row.flow for row in rows],
            "kind": [network.background[row.flow].kind for row in rows],
            "phase": [row.phase for row in rows],
            "goodput_bytes_per_s": [row.bytes_per_s for row in rows],
        }
    )


def _wire_table(network: SimulatedNetwork, rows: list[_WireUse]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "wire": [row.wire for row in rows],
            "from": [network.node_names[network.tail[row.wire]] for row in rows],
            "to": [network.node_names[network.head[row.wire]] for row in rows],
            "utilisation": [u if math.isfinite(u) else 0.0 for _, u, _ in rows],
            "dropped_packets": [row.dropped_packets for row in rows],
        }
    )
