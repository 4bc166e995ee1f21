"""`front` at hostile scales: money is that of linear programs, and never grows with time."""

from __future__ import annotations

from itertools import pairwise

from judges.hostile_programs import EXACT, earliest_s, least_money, random_case

import datacollect as dc

SLACK = (0.1, 1.0)

# A plan takes all that fits until its deadline; the program a little more, or a little less.
NEARLY = 1e-6


def case(seed: int) -> str | None:
    """Compute one front; return what is wrong, None where nothing is."""
    found = random_case(seed, priced=True)
    problem = dc.Problem.from_dict(found.tree)
    expected_s = earliest_s(found)
    try:
        table = dc.front(problem, slack=SLACK)
    except dc.InfeasibleError:
        return None if expected_s is None else f"no way is found, but all arrives at {expected_s}"
    except dc.ProblemError as error:
        is_free = all(not link["price_per_gb"] for link in found.tree["links"])
        return None if is_free else f"refused: {error}"
    if expected_s is None:
        return "never arrives, but there is a front"
    if not found.total:
        return None
    money = table["money"].tolist()
    dearest = max(link["price_per_gb"] for link in found.tree["links"]) / 1e9
    # Plans move whole bytes: on each link, and so on each route, one more or less.
    free = EXACT * dearest * found.total + (len(found.tree["links"]) + 2) * dearest
    for slack, row in zip(SLACK, table.itertuples(), strict=False):
        end_s = expected_s * (1 + slack)
        if row.makespan_s > end_s * (1 + EXACT):
            return f"slack {slack}: ends at {row.makespan_s}, beyond {end_s}"
        least = least_money(found, end_s * (1 + NEARLY))
        lots = least_money(found, end_s * (1 - NEARLY))
        if least is None or lots is None:
            return f"slack {slack}: a program finds no way until {end_s}"
        if not least - free <= row.money <= lots + free:
            return f"slack {slack}: costs {row.money}, by programs {least} to {lots}"
    if any(later > before + free for before, later in pairwise(money)):
        return f"money grows with time: {money}"
    return None
