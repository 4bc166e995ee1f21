"""Probes between the hosts of a simulated network: what each pair gets there, and what it costs.

A probe transfers a few megabytes between one pair of hosts, alone but for the background, as in
the core paper: one pair at a time, several times, in a run of its own before the collection.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, SimulationError
from datacollect.installation import installed_version
from datacollect.scenario.known_wires import fair_bytes_per_s, late_capacity_bytes_per_s, simulated
from datacollect.scenario.options import EstimateOptions, RunOptions
from datacollect.scenario.probe_cache import Measurement, measured_once
from datacollect.scenario.setting import network_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    import pandas as pd

    from datacollect.scenario.setting import Setting
    from datacollect.simulation.network import SimulatedNetwork

# More would take hours; what such a scenario can have instead is in the message.
MOST_PROBES = {"ns3": 20_000, "fluid": 100_000}
EXACT = ' use kind = "exact",'


def measure(
    setting: Setting,
    engine: str,
    cache_dir: str | PathLike[str] | None = None,
    progress: Callable[[float, int], None] | None = None,
) -> Measurement:
    """Probe every ordered pair of hosts, or look up what was measured before.

    The fluid engine's probe gets its max-min fair share beside the background, UDP at its mean
    rate; repeats would be equal, so there is one. ``exact`` estimates are these, whatever engine
    runs.

    Parameters
    ----------
    setting : Setting
    engine : {"ns3", "fluid"}
    cache_dir : path-like, optional
        Folder for measurements in ns-3; the fluid engine is faster than a file.
    progress : callable, optional
        Called now and then, while ns-3 measures, with its simulated seconds and 0.

    Raises
    ------
    ProblemError
        There are too many pairs to measure, or a pair has no route.
    SimulationError
        ns-3 failed; the message names the scenario.
    """
    probes = _probes_of(setting, engine)
    if probes.engine == "fluid":
        return measured_once(probes.sha256, None, probes.as_fluid)
    return measured_once(probes.sha256, cache_dir, lambda: probes.in_packets(progress))


@dataclass(frozen=True, eq=False)
class _Probes:
    """All that shapes the samples: which probes, in which network, by which engine."""

    engine: str
    scenario_name: str
    network: SimulatedNetwork
    pairs: list[tuple[str, str]]
    n_bytes: int
    repeats: int
    header_bytes: int  # fluid engine
    seed: int  # ns-3, as what follows
    warm_up_s: float
    give_up_s: float

    @cached_property
    def sha256(self) -> str:
        """Hash of what shapes the samples, the engine's program included."""
        what: dict[str, Any] = {
            "engine": self.engine,
            "network": network_sha256(self.network),
            "pairs": self.pairs,
            "bytes": self.n_bytes,
            "repeats": self.repeats,
            "version": _engine_version(self.engine),
        }
        if self.engine == "ns3":
            what |= {
                "program": program_sha256(_ns3_folder()),
                "seed": self.seed,
                "warm_up_s": self.warm_up_s,
                "give_up_s": self.give_up_s,
            }
        else:
            what["header_bytes"] = self.header_bytes
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def as_fluid(self) -> Measurement:
        began_s = time.process_time()
        samples = fluid_samples(self.network, self.pairs, self.n_bytes, self.header_bytes)
        simulated_s, cpu_s = float(samples["duration_s"].sum()), time.process_time() - began_s
        return self._measurement(samples, simulated_s, cpu_s)

    def in_packets(self, progress: Callable[[float, int], None] | None) -> Measurement:
        from datacollect.simulation.ns3.probe import probe_ns3

        try:
            found = probe_ns3(
                self.network,
                self.pairs,
                self.n_bytes,
                self.repeats,
                seed=self.seed,
                warm_up_s=self.warm_up_s,
                give_up_s=self.give_up_s,
                progress=progress,
            )
        except SimulationError as error:
            raise SimulationError(f"scenario {self.scenario_name!r}: {error}") from error
        return self._measurement(found.samples, found.simulated_s, found.cpu_s)

    def _measurement(self, samples: pd.DataFrame, simulated_s: float, cpu_s: float) -> Measurement:
        cost = {
            "engine": self.engine,
            "probes": len(samples),
            "bytes": int(samples["bytes"].sum()),
            "simulated_s": simulated_s,
            "cpu_s": cpu_s,
            "from_cache": False,
        }
        return Measurement(samples, cost, self.sha256)


def _probes_of(setting: Setting, engine: str) -> _Probes:
    scenario = setting.scenario
    options = EstimateOptions.of(scenario)
    if options.kind == "exact":
        engine = "fluid"
    network = simulated(setting)
    n_hosts, repeats = len(setting.hosts), 1 if engine == "fluid" else options.repeats
    n_pairs = n_hosts * (n_hosts - 1)
    if n_pairs * repeats > MOST_PROBES[engine]:
        # What is exact is probed as a fluid, once each.
        is_less = engine != "fluid" and n_pairs <= MOST_PROBES["fluid"]
        raise ProblemError(
            f"estimates: {n_hosts} hosts need {n_pairs} pairs × {repeats} probes, "
            f"more than {MOST_PROBES[engine]} for {engine}; give estimates.file with "
            f'kind = "given",{EXACT if is_less else ""} or simulate fewer hosts'
        )
    return _Probes(
        engine=engine,
        scenario_name=scenario.name,
        network=network,
        pairs=[(a, b) for a in setting.hosts for b in setting.hosts if a != b],
        n_bytes=max(1, round(options.probe_bytes * scenario.probe_scale)),
        repeats=repeats,
        header_bytes=setting.header_bytes,
        seed=scenario.number("estimates"),
        warm_up_s=RunOptions.of(scenario).warm_up_s,
        give_up_s=options.give_up_s,
    )


def fluid_samples(
    network: SimulatedNetwork,
    pairs: Sequence[tuple[str, str]],
    n_bytes: int,
    header_bytes: int = 0,
) -> pd.DataFrame:
    """Return one sample per pair: its max-min fair share beside the background.

    Examples
    --------
    >>> from datacollect.scenario.setting import network_of
    >>> from datacollect.topologies import line
    >>> topology = line(3, rate_bytes_per_s=1e6, delay_s=0.0)
    >>> network = network_of(
    ...     topology, {"S": "N0", "D": "N2"}, topology.shortest_routes().next_wire
    ... )
    >>> float(fluid_samples(network, [("S", "D")], 10)["bandwidth_bytes_per_s"].iloc[0])
    1000000.0
    """
    import pandas as pd

    from datacollect.simulation.fluid.wires import WireNetwork

    wires = WireNetwork(network, header_bytes=header_bytes)
    capacity = late_capacity_bytes_per_s(network, wires)
    others = wires.background_paths
    busy = {wire for path in others for wire in path.resources}
    shares: dict[Any, float] = {}
    rates = []
    for a, b in pairs:
        path = wires.path(a, b)
        if path is None or not path.resources:
            raise ProblemError(f"host {a!r} has no route to {b!r}, or is at the same node")
        alone = [capacity[w] for w in path.resources if w not in busy]
        limit = min([path.limit_bytes_per_s, *(float(rate) for rate in alone)])
        crowded = tuple(w for w in path.resources if w in busy)
        if (crowded, limit) not in shares:
            share = fair_bytes_per_s(crowded, limit, capacity, others) if crowded else limit
            shares[crowded, limit] = share
        rates.append(shares[crowded, limit])
    bandwidth = np.array(rates, dtype=float)
    if not (bandwidth > 0).all():
        a, b = pairs[int(np.argmin(bandwidth > 0))]
        raise ProblemError(f"no bandwidth is left between {a!r} and {b!r}: UDP takes all of a wire")
    duration = n_bytes / bandwidth
    return pd.DataFrame(
        {
            "from": [a for a, _ in pairs],
            "to": [b for _, b in pairs],
            "time_s": np.cumsum(duration),
            "bandwidth_bytes_per_s": bandwidth,
            "bytes": n_bytes,
            "duration_s": duration,
            "streams": 1,
            "concurrency": 0,
        }
    )


def program_sha256(folder: Path) -> str:
    """Return a hash of the C++ that ns-3 runs: probes of another program are others.

    Parameters
    ----------
    folder : Path
        All headers in it and below count, with their names.
    """
    digest = hashlib.sha256()
    for header in sorted(folder.rglob("*.h")):
        content = header.read_bytes()
        digest.update(f"{header.relative_to(folder).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _ns3_folder() -> Path:
    from datacollect.simulation import ns3

    return Path(ns3.__path__[0])


def _engine_version(engine: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    if engine != "ns3":
        return installed_version() or "unknown"
    try:
        return version("ns3")
    except PackageNotFoundError:
        return "unknown"
