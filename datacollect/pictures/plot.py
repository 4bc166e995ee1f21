"""A schedule as a picture: hosts by time, what each sends, receives and stores.

Uses matplotlib's objects, never pyplot and its global state: threads may draw at the same time.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.documents import write_atomically
from datacollect.files.units import format_duration
from datacollect.pictures.axis import clock_ticks, time_unit
from datacollect.pictures.bands import draw_band, label_band, write_beside
from datacollect.pictures.colours import look_of
from datacollect.pictures.layout import lay_out
from datacollect.pictures.look import FAINT, INK, MARGIN, STORED, WIDTH
from datacollect.pictures.marks import MOST_BINDS, MOST_PERIODS, marks_of
from datacollect.pictures.picture import picture_of
from datacollect.pictures.words import ORDER, headlines, role_of
from datacollect.pictures.writing import families, inches_of, shortened, width_of, written

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from datacollect.files.clock import Clock
    from datacollect.pictures.layout import BandPlace
    from datacollect.pictures.marks import Marks
    from datacollect.pictures.picture import Picture
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"
SUFFIXES = (*PICTURES, PAGE)

# Lengths are in inches.
DOTS_PER_INCH = 100
HEAD, RIGHT, ROW = 0.72, 1.85, 0.27


def plot_schedule(problem: Problem, schedule: Schedule) -> Figure:
    """Draw a schedule: hosts by time.

    Each host has a band. Above its line stands what it sends, below what it receives, as areas
    whose colours and hatching tell whose data they are; others' data that it stores follow below,
    in grey. Sources are at the top, the destination at the bottom. A dashed line marks the lower
    bound, a solid one the makespan, dotted ones where a period of the forecast begins, triangles
    where data are released. Bars at the top say what binds, and when. With a `start` the axis shows
    clock times too. Of many hosts the 25 busiest are shown.

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
    from matplotlib.text import Text

    picture = picture_of(problem, schedule)
    figure = Figure(dpi=DOTS_PER_INCH, facecolor="white")
    if picture.bands:
        _draw(figure, picture, problem, schedule)
    else:
        figure.set_size_inches(WIDTH, HEAD)
        _write_head(figure, *headlines(picture, problem, schedule))
    for text in figure.findobj(Text):
        _choose_fonts(text)
    return figure


def save_plot(problem: Problem, schedule: Schedule, path: str | PathLike[str]) -> None:
    """Draw a schedule into a file: a PNG, SVG or PDF, or an HTML page, by its suffix.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
        Of this problem.
    path : path-like
        Ends in ``.png``, ``.svg`` or ``.pdf`` for what `plot_schedule` draws, in ``.html`` for the
        page of `plot_page`; what is there is overwritten.

    Raises
    ------
    ProblemError
        Another suffix, the schedule does not belong to the problem, or the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plan.html")
    ...     save_plot(problem, dc.direct(problem), path)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ProblemError(
            f"{path}: a picture's name must end in {', '.join(SUFFIXES)}, got {path.suffix!r}"
        )
    if suffix == PAGE:
        from datacollect.pictures.page import plot_page

        write_atomically(path, plot_page(problem, schedule).encode())
        return
    figure = plot_schedule(problem, schedule)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DOTS_PER_INCH, format=suffix[1:])
    write_atomically(path, picture.getvalue())


def _draw(figure: Figure, picture: Picture, problem: Problem, schedule: Schedule) -> None:
    marks = marks_of(problem, schedule)
    strip = ROW * min(len(marks.binds), MOST_BINDS)
    places, one_scale = lay_out(picture, strip + 0.12 if strip else 0.0)
    names = [shortened(written(band.name), 34) for band in picture.bands]
    roles = [written(role_of(problem, schedule, band.name)) for band in picture.bands]
    if len(picture.bands) > 12:
        roles[:-1] = [""] * (len(roles) - 1)
    left = max(1.0, 0.35 + max(map(inches_of, names + roles)))
    ticks = clock_ticks(problem.clock, picture.end_s, picture.begin_s) if problem.clock else []
    title, lines = headlines(picture, problem, schedule)
    foot = _Foot(picture, marks, one_scale=one_scale)
    below = foot.height + (0.72 if ticks else 0.2)
    height = HEAD + 0.2 * len(lines) + places[-1].bottom + below
    figure.set_size_inches(WIDTH, height)
    width = WIDTH - left - RIGHT
    axes = figure.add_axes(
        (left / WIDTH, below / height, width / WIDTH, places[-1].bottom / height), facecolor="none"
    )
    unit_s = _draw_axis(axes, picture, places[-1].bottom)
    if ticks and problem.clock:
        _draw_clock(axes, picture, problem.clock, ticks)
    _draw_periods(axes, picture, marks, unit_s)
    _draw_binds(axes, picture, marks, unit_s)
    for band, place, name, role in zip(picture.bands, places, names, roles, strict=True):
        draw_band(axes, picture, band, place, unit_s, width)
        label_band(axes, band, place, name, role)
        if band.name in marks.releases_s:
            _draw_release(axes, place, (marks.releases_s[band.name] - picture.begin_s) / unit_s)
    _draw_instants(axes, picture, schedule, unit_s)
    _write_head(figure, title, lines)
    foot.write(figure)


def _choose_fonts(text: Any) -> None:
    fonts = families([text.get_text()])
    if len(fonts) > 1:
        # Few have bold letters too.
        text.set(fontfamily=fonts, fontweight="normal")


# Time ---------------------------------------------------------------------------------------


def _draw_axis(axes: Axes, picture: Picture, bottom: float) -> float:
    """Draw the axis of time; return the seconds of its unit."""
    span_s = picture.end_s - picture.begin_s
    unit_s, unit = time_unit(span_s)
    axes.set_xlim(0, span_s / unit_s)
    axes.set_ylim(bottom, 0)
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(position=("outward", 6), color=INK)
    axes.tick_params(colors=INK, labelsize=9)
    after = f" after {format_duration(picture.begin_s)}" if picture.begin_s else ""
    axes.set_xlabel(f"time ({unit}){after}", color=INK, fontsize=10)
    return unit_s


def _draw_clock(axes: Axes, picture: Picture, clock: Clock, ticks: list[Any]) -> None:
    """Write what clocks show below the axis."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    span_s = picture.end_s - picture.begin_s
    figure = axes.get_figure()
    assert figure is not None
    for at_s, time, day in ticks:
        text = "\n".join(part for part in (time, day) if part)
        axes.annotate(
            text,
            ((at_s - picture.begin_s) / span_s, 0),
            xycoords="axes fraction",
            xytext=(0, -48),
            textcoords="offset points",
            ha="center",
            va="top",
            size=8.5,
            color=FAINT,
            annotation_clip=False,
            gid="clock",
        )
    down = ScaledTranslation(0, -41 / 72, figure.dpi_scale_trans)
    axes.plot(
        [(at_s - picture.begin_s) / span_s for at_s, _, _ in ticks],
        [0] * len(ticks),
        ls="none",
        marker="|",
        ms=5,
        color=FAINT,
        clip_on=False,
        transform=blended_transform_factory(axes.transAxes, axes.transAxes) + down,
    )
    zone = getattr(clock.zone, "key", None) or clock.text(0.0)[-6:]
    write_beside(
        axes,
        0,
        0,
        f"clock, {zone}",
        (-28, -53),
        y_in="axes fraction",
        ha="right",
        size=8.5,
        color=FAINT,
    )


def _draw_periods(axes: Axes, picture: Picture, marks: Marks, unit_s: float) -> None:
    shown = [at_s for at_s in marks.periods_s if at_s > picture.begin_s]
    for at_s in shown if len(shown) <= MOST_PERIODS else ():
        when = (at_s - picture.begin_s) / unit_s
        axes.axvline(when, color=FAINT, lw=1.0, ls=(0, (1, 2)), zorder=2.5, gid="period")


def _draw_release(axes: Axes, place: BandPlace, when: float) -> None:
    axes.plot(
        [max(when, 0.0)],
        [place.line],
        marker=">",
        ms=8,
        mfc="white",
        mec=INK,
        mew=1.2,
        ls="none",
        zorder=6,
        clip_on=False,
        gid="release",
    )


def _draw_instants(axes: Axes, picture: Picture, schedule: Schedule, unit_s: float) -> None:
    bound_s, end_s = schedule.lower_bound_s, picture.end_s
    end, bound = ((at_s - picture.begin_s) / unit_s for at_s in (end_s, bound_s))
    axes.axvline(end, color=INK, lw=1.4, zorder=5, gid="makespan", clip_on=False)
    texts = [(end, f"makespan {format_duration(end_s)}", True)]
    if bound >= 0:
        axes.axvline(bound, color="white", lw=2.6, alpha=0.6, zorder=5)
        axes.axvline(bound, color=INK, lw=1.2, ls=(0, (4, 3)), zorder=5, gid="lower bound")
        texts.append((bound, f"lower bound {format_duration(bound_s)}", bound < 0.25 * end))
    for when, text, to_the_right in texts:
        axes.annotate(
            text,
            (when, 1),
            xycoords=("data", "axes fraction"),
            xytext=(3 if to_the_right else -3, 5),
            textcoords="offset points",
            ha="left" if to_the_right else "right",
            size=9,
            color=INK,
            annotation_clip=False,
        )


def _draw_binds(axes: Axes, picture: Picture, marks: Marks, unit_s: float) -> None:
    """Draw what binds: a row each, bars from when to when, the text above where they begin."""
    end = (picture.end_s - picture.begin_s) / unit_s
    for i, binding in enumerate(marks.binds[:MOST_BINDS]):
        y = ROW * (i + 1) - 0.06
        spans = [[(at_s - picture.begin_s) / unit_s for at_s in span] for span in binding.spans_s]
        for j, (begin, finish) in enumerate(spans):
            gid = f"binds {binding.text}" if j == 0 else None
            axes.plot(
                [max(begin, 0.0), finish], [y, y], color=INK, lw=3, solid_capstyle="butt", gid=gid
            )
        first = max(spans[0][0], 0.0)
        to_the_right = first < 0.5 * end
        axes.annotate(
            shortened(written(binding.text), 64),
            (first if to_the_right else spans[-1][1], y),
            xytext=(0, 8),
            textcoords="offset points",
            ha="left" if to_the_right else "right",
            va="center",
            size=8,
            color=INK,
            parse_math=False,
            annotation_clip=False,
        )
    if marks.binds:
        left_out = len(marks.binds) - MOST_BINDS
        write_beside(axes, 0, ROW / 2, "what binds", (-10, 0), ha="right", size=8.5, color=FAINT)
        if left_out > 0:
            write_beside(axes, 1, ROW / 2, f"and {left_out} more", (8, 0), size=8.5, color=FAINT)


# Words around the bands ---------------------------------------------------------------------


def _write_head(figure: Figure, title: str, lines: list[str]) -> None:
    height = figure.get_size_inches()[1]
    look: dict[str, Any] = {"va": "center", "parse_math": False}
    title = written(title)
    figure.text(MARGIN / WIDTH, 1 - 0.27 / height, title, size=14, weight="bold", color=INK, **look)
    for i, text in enumerate(map(written, lines)):
        y = 1 - (0.53 + 0.2 * i) / height
        figure.text(MARGIN / WIDTH, y, text, size=9.5, color=FAINT, **look)


class _Foot:
    """Texts below the axis: legends, and notes on how to read the picture."""

    def __init__(self, picture: Picture, marks: Marks, *, one_scale: bool) -> None:
        self.picture = picture
        # An invisible space: matplotlib drops labels that begin with an underscore.
        self.names = ["\u200b" + shortened(written(name), 34) for name in picture.sources]
        longest = max(map(width_of, self.names))
        self.columns = max(1, int((WIDTH - 1.3) / (0.5 + 0.085 * longest)))
        self.rows = -(-len(self.names) // self.columns)
        self.marks = self._marks(marks)
        self.notes = self._notes(marks, one_scale=one_scale)
        self.height = 0.68 + 0.24 * (self.rows + bool(self.marks)) + 0.18 * (len(self.notes) - 1)

    def write(self, figure: Figure) -> None:
        from matplotlib.patches import Patch

        width, height = figure.get_size_inches()
        for i, note in enumerate(reversed(self.notes)):
            y = (0.16 + 0.18 * i) / height
            figure.text(MARGIN / width, y, note, size=8.5, color=FAINT, va="center")
        y = 0.32 + 0.18 * (len(self.notes) - 1)
        if self.marks:
            handles, labels = zip(*self.marks, strict=True)
            self._legend(figure, y, handles, labels, columns=len(self.marks))
            figure.text(
                MARGIN / width, (y + 0.08) / height, "Marks", size=9, color=INK, va="center"
            )
            y += 0.24
        looks = [look_of(i, self.picture.n_sources) for i in range(len(self.names))]
        swatches = [
            Patch(facecolor=look.colour, hatch=2 * look.hatch, edgecolor=look.ink, lw=0)
            for look in looks
        ]
        self._legend(figure, y, swatches, self.names, columns=self.columns)
        top = (y - 0.16 + 0.24 * self.rows) / height
        figure.text(MARGIN / width, top, "Data of", size=9, color=INK, va="center")

    def _legend(self, figure: Figure, y: float, handles: Any, labels: Any, columns: int) -> None:
        from matplotlib.legend import Legend

        width, height = figure.get_size_inches()
        legend = Legend(
            figure,
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.9 / width, y / height),
            bbox_transform=figure.transFigure,
            borderaxespad=0,
            borderpad=0,
            ncols=columns,
            fontsize=9,
            labelcolor=INK,
            frameon=False,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        figure.add_artist(legend)

    def _marks(self, marks: Marks) -> list[tuple[Any, str]]:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        shown = {band.name for band in self.picture.bands}
        found: list[tuple[Any, str]] = []
        if marks.binds:
            found.append((Line2D([], [], color=INK, lw=3), "what binds"))
        if 0 < len(marks.periods_s) <= MOST_PERIODS:
            dotted = Line2D([], [], color=FAINT, lw=1, ls=(0, (1, 2)))
            found.append((dotted, "a period of the forecast begins"))
        if shown & marks.releases_s.keys():
            triangle = Line2D([], [], marker=">", ms=8, mfc="white", mec=INK, mew=1.2, ls="none")
            found.append((triangle, "data are released"))
        if any(band.shows_storage for band in self.picture.bands):
            found.append((Patch(facecolor=STORED, edgecolor=INK, lw=1), "others’ data stored"))
        return found

    def _notes(self, marks: Marks, *, one_scale: bool) -> list[str]:
        note = "Above a host’s line: what it sends; below: what it receives. Height: rate, "
        note += "on one scale for all hosts." if one_scale else "each host on its own scale."
        if self.picture.mean_over_s is not None:
            note += f" Rates are means over {format_duration(self.picture.mean_over_s)}."
        more = [ORDER]
        if len(marks.periods_s) > MOST_PERIODS:
            more.append(f"The forecast has {len(marks.periods_s) + 1} periods, too many to mark.")
        if marks.binds_note:
            more.append(marks.binds_note)
        return [note, " ".join(more)]
