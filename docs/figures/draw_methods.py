"""Draw what has arrived by when, by method: `python docs/figures/draw_methods.py`.

Every line is a schedule of the example `alps`, planned here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import datacollect as dc

if TYPE_CHECKING:
    from datacollect import Schedule

FOLDER = Path(__file__).parent
EXAMPLE = FOLDER.parents[1] / "datacollect" / "examples" / "alps.toml"
INK, FAINT = "#222222", "#5A5A5A"
# Okabe and Ito, Color Universal Design, 2002.
COLOUR_OF = {"direct": "#D55E00", "best-path": "#E69F00", "coordinated": "#0072B2"}
# Beside the end of each line: alignment, below it or above, and the offset in points.
LABEL_AT = {
    "direct": ("right", True, (0, -12)),
    "best-path": ("right", False, (0, 4)),
    "coordinated": ("left", True, (4, -2)),
}
MIN, GB = 60.0, 1e9


def main() -> None:
    """Write the figure beside this file, the same bytes at every run."""
    mpl.rcParams.update({"svg.hashsalt": "datacollect", "svg.fonttype": "none", "font.size": 9})
    arrivals().savefig(FOLDER / "arrivals.svg", metadata={"Date": None})


def arrivals() -> Figure:
    """The bytes at the destination over time, for each method."""
    problem = dc.Problem.from_file(EXAMPLE)
    plans = {
        "direct": dc.direct(problem),
        "best-path": dc.best_path(problem),
        "coordinated": dc.coordinated(problem, solver="ortools"),
    }
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.subplots()
    for method, plan in plans.items():
        instants_s, arrived_bytes = arrived(plan)
        axes.plot(instants_s / MIN, arrived_bytes / GB, color=COLOUR_OF[method], linewidth=2)
        align, below, offset = LABEL_AT[method]
        axes.annotate(
            f"{method}\n{plan.makespan_s / MIN:.1f} min",
            (plan.makespan_s / MIN, arrived_bytes[-1] / GB),
            offset,
            textcoords="offset points",
            ha=align,
            va="top" if below else "bottom",
            color=COLOUR_OF[method],
        )
    bound_s = plans["coordinated"].lower_bound_s
    axes.axvline(bound_s / MIN, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.text(bound_s / MIN + 0.8, 1.0, "lower bound: no plan is faster", color=FAINT)
    axes.set(xlabel="minutes", ylabel="GB at the destination", xlim=(0, 70), ylim=(0, 44))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    return figure


def arrived(plan: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """The instants at which rates into the destination change, and what has arrived by each."""
    last = plan.transfers[plan.transfers["to"] == plan.destination]
    start_s, finish_s = last["start_s"].to_numpy(), last["finish_s"].to_numpy()
    instants_s = np.unique(np.concatenate([[0.0], start_s, finish_s]))
    done = (instants_s[:, None] - start_s) / (finish_s - start_s)
    return instants_s, np.clip(done, 0.0, 1.0) @ last["bytes"].to_numpy(float)


if __name__ == "__main__":
    main()
