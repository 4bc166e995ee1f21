"""C12, the core paper's Figure 1: planned here, not quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.study.report.verdicts import CONTRADICTS, HOLDS
from paper.judging import Finding

if TYPE_CHECKING:
    from datacollect.problem.problem import Problem

# A plan is the paper's within so much: chunks take a thousandth.
TOLERANCE = 0.002


def figure1_findings() -> list[Finding]:
    """C12: Figure 1's example, planned here: direct 2, through K 3, coordinated 1.5 and 1."""
    from datacollect.methods.coordinated.coordinated import coordinated
    from datacollect.methods.direct import direct

    problem, through_k = _figure1_problems()
    found = (
        ("direct", 2.0, direct(problem), ""),
        ("all through K, in slots of 1", 3.0, coordinated(through_k, slot_s=1.0), ""),
        ("coordinated, in slots of 0.5", 1.5, coordinated(problem, slot_s=0.5), ""),
        ("coordinated, pipelined", 1.0, coordinated(problem), "; one chunk, 1/1000, comes on top"),
    )
    return [
        Finding(
            claim="C12",
            part=part,
            statement=f"Figure 1: {part} takes {paper:g} time units",
            paper=f"{paper:g}",
            where="planned here",
            setting="2 sources, 1 relay",
            value=schedule.makespan_s,
            low=schedule.makespan_s,
            high=schedule.makespan_s,
            connections=f"{schedule.n_routes} routes",
            verdict=HOLDS if abs(schedule.makespan_s / paper - 1) <= TOLERANCE else CONTRADICTS,
            is_settled=True,
            why=f"the plan takes {schedule.makespan_s:.4g} units{how}; nothing in it is random",
        )
        for part, paper, schedule, how in found
    ]


def _figure1_problems() -> tuple[Problem, Problem]:
    """The paper's example, and the same without the sources' own links to D."""
    import tomllib

    from datacollect.examples import example_files
    from datacollect.problem.problem import Problem

    tree = tomllib.loads(example_files("figure1")["figure1.toml"])
    detours = [link for link in tree["links"] if "K" in (link["from"], link["to"])]
    wires = [wire for wire in tree["shared"] if wire["name"] == "into K"]
    through_k = {**tree, "links": detours, "shared": wires}
    return Problem.from_dict(tree), Problem.from_dict(through_k)
