"""A hook as somebody else may write it: is coordinated faster than direct, sweep by sweep?"""

from __future__ import annotations

import pandas as pd

import datacollect as dc


def judge(sweeps):
    """Two claims of each sweep, of which one is judged by its runs; and a table of seeds."""
    rows = [row for sweep in sweeps for row in rows_of(sweep)]
    counts = [{"sweep": sweep.name, "seeds": sweep.table["seed"].nunique()} for sweep in sweeps]
    columns = {"claim": "claim", "said": "somebody says", "value": "ratio", "verdict": "verdict"}
    return dc.Verdicts(
        pd.DataFrame(rows),
        title="What somebody says",
        shown=columns,
        printed=columns,
        tables={"counts": pd.DataFrame(counts), "nothing": pd.DataFrame()},
    )


def rows_of(sweep):
    seconds = sweep.table.pivot_table(index="seed", columns="method", values="makespan_s")
    ratio = seconds["coordinated"] / seconds["direct"]
    judged = {
        "claim": "faster",
        "part": "",
        "said": "less than one: always",
        "where": sweep.engine,
        "setting": sweep.name,
        "value": ratio.mean(),
        "low": ratio.min(),
        "high": ratio.max(),
        "seeds": len(ratio),
        "verdict": "holds" if (ratio < 1).all() else "differs",
        "is_settled": False,
        "why": "from seed to seed",
    }
    empty = {"value": float("nan"), "low": float("nan"), "high": float("nan"), "seeds": 0}
    other = {"claim": "cheaper", "said": "less money", "verdict": "not run", "why": "no prices"}
    return [judged, judged | empty | other]
