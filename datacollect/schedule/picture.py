"""What a picture of a schedule shows: rates of each host by source and peer, words, layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from datacollect.schedule.belonging import require_belonging
from datacollect.schedule.tolerances import RATE_ROUNDING, TIME_TOLERANCE
from datacollect.schedule.transfers import UNKNOWN
from datacollect.schedule.use import legs
from datacollect.units import format_bytes, format_duration

if TYPE_CHECKING:
    from datacollect.arrays import FloatArray, IntArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.schedule.use import Legs

# Nobody reads more bands, or tells more colours apart.
MAX_BANDS = 25
MAX_COLOURS = 10
# Up to so many instants rates are exact; beyond, means over equal stretches, half a pixel wide.
MAX_INSTANTS = 1500


@dataclass(frozen=True, eq=False)
class Area:
    """Data of one source, or of several together, that a host sends to or receives from others.

    Attributes
    ----------
    colour : int
        Index into `Picture.sources`.
    peer : str or None
        The host at the other end; None where peers are not told apart.
    bytes_per_s : ndarray, shape (n_stretches,)
    """

    colour: int
    peer: str | None
    bytes_per_s: FloatArray


@dataclass(frozen=True, eq=False)
class Band:
    """What one host does over time.

    Attributes
    ----------
    name : str
    sends, receives : tuple of Area
    stored_s, stored_bytes : ndarray, shape (n_points,)
        Others' data that it stores; linear between points.
    shows_storage : bool
        Whether these need a curve; the chunks of a pipeline do not.
    """

    name: str
    sends: tuple[Area, ...]
    receives: tuple[Area, ...]
    stored_s: FloatArray
    stored_bytes: FloatArray
    shows_storage: bool


@dataclass(frozen=True, eq=False)
class Picture:
    """All that a picture shows.

    Attributes
    ----------
    edges_s : ndarray, shape (n_stretches + 1,)
        Instants from 0 to the makespan; rates are constant between them.
    mean_over_s : float or None
        Length of the stretches where rates are means over them; None where rates are exact.
    sources : tuple of str
        Names of sources by colour; where there are many, the last stands for the rest.
    n_sources : int
        How many there are.
    bands : tuple of Band
        The busiest hosts from top to bottom: sources, sources that relay, relays, destination.
    n_hosts : int
        How many hosts take part.
    """

    edges_s: FloatArray
    mean_over_s: float | None
    sources: tuple[str, ...]
    n_sources: int
    bands: tuple[Band, ...]
    n_hosts: int


def picture_of(problem: Problem, schedule: Schedule) -> Picture:
    """Compute what a picture of a schedule shows.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
    >>> picture = picture_of(problem, dc.direct(problem))
    >>> [(band.name, len(band.sends), len(band.receives)) for band in picture.bands]
    [('S', 1, 0), ('D', 0, 1)]
    >>> picture.edges_s.tolist(), picture.bands[0].sends[0].bytes_per_s.tolist()
    ([0.0, 2.0], [5.0])
    """
    require_belonging(problem, schedule)
    where, n_bytes, n = legs(schedule, problem.names), schedule.columns.n_bytes, problem.n_hosts
    handled = np.bincount(where.tail, n_bytes, n) + np.bincount(where.head, n_bytes, n)
    handled[problem.destination_index] *= 2  # so that it is always among the busiest
    n_hosts = int(np.count_nonzero(handled))
    busiest = np.argsort(-handled, kind="stable")[: min(n_hosts, MAX_BANDS)]
    hosts = _from_top_to_bottom(problem, where, busiest)
    colour_of_source, sources, n_sources = _colours(problem, where, hosts)
    colour = colour_of_source[where.source]
    edges, mean_over_s = _edges(schedule)
    sends = _areas(problem, schedule, edges, hosts, where.tail, where.head, colour)
    receives = _areas(problem, schedule, edges, hosts, where.head, where.tail, colour)
    passes_on = np.bincount(where.tail, np.where(where.tail == where.source, 0, n_bytes), n)
    table = schedule.storage()
    bands = []
    for host in hosts.tolist():
        curve = table[table["host"] == problem.names[host]]
        stored = curve["stored_bytes"].to_numpy(dtype=float)
        chunks_only = schedule.slot_s is None and stored.max(initial=0) <= 0.02 * passes_on[host]
        bands.append(
            Band(
                problem.names[host],
                tuple(sends[host]),
                tuple(receives[host]),
                curve["time_s"].to_numpy(dtype=float),
                stored,
                len(stored) > 0 and not chunks_only,
            )
        )
    return Picture(edges, mean_over_s, sources, n_sources, tuple(bands), n_hosts)


def _from_top_to_bottom(problem: Problem, where: Legs, hosts: IntArray) -> IntArray:
    has_data, relays = np.zeros(problem.n_hosts, bool), np.zeros(problem.n_hosts, bool)
    has_data[where.source] = True
    relays[where.tail[where.tail != where.source]] = True
    rank = np.where(has_data, np.where(relays, 1, 0), 2)
    rank[problem.destination_index] = 3
    return hosts[np.lexsort((hosts, rank[hosts]))]


def _colours(
    problem: Problem, where: Legs, hosts: IntArray
) -> tuple[IntArray, tuple[str, ...], int]:
    """Return each host's colour as a source, the colours' names, and the number of sources."""
    is_source = np.zeros(problem.n_hosts, bool)
    is_source[where.source] = True
    shown = [host for host in hosts.tolist() if is_source[host]]
    rest = sorted(set(np.flatnonzero(is_source).tolist()) - set(shown))
    if len(shown) + len(rest) <= MAX_COLOURS:
        # In the problem's order: colours are the same in pictures of different methods.
        shown, rest = sorted(shown + rest), []
    colour = np.full(problem.n_hosts, len(shown))
    colour[shown] = np.arange(len(shown))
    names = [problem.names[host] for host in shown]
    if rest:
        names.append(f"{len(rest)} other sources")
    return colour, tuple(names), len(shown) + len(rest)


def _edges(schedule: Schedule) -> tuple[FloatArray, float | None]:
    columns, end_s = schedule.columns, schedule.makespan_s
    instants = np.unique(np.concatenate([[0.0, end_s], columns.start_s, columns.finish_s]))
    apart = np.diff(instants, prepend=-math.inf) > TIME_TOLERANCE * end_s
    if np.count_nonzero(apart) <= MAX_INSTANTS:
        return instants[apart], None
    return np.linspace(0.0, end_s, MAX_INSTANTS), end_s / (MAX_INSTANTS - 1)


def _areas(
    problem: Problem,
    schedule: Schedule,
    edges_s: FloatArray,
    hosts: IntArray,
    host: IntArray,
    peer: IntArray,
    colour: IntArray,
) -> dict[int, list[Area]]:
    """Return each shown host's areas, by colour, then peer."""
    n = problem.n_hosts
    shown = np.isin(host, hosts)
    # With many sources areas are thin; cutting them up by peers would hide more than it shows.
    several = int(colour.max(initial=0)) >= MAX_COLOURS
    tell_apart = np.zeros_like(peer) if several else peer
    key = ((host * (colour.max(initial=0) + 1) + colour) * n + tell_apart)[shown]
    keys, row = np.unique(key, return_inverse=True)
    columns = schedule.columns
    start_s, finish_s = columns.start_s[shown], columns.finish_s[shown]
    rates = mean_rates(columns.n_bytes[shown], start_s, finish_s, row, len(keys), edges_s)
    areas: dict[int, list[Area]] = {int(i): [] for i in hosts}
    for j, (at, other) in enumerate(zip((keys // n).tolist(), (keys % n).tolist(), strict=True)):
        i, c = divmod(at, int(colour.max()) + 1)
        areas[i].append(Area(c, None if several else problem.names[other], rates[j]))
    return areas


def mean_rates(
    n_bytes: IntArray,
    start_s: FloatArray,
    finish_s: FloatArray,
    row: IntArray,
    n_rows: int,
    edges_s: FloatArray,
) -> FloatArray:
    """Add up transfers at constant rate into mean rates between instants.

    Parameters
    ----------
    n_bytes, start_s, finish_s : ndarray, shape (n_transfers,)
    row : ndarray of int64, shape (n_transfers,)
        Where each transfer counts.
    n_rows : int
    edges_s : ndarray, shape (n_stretches + 1,)
        Increasing; from before the first start to after the last finish.

    Returns
    -------
    ndarray of float, shape (n_rows, n_stretches)
        Bytes per second; times the stretches' lengths these are exactly the bytes.

    Examples
    --------
    >>> mean_rates(
    ...     np.array([6]), np.array([1.0]), np.array([4.0]), np.array([0]), 1, np.array([0, 2, 4])
    ... ).tolist()
    [[1.0, 2.0]]
    """
    n_stretches = len(edges_s) - 1
    ends_s = np.append(edges_s[1:], edges_s[-1] + 1.0)
    length_s = ends_s - edges_s
    rate = n_bytes / (finish_s - start_s)
    steps = np.zeros((n_rows, n_stretches + 2))
    # A rate that sets in within a stretch counts there by its share, and fully in all later ones.
    for when_s, change in ((start_s, rate), (finish_s, -rate)):
        k = np.clip(np.searchsorted(edges_s, when_s, side="right") - 1, 0, n_stretches)
        share = np.clip((ends_s[k] - when_s) / length_s[k], 0.0, 1.0)
        np.add.at(steps, (row, k), change * share)
        np.add.at(steps, (row, k + 1), change * (1.0 - share))
    rates = np.cumsum(steps[:, :n_stretches], axis=1)
    # What subtraction leaves of a rate that has ended is rounding.
    rates[rates < RATE_ROUNDING * rates.max(axis=1, initial=0.0, keepdims=True)] = 0.0
    return rates


# Words --------------------------------------------------------------------------------------


def headlines(picture: Picture, problem: Problem, schedule: Schedule) -> tuple[str, list[str]]:
    """Return a title and lines below it: how, how near to the lower bound, and what binds."""
    if not picture.bands:
        return f"Nothing to move to {problem.destination}", [f"Method: {schedule.method}."]
    amount, time = format_bytes(problem.total_bytes), format_duration(schedule.makespan_s)
    title = f"{amount} to {shortened(problem.destination, 50)} in {time}"
    how = f"Method: {schedule.method}"
    if schedule.slot_s is not None:
        how += f", in slots of {format_duration(schedule.slot_s)}"
    elif schedule.chunk_s:
        how += f", pipelined in chunks of {format_duration(schedule.chunk_s)}"
    how += f"; {_compared(schedule.makespan_s, schedule.lower_bound_s)} the lower bound."
    if len(picture.bands) < picture.n_hosts:
        how += f" Shown: the {len(picture.bands)} busiest of {picture.n_hosts} hosts."
    why = "" if schedule.bottleneck == UNKNOWN else schedule.bottleneck.text
    return title, [how, *wrap(why, 140, max_lines=2, placeholder=" …")]


def _compared(end_s: float, bound_s: float) -> str:
    if end_s <= 1.0005 * bound_s:
        return "equal to"
    if bound_s <= 0.5 * end_s:
        return f"{end_s / bound_s:.1f} times" if bound_s else "above"
    return f"{100 * (end_s / bound_s - 1):.1f} % above"


def role_of(problem: Problem, schedule: Schedule, name: str) -> str:
    """Say in a few words what a host does."""
    if name == problem.destination:
        return f"collects {format_bytes(problem.total_bytes)}"
    parts = []
    own = [i for i, route in enumerate(schedule.routes) if route.source == name]
    if own:
        i = problem.host_index[name]
        parts.append(f"has {format_bytes(int(problem.backlog_bytes[i]))}")
        if problem.release_s[i] > 0:
            parts[0] += f" from {format_duration(float(problem.release_s[i]))} on"
    relayed = dict.fromkeys(r.source for r in schedule.routes if name in r.hosts)
    others = [source for source in relayed if source != name]
    if others:
        few = ", ".join(others) if len(others) > 1 else shortened(others[0], 20)
        parts.append("relays " + (few if len(few) <= 20 else f"{len(others)} sources"))
    return "; ".join(parts)


def shortened(text: str, n_characters: int) -> str:
    """Cut a text that is longer than so many characters."""
    return text if len(text) <= n_characters else text[: n_characters - 1] + "…"


# Layout -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a band lies, in inches below the picture's top, and its scale.

    From `top` to `line` stands what the host sends, from `line` to `low` what it receives, and
    from `low` to `bottom` what it stores.
    """

    top: float
    line: float
    low: float
    bottom: float
    bytes_per_s_per_inch: float

    @property
    def middle(self) -> float:
        """Middle of what it sends and receives."""
        return (self.top + self.low) / 2


def lay_out(picture: Picture) -> tuple[list[Place], bool]:
    """Place the bands; the second result tells whether all have one scale.

    One scale for all makes areas comparable: an area is an amount of data. Where rates differ too
    much for that, each host has its own.
    """
    few = len(picture.bands) <= 12
    # Inches: half a band at the biggest rate; the least for lines of text; between bands.
    half, least, least_both, gap = (0.58, 0.38, 0.52, 0.17) if few else (0.3, 0.2, 0.44, 0.1)
    peaks = [
        (peak_bytes_per_s(band.sends), peak_bytes_per_s(band.receives)) for band in picture.bands
    ]
    biggest = max(max(peak) for peak in peaks[:-1])
    smallest = min(max(peak) for peak in peaks[:-1])
    # The destination may be higher than others by as much as its links carry more.
    one_scale = smallest >= biggest / 6 and max(peaks[-1]) <= 5 * biggest
    places, top = [], 0.0
    for band, (sends, receives) in zip(picture.bands, peaks, strict=True):
        times = 1 if band is not picture.bands[-1] else 2 if few else 4
        scale = (biggest if one_scale else max(sends, receives) / times) / half
        up, down = sends / scale, receives / scale
        missing = max(0.0, (least_both if up and down else least) - up - down)
        up += missing / 2 if up and down else missing if up else 0.0
        down += missing / 2 if up and down else missing if down else 0.0
        low = top + up + down
        bottom = low + (0.6 * half if band.shows_storage else 0.0)
        places.append(Place(top, top + up, low, bottom, scale))
        top = bottom + gap
    return places, one_scale


def peak_bytes_per_s(areas: tuple[Area, ...]) -> float:
    """Return the highest sum of the areas' rates."""
    return float(np.sum([area.bytes_per_s for area in areas], axis=0).max()) if areas else 0.0
