"""Specification of `datacollect.methods.best_path`: its arguments and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.kinds import Choice, Number
from datacollect.methods.options.names import BEST_PATH, FIRSTS, VIA_DIRECT
from datacollect.methods.options.option import MethodOptions, Option, option
from datacollect.methods.options.shared import CAUTIOUS, CHUNK_S, DERATE, SLOT_S, SOLVER
from datacollect.methods.options.spec import MethodSpec

if TYPE_CHECKING:
    from datacollect.files.choices import First
    from datacollect.solvers.registry import Solver

# A route replaces the best so far if it has more than this times its bandwidth.
HYSTERESIS = 1.05


@dataclass(frozen=True, kw_only=True)
class BestPathOptions(MethodOptions):
    """Options of `datacollect.methods.best_path.best_path`, which says what they mean."""

    method = BEST_PATH

    slot_s: float | None = option(SLOT_S)
    chunk_s: float | None = option(CHUNK_S)
    solver: Solver = option(SOLVER, "auto")
    hysteresis: float = option(
        Option(
            Number(positive=True),
            "best-path: a route replaces the best so far if it has more than X times its "
            f"bandwidth. Default: {HYSTERESIS}.",
            recorded="hysteresis",
        ),
        HYSTERESIS,
    )
    first: First = option(
        Option(
            Choice(FIRSTS),
            "best-path: compare routes with the direct one first, or with the best that has a "
            "relay. Default: direct.",
            recorded="first",
        ),
        VIA_DIRECT,
    )
    derate: float = option(DERATE, 1.0)
    cautious: bool = option(CAUTIOUS, False)


BEST_PATH_METHOD = MethodSpec(
    BEST_PATH,
    BestPathOptions,
    "datacollect.methods.best_path:best_path",
    "datacollect.methods.best_path:best_path_candidate",
    exceeds=("sharing", "shape"),
    is_max_min_fair=True,
    compares_direct_links=True,
)
