"""Planning options of scenarios and pulls: which method plans a collection, with which options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.methods.choice import METHODS
from datacollect.methods.options.names import COORDINATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.methods.options.option import MethodOptions


@dataclass(frozen=True)
class PlanningOptions:
    """The method, and what it is asked for: values by the names of options, None: not given.

    Values of options that another method has are of no account, so that scenarios may be carried
    out by several.
    """

    name: str = COORDINATED
    options: Mapping[str, Any] = field(default_factory=dict)

    def planning(self, name: str | None = None) -> MethodOptions:
        """Return the options of what plans for the method, or for another one.

        Raises
        ------
        ProblemError
            There is no such method.

        Examples
        --------
        >>> PlanningOptions(options={"first": "relay"}).planning("best-path").first
        'relay'
        """
        spec = METHODS.get(name or self.name)
        given = {name: value for name, value in self.options.items() if name in spec.takes}
        planner = METHODS.get(spec.plans_as or spec.name)
        # What was simulated once comes out again.
        return planner.asked({**given, "settle_ties": False})
