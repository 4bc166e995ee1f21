"""How long the rest takes to fetch: the plan on what is known of links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.formats.assignment.collecting import problem_of
from datacollect.errors import InfeasibleError
from datacollect.methods.coordinated.coordinated import coordinated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.problem.problem import Problem


def predicted_s(waiting: Iterable[tuple[bytes, str, int]], network: Problem | None) -> float | None:
    """Return how long the coordinated plan takes for what waits; None: nobody knows.

    Parameters
    ----------
    waiting : iterable of (bytes, str, int)
        Entries, the bistros that hold them, their bytes; an entry may be at several.
    network : Problem or None
        Hosts and links; a bistro that it does not name is left out.
    """
    if network is None:
        return None
    import pandas as pd

    receipts = pd.DataFrame(waiting, columns=["entry", "bistro", "bytes"]).assign(time_s=0.0)
    receipts = receipts[receipts["bistro"].isin(network.names)]
    if receipts.empty:
        return 0.0
    try:
        return coordinated(problem_of(receipts, network)).makespan_s
    except InfeasibleError:
        return None
