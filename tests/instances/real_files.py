"""Two sources with real files under names that no script may trip over, a relay, a destination."""

from __future__ import annotations

import csv
import hashlib
import random
from pathlib import Path

import datacollect as dc

# By source: names that shells, URLs, option parsers, patterns and file lists stumble over.
NAMES = {
    "S 1": (
        ("a b/we'ird\" $(touch pwned) `x` \\ ;&|<>.bin", 400_000),
        ("-rf", 60_000),
        ("two\nlines", 50_000),
        ("--out=x", 1),
        ("ü漢 #?%41&=+*[]{}~", 40_000),
        ("empty", 0),
    ),
    "S2": (("deep/er/big.tar", 600_000),),
}
# The relay's name may not lead out of the folder in which scripts are written.
RELAY = "re/lay"


def make_files(folder: Path, *, with_hashes: bool = True) -> Path:
    """Write the files, each source's in its own folder, and ``files.csv``."""
    rows = [["host", "path", "bytes", "sha256"]]
    for source, files in NAMES.items():
        for name, size in files:
            data = random.Random(f"{source} {name}").randbytes(size)
            path = folder / source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            known = hashlib.sha256(data).hexdigest() if with_hashes else ""
            rows.append([source, name, str(size), known])
    manifest = folder / "files.csv"
    with manifest.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return manifest


def problem_of_files(bytes_per_s: float = 400_000.0) -> dc.Problem:
    """S 1 sends a third straight and two thirds by the relay; S2 sends straight."""
    sizes = {source: sum(size for _, size in files) for source, files in NAMES.items()}
    hosts = [dc.Host(source, backlog_bytes=size) for source, size in sizes.items()]
    rates = {
        ("S 1", "D"): bytes_per_s / 2,
        ("S 1", RELAY): bytes_per_s,
        (RELAY, "D"): bytes_per_s,
        ("S2", "D"): bytes_per_s * 600 / 550,
    }
    links = [dc.Link(tail, head, rate) for (tail, head), rate in rates.items()]
    return dc.Problem.from_hosts([*hosts, dc.Host(RELAY), dc.Host("D")], links, "D")


def same_files(folder: Path, into: Path) -> bool:
    """Tell whether all files of all sources have arrived, byte by byte."""
    return all(
        (into / source / name).read_bytes() == (folder / source / name).read_bytes()
        for source, files in NAMES.items()
        for name, _ in files
    )
