"""A pull as a picture: rates of routes over time, and what has come in all, beside the plan."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import write_atomically
from datacollect.files.units import format_bytes, format_duration, format_rate
from datacollect.pictures.axis import time_unit
from datacollect.pictures.colours import OTHERS, PALETTE
from datacollect.pictures.look import FAINT, INK
from datacollect.pictures.plot import DOTS_PER_INCH, PICTURES
from datacollect.transfer.store.history import history_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from datacollect.transfer.store.history import History

MOST_ROUTES = len(PALETTE)
SIZE = (12.0, 7.0)
# What was expected is shown in full up to this multiple of what happened.
NEAR = 1.5
PLAN: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 1.3}


def save_history(folder: str | PathLike[str], path: str | PathLike[str]) -> None:
    """Draw the last start of the pull into a folder: PNG, SVG or PDF by the file's suffix.

    Raises
    ------
    ProblemError
        Another suffix, nothing to draw, or the file cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in PICTURES:
        raise ProblemError(
            f"{path}: a picture's name must end in {', '.join(PICTURES)}, got {path.suffix!r}"
        )
    picture = io.BytesIO()
    figure = plot_history(history_of(folder))
    figure.savefig(picture, dpi=DOTS_PER_INCH, format=path.suffix[1:].lower())
    write_atomically(path, picture.getvalue())


def plot_history(history: History) -> Figure:
    """Draw a start of a pull.

    Above, areas are the rates of routes as they came, the dashed line is what the plan expected of
    all together. Below, the line is what had come in all, dashed what the plan expected. A dotted
    line is the predicted end; marks at the top say when connections were lost, and the like. All
    scales are those of what happened: of a plan that is far from it a part is shown.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    end_s = max(history.times_s[-1], history.ended_s or 0.0)
    expected_s = max([history.predicted_s or 0.0, *(each.finish_s for each in history.planned)])
    end_s = _scale(end_s, expected_s)
    unit_s, unit = time_unit(end_s)
    _draw_rates(above, history, unit_s)
    _draw_bytes(below, history, unit_s)
    _draw_troubles(above, history, unit_s)
    for axes in (above, below):
        if history.predicted_s is not None and history.predicted_s <= end_s:
            axes.axvline(history.predicted_s / unit_s, color=INK, linestyle=":", linewidth=1.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(0, 1.02 * end_s / unit_s)
    below.set_xlabel(f"time from the start, {unit}")
    above.set_title(_title(history, end_s), loc="left", fontsize=11)
    above.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
    return figure


def _scale(happened: float, expected: float) -> float:
    """Return how far a scale reaches: what happened, and what was expected if that is near."""
    return max(happened, expected) if expected <= NEAR * happened else happened


def _set_scale(
    axes: Axes, happened: float, expected: float, written: Callable[[float], str]
) -> None:
    """Set a scale of values, with the unit at each tick; `written` writes a value."""
    from matplotlib.ticker import FuncFormatter

    axes.set_ylim(0, 1.05 * _scale(happened, expected) or 1.0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value * 1e6)))


def _title(history: History, end_s: float) -> str:
    words = [f"pull, method {history.method}"]
    if history.ended_s is not None:
        words.append(f"ended after {format_duration(history.ended_s)}")
    else:
        words.append("not ended")
    if history.predicted_s is not None:
        where = "dotted" if history.predicted_s <= end_s else "beyond the right edge"
        words.append(f"predicted {format_duration(history.predicted_s)} ({where})")
    return ", ".join(words)


def _draw_rates(axes: Axes, history: History, unit_s: float) -> None:
    rates = history.rates()
    order = sorted(rates, key=lambda hosts: -history.arrived_bytes[hosts][-1])
    layers = [(" → ".join(hosts), rates[hosts]) for hosts in order[:MOST_ROUTES]]
    colours = [*PALETTE[: len(layers)]]
    if others := [rates[hosts] for hosts in order[MOST_ROUTES:]]:
        layers.append((f"{len(others)} other routes", np.sum(others, axis=0)))
        colours.append(OTHERS)
    times = np.repeat(np.array(history.times_s) / unit_s, 2)[1:-1]
    base = np.zeros(len(times))
    for (name, rate), colour in zip(layers, colours, strict=True):
        top = base + np.repeat(rate, 2) * 8 / 1e6
        axes.fill_between(times, base, top, color=colour, linewidth=0, label=name)
        base = top
    happened, expected_most = float(base.max(initial=0.0)), 0.0
    if history.planned:
        instants = {t for each in history.planned for t in (each.start_s, each.finish_s)}
        steps = sorted({0.0, *instants})
        expected = [history.planned_rate(t) * 8 / 1e6 for t in steps]
        at = [t / unit_s for t in steps]
        expected_most = max(expected)
        label = "plan, all routes"
        if expected_most > _scale(happened, expected_most):
            label += f", up to {format_rate(expected_most * 1e6 / 8)}"
        axes.step(at, expected, where="post", label=label, **PLAN)
    axes.set_ylabel("rate")
    _set_scale(axes, happened, expected_most, lambda bit_per_s: format_rate(bit_per_s / 8))


def _draw_bytes(axes: Axes, history: History, unit_s: float) -> None:
    times = np.array(history.times_s)
    came = np.sum([np.array(n) for n in history.arrived_bytes.values()], axis=0)
    label, planned_bytes = "came", sum(each.n_bytes for each in history.planned)
    if history.refetched:
        refetched = (f"{format_bytes(n)} {why}" for why, n in history.refetched.items())
        label = f"received, of that twice: {', '.join(refetched)}"
    axes.plot(times / unit_s, came / 1e6, color=PALETTE[0], linewidth=2, label=label)
    if history.planned:
        instants = np.array(
            sorted({t for each in history.planned for t in (each.start_s, each.finish_s)})
        )
        expected = np.zeros(len(instants))
        for each in history.planned:
            part = (instants - each.start_s) / (each.finish_s - each.start_s)
            expected += each.n_bytes * np.clip(part, 0.0, 1.0)
        axes.plot(instants / unit_s, expected / 1e6, label="plan", **PLAN)
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    axes.set_ylabel("come in all")
    _set_scale(axes, float(came[-1]) / 1e6, planned_bytes / 1e6, format_bytes)


def _draw_troubles(axes: Axes, history: History, unit_s: float) -> None:
    markers = "vxD*s"
    for i, what in enumerate(dict.fromkeys(what for _, what in history.troubles)):
        at = [time_s / unit_s for time_s, each in history.troubles if each == what]
        axes.plot(
            at,
            [0.97] * len(at),
            markers[i % len(markers)],
            color=FAINT,
            transform=axes.get_xaxis_transform(),
            label=what,
        )
