"""Findings from paired runs: a ratio, its interval, the connections, a verdict by a rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.study.report.setting_runs import are_as_many, paired_ratio
from datacollect.study.report.verdicts import NOT_RUN
from paper.runs import AS_MANY, COORDINATED, PaperSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from datacollect.numbers.intervals import Interval
    from paper.runs import PaperRuns
    from paper.verdicts import Verdict


@dataclass(frozen=True)
class Finding:
    """Finding on one part of a claim.

    Attributes
    ----------
    claim : str
        C1 to C16.
    part : str
    statement, paper : str
        What the paper says, and its number.
    method : str
        Whose coordinated method is judged, and what it is: the paper's, or ours.
    where : str
        Engine, size, and what the planner knows.
    setting : str
    value, low, high : float
        Ours, and its interval; of several settings one, which `why` names (`Shown`). NaN where
        there is none.
    seeds : int
        Runs that made this interval, or pairs of runs; of C10, which has none, those of the widest.
    connections : str
        Mean numbers of TCP connections of what is compared.
    equal_connections : str
        Makespan of direct with as many connections over coordinated's, there; over several
        settings the range of means.
    verdict : {"holds", "differs", "contradicts", "not run"}
    is_settled : bool
        Whether more runs could not decide otherwise.
    why : str
    """

    claim: str
    part: str
    statement: str
    paper: str
    method: str = ""
    where: str = ""
    setting: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    connections: str = ""
    equal_connections: str = ""
    verdict: str = NOT_RUN
    is_settled: bool = False
    why: str = "no such runs"


@dataclass(frozen=True)
class Shown:
    """Setting that stands for several others.

    Attributes
    ----------
    words : str
    rank : callable
        Of an interval; that of the highest rank is shown.
    """

    words: str
    rank: Callable[[Interval], float]


FURTHEST = Shown("furthest from 1", lambda ratio: abs(math.log(ratio.mean)))
LARGEST = Shown("largest", lambda ratio: ratio.mean)
# Of a claim that something can happen: one interval above 1 is enough for it.
MOST_FOR_IT = Shown("speaks most for it", lambda ratio: ratio.low)


def makespan_ratio(above: pd.DataFrame, below: pd.DataFrame) -> Interval:
    """Return one method's makespans over another's, seed for seed."""
    return paired_ratio(above, below, "makespan_s")


def in_world(finding: Finding, runs: PaperRuns) -> Finding:
    """Return a finding that says in which world, and by whose coordinated method."""
    return replace(finding, where=runs.words, method=runs.world.method)


def judge_gain(
    runs: PaperRuns,
    finding: Finding,
    way: str,
    split: str,
    judge: Callable[[Interval], Verdict],
) -> Finding:
    """A method over coordinated; a gain over one connection may be one of more connections."""
    found = judge_pair(runs, finding, way, COORDINATED, split, judge)
    if found.verdict == NOT_RUN or not found.equal_connections:
        return found
    return replace(
        found,
        why=f"{found.why}; direct with as many connections takes "
        f"{found.equal_connections} times coordinated's",
    )


def judge_pair(
    runs: PaperRuns,
    finding: Finding,
    above: str,
    below: str,
    split: str,
    judge: Callable[[Interval], Verdict],
) -> Finding:
    """Judge one method's makespan over another's, at 5 % UDP and most flows."""
    setting = PaperSetting(split, runs.most_flows(split))
    return judge_ratio(
        runs,
        finding,
        runs.select(above, setting),
        runs.select(below, setting),
        judge,
        in_words(setting),
        equal_connections(runs, [setting]),
    )


def judge_ratio(
    runs: PaperRuns,
    finding: Finding,
    above: pd.DataFrame,
    below: pd.DataFrame,
    judge: Callable[[Interval], Verdict],
    setting: str,
    equal_connections: str = "",
) -> Finding:
    """Judge the makespans of some runs over those of others, seed for seed."""
    ratio = paired_ratio(above, below, "makespan_s")
    if ratio.n == 0:
        return finding
    finding = replace(
        in_world(finding, runs),
        setting=setting,
        seeds=ratio.n,
        connections=_connections([(above, below)]),
        equal_connections=equal_connections,
    )
    if not ratio.is_known:
        return too_few(finding, ratio.n)
    verdict = judge(ratio)
    return replace(
        with_interval(finding, ratio),
        verdict=verdict.word,
        is_settled=verdict.is_settled,
        why=verdict.why,
    )


def judge_several(
    runs: PaperRuns,
    finding: Finding,
    ways: tuple[str, str],
    settings: Mapping[str, PaperSetting],
    judge: Callable[[Sequence[Interval]], Verdict],
    setting: str,
    ratio_of: Callable[[pd.DataFrame, pd.DataFrame], Interval] = makespan_ratio,
    below_settings: Mapping[str, PaperSetting] | None = None,
    shown: Shown = FURTHEST,
) -> Finding:
    """Judge one method over another in several settings; show one of them.

    The other method is taken from `below_settings` of the same names, if they differ.
    """
    above = {name: runs.select(ways[0], at) for name, at in settings.items()}
    below = {name: runs.select(ways[1], at) for name, at in (below_settings or settings).items()}
    ratios = {name: ratio_of(above[name], below[name]) for name in settings}
    known = {name: ratio for name, ratio in ratios.items() if ratio.is_known}
    if not known:
        n = max((ratio.n for ratio in ratios.values()), default=0)
        return too_few(in_world(finding, runs), n) if n else finding
    verdict = judge(list(known.values()))
    chosen = max(known, key=lambda name: shown.rank(known[name]))
    missing = [name for name in ratios if name not in known]
    left_out = f"; not run: {', '.join(missing)}" if missing else ""
    used = [(above[name], below[name]) for name in known]
    return replace(
        with_interval(in_world(finding, runs), known[chosen]),
        setting=f"{setting}: {', '.join(known)}",
        connections=_connections(used),
        equal_connections=equal_connections(runs, (settings[name] for name in known)),
        verdict=verdict.word,
        is_settled=verdict.is_settled,
        why=f"{verdict.why}{_range_words(shown, chosen, known)}{left_out}",
    )


def _range_words(shown: Shown, chosen: str, known: Mapping[str, Interval]) -> str:
    """Which of several settings is shown, and the means of all."""
    if len(known) == 1:
        return ""
    means = [ratio.mean for ratio in known.values()]
    return f"; {shown.words} at {chosen}; means {min(means):.3g} to {max(means):.3g}"


def equal_connections(runs: PaperRuns, settings: Iterable[PaperSetting]) -> str:
    """Return direct's makespan with as many connections over coordinated's, in words.

    Of several settings the range of means is told; left out are those where the numbers of
    connections differ, as where estimates are wrong for the one and right for the other.
    """
    pairs = [(runs.select(AS_MANY, at), runs.select(COORDINATED, at)) for at in settings]
    ratios = [
        ratio
        for above, below in pairs
        if are_as_many(above, below) and (ratio := paired_ratio(above, below, "makespan_s")).n
    ]
    if len(ratios) > 1:
        means = [ratio.mean for ratio in ratios]
        return f"{min(means):.2f} to {max(means):.2f}"
    return "".join(
        f"{ratio.mean:.2f}" + (f" [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio.is_known else "")
        for ratio in ratios
    )


def _connections(pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]]) -> str:
    import pandas as pd

    above = pd.concat([above["connections"] for above, _ in pairs]).mean()
    below = pd.concat([below["connections"] for _, below in pairs]).mean()
    return f"{above:.0f} and {below:.0f}"


def range_words(numbers: pd.Series[float]) -> str:
    """Return the least and the largest number in words."""
    return f"{numbers.min():.0f} to {numbers.max():.0f}"


def in_words(setting: PaperSetting) -> str:
    """Return a setting's background in words.

    >>> in_words(PaperSetting("2:1", 60))
    '2:1, 60 flows, 5 % UDP'
    """
    return f"{setting.split}, {setting.flows} flows, {100 * setting.udp:g} % UDP"


def with_interval(finding: Finding, interval: Interval) -> Finding:
    """Return a finding with a value and its interval."""
    return replace(
        finding, value=interval.mean, low=interval.low, high=interval.high, seeds=interval.n
    )


def too_few(finding: Finding, n: int) -> Finding:
    """Return a finding that says that one seed has no interval."""
    return replace(finding, seeds=n, why="a single seed, which has no interval; run two or more")
