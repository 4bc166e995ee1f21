"""Fail the n-th call: all experiments, or some; resumable, in the background, for hours.

Each experiment is one pull of a small collection with one call failing; `judge.py` says what has
to be true afterwards. What is to be done lies in ``plan.json``, what has been done in
``results.jsonl``, a line for each; started again in the same folder it goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.bench import Result
from faults.experiments import SHIM, TARGETS, Experiment, one_of_each_pair, one_of_each_site
from faults.laboratory import Laboratory, carry_out_all, why_no_tracing
from faults.world import Program
from instances.kept_lines import KeptLines, exit_when_terminated, say

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN_KEYS = 4
SAYS_EVERY_S = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; exit 1 where a rule was broken."""
    options = _options(arguments)
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    results = KeptLines(folder / "results.jsonl", _result_of)
    if options.minutes != 0:
        why = why_no_tracing()
        if why is not None:
            say(f"{why}: only faults inside of Python are tried")
        _carry_out(options, results)
    plan = _read_plan(folder / "plan.json") or []
    by_key = {experiment.key: experiment for experiment in plan}
    kept = {key: result for key, result in results.by_key.items() if key in by_key}
    say(summary(kept, by_key))
    if options.table is not None:
        options.table.write_text(table(kept, by_key))
        say(f"saved to {options.table}")
    return 1 if any(result.findings for result in kept.values()) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    default = Path(tempfile.gettempdir()) / "datacollect-faults"
    parser.add_argument("--folder", type=Path, default=default, help="of plan and results")
    parser.add_argument("--sample", type=int, help="so many experiments, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument("--only", help="experiments whose key matches this expression")
    parser.add_argument("--pairs", action="store_true", help="each site and error once")
    parser.add_argument("--sites", action="store_true", help="and of all targets only the first")
    parser.add_argument("--minutes", type=float, help="begin none after so long; 0: only report")
    parser.add_argument("--injector", choices=["strace", "shim", "imports"], help="only this one")
    parser.add_argument("--targets", default=",".join(TARGETS), help="whose calls fail")
    parser.add_argument("--places", type=int, default=3, help="most n for each site and error")
    parser.add_argument("--jobs", type=int, default=2, help="experiments at the same time")
    parser.add_argument("--anew", action="store_true", help="forget plan and results")
    parser.add_argument("--again", help="forget the results whose key matches this expression")
    parser.add_argument("--broken", action="store_true", help="again, where a rule was broken")
    parser.add_argument("--table", type=Path, help="write counts there, in Markdown")
    parser.add_argument("--python", default=sys.executable, help="the program's interpreter")
    parser.add_argument("--path", help="folder of the program's sources, if not as installed")
    found = parser.parse_args(arguments)
    found.folder = found.folder.resolve()
    return found


def _result_of(tree: dict[str, Any]) -> Result:
    return Result(**tree | {"findings": tuple((rule, what) for rule, what in tree["findings"])})


def _carry_out(options: argparse.Namespace, results: KeptLines[Result]) -> None:
    until_s = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    if options.anew:
        results.forget(lambda _: True)
    if options.again:
        results.forget(lambda result: re.search(options.again, result.key) is not None)
    if options.broken:
        options.keys = {key for key, result in results.by_key.items() if result.findings}
        results.forget(lambda result: bool(result.findings))
    plan_file = options.folder / "plan.json"
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as scratch,
        Laboratory(Path(scratch), Program(options.python, options.path)) as laboratory,
    ):
        benches = [laboratory.bench() for _ in range(options.jobs)]
        plan = None if options.anew else _read_plan(plan_file)
        if plan and laboratory.may_trace and all(e.injector == SHIM for e in plan):
            plan = None  # it was made where nothing could be traced
        if plan is None:
            say("recording clean runs")
            plan = benches[0].experiments(places=options.places)
            plan_file.write_text(json.dumps([experiment.to_dict() for experiment in plan]))
        if not laboratory.may_trace:
            plan = [experiment for experiment in plan if experiment.injector == SHIM]
        chosen = _chosen(plan, options)
        left = [experiment for experiment in chosen if experiment.key not in results.by_key]
        say(f"{len(plan)} experiments, {len(chosen)} chosen, {len(left)} to do")
        said_s = time.monotonic()
        for _ in carry_out_all(benches, left, results.add, until_s=until_s):
            if time.monotonic() > said_s + SAYS_EVERY_S:
                said_s = time.monotonic()
                found = [r for e in left if (r := results.by_key.get(e.key)) is not None]
                n_broken = sum(bool(result.findings) for result in found)
                say(f"{len(left) - len(found)} to do, {n_broken} with a rule broken")


def _chosen(plan: list[Experiment], options: argparse.Namespace) -> list[Experiment]:
    found = [e for e in plan if options.injector in (None, e.injector)]
    found = [e for e in found if e.target in options.targets.split(",")]
    if options.broken:
        found = [e for e in found if e.key in options.keys]
    if options.only:
        found = [e for e in found if re.search(options.only, e.key)]
    if options.pairs:
        found = one_of_each_pair(found)
    if options.sites:
        found = one_of_each_site(found)
    # In any order: who ends it early has seen something of everything.
    random.Random(options.seed).shuffle(found)
    return found[: options.sample]


def _read_plan(path: Path) -> list[Experiment] | None:
    if not path.exists():
        return None
    return [Experiment.from_dict(tree) for tree in json.loads(path.read_text())]


def summary(results: dict[str, Result], experiments: dict[str, Experiment]) -> str:
    """Return what came of it, in words: counts, and broken rules with what was said."""
    n_reached = sum(result.reached > 0 for result in results.values())
    n_meant = sum(result.as_meant for result in results.values())
    broken = [result for result in results.values() if result.findings]
    lines = [
        f"{len(results)} of {len(experiments)} experiments done",
        f"{len(results) - n_reached} times the n-th call was not reached",
        f"{n_reached - n_meant} times the n-th call was another site's",
        f"{sum(r.tries > 1 for r in results.values())} times a second try with more time counts",
        f"{len(broken)} times a rule was broken",
    ]
    kinds: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in broken:
        for rule, what in dict.fromkeys(result.findings):
            said = same_words(last_line(result.stderr)) if rule == "b" else ""
            kinds[rule, same_words(what), said].append(result)
    for (rule, what, said), each in sorted(kinds.items(), key=lambda item: -len(item[1])):
        lines += ["", f"{rule}: {what} ({len(each)} times)"]
        if said:
            lines.append(f"   said: {said}")
        lines += [f"   {result.key}" for result in each[:SHOWN_KEYS]]
    return "\n".join(lines)


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or [""])[-1]


def same_words(text: str) -> str:
    """Return a message without what differs from run to run."""
    # Of an internal error its kind is enough: which call it was stands in the key.
    text = re.sub(r"(internal error: \w+).*", r"\1", text)
    text = re.sub(r"(/[\w.\-?*é]+)+/(into|world|run|status|again)\b", "…", text)
    return re.sub(r"'[^']*'", "'…'", re.sub(r"\d+", "N", text))[:240]


def table(results: dict[str, Result], experiments: dict[str, Experiment]) -> str:
    """Return counts by group of calls and error, in Markdown."""
    done, reached, broken = Counter(), Counter(), Counter()
    for key, result in results.items():
        place = experiments[key].group, experiments[key].error
        done[place] += 1
        reached[place] += result.reached > 0
        broken[place] += bool(result.findings)
    lines = ["| calls | error | tried | reached | rule broken |", "|---|---|--:|--:|--:|"]
    lines += [
        f"| {group} | {error} | {n} | {reached[group, error]} | {broken[group, error]} |"
        for (group, error), n in sorted(done.items())
    ]
    total = f"| all | | {done.total()} | {reached.total()} | {broken.total()} |"
    return "\n".join([*lines, total, ""])


if __name__ == "__main__":
    # Agents and a tracer must not outlive it.
    exit_when_terminated()
    sys.exit(main())
