"""A method: direct, on a part of all bandwidths, so that it takes so many times as long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.kinds import Number
from datacollect.methods.direct_spec import DIRECT_CONTROLLER
from datacollect.methods.options.option import MethodOptions, Option, option
from datacollect.methods.options.shared import SOLVER
from datacollect.methods.options.spec import MethodSpec

if TYPE_CHECKING:
    import datacollect as dc
    from datacollect.solvers.registry import Solver


def slowly(problem: dc.Problem, *, solver: Solver = "auto", times: float = 1.0) -> dc.Schedule:
    """Plan as `datacollect.direct` does, `times` as long."""
    import datacollect as dc

    return dc.direct(problem, solver=solver, derate=1 / times).replace(method="slowly")


@dataclass(frozen=True, kw_only=True)
class SlowlyOptions(MethodOptions):
    """Options of `slowly`."""

    method = "slowly"

    solver: Solver = option(SOLVER, "auto")
    times: float = option(Option(Number(positive=True), "slowly: X times as long."), 1.0)


SLOWLY = MethodSpec(
    "slowly",
    SlowlyOptions,
    slowly,
    controller=DIRECT_CONTROLLER,
    exceeds=("sharing",),
    is_max_min_fair=True,
    has_relays=False,
)
