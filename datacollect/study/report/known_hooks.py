"""Sweeps whose claims a hook of this project's repository judges, recognised by their settings.

An installed package does not have it, and says where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.study.report.folders import SweepFolder


def hook_for(sweeps: Iterable[SweepFolder]) -> str:
    """Return the folder of this repository whose hook judges such sweeps; empty where none does."""
    is_any = any(is_core_papers(sweep.tree["scenario"]) for sweep in sweeps)
    return "experiments/paper" if is_any else ""


def is_core_papers(scenario: Mapping[str, Any]) -> bool:
    """Return whether a scenario is set as the core paper has it: network, number of sources, data.

    C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study of a
    Large-Scale Data Collection Problem", WCW 2002.
    """
    sources = scenario.get("hosts", {}).get("sources", [])
    n_sources = sum(int(source.get("count", 1)) for source in sources)
    total_bytes = scenario.get("backlog", {}).get("total_bytes")
    kind = scenario.get("topology", {}).get("kind")
    return (kind, n_sources, total_bytes) == ("paper-152", 7, 350_000_000)
