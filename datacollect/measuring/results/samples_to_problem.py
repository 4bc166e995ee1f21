"""Makes a problem file of a table of measurements: which tests count, what is not known."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from datacollect.errors import DatacollectWarning, ProblemError
from datacollect.files.units import counted, format_rate
from datacollect.measurement.daily import periods_of_day
from datacollect.measurement.estimates import DAY_S, estimate
from datacollect.measurement.outcomes import listed
from datacollect.measurement.sample_rules import ruled
from datacollect.measurement.sample_store import DONE, samples_of
from datacollect.measurement.series.calibration import Calibration, calibrate
from datacollect.measurement.series.day_and_night import day_and_night
from datacollect.measurement.unlike import of_one_kind
from datacollect.measuring.operator.packet_pairs import PAIRS
from datacollect.measuring.operator.tools import FLOOD, light_tools
from datacollect.measuring.plan.rounds import full_mesh
from datacollect.measuring.probes.window_scan import SCAN
from datacollect.measuring.results.floods import DOWNLINK
from datacollect.measuring.results.host_limits import (
    DIFFERS,
    SeenByFloods,
    seen_by_floods,
    with_host_limits,
    with_links_that_may_share,
)
from datacollect.measuring.results.mathis_check import compared_with_reno, notes_of
from datacollect.measuring.results.measured_curves import with_curves
from datacollect.measuring.results.measured_problem import measured_problem
from datacollect.measuring.results.shared_links import SHARED, compared
from datacollect.methods.warnings import contradictions
from datacollect.problem.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    import pandas as pd

    from datacollect.measuring.plan.rounds import Pair
    from datacollect.measuring.results.floods import SeenFlood
    from datacollect.measuring.results.mathis_check import ComparedWithReno
    from datacollect.measuring.results.shared_links import FoundWire

# A probe, whose rate is none of a connection's.
PROBE = PAIRS.name
# Rates for settings that were varied on purpose, and of several links at once.
NOT_OF_LINKS = (SCAN, FLOOD, SHARED)

# Probes are taken for tests where the line through both explains so much (Cottrell, Antony, Logg
# and Navratil, iGrid2002 Demonstration: Bandwidth from the Low Lands, 2003); two points say little.
LEAST_R_SQUARED = 0.6
FEWEST_CALIBRATED = 3


@dataclass(frozen=True)
class ProblemOfSamples:
    """Problem that a table of measurements shows.

    Attributes
    ----------
    tree : dict
        The tree of a problem file, which ``Problem.from_dict`` reads.
    links : DataFrame
        A row for each link, as `datacollect.measurement.estimates.estimate` returns them.
    samples : DataFrame
        The samples that count, by link and time.
    unknown : mapping of (str, str) to str
        Pairs of hosts without a link, and why.
    calibration : Calibration or None
        From packet pairs to tests with connections; None where too few links have both.
    daily : tuple of str
        The hours at which bandwidths change every day, where the links have a number for each.
    wires : tuple of FoundWire
        Which links tests have found to share a wire: rows of ``[[shared]]``, too.
    reno : tuple of ComparedWithReno
        The links with enough losses to say what Reno's connections would get.
    notes : tuple of str
        What was left out, and what is to be known of the rest.
    by_floods : SeenByFloods
        What floods say of hosts.
    """

    tree: dict[str, Any]
    links: pd.DataFrame
    samples: pd.DataFrame
    unknown: Mapping[Pair, str]
    calibration: Calibration | None
    daily: tuple[str, ...]
    wires: tuple[FoundWire, ...]
    reno: tuple[ComparedWithReno, ...]
    notes: tuple[str, ...]
    by_floods: SeenByFloods = field(default_factory=SeenByFloods)

    @property
    def rates_bytes_per_s(self) -> dict[Pair, float]:
        """The bandwidths of links; of all hours, where they differ by the hour."""
        rates = self.links["bandwidth_bytes_per_s"].tolist()
        return dict(zip(_pairs(self.links), rates, strict=True))


def problem_of_samples(
    table: pd.DataFrame,
    destination: str,
    *,
    hosts: Set[str] | None = None,
    backlog_bytes: Mapping[str, int] | None = None,
    half_life_s: float = DAY_S,
    streams: int | None = None,
    shared: Sequence[Mapping[str, Any]] = (),
    timezone: str = "UTC",
    start: str = "1970-01-01T00:00:00+00:00",
    now_s: float | None = None,
    careful: bool = True,
) -> ProblemOfSamples:
    """Return the problem that a table of measurements describes.

    Tests with connections count, and packet pairs where a link has nothing else: times the slope of
    the line through the links that have both, where that line fits. Tests beside a pull, and those
    that varied a setting on purpose, do not count. Links with a curve have its rates by
    connections, and hosts the limits that floods have reached. Samples whose time lies ahead by
    more than a day do not count: means by age would believe them alone.

    Parameters
    ----------
    table : DataFrame
        As `datacollect.measurement.sample_store.read_parts` reads it.
    destination : str
    hosts : set of str, optional
        The hosts that matter; by default all that the table names.
    backlog_bytes : mapping of str to int, optional
        What hosts hold.
    half_life_s, streams
        As for `datacollect.measuring.results.measured_problem.measured_problem`.
    shared : sequence of mappings
        Rows of ``[[shared]]``; their links that are not known are left out.
    timezone, start : str
        IANA name of the zone in which day and night are told apart, and the clock time of 0 s.
    now_s : float, optional
        The present, in seconds since 1970; by default this host's clock.
    careful : bool
        Other links of hosts that share a wire are on it, too, unless tests have told them apart.

    Raises
    ------
    ProblemError
        No test that counts has measured a bandwidth, or the destination is none of the hosts.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollect.measurement.sample_store import COLUMNS
    >>> row = {"from": "S", "to": "D", "time_s": 0.0, "tool": "tcp", "ended": "done"}
    >>> table = pd.DataFrame([{**row, "bandwidth_bytes_per_s": 5.0}], columns=list(COLUMNS))
    >>> found = problem_of_samples(table, "D")
    >>> found.tree["links"], found.unknown
    ([{'from': 'S', 'to': 'D', 'bandwidth_bytes_per_s': 5.0}], {('D', 'S'): 'never tested'})
    """
    notes: list[str] = []
    named = {*table["from"], *table["to"]}
    if hosts is not None and (others := sorted(named - hosts)):
        table = table[table["from"].isin(hosts) & table["to"].isin(hosts)]
        notes.append(f"left out, as the hosts' file has no such hosts: tests of {listed(others)}")
    everything, found = table, ruled(table, now_s)
    table, left_out = found.samples, found.notes
    notes += left_out
    counting = ~table["beside_pull"].isin([True]) & ~table["tool"].isin(NOT_OF_LINKS)
    samples, calibration, said = _calibrated(samples_of(table[counting]), streams)
    notes += said
    if samples.empty:
        nothing = "no test that counts has measured a bandwidth; test some links first"
        raise ProblemError("; ".join([nothing, *_last_failure(table), *left_out]))
    samples = samples.sort_values(["from", "to", "time_s"], ignore_index=True)
    daily, said = _daily(samples, timezone)
    notes += said
    undisturbed = table[~table["beside_pull"].isin([True])]
    wires = compared(undisturbed).wires()
    stated, shared = shared, [*shared, *_rows_of(wires, shared)]
    with warnings.catch_warnings():
        # Notes say it.
        warnings.simplefilter("ignore", DatacollectWarning)
        links = estimate(samples, half_life_s=half_life_s)
        known = dict(zip(_pairs(links), links["bandwidth_bytes_per_s"].tolist(), strict=True))
        seen = seen_by_floods(undisturbed, known)
        if careful:
            on_wires = [with_links_that_may_share(wire, seen.floods, known) for wire in seen.wires]
            notes += _taken_to_share(seen.wires, on_wires)
            seen = replace(seen, wires=tuple(on_wires))
        shared = [*shared, *_rows_of(seen.wires, shared)]
        tree = measured_problem(
            samples,
            destination,
            {**dict.fromkeys(hosts or named, 0), **(backlog_bytes or {})},
            half_life_s=half_life_s,
            shared=_wires_among(shared, set(_pairs(samples))),
            daily=daily or None,
            timezone=timezone if daily else None,
            start=start,
        )
    notes += links.attrs["notes"]
    if streams in (None, 1):
        tree, said = with_curves(tree, table[counting])
        notes += said
    tree = with_host_limits(tree, seen, known)
    notes += seen.notes
    notes += contradictions(Problem.from_dict(tree))
    notes += _outdone_wires(stated, known, seen.floods)
    notes += _sum_of_links(destination, known, seen)
    reno = compared_with_reno(table[counting])
    notes += notes_of(reno)
    ahead = everything[~everything.index.isin(table.index)]
    untold = dict.fromkeys(_pairs(ahead), "only tested at times in the future")
    unknown = _unknown(table, full_mesh(list(tree["hosts"])), set(_pairs(samples)), untold)
    return ProblemOfSamples(
        tree,
        links,
        samples,
        unknown,
        calibration,
        daily,
        (*wires, *seen.wires),
        tuple(reno),
        tuple(dict.fromkeys(notes)),  # rules speak of the table and of its samples
        seen,
    )


def _last_failure(table: pd.DataFrame) -> list[str]:
    """Say why tests with connections failed, by the last one; nothing where none has failed."""
    is_failed = table["ended"] != DONE
    failed = table[is_failed & ~table["tool"].isin(light_tools())].sort_values("time_s")
    if failed.empty:
        failed = table[is_failed].sort_values("time_s")
    if failed.empty:
        return []
    row = failed.iloc[-1]
    last = f"{row['tool']} {row['from']} → {row['to']}, so: {row['ended']}"
    return [f"{counted(len(failed), 'test')} failed, the last one, {last}"]


def _sum_of_links(destination: str, known: Mapping[Pair, float], seen: SeenByFloods) -> list[str]:
    """Say that a plan counts on the sum of all links, where no flood has shown what comes of it."""
    into = [rate for (_, head), rate in known.items() if head == destination]
    if len(into) < 2 or any(
        (limit.flood.host, limit.flood.key) == (destination, DOWNLINK) for limit in seen.limits
    ):
        return []
    text = (
        f"what {destination} receives in all was not measured: plans count on the sum of its "
        f"links, {format_rate(sum(into))}, which one wire or the host itself may not carry; "
        "`measure flood` tells, between agents"
    )
    return [text]


def _taken_to_share(found: Sequence[FoundWire], on_wires: Sequence[FoundWire]) -> list[str]:
    """Name the links that are taken to share a wire, since no test has told them apart."""
    notes = []
    for wire, more in zip(found, on_wires, strict=True):
        untold = [link for link in more.links if link not in wire.links]
        if untold:
            shared, links = (
                listed([f"{tail} → {head}" for tail, head in some]) for some in (wire.links, untold)
            )
            notes.append(
                f"what {shared} share, {format_rate(wire.bandwidth_bytes_per_s)}, is taken to bind "
                f"{links}, too: no test has told them apart; `measure flood` of one of each tells"
            )
    return notes


def _outdone_wires(
    stated: Sequence[Mapping[str, Any]], known: Mapping[Pair, float], floods: Sequence[SeenFlood]
) -> list[str]:
    """Name the wires that are said to carry less than tests have seen on them."""
    notes = []
    for row in stated:
        links = {tuple(link) for link in row["links"]}
        carries = float(row["bandwidth_bytes_per_s"])
        at_once = (
            sum(rate for pair, rate in flood.rates_bytes_per_s.items() if pair in links)
            for flood in floods
            if flood.is_whole
        )
        most = max((*at_once, *(rate for pair, rate in known.items() if pair in links)), default=0)
        if most > (1 + DIFFERS) * carries:
            notes.append(
                f"the wire {row['name']!r} is said to carry {format_rate(carries)}, though its "
                f"links had {format_rate(most)}; what is said counts: measure again, or correct it"
            )
    return notes


def _rows_of(
    wires: Sequence[FoundWire], said: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return rows of ``[[shared]]`` for wires that were found, but for those that a row has."""
    taken = {row["name"] for row in said}
    names = (name for i in count(1) if (name := f"wire-{i}") not in taken)
    known = [{tuple(link) for link in row["links"]} for row in said]
    return [
        wire.row(next(names))
        for wire in wires
        if not any({*wire.links} <= links for links in known)
    ]


def _wires_among(shared: Sequence[Mapping[str, Any]], known: Set[Pair]) -> list[Mapping[str, Any]]:
    """Return the rows of ``[[shared]]`` with their links that are known, where there are any."""
    rows = [
        {**row, "links": [[*pair] for pair in row["links"] if tuple(pair) in known]}
        for row in shared
    ]
    return [row for row in rows if row["links"]]


def _pairs(table: pd.DataFrame) -> list[Pair]:
    return list(zip(table["from"], table["to"], strict=True))


def _calibrated(
    samples: pd.DataFrame, streams: int | None
) -> tuple[pd.DataFrame, Calibration | None, list[str]]:
    """Return of each link its tests, or its probes turned into such, the line, and what to know."""
    import pandas as pd

    is_probe = samples["kind"] == PROBE
    alike = of_one_kind(samples[~is_probe], streams)
    tests, probes, notes = alike.samples, samples[is_probe], [*alike.notes]
    line = line_through(probes, tests)
    tested = set(_pairs(tests))
    probes = probes[[pair not in tested for pair in _pairs(probes)]]
    if probes.empty:
        return tests, line, notes
    only = sorted({f"{tail} -> {head}" for tail, head in _pairs(probes)})
    which = f"{counted(len(only), 'link')} by packet pairs alone ({listed(only)})"
    if line is not None and line.r_squared >= LEAST_R_SQUARED:
        rate = probes["bandwidth_bytes_per_s"] * line.slope
        probes = probes.assign(bandwidth_bytes_per_s=rate)
        notes.append(f"{which}: their rates times {line.slope:.3g}, as links with both say")
    else:
        why = "too few links have both" if line is None else f"R² is {line.r_squared:.2f}"
        notes.append(
            f"{which}: their rates as they are, since nothing says what connections get ({why}); "
            "test more links by tcp"
        )
    return pd.concat([tests, probes]), line, notes


def line_through(probes: pd.DataFrame, tests: pd.DataFrame) -> Calibration | None:
    """Fit the means of tests to those of probes, over the links that have both."""
    pair, rate = ["from", "to"], "bandwidth_bytes_per_s"
    means = probes.groupby(pair)[[rate]].mean()
    both = means.join(tests.groupby(pair)[rate].mean().rename("tested"), how="inner")
    if len(both) < FEWEST_CALIBRATED or both["tested"].nunique() < 2:
        return None
    return calibrate(both[rate], both["tested"])


def _daily(samples: pd.DataFrame, timezone: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the hours at which bandwidths change, where every link was tested in both parts."""
    hours = day_and_night(samples, timezone)
    if not hours:
        return (), []
    period = periods_of_day(samples, hours, timezone)
    tested = samples.assign(period=period).groupby(["from", "to"])["period"].nunique()
    lacking = [f"{tail} -> {head}" for tail, head in tested.index[tested < len(hours)]]
    if lacking:
        text = (
            f"bandwidths change every day at {' and '.join(hours)}, but links have one number for "
            f"all hours, since some were not tested in both parts: {listed(lacking)}"
        )
        return (), [text]
    return tuple(hours), []


def _unknown(
    table: pd.DataFrame, pairs: Sequence[Pair], known: Set[Pair], untold: Mapping[Pair, str]
) -> dict[Pair, str]:
    """Return the pairs without a link, each with what became of its tests; else what is given."""
    why = dict(untold)
    tests: Any = table.sort_values("time_s").groupby(["from", "to"])
    for (tail, head), rows in tests:
        failed = rows[rows["ended"] != DONE]
        if len(failed):
            why[tail, head] = f"{failed['tool'].iloc[-1]}: {failed['ended'].iloc[-1]}"
        elif rows["beside_pull"].isin([True]).any():
            why[tail, head] = "only tested beside a pull"
        else:
            why[tail, head] = f"only tested by {', '.join(sorted({*rows['tool']}))}"
    return {pair: why.get(pair, "never tested") for pair in pairs if pair not in known}
