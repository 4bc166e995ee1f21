"""Places in the tree of a scenario file, such as ``"background.flows"``."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from datacollect.errors import ProblemError


def put(tree: dict[str, Any], place: str, value: Any) -> None:
    """Change the value at a place; None takes it away. Tables in between are made.

    Raises
    ------
    ProblemError
        What is in between is no table.

    Examples
    --------
    >>> tree = {"method": {"name": "direct", "streams": 4}}
    >>> put(tree, "background.flows", 20)
    >>> put(tree, "method.streams", None)
    >>> tree
    {'method': {'name': 'direct'}, 'background': {'flows': 20}}
    """
    *tables, key = place.split(".")
    table = tree
    for name in tables:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ProblemError(f"{place}: {name} is not a table; name a key of a table")
    if value is None:
        table.pop(key, None)
    else:
        table[key] = deepcopy(value)
