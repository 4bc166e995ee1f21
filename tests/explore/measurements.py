"""iperf3, perfSONAR and tables of samples: the same in any dress; damaged, refused or read."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import numpy as np
from instances.dressed_texts import damaged, encoded
from instances.files_in_memory import file_with
from measurement.test_perfsonar import document, run

from datacollect.errors import DatacollectError, DatacollectWarning
from datacollect.measurement.samples import read_samples

IPERF3 = sorted((Path(__file__).parents[1] / "measurement/iperf3").glob("*.json"))
TABLE = (
    "from,to,time_s,bandwidth_bytes_per_s,duration_s\n"
    'lyon,geneva,1700000000,1250000.5,10\n"a, b",geneva,1700003600,2e6,5\n'
)
BEFORE = ("", "", "$ iperf3 -c geneva -J\n", "Connecting to host geneva, port 5201\n\n")
AFTER = ("", "", "\niperf Done.\n", "\n\n")
NAMES = ("a.json", "a.csv", "a.log", "a.txt", "a", "a.json.gz")


def case(seed: int) -> str | None:
    """Read one file as it is and dressed, or damaged."""
    rng = random.Random(f"measurements {seed}")
    text = _text(rng)
    plain = _samples(text.encode(), "a.txt")
    if rng.random() < 0.3:
        before, after = ("", "") if text == TABLE else (rng.choice(BEFORE), rng.choice(AFTER))
        dressed = _samples(encoded(rng, before + text + after), rng.choice(NAMES))
        return None if dressed == plain else f"{dressed} where it is dressed, else {plain}"
    found = _samples(damaged(rng, encoded(rng, text)), rng.choice(NAMES))
    if isinstance(found, str):
        return None if found.strip() else "refused without a word"
    rates = np.array([row[3] for row in found], dtype=float)
    return None if (np.isfinite(rates) & (rates >= 0)).all() else f"rates {rates}"


def _text(rng: random.Random) -> str:
    match rng.randrange(4):
        case 0:
            return TABLE
        case 1:
            return json.dumps(document())
        case 2:
            return json.dumps(run(), indent=1)
    return rng.choice(IPERF3).read_text()


def _samples(data: bytes, name: str) -> list[list[object]] | str:
    """Return the rows, as text where numbers may be missing; or what is said against them."""
    with file_with(data, name) as path, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DatacollectWarning)
        try:
            frame = read_samples(path)
        except DatacollectError as error:
            return (
                str(error)
                .replace(str(path), "FILE")
                .replace(f"{name}:", "FILE:")
                .replace(f"{name},", "FILE,")
            )
    return [
        [None if value != value else value for value in row] for row in frame.to_numpy().tolist()
    ]
