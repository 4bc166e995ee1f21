"""Explore at random: families of cases, each with its seed; resumable, for hours.

A family is a module beside this one with ``case(seed)``, which returns None where all is well,
else what is wrong; whatever it raises is wrong, too, and so is a case that does not end. Cases are
carried out in stretches of consecutive seeds by a process of their own. What has been done lies in
``results.jsonl``, a line for each stretch; started again in the same folder it goes on.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from instances.kept_lines import KeptLines, exit_when_terminated, say

HERE = Path(__file__).resolve().parent
# A stretch ends after so long, or so many cases: then it is kept.
STRETCH_S, MOST_IN_STRETCH = 20.0, 500
# A case that takes longer hangs, whatever else this machine does.
LIMIT_S = 900.0
SEEDS = 2**31
WORDS, SHOWN = 400, 6
# Modules here that are no family.
OTHERS = ("run",)


@dataclass(frozen=True)
class Stretch:
    """Cases of a family with consecutive seeds, and what was wrong with some of them."""

    family: str
    first_seed: int
    n_cases: int
    seconds: float
    faults: tuple[tuple[int, str], ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """Which stretch it is."""
        return self.family, self.first_seed

    @property
    def end(self) -> int:
        """The seed after its last one."""
        return self.first_seed + self.n_cases


def results_in(path: Path) -> KeptLines[Stretch]:
    """Return what a file has kept."""

    def stretch_of(tree: dict[str, Any]) -> Stretch:
        return Stretch(**tree | {"faults": tuple((seed, what) for seed, what in tree["faults"])})

    return KeptLines(path, stretch_of)


def families() -> dict[str, str]:
    """Return the name of each family with what it looks at: its docstring's first line."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        if path.stem in OTHERS or path.stem.startswith("test_"):
            continue
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        found[path.stem] = (docstring or "").split("\n", 1)[0].rstrip(".")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; exit 1 where a case was wrong."""
    options = _options(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    results = results_in(options.folder / "results.jsonl")
    if options.anew:
        results.forget(lambda stretch: stretch.family in options.families)
    try:
        if options.faulty:
            _repeat(options, results)
        elif options.minutes != 0:
            _explore(options, results)
    except KeyboardInterrupt:
        say("interrupted: started again it goes on")
    kept = list(results.by_key.values())
    say(summary(kept))
    if options.table is not None:
        options.table.write_text(table(kept), encoding="utf-8")
        say(f"saved to {options.table}")
    return 1 if any(stretch.faults for stretch in kept) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = families()
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0],
        epilog="; ".join(f"{name}: {what}" for name, what in names.items()),
    )
    default = Path(tempfile.gettempdir()) / "datacollect-explore"
    parser.add_argument("--folder", type=Path, default=default, help="of results")
    parser.add_argument("--families", default=",".join(names), help="which of them")
    parser.add_argument("--minutes", type=float, default=20, help="each family; 0: only report")
    parser.add_argument(
        "--cases", type=int, default=20_000, help="most of each family, kept ones too"
    )
    parser.add_argument("--seed", type=int, help="of a family's first case; drawn if not given")
    parser.add_argument("--faulty", action="store_true", help="again, where something was wrong")
    parser.add_argument("--anew", action="store_true", help="forget these families' results")
    parser.add_argument("--table", type=Path, help="write counts there, in Markdown")
    found = parser.parse_args(arguments)
    found.folder = found.folder.resolve()
    found.families = found.families.split(",")
    unknown = [name for name in found.families if name not in names]
    if unknown:
        parser.error(f"no family {', '.join(unknown)}; there are {', '.join(names)}")
    return found


def _explore(options: argparse.Namespace, results: KeptLines[Stretch]) -> None:
    """Carry stretches out, one of each family in turn: whoever ends it early has seen all."""
    left_s = dict.fromkeys(options.families, 60.0 * options.minutes)
    while left_s:
        for family in list(left_s):
            done = [each for each in results.by_key.values() if each.family == family]
            n_left = options.cases - sum(each.n_cases for each in done)
            if n_left <= 0 or left_s[family] <= 0:
                del left_s[family]
                continue
            first = max((each.end for each in done), default=_first_seed(options.seed))
            stretch = carry_out(
                family, first, min(n_left, MOST_IN_STRETCH), min(left_s[family], STRETCH_S)
            )
            results.add(stretch)
            left_s[family] -= max(stretch.seconds, 0.01)
            _say_stretch(stretch)


def _first_seed(given: int | None) -> int:
    return random.SystemRandom().randrange(SEEDS) if given is None else given


def _repeat(options: argparse.Namespace, results: KeptLines[Stretch]) -> None:
    """Carry out again what was wrong; what is right now is so in what is kept."""
    for stretch in list(results.by_key.values()):
        if stretch.family not in options.families or not stretch.faults:
            continue
        faults = [
            fault
            for seed, _ in stretch.faults
            for fault in carry_out(stretch.family, seed, 1, LIMIT_S).faults
        ]
        results.add(replace(stretch, faults=tuple(faults)))
        _say_stretch(results.by_key[stretch.key])


def _say_stretch(stretch: Stretch) -> None:
    seeds = f"seeds {stretch.first_seed} to {stretch.end - 1}"
    say(f"{stretch.family}: {seeds}, {stretch.seconds:.0f} s, {len(stretch.faults)} faults")
    for seed, what in stretch.faults[:SHOWN]:
        say(f"   {seed}: {what}")


def carry_out(family: str, first: int, most_cases: int, most_s: float) -> Stretch:
    """Carry out cases from a seed on, in a process of their own: they may hang, or end it."""
    began_s = time.monotonic()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as told:
            _tell_cases(family, range(first, first + most_cases), most_s, told)
        os._exit(0)
    os.close(writer)
    try:
        told = [*_told(reader)]
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    ended = {seed: what for seed, what in told if what is not BEGINS}
    for seed, _ in told[-1:]:
        if seed not in ended:
            code = os.waitstatus_to_exitcode(status)
            hung = time.monotonic() - began_s > LIMIT_S
            ended[seed] = f"no end in {LIMIT_S:g} s" if hung else f"ended its process: {code}"
    faults = tuple((seed, what) for seed, what in ended.items() if what is not None)
    return Stretch(family, first, len(ended), time.monotonic() - began_s, faults)


BEGINS = object()


def _told(reader: int) -> Iterator[tuple[int, object]]:
    """Yield seeds as their cases begin, and with what was wrong as they end."""
    rest = b""
    while select.select([reader], [], [], LIMIT_S)[0]:
        data = os.read(reader, 65536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            seed, *what = json.loads(line)
            yield seed, what[0] if what else BEGINS


def _tell_cases(family: str, seeds: Iterable[int], most_s: float, told: TextIO) -> None:
    case = importlib.import_module(f"explore.{family}").case
    # On a busy machine what a family imports may take longer than a stretch.
    until_s = time.monotonic() + most_s
    for seed in seeds:
        told.write(json.dumps([seed]) + "\n")
        told.flush()
        told.write(json.dumps([seed, _fault_of(case, seed)]) + "\n")
        told.flush()
        if time.monotonic() >= until_s:
            return


def _fault_of(case: Any, seed: int) -> str | None:
    try:
        what = case(seed)
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed is to be looked at
        at = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}, {at.line}: {error}"
    return None if what is None else " ".join(what.split())[:WORDS]


def summary(stretches: Sequence[Stretch]) -> str:
    """Return what came of it, in words; of each family's faults the first few."""
    lines = [f"{sum(each.n_cases for each in stretches)} cases in {len(stretches)} stretches"]
    for family in families():
        faults = [fault for each in stretches if each.family == family for fault in each.faults]
        if faults:
            lines.append(f"{family}: {len(faults)} faults")
            lines += [f"   {seed}: {what}" for seed, what in faults[:SHOWN]]
    return "\n".join(lines)


def table(stretches: Sequence[Stretch]) -> str:
    """Return counts by family, in Markdown."""
    lines = [
        "| family | looks at | cases | seconds | first seed | last seed | faults |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for family, what in families().items():
        done = [each for each in stretches if each.family == family]
        if done:
            n_cases, n_faults = sum(e.n_cases for e in done), sum(len(e.faults) for e in done)
            seconds = sum(e.seconds for e in done)
            first, last = min(e.first_seed for e in done), max(e.end for e in done) - 1
            cells = (f"`{family}`", what, n_cases, f"{seconds:.0f}", first, last, n_faults)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    # The process that carries cases out must not outlive it.
    exit_when_terminated()
    sys.exit(main())
