"""Verdicts on claims by rule, from intervals alone.

*holds*: the interval agrees with what is claimed. *contradicts*: all of it lies on the other side.
*differs*: neither. `Verdict.is_settled` tells whether more runs could decide otherwise: an interval
that meets a number holds, but settles it only if it does not reach far beyond. The core paper gives
its means to ±5 %, so a ratio of two to about ±7 %: within that its number is met.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.numbers.intervals import Interval, side_of_one
from datacollect.study.report.verdicts import CONTRADICTS, DIFFERS, HOLDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The paper's ±5 % on each of two means.
PAPER_PRECISION = 1.07

# Storage of a source over direct's: the paper's coordinated at most, its best-path at most.
LITTLE, MUCH = 1.04, 1.73

# "Does not affect": within what the paper's own intervals would show.
UNAFFECTED = 1.1

# "As well as": the paper's other effects are 60 % and more.
ALIKE = 1.2

# Of planning: what still is "a few", and what no longer could be meant.
FEW_SECONDS, MANY_SECONDS = 5.0, 60.0


@dataclass(frozen=True)
class Verdict:
    """A verdict, whether the runs settle it, and why."""

    word: str
    is_settled: bool
    why: str


def more_than(ratio: Interval, least: float) -> Verdict:
    """Judge "more than `least` times".

    >>> more_than(Interval(2.6, 2.2, 3.1, 9), 2).word, more_than(Interval(0.7, 0.6, 0.8, 9), 2).word
    ('holds', 'contradicts')
    >>> more_than(Interval(2.1, 1.7, 2.6, 9), 2)
    Verdict(word='differs', is_settled=False, why='not settled: the interval holds 2')
    """
    if ratio.low > least:
        return Verdict(HOLDS, True, f"the whole interval lies above {least:g}")
    if ratio.high < 1:
        return Verdict(CONTRADICTS, True, "the other way round: the whole interval lies below 1")
    if ratio.high >= least:
        return Verdict(DIFFERS, False, f"not settled: the interval holds {least:g}")
    if ratio.low > 1:
        return Verdict(DIFFERS, True, f"the same order, but less than {least:g} times")
    return Verdict(DIFFERS, True, f"less than {least:g} times, and which is larger is not settled")


def about(ratio: Interval, number: float) -> Verdict:
    """Judge a ratio above 1, within the paper's precision.

    >>> about(Interval(2.5, 2.4, 2.6, 9), 2.56).word, about(Interval(1.5, 1.2, 1.9, 9), 2.56).word
    ('holds', 'differs')
    >>> about(Interval(2.4, 1.1, 5.2, 2), 2.56)
    Verdict(word='holds', is_settled=False, why='the interval meets 2.56 ± 7 %, and reaches beyond')
    """
    low, high = number / PAPER_PRECISION, number * PAPER_PRECISION
    if ratio.high < 1:
        return Verdict(CONTRADICTS, True, "the other way round: the whole interval lies below 1")
    meets = ratio.low <= high and ratio.high >= low
    if meets and ratio.low > 1:
        return _met(f"the interval meets {number:g} ± 7 %", low <= ratio.low, ratio.high <= high)
    if meets:
        return Verdict(DIFFERS, False, f"not settled: the interval holds {number:g} and 1")
    size = "larger" if ratio.low > high else "smaller"
    side = "" if ratio.low > 1 else ", and which is larger is not settled"
    return Verdict(DIFFERS, True, f"a {size} ratio than {number:g}{side}")


def alike(ratio: Interval, margin: float) -> Verdict:
    """Judge "alike": within a factor either way.

    >>> alike(Interval(1.0, 0.9, 1.1, 9), 1.2).word, alike(Interval(1.6, 1.4, 1.8, 9), 1.2).word
    ('holds', 'contradicts')
    """
    percent = f"{100 * (margin - 1):.0f} %"
    if 1 / margin <= ratio.low and ratio.high <= margin:
        return Verdict(HOLDS, True, f"the whole interval lies within {percent} of 1")
    if ratio.low > margin or ratio.high < 1 / margin:
        return Verdict(CONTRADICTS, True, f"the whole interval lies beyond {percent} of 1")
    return Verdict(DIFFERS, False, f"not settled: the interval reaches beyond {percent} of 1")


def slower(ratio: Interval) -> Verdict:
    """Judge "takes longer".

    >>> slower(Interval(1.2, 1.1, 1.3, 9)).word, slower(Interval(1.0, 0.9, 1.1, 9)).is_settled
    ('holds', False)
    """
    side = side_of_one(ratio)
    if side > 0:
        return Verdict(HOLDS, True, "the whole interval lies above 1")
    if side < 0:
        return Verdict(CONTRADICTS, True, "the other way round: the whole interval lies below 1")
    return Verdict(DIFFERS, False, "not settled: the interval holds 1")


def between(ratios: Sequence[Interval], least: float, most: float) -> Verdict:
    """Judge ratios that all lie between two numbers, both on the same side of 1.

    >>> between([Interval(0.95, 0.93, 0.97, 9)], 0.91, 0.98).word
    'holds'
    >>> between([Interval(0.95, 0.93, 0.97, 9), Interval(0.8, 0.7, 0.9, 9)], 0.91, 0.98).word
    'differs'
    """
    side = 1 if least > 1 else -1
    sides = [side_of_one(ratio) for ratio in ratios]
    if -side in sides:
        return Verdict(CONTRADICTS, True, "the other way round, at least in one setting")
    low, high = least / PAPER_PRECISION, most * PAPER_PRECISION
    if side < 0:  # a share of one throughput: ± 7 % would reach beyond 1
        low, high = least, most
    inside = [ratio.low <= high and ratio.high >= low for ratio in ratios]
    if all(inside) and all(s == side for s in sides):
        within = [low <= ratio.low and ratio.high <= high for ratio in ratios]
        return _met(f"each interval meets {least:g} to {most:g}", *within)
    if all(inside):
        return Verdict(DIFFERS, False, "not settled: an interval holds 1")
    n_out = len(inside) - sum(inside)
    words = "outside that range" if len(inside) == 1 else f"{n_out} of {len(inside)} outside it"
    if 0 in sides:
        return Verdict(DIFFERS, True, f"{words}; which is larger is not settled everywhere")
    return Verdict(DIFFERS, True, f"the same direction, but {words}")


def _met(why: str, *within: bool) -> Verdict:
    """A number that is met; by a wide interval many another would be, too."""
    if all(within):
        return Verdict(HOLDS, True, why)
    return Verdict(HOLDS, False, f"{why}, and reaches beyond")


def same_order(ratios: Sequence[Interval]) -> Verdict:
    """Judge that each ratio is above 1.

    >>> same_order([Interval(2.0, 1.5, 2.5, 9), Interval(1.2, 0.9, 1.5, 9)]).is_settled
    False
    """
    sides = [side_of_one(ratio) for ratio in ratios]
    if all(side > 0 for side in sides):
        return Verdict(HOLDS, True, "each interval lies above 1")
    if -1 in sides:
        return Verdict(CONTRADICTS, True, "coordinated is slower at some share of UDP")
    return Verdict(DIFFERS, False, "not settled: an interval holds 1")


def little_storage(ratios: Sequence[Interval]) -> Verdict:
    """Judge "at most 4 % more than direct", in all settings.

    >>> little_storage([Interval(1.02, 1.01, 1.03, 9)]).word
    'holds'
    """
    if all(ratio.high <= LITTLE for ratio in ratios):
        return Verdict(HOLDS, True, f"each interval ends at {LITTLE} at most")
    if any(ratio.low > MUCH for ratio in ratios):
        return Verdict(CONTRADICTS, True, "more than the paper's best-path needs, in some setting")
    if any(ratio.low > LITTLE for ratio in ratios):
        return Verdict(DIFFERS, True, f"more than {LITTLE} in some setting")
    return Verdict(DIFFERS, False, f"not settled: an interval holds {LITTLE}")


def much_storage(ratios: Sequence[Interval]) -> Verdict:
    """Judge "up to 73 % more than direct": the setting with most.

    >>> much_storage([Interval(1.1, 1.05, 1.15, 9), Interval(1.7, 1.65, 1.8, 9)]).word
    'holds'
    >>> much_storage([Interval(1.3, 1.2, 1.4, 9)])
    Verdict(word='differs', is_settled=True, why='more than direct, but less than 1.73 at most')
    """
    most = max(ratios, key=lambda ratio: ratio.mean)
    if all(ratio.high <= LITTLE for ratio in ratios):
        return Verdict(CONTRADICTS, True, "hardly any extra storage in any setting")
    if most.low > MUCH * PAPER_PRECISION:
        return Verdict(DIFFERS, True, f"more than {MUCH} in some setting")
    if most.high < MUCH / PAPER_PRECISION and most.low > 1:
        return Verdict(DIFFERS, True, f"more than direct, but less than {MUCH} at most")
    if most.low > 1:
        within = most.low >= MUCH / PAPER_PRECISION, most.high <= MUCH * PAPER_PRECISION
        return _met(f"the largest meets {MUCH} ± 7 %", *within)
    return Verdict(DIFFERS, False, "not settled: the interval of the largest holds 1")


def as_well(ratios: Sequence[Interval]) -> Verdict:
    """Judge "as well as any other": others over it are nowhere shorter by more than a tenth.

    >>> as_well([Interval(1.1, 0.95, 1.3, 9)]).word, as_well([Interval(0.7, 0.6, 0.8, 9)]).word
    ('holds', 'contradicts')
    """
    least = 1 / UNAFFECTED
    if all(ratio.low >= least for ratio in ratios):
        return Verdict(HOLDS, True, "the other is not shorter by more than a tenth")
    if any(ratio.high < least for ratio in ratios):
        return Verdict(CONTRADICTS, True, "the other is shorter by more than a tenth")
    return Verdict(DIFFERS, False, f"not settled: an interval holds {least:.2g}")


def all_alike(margin: float) -> Callable[[Sequence[Interval]], Verdict]:
    """Judge "alike" of several ratios: each within a factor either way.

    >>> all_alike(1.1)([Interval(1.0, 0.95, 1.05, 9), Interval(1.0, 0.99, 1.01, 9)]).word
    'holds'
    >>> all_alike(1.1)([Interval(1.0, 0.95, 1.05, 9), Interval(1.0, 0.8, 1.2, 9)]).is_settled
    False
    """

    def judge(ratios: Sequence[Interval]) -> Verdict:
        verdicts = [alike(ratio, margin) for ratio in ratios]
        for word in (CONTRADICTS, DIFFERS):
            for verdict in verdicts:
                if verdict.word == word:
                    return verdict
        return verdicts[0]

    return judge


def some_slower(ratios: Sequence[Interval]) -> Verdict:
    """Judge "can take longer": it does in one setting at least.

    >>> some_slower([Interval(1.2, 1.1, 1.3, 9), Interval(0.7, 0.6, 0.8, 9)]).word
    'holds'
    >>> some_slower([Interval(0.7, 0.6, 0.8, 9)]).word
    'contradicts'
    """
    if any(ratio.low > 1 for ratio in ratios):
        return Verdict(HOLDS, True, "an interval lies above 1")
    if all(ratio.high < 1 for ratio in ratios):
        return Verdict(CONTRADICTS, True, "each interval lies below 1")
    return Verdict(DIFFERS, False, "not settled: an interval holds 1, and none lies above it")


def few_seconds(time: Interval) -> Verdict:
    """Judge "a few seconds" of planning.

    >>> few_seconds(Interval(0.1, 0.05, 0.15, 9)).word, few_seconds(Interval(90, 70, 99, 9)).word
    ('holds', 'contradicts')
    >>> few_seconds(Interval(5, 4, 6, 9))
    Verdict(word='differs', is_settled=False, why='not settled: the interval holds 5 s')
    """
    if time.high <= FEW_SECONDS:
        why = f"at most {FEW_SECONDS:g} s; the machine is another, and faster"
        return Verdict(HOLDS, True, why)
    if time.low > MANY_SECONDS:
        return Verdict(CONTRADICTS, True, f"more than {MANY_SECONDS:g} s, on a faster machine")
    if time.low > FEW_SECONDS:
        return Verdict(DIFFERS, True, f"more than {FEW_SECONDS:g} s, on a faster machine")
    return Verdict(DIFFERS, False, f"not settled: the interval holds {FEW_SECONDS:g} s")
