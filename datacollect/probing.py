"""What a planner knows of a simulated network: probes between hosts, turned into bandwidths.

A probe transfers a few megabytes between one pair of hosts, alone but for the background, as in
the core paper: one pair at a time, several times, in a run of its own before the collection.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.errors import NotWrittenError, ProblemError, SimulationError
from datacollect.estimates import estimate, perturb
from datacollect.problem import Problem
from datacollect.setting import network_sha256
from datacollect.shared_wires import (
    fair_bytes_per_s,
    late_capacity_bytes_per_s,
    payload_bytes_per_s,
    simulated,
    wires_crossed,
    with_shared_wires,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    import pandas as pd

    from datacollect.setting import Setting
    from datacollect.simulation.network import SimulatedNetwork
    from datacollect.simulation.ns3_probe import Probes

    Progress: TypeAlias = Callable[[float, int], None]

# More would take hours; what such a scenario can have instead is in the message.
MOST_PROBES = {"ns3": 20_000, "fluid": 100_000}

# Samples of this process, so that all methods of a setting share one measurement; the last ones.
_MOST_KNOWN = 64
_KNOWN: dict[str, Measurement] = {}


@dataclass(frozen=True, eq=False)
class Measurement:
    """Samples of all ordered pairs of hosts, and what they cost.

    Attributes
    ----------
    samples : DataFrame
        As `datacollect.samples` describes, with bytes, duration_s, streams and concurrency.
    cost : dict
        probes, bytes, simulated_s (as they ran one after another), cpu_s, engine, from_cache.
    sha256 : str
        Hash of all that shaped the samples.
    """

    samples: pd.DataFrame
    cost: dict[str, Any] = field(default_factory=dict)
    sha256: str = ""


def planning_problem(
    setting: Setting,
    engine: str,
    cache_dir: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> tuple[Problem, Measurement | None]:
    """Return the problem that plans are made on, and the measurement behind it.

    Parameters
    ----------
    setting : Setting
    engine : {"ns3", "fluid"}
        Which measures, unless the scenario names one.
    cache_dir : path-like, optional
        Folder for measurements in ns-3; they are looked up there by a hash of all that shapes
        them.
    progress : callable, optional
        Called now and then, while ns-3 measures, with its simulated seconds and 0.

    Raises
    ------
    ProblemError
        There are too many pairs to measure, or a given file does not fit.
    """
    if setting.problem is not None:
        return setting.problem, None
    section = setting.scenario.section("estimates")
    if section["kind"] == "given":
        return with_shared_wires(_perturbed(_given(setting), setting), setting), None
    found = measure(setting, section["engine"] or engine, cache_dir, progress)
    bandwidths = estimate(
        found.samples, section["how"], a=section["a"], quantile=section["quantile"]
    )
    problem = Problem.from_dataframe(
        bandwidths[["from", "to", "bandwidth_bytes_per_s"]],
        setting.backlog_bytes,
        setting.destination,
        hosts=_hosts_table(setting),
    )
    return with_shared_wires(_perturbed(problem, setting), setting), found


def measure(
    setting: Setting,
    engine: str,
    cache_dir: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Probe every ordered pair of hosts, or look up what was measured before.

    The fluid engine's probe gets its max-min fair share beside the background, UDP at its mean
    rate; repeats would be equal, so there is one. ``exact`` estimates are these, whatever engine
    runs.
    """
    scenario = setting.scenario
    section = scenario.section("estimates")
    if section["kind"] == "exact":
        engine = "fluid"
    network = simulated(setting)
    pairs = [(a, b) for a in setting.hosts for b in setting.hosts if a != b]
    repeats = 1 if engine == "fluid" else section["repeats"]
    if len(pairs) * repeats > MOST_PROBES[engine]:
        raise ProblemError(
            f"estimates: {len(setting.hosts)} hosts need {len(pairs)} pairs × {repeats} probes, "
            f"more than {MOST_PROBES[engine]} for {engine}; give estimates.file with "
            'kind = "given", use kind = "exact", or simulate fewer hosts'
        )
    n_bytes = max(1, round(section["probe_bytes"] * float(scenario.sections["scale"])))
    what: dict[str, Any] = {
        "engine": engine,
        "network": network_sha256(network),
        "pairs": pairs,
        "bytes": n_bytes,
        "repeats": repeats,
        "version": _engine_version(engine),
        "program": _program_sha256(engine),
    }
    if engine == "ns3":
        what |= {
            "seed": scenario.number("estimates"),
            "warm_up_s": scenario.section("run")["warm_up_s"],
            "give_up_s": section["give_up_s"],
        }
    else:
        what["header_bytes"] = header_bytes(setting)
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    if key in _KNOWN:
        return _KNOWN[key]
    # The fluid engine is faster than a file.
    file = None if cache_dir is None or engine == "fluid" else Path(cache_dir, f"probes-{key}.json")
    found = None if file is None else _read(file, key)
    if found is None:
        if engine == "fluid":
            began_s = time.process_time()
            samples = fluid_samples(network, pairs, n_bytes, header_bytes(setting))
            simulated_s, cpu_s = float(samples["duration_s"].sum()), time.process_time() - began_s
        else:
            probes = _ns3_probes(setting, pairs, n_bytes, repeats, progress)
            samples, simulated_s, cpu_s = probes.samples, probes.simulated_s, probes.cpu_s
        cost = {
            "engine": engine,
            "probes": len(samples),
            "bytes": int(samples["bytes"].sum()),
            "simulated_s": simulated_s,
            "cpu_s": cpu_s,
            "from_cache": False,
        }
        found = Measurement(samples, cost, key)
        if file is not None:
            _write(file, found)
    _KNOWN[key] = found
    while len(_KNOWN) > _MOST_KNOWN:
        del _KNOWN[next(iter(_KNOWN))]
    return found


def fluid_samples(
    network: SimulatedNetwork,
    pairs: Sequence[tuple[str, str]],
    n_bytes: int,
    header_bytes: int = 0,
) -> pd.DataFrame:
    """Return one sample per pair: its max-min fair share beside the background.

    Examples
    --------
    >>> from datacollect.setting import network_of
    >>> from datacollect.topologies import line
    >>> topology = line(3, rate_bytes_per_s=1e6, delay_s=0.0)
    >>> network = network_of(
    ...     topology, {"S": "N0", "D": "N2"}, topology.shortest_routes().next_wire
    ... )
    >>> float(fluid_samples(network, [("S", "D")], 10)["bandwidth_bytes_per_s"].iloc[0])
    1000000.0
    """
    import pandas as pd

    from datacollect.simulation.fluid_wires import WireNetwork

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
        raise ProblemError(f"nothing is left between {a!r} and {b!r}: UDP takes all of a wire")
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


def cache_folder() -> Path:
    """Return where the command line keeps measurements: the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "datacollect")


def _program_sha256(engine: str) -> str:
    """Hash of what runs in ns-3: probes of another program are others."""
    if engine != "ns3":
        return ""
    from datacollect.simulation.ns3_worker import HEADER

    return hashlib.sha256(HEADER.read_bytes()).hexdigest()


def _engine_version(engine: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ns3" if engine == "ns3" else "datacollect")
    except PackageNotFoundError:
        return "unknown"


def _ns3_probes(
    setting: Setting,
    pairs: Sequence[tuple[str, str]],
    n_bytes: int,
    repeats: int,
    progress: Progress | None,
) -> Probes:
    from datacollect.simulation.ns3_probe import probe_ns3

    scenario = setting.scenario
    try:
        return probe_ns3(
            simulated(setting),
            pairs,
            n_bytes,
            repeats,
            seed=scenario.number("estimates"),
            warm_up_s=scenario.section("run")["warm_up_s"],
            give_up_s=scenario.section("estimates")["give_up_s"],
            progress=progress,
        )
    except SimulationError as error:
        raise SimulationError(f"scenario {scenario.name!r}: {error}") from error


# Estimates of other origin, and wrong ones -----------------------------------------------------


def _given(setting: Setting) -> Problem:
    import pandas as pd

    from datacollect.link_table import read_link_table

    index = {host: i for i, host in enumerate(setting.hosts)}
    file = setting.scenario.folder / setting.scenario.section("estimates")["file"]
    try:
        table = read_link_table(file, index, None)
    except ProblemError as error:
        raise ProblemError(f"estimates.file {error}") from None
    names = np.array(setting.hosts, dtype=object)
    return Problem.from_dataframe(
        pd.DataFrame(
            {
                "from": names[table.link_from],
                "to": names[table.link_to],
                "bandwidth_bytes_per_s": table.bandwidth_bytes_per_s[0],
            }
        ),
        setting.backlog_bytes,
        setting.destination,
        hosts=_hosts_table(setting),
    )


def _hosts_table(setting: Setting) -> pd.DataFrame:
    """All hosts; where the planner may know, with what their only wire carries out and in."""
    import pandas as pd

    table = pd.DataFrame(index=list(setting.hosts))
    if setting.scenario.section("estimates")["know_access"]:
        network, payload = simulated(setting), payload_bytes_per_s(setting)
        nodes = [network.host_node[host] for host in setting.hosts]
        ends = {"uplink_bytes_per_s": network.tail, "downlink_bytes_per_s": network.head}
        for column, end in ends.items():
            table[column] = [payload[end == n].sum() for n in nodes]
    return table


def header_bytes(setting: Setting) -> int:
    """Return what the fluid engine adds to each segment."""
    return int(setting.scenario.section("transport")["header_bytes"])


def _perturbed(problem: Problem, setting: Setting) -> Problem:
    """Multiply the estimates of pairs whose route crosses named wires, either way."""
    perturbations = setting.scenario.section("estimates")["perturbations"]
    topology = setting.topology
    if not perturbations or topology is None:
        return problem
    crossed = [
        {wire // 2 for wire in wires} for wires in wires_crossed(problem, simulated(setting))
    ]
    for i, entry in enumerate(perturbations):
        try:
            wire = topology.wire_index(entry["wire"])
        except ProblemError as error:
            raise ProblemError(f"estimates.perturbations[{i}].wire: {error}") from None
        mask = np.array([wire in wires for wires in crossed], dtype=bool)
        if mask.any():
            problem = perturb(problem, entry["factor"], mask)
    return problem


# The cache ------------------------------------------------------------------------------------


def _read(file: Path, key: str) -> Measurement | None:
    """Read a cached measurement; one that is damaged counts as absent."""
    import pandas as pd

    try:
        tree: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        samples = pd.DataFrame(tree["samples"])
        return Measurement(samples, {**tree["cost"], "from_cache": True}, key)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, found: Measurement) -> None:
    from datacollect.documents import write_atomically

    tree = {"cost": found.cost, "samples": found.samples.to_dict("list")}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWrittenError(
            f"{file.parent}: the folder for measurements cannot be made: {error.strerror}; "
            "name another cache folder"
        ) from None
    write_atomically(file, json.dumps(tree).encode())
