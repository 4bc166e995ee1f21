"""The schedule: all transfers that empty every backlog, as columns.

A transfer moves a contiguous range of one source's backlog over one hop of one route, between
two instants, at constant rate. Everything else (storage, use of links, pull lists) follows from
the transfers and is computed when asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from datacollect.errors import nearest_hint
from datacollect.files.with_units import counted_fields, values_in_units
from datacollect.schedule.data.contents import ScheduleContents
from datacollect.schedule.data.fields import SCHEDULE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import pandas as pd
    from matplotlib.figure import Figure

    from datacollect.problem.manifest import Files
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.assumptions import Assumptions
    from datacollect.schedule.data.contents import ScheduleChanges

# Where a schedule keeps what finds its assumptions: no part of what it says.
_FINDS_ASSUMPTIONS = "_finds_assumptions"

_COUNTED = counted_fields(SCHEDULE)


@dataclass(frozen=True, eq=False)
class Schedule(ScheduleContents):
    """A plan of transfers, with what is known about its quality.

    Attributes
    ----------
    method : str
        ``"direct"``, ``"best-path"`` or ``"coordinated"``.
    destination : str
    makespan_s : float
        When the last byte reaches the destination, from time 0.
    lower_bound_s : float
        The fluid optimum: no schedule under the same bandwidths is faster.
    slot_s, chunk_s : float or None
        Slot of a store-and-forward schedule; chunk of a pipelined one.
    solver : str
        The solvers that made it.
    problem_sha256 : str
        `Problem.sha256` of the problem that it solves.
    routes : tuple of Route
    columns : Transfers
    status : str
        ``"optimal"``, ``"heuristic"`` or ``"time_limit"``.
    bottleneck : Bottleneck
        Its kind is ``"unknown"`` where a file does not say.
    plan_time_s : float
        Wall-clock time that planning took.
    prefer : str or None
        What a coordinated plan minimises among the fastest, or among those in time; None where
        that is not known, or means nothing to the method. So are the following ones.
    deadline_s : float or None
        What it was planned to end by; None: as soon as possible.
    most_by_s : float or None
        By when as much as possible was to have arrived.
    margin_s : float or None
        How long before windows close, and before the deadline, it is through with them.
    starts_at : str or None
        When it begins, as a clock time with its offset, where the problem does not say it for
        good: where its start was an hour of the day, or ``plan --start`` said another one.
    turns : Turns or None
        How the hosts of a direct plan take turns; None: all send at once.
    hysteresis : float or None
        How many times better than the best so far a route of best-path had to be.
    first : str or None
        What best-path compares its routes with first: ``"direct"`` or ``"relay"``.
    derate : float or None
        The part of all links' bandwidths that it was planned on; None: all of them.
    most_transfers : int or None
        So many transfers at once a host may send and receive; None: any number.
    connections : int or None
        So many connections at a time were to be shared out; None: one per hop of each route.
    hosts : tuple of str
        All hosts of the problem; empty where that is not known, as of old files.
    cautious : bool
        Whether it was planned to lean on nothing, see `assumptions`.
    """

    @property
    def gap(self) -> float:
        """By what part the makespan exceeds the lower bound: chunks, slots, or a slower method."""
        if self.lower_bound_s <= 0:
            return 0.0
        return max(0.0, self.makespan_s / self.lower_bound_s - 1.0)

    @cached_property
    def assumptions(self) -> Assumptions | None:
        """Return what it counts on that nobody has shown of hosts; None where that is not known.

        A plan that leans on a host is planned again, once, when this is first asked for: by what
        was shown. Schedules from files do not know their problems: `explain` tells it of them.
        """
        find = vars(self).get(_FINDS_ASSUMPTIONS)
        return None if find is None else find(self)

    def finds_assumptions_by(self, find: Callable[[Schedule], Assumptions] | None) -> None:
        """Have a method say what finds the assumptions; who only uses schedules need not.

        Parameters
        ----------
        find : callable or None
            Asked once, with this schedule, when its `assumptions` are first read; None: they stay
            unknown.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> schedule = dc.direct(problem)
        >>> schedule.finds_assumptions_by(None)
        >>> schedule.assumptions is None
        True
        """
        vars(self)[_FINDS_ASSUMPTIONS] = find

    def as_method(self, name: str) -> Schedule:
        """Return the same plan under the name of a method, which knows its assumptions, too.

        Parameters
        ----------
        name : str
            The method's name, such as ``"direct"``.

        Returns
        -------
        Schedule

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> dc.direct(problem).as_method("mine").method
        'mine'
        """
        other = self.replace(method=name)
        other.finds_assumptions_by(vars(self).get(_FINDS_ASSUMPTIONS))
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return what other processes get: without what finds the assumptions, and its problem."""
        return {key: value for key, value in vars(self).items() if key != _FINDS_ASSUMPTIONS}

    @property
    def n_transfers(self) -> int:
        """Number of transfers."""
        return len(self.columns)

    @property
    def n_routes(self) -> int:
        """Number of routes in use: a source and the hosts that its data pass."""
        return len(self.routes)

    @property
    def transfers(self) -> pd.DataFrame:
        """The transfers as a table, a row each, sorted by start.

        Columns: source, route (tuple of names), hop, from, to, offset_bytes, bytes, start_s,
        finish_s, streams. The caller's own: what is written to it does not change the schedule.
        """
        # Copied when it is written to (pandas' copy on write), so that reading costs nothing.
        return self._transfers.copy(deep=False)

    @cached_property
    def _transfers(self) -> pd.DataFrame:
        from datacollect.schedule.data.use import transfers

        return transfers(self)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the transfers as a table: the same as the attribute `transfers`.

        Returns
        -------
        DataFrame
            A row per transfer, sorted by start: source, route (tuple of names), hop, from, to,
            offset_bytes, bytes, start_s, finish_s, streams.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.direct(problem).to_dataframe()[["from", "to", "bytes"]].to_dict("records")
        [{'from': 'S', 'to': 'D', 'bytes': 10}]
        """
        return self.transfers

    def check(self, problem: Problem) -> None:
        """Prove that the schedule is valid, from first principles.

        Parameters
        ----------
        problem : Problem
            What it was planned for, or any other problem, such as one with other bandwidths.

        Raises
        ------
        ScheduleError
            The first broken rule: what, where, when and by how much.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> plan = dc.direct(problem)
        >>> plan.check(problem)
        >>> plan.check(dc.perturb(problem, 0.5))
        Traceback (most recent call last):
        datacollect.errors.ScheduleError: link 'S' -> 'D': ...
        """
        from datacollect.schedule.check.judge import check_schedule

        check_schedule(problem, self)

    @property
    def peak_storage_bytes(self) -> dict[str, int]:
        """Most bytes of others' data at each host that stores any, chunks in flight included."""
        return dict(self._peak_storage_bytes)

    @cached_property
    def _peak_storage_bytes(self) -> dict[str, int]:
        from datacollect.schedule.data.use import peak_storage_bytes

        return peak_storage_bytes(self)

    def storage(self) -> pd.DataFrame:
        """Return others' data at each host over time.

        Returns
        -------
        DataFrame
            Columns host, time_s, stored_bytes; between two rows of a host the amount changes
            linearly.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(
        ...     ["S", "K", "D"], [[0, 5.0, 0], [0, 0, 5.0], [0, 0, 0]], [10, 0, 0], "D"
        ... )
        >>> float(dc.coordinated(problem, slot_s=1.0).storage()["stored_bytes"].max())
        5.0
        """
        from datacollect.schedule.data.use import storage

        return storage(self)

    def link_use(self) -> pd.DataFrame:
        """Return the rate on each used link over time.

        Returns
        -------
        DataFrame
            Columns from, to, start_s, finish_s, bytes_per_s: a row for each stretch of constant
            rate.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.direct(problem).link_use().to_dict("records")
        [{'from': 'S', 'to': 'D', 'start_s': 0.0, 'finish_s': 2.0, 'bytes_per_s': 5.0}]
        """
        from datacollect.schedule.data.use import link_use

        return link_use(self)

    def source_completion_s(self) -> dict[str, float]:
        """Return when the last byte of each source reaches the destination.

        Returns
        -------
        dict of str to float
            Seconds from time 0, by the source's name.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.direct(problem).source_completion_s()
        {'S': 2.0}
        """
        from datacollect.schedule.data.use import source_completion_s

        return source_completion_s(self)

    def pulls(
        self, host: str | None = None, *, manifest: Mapping[str, Files] | None = None
    ) -> pd.DataFrame:
        """Return what a host, or every host, has to request.

        Parameters
        ----------
        host : str, optional
            The receiver; all receivers if left out. A host of the problem that has nothing to
            request gets a table without rows.
        manifest : mapping of str to Files, optional
            The files of each source: a problem's ``manifest``.

        Returns
        -------
        DataFrame
            A row per transfer, sorted by host and start: host (the receiver), request_from,
            source, offset_bytes, bytes, start_s, finish_s, rate_bytes_per_s, streams, slot and
            n_slots (missing where the schedule has no slots), forward_to (the next host; None at
            the destination), route (tuple of names). With a manifest also files: the parts of
            files that the range is, each a dict of path, offset_bytes (within the file) and bytes.

        Raises
        ------
        ProblemError
            The host is unknown.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.direct(problem).pulls("D")[["request_from", "bytes", "rate_bytes_per_s"]]
          request_from  bytes  rate_bytes_per_s
        0            S     10               5.0
        """
        from datacollect.schedule.pulls import pull_list

        return pull_list(self, host, manifest=manifest)

    def to_dict(self) -> dict[str, Any]:
        """Return the tree of a schedule file, which `from_dict` reads.

        Returns
        -------
        dict
            What JSON can say.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> tree = dc.direct(problem).to_dict()
        >>> tree["format"], tree["transfers"][0]["bytes"]
        ('datacollect-schedule/1', 10)
        """
        from datacollect.schedule.file import tree_of

        return tree_of(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Schedule:
        """Build a schedule from the tree of a schedule file.

        Parameters
        ----------
        tree : mapping
            What `to_dict` returns.

        Returns
        -------
        Schedule

        Raises
        ------
        ProblemError
            Malformed. A well-formed schedule that breaks a rule is found by `check`.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> plan = dc.direct(problem)
        >>> dc.Schedule.from_dict(plan.to_dict()) == plan
        True
        """
        from datacollect.schedule.file import contents_of

        return cls(**vars(contents_of(tree)))

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write JSON, or Parquet where the name ends in ``.parquet``; complete or not at all.

        Parameters
        ----------
        path : path-like
            What is there is overwritten.

        Raises
        ------
        ProblemError
            It cannot be written there.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dc.direct(problem).to_file(f"{folder}/plan.json")
        ...     dc.Schedule.from_file(f"{folder}/plan.json").makespan_s
        2.0
        """
        from datacollect.schedule.file import write

        write(self, path)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Schedule:
        """Read what `to_file` wrote.

        Parameters
        ----------
        path : path-like
            JSON, or Parquet where the name ends in ``.parquet``; ``-`` reads JSON from standard
            input.

        Returns
        -------
        Schedule

        Raises
        ------
        ProblemError
            The message names file, place, rule, value and remedy.

        Examples
        --------
        >>> import datacollect as dc
        >>> dc.Schedule.from_file("nowhere.json")
        Traceback (most recent call last):
        datacollect.errors.ProblemError: nowhere.json: no such file; check the path
        """
        from datacollect.schedule.file import read_tree_of

        return SCHEDULE.from_file(path, lambda tree, _: cls.from_dict(tree), read_tree_of)

    def replace(self, **changes: Unpack[ScheduleChanges]) -> Schedule:
        """Return a copy with other values for some attributes.

        Parameters
        ----------
        **changes
            New values by the attributes' names, with the attributes' units; or texts with
            their own. Nothing else is checked: that is what `check` is for.

        Returns
        -------
        Schedule

        Raises
        ------
        ProblemError
            A text is no time.
        TypeError
            There is no such attribute; the message suggests the nearest.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.direct(problem).replace(method="by hand").method
        'by hand'
        """
        known = {attribute.name for attribute in fields(self)}
        for name in changes.keys() - known:
            raise TypeError(f"a Schedule has no attribute {name!r}{nearest_hint(name, known)}")
        return replace(self, **values_in_units(changes, _COUNTED))

    def __eq__(self, other: object) -> bool:
        """Tell whether another schedule says the same; how long planning took does not count.

        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> plan = dc.direct(problem)
        >>> plan == dc.direct(problem), plan == plan.replace(makespan_s=3.0)
        (True, False)
        """
        if not isinstance(other, Schedule):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        names = {each.name for each in fields(self)} - {"plan_time_s"}
        return all(mine[name] == theirs[name] for name in names)

    def __hash__(self) -> int:
        return hash((self.method, self.destination, self.makespan_s, self.problem_sha256))

    def plot(self, problem: Problem) -> Figure:
        """Draw who sends and receives what, and when.

        It is the picture of `datacollect.pictures.plot.plot_schedule`.

        Parameters
        ----------
        problem : Problem
            Of this schedule.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ProblemError
            The schedule does not belong to the problem.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> figure = dc.direct(problem).plot(problem)
        >>> float(figure.get_figwidth())
        12.0
        """
        # This room knows no pictures; the package has them by name.
        from datacollect import plot_schedule

        return plot_schedule(problem, self)

    def _repr_html_(self) -> str:
        """Show the schedule in a notebook."""
        from datacollect.files.notebook import html_of_facts
        from datacollect.files.units import counted, format_duration

        return html_of_facts(
            f"Schedule to {self.destination}",
            [
                ("method", self.method),
                ("makespan", format_duration(self.makespan_s)),
                ("lower bound", format_duration(self.lower_bound_s)),
                ("routes", f"{self.n_routes}, in {counted(self.n_transfers, 'transfer')}"),
                ("status", self.status),
                ("binds", self.bottleneck.text),
            ],
        )

    def __repr__(self) -> str:
        from datacollect.files.units import counted

        return (
            f"<Schedule: {self.method}, makespan {self.makespan_s:g} s, "
            f"{counted(self.n_transfers, 'transfer')} on {counted(self.n_routes, 'route')}, "
            f"{self.status}>"
        )
