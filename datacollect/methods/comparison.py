"""All methods side by side, with the lower bound and what binds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import InfeasibleError
from datacollect.files.stages import counting, stage
from datacollect.files.with_units import DURATION, in_units
from datacollect.flow.optimum import listed_optimum
from datacollect.methods.best_path_spec import HYSTERESIS
from datacollect.methods.choice import plan, planners
from datacollect.methods.options.arguments import shape_in_seconds
from datacollect.methods.options.names import COORDINATED, DIRECT, EARLY, VIA_DIRECT
from datacollect.schedule.data.transfers import bottleneck_tree
from datacollect.schedule.summary import SUMMARY_KEYS, assumptions_tree, summary
from datacollect.solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.files.choices import Finish, First
    from datacollect.files.quantities import Seconds
    from datacollect.problem.problem import Problem
    from datacollect.schedule.data.transfers import Bottleneck
    from datacollect.schedule.schedule import Schedule
    from datacollect.solvers.registry import Solver


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of `compare`.

    Attributes
    ----------
    lower_bound_s : float
        The earliest instant, in seconds, by which all can have arrived.
    bottleneck : Bottleneck
        What forbids an earlier one.
    schedules : dict of str to Schedule
        By method: direct, best-path, coordinated, and those of other packages.
    errors : dict of str to str
        Why a method has no schedule.
    """

    lower_bound_s: float
    bottleneck: Bottleneck
    schedules: Mapping[str, Schedule]
    errors: Mapping[str, str]

    @property
    def table(self) -> pd.DataFrame:
        """A row per method that has a schedule: makespan, ratios, routes, storage, time."""
        import pandas as pd

        return pd.DataFrame(
            {
                "makespan_s": schedule.makespan_s,
                "over_lower_bound": _ratio(schedule.makespan_s, self.lower_bound_s),
                "n_routes": schedule.n_routes,
                "n_transfers": schedule.n_transfers,
                "peak_storage_bytes": max(schedule.peak_storage_bytes.values(), default=0),
                "plan_time_s": schedule.plan_time_s,
            }
            for schedule in self.schedules.values()
        ).set_axis(pd.Index(list(self.schedules), name="method"))

    def to_dataframe(self) -> pd.DataFrame:
        """Return the methods as a table: the same as the attribute `table`.

        Returns
        -------
        DataFrame
            A row per method that has a schedule, which is the index: makespan_s, over_lower_bound,
            n_routes, n_transfers, peak_storage_bytes, plan_time_s.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.compare(problem).to_dataframe()["makespan_s"].to_dict()
        {'direct': 2.0, 'best-path': 2.0, 'coordinated': 2.0}
        """
        return self.table

    @property
    def advised(self) -> Schedule | None:
        """The plan about which advice may be given: none where direct, the alternative, failed."""
        return None if DIRECT in self.errors else self.schedules.get(COORDINATED)

    def __eq__(self, other: object) -> bool:
        """Tell whether another comparison found the same; planning times do not count.

        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.compare(problem) == dc.compare(problem)
        True
        """
        if not isinstance(other, Comparison):
            return NotImplemented
        return (self.lower_bound_s, self.bottleneck) == (
            other.lower_bound_s,
            other.bottleneck,
        ) and (dict(self.schedules), dict(self.errors)) == (
            dict(other.schedules),
            dict(other.errors),
        )

    def __hash__(self) -> int:
        return hash((self.lower_bound_s, self.bottleneck, *self.schedules.values()))

    def __repr__(self) -> str:
        found = [f"{name} {plan.makespan_s:g} s" for name, plan in self.schedules.items()]
        found += [f"{name} none" for name in self.errors]
        return f"<Comparison: {', '.join(found)}, lower bound {self.lower_bound_s:g} s>"

    def _repr_html_(self) -> str:
        """Show the comparison in a notebook."""
        from datacollect.files.notebook import html_of_rows
        from datacollect.files.units import format_duration

        rows = [
            [
                name,
                format_duration(schedule.makespan_s),
                f"{_ratio(schedule.makespan_s, self.lower_bound_s):.3f}",
                str(schedule.n_routes),
            ]
            for name, schedule in self.schedules.items()
        ]
        rows += [[name, reason, "", ""] for name, reason in self.errors.items()]
        rows.append(["lower bound", format_duration(self.lower_bound_s), "1.000", ""])
        return html_of_rows(self.bottleneck.text, ("method", "makespan", "× bound", "routes"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``datacollect compare --json`` prints.

        Returns
        -------
        dict
            ``lower_bound_s``, ``bottleneck`` and ``methods``: from names to what `plan` prints of
            each.

        Examples
        --------
        >>> import datacollect as dc
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [10, 0], "D")
        >>> dc.compare(problem).to_dict()["methods"]["direct"]["makespan_s"]
        2.0
        """
        methods: dict[str, Any] = {
            name: {**summary(plan), "assumptions": assumptions_tree(plan)}
            for name, plan in self.schedules.items()
        }
        keys = (*SUMMARY_KEYS, "assumptions")
        for name, reason in self.errors.items():
            methods[name] = dict.fromkeys(keys) | {"method": name, "error": reason}
        return {
            "lower_bound_s": self.lower_bound_s,
            "bottleneck": bottleneck_tree(self.bottleneck),
            "methods": methods,
        }


def compare(
    problem: Problem,
    *,
    slot_s: Seconds | None = None,
    chunk_s: Seconds | None = None,
    finish: Finish = EARLY,
    solver: Solver = "auto",
    time_limit_s: Seconds | None = None,
    derate: float = 1.0,
    hysteresis: float = HYSTERESIS,
    first: First = VIA_DIRECT,
    cautious: bool = False,
) -> Comparison:
    """Plan with every method.

    Parameters
    ----------
    problem : Problem
    slot_s : float or str, optional
        Store and forward in slots of this many seconds, or of a time such as ``"5 min"``; without
        it, plans are pipelined.
    chunk_s : float or str, optional
        Pipelined: a relay forwards what it received this long ago, in seconds or a text; default:
        1/1000 of the lower bound, or less where bandwidths change often. Both shape relayed routes
        of best-path too, and mean nothing to direct.
    finish : {"early", "together"}
        Of coordinated: sources that do not bind finish as early as capacities allow, or with the
        last.
    solver : str
        Who solves flows and linear programs; auto takes the fastest that is installed.
    time_limit_s : float or str, optional
        Stop the coordinated method after this many seconds, or after a time such as ``"1 h"``.
    derate : float
        Plan on this part of all links' bandwidths, above 0 and at most 1, by every method.
    hysteresis : float
        Of best-path, at least 1: a route replaces the best so far if it has more than this many
        times its bandwidth.
    first : {"direct", "relay"}
        Of best-path: what routes are compared with first.
    cautious : bool
        Of coordinated and best-path: have no host send or receive more at once than was shown of
        it, or than direct has it do.

    Returns
    -------
    Comparison
        Methods that have no plan are named in its ``errors``.

    Raises
    ------
    InfeasibleError
        Some data cannot reach the destination by any method.
    ProblemError
        An argument is out of range.
    TimeLimitError
        Nothing was complete when the time limit passed.

    Examples
    --------
    >>> import datacollect as dc
    >>> problem = dc.Problem.from_matrix(
    ...     ["S", "K", "D"], [[0, 1e6, 1e6], [0, 0, 1e6], [0, 0, 0]], [4_000_000, 0, 0], "D"
    ... )
    >>> dc.compare(problem).table["makespan_s"].round(2).to_dict()
    {'direct': 4.0, 'best-path': 4.0, 'coordinated': 2.0}
    """
    slot_s, chunk_s = shape_in_seconds(slot_s, chunk_s)
    time_limit_s = in_units(time_limit_s, DURATION, "time_limit_s")
    with stage("the lower bound"):
        problem, optimum = listed_optimum(problem, Budget.begin(solver, time_limit_s))
    given = {
        "slot_s": slot_s,
        "chunk_s": chunk_s,
        "finish": finish,
        "solver": solver,
        "time_limit_s": time_limit_s,
        "derate": derate,
        "hysteresis": hysteresis,
        "first": first,
        "cautious": cautious,
    }
    methods, schedules, errors = planners(), {}, {}
    with counting(len(methods), "methods") as step:
        for method in methods:
            try:
                schedules[method.name] = plan(problem, method.asked(given))
            except InfeasibleError as error:
                errors[method.name] = str(error)
            step()
    return Comparison(optimum.makespan_s, optimum.bottleneck, schedules, errors)


def _ratio(value: float, reference: float) -> float:
    return value / reference if reference > 0 else math.nan if value > 0 else 1.0
