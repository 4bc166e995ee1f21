"""A map of hosts: routes of a plan, or links of a problem, as arrows as wide as their rate.

Hosts stand where they say, else in rings around the destination (`datacollect.pictures.graph`).
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.documents import write_atomically
from datacollect.files.units import counted, format_bytes, format_duration, format_rate
from datacollect.pictures.colours import OTHERS, look_of
from datacollect.pictures.graph import place_hosts
from datacollect.pictures.labels import LETTER, Label, label_beside
from datacollect.pictures.look import FAINT, INK
from datacollect.pictures.writing import families, shortened, width_of, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule

SUFFIXES = (".png", ".svg", ".pdf")
# Inches: read at the width of a telephone, too.
WIDTH, SIDE, TOP, LINE = 6.4, 0.95, 1.45, 0.26
TALLEST, FLATTEST = 3.3, 1.5
HOST, WIDEST, THINNEST = 0.1, 0.17, 0.02
DOTS_PER_INCH = 150
# Routes have colours of their own where there are no more; else the relays that they pass have.
MOST_ROUTES = 8
# Of more hosts the drawing is taller, names are smaller and stand where there is room, and hosts of
# neighbouring towns are drawn apart: so many inches, in so many steps.
FEW_HOSTS, TALLER, APART, STEPS = 8, 5.0, 0.5, 200
SMALL, LARGE = 8, 11
# Of more arrows the rates, of more hosts the names, would lie on each other.
MOST_RATES, MOST_NAMES = 14, 40
# Letters of a name that has room beside a host at the edge.
NARROW = 8
# Where along an arrow its rate may stand besides.
PARTS = (0.5, 0.35, 0.65, 0.25, 0.75)


class Arrow(NamedTuple):
    """Bytes that move from one host to another.

    Attributes
    ----------
    tail, head : int
        Hosts, by their numbers in the problem.
    bytes_per_s : float
        Mean rate while anything moves; of a problem's link, its bandwidth.
    series : int
        Of which route, or of which routes over the same relays, it is a part.
    """

    tail: int
    head: int
    bytes_per_s: float
    series: int


# An arrow, from where to where it lies, and how wide it is.
Body: TypeAlias = "tuple[Arrow, FloatArray, FloatArray, float]"


def plot_map(problem: Problem, schedule: Schedule | None = None) -> Figure:
    r"""Draw who sends to whom: arrows that are as wide as their rate.

    With a schedule, its routes: each has a colour; of more than eight, those over the same relays
    have one, and those that carry least are grey together. Without one, the problem's links by
    their bandwidths, of a forecast by the highest. Rates that have no room are left out.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule, optional
        Of this problem.

    Returns
    -------
    matplotlib.figure.Figure
        A map, where at least two hosts say where they stand (`Host.latitude`, `Host.longitude`);
        else hosts in rings around the destination.

    Raises
    ------
    ProblemError
        The schedule names hosts that the problem has not.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> figure = plot_map(problem, dc.direct(problem))
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['40 bit/s', 'D', 'S\n10 B']
    """
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    arrows = _of_links(problem) if schedule is None else _of_plan(problem, schedule)
    shown = _hosts(problem, arrows)
    number = {host: i for i, host in enumerate(shown)}
    flows = [(number[arrow.tail], number[arrow.head]) for arrow in arrows]
    drawing = place_hosts(problem, shown, flows)
    legend = [] if schedule is None else _legend(schedule)
    wide, tall = _room(drawing.aspect, len(shown))
    height = TOP + tall + 0.75 + LINE * len(legend) + 0.35
    figure = Figure(figsize=(WIDTH, height), dpi=DOTS_PER_INCH, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), facecolor="none")
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)  # inches below the top
    axes.set_axis_off()
    at = drawing.at * (wide, tall) + ((WIDTH - wide) / 2, TOP)
    if FEW_HOSTS < len(shown) <= MOST_NAMES:
        at = _apart(at, np.array([0.2, TOP]), np.array([WIDTH - 0.2, TOP + tall]))
    bodies = _draw_arrows(axes, arrows, at, number)
    for i, host in enumerate(shown):
        _draw_marker(axes, problem, host, at[i])
    if len(shown) <= FEW_HOSTS:
        for i, host in enumerate(shown):
            _draw_name(axes, problem, host, at, i, arrows, number)
    else:
        _draw_names(axes, problem, shown if len(shown) <= MOST_NAMES else shown[:1], at, bodies)
    _write(figure, problem, schedule, legend)
    for text in figure.findobj(Text):
        fonts = families([text.get_text()])
        if len(fonts) > 1:
            text.set(fontfamily=fonts, fontweight="normal")
    return figure


def save_map(problem: Problem, schedule: Schedule | None, path: str | PathLike[str]) -> None:
    """Draw a map into a file: a PNG, SVG or PDF by its suffix; what is there is overwritten.

    Raises
    ------
    ProblemError
        Another suffix, the schedule is of another problem, or the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ProblemError(
            f"{path}: a map's name must end in {', '.join(SUFFIXES)}, got {path.suffix!r}"
        )
    picture = io.BytesIO()
    figure = plot_map(problem, schedule)
    figure.savefig(picture, dpi=DOTS_PER_INCH, format=suffix[1:])
    write_atomically(path, picture.getvalue())


# What is drawn ----------------------------------------------------------------------------------


def _colour(series: int) -> str:
    """Return the colour of routes; grey of all others, which have none of their own.

    >>> _colour(0), _colour(MOST_ROUTES) == _colour(99) == OTHERS
    ('#0072B2', True)
    """
    return look_of(series, MOST_ROUTES).colour if series < MOST_ROUTES else OTHERS


def _of_links(problem: Problem) -> list[Arrow]:
    rate = problem.bandwidth_bytes_per_s.max(axis=0).tolist()
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), rate, strict=True)
    return [Arrow(tail, head, each, 0) for tail, head, each in ends if each > 0]


def _of_plan(problem: Problem, schedule: Schedule) -> list[Arrow]:
    """Return an arrow for each hop and route, or for each hop and source."""
    index = problem.host_index
    if unknown := [name for route in schedule.routes for name in route.hosts if name not in index]:
        raise ProblemError(
            f"the schedule names the host {unknown[0]!r}, which the problem does not have; draw "
            "the schedule with the problem that it was made for"
        )
    columns = schedule.columns
    series_of, _ = _series(schedule)
    rates: dict[tuple[int, int, int], float] = {}
    for number, route in enumerate(schedule.routes):
        for hop in range(route.n_hops):
            of_hop = (columns.route == number) & (columns.hop == hop)
            moving_s = float((columns.finish_s - columns.start_s)[of_hop].sum())
            rate = float(columns.n_bytes[of_hop].sum()) / moving_s if moving_s > 0 else 0.0
            key = index[route.hosts[hop]], index[route.hosts[hop + 1]], series_of[number]
            rates[key] = rates.get(key, 0.0) + rate
    return [Arrow(tail, head, rate, series) for (tail, head, series), rate in rates.items()]


def _series(schedule: Schedule) -> tuple[list[int], list[str]]:
    """Return which colour each route has, and what each colour stands for."""
    columns = schedule.columns
    first = columns.hop == 0
    moved = np.bincount(columns.route[first], columns.n_bytes[first], schedule.n_routes).tolist()
    if schedule.n_routes <= MOST_ROUTES:
        named = zip(schedule.routes, moved, strict=True)
        texts = [f"{' → '.join(route.hosts)}: {format_bytes(n_bytes)}" for route, n_bytes in named]
        return list(range(schedule.n_routes)), texts
    over: dict[tuple[str, ...], float] = {}
    for route, n_bytes in zip(schedule.routes, moved, strict=True):
        over[route.hosts[1:-1]] = over.get(route.hosts[1:-1], 0.0) + n_bytes
    ranked = sorted(over, key=lambda relays: (bool(relays), -over[relays]))
    number = {relays: min(i, MOST_ROUTES) for i, relays in enumerate(ranked)}
    texts = [
        f"{f'over {name_list(relays)}' if relays else 'directly'}: {format_bytes(over[relays])}"
        for relays in ranked[:MOST_ROUTES]
    ]
    if len(ranked) > MOST_ROUTES:
        rest = format_bytes(sum(over[relays] for relays in ranked[MOST_ROUTES:]))
        texts.append(f"over {counted(len(ranked) - MOST_ROUTES, 'other way')}: {rest}")
    return [number[route.hosts[1:-1]] for route in schedule.routes], texts


def name_list(names: Sequence[str]) -> str:
    """Write the relays of a route.

    >>> name_list(("paris",)), name_list(("paris", "lyon"))
    ('paris', 'paris and lyon')
    """
    return " and ".join(names)


def _sources(problem: Problem) -> list[int]:
    return [problem.host_index[name] for name in problem.sources]


def _hosts(problem: Problem, arrows: Sequence[Arrow]) -> list[int]:
    """Return the hosts that are shown, the destination first."""
    named = {host for arrow in arrows for host in arrow[:2]} | {*_sources(problem)}
    end = problem.destination_index
    return [end, *sorted(named - {end})]


def _room(aspect: float | None, n_hosts: int) -> tuple[float, float]:
    """Return how wide and tall the drawing of hosts is."""
    wide = WIDTH - 2 * SIDE
    tallest = TALLEST if n_hosts <= FEW_HOSTS else TALLER
    if aspect is None:
        return min(wide, tallest), tallest
    tall = min(max(wide / aspect, FLATTEST), tallest)
    return min(wide, tall * aspect), tall


def _apart(at: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Move hosts apart that would lie on each other, within the picture."""
    at = at.copy()
    # Hosts of one place leave it on all sides.
    angles = 2.4 * np.arange(len(at))
    at += 1e-3 * np.column_stack([np.cos(angles), np.sin(angles)])
    for _ in range(STEPS):
        between = at[:, None] - at[None]
        distance = np.hypot(between[..., 0], between[..., 1])
        np.fill_diagonal(distance, np.inf)
        push = np.clip(APART - distance, 0.0, None) / 2 / distance
        if not push.any():
            break
        at = np.clip(at + 0.5 * (push[..., None] * between).sum(axis=1), low, high)
    return at


def _draw_arrows(
    axes: Axes, arrows: Sequence[Arrow], at: np.ndarray, number: dict[int, int]
) -> list[Body]:
    """Draw arrows; those between the same two hosts lie side by side. Return where they lie."""
    from matplotlib.patches import FancyArrow

    most = max((arrow.bytes_per_s for arrow in arrows), default=1.0)
    width = {arrow: max(WIDEST * arrow.bytes_per_s / most, THINNEST) for arrow in arrows}
    beside: dict[tuple[int, int], list[Arrow]] = {}
    for arrow in sorted(arrows, key=lambda each: (each.series, each.tail, each.head)):
        beside.setdefault((min(arrow[:2]), max(arrow[:2])), []).append(arrow)
    rates: list[tuple[Arrow, list[Label]]] = []
    bodies: list[Body] = []
    for (low, high), group in beside.items():
        along = at[number[high]] - at[number[low]]
        length = float(np.hypot(*along))
        if length < 2.5 * HOST:
            continue  # hosts of one town: an arrow has no room
        along = along / length
        across = np.array([-along[1], along[0]])
        offset = -sum(width[arrow] + 0.06 for arrow in group) / 2
        for nth, arrow in enumerate(group):
            offset += (width[arrow] + 0.06) / 2
            begin = at[number[arrow.tail]]
            towards = along if arrow.tail == low else -along
            start = begin + 1.3 * HOST * towards + offset * across
            step = (length - 2.6 * HOST) * towards
            head = min(0.12 + 1.2 * width[arrow], 0.5 * (length - 2.6 * HOST))
            axes.add_patch(
                FancyArrow(
                    *start,
                    *step,
                    width=width[arrow],
                    head_width=width[arrow] + 0.12,
                    head_length=head,
                    length_includes_head=True,
                    facecolor=_colour(arrow.series),
                    edgecolor="white",
                    lw=0.5,
                    zorder=2,
                    gid=f"arrow {arrow.tail} {arrow.head} {arrow.series}",
                )
            )
            bodies.append((arrow, start, start + step, width[arrow]))
            # Of one arrow on the outer side, of several on their own sides.
            outwards = float(across @ (start + step / 2 - at.mean(axis=0)))
            side = 1.0 if (offset if len(group) > 1 else outwards) >= 0 else -1.0
            # Not beside each other, where several lie side by side.
            part = 0.45 if arrow.tail == low else 0.55
            part += 0.13 * (nth - (len(group) - 1) / 2) * (1 if arrow.tail == low else -1)
            text = format_rate(arrow.bytes_per_s)
            places = [
                label_beside(text, start + each * step, aside * across, width[arrow] / 2 + 0.1)
                for aside in (side, -side)
                for each in (part, *PARTS)
            ]
            rates.append((arrow, places))
            offset += (width[arrow] + 0.06) / 2
    if len(arrows) <= MOST_RATES:
        _write_rates(axes, rates, bodies, at)
    return bodies


def _write_rates(
    axes: Axes,
    rates: Sequence[tuple[Arrow, Sequence[Label]]],
    bodies: Sequence[Body],
    at: np.ndarray,
) -> None:
    """Write each rate where it lies on no other arrow, no host and no other rate, if anywhere."""
    written_at: list[Label] = []
    for arrow, places in rates:
        others = [(begin, end, width) for other, begin, end, width in bodies if other is not arrow]
        for label in places:
            is_free = (
                not any(label.crosses(*line) for line in others)
                and not any(label.crosses(host, host, 2 * HOST) for host in at)
                and not any(label.overlaps(other) for other in written_at)
            )
            if is_free:
                written_at.append(label)
                where = np.array([label.x, label.y])
                _halo(axes, where, label.text, ha=label.ha, size=9, color=INK)
                break


def _draw_marker(axes: Axes, problem: Problem, host: int, at: FloatArray) -> None:
    marker = "s" if host == problem.destination_index else "o"
    if host != problem.destination_index and not problem.backlog_bytes[host]:
        marker = "D"
    axes.plot(*at, marker=marker, ms=11, mfc="white", mec=INK, mew=1.6, ls="none", zorder=3)


def _draw_names(
    axes: Axes, problem: Problem, hosts: Sequence[int], at: FloatArray, bodies: Sequence[Body]
) -> None:
    """Write the names of many hosts, each where it lies on no name and no host, and few arrows."""
    written_at: list[Label] = []
    for place, host in enumerate(hosts):
        held = int(problem.backlog_bytes[host])
        name = shortened(written(problem.names[host]), 24)
        labels = _places_around(f"{name}, {format_bytes(held)}" if held else name, at[place])
        label = min(labels, key=lambda each: _covers(each, place, at, written_at, bodies))
        written_at.append(label)
        where = np.array([label.x, label.y])
        _halo(axes, where, label.text, ha=label.ha, size=SMALL, weight="bold", color=INK)


def _places_around(text: str, host: FloatArray) -> list[Label]:
    """Return where a name may stand: beside its host, below and above it, then further away."""
    x, y = host.tolist()
    return [
        Label(text, x + across, y + down, ha)
        for near in (1.5 * HOST, 2.4 * HOST)
        for across, down, ha in (
            (near, 0.0, "left"),
            (-near, 0.0, "right"),
            (0.0, 1.2 * near, "center"),
            (0.0, -1.2 * near, "center"),
            (0.7 * near, near, "left"),
            (0.7 * near, -near, "left"),
            (-0.7 * near, near, "right"),
            (-0.7 * near, -near, "right"),
        )
    ]


def _covers(
    label: Label, place: int, at: FloatArray, names: Sequence[Label], bodies: Sequence[Body]
) -> tuple[int, int]:
    """Return on how many names and hosts a label lies, and on how many arrows."""
    others = (host for i, host in enumerate(at) if i != place)
    is_outside = label.left < 0 or label.left + LETTER * width_of(label.text) > WIDTH
    bad = sum(label.overlaps(name) for name in names) + 9 * is_outside
    bad += sum(label.crosses(host, host, 2 * HOST) for host in others)
    return bad, sum(label.crosses(begin, end, width) for _, begin, end, width in bodies)


def _draw_name(
    axes: Axes,
    problem: Problem,
    host: int,
    at: np.ndarray,
    place: int,
    arrows: Sequence[Arrow],
    number: dict[int, int],
) -> None:
    """Write, on the side from which fewest arrows come, a host's name and what it holds."""
    held = int(problem.backlog_bytes[host])
    away = np.zeros(2)
    for arrow in arrows:
        if host in arrow[:2]:
            other = arrow.head if host == arrow.tail else arrow.tail
            line = at[place] - at[number[other]]
            away += line / (float(np.hypot(*line)) or 1.0)
    if math.hypot(*away) < 1e-9:
        away = np.array([0.0, -1.0])
    name = shortened(written(problem.names[host]), 24)
    text = f"{name}\n{format_bytes(held)}" if held else name
    look = {"size": LARGE, "weight": "bold", "color": INK}
    step = 1.6 * HOST
    # Long names stand above or below, so that they do not leave the picture.
    if abs(away[0]) > abs(away[1]) and width_of(name) <= NARROW:
        side = 1 if away[0] > 0 else -1
        _halo(axes, at[place] + (side * step, 0), text, ha="left" if side > 0 else "right", **look)
    else:
        up = away[1] <= 0
        where = at[place] + (0, -step if up else step)
        _halo(axes, where, text, va="bottom" if up else "top", **look)


def _halo(axes: Axes, where: np.ndarray, text: str, **look: object) -> None:
    from matplotlib.patheffects import withStroke

    x, y = where.tolist()
    words = axes.text(x, y, text, zorder=4, **{"ha": "center", "va": "center", **look})  # type: ignore[arg-type]
    words.set_parse_math(False)
    words.set_path_effects([withStroke(linewidth=3, foreground="white")])


# Words ------------------------------------------------------------------------------------------


def _legend(schedule: Schedule) -> list[tuple[str, str]]:
    """Return the colour of each series, and what it stands for."""
    return [(_colour(i), text) for i, text in enumerate(_series(schedule)[1])]


def _write(
    figure: Figure,
    problem: Problem,
    schedule: Schedule | None,
    legend: Sequence[tuple[str, str]],
) -> None:
    height = float(figure.get_size_inches()[1])

    def line(below: float, text: str, x: float = 0.2, **look: object) -> None:
        words = figure.text(
            x / WIDTH,
            1 - below / height,
            written(text),
            va="center",
            **look,  # type: ignore[arg-type]
        )
        words.set_parse_math(False)

    line(0.28, _title(problem, schedule), size=13, weight="bold", color=INK)
    for i, text in enumerate(_reading(schedule)):
        line(0.55 + 0.2 * i, text, size=9, color=FAINT)
    axes = figure.axes[0]
    for i, (colour, text) in enumerate(legend):
        y = height - 0.3 - LINE * (len(legend) - 1 - i)
        axes.plot([0.2, 0.5], [y, y], color=colour, lw=5, solid_capstyle="butt")
        line(y, shortened(text, 76), x=0.62, size=10, color=INK)


def _title(problem: Problem, schedule: Schedule | None) -> str:
    amount, end = format_bytes(problem.total_bytes), shortened(problem.destination, 24)
    if schedule is None:
        return f"{amount} for {end}: links by bandwidth"
    return f"{amount} to {end} in {format_duration(schedule.makespan_s)}, by {schedule.method}"


def _reading(schedule: Schedule | None) -> Iterator[str]:
    what = "its bandwidth" if schedule is None else "its rate"
    yield f"Each arrow is as wide as {what}."
    yield "Square: the destination. Circles: hosts with data. Diamonds: hosts that can relay."
