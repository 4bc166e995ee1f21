"""Other readings of the paper's text, and which verdicts each of them changes.

A reading is a world that differs from the base scenario in something that the paper leaves open:
where sources attach, how TCP is set up, what each seed draws, with which route best-path begins.
Its runs are judged by the same rules, for the claims that speak of makespans, and set beside the
base scenario's. What differs otherwise, as in what the planner is told, is no reading of the text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datacollect.study.report.verdicts import NOT_RUN
from paper.claims import (
    asymmetric_gain,
    asymmetric_order,
    symmetric_alike,
    symmetric_gain,
    wrong_estimates,
)
from paper.runs import paper_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from datacollect.study.report.folders import SweepFolder
    from paper.judging import Finding
    from paper.runs import PaperRuns

# Where a world differs from the base scenario, by place, if it is a reading of the text.
OPEN = ("hosts.", "backlog.seed", "transport.preset", "method.first", "seeds chosen")

# C1 to C4, and C6.
CLAIMS = (symmetric_gain, asymmetric_gain, symmetric_alike, asymmetric_order, wrong_estimates)


def readings_table(sweeps: Sequence[SweepFolder]) -> pd.DataFrame:
    """Return verdicts under other readings beside those of the base scenario.

    Returns
    -------
    DataFrame
        A row for each reading, coordinated method, claim and part: ``where`` (engine, size, what is
        known), ``reading`` (where it differs), ``method``, ``claim``, ``part``, ``seeds``,
        ``value`` with its interval, ``verdict``, ``base_value`` with its interval and
        ``base_verdict`` (of the world that differs in nothing else; "not run" where there is
        none) and ``changes`` (whether the two verdicts are others). Empty where no other reading
        has been run.
    """
    import pandas as pd

    worlds = paper_runs(sweeps)
    base = {runs.world: _judged(runs) for runs in worlds if runs.world.is_judged}
    rows: list[dict[str, Any]] = []
    for runs in worlds:
        usual = replace(runs.world, others=())
        others = runs.world.others
        if not others or not usual.is_judged or not all(o.startswith(OPEN) for o in others):
            continue
        before = base.get(usual, {})
        for key, finding in _judged(runs).items():
            if finding.verdict == NOT_RUN:
                continue
            other = before.get(key)
            base_verdict = NOT_RUN if other is None else other.verdict
            rows.append(
                {
                    "where": usual.words,
                    "reading": "; ".join(others),
                    "method": runs.world.method,
                    "claim": finding.claim,
                    "part": finding.part,
                    "seeds": finding.seeds,
                    "value": finding.value,
                    "value_low": finding.low,
                    "value_high": finding.high,
                    "verdict": finding.verdict,
                    "base_value": float("nan") if other is None else other.value,
                    "base_value_low": float("nan") if other is None else other.low,
                    "base_value_high": float("nan") if other is None else other.high,
                    "base_verdict": base_verdict,
                    "changes": base_verdict not in (NOT_RUN, finding.verdict),
                }
            )
    return pd.DataFrame(rows)


def _judged(runs: PaperRuns) -> dict[tuple[str, str], Finding]:
    found = [finding for claim in CLAIMS for finding in claim(runs)]
    return {(finding.claim, finding.part): finding for finding in found}
