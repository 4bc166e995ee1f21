"""Metrics as another program reads them: by a parser of three lines, not by the one that wrote."""

from __future__ import annotations

import re
from urllib.request import ProxyHandler, build_opener

SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def read_metrics(url: str) -> str:
    """Return what is told at a URL, whatever proxy there is."""
    with build_opener(ProxyHandler({})).open(url, timeout=20) as answer:
        return answer.read().decode()


def samples(text: str) -> dict[tuple, float]:
    """Return values by name and labels in their order, but those of the process."""
    found = {}
    for line in text.splitlines():
        if line.startswith(("#", "process_")):
            continue
        match = SAMPLE.fullmatch(line)
        labels = tuple(value for _, value in LABEL.findall(match["labels"] or ""))
        found[match["name"], *labels] = float(match["value"])
    return found


def moved(before: dict, after: dict) -> dict[tuple, float]:
    """Return by how much values have moved, of those that have."""
    return {
        key: value - before.get(key, 0.0)
        for key, value in after.items()
        if value != before.get(key, 0.0)
    }
