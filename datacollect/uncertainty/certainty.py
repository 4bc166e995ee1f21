"""Certainty of a plan: between which times it ends, where links carry what tests have found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datacollect.errors import ProblemError
from datacollect.files.stages import stage
from datacollect.files.units import counted, format_duration
from datacollect.files.with_units import in_whole
from datacollect.measurement.cycles import cycles_of, read_cycles
from datacollect.uncertainty.costs import Cost, costs_of
from datacollect.uncertainty.draws import draws_from
from datacollect.uncertainty.fixed_plan import FixedPlan
from datacollect.uncertainty.quantiles import quantile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pandas as pd

    from datacollect.measurement.cycles import Cycles
    from datacollect.numbers.arrays import FloatArray
    from datacollect.problem.problem import Problem
    from datacollect.schedule.schedule import Schedule
    from datacollect.uncertainty.draws import Draws, Origin

N_SCENARIOS = 200

# The next of n + 1 is beyond all the others in 2 of n + 1: less than one in five, as of p10 to p90.
FEW_CYCLES = 9


@dataclass(frozen=True, eq=False)
class Certainty:
    """Certainty of a plan that is carried out as it is.

    Attributes
    ----------
    method : str
    makespan_s : float
        What the plan promises, in seconds.
    p10_s, p50_s, p90_s : float or None
        It ends sooner in one of ten scenarios, in half, in nine of ten; infinite where the data
        never arrive, None where nothing says how much bandwidths vary.
    makespans_s : ndarray of float, shape (n_scenarios,)
        In each scenario; infinite where some data never arrive.
    origin : {"cycles", "intervals"}
        What scenarios were drawn from.
    n_cycles : int
        Of how many cycles of tests; 0 for intervals.
    seed : int
    costs : tuple of Cost
        What costs most certainty, the most first; none unless asked for.
    notes : tuple of str
        What was left out, and what is to be known of the rest.
    """

    method: str
    makespan_s: float
    p10_s: float | None
    p50_s: float | None
    p90_s: float | None
    makespans_s: FloatArray
    origin: Origin
    n_cycles: int
    seed: int
    costs: tuple[Cost, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_scenarios(self) -> int:
        """Return how many scenarios were drawn."""
        return len(self.makespans_s)

    @property
    def n_never(self) -> int:
        """In how many scenarios some data never arrive."""
        return int(np.isinf(self.makespans_s).sum())

    @property
    def text(self) -> str:
        """It in a sentence."""
        if self.p10_s is None or self.p50_s is None or self.p90_s is None:
            return (
                "no interval: one cycle of tests says nothing about how much bandwidths vary; "
                "measure another cycle."
            )
        low, middle, high = map(format_duration, (self.p10_s, self.p50_s, self.p90_s))
        whence = "the problem's intervals"
        if self.origin == "cycles":
            whence = counted(self.n_cycles, "cycle")
        text = (
            f"from {low} (p10) to {high} (p90) in 8 of 10 scenarios, {middle} in the middle; "
            f"{self.n_scenarios} drawn from {whence}"
        )
        if self.n_never:
            text += f"; in {self.n_never} of them some data never arrive"
        return f"{text}."

    def __repr__(self) -> str:
        said = [
            f"{name} {value:g} s" if value is not None else f"{name} not known"
            for name, value in (("p10", self.p10_s), ("p50", self.p50_s), ("p90", self.p90_s))
        ]
        return (
            f"<Certainty: {self.method} {self.makespan_s:g} s, {', '.join(said)}, "
            f"{self.n_scenarios} scenarios>"
        )

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        from datacollect.files.notebook import html_of_facts

        facts = [("promised", format_duration(self.makespan_s)), ("certainty", self.text)]
        facts += [(cost.kind, cost.text) for cost in self.costs]
        return html_of_facts("Certainty", [*facts, *(("note", text) for text in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that programs read: null for what never ends, or is not known.

        Returns
        -------
        dict
            The quantiles, what they were drawn from, how often nothing arrives, ``costs``, notes.

        Examples
        --------
        >>> import datacollect as dc
        >>> import pandas as pd
        >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
        >>> samples = pd.DataFrame({"from": "S", "to": "D", "time_s": [0, 1]})
        >>> samples["bandwidth_bytes_per_s"] = [4.0, 5.0]
        >>> dc.certainty(problem, dc.direct(problem), samples).to_dict()["p90_s"]
        5.0
        """
        return {
            "method": self.method,
            "makespan_s": self.makespan_s,
            **{f"{name}_s": _finite(getattr(self, f"{name}_s")) for name in ("p10", "p50", "p90")},
            "n_scenarios": self.n_scenarios,
            "n_never": self.n_never,
            "from": self.origin,
            "n_cycles": self.n_cycles,
            "seed": self.seed,
            "costs": [cost.to_dict() for cost in self.costs],
            "notes": list(self.notes),
        }


def certainty(
    problem: Problem,
    plan: Schedule,
    samples: str | PathLike[str] | pd.DataFrame | None = None,
    *,
    scenarios: int = N_SCENARIOS,
    seed: int = 0,
    costs: bool = False,
) -> Certainty:
    """Say between which times a plan ends, where links carry what tests have found.

    Scenarios are whole cycles of tests, so that links that are slow together stay so; a link that a
    cycle has not tested is as in another one. The plan is carried out as it is, with its routes and
    the bytes on each: a pull that plans again on its way ends sooner.

    Parameters
    ----------
    problem : Problem
        For which the plan was made.
    plan : Schedule
    samples : path-like or DataFrame, optional
        A folder that tests have written into, files that `read_samples` reads, or samples: columns
        from, to, time_s and bandwidth_bytes_per_s. Without them scenarios are drawn, link by link,
        from the intervals of the problem (``bandwidth_low_bytes_per_s``).
    scenarios : int
        How many, at least 1.
    seed : int
        The same seed gives the same scenarios.
    costs : bool
        Whether to look for the links, hosts and assumptions that cost most certainty.

    Returns
    -------
    Certainty

    Raises
    ------
    ProblemError
        Samples are of no link of the problem, or there are neither samples nor intervals.

    Examples
    --------
    20 bytes over a link that carried 4 bytes per second in one cycle, and 5 in the other:

    >>> import datacollect as dc
    >>> import pandas as pd
    >>> problem = dc.Problem.from_matrix(["S", "D"], [[0, 5.0], [0, 0]], [20, 0], "D")
    >>> samples = pd.DataFrame({"from": "S", "to": "D", "time_s": [0, 3600]})
    >>> samples["bandwidth_bytes_per_s"] = [4.0, 5.0]
    >>> found = dc.certainty(problem, dc.direct(problem), samples)
    >>> found.makespan_s, found.p10_s, found.p50_s, found.p90_s
    (4.0, 4.0, 4.5, 5.0)
    """
    plans = {plan.method: plan}
    drawn = draws_for(problem, plans, cycles_from(samples), scenarios=scenarios, seed=seed)
    fixed = FixedPlan(problem, plan)
    found = certainty_of(plan, fixed, drawn, seed)
    if costs and found.p90_s is not None:
        with stage("what costs most certainty"):
            found = replace(found, costs=costs_of(problem, plan, fixed, drawn, found.makespans_s))
    return found


def cycles_from(samples: str | PathLike[str] | pd.DataFrame | None) -> Cycles | None:
    """Return the cycles of a folder, of files or of samples; None where nothing is given."""
    import pandas as pd

    if samples is None:
        return None
    return cycles_of(samples) if isinstance(samples, pd.DataFrame) else read_cycles(samples)


def draws_for(
    problem: Problem,
    plans: Mapping[str, Schedule],
    cycles: Cycles | None,
    *,
    scenarios: int,
    seed: int,
) -> Draws:
    """Return scenarios for all links that some plans use: each plan meets the same ones.

    Raises
    ------
    ProblemError
        As `certainty`.
    """
    scenarios, seed = in_whole(scenarios, "scenarios"), in_whole(seed, "seed")
    if scenarios < 1:
        raise ProblemError(f"scenarios must be >= 1, got {scenarios}")
    links = [FixedPlan(problem, plan).links for plan in plans.values()]
    used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *links]))
    return draws_from(problem, used, cycles, scenarios, seed)


def certainty_of(plan: Schedule, fixed: FixedPlan, draws: Draws, seed: int) -> Certainty:
    """Return the certainty of a plan in scenarios."""
    with stage(f"carrying {plan.method} out in {draws.n} scenarios"):
        makespans_s = fixed.makespans_s(draws.links, draws.factors)
    knows = draws.n_cycles != 1
    p10_s, p50_s, p90_s = (
        quantile(makespans_s, part) if knows else None for part in (0.1, 0.5, 0.9)
    )
    notes = draws.notes
    if 1 < draws.n_cycles < FEW_CYCLES:
        most = 2 / (draws.n_cycles + 1)
        few = (
            f"of {draws.n_cycles} cycles the next one lies outside all of them in {most:.0%} of "
            f"cases: measure {FEW_CYCLES} or more"
        )
        notes = (*notes, few)
    return Certainty(
        plan.method,
        plan.makespan_s,
        p10_s,
        p50_s,
        p90_s,
        makespans_s,
        draws.origin,
        draws.n_cycles,
        seed,
        notes=notes,
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


# Several plans --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ComparedCertainty:
    """Certainty of several plans, in the same scenarios.

    Attributes
    ----------
    by_method : mapping of str to Certainty
    wins : mapping of str to float
        In which part of the scenarios no other ends sooner, by more than 0.1 %: methods that end
        together all win.
    """

    by_method: Mapping[str, Certainty]
    wins: Mapping[str, float]


# Plans that end within this part of each other end together.
TOGETHER = 1e-3


def compared(
    problem: Problem,
    plans: Mapping[str, Schedule],
    cycles: Cycles | None,
    *,
    scenarios: int = N_SCENARIOS,
    seed: int = 0,
) -> ComparedCertainty:
    """Carry several plans for a problem out in the same scenarios.

    Raises
    ------
    ProblemError
        As `certainty`.
    """
    drawn = draws_for(problem, plans, cycles, scenarios=scenarios, seed=seed)
    found = {
        name: certainty_of(plan, FixedPlan(problem, plan), drawn, seed)
        for name, plan in plans.items()
    }
    if not found or drawn.n_cycles == 1:
        return ComparedCertainty(found, {})
    soonest = np.minimum.reduce([one.makespans_s for one in found.values()])
    wins = {
        name: float(
            (np.isfinite(one.makespans_s) & (one.makespans_s <= (1 + TOGETHER) * soonest)).mean()
        )
        for name, one in found.items()
    }
    return ComparedCertainty(found, wins)
