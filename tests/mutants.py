"""Mutants: does some test fail where the judge, fair shares or a controller is changed a little?

    python tests/mutants.py [--sample 60] [--seed 0] [--only datacollect/control]

Cosmic Ray makes the mutants, one change each, in a copy of the repository; each is judged by the
tests that stand beside it, until the first fails. One that hangs is killed, too. Prints each as it
goes; in the end, or where it is interrupted, the difference of each survivor, and how many were
killed in each place. docs/developing/tests.md explains those that are as right as the original.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "datacollect",
    "solvers",
    "topologies",
    "experiments",
    "tests",
    "setup.cfg",
    "pyproject.toml",
)
# Longer than the tests of any place take.
LONGEST_S = 600.0
# So many times as long as without a mutant: it hangs, which the tests notice in their way.
HANGS = 5


class Place(NamedTuple):
    """Place to be changed, and the tests that shall notice: fast ones first."""

    path: str
    tests: tuple[str, ...]


class Verdict(NamedTuple):
    """A mutant: where and what it is, and whether some test fails."""

    place: Place
    where: str
    is_killed: bool
    difference: str

    def __str__(self) -> str:
        return f"{'killed' if self.is_killed else 'SURVIVED'}: {self.where}"


CHECK = "tests/schedule/check"
PLACES = (
    Place(
        "datacollect/schedule/check",
        (
            *(f"{CHECK}/{name}.py" for name in ("test_judge", "test_limits", "test_numbers")),
            "datacollect/schedule/check",
            CHECK,
        ),
    ),
    Place(
        "datacollect/numbers/fairshare.py",
        ("datacollect/numbers/fairshare.py", "tests/leaves/test_fairshare.py"),
    ),
    Place(
        "datacollect/control",
        ("tests/control", "datacollect/control", "tests/simulation/fluid/test_driver.py"),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="so many mutants of all; default: every one")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", choices=[place.path for place in PLACES])
    options = parser.parse_args()
    places = [place for place in PLACES if options.only in (None, place.path)]
    # Ended in any way, it leaves no copy and no running tests behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in COPIED:
            _copy(ROOT / name, Path(folder) / name)
        os.chdir(folder)
        # Tests import the copy, nothing compiled before, and take the same cases each time.
        os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
        try:
            judged, is_whole = [], True
            # One by one: what was judged before an interrupt stays.
            judged.extend(_verdicts(places, options.sample, options.seed))
        except KeyboardInterrupt:
            is_whole = False
        finally:
            os.chdir(ROOT)
    _say(summary(places, judged))
    if not is_whole:
        sys.exit("interrupted: these are not all")


def _verdicts(places: Sequence[Place], sample: int | None, seed: int) -> Iterator[Verdict]:
    """Judge mutants one by one, and say how far it is."""
    mutants = [(place, one) for place in places for one in mutants_of(place)]
    _say(f"{len(mutants)} mutants in all")
    if sample is not None:
        chosen = random.Random(seed).sample(range(len(mutants)), min(sample, len(mutants)))
        mutants = [mutants[at] for at in sorted(chosen)]
    longest_s = {}
    for place in places:
        _say(f"the tests of {place.path}, without a mutant: ...")
        longest_s[place] = require_green(place)
    for number, (place, mutation) in enumerate(mutants, 1):
        verdict = judge(place, mutation, longest_s[place])
        _say(f"{number} of {len(mutants)}: {verdict}")
        yield verdict


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(source, target, symlinks=True, ignore=ignored)
    else:
        shutil.copy(source, target)


def mutants_of(place: Place) -> Iterator[Any]:
    """Yield Cosmic Ray's mutations, but those of annotations and of options of data classes.

    Nothing executes the ones; the others take away what nothing needs, such as being frozen.
    """
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import WorkDB, use_db

    path = Path(place.path)
    modules = [path] if path.is_file() else sorted(path.glob("*.py"))
    with use_db(":memory:", WorkDB.Mode.create) as database:
        init(modules, database, {})
        items = [mutation for item in database.work_items for mutation in item.mutations]
    spans = {str(module): list(_left_alone(module)) for module in modules}
    for mutation in items:
        at = mutation.start_pos
        if not any(first <= at < last for first, last in spans[str(mutation.module_path)]):
            yield mutation


def _left_alone(module: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        parts = [getattr(node, name, None) for name in ("annotation", "returns")]
        if isinstance(node, ast.ClassDef):
            parts += [one for one in node.decorator_list if isinstance(one, ast.Call)]
        for part in parts:
            if part is not None:
                yield (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)


def tests_fail(place: Place, longest_s: float) -> str | None:
    """Run the tests of a place until the first fails; return what they say then."""
    options = ["-n", "0", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *place.tests]
    try:
        # In this process's group, and killed with it: no tests go on behind an interrupt.
        run = subprocess.run(
            command, check=False, timeout=longest_s, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return f"they take more than {longest_s:.0f} s"
    return run.stdout + run.stderr if run.returncode else None


def require_green(place: Place) -> float:
    """Return how long to wait for the tests of a place; tests that fail anyhow kill none."""
    began = time.perf_counter()
    output = tests_fail(place, LONGEST_S)
    if output is not None:
        sys.exit(f"the tests of {place.path} fail without any mutant:\n{output}")
    return HANGS * (time.perf_counter() - began)


def judge(place: Place, mutation: Any, longest_s: float) -> Verdict:
    """Change the copy, run the tests, change it back."""
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.plugins import get_operator

    operator = get_operator(mutation.operator_name)(**mutation.operator_args)
    path = Path(mutation.module_path)
    with use_mutation(path, operator, mutation.occurrence) as (before, after):
        if after is None:
            sys.exit(f"{path} has no mutant number {mutation.occurrence} of {operator}")
        is_killed = tests_fail(place, longest_s) is not None
    where = f"{path}:{mutation.start_pos[0]} {mutation.operator_name.removeprefix('core/')}"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return Verdict(place, where, is_killed, "\n".join(list(lines)[2:]))


def summary(places: Sequence[Place], judged: Sequence[Verdict]) -> str:
    """Every survivor with its difference, and how many were killed in each place."""
    texts = [f"{verdict}\n{verdict.difference}" for verdict in judged if not verdict.is_killed]
    for place in places:
        here = [verdict.is_killed for verdict in judged if verdict.place == place]
        texts.append(f"{place.path}: {sum(here)} of {len(here)} killed")
    return "\n" + "\n".join(texts)


if __name__ == "__main__":
    main()
