"""Specification of the adaptive method, which follows no plan, but has a budget from one.

What carries them out is `datacollect.control.adaptive`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.methods.coordinated.spec import FINISH
from datacollect.methods.options.names import ADAPTIVE, COORDINATED, EARLY
from datacollect.methods.options.option import MethodOptions, option
from datacollect.methods.options.shared import CHUNK_S, DERATE, SLOT_S, SOLVER, TIME_LIMIT_S
from datacollect.methods.options.spec import IN_ALL, ControllerSpec, MethodSpec

if TYPE_CHECKING:
    from datacollect.files.choices import Finish
    from datacollect.solvers.registry import Solver


@dataclass(frozen=True, kw_only=True)
class AdaptiveOptions(MethodOptions):
    """Options of the coordinated plan that says how many connections there are."""

    method = ADAPTIVE

    slot_s: float | None = option(SLOT_S)
    chunk_s: float | None = option(CHUNK_S)
    solver: Solver = option(SOLVER, "auto")
    finish: Finish = option(FINISH, EARLY)
    time_limit_s: float | None = option(TIME_LIMIT_S)
    derate: float = option(
        replace(DERATE, not_in={"pull": "adaptive heeds what links bring, and follows no plan"}),
        1.0,
    )


# Connections move to where they bring most.
ADAPTIVE_CONTROLLER = ControllerSpec(
    "datacollect.methods.controllers.adaptive:make_adaptive", IN_ALL
)

ADAPTIVE_METHOD = MethodSpec(
    ADAPTIVE, AdaptiveOptions, plans_as=COORDINATED, controller=ADAPTIVE_CONTROLLER
)
