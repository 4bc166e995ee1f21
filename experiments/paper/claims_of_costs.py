"""Claims of costs: to others and to hosts, precision of means, time to plan."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.numbers.intervals import mean_interval
from datacollect.study.report.setting_runs import paired_ratio, storage_ratio
from datacollect.study.report.verdicts import DIFFERS, HOLDS, NOT_RUN
from paper.judging import (
    LARGEST,
    Finding,
    in_world,
    judge_several,
    range_words,
    too_few,
    with_interval,
)
from paper.runs import BEST_PATH, COORDINATED, DIRECT, PaperSetting
from paper.verdicts import between, few_seconds, little_storage, much_storage

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from datacollect.numbers.intervals import Interval
    from paper.runs import PaperRuns

HALF_WIDTH = 0.05


def storage(runs: PaperRuns) -> list[Finding]:
    """C8: most storage of a source over direct's: coordinated at most 1.04, best-path to 1.73."""
    found = []
    for way, most, judge in (
        (COORDINATED, 1.04, little_storage),
        (BEST_PATH, 1.73, much_storage),
    ):
        said = "at most" if way == COORDINATED else "up to"
        statement = f"{way}: most that a source stores, over direct's, {said} {most}"
        finding = Finding("C8", way, statement, f"{said} {most}")
        settings = {
            f"{split}, {flows} flows": PaperSetting(split, flows)
            for split in ("1:1", "2:1")
            for flows in runs.flows(split)
        }
        judged = judge_several(
            runs, finding, (way, DIRECT), settings, judge, "5 % UDP", storage_ratio, shown=LARGEST
        )
        found.append(_with_mean_of_ratios(runs, judged, (way, DIRECT), settings))
    return found


def _with_mean_of_ratios(
    runs: PaperRuns, finding: Finding, ways: tuple[str, str], settings: Mapping[str, PaperSetting]
) -> Finding:
    """Say beside the ratio of means the mean of ratios: each source over its own backlog."""
    pairs = [[runs.select(way, at) for way in ways] for at in settings.values()]
    above = [a for a, b in pairs if len(a) and len(b)]
    if finding.verdict == NOT_RUN or not above:
        return finding
    means = [float(table["storage_mean"].mean()) for table in above]
    kept = all(bool(table["storage_bytes"].notna().any()) for table in above)
    words = f"{min(means):.3g} to {max(means):.3g}"
    why = f"means of single sources' ratios {words}"
    if not kept:
        why = f"means of single sources' ratios, {words}, since older runs kept no bytes"
    return replace(finding, why=f"{finding.why}; {why}")


def background_throughput(runs: PaperRuns) -> list[Finding]:
    """C9: background TCP under coordinated is lower than under direct by 2 to 9 %."""
    found = []
    for split in ("1:1", "2:1"):
        statement = (
            f"under {split} throughput of background TCP under coordinated, over that under direct"
        )
        settings = {f"{n} flows": PaperSetting(split, n) for n in runs.flows(split) if n}
        finding = Finding("C9", split, statement, "0.91 to 0.98")
        found.append(
            judge_several(
                runs,
                finding,
                (COORDINATED, DIRECT),
                settings,
                lambda ratios: between(ratios, 0.91, 0.98),
                f"{split}, 5 % UDP",
                _background_ratio,
            )
        )
    return found


def _background_ratio(above: pd.DataFrame, below: pd.DataFrame) -> Interval:
    return paired_ratio(above, below, "tcp_during_bytes_per_s")


def precision(runs: PaperRuns) -> list[Finding]:
    """C10: 95 % intervals of at most ±5 % for all results."""
    finding = Finding("C10", "", "95 % intervals of mean makespans are at most ± 5 %", "all")
    table = runs.table
    if table.empty:
        return [finding]
    settings = ["way", "flows", "split", "udp", "error", "other_error"]
    means = [mean_interval(part["makespan_s"]) for _, part in table.groupby(settings)]
    n_narrow = sum(mean.relative_half_width <= HALF_WIDTH for mean in means)
    reached = n_narrow == len(means)
    widest = max(means, key=lambda mean: mean.relative_half_width)
    width = widest.relative_half_width
    most = f"{100 * width:.0f} % of its mean" if math.isfinite(width) else "unknown: a single seed"
    why = f"{n_narrow} of {len(means)} means reach it; the widest half-width is {most}"
    return [
        replace(
            in_world(finding, runs),
            setting="all settings",
            value=n_narrow / len(means),
            seeds=widest.n,
            connections=range_words(table["connections"]),
            verdict=HOLDS if reached else DIFFERS,
            is_settled=reached,
            why=why,
        )
    ]


def planning_time(runs: PaperRuns) -> list[Finding]:
    """C11: a schedule takes a few seconds on a 650 MHz Pentium III."""
    finding = Finding(
        "C11",
        "",
        "computing a coordinated schedule takes a few seconds (650 MHz Pentium III)",
        "a few s",
    )
    table = runs.table[runs.table["way"] == COORDINATED]
    if table.empty:
        return [finding]
    time = mean_interval(table["plan_time_s"]).from_zero()
    finding = replace(in_world(finding, runs), setting="all settings", seeds=time.n)
    if not time.is_known:
        return [too_few(finding, time.n)]
    verdict = few_seconds(time)
    return [
        replace(
            with_interval(finding, time),
            connections=range_words(table["connections"]),
            verdict=verdict.word,
            is_settled=verdict.is_settled,
            why=f"mean in s; {verdict.why}",
        )
    ]
