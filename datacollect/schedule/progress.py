"""Progress: what lies where at an instant, and what has changed; the problem that remains.

A plan rests on estimates. When they turn out wrong, or a host is lost, the remainder is planned
from where the data lie now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError, nearest_hint
from datacollect.files.units import counted
from datacollect.files.with_units import in_units
from datacollect.numbers.arrays import BoolArray, FloatArray, IntArray, running_totals
from datacollect.numbers.containers import texts_of
from datacollect.problem.calendar import by_hours, enough_s, least_s, listed, listed_again
from datacollect.problem.cycles import has_windows
from datacollect.problem.extreme_rates import require_possible_rates
from datacollect.problem.hosts import Held, HeldColumns
from datacollect.problem.open_links import LinkEnds, open_links
from datacollect.problem.production import made_by
from datacollect.schedule.data.belonging import require_belonging
from datacollect.schedule.data.contents import ProgressContents
from datacollect.schedule.data.fields import INSTANT
from datacollect.schedule.data.new_links import (
    PERIOD_COLUMNS,
    NewLinks,
    both_links,
    with_new_links,
)
from datacollect.schedule.data.use import legs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    import pandas as pd

    from datacollect.files.quantities import Seconds
    from datacollect.problem.hosts import SharedBottleneck
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.named_links import LinksByName
    from datacollect.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Progress(ProgressContents):
    """State of a collection at one instant, and what has been learned since.

    Parameters
    ----------
    at_s : float or str
        The instant, on the plan's clock: in seconds, or as a text such as ``"2 h"``.
    held : tuple of Held
        All data that lie elsewhere than at their source; at the destination they are collected.
        What is listed nowhere still lies at its source.
    links : NewLinks or None
        New estimates of bandwidth; links that are not listed keep the problem's.
    lost_hosts : tuple of str
        Hosts that do not answer any more: their links vanish, and what only they held has to
        start again at its source.

    Raises
    ------
    ProblemError
        `at_s` is negative, not finite, or a text that is no time.

    Examples
    --------
    A relay got half of the data of S and passed half of that on:

    >>> Progress("2 s", held=(Held("D", "S", 0, 5), Held("K", "S", 5, 5))).at_s
    2.0
    """

    # Written out, since attributes are numbers where arguments may be texts.
    def __init__(
        self,
        at_s: Seconds,
        held: Iterable[Held] = (),
        links: NewLinks | None = None,
        lost_hosts: Iterable[str] = (),
    ) -> None:
        at_s = in_units(at_s, INSTANT, "progress: at_s")
        if not 0 <= at_s < math.inf:
            raise ProblemError(
                f"progress: at_s must be >= 0 and finite, got {at_s:g}; it counts seconds "
                "from the start of the plan"
            )
        lost = texts_of(lost_hosts, "lost_hosts")
        vars(self).update(at_s=at_s, held=tuple(held), links=links, lost_hosts=lost)

    def _repr_html_(self) -> str:
        """Show the progress in a notebook."""
        from datacollect.files.notebook import html_of_facts
        from datacollect.files.units import format_bytes, format_duration

        n_bytes = sum(held.n_bytes for held in self.held)
        n_links = 0 if self.links is None else len(self.links.link_from)
        return html_of_facts(
            "Progress",
            [
                ("at", format_duration(self.at_s)),
                ("held elsewhere", f"{format_bytes(n_bytes)} in {len(self.held)} ranges"),
                ("links estimated again", str(n_links)),
                ("lost hosts", ", ".join(self.lost_hosts) or "none"),
            ],
        )

    def __repr__(self) -> str:
        n_bytes = sum(held.n_bytes for held in self.held)
        lost = f", {counted(len(self.lost_hosts), 'lost host')}" if self.lost_hosts else ""
        return (
            f"<Progress: at {self.at_s:g} s, {counted(n_bytes, 'byte')} held in "
            f"{counted(len(self.held), 'range')}{lost}>"
        )

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any], problem: Problem) -> Progress:
        """Build from the tree of a progress file.

        Parameters
        ----------
        tree : mapping
            What TOML or JSON say; ``bandwidth_csv`` is relative to the working folder.
        problem : Problem
            Whose progress it is.

        Returns
        -------
        Progress

        Raises
        ------
        ProblemError
            The message names place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> tree = {"format": "datacollect-progress/1", "at_s": 3}
        >>> Progress.from_dict(tree, problem).at_s
        3.0
        """
        from datacollect.schedule.progress_file import contents_of

        return cls(**vars(contents_of(tree, problem.host_index)))

    @classmethod
    def from_file(cls, path: str | PathLike[str], problem: Problem) -> Progress:
        r"""Read a progress file: TOML or JSON, with the CSV that it names.

        Parameters
        ----------
        path : path-like
            TOML or JSON by the suffix; ``-`` reads either from standard input. What
            ``bandwidth_csv`` names is relative to the file.
        problem : Problem
            Whose progress it is.

        Returns
        -------
        Progress

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "progress.toml")
        ...     _ = path.write_text('format = "datacollect-progress/1"\nat_s = 3\n')
        ...     Progress.from_file(path, problem).at_s
        3.0
        """
        from datacollect.schedule.data.fields import PROGRESS
        from datacollect.schedule.progress_file import contents_of

        index = problem.host_index
        return PROGRESS.from_file(
            path, lambda tree, folder: cls(**vars(contents_of(tree, index, folder)))
        )

    @classmethod
    def from_schedule(
        cls,
        problem: Problem,
        plan: Schedule,
        at_s: Seconds,
        *,
        links: NewLinks | LinksByName | None = None,
    ) -> Progress:
        """Say what the plan itself says: what lies where at an instant if all goes as planned.

        Parameters
        ----------
        problem : Problem
        plan : Schedule
            A valid schedule for the problem.
        at_s : float or str
            Seconds from the start of the plan, or a text such as ``"2 h"``.
        links : NewLinks, mapping, Series or DataFrame, optional
            New estimates of bandwidth, in bytes per second or texts with units, as in
            `NewLinks.from_names`.

        Returns
        -------
        Progress

        Raises
        ------
        ProblemError
            The plan is of another problem, the instant is negative or not finite, or the links do
            not fit the problem.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> Progress.from_schedule(problem, dc.direct(problem), at_s=3.0).held
        (Held(host='D', source='S', offset_bytes=0, n_bytes=15),)
        >>> slower = {("S", "D"): 2.5}
        >>> late = Progress.from_schedule(problem, dc.direct(problem), "3 s", links=slower)
        >>> dc.replan(problem, dc.direct(problem), late).makespan_s
        2.0
        """
        require_belonging(problem, plan)
        at_s = in_units(at_s, INSTANT, "at_s", (), problem.clock)
        empty = cls(at_s)  # refuses instants that are none
        collected = tuple(h for h in problem.held if h.host == problem.destination and h.n_bytes)
        found = replace(empty, held=collected + _held_at(plan, empty.at_s))
        return found if links is None else found.with_links(problem, links)

    def with_links(self, problem: Problem, links: NewLinks | LinksByName) -> Progress:
        """Return the same progress with new estimates of bandwidth.

        Parameters
        ----------
        problem : Problem
            Whose progress it is.
        links : NewLinks, mapping, Series or DataFrame
            Bandwidths from `at_s` on, in bytes per second or texts with units, as in
            `NewLinks.from_names`. Estimates that the progress has of other links stay.

        Returns
        -------
        Progress

        Raises
        ------
        ProblemError
            A host is unknown, a link is from a host to itself, or a bandwidth is none.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> progress = Progress("2 s", held=(Held("D", "S", 0, 10),))
        >>> progress = progress.with_links(problem, {("S", "D"): "20 bit/s"})
        >>> dc.replan(problem, dc.direct(problem), progress).makespan_s
        4.0
        """
        if not isinstance(links, NewLinks):
            links = NewLinks.from_names(problem, links)
        if self.links is not None:
            links = both_links(self.links, links, problem.n_hosts)
        return replace(self, links=links)

    def to_dataframe(self) -> pd.DataFrame:
        """Return what lies where as a table.

        Returns
        -------
        DataFrame
            A row for each of `held`: host, source, offset_bytes, bytes.

        Examples
        --------
        >>> Progress(2.0, held=(Held("D", "S", 0, 5),)).to_dataframe().to_dict("records")
        [{'host': 'D', 'source': 'S', 'offset_bytes': 0, 'bytes': 5}]
        """
        import pandas as pd

        rows = [(held.host, held.source, held.offset_bytes, held.n_bytes) for held in self.held]
        return pd.DataFrame(rows, columns=["host", "source", "offset_bytes", "bytes"])

    def to_dict(self, problem: Problem) -> dict[str, Any]:
        """Return the tree of a progress file.

        Parameters
        ----------
        problem : Problem
            Whose progress it is.

        Returns
        -------
        dict
            What TOML or JSON can say, and `from_dict` reads.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> Progress(2.0, held=(Held("D", "S", 0, 5),)).to_dict(problem)["held"]
        [{'host': 'D', 'source': 'S', 'offset_bytes': 0, 'bytes': 5}]
        """
        from datacollect.schedule.progress_file import tree_of

        return tree_of(self, problem.names)

    @property
    def lost_data(self) -> tuple[Held, ...]:
        """Return what lost hosts held of others: it has to start again at its source."""
        lost = set(self.lost_hosts)
        return tuple(h for h in self.held if h.host in lost and h.host != h.source and h.n_bytes)


def remaining_problem(problem: Problem, progress: Progress) -> Problem:
    """Return the problem that remains: its time 0 is `progress.at_s`.

    Backlogs stay as they are, so that offsets keep their meaning; what has moved is held data.
    Release times and periods are moved back. A host that holds more of others' data than its
    ``storage_bytes``, chunks in flight for instance, has room for that.

    Parameters
    ----------
    problem : Problem
        What was to be collected from the start.
    progress : Progress
        How far it has got.

    Returns
    -------
    Problem

    Raises
    ------
    ProblemError
        The progress does not fit the problem: unknown hosts, ranges beyond backlogs, ranges that
        overlap, a lost destination, a link given twice.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> remaining_problem(problem, Progress(3.0, (Held("D", "S", 0, 15),)))
    <Problem: 2 hosts, 1 link, 1 source, 5 bytes to 'D'>
    """
    _require_known(problem, progress)
    if problem.daily is not None:
        # Days enough for what remains; all hours of a day at least.
        until_s = max(enough_s(problem), least_s(problem.daily))
        problem = problem.until(progress.at_s + until_s)
    gone = set(progress.lost_data)
    held = tuple(h for h in progress.held if h not in gone) if gone else progress.held
    try:
        if gone:  # what does not stay has to be right, too
            problem.replace(storage_bytes=_room(problem, progress.held), held=progress.held)
        remaining = problem.replace(
            release_s=np.maximum(problem.release_s - progress.at_s, 0.0),
            clock=None if problem.clock is None else problem.clock.later(progress.at_s),
            storage_bytes=_room(problem, held),
            held=held,
            **_made_now(problem, progress),
            **_links_now(problem, progress),
        )
        if _has_windows_still(problem, progress):
            remaining = _listed_again(problem, remaining, progress)
        elif progress.links is None:
            return _recurring(problem, remaining, progress)
        require_possible_rates(remaining)
        return remaining
    except ProblemError as error:
        raise ProblemError(f"progress: {error}; is this the progress of another problem?") from None


def _made_now(problem: Problem, progress: Progress) -> dict[str, Any]:
    """Return what sources have made by an instant: at least what lies elsewhere by then."""
    if problem.made_bytes is None:
        return {}
    made = problem.made_bytes.copy()
    for host in problem.makers.tolist():
        by_rate = math.floor(made_by(problem, host, np.array([progress.at_s]))[0])
        made[host] = max(int(made[host]), by_rate)
    for part in progress.held:
        host = problem.host_index[part.source]
        if host in problem.makers and part.n_bytes:
            made[host] = max(int(made[host]), part.offset_bytes + part.n_bytes)
    return {"made_bytes": np.minimum(made, problem.backlog_bytes)}


# What lies where ----------------------------------------------------------------------------


def _held_at(plan: Schedule, at_s: float) -> tuple[Held, ...]:
    """Cut every route's bytes by the number of hops that they have done."""
    where, columns = legs(plan), plan.columns
    moved = _moved_bytes(plan, at_s)
    first, done = columns.offset_bytes, np.flatnonzero(moved)
    starts = np.flatnonzero(where.hop == 0)
    one, one_done = np.ones(len(starts), np.int64), np.ones(len(done), np.int64)
    zero, zero_done = np.zeros(len(starts), np.int64), np.zeros(len(done), np.int64)
    ends = (first + columns.n_bytes)[starts]
    route, byte, (present, hops) = running_totals(
        np.concatenate([where.route[starts], where.route[starts], *[where.route[done]] * 2]),
        # Offsets stand where instants usually do: below 2**62, but beyond what floats distinguish.
        np.concatenate([first[starts], ends, first[done], (first + moved)[done]]),
        np.concatenate([one, -one, zero_done, zero_done]),
        np.concatenate([zero, zero, one_done, -one_done]),
    )
    at = np.flatnonzero(present > 0)
    names = [
        plan.routes[r].hosts[h] for r, h in zip(route[at].tolist(), hops[at].tolist(), strict=True)
    ]
    owners = [plan.routes[r].source for r in route[at].tolist()]
    ranges = zip(names, owners, byte[at].tolist(), byte[at + 1].tolist(), strict=True)
    return _joined([r for r in ranges if r[0] != r[1]])


def _moved_bytes(plan: Schedule, at_s: float) -> IntArray:
    """Bytes that each transfer has moved by then, at its constant rate."""
    columns = plan.columns
    length_s = columns.finish_s - columns.start_s
    part = np.divide(
        at_s - columns.start_s, length_s, out=np.zeros_like(length_s), where=length_s > 0
    )
    moved = np.floor(columns.n_bytes * np.clip(part, 0.0, 1.0)).astype(np.int64)
    return np.where(at_s >= columns.finish_s, columns.n_bytes, np.minimum(moved, columns.n_bytes))


def _joined(ranges: list[tuple[str, str, int, int]]) -> tuple[Held, ...]:
    """Join ranges (host, source, first byte, end) that touch."""
    joined: list[tuple[str, str, int, int]] = []
    for host, source, low, high in sorted(ranges):
        if joined and joined[-1][:2] == (host, source) and joined[-1][3] == low:
            joined[-1] = (host, source, joined[-1][2], high)
        else:
            joined.append((host, source, low, high))
    return tuple(Held(host, source, low, high - low) for host, source, low, high in joined)


# What remains -------------------------------------------------------------------------------


def _require_known(problem: Problem, progress: Progress) -> None:
    for name in progress.lost_hosts:
        if name not in problem.host_index:
            raise ProblemError(
                f"progress: lost_hosts: unknown host {name!r}"
                + (nearest_hint(name, problem.host_index) or "; take it out")
            )
    if problem.destination in progress.lost_hosts:
        raise ProblemError(
            f"progress: lost_hosts: {problem.destination!r} is the destination, without which "
            "nothing can be collected; plan for another destination"
        )


def _room(problem: Problem, held: tuple[Held, ...]) -> FloatArray:
    """Storage limits, raised to what hosts hold already."""
    stored = HeldColumns.of(held, problem.host_index).stored_bytes(problem.n_hosts)
    return np.maximum(problem.storage_bytes, stored)


def _shared_without(problem: Problem, lost: set[str]) -> tuple[SharedBottleneck, ...]:
    left = [
        (s, tuple((a, b) for a, b in s.links if a not in lost and b not in lost))
        for s in problem.shared
    ]
    return tuple(replace(s, links=links) for s, links in left if links)


def _links_now(problem: Problem, progress: Progress) -> dict[str, Any]:
    """Return what has changed about links, with the forecast from `progress.at_s` on.

    Of windows that go on: with a row for each hour at which rates change, as if all were open.
    """
    columns: dict[str, Any] = {
        "link_from": problem.link_from,
        "link_to": problem.link_to,
        "price_per_gb": problem.price_per_gb,
        "periods_s": problem.periods_s,
        **{key: getattr(problem, key) for key in PERIOD_COLUMNS},
    }
    if _has_windows_still(problem, progress):
        columns |= by_hours(problem)
    elif problem.n_periods > 1:
        now = int(np.searchsorted(problem.periods_s, progress.at_s, side="right")) - 1
        columns |= {key: columns[key][now:] for key in PERIOD_COLUMNS}
        columns["periods_s"] = np.append(0.0, problem.periods_s[now + 1 :] - progress.at_s)
    if progress.links is not None:
        columns = with_new_links(problem, columns, progress.links)
        if has_windows(problem) and not _has_windows_still(problem, progress):
            columns = _closed(problem, columns, progress.at_s)
    if progress.lost_hosts:
        lost = set(progress.lost_hosts)
        columns = _without_hosts(columns, np.array([name in lost for name in problem.names]))
        columns["shared"] = _shared_without(problem, lost)
    return {key: value for key, value in columns.items() if value is not getattr(problem, key)}


def _has_windows_still(problem: Problem, progress: Progress) -> bool:
    """Return whether windows go on for ever.

    New rates that change later are known for a while only.
    """
    changes_later = progress.links is not None and len(progress.links.periods_s) > 1
    return has_windows(problem) and not changes_later


def _listed_again(problem: Problem, remaining: Problem, progress: Progress) -> Problem:
    """Return what remains, which has a row for each hour, with its windows from now on."""
    daily, clock = problem.daily, remaining.clock
    assert daily is not None
    assert clock is not None
    again = listed_again(remaining, daily, clock, daily.until_s - progress.at_s)
    return remaining.replace(**again)


def _closed(problem: Problem, columns: dict[str, Any], at_s: float) -> dict[str, Any]:
    """Return columns in which new rates hold while links are open, as far as that is listed."""
    daily, clock = problem.daily, problem.clock
    assert daily is not None
    assert clock is not None
    links = LinkEnds(problem.names, columns["link_from"], columns["link_to"])
    starts_s = columns["periods_s"] + at_s
    is_open = open_links(daily.windows, links, clock, starts_s, daily.until_s)
    is_open &= (starts_s < daily.until_s)[:, np.newaxis]
    return columns | {
        "bandwidth_bytes_per_s": np.where(is_open, columns["bandwidth_bytes_per_s"], 0.0)
    }


def _recurring(problem: Problem, remaining: Problem, progress: Progress) -> Problem:
    """Return what remains with the hours that recur, where its periods are still those."""
    daily, clock = problem.daily, remaining.clock
    if daily is None or clock is None:
        return remaining
    until_s = daily.until_s - progress.at_s
    to_come = replace(daily, until_s=until_s)
    if len(listed(to_come, clock)[0]) != remaining.n_periods:
        return remaining  # less than a microsecond from an hour that recurs
    return remaining.replace(daily=to_come)


def _without_hosts(columns: dict[str, Any], lost: BoolArray) -> dict[str, Any]:
    left = ~(lost[columns["link_from"]] | lost[columns["link_to"]])
    return columns | {
        key: columns[key][..., left]
        for key in ("bandwidth_bytes_per_s", "link_from", "link_to", "price_per_gb")
        if columns[key] is not None
    }
