"""The core paper's claims, judged by runs in its setting.

C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study of a Large-Scale
Data Collection Problem", WCW 2002. `datacollect report DIR --verdicts experiments/paper` takes the
function `judge` from here; a study of another paper is another such folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import datacollect as dc
from datacollect.study.report.verdicts import NOT_RUN
from paper.claims import claims_table, findings
from paper.readings import readings_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacollect.study.report.folders import SweepFolder

# Claims that are computed by hand rather than from runs.
WITHOUT_RUNS = "C12"

TITLE = "What the paper claims, and what is found"
SHOWN = {
    "claim": "claim",
    "statement": "the paper says",
    "paper": "its number",
    "value": "ours",
    "connections": "connections",
    "equal_connections": "direct with as many, over coordinated",
    "method": "coordinated method",
    "where": "where",
    "verdict": "verdict",
}
PRINTED = {
    "claim": "claim",
    "part": "part",
    "method": "method",
    "paper": "paper",
    "value": "found",
    "verdict": "verdict",
}


def judge(sweeps: Sequence[SweepFolder]) -> dc.Verdicts:
    """Judge the paper's claims, and under other readings of its text those on makespans.

    No claims where no run has to do with one: most sweeps ask other questions.
    """
    table = claims_table(findings(sweeps))
    judged = table[(table["verdict"] != NOT_RUN) & (table["claim"] != WITHOUT_RUNS)]
    return dc.Verdicts(
        claims=table[:0] if judged.empty else table,
        title=TITLE,
        shown=SHOWN,
        printed=PRINTED,
        tables={"readings": readings_table(sweeps)},
    )
