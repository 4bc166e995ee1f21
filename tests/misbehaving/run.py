"""Servers that misbehave: all behaviours, with all that tools may know, by each tool; resumable.

Cases are carried out in batches, many files at a time; `cases.py` judges what came of each. Rows of
the table take turns: who ends it early has seen as much of each. What has been done lies in
``results.jsonl``, a line for each case, with the state of the code that it judges; started again in
the same folder it goes on, and does again what was of other code.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from instances.kept_lines import KeptLines, exit_when_terminated, say
from judges.misbehaviour import enumerate_behaviours
from judges.strict_client import VARIANTS, Known
from misbehaving.cases import NEXT_NEIGHBOUR, Case, Outcome, Starts, Verdict
from misbehaving.code_state import code_state, digest_now
from misbehaving.pulling import Pulls
from misbehaving.scripting import TOOLS, Scripts

PULL = "pull"
# So many cases at a time. All of a script's have the same knowledge.
BATCH = {PULL: 400, "curl": 120, "aria2": 120, "rclone": 120}
SHOWN = 6
BESIDE = re.compile(r"a plain file beside others, (\d+)")


class Group(NamedTuple):
    """Cases that are done alike: by a tool, in starts of a kind, with as much known."""

    tool: str
    starts: Starts
    known: Known


def groups(tools: Sequence[str]) -> list[Group]:
    """Return all groups; scripts know sizes always."""
    return [
        Group(tool, starts, known)
        for tool in tools
        for starts in Starts
        for known in VARIANTS
        if known.n_bytes or tool == PULL
    ]


def cases_of(known: Known) -> list[Case]:
    """Return every behaviour as a case; its number is its own in all groups."""
    variant = VARIANTS.index(known)
    return [
        Case(behaviour, known, len(VARIANTS) * i + variant)
        for i, behaviour in enumerate(enumerate_behaviours())
    ]


def carry_out(tool: str, starts: Starts, cases: Sequence[Case]) -> list[Result]:
    """Carry out a batch; what came of it badly counts where it does so twice: machines are busy."""
    first, again = _once(tool, starts, cases), {}
    if any(result.is_bad for result in first):
        again = {result.key: result for result in _once(tool, starts, cases)}
    return [again.get(each.key, each) if each.is_bad else each for each in first]


def _once(tool: str, starts: Starts, cases: Sequence[Case]) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="misbehaving-") as name:
        folder = Path(name)
        bench = Pulls(folder, cases) if tool == PULL else Scripts(folder, tool, cases)
        return [Result.of(tool, outcome) for outcome in bench.run(starts)]


@dataclass(frozen=True)
class Result:
    """Result of a case, as a line of the file has it."""

    tool: str
    starts: str
    known: str
    behaviour: str
    n_bytes: int
    verdict: str
    why: str
    n_requests: int
    sent_bytes: int
    code: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Which case it is."""
        return self.tool, self.starts, self.known, self.behaviour

    @property
    def for_case(self) -> tuple[str, str, str, str]:
        """For the sake of which case it was served: twins and plain files lie beside one."""
        behaviour = self.behaviour.replace(", again", "")
        if plain := BESIDE.fullmatch(behaviour):
            number = int(plain[1]) % NEXT_NEIGHBOUR
            behaviour = enumerate_behaviours()[number // len(VARIANTS)].key
        return self.tool, self.starts, self.known, behaviour

    @property
    def is_bad(self) -> bool:
        """Whether it may never be."""
        return Verdict(self.verdict).is_bad

    @classmethod
    def of(cls, tool: str, outcome: Outcome) -> Result:
        """Return an outcome as a line has it."""
        case = outcome.case
        return cls(
            tool,
            outcome.starts.value,
            str(case.known),
            case.words,
            len(case.file.data),
            outcome.verdict.value,
            outcome.why[:300],
            outcome.n_requests,
            outcome.sent_bytes,
            code_state(tool),
        )


def results_in(path: Path) -> KeptLines[Result]:
    """Return what a file has kept that is of the code as it is."""
    return KeptLines(
        path,
        lambda tree: Result(**tree),
        is_stale=lambda result: result.code != code_state(result.tool),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; exit 1 where something bad came of a case."""
    options = options_of(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    results = results_in(options.folder / "results.jsonl")
    if results.n_stale:
        say(f"{results.n_stale} results are of other code: they do not count")
    if options.minutes != 0:
        _carry_out_all(options, results)
    kept = list(results.by_key.values())
    say(summary(kept))
    if options.table is not None:
        options.table.write_text(table(kept))
        say(f"saved to {options.table}")
    return 1 if any(result.is_bad for result in kept) else 0


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    default = Path(tempfile.gettempdir()) / "datacollect-misbehaving"
    parser.add_argument("--folder", type=Path, default=default, help="of results")
    parser.add_argument("--tools", default=",".join([PULL, *TOOLS]), help="which of them")
    parser.add_argument("--starts", help="only this kind: bad; good, then bad; bad, then good")
    parser.add_argument("--sample", type=int, help="so many behaviours, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument("--only", help="behaviours that match this expression")
    parser.add_argument("--bad", action="store_true", help="again, where something bad came of it")
    parser.add_argument("--minutes", type=float, help="begin no batch after so long; 0: report")
    parser.add_argument("--batch", type=int, help="cases at a time, where a machine is busy")
    parser.add_argument("--anew", action="store_true", help="forget the results")
    parser.add_argument("--table", type=Path, help="write counts there, in Markdown")
    found = parser.parse_args(arguments)
    found.folder = found.folder.resolve()
    return found


def _carry_out_all(options: argparse.Namespace, results: KeptLines[Result]) -> None:
    until_s = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    if options.anew:
        results.path.unlink(missing_ok=True)
        results.by_key.clear()
    # What is bad stays so until the same file has been seen again.
    again = {result.for_case for result in results.by_key.values() if result.is_bad}
    for batch in batches(options, results, again):
        if time.monotonic() > until_s:
            return
        _, tool, starts, cases = batch
        began_s = time.monotonic()
        state = code_state(tool)
        found = carry_out(tool, starts, cases)
        if digest_now(tool) != state:
            say(f"the code has changed, the last {len(cases)} cases do not count: start again")
            return
        results.add(*found)
        n_bad = sum(result.is_bad for result in found)
        seconds = time.monotonic() - began_s
        known = "all" if tool == PULL else cases[0].known
        say(f"{tool} | {starts.value} | {known}: {len(cases)} in {seconds:.0f} s, {n_bad} bad")


class Batch(NamedTuple):
    """Cases carried out at once, and how many of its rows come before it."""

    n_before: float
    tool: str
    starts: Starts
    cases: list[Case]


def batches(options: argparse.Namespace, results: KeptLines[Result], again: set) -> list[Batch]:
    """Return what is to be done: each row's first cases before any row's next ones."""
    order = list(range(len(enumerate_behaviours())))
    random.Random(options.seed).shuffle(order)
    rows: dict[tuple[str, Starts, Known | None], list[list[Case]]] = defaultdict(list)
    n_done: Counter[tuple[str, Starts, Known | None]] = Counter()
    for tool, starts, known in groups(options.tools.split(",")):
        if options.starts not in (None, starts.value):
            continue
        # Each row begins elsewhere: together they have seen many behaviours early.
        all_of_tool = groups([tool])
        begin = all_of_tool.index((tool, starts, known)) * len(order) // len(all_of_tool)
        all_cases = cases_of(known)
        cases = [all_cases[i] for i in order[begin:] + order[:begin]]
        cases = [c for c in cases if re.search(options.only or "", c.behaviour.key)]
        # One pull takes files of all kinds of knowledge.
        row = tool, starts, None if tool == PULL else known
        rows[row].append([])
        for case in cases[: options.sample]:
            key = tool, starts.value, str(known), case.behaviour.key
            if (key in again) if options.bad else key not in results.by_key:
                rows[row][-1].append(case)
            else:
                n_done[row] += 1
    found = []
    for (tool, starts, known), parts in rows.items():
        cases = [case for case in chain(*zip_longest(*parts)) if case is not None]
        step = options.batch or BATCH[tool]
        for i in range(0, len(cases), step):
            n_before = (n_done[tool, starts, known] + i) / len(parts)
            found.append(Batch(n_before, tool, starts, cases[i : i + step]))
    return sorted(found, key=lambda batch: batch.n_before)


def summary(results: Sequence[Result]) -> str:
    """Return what came of it, in words: counts, and what is bad with what was said."""
    counts = Counter(result.verdict for result in results)
    lines = [f"{len(results)} cases", *(f"  {counts[v.value]:7} {v.value}" for v in Verdict)]
    kinds: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        if result.is_bad:
            kinds[result.verdict, result.tool, result.starts].append(result)
    for (verdict, tool, starts), found in sorted(kinds.items(), key=lambda item: -len(item[1])):
        lines += ["", f"{verdict}: {tool}, {starts} ({len(found)} times)"]
        # Those that deviate least say most.
        found.sort(key=lambda result: (result.behaviour.count(": "), result.behaviour))
        for result in found[:SHOWN]:
            amounts = f"{result.n_requests} requests, {result.sent_bytes} of {result.n_bytes} bytes"
            lines.append(f"   {result.behaviour} | knows {result.known} | {amounts}")
            lines.append(f"      {' '.join(result.why.split())[:160]}")
    return "\n".join(lines)


def table(results: Sequence[Result]) -> str:
    """Return counts by tool, starts and knowledge, in Markdown."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for result in results:
        counts[result.tool, result.starts, result.known][result.verdict] += 1
    verdicts = [verdict.value for verdict in Verdict]
    lines = ["| tool | server | known | cases | " + " | ".join(verdicts) + " |"]
    lines.append("|---|---|---|--:|" + "--:|" * len(verdicts))
    rows = [(group.tool, group.starts.value, str(group.known)) for group in groups([PULL, *TOOLS])]
    for row in rows:
        if found := counts.get(row):
            cells = [*row, found.total(), *(found[verdict] for verdict in verdicts)]
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    total = Counter(result.verdict for result in results)
    cells = ["all", "", "", total.total(), *(total[verdict] for verdict in verdicts)]
    lines += ["| " + " | ".join(str(cell) for cell in cells) + " |", "", *_colophon(results)]
    return "\n".join([*lines, ""])


def _colophon(results: Sequence[Result]) -> Iterator[str]:
    """Yield how many behaviours each tool has seen, and of which code that is."""
    # Without plain files beside others, and twins.
    keys = {behaviour.key for behaviour in enumerate_behaviours()}
    for tool in (PULL, *TOOLS):
        mine = [result for result in results if result.tool == tool]
        for code in sorted({result.code for result in mine}):
            n = len({result.behaviour for result in mine if result.code == code} & keys)
            yield f"- {tool}: {n} of {len(keys)} behaviours, by the code whose digest is `{code}`"


if __name__ == "__main__":
    # Servers and tools must not outlive it.
    exit_when_terminated()
    sys.exit(main())
