"""The bands of a picture: what each host sends, receives and stores, drawn with matplotlib."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.files.units import format_bytes, format_rate
from datacollect.pictures.colours import look_of
from datacollect.pictures.layout import peak_bytes_per_s
from datacollect.pictures.look import CHARACTER, FAINT, GROUND, INK, LABEL_POINTS, STORED
from datacollect.pictures.writing import shortened, width_of, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import StepPatch

    from datacollect.numbers.arrays import FloatArray
    from datacollect.pictures.colours import Look
    from datacollect.pictures.layout import BandPlace
    from datacollect.pictures.picture import Band, Picture


def draw_band(
    axes: Axes, picture: Picture, band: Band, place: BandPlace, unit_s: float, width: float
) -> None:
    """Draw one host's areas and its storage, and write into areas what they are."""
    edges = (picture.edges_s - picture.begin_s) / unit_s
    for areas, sign, what in ((band.sends, -1.0, "sends"), (band.receives, 1.0, "receives")):
        base = np.full(len(edges) - 1, place.line)
        most = place.line + sign * peak_bytes_per_s(areas) / place.bytes_per_s_per_inch
        axes.axhspan(most, place.line, color=GROUND, zorder=0, lw=0)
        for area, next_area in zip_longest(areas, areas[1:]):
            level = base + sign * area.bytes_per_s / place.bytes_per_s_per_inch
            look = look_of(area.series, picture.n_sources)
            ink = {"facecolor": look.colour, "edgecolor": look.ink, "hatch": look.hatch or None}
            patch = _steps(level, edges, base, lw=0, **ink)
            axes.add_artist(patch)
            source = picture.sources[area.series]
            patch.set_gid(f"{band.name} {what} {source} {area.peer or ''}".rstrip())
            if next_area is not None:
                # Neighbours are apart, whatever their colours.
                rim = np.where(area.bytes_per_s > 0, level, np.nan)
                line = _steps(rim, edges, None, fill=False, color="white", lw=0.7, zorder=2)
                axes.add_artist(line)
            text = _area_text(band.name, source, area.peer, sends=sign < 0)
            _label_area(axes, edges, base, level, text, look, width)
            base = level
    for colour, line_width in (("white", 2.4), (INK, 0.8)):
        axes.plot(edges[[0, -1]], [place.line] * 2, color=colour, lw=line_width, zorder=3)
    if band.shows_storage:
        room = 0.8 * (place.bottom - place.low)
        level = place.bottom - room * band.stored_bytes / band.stored_bytes.max()
        when = (band.stored_s - picture.begin_s) / unit_s
        axes.fill_between(when, level, place.bottom, color=STORED, lw=0, zorder=1)
        axes.plot(when, level, color=INK, lw=1.0, zorder=4, gid=f"{band.name} stores")


def _steps(level: FloatArray, edges: FloatArray, base: FloatArray | None, **look: Any) -> StepPatch:
    """Make an area, or its rim. Not by axes.stairs, which looks for the limits of all of them."""
    from matplotlib.patches import StepPatch

    options: dict[str, Any] = {"baseline": base, **look}
    return StepPatch(level, edges, **options)


def _area_text(host: str, source: str, peer: str | None, *, sends: bool) -> str:
    whose, other = (shortened(written(name), 24) for name in (source, peer or ""))
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
    look: Look,
    width: float,
) -> None:
    """Write into an area, at the leftmost of the places where it is highest, if the text fits."""
    n_columns = 400
    n_needed = int(np.ceil((width_of(text) + 2) * CHARACTER / width * n_columns))
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
    label = axes.text(
        (best + CHARACTER / width * n_columns) * edges[-1] / n_columns,
        (top[best] + low[best]) / 2,
        text,
        size=LABEL_POINTS,
        color=look.ink,
        va="center_baseline",
        parse_math=False,
        zorder=4,
    )
    if look.hatch:
        from matplotlib.patheffects import withStroke

        label.set_path_effects([withStroke(linewidth=3, foreground=look.colour)])


def label_band(axes: Axes, band: Band, place: BandPlace, name: str, role: str) -> None:
    """Write a host's name and role to the left of its band, its highest rates to the right."""
    at = (0, place.middle)
    write_beside(axes, *at, name, (-10, 7 if role else 0), ha="right", size=10, weight="bold")
    if role:
        write_beside(axes, *at, role, (-10, -7), ha="right", size=8.5, color=FAINT)
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
        write_beside(axes, 1, y, text, (8, 0), size=8.5, color=FAINT)


def write_beside(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    shift: tuple[float, float],
    y_in: str = "data",
    **look: Any,
) -> None:
    """Write beside the axes: x as a fraction of their width, y in data, shift in points."""
    axes.annotate(
        text,
        (x, y),
        xycoords=("axes fraction", y_in),
        xytext=shift,
        textcoords="offset points",
        va="center",
        parse_math=False,
        annotation_clip=False,
        **{"color": INK, **look},
    )
