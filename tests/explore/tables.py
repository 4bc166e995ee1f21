"""Bandwidths as tables: the same whatever separates, encodes, orders or counts their rows."""

from __future__ import annotations

import csv
import io
import random
import warnings

import numpy as np
from instances.dressed_texts import damaged, encoded
from instances.files_in_memory import file_with

from datacollect import Problem
from datacollect.errors import DatacollectError, DatacollectWarning

UNITS = {
    "bandwidth_bytes_per_s": 1.0,
    "bandwidth_bit_per_s": 8.0,
    "bandwidth_mbit_per_s": 8e-6,
    "bandwidth_gbit_per_s": 8e-9,
}
HOSTS = ("S1", "S 2", "geneva; west", "Zürich", "D")
FILE = 'destination = "D"\nbandwidth_csv = "grid.csv"\n' + "".join(
    f'[hosts."{name}"]\nbacklog_bytes = {0 if name == "D" else 10}\n' for name in HOSTS
)


def case(seed: int) -> str | None:
    """Read random bandwidths from a table in some dress, or from a damaged one."""
    rng = random.Random(f"tables {seed}")
    rates = {
        (a, b): rng.choice(
            [0.0, 1.0, rng.random(), 1e9 * rng.random(), float(rng.randint(1, 10**12))]
        )
        for a in HOSTS
        for b in HOSTS
        if a != b and rng.random() < 0.6
    } or {("S1", "D"): 1.0}
    data = encoded(rng, _written(rng, rates))
    if rng.random() < 0.5:
        found = _read(damaged(rng, data))
        return "refused without a word" if isinstance(found, str) and not found.strip() else None
    found = _read(data)
    if isinstance(found, str):
        return f"{found} of {data[:200]!r}"
    same = found.keys() == rates.keys() and all(
        np.isclose(found[pair], rate, rtol=1e-12, atol=0) for pair, rate in rates.items()
    )
    return None if same else f"{found}, written {rates}"


def _written(rng: random.Random, rates: dict[tuple[str, str], float]) -> str:
    unit, separator = rng.choice([*UNITS]), rng.choice([",", ",", ";", "\t"])
    rows = [{"from": a, "to": b, unit: repr(rate * UNITS[unit])} for (a, b), rate in rates.items()]
    rng.shuffle(rows)
    header = ["from", "to", unit]
    rng.shuffle(header)
    if rng.random() < 0.2:
        rows = [{"": str(i), **row} for i, row in enumerate(rows)]
        header = ["", *header]
    text = io.StringIO()
    writer = csv.DictWriter(
        text,
        header,
        delimiter=separator,
        lineterminator="\n",
        quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    )
    writer.writeheader()
    writer.writerows(rows)
    return rng.choice(["", "", f"sep={separator}\n"]) + text.getvalue() + rng.choice(["", "\n"])


def _read(data: bytes) -> dict[tuple[str, str], float] | str:
    with file_with(data, "grid.csv") as path, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DatacollectWarning)
        path.with_name("problem.toml").write_text(FILE, encoding="utf-8")
        try:
            problem = Problem.from_file(path.with_name("problem.toml"))
        except DatacollectError as error:
            return str(error)
    ends = zip(problem.link_from.tolist(), problem.link_to.tolist(), strict=True)
    rates = problem.bandwidth_bytes_per_s[0].tolist()
    return {
        (problem.names[a], problem.names[b]): rate for (a, b), rate in zip(ends, rates, strict=True)
    }
