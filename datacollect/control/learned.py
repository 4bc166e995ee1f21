"""Numbers that simulated runs taught: one file, `learned.json`, which says where they are from."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


def learned(part: str) -> dict[str, Any]:
    """Return a part of what was learned, without the sentence that says from what.

    >>> sorted(learned("connection_counts"))
    ['least_share', 'trust_in_probes']
    """
    return {name: value for name, value in _parts()[part].items() if name != "from"}


@cache
def _parts() -> dict[str, dict[str, Any]]:
    text = (files("datacollect.control") / "learned.json").read_text(encoding="utf-8")
    parts: dict[str, dict[str, Any]] = json.loads(text)
    return parts
