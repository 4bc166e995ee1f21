"""A schedule as a picture: hosts by time, what each sends, receives and stores.

Uses matplotlib's objects, never pyplot and its global state: threads may draw at the same time.
"""

from __future__ import annotations

import io
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from datacollect.documents import write_atomically
from datacollect.errors import ProblemError
from datacollect.schedule.picture import (
    MAX_COLOURS,
    headlines,
    lay_out,
    peak_bytes_per_s,
    picture_of,
    role_of,
    shortened,
)
from datacollect.units import format_bytes, format_duration, format_rate

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from datacollect.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.picture import Band, Picture, Place
    from datacollect.schedule.schedule import Schedule

Colour: TypeAlias = "str | tuple[float, float, float]"

SUFFIXES = (".png", ".svg", ".pdf")

# Told apart with colour-vision deficiency too: Okabe and Ito, Color Universal Design, 2002,
# without black, and three of P. Tol's "muted" scheme, Colour Schemes, SRON/EPS/TN/09-002, 2021.
PALETTE: tuple[Colour, ...] = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#332288",
    "#999933",
    "#882255",
)
OTHERS, STORED, GROUND = "#BBBBBB", "#D8D8D8", "#F5F5F5"
INK, FAINT = "#222222", "#5A5A5A"

# Lengths are in inches; matplotlib's text sizes are in points, 1/72 inch.
DOTS_PER_INCH = 100
WIDTH, HEAD, RIGHT = 12.0, 0.72, 1.85
MARGIN = 0.15
LABEL_POINTS = 7.5
CHARACTER = 0.6 * LABEL_POINTS / 72  # about what a character is wide


def plot_schedule(problem: Problem, schedule: Schedule) -> Figure:
    """Draw a schedule: hosts by time.

    Each host has a band. Above its line stands what it sends, below what it receives, as areas
    whose colours tell whose data they are; others' data that it stores follow below. Sources are
    at the top, the destination at the bottom. A dashed line marks the lower bound, a solid one
    the makespan. Of many hosts the 25 busiest are shown.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.

    Returns
    -------
    matplotlib.figure.Figure
        1200 pixels wide, as high as the bands need.

    Raises
    ------
    ProblemError
        The schedule does not belong to the problem.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> figure = plot_schedule(problem, dc.direct(problem))
    >>> [text.get_text() for text in figure.axes[0].texts if "bound" in text.get_text()]
    ['lower bound 2 s']
    """
    from matplotlib.figure import Figure

    picture = picture_of(problem, schedule)
    figure = Figure(dpi=DOTS_PER_INCH, facecolor="white")
    if picture.bands:
        _draw(figure, picture, problem, schedule)
    else:
        figure.set_size_inches(WIDTH, HEAD)
        _write_head(figure, *headlines(picture, problem, schedule))
    return figure


def save_plot(problem: Problem, schedule: Schedule, path: str | PathLike[str]) -> None:
    """Draw a schedule into a file: PNG, SVG or PDF by its suffix.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.
    path : path-like
        Its name ends in ``.png``, ``.svg`` or ``.pdf``; what is there is overwritten.

    Raises
    ------
    ProblemError
        Another suffix, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_plot(problem, dc.direct(problem), Path(folder, "plan.svg"))
    ...     Path(folder, "plan.svg").read_text()[:5]
    '<?xml'
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ProblemError(
            f"{path}: a picture's name must end in {', '.join(SUFFIXES)}, got {path.suffix!r}"
        )
    figure = plot_schedule(problem, schedule)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DOTS_PER_INCH, format=path.suffix[1:].lower())
    write_atomically(path, picture.getvalue())


# Drawing ------------------------------------------------------------------------------------


def time_unit(end_s: float) -> tuple[float, str]:
    """Return the unit in which an axis up to an instant reads best: its seconds, its name.

    >>> time_unit(12_000.0), time_unit(20_000.0)
    ((60.0, 'min'), (3600.0, 'h'))
    """
    for unit_s, unit in ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if end_s >= 5 * unit_s:
            return unit_s, unit
    return (1.0, "s") if end_s >= 0.5 else (1e-3, "ms")


def _colours(picture: Picture) -> list[Colour]:
    n = len(picture.sources)
    if picture.n_sources <= MAX_COLOURS:
        return list(PALETTE[:n])
    from matplotlib import colormaps

    # In the bands' order: dark colours are those of sources near the top.
    map_ = colormaps["viridis"](np.linspace(0.0, 0.97, n)).tolist()
    colours: list[Colour] = [(red, green, blue) for red, green, blue, _ in map_]
    return [*colours[: n - 1], OTHERS] if picture.n_sources > n else colours


def _draw(figure: Figure, picture: Picture, problem: Problem, schedule: Schedule) -> None:
    places, one_scale = lay_out(picture)
    names = [shortened(band.name, 34) for band in picture.bands]
    roles = [role_of(problem, schedule, band.name) for band in picture.bands]
    if len(picture.bands) > 12:
        roles[:-1] = [""] * (len(roles) - 1)
    longest = max(len(text) for text in names + roles)
    left = max(1.0, 0.35 + longest * 0.092)
    foot = 0.88 + 0.24 * _legend_shape(picture)[1]
    title, lines = headlines(picture, problem, schedule)
    height = HEAD + 0.2 * len(lines) + places[-1].bottom + foot
    figure.set_size_inches(WIDTH, height)
    width = WIDTH - left - RIGHT
    axes = figure.add_axes(
        (left / WIDTH, foot / height, width / WIDTH, places[-1].bottom / height), facecolor="none"
    )
    unit_s, unit = time_unit(schedule.makespan_s)
    axes.set_xlim(0, schedule.makespan_s / unit_s)
    axes.set_ylim(places[-1].bottom, 0)
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(position=("outward", 6), color=INK)
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_xlabel(f"time ({unit})", color=INK, fontsize=10)
    colours = _colours(picture)
    for band, place, name, role in zip(picture.bands, places, names, roles, strict=True):
        _draw_band(axes, picture, band, place, colours, unit_s, width)
        _label_band(axes, band, place, name, role)
    _draw_instants(axes, schedule, unit_s)
    _write_head(figure, title, lines)
    _write_foot(figure, picture, colours, one_scale=one_scale)


def _draw_band(
    axes: Axes,
    picture: Picture,
    band: Band,
    place: Place,
    colours: list[Colour],
    unit_s: float,
    width: float,
) -> None:
    edges = picture.edges_s / unit_s
    for areas, sign, what in ((band.sends, -1.0, "sends"), (band.receives, 1.0, "receives")):
        base = np.full(len(edges) - 1, place.line)
        most = place.line + sign * peak_bytes_per_s(areas) / place.bytes_per_s_per_inch
        axes.axhspan(most, place.line, color=GROUND, zorder=0, lw=0)
        for area, next_area in zip_longest(areas, areas[1:]):
            level = base + sign * area.bytes_per_s / place.bytes_per_s_per_inch
            colour = colours[area.colour]
            patch = axes.stairs(level, edges, baseline=base, fill=True, color=colour, lw=0)
            source = picture.sources[area.colour]
            patch.set_gid(f"{band.name} {what} {source} {area.peer or ''}".rstrip())
            if next_area is not None and area.colour == next_area.colour:
                rim = np.where(area.bytes_per_s > 0, level, np.nan)
                axes.stairs(rim, edges, baseline=None, color="white", lw=0.7, zorder=2)
            text = _area_text(band.name, source, area.peer, sends=sign < 0)
            _label_area(axes, edges, base, level, text, colour, width)
            base = level
    for colour, line_width in (("white", 2.4), (INK, 0.8)):
        axes.plot(edges[[0, -1]], [place.line] * 2, color=colour, lw=line_width, zorder=3)
    if band.shows_storage:
        room = 0.8 * (place.bottom - place.low)
        level = place.bottom - room * band.stored_bytes / band.stored_bytes.max()
        when = band.stored_s / unit_s
        axes.fill_between(when, level, place.bottom, color=STORED, lw=0, zorder=1)
        axes.plot(when, level, color=INK, lw=1.0, zorder=4, gid=f"{band.name} stores")


def _area_text(host: str, source: str, peer: str | None, *, sends: bool) -> str:
    whose, other = shortened(source, 24), shortened(peer or "", 24)
    if not sends:
        return whose if peer in (None, source) else f"{whose} via {other}"
    if source == host:
        return f"→ {other}" if other else ""
    return f"{whose} → {other}" if other else whose


def _label_area(
    axes: Axes,
    edges: FloatArray,
    base: FloatArray,
    level: FloatArray,
    text: str,
    colour: Colour,
    width: float,
) -> None:
    """Write into an area, at the leftmost of the places where it is highest, if the text fits."""
    from matplotlib.colors import to_rgb

    n_columns = 400
    n_needed = int(np.ceil((len(text) + 2) * CHARACTER / width * n_columns))
    if not text or n_needed > n_columns:
        return
    at = (np.arange(n_columns) + 0.5) * edges[-1] / n_columns
    column = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(base) - 1)
    top, low = np.minimum(base, level)[column], np.maximum(base, level)[column]
    windows = np.lib.stride_tricks.sliding_window_view
    top, low = windows(top, n_needed).max(axis=1), windows(low, n_needed).min(axis=1)
    room = np.round(low - top, 6)
    best = int(np.argmax(room))
    if room[best] < 1.1 * LABEL_POINTS / 72:
        return
    red, green, blue = to_rgb(colour)
    is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
    axes.text(
        (best + CHARACTER / width * n_columns) * edges[-1] / n_columns,
        (top[best] + low[best]) / 2,
        text,
        size=LABEL_POINTS,
        color="white" if is_dark else INK,
        va="center_baseline",
        parse_math=False,
        zorder=4,
    )


def _label_band(axes: Axes, band: Band, place: Place, name: str, role: str) -> None:
    _write(axes, 0, place.middle, name, (-10, 7 if role else 0), ha="right", size=10, weight="bold")
    if role:
        _write(axes, 0, place.middle, role, (-10, -7), ha="right", size=8.5, color=FAINT)
    lines = []
    if band.sends:
        text = f"sends ≤ {format_rate(peak_bytes_per_s(band.sends))}"
        lines.append(((place.top + place.line) / 2, text))
    if band.receives:
        text = f"receives ≤ {format_rate(peak_bytes_per_s(band.receives))}"
        lines.append(((place.line + place.low) / 2, text))
    if len(band.stored_bytes):
        text = f"stores ≤ {format_bytes(float(band.stored_bytes.max()))}"
        lines.append(((place.low + place.bottom) / 2, text))
    if not band.shows_storage:
        lines = [(place.middle, "\n".join(text for _, text in lines))]
    for y, text in lines:
        _write(axes, 1, y, text, (8, 0), size=8.5, color=FAINT)


def _draw_instants(axes: Axes, schedule: Schedule, unit_s: float) -> None:
    bound_s, end_s = schedule.lower_bound_s, schedule.makespan_s
    axes.axvline(end_s / unit_s, color=INK, lw=1.4, zorder=5, gid="makespan", clip_on=False)
    axes.axvline(bound_s / unit_s, color="white", lw=2.6, alpha=0.6, zorder=5)
    axes.axvline(bound_s / unit_s, color=INK, lw=1.2, ls=(0, (4, 3)), zorder=5, gid="lower bound")
    bound_at_left = bound_s < 0.25 * end_s
    for when_s, text, to_the_right in (
        (bound_s, "lower bound", bound_at_left),
        (end_s, "makespan", True),
    ):
        axes.annotate(
            f"{text} {format_duration(when_s)}",
            (when_s / unit_s, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3 if to_the_right else -3, 5),
            textcoords="offset points",
            ha="left" if to_the_right else "right",
            size=9,
            color=INK,
            annotation_clip=False,
        )


def _write_head(figure: Figure, title: str, lines: list[str]) -> None:
    height = figure.get_size_inches()[1]
    look: dict[str, Any] = {"va": "center", "parse_math": False}
    figure.text(MARGIN / WIDTH, 1 - 0.27 / height, title, size=14, weight="bold", color=INK, **look)
    for i, text in enumerate(lines):
        y = 1 - (0.53 + 0.2 * i) / height
        figure.text(MARGIN / WIDTH, y, text, size=9.5, color=FAINT, **look)


def _legend_shape(picture: Picture) -> tuple[int, int]:
    """Columns and rows; no rows where the sources are too many for a legend."""
    if picture.n_sources > MAX_COLOURS:
        return 1, 0
    longest = max(len(shortened(name, 34)) for name in picture.sources)
    columns = int((WIDTH - 1.3) / (0.5 + 0.085 * longest))
    return columns, -(-len(picture.sources) // columns)


def _write_foot(
    figure: Figure, picture: Picture, colours: list[Colour], *, one_scale: bool
) -> None:
    from matplotlib.patches import Patch

    height = figure.get_size_inches()[1]
    note = "Above a host’s line: what it sends; below: what it receives. Height: rate, "
    note += "on one scale for all hosts." if one_scale else "each host on its own scale."
    if picture.mean_over_s is not None:
        note += f" Rates are means over {format_duration(picture.mean_over_s)}."
    columns, rows = _legend_shape(picture)
    if not rows:
        note += " Colour: whose data, as in the sources’ own bands."
    figure.text(MARGIN / WIDTH, 0.16 / height, note, size=8.5, color=FAINT, va="center")
    if rows:
        legend = figure.legend(
            handles=[Patch(color=colour) for colour in colours],
            # The invisible space: matplotlib drops labels that begin with an underscore.
            labels=["\u200b" + shortened(name, 34) for name in picture.sources],
            loc="lower left",
            bbox_to_anchor=(0.9 / WIDTH, 0.32 / height),
            borderaxespad=0,
            borderpad=0,
            ncols=columns,
            fontsize=9,
            labelcolor=INK,
            frameon=False,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        top = (0.16 + 0.24 * rows) / height
        figure.text(MARGIN / WIDTH, top, "Data of", size=9, color=INK, va="center")


def _write(
    axes: Axes, x: float, y: float, text: str, shift: tuple[float, float], **look: Any
) -> None:
    """Write beside the axes: x as a fraction of their width, y in data, shift in points."""
    axes.annotate(
        text,
        (x, y),
        xycoords=("axes fraction", "data"),
        xytext=shift,
        textcoords="offset points",
        va="center",
        parse_math=False,
        annotation_clip=False,
        **{"color": INK, **look},
    )
