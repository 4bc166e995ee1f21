"""Curves of links in problem files: how a rate grows with connections, as measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_store import DONE, settings_of
from datacollect.measuring.operator.curve_tests import CURVE
from datacollect.measuring.probes.connection_curve import link_rates
from datacollect.problem.bandwidth_intervals import HIGH, LOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair


def with_curves(tree: dict[str, Any], table: pd.DataFrame) -> tuple[dict[str, Any], list[str]]:
    """Return the tree of a problem file whose links have the newest of their curves, and notes.

    A link with a curve has as its bandwidth what the curve says of one connection: problem files
    want the numbers of a link to agree. Where its bandwidth changes by the hour, there is none.

    Parameters
    ----------
    tree : dict
        As `datacollect.measuring.results.measured_problem.measured_problem` returns it.
    table : DataFrame
        Tests that count, as `datacollect.measurement.sample_store.read_parts` reads them.
    """
    curves, links, changing = _newest(table), [], []
    for link in tree["links"]:
        rates = curves.get((link["from"], link["to"]))
        if rates is None:
            links.append(link)
        elif isinstance(link["bandwidth_bytes_per_s"], list):
            links.append(link)
            changing.append(f"{link['from']} -> {link['to']}")
        else:
            b, own = rates["bandwidth_bytes_per_s"], link | rates
            interval = {LOW: min(b, own[LOW]), HIGH: max(b, own[HIGH])} if LOW in own else {}
            links.append(own | interval)
    notes = []
    if changing:
        notes.append(
            "curves do not count where bandwidths change by the hour, since competitors would "
            f"change, too: {listed(changing)}"
        )
    return tree | {"links": links}, notes


def _newest(table: pd.DataFrame) -> dict[Pair, dict[str, float]]:
    """Return of each pair with curves what the newest says of the link."""
    curves = table[(table["tool"] == CURVE.name) & (table["ended"] == DONE)].sort_values("time_s")
    found = {}
    for row in curves.to_dict("records"):
        rates = _rates_of(row)
        if not rates:
            continue
        capacity, m = row["capacity_bytes_per_s"], row["competitors"]
        known = None if capacity != capacity or m != m else (capacity, m)
        n, rate = [n for n, _ in rates], [rate for _, rate in rates]
        found[row["from"], row["to"]] = link_rates(n, rate, known)
    return found


def _rates_of(row: Mapping[Any, Any]) -> list[tuple[int, float]]:
    """Return numbers of connections with their rates; none where a row does not say them."""
    rates = settings_of(row["settings"]).get("rates_bytes_per_s")
    if not isinstance(rates, list) or not all(isinstance(r, list) and len(r) == 2 for r in rates):
        return []
    are_rates = all(
        type(n) is int and n >= 1 and isinstance(rate, int | float) and 0 < rate < 2**62
        for n, rate in rates
    )
    return [(n, float(rate)) for n, rate in rates] if are_rates else []
