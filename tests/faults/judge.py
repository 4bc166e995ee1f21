"""Invariants after a run, whatever failed: from first principles, by letter.

a. It ended in time.
b. It ended as the documents say: a known exit code, no internal error, no traceback, and what is
   the system's fault is not called damage.
c. Exit 0 only with all files there, and an answer that says so; and never where the disk has
   refused to keep what was written, though every file can be read still.
d. What has its final name is whole and right.
e. `datacollect status` tells the truth.
f. The answer names what is missing, if and only if something is.
g. The same command, started again without a fault, ends well, with nothing lost or lying about.
h. Where an agent fails, sources that have nothing to do with it are complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from faults.processes import STUCK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from faults.processes import Ended

CODES = (0, 1, 2, 3, 130, 143)
KILLED = -9
STATE = ".datacollect"
# What a pull keeps of what it promised: a file, and who writes it.
PROMISES = (f"{STATE}/history.jsonl", "promises.py:keep")
# SQLite's files come and go with its log.
COMES_AND_GOES = re.compile(r"-(wal|shm|journal)$")
# What a disk that is full or broken says.
REFUSALS = ("ENOSPC", "EDQUOT", "EIO")
# Where memory ends, the C library or an extension may end the process.
CRASHES = (-6, -7, -11)
# What a machine with much else to do may break: it counts if more time does not help.
OF_SLOWNESS = frozenset("agh")
NOT_MADE = "?"
NOT_ENDED = "had not ended"
# By source and path.
Files: TypeAlias = "Mapping[str, Mapping[str, bytes]]"

PYTHONS_OWN = "Exception ignored in thread started by"


@dataclass(frozen=True)
class Finding:
    """A rule that was broken, by its letter, and how."""

    rule: str
    what: str


def may_be_slowness(findings: Collection[tuple[str, str]]) -> bool:
    """Whether more time may mend all that was found, as rules and words."""
    may = OF_SLOWNESS | {NOT_MADE}
    return bool(findings) and all(rule in may or NOT_ENDED in what for rule, what in findings)


def judge_pull(ended: Ended, files: Files, into: Path, **how: Any) -> list[Finding]:
    """Judge a run by a, b, c, d, f; `judge_end` says what else may be told."""
    found = [*judge_end(ended, **how), *wrong_files(files, into)]
    answer = ended.answer()
    absent = absent_files(files, into)
    if ended.code == 0:
        if answer is None:
            found.append(Finding("c", "exit 0 without an answer"))
        elif answer.get("complete") is not True:
            found.append(Finding("c", "exit 0, and the answer is not that all is there"))
        if absent:
            found.append(Finding("c", f"exit 0, and {len(absent)} files are not there"))
    if answer is not None:
        found += _judge_answer(answer, ended, len(absent))
    return found


def judge_kept(ended: Ended, call: str, kind: str, error: str) -> list[Finding]:
    """Judge a run in which a call has failed, by c: what was not synced is not there.

    SQLite passes over a failure to sync the folder of its files, and over one as it puts its log
    into the state in the end: all is in the log still. What happened serves later estimates, and is
    no part of what was asked: that it could not be kept has to be told, and fails nothing.
    """
    is_sync = re.fullmatch(r"(os\.)?(fsync|fdatasync|syncfs)", call) is not None
    is_sqlites = call == "fdatasync" and re.fullmatch(rf"\{STATE}(/state\.sqlite)?", kind)
    is_told = kind in PROMISES and "could not be saved" in ended.stderr
    if is_sync and not (is_sqlites or is_told) and error in REFUSALS and ended.code == 0:
        return [Finding("c", "exit 0, and the disk has refused to keep what was written")]
    return []


def _judge_answer(answer: dict[str, Any], ended: Ended, n_absent: int) -> list[Finding]:
    found = []
    complete, missing = answer.get("complete"), answer.get("missing")
    if bool(missing) == bool(complete):
        found.append(Finding("f", f"complete is {complete}, missing has {len(missing or ())}"))
    if complete and n_absent:
        found.append(Finding("c", f"the answer is that all is there; {n_absent} files are not"))
    if complete and ended.code not in (0, *CRASHES, KILLED):
        found.append(Finding("c", f"the answer is that all is there; exit code {ended.code}"))
    return found


def judge_end(
    ended: Ended,
    may_die: Iterable[int] = (),
    *,
    is_garbage: bool = False,
    full_disk: bool = False,
) -> list[Finding]:
    """Judge how a run ended, by a and b.

    Parameters
    ----------
    may_die : iterable of int
        Exit codes that count, too: negative, of signals.
    is_garbage : bool
        Whether what was read of the state was wrong: then it may be called damaged.
    full_disk : bool
        Whether the disk of the pull was made to fail, or to be full.
    """
    # Where memory runs out as a thread begins, whoever starts it waits for ever in Python itself:
    # https://github.com/python/cpython/issues/140746.
    if ended.code == STUCK and PYTHONS_OWN in ended.stderr and "MemoryError" in ended.stderr:
        return []
    if ended.code == STUCK:
        return [Finding("a", f"{NOT_ENDED} after {ended.took_s:.0f} s")]
    found = []
    if ended.code not in (*CODES, *may_die):
        found.append(Finding("b", f"exit code {ended.code}"))
    said = ended.stderr
    if "internal error" in said:
        found.append(Finding("b", "internal error"))
    elif "Traceback (most recent call last)" in said:
        found.append(Finding("b", "a traceback"))
    if ended.code == 2 and full_disk:
        found.append(Finding("b", "exit 2, and the disk is full or fails: that is exit 3"))
    if re.search(r"damaged|move \S*\s*away", said) and not is_garbage:
        found.append(Finding("b", "what the system refused is called damage"))
    return found


def wrong_files(files: Files, into: Path) -> list[Finding]:
    """Return what has a final name and is not what the source holds."""
    found = []
    for source, wanted in files.items():
        for path, data in stored(into / source).items():
            if path in wanted and data != wanted[path]:
                found.append(Finding("d", f"{source}/{path} has its name and is not whole"))
            elif path not in wanted:
                found.append(Finding("d", f"{source}/{path} is no file of the source"))
    return found


def absent_files(files: Files, into: Path) -> list[str]:
    """Return what is not there."""
    return [
        f"{source}/{path}"
        for source, wanted in files.items()
        for path in wanted
        if not (into / source / path).is_file()
    ]


def stored(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, without what a collector keeps there for itself."""
    if not folder.is_dir():
        return {}
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(STATE) for p in path.relative_to(folder).parts)
    }


def judge_status(ended: Ended, pulled: Ended, files: Files, into: Path) -> list[Finding]:
    """Judge what `status` says after a run, by e."""
    absent = absent_files(files, into)
    answer = ended.answer()
    found = [Finding("e", f"status: {f.what}") for f in judge_end(ended)]
    if ended.code not in (0, 1, 2) or (ended.code != 2 and answer is None):
        found.append(Finding("e", f"status: exit code {ended.code}"))
        return found
    if ended.code == 2:
        # Nothing was ever started: then nothing is there, and the pull cannot have ended well.
        if pulled.code in (0, 1) or len(absent) < sum(map(len, files.values())):
            found.append(Finding("e", f"status: exit 2 after a pull with exit {pulled.code}"))
        return found
    complete = answer.get("complete")
    if complete != (ended.code == 0):
        found.append(Finding("e", f"status: exit {ended.code}, and complete is {complete}"))
    if complete and absent:
        found.append(Finding("e", f"status says complete; {len(absent)} files are not there"))
    if pulled.code == 0 and not complete:
        found.append(Finding("e", "status says not complete, after exit 0"))
    return found


def judge_again(ended: Ended, files: Files, into: Path, kept: Iterable[str]) -> list[Finding]:
    """Judge the same command, started again without a fault, by g.

    Parameters
    ----------
    kept : iterable of str
        What a clean pull leaves in its own folder.
    """
    found = [Finding("g", f"again: {f.what}") for f in judge_pull(ended, files, into)]
    absent = absent_files(files, into)
    if ended.code != 0:
        found.append(Finding("g", f"again: exit {ended.code}, {len(absent)} files are not there"))
    found += [Finding("g", f"again: {what} lies about") for what in lying_about(files, into, kept)]
    return found


def lying_about(files: Files, into: Path, kept: Iterable[str]) -> list[str]:
    """Return what is in the folder of a pull and should not be."""
    if not into.is_dir():
        return []
    found = sorted({path.name for path in into.iterdir()} - {*files, STATE})
    for source, wanted in files.items():
        needed = {str(parent) for path in wanted for parent in PurePath(path).parents}
        folders = (path for path in (into / source).rglob("*") if path.is_dir())
        inside = {str(path.relative_to(into / source)) for path in folders}
        strange = {
            path for path in inside - needed if not path.rpartition("/")[2].startswith(STATE)
        }
        found += sorted(f"{source}/{path}" for path in strange)
    return found + sorted(own_files(into) - {*kept})


def own_files(into: Path) -> set[str]:
    """Return the files that a collector keeps for itself."""
    return {
        str(path.relative_to(into))
        for path in into.rglob("*")
        if path.is_file()
        and any(part.startswith(STATE) for part in path.relative_to(into).parts)
        and not COMES_AND_GOES.search(path.name)
    }
