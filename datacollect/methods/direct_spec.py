"""Specification of `datacollect.methods.direct`: its arguments and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.kinds import ListOf, Number, Text, Whole
from datacollect.methods.options.names import DIRECT
from datacollect.methods.options.option import MethodOptions, Option, Place, option
from datacollect.methods.options.shared import DERATE, SOLVER
from datacollect.methods.options.spec import PER_SOURCE, ControllerSpec, MethodSpec

if TYPE_CHECKING:
    from datacollect.solvers.registry import Solver

# Why turns make no sense where they cannot be given.
NO_TURNS: dict[Place, str] = {
    "compare": "compare shows how soon methods end, and turns only delay that; use it with plan",
    "pull": "all sources of a pull send at once; limits.connections bounds their connections",
}


@dataclass(frozen=True, kw_only=True)
class DirectOptions(MethodOptions):
    """Options of `datacollect.methods.direct.direct`, which says what they mean."""

    method = DIRECT

    solver: Solver = option(SOLVER, "auto")
    order: tuple[str, ...] | None = option(
        Option(
            ListOf(Text()),
            "direct: hosts in the order in which they send, one after another.",
            recorded="turns.order",
            not_in=NO_TURNS,
        )
    )
    at_a_time: int | None = option(
        Option(
            Whole(minimum=1),
            "direct: N hosts send at once.",
            recorded="turns.at_a_time",
            not_in=NO_TURNS,
        )
    )
    time_slot_s: float | None = option(
        Option(
            Number("seconds", positive=True),
            "direct, with {at_a_time}: hosts take turns of this length.",
            recorded="turns.time_slot_s",
            not_in=NO_TURNS,
            needs=("at_a_time", "how many hosts send in each"),
        )
    )
    derate: float = option(DERATE, 1.0)


# Each source sends over connections of its own, at rates that transport decides.
DIRECT_CONTROLLER = ControllerSpec("datacollect.methods.controllers.direct:make_direct", PER_SOURCE)

DIRECT_METHOD = MethodSpec(
    DIRECT,
    DirectOptions,
    "datacollect.methods.direct:direct",
    "datacollect.methods.direct:direct_candidate",
    controller=DIRECT_CONTROLLER,
    exceeds=("sharing", "turns"),
    is_max_min_fair=True,
    has_relays=False,
)
