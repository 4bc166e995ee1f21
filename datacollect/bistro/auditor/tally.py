"""Tally of one partition: each entry judged once, and contradictions counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datacollect.bistro.auditor.findings import (
    DESTINATION,
    DISPLACED_NOT_LOGGED,
    JUDGED_NOT_LOGGED,
    LACKS_ROW,
    NO_VERDICT,
    NOT_LOGGED,
    REFUSED_COLLECTED,
    SAID_ABSENT,
    SAID_LATE,
    SERVICES,
    SUPERSEDED_BY_NOTHING,
    SUPERSEDES_ITSELF,
    Finding,
    finding,
)
from datacollect.bistro.auditor.tables import HELD, NEVER_S
from datacollect.bistro.formats.custody.verdicts import (
    COLLECTED,
    LATE,
    NEVER_CAME,
    REASONS,
    REFUSED,
    SUPERSEDED,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# By its code; 0: there is no verdict.
WORDS = ("missing", COLLECTED, REFUSED, SUPERSEDED)
MISSING_CODE, COLLECTED_CODE, REFUSED_CODE, SUPERSEDED_CODE = range(4)
# A reason is counted from 1; 0: none is given.
LATE_CODE = 1 + REASONS.index(LATE)
ABSENT_CODE = 1 + REASONS.index(NEVER_CAME)
MOST_MISSING = 20
# Above all indices of a log that fits on a disk.
INDEX_STOP = 2**40


@dataclass(frozen=True)
class Rules:
    """Rules by which all partitions are judged.

    Attributes
    ----------
    latest_s : int
        The last second in time.
    is_over : bool
        Whether all verdicts must be there.
    bistros, logs : tuple of str
        Names, by their numbers in the tables.
    batches : frozenset of (int, int)
        Bistro and number of each batch that is here.
    is_whole : bool
        Whether all logs could be read to their end, and no service has signed what contradicts
        them: what is in none was never logged, or a service has kept it from this auditor.
    reasons : tuple of str
        Why something is refused, by the numbers in the tables.
    has_marks : bool
        Whether entries say to their destination of which ticket they are.
    """

    latest_s: int
    is_over: bool
    bistros: tuple[str, ...]
    logs: tuple[str, ...]
    batches: frozenset[tuple[int, int]]
    is_whole: bool
    reasons: tuple[str, ...]
    has_marks: bool = False


@dataclass(frozen=True)
class Tally:
    """Outcome of the entries of a partition.

    Attributes
    ----------
    counts : Counter of str
        Entries: ``in_time`` of which ``collected``, ``refused``, ``superseded``, ``missing`` (of
        these ``acknowledged``: a bistro has signed that it holds them); ``late``, ``unproved``;
        ``refused: REASON``. Verdicts: ``superseded_by_absent``, each by another entry once.
    findings : list of Finding
    missing : list of bytes
        The first that are missing.
    unseen : list of bytes
        The first that were said superseded by an entry that never arrived.
    """

    counts: Counter[str]
    findings: list[Finding]
    missing: list[bytes]
    unseen: list[bytes]


def tally(tables: Mapping[str, np.ndarray], rules: Rules) -> Tally:
    """Judge the entries of a partition.

    Parameters
    ----------
    tables : mapping of str to numpy.ndarray
        All of ``TABLES`` in `datacollect.bistro.auditor.tables`.
    rules : Rules
    """
    entries, times_s, logs = _earliest(tables["logged"])
    verdicts = _Verdicts(tables["said"])
    words, whys = verdicts.on(entries)
    in_time = times_s <= rules.latest_s
    missing = entries[in_time & (words == MISSING_CODE)]
    holders = _holders(missing, tables, rules)
    counts = _counts(words[in_time], whys[in_time], rules.reasons)
    counts["late"] = int((~in_time & (times_s < NEVER_S)).sum())
    counts["unproved"] = int((times_s == NEVER_S).sum())
    counts["acknowledged"] = sum(len(found) for found in holders.values())
    findings, unseen = verdicts.findings(tables["displaced"], rules, entries[in_time])
    counts["superseded_by_absent"] = len(unseen)
    findings += _broken_receipts(tables, rules)
    if rules.is_over:
        for bistros, found in holders.items():
            findings += finding(NO_VERDICT, (*bistros, DESTINATION), found)
        is_late = in_time & (words == REFUSED_CODE) & (whys == LATE_CODE)
        for log in np.unique(logs[is_late]):
            found = _listed(entries[is_late & (logs == log)])
            findings += finding(SAID_LATE, (DESTINATION, rules.logs[log]), found)
        is_absent = (words == REFUSED_CODE) & (whys == ABSENT_CODE)
        for bistros, found in _holders(entries[is_absent], tables, rules).items():
            findings += finding(SAID_ABSENT, (*bistros, DESTINATION), found)
    if rules.is_whole:
        findings += _not_logged(entries, tables, verdicts, rules)
    return Tally(counts, findings, _listed(missing[:MOST_MISSING]), _listed(unseen[:MOST_MISSING]))


def _counts(words: np.ndarray, whys: np.ndarray, reasons: Sequence[str]) -> Counter[str]:
    """Count entries in time by their verdicts."""
    counts = Counter(in_time=len(words))
    for code, word in enumerate(WORDS):
        counts[word] = int((words == code).sum())
    for code, why in enumerate(reasons, 1):
        counts[f"refused: {why}"] = int(((words == REFUSED_CODE) & (whys == code)).sum())
    return counts


def _keys(rows: np.ndarray) -> np.ndarray:
    """Return the entries of rows as text of 32 bytes, which numpy sorts and compares fast.

    All have the same length: what is equal as text is equal byte by byte.
    """
    return np.ascontiguousarray(rows["entry"]).view("S32")


def _listed(keys: np.ndarray) -> list[bytes]:
    # An item of text would lose zeros at its end.
    return [each.tobytes() for each in keys.view("V32")]


def _found(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where wanted keys stand among sorted ones, -1 where they do not."""
    if not len(keys):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def _earliest(logged: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all entries once, with the least of their times, and the log of that."""
    keys = _keys(logged)
    order = np.lexsort((logged["log"], logged["time_s"], keys))
    keys, firsts = np.unique(keys[order], return_index=True)
    return keys, logged["time_s"][order][firsts], logged["log"][order][firsts]


class _Verdicts:
    """The verdicts on each entry, in the order in which they were given."""

    def __init__(self, said: np.ndarray) -> None:
        keys = _keys(said)
        order = np.lexsort((said["index"], keys))
        self._said = said[order]
        self.entries, self._starts, self._which = np.unique(
            keys[order], return_index=True, return_inverse=True
        )
        self._stops = np.append(self._starts[1:], len(said))

    def on(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of word and reason that count of each key; 0 where there are none."""
        at = _found(self.entries, keys)
        # Of no verdict, -1, the row behind the last.
        stops = np.append(self._stops, len(self._said) + 1)[at]
        last = np.append(self._said, np.zeros(1, self._said.dtype))[stops - 1]
        return last["word"], last["why"]

    def findings(
        self, displaced: np.ndarray, rules: Rules, in_time: np.ndarray
    ) -> tuple[list[Finding], np.ndarray]:
        """Return what contradicts itself, and what is superseded by an entry that never arrived.

        The latter can be, and nothing that is public shows whether the other one is of the same
        ticket: only the owner of that can see it.

        Parameters
        ----------
        displaced : numpy.ndarray
        rules : Rules
        in_time : numpy.ndarray
            The entries that logs prove so, rising.
        """
        by_destination = (DESTINATION,)
        found = finding(REFUSED_COLLECTED, by_destination, _listed(self._refused_after_all()))
        by = _keys(displaced)
        theirs = np.ascontiguousarray(displaced["superseded"]).view("S32")
        is_same = by == theirs
        found += finding(SUPERSEDES_ITSELF, by_destination, _listed(np.unique(theirs[is_same])))
        is_unseen = np.zeros(len(by), bool)
        if rules.is_over:
            is_empty = ~is_same & ~self._is_collected(by, displaced["index"])
            if rules.has_marks:
                # Where nothing came of all that a ticket is good for, that stands in the place of
                # what is beyond it.
                is_lie = self._was_collected(by)
                is_unseen, is_empty = is_empty & ~is_lie, is_empty & is_lie
                # A service may show an auditor less of its log than it has shown the destination.
                is_nowhere = is_unseen & (_found(in_time, by) < 0) & rules.is_whole
                found += finding(
                    DISPLACED_NOT_LOGGED,
                    (DESTINATION, SERVICES),
                    _listed(np.unique(theirs[is_nowhere])),
                )
                is_unseen &= ~is_nowhere
            found += finding(
                SUPERSEDED_BY_NOTHING, by_destination, _listed(np.unique(theirs[is_empty]))
            )
        # An entry may be said superseded by several, one after the other.
        pairs = np.unique(np.stack([by[is_unseen], theirs[is_unseen]], axis=1), axis=0)
        return found, pairs[:, 1]

    def _refused_after_all(self) -> np.ndarray:
        """Return the entries that were collected, and then refused."""
        first = np.full(len(self.entries), INDEX_STOP)
        is_collected = self._said["word"] == COLLECTED_CODE
        np.minimum.at(first, self._which[is_collected], self._said["index"][is_collected])
        is_later = self._said["index"] > first[self._which]
        return np.unique(self.entries[self._which[is_later & (self._said["word"] == REFUSED_CODE)]])

    def _was_collected(self, keys: np.ndarray) -> np.ndarray:
        """Return whether the log has ever said of entries that they were collected."""
        is_any = np.zeros(len(self.entries) + 1, bool)
        is_any[self._which[self._said["word"] == COLLECTED_CODE]] = True
        found: np.ndarray = is_any[_found(self.entries, keys)]
        return found

    def _is_collected(self, keys: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Say whether entries counted as collected where the log said so, or right after."""
        at = _found(self.entries, keys)
        is_known = at >= 0
        at, indices = at[is_known], indices[is_known]
        places = self._which * INDEX_STOP + self._said["index"]
        ranks = np.searchsorted(places, at * INDEX_STOP + indices)
        words = np.append(self._said["word"], MISSING_CODE)
        before = (ranks > self._starts[at]) & (words[ranks - 1] == COLLECTED_CODE)
        after = (ranks < self._stops[at]) & (words[ranks] == COLLECTED_CODE)
        found = np.zeros(len(is_known), bool)
        found[is_known] = before | after
        return found


def _holders(
    missing: np.ndarray, tables: Mapping[str, np.ndarray], rules: Rules
) -> dict[tuple[str, ...], list[bytes]]:
    """Return the missing entries that bistros say they hold, by the names of these."""
    held = np.concatenate([tables["held"], tables["promised"]])
    at = _found(missing, _keys(held))
    pairs = np.unique(np.stack([at[at >= 0], held["bistro"][at >= 0].astype(at.dtype)]), axis=1)
    by_entry: dict[int, tuple[str, ...]] = {}
    for i, bistro in pairs.T.tolist():
        by_entry[i] = (*by_entry.get(i, ()), rules.bistros[bistro])
    found: dict[tuple[str, ...], list[bytes]] = {}
    entries = _listed(missing)
    for i, names in by_entry.items():
        found.setdefault(names, []).append(entries[i])
    return found


def _broken_receipts(tables: Mapping[str, np.ndarray], rules: Rules) -> list[Finding]:
    """Return the bistros that have signed receipts whose batches lack such a row."""
    promised = tables["promised"]
    if not len(promised):
        return []
    rows = promised.view(f"S{HELD.itemsize}")
    is_kept = np.isin(rows, tables["held"].view(f"S{HELD.itemsize}"))
    broken: dict[str, list[bytes]] = {}
    for row in promised[~is_kept]:
        if (int(row["bistro"]), int(row["batch"])) in rules.batches:
            broken.setdefault(rules.bistros[row["bistro"]], []).append(row["entry"].tobytes())
    return [
        each
        for bistro, found in broken.items()
        for each in finding(LACKS_ROW, (bistro,), sorted(set(found)))
    ]


def _not_logged(
    entries: np.ndarray, tables: Mapping[str, np.ndarray], verdicts: _Verdicts, rules: Rules
) -> list[Finding]:
    """Return what is held or collected though no log has it."""
    keys = _keys(tables["held"])
    is_absent = _found(entries, keys) < 0
    bistros = tables["held"]["bistro"]
    findings = []
    for bistro in np.unique(bistros[is_absent]):
        found = _listed(np.unique(keys[is_absent & (bistros == bistro)]))
        findings += finding(NOT_LOGGED, (rules.bistros[bistro], SERVICES), found)
    is_collected = verdicts.on(verdicts.entries)[0] == COLLECTED_CODE
    found = _listed(verdicts.entries[(_found(entries, verdicts.entries) < 0) & is_collected])
    return findings + finding(JUDGED_NOT_LOGGED, (DESTINATION, SERVICES), found)
