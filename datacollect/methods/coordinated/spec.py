"""Specification of `datacollect.methods.coordinated.coordinated`: its arguments and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from datacollect.files.choices import Preference
from datacollect.files.kinds import Choice, Flag, Instant, Number, Whole
from datacollect.methods.options.names import COORDINATED, EARLY, FINISHES
from datacollect.methods.options.option import MethodOptions, Option, option
from datacollect.methods.options.shared import (
    CAUTIOUS,
    CHUNK_S,
    DERATE,
    SLOT_S,
    SOLVER,
    TIME_LIMIT_S,
)
from datacollect.methods.options.spec import MethodSpec

if TYPE_CHECKING:
    from datacollect.files.choices import Finish
    from datacollect.solvers.registry import Solver


FINISH = Option(
    Choice(FINISHES),
    "coordinated: sources that do not bind finish as early as capacities allow, or together with "
    "the last. Default: early.",
    not_in={"pull": "a pull keeps no planned times: it sends whatever can be sent"},
)


@dataclass(frozen=True, kw_only=True)
class CoordinatedOptions(MethodOptions):
    """Options of `datacollect.methods.coordinated.coordinated`, which says what they mean."""

    method = COORDINATED

    slot_s: float | None = option(SLOT_S)
    chunk_s: float | None = option(CHUNK_S)
    solver: Solver = option(SOLVER, "auto")
    prefer: Preference | None = option(
        Option(
            Choice(get_args(Preference)),
            "coordinated: what to minimise among the fastest plans, or those in time. Default: "
            "relay-bytes; money with {deadline_s} where links have prices.",
            recorded="prefer",
            not_in={
                "compare": "compare shows how soon methods end, which stays the same; use it "
                "with plan"
            },
        )
    )
    deadline_s: float | None = option(
        Option(
            Instant(Number("seconds", positive=True)),
            "coordinated: the cheapest plan that ends in time, instead of the fastest: within so "
            'many seconds, "12 h", or, where the problem has a start, 2026-11-23T08:00 or 08:00.',
            recorded="deadline_s",
            not_in={
                "compare": "compare shows how soon methods end, not what later ends save; use it "
                "with plan",
                "pull": "a pull that falls behind would have no plan for the rest, as none ends "
                "in time",
            },
        )
    )
    most_by_s: float | None = option(
        Option(
            Instant(Number("seconds", positive=True)),
            "coordinated: among the fastest plans, one of which as much as possible has arrived "
            "by then; written as for {deadline_s}.",
            recorded="most_by_s",
            excludes=("deadline_s", "prefer", "slot_s", "most_transfers", "connections"),
            not_in={
                "compare": "compare shows how soon methods end; use it with plan",
                "pull": "a pull that falls behind would have no plan for the rest",
            },
        )
    )
    finish: Finish = option(FINISH, EARLY)
    time_limit_s: float | None = option(TIME_LIMIT_S)
    derate: float = option(DERATE, 1.0)
    cautious: bool = option(CAUTIOUS, False)
    most_transfers: int | None = option(
        Option(
            Whole(minimum=1),
            "coordinated: each host sends and receives at most N transfers at once.",
            recorded="most_transfers",
            not_in={
                "compare": "no other method keeps such a limit; use it with plan",
                "pull": "a pull keeps no times, and so no such limit; limits.connections bounds "
                "its connections",
            },
        )
    )
    connections: int | None = option(
        Option(
            Whole(minimum=1),
            "coordinated: share out N connections at a time, where they bring most.",
            recorded="connections",
            not_in={
                "compare": "no other method keeps such a limit; use it with plan",
                "scenario": "plans are carried out over method.lanes connections for each hop, "
                "whatever they say of it; the key is adaptive's",
                "pull": "limits.connections says how many there are",
            },
        )
    )
    keep_relayed: bool = option(
        Option(
            Flag(),
            "coordinated: relays delete nothing, as where scripts carry the plan out: no more "
            "passes each than its storage_bytes.",
            not_in={
                "compare": "no other method keeps such a limit; use it with plan",
                "scenario": "simulated relays delete what they have forwarded",
                "pull": "relays of a pull delete what they have forwarded",
            },
        ),
        False,
    )
    margin_s: float | None = option(
        Option(
            Number("seconds", positive=True),
            "coordinated: be done this long before windows close, and before {deadline_s}: scripts "
            "are later than their plan.",
            recorded="margin_s",
            excludes=("connections",),
            not_in={
                "compare": "compare shows how soon methods end; use it with plan",
                "scenario": "runs show what comes too late; use it with plan",
                "pull": "a pull keeps no times, and plans again where it falls behind",
            },
        )
    )
    settle_ties: bool = option(
        Option(
            Flag(),
            "Among plans of equal cost take the same one, whichever solver computes.",
            not_in={
                "plan": "plans that are given out are the same whichever solver computes",
                "compare": "plans that are given out are the same whichever solver computes",
                "scenario": "what was simulated once is to come out again, by the first plan that "
                "the solver finds",
                "pull": "a pull begins with the first plan that the solver finds",
            },
        ),
        True,
    )


COORDINATED_METHOD = MethodSpec(
    COORDINATED,
    CoordinatedOptions,
    "datacollect.methods.coordinated.coordinated:coordinated",
    "datacollect.methods.coordinated.coordinated:coordinated_candidate",
    replan="datacollect.methods.replanning.replan:replanned",
    exceeds=("shape",),
    attains_bound=True,
)
