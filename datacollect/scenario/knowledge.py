"""Knowledge that a planner has of a simulated network: measured, exact, given, or wrong."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from datacollect.errors import ProblemError
from datacollect.measurement.estimates import estimate
from datacollect.measurement.perturbed import perturb
from datacollect.methods.execution import UNKNOWN_BYTES_PER_S
from datacollect.problem.problem import Problem
from datacollect.scenario.fields import UNKNOWN
from datacollect.scenario.known_wires import (
    payload_bytes_per_s,
    simulated,
    wires_crossed,
    with_shared_wires,
)
from datacollect.scenario.options import EstimateOptions
from datacollect.scenario.probes import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    import pandas as pd

    from datacollect.scenario.options import Perturbation
    from datacollect.scenario.probe_cache import Measurement
    from datacollect.scenario.setting import Setting


def planning_problem(
    setting: Setting,
    engine: str,
    cache_dir: str | PathLike[str] | None = None,
    progress: Callable[[float, int], None] | None = None,
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
    options = EstimateOptions.of(setting.scenario)
    measurement = None
    if options.kind == UNKNOWN:
        bandwidths = _all_alike(setting)
    elif options.file is not None:
        bandwidths = _given(setting, options.file)
    else:
        measurement = measure(setting, options.engine or engine, cache_dir, progress)
        bandwidths = estimate(
            measurement.samples, options.how, a=options.a, quantile=options.quantile
        )
    problem = Problem.from_dataframe(
        bandwidths[["from", "to", "bandwidth_bytes_per_s"]],
        setting.backlog_bytes,
        setting.destination,
        hosts=_hosts_table(setting, know_access=options.know_access),
    )
    problem = _perturbed(problem, setting, options.perturbations)
    return with_shared_wires(problem, setting, options.shared), measurement


def _all_alike(setting: Setting) -> pd.DataFrame:
    """One bandwidth for every pair of hosts: nobody knows."""
    import pandas as pd

    pairs = permutations(setting.hosts, 2)
    table = pd.DataFrame(pairs, columns=["from", "to"])
    return table.assign(bandwidth_bytes_per_s=UNKNOWN_BYTES_PER_S)


def _given(setting: Setting, file_name: str) -> pd.DataFrame:
    """Bandwidths between hosts from a file."""
    import pandas as pd

    from datacollect.problem.link_table import read_link_table

    index = {host: i for i, host in enumerate(setting.hosts)}
    try:
        table = read_link_table(setting.scenario.folder / file_name, index, None)
    except ProblemError as error:
        raise ProblemError(f"estimates.file {error}") from None
    names = np.array(setting.hosts, dtype=object)
    return pd.DataFrame(
        {
            "from": names[table.link_from],
            "to": names[table.link_to],
            "bandwidth_bytes_per_s": table.bandwidth_bytes_per_s[0],
        }
    )


def _hosts_table(setting: Setting, *, know_access: bool) -> pd.DataFrame:
    """All hosts; where the planner may know, with what their only wire carries out and in."""
    import pandas as pd

    table = pd.DataFrame(index=list(setting.hosts))
    if know_access:
        network, payload = simulated(setting), payload_bytes_per_s(setting)
        nodes = [network.host_node[host] for host in setting.hosts]
        ends = {"uplink_bytes_per_s": network.tail, "downlink_bytes_per_s": network.head}
        for column, end in ends.items():
            table[column] = [payload[end == n].sum() for n in nodes]
    return table


def _perturbed(
    problem: Problem, setting: Setting, perturbations: Sequence[Perturbation]
) -> Problem:
    """Multiply the estimates of pairs whose route crosses named wires, in either direction."""
    topology = setting.topology
    if not perturbations or topology is None:
        return problem
    crossed = [
        {wire // 2 for wire in wires} for wires in wires_crossed(problem, simulated(setting))
    ]
    for i, perturbation in enumerate(perturbations):
        try:
            wire = topology.wire_index(perturbation.wire)
        except ProblemError as error:
            raise ProblemError(f"estimates.perturbations[{i}].wire: {error}") from None
        mask = np.array([wire in wires for wires in crossed], dtype=bool)
        if mask.any():
            problem = perturb(problem, perturbation.factor, mask)
    return problem
