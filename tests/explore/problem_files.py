"""Problem files with values changed or bytes damaged: refused, or read and written alike."""

from __future__ import annotations

import json
import math
import random
import warnings

from instances.broken_trees import places, with_value
from instances.dressed_texts import damaged, encoded
from instances.files_in_memory import file_with
from instances.planned_cases import random_problem

from datacollect import Problem
from datacollect.errors import DatacollectError, DatacollectWarning

VALUES = (
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e-300, 1e300, math.inf, math.nan, 2**62, 10**400),
    *("", "H1", "D", "0", "1e9", "5 GB", "10 Mbit/s", "1.5 h", "1,500 TB", [], {}, [1.0], [[]]),
    *("08:00 10 Mbit/s, 20:00 1 Gbit/s", "Mo 8:00 1", [1.0, 2.0], [1.0, 2.0, 3.0]),
    *([None], {"": 1}, "2027-04-15T23:59:59-04:00", "Zürich\x00", "x" * 5000),
)


def case(seed: int) -> str | None:
    """Read a problem's file: in another dress, with odd values, or damaged."""
    rng = random.Random(f"problem files {seed}")
    try:
        problem = random_problem(rng)
    except DatacollectError:
        return None  # no problem
    tree, way = problem.to_dict(), rng.randrange(3)
    if way == 0:
        found = _read(encoded(rng, json.dumps(tree)))
        return None if found == problem.sha256 else f"{found}, written {problem.sha256}"
    if way == 1:
        for _ in range(rng.choice([1, 1, 2])):
            tree = with_value(tree, rng.choice([*places(tree)]), rng.choice(VALUES))
        found = _read(json.dumps(tree).encode())
    else:
        found = _read(damaged(rng, encoded(rng, json.dumps(tree))))
    return None if found.strip() else "refused without a word"


def _read(data: bytes) -> str:
    """Return the digest of what is read, and the same when written and read again; or why not."""
    with file_with(data, "problem.json") as path, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DatacollectWarning)
        try:
            problem = Problem.from_file(path)
        except DatacollectError as error:
            return str(error)
        again = Problem.from_dict(json.loads(json.dumps(problem.to_dict())))
        assert again.sha256 == problem.sha256
    return problem.sha256
