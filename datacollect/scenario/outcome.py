"""Outcome of a scenario: the run, and all that led to it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from datacollect.installation import installed_version
from datacollect.schedule.summary import summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.methods.prediction import Prediction
    from datacollect.problem.problem import Problem
    from datacollect.scenario.probe_cache import Measurement
    from datacollect.scenario.setting import Setting
    from datacollect.schedule.schedule import Schedule
    from datacollect.simulation.run import Run


@dataclass(frozen=True)
class Replanning:
    """Number of replannings, and what came of them.

    Attributes
    ----------
    replans : int
    at_s : list of float
        When.
    predicted_end_s : list of float
        When each new schedule promised to end.
    connections_opened : int
        In the whole run.
    """

    replans: int
    at_s: list[float]
    predicted_end_s: list[float]
    connections_opened: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run, and what led to it.

    Attributes
    ----------
    simulated : Run
        As the engine returned it, with the engine's settings only.
    setting : Setting
    problem : Problem
        What the planner knew.
    schedule : Schedule
        What it planned.
    measurement : Measurement or None
        Where estimates were measured.
    connections : int
        How many connections carried it out; where the remainder was planned again, how many
        there were at most at a time.
    predicted_s : float or None
        What the schedule promises; None where nobody knew links when it was made.
    replanning : Replanning or None
        Where the remainder was to be planned again.
    prediction : Prediction or None
        When it was to end, with a range, from what was known before; None where wires were not.
    """

    simulated: Run
    setting: Setting
    problem: Problem
    schedule: Schedule
    measurement: Measurement | None
    connections: int
    predicted_s: float | None
    replanning: Replanning | None
    prediction: Prediction | None = None

    @cached_property
    def run(self) -> Run:
        """The run; its `settings` hold all that shaped it, as a plain tree."""
        return replace(self.simulated, settings=self._settings())

    def _settings(self) -> dict[str, Any]:
        """The one place where what led to a run becomes the settings that users see."""
        scenario, engine = self.setting.scenario, self.simulated.engine
        return {
            "scenario": scenario.to_dict(),
            "scenario_sha256": scenario.sha256,
            "engine": engine,
            "drawn": dict(self.setting.facts),
            "warnings": list(self.setting.warnings),
            "predicted_makespan_s": self.predicted_s,
            "plan": summary(self.schedule),
            "prediction": None if self.prediction is None else self.prediction._asdict(),
            "connections": self.connections,
            "replanning": None if self.replanning is None else asdict(self.replanning),
            "problem_sha256": self.problem.sha256,
            "measurement": None if self.measurement is None else self.measurement.cost,
            f"{engine}_settings": self.simulated.settings,
            "versions": dict(versions()),
        }


def replanning_of(simulated: Run) -> Replanning:
    """Return what the controller says of replanning, and how many connections that took."""
    said = simulated.settings["controller"]
    found = {key: said[key] for key in ("replans", "at_s", "predicted_end_s")}
    return Replanning(**found, connections_opened=len(simulated.connections))


def most_connections(simulated: Run) -> int:
    """Return how many connections there were at most at a time, as far as who decides knew.

    Where its messages take time, a connection counts from the decision to open it until its end is
    known; else as the log has it.
    """
    most: int | None = simulated.settings["controller"].get("most_connections")
    return most_open_at_once(simulated.connections) if most is None else most


def most_open_at_once(connections: pd.DataFrame) -> int:
    """Return how many connections of a run's log there were at most at a time.

    From when they were asked for until they were closed; what closes at an instant goes before
    what opens. A chain counts its hops.

    >>> import pandas as pd
    >>> log = {"asked_s": [0.0, 0.0, 5.0], "closed_s": [5.0, float("nan"), float("nan")]}
    >>> most_open_at_once(pd.DataFrame({**log, "hops": [1, 2, 1]}))
    3
    """
    hops = connections["hops"].tolist()
    changes = list(zip(connections["asked_s"].tolist(), hops, strict=True))
    closed = zip(connections["closed_s"].tolist(), hops, strict=True)
    changes += [(time_s, -n) for time_s, n in closed if not math.isnan(time_s)]
    return max(accumulate(change for _, change in sorted(changes)), default=0)


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of what shapes a run, as far as it is installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    ours = installed_version()
    if ours is not None:
        found["datacollect"] = ours
    for package in ("numpy", "ns3"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
