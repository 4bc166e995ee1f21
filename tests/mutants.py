"""Mutants: does some test fail where the judge, fair shares or a controller is changed a little?

    python tests/mutants.py [--sample 60] [--seed 0] [--only datacollect/control]

Cosmic Ray makes the mutants, one change each, in a copy of the repository; each is judged by the
tests that stand beside it, until the first fails. Prints how many were killed in each place, and
the difference of each survivor. CONTRIBUTING.md explains those that are as right as the original.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("datacollect", "solvers", "topologies", "tests", "setup.cfg", "pyproject.toml")
# Longer than the tests of any place take.
LONGEST_S = 120.0


class Place(NamedTuple):
    """What is changed, and the tests that shall notice: fast ones first."""

    path: str
    tests: tuple[str, ...]


CHECK = "tests/schedule/check"
PLACES = (
    Place(
        "datacollect/schedule/check",
        (
            *(f"{CHECK}/{name}.py" for name in ("test_judge", "test_numbers", "test_limits")),
            "datacollect/schedule/check",
            *(f"{CHECK}/{name}.py" for name in ("test_two_judges", "test_random_schedules")),
        ),
    ),
    Place(
        "datacollect/fairshare.py", ("datacollect/fairshare.py", "tests/leaves/test_fairshare.py")
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
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for name in COPIED:
            _copy(ROOT / name, Path(folder) / name)
        os.chdir(folder)
        # Tests import the copy, nothing compiled before, and take the same cases each time.
        os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
        mutants = [(place, one) for place in places for one in mutants_of(place)]
        _say(f"{len(mutants)} mutants in all")
        if options.sample is not None:
            chosen = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
            mutants = sorted(chosen, key=mutants.index)
        for place in places:
            require_green(place)
        survivors = []
        for number, mutant in enumerate(mutants, 1):
            if not is_killed(*mutant):
                survivors.append(mutant)
            if number % 10 == 0:
                _say(f"{number} of {len(mutants)}: {len(survivors)} survived")
    for place in places:
        n, left = (sum(of is place for of, _ in some) for some in (mutants, survivors))
        _say(f"{place.path}: {n - left} of {n} killed")


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
    """Yield Cosmic Ray's mutations, but those of annotations, which nothing executes."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import WorkDB, use_db

    path = Path(place.path)
    modules = [path] if path.is_file() else sorted(path.glob("*.py"))
    with use_db(":memory:", WorkDB.Mode.create) as database:
        init(modules, database, {})
        items = [mutation for item in database.work_items for mutation in item.mutations]
    spans = {str(module): list(_annotations(module)) for module in modules}
    for mutation in items:
        at = mutation.start_pos
        if not any(first <= at < last for first, last in spans[str(mutation.module_path)]):
            yield mutation


def _annotations(module: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        for name in ("annotation", "returns"):
            found = getattr(node, name, None)
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def command(place: Place) -> str:
    """The tests of a place, until the first that fails."""
    options = ["-n", "0", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    return shlex.join([sys.executable, "-m", "pytest", *options, *place.tests])


def require_green(place: Place) -> None:
    """Tests that fail without a mutant kill none."""
    from cosmic_ray.testing import run_tests
    from cosmic_ray.work_item import TestOutcome

    outcome, output = run_tests(command(place), LONGEST_S)
    if outcome != TestOutcome.SURVIVED:
        sys.exit(f"the tests of {place.path} fail without any mutant:\n{output}")


def is_killed(place: Place, mutation: Any) -> bool:
    """Say so; print a survivor's difference."""
    from cosmic_ray.mutating import mutate_and_test
    from cosmic_ray.work_item import TestOutcome

    result = mutate_and_test([mutation], command(place), LONGEST_S)
    # Incompetent ones break everything, at once: the tests fail.
    killed = result.test_outcome != TestOutcome.SURVIVED
    if not killed:
        where = f"{mutation.module_path}:{mutation.start_pos[0]}"
        _say(f"\nsurvived: {where} {mutation.operator_name}\n{result.diff}")
    return killed


if __name__ == "__main__":
    main()
