"""Tables of samples, hand-made, read or stored: what counts, and how many notes say does not."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import pandas as pd
from instances.files_in_memory import file_with

from datacollect import estimate
from datacollect.errors import DatacollectError, DatacollectWarning
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measurement.samples import read_samples
from datacollect.measuring.results.samples_to_problem import problem_of_samples

# Hosts, and the ways to write each; the first is what it is called where there are several.
HOSTS = (
    ("10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1", "[::ffff:10.0.0.1]"),
    ("2001:db8::1", "2001:DB8::1", "[2001:db8::1]", "2001:db8:0:0:0:0:0:1"),
    ("fe80::1", "FE80::1", "fe80:0::1"),
    ("lyon",),
    ("Zürich",),
    ("10.0.0.10",),
)
# Names that are hosts of their own, and noted.
NEARLY = (("geneva", "Geneva"), ("bern.example", "bern.example."), ("basel", "basel:5201"))
BEGIN_S, DAY_S = 1_714_564_800, 86_400
# Beyond this century: whatever day it is.
AHEAD_S = 4_200_000_000


def case(seed: int) -> str | None:
    """Write samples with slips, by some way into estimates, and reckon them again."""
    rng = random.Random(f"sample rows {seed}")
    rows = [_row(rng) for _ in range(rng.randint(1, 12))]
    rows += rng.choices(rows, k=rng.choice([0, 0, 1, 5]))
    rng.shuffle(rows)
    if rng.random() < 0.1:
        return _in_milliseconds(rng, rows)
    spelt = [(rng.choice(a), rng.choice(b), at, rate) for a, b, at, rate in rows]
    expected = _expected(spelt)
    way = rng.choice([_by_hand, _by_csv, _by_store])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DatacollectWarning)
        try:
            found, notes = way(spelt)
        except DatacollectError as error:
            return f"{error}, of {spelt}" if expected["rates"] else None
    if not expected["rates"]:
        return None if not found else f"{found} of samples that all lie ahead"
    if found.keys() != expected["rates"].keys() or any(
        abs(found[pair] - rate) > 1e-9 * rate for pair, rate in expected["rates"].items()
    ):
        return f"{found}, not {expected['rates']}, of {spelt}"
    said = _said(notes)
    told = {key: expected[key] for key in said}
    return None if said == told else f"notes say {said}, not {told}: {notes}"


def _row(rng: random.Random) -> tuple[Any, Any, int, float]:
    hosts = [*HOSTS, *((name,) for pair in NEARLY for name in pair)]
    a, b = rng.sample(hosts, 2)
    at = AHEAD_S if rng.random() < 0.1 else BEGIN_S + rng.randrange(0, 5 * DAY_S, DAY_S // 4)
    return a, b, at, float(rng.randint(1, 1000))


def _expected(spelt: list[tuple[str, str, int, float]]) -> dict[str, Any]:
    """Reckon what is to come of rows, one by one."""
    spellings = {name: i for i, names in enumerate(HOSTS) for name in names}
    used = {name for a, b, *_ in spelt for name in (a, b)}
    several = {
        i: HOSTS[i][0]
        for i in range(len(HOSTS))
        if len([name for name in used if spellings.get(name) == i]) > 1
    }

    def host(name: str) -> str:
        return several.get(spellings.get(name, -1), name)

    rows = [(host(a), host(b), at, rate) for a, b, at, rate in spelt]
    past = [row for row in rows if row[2] != AHEAD_S]
    once = list(dict.fromkeys(past))
    rates = {}
    for pair in {row[:2] for row in once}:
        of_pair = [row for row in once if row[:2] == pair]
        newest = max(at for *_, at, _ in of_pair)
        weights = [2 ** ((at - newest) / DAY_S) for *_, at, _ in of_pair]
        mean = sum(w * row[3] for w, row in zip(weights, of_pair, strict=True)) / sum(weights)
        rates[pair] = mean
    return {
        "rates": rates,
        "ahead": len(rows) - len(past),
        "again": len(past) - len(once),
        "addresses": len(several),
        "alike": sum(set(pair) <= used for pair in NEARLY),
    }


def _said(notes: Any) -> dict[str, int]:
    """Return how many of each kind notes name."""
    patterns = {
        "ahead": r"lies ahead by more than a day: (\d+) sample",
        "again": r"^(\d+) rows? equal to another one",
        "addresses": r"^(\d+) address(?:es)? in several spellings",
        "alike": r"^(\d+) groups? of names",
    }
    return {
        key: max((int(found[1]) for note in notes if (found := re.search(one, note))), default=0)
        for key, one in patterns.items()
    }


def _frame(spelt: Any) -> pd.DataFrame:
    return pd.DataFrame(spelt, columns=["from", "to", "time_s", "bandwidth_bytes_per_s"])


def _rates(found: pd.DataFrame) -> dict[tuple[str, str], float]:
    pairs = zip(found["from"], found["to"], strict=True)
    return dict(zip(pairs, found["bandwidth_bytes_per_s"].tolist(), strict=True))


def _by_hand(spelt: Any) -> tuple[dict[tuple[str, str], float], Any]:
    found = estimate(_frame(spelt))
    return _rates(found), found.attrs["notes"]


def _by_csv(spelt: Any) -> tuple[dict[tuple[str, str], float], Any]:
    data = _frame(spelt).to_csv(index=False).encode()
    with file_with(data, "samples.csv") as path:
        samples = read_samples(path)
    return _rates(estimate(samples)), samples.attrs["notes"]


def _by_store(spelt: Any) -> tuple[dict[tuple[str, str], float], Any]:
    rows = [{**row, "tool": "tcp", "ended": "done"} for row in _frame(spelt).to_dict("records")]
    found = problem_of_samples(pd.DataFrame(rows, columns=list(COLUMNS)), spelt[0][1])
    return _rates(found.links), found.notes


def _in_milliseconds(rng: random.Random, rows: Any) -> str | None:
    spelt = [(a[0], b[0], 1000 * at, rate) for a, b, at, rate in rows]
    try:
        rng.choice([_by_hand, _by_csv])(spelt)
    except DatacollectError as error:
        return None if "divide milliseconds by 1000" in str(error) else f"{error}"
    return f"milliseconds are taken: {spelt}"
