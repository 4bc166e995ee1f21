"""C13 to C16: which direct method, where best-path and coordinated meet, wrong estimates again.

C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study of a Large-Scale
Data Collection Problem", WCW 2002, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datacollect.study.report.verdicts import NOT_RUN
from paper.judging import MOST_FOR_IT, Finding, in_words, judge_several
from paper.runs import (
    AT_A_TIME,
    BEST_PATH,
    COORDINATED,
    DIRECT,
    IN_TIME_SLOTS,
    PaperSetting,
    direct_in_turns,
)
from paper.verdicts import ALIKE, UNAFFECTED, all_alike, as_well, some_slower

if TYPE_CHECKING:
    from paper.runs import PaperRuns

# Where one peering wire is better "by a great amount": all but a few flows, or all, on the other.
FAR_APART = ("1:20", "0:60")


def direct_in_parallel(runs: PaperRuns) -> list[Finding]:
    """C13: direct in parallel performs as well as any of the other direct methods."""
    found = []
    for split in ("1:1", "2:1"):
        at = PaperSetting(split, runs.most_flows(split))
        ways = [direct_in_turns(n) for n in AT_A_TIME]
        ways += [direct_in_turns(n, in_time_slots=True) for n in IN_TIME_SLOTS]
        for way in ways:
            statement = f"under {split} direct in parallel is as fast as {way}"
            part = f"{way.removeprefix(f'{DIRECT}, ')}, {split}"
            finding = Finding("C13", part, statement, "at least 1")
            found.append(
                judge_several(runs, finding, (way, DIRECT), {split: at}, as_well, in_words(at))
            )
    return found


def converging(runs: PaperRuns) -> list[Finding]:
    """C14: where one peering wire is far better, best-path and coordinated should converge."""
    found = []
    for split in FAR_APART:
        at = PaperSetting(split, runs.most_flows(split))
        finding = Finding(
            "C14", split, f"under {split} best-path and coordinated take about as long", "1"
        )
        ways = BEST_PATH, COORDINATED
        found.append(
            judge_several(runs, finding, ways, {split: at}, all_alike(ALIKE), in_words(at))
        )
    return found


def worse_than_direct(runs: PaperRuns) -> list[Finding]:
    """C15: at +70 % and +50 % best-path can be even worse than direct."""
    settings = {f"{100 * error:+.0f} %": _wrong(runs, error) for error in (0.7, 0.5)}
    statement = "best-path at +70 % or +50 % can take longer than direct"
    finding = Finding("C15", "", statement, "> 1 in some")
    where = in_words(PaperSetting("1:3", runs.most_flows("1:3")))
    ways = BEST_PATH, DIRECT
    judged = judge_several(runs, finding, ways, settings, some_slower, where, shown=MOST_FOR_IT)
    if judged.verdict == NOT_RUN:
        return [judged]
    slower = []
    for name, at in settings.items():
        above = runs.select(BEST_PATH, at)["makespan_s"]
        below = runs.select(DIRECT, at)["makespan_s"].reindex(above.index)
        if len(above):
            slower.append(f"{int((above > below).sum())} of {len(above)} at {name}")
    return [replace(judged, why=f"{judged.why}; slower in {', '.join(slower)} runs")]


def under_estimated(runs: PaperRuns) -> list[Finding]:
    """C16: to under-estimate the congested wire does not affect best-path."""
    at = PaperSetting("1:3", runs.most_flows("1:3"))
    found = []
    for sides in ("two-sided", "one-sided"):
        settings = {
            f"{100 * error:+.0f} %": replace(
                at, error=error, other_error=-error if sides == "two-sided" else 0.0
            )
            for error in (-0.5, -0.7)
        }
        statement = f"best-path, busier peering wire under-estimated, {sides}: unaffected"
        finding = Finding("C16", sides, statement, "1")
        found.append(
            judge_several(
                runs,
                finding,
                (BEST_PATH, BEST_PATH),
                settings,
                all_alike(UNAFFECTED),
                in_words(at),
                below_settings=dict.fromkeys(settings, at),
            )
        )
    return found


def _wrong(runs: PaperRuns, error: float) -> PaperSetting:
    return PaperSetting("1:3", runs.most_flows("1:3"), error=error, other_error=-error)
