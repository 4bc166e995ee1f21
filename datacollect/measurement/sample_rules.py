"""Rules that every table of samples keeps to, whoever has read or made it.

``RULES`` is the table of them. Each takes samples and returns those that count, and what is to be
said: how many rows, of which links or hosts, and what to do. What only a reader can know of its
tests (limits that the tester set, losses, answers that say that they are cut) is said where
outcomes are made, see `datacollect.measurement.outcomes`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from datacollect.errors import ProblemError
from datacollect.files.addresses import address_of, bare_name
from datacollect.files.units import counted
from datacollect.measurement.limits import APPLICATION, RATE, RECEIVER, SEND_BUFFER
from datacollect.measurement.outcomes import listed
from datacollect.problem.link_table import SINCE_1970_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

# Clocks of hosts differ by minutes, and those that show another zone's time by less than a day.
MOST_AHEAD_S = 86_400.0
# The last second of the year 9999, which calendars end with. Milliseconds since 1970 lie beyond.
LAST_DATE_S = 253_402_300_799.0

# What an agent says of a test that the tester held back, and what helps.
_HELD_BACK = {
    RECEIVER: "give the receiver larger windows (--window)",
    SEND_BUFFER: "give the sender larger buffers (--window)",
    APPLICATION: "test from a faster host",
    RATE: "raise rate of the agent's [measure]",
}

# From samples and the present, in seconds since 1970: the samples that count, and what to say.
_Apply: TypeAlias = "Callable[[pd.DataFrame, float], tuple[pd.DataFrame, list[str]]]"


@dataclass(frozen=True)
class Rule:
    """Rule for samples, and what becomes of those that do not comply.

    Attributes
    ----------
    name : str
    text : str
        The rule in words.
    apply : callable
    """

    name: str
    text: str
    apply: _Apply


@dataclass(frozen=True)
class RuledSamples:
    """The samples that count, and what is to be said of the others."""

    samples: pd.DataFrame
    notes: tuple[str, ...]


def ruled(samples: pd.DataFrame, now_s: float | None = None) -> RuledSamples:
    """Return the samples that keep to all rules.

    Parameters
    ----------
    samples : DataFrame
        With from, to, time_s and what else is known.
    now_s : float, optional
        The present, in seconds since 1970; by default this host's clock.

    Raises
    ------
    ProblemError
        A time is in another unit than seconds.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"from": "S", "to": "D", "time_s": 1.7e9, "bandwidth_bytes_per_s": 5.0}
    >>> found = ruled(pd.DataFrame([row, row]))
    >>> len(found.samples), found.notes[0][:60]
    (1, '1 row equal to another one of the same instant counts once: ')
    """
    now_s = time.time() if now_s is None else now_s
    notes: list[str] = []
    for rule in RULES:
        samples, said = rule.apply(samples, now_s)
        notes += said
    return RuledSamples(samples, tuple(notes))


def links_of(samples: pd.DataFrame) -> str:
    """Count and list the links of samples.

    >>> import pandas as pd
    >>> links_of(pd.DataFrame({"from": ["S", "S"], "to": ["D", "D"]}))
    '1 link (S -> D)'
    """
    links = sorted({f"{a} -> {b}" for a, b in zip(samples["from"], samples["to"], strict=True)})
    return f"{counted(len(links), 'link')} ({listed(links, 3)})"


# Hosts --------------------------------------------------------------------------------------


def _one_host_for_an_address(
    samples: pd.DataFrame, _now_s: float
) -> tuple[pd.DataFrame, list[str]]:
    spellings: dict[str, set[str]] = {}
    for name in _names(samples):
        if address := address_of(name):
            spellings.setdefault(address, set()).add(name)
    several = {address: names for address, names in spellings.items() if len(names) > 1}
    if not several:
        return samples, []
    renamed = {name: address for address, names in several.items() for name in names}
    ends = {end: [renamed.get(name, name) for name in samples[end]] for end in ("from", "to")}
    samples = samples.assign(**ends)
    shown = listed([" = ".join(sorted(names)) for names in several.values()], 3)
    text = (
        f"{counted(len(several), 'address', 'addresses')} in several spellings, each one host: "
        f"{shown}; write one of them, or a name"
    )
    notes = [text]
    is_own = (samples["from"] == samples["to"]).to_numpy(dtype=bool)
    if is_own.any():
        notes.append(
            f"left out, as a host's tests to itself: {counted(int(is_own.sum()), 'sample')} of "
            f"{listed(sorted(set(samples['from'][is_own])))}; correct the address of one end"
        )
    return samples[~is_own], notes


def _names_that_differ(samples: pd.DataFrame, _now_s: float) -> tuple[pd.DataFrame, list[str]]:
    alike: dict[str, list[str]] = {}
    for name in sorted(_names(samples)):
        alike.setdefault(bare_name(name), []).append(name)
    groups = [" and ".join(names) for names in alike.values() if len(names) > 1]
    if not groups:
        return samples, []
    text = (
        f"{counted(len(groups), 'group')} of names that differ by case, a final dot or a port "
        f"only, counted as hosts of their own: {listed(groups, 3)}; write one name for one host"
    )
    return samples, [text]


def _names(samples: pd.DataFrame) -> set[str]:
    return {str(name) for end in ("from", "to") for name in samples[end].unique()}


# Times --------------------------------------------------------------------------------------


def _in_seconds(samples: pd.DataFrame, _now_s: float) -> tuple[pd.DataFrame, list[str]]:
    late = (samples["time_s"] > LAST_DATE_S).to_numpy(dtype=bool)
    if late.any():
        row = int(late.argmax())
        raise ProblemError(
            f"samples, row {row}: time_s must be {SECONDS_RULE}, got "
            f"{samples['time_s'].iloc[row]:.15g}; {SECONDS_REMEDY}"
        )
    return samples, []


# What no date can be is no number of seconds: link tables refuse it in the same words.
SECONDS_RULE = "seconds since 1970"
SECONDS_REMEDY = "divide milliseconds by 1000"


def _not_ahead(samples: pd.DataFrame, now_s: float) -> tuple[pd.DataFrame, list[str]]:
    is_ahead = (samples["time_s"] > max(now_s, SINCE_1970_S) + MOST_AHEAD_S).to_numpy(dtype=bool)
    ahead = samples[is_ahead]
    if ahead.empty:
        return samples, []
    last = time.strftime("%Y-%m-%d", time.gmtime(float(ahead["time_s"].max())))
    text = (
        f"left out, as their time lies ahead by more than a day: {counted(len(ahead), 'sample')} "
        f"of {links_of(ahead)}, the last of {last}; check that clocks are right, here and where "
        "they were taken"
    )
    return samples[~is_ahead], [text]


# Rows ---------------------------------------------------------------------------------------


def _once(samples: pd.DataFrame, _now_s: float) -> tuple[pd.DataFrame, list[str]]:
    # Samples without times are all of second 0: equal ones may be tests of their own.
    is_timed = (samples["time_s"] != 0).to_numpy(dtype=bool)
    alike = samples.duplicated(["from", "to", "time_s", "bandwidth_bytes_per_s"])
    if not (alike & is_timed).any():
        return samples, []
    # Cells of columns that somebody added may be of any kind.
    texts = {
        column: [repr(cell) for cell in samples[column]]
        for column in samples.columns
        if samples[column].dtype.kind not in "iufbmM"
    }
    again = (samples.assign(**texts).duplicated() & is_timed).to_numpy(dtype=bool)
    if not again.any():
        return samples, []
    counts = "counts" if again.sum() == 1 else "count"
    text = (
        f"{counted(int(again.sum()), 'row')} equal to another one of the same instant {counts} "
        f"once: {links_of(samples[again])}; remove what was exported twice"
    )
    return samples[~again], [text]


def _held_back(samples: pd.DataFrame, _now_s: float) -> tuple[pd.DataFrame, list[str]]:
    if "limited_by" not in samples:
        return samples, []
    notes = []
    for cause, remedy in _HELD_BACK.items():
        rows = samples[(samples["limited_by"] == cause).to_numpy(dtype=bool)]
        if len(rows):
            notes.append(
                f"{counted(len(rows), 'sample')} of {links_of(rows)} held back by the {cause}, not "
                f"by the link, which may be faster; {remedy}"
            )
    return samples, notes


RULES: tuple[Rule, ...] = (
    Rule(
        "addresses",
        "equal IP addresses, however they are written, are one host",
        _one_host_for_an_address,
    ),
    Rule(
        "names",
        "names that differ by case, a final dot or a port only are hosts of their own, and noted",
        _names_that_differ,
    ),
    Rule("unit", "times are in seconds; later ones than any date are refused", _in_seconds),
    Rule("times ahead", "times more than a day ahead are left out, and noted", _not_ahead),
    Rule("equal rows", "equal rows of one instant count once, and are noted", _once),
    Rule("held back", "samples that the tester held back count, and are noted", _held_back),
)


def require_samples(samples: pd.DataFrame, notes: Iterable[str]) -> None:
    """Raise `ProblemError` where no sample is left; say why, as far as notes know."""
    if samples.empty:
        why = "; ".join(notes)
        raise ProblemError(
            f"no sample of a bandwidth is left{why and ': ' + why}; give tests of bandwidth"
        )
