"""Tables as TOML: keys in the order of their fields, so that one meaning has one text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from datacollect.files.documents import toml_text
from datacollect.files.fields import ByName, Rows, Table
from datacollect.files.kinds import ClockTime

if TYPE_CHECKING:
    from collections.abc import Mapping


def toml_of(table: Table, values: Mapping[str, Any]) -> str:
    """Return the text of a table; keys that it does not know come last, for its reader to refuse.

    Parameters
    ----------
    table : Table
        Says the order of keys, and which are dates.
    values : mapping
        As TOML holds them; dates and times as texts.
    """
    lines, rows = [], []
    known = {field.name: field.kind for field in table.fields}
    for key in sorted(values, key=lambda key: [*known, key].index(key)):
        kind, value = known.get(key), values[key]
        if isinstance(kind, Rows) and isinstance(value, list) and value:
            rows += [f"\n[[{key}]]\n{toml_of(kind.table, row)}" for row in value]
        elif isinstance(kind, ByName):
            rows += [
                f"\n[{key}.{_key(name)}]\n{toml_of(kind.table, row)}" for name, row in value.items()
            ]
        elif isinstance(kind, ClockTime):
            lines.append(f"{key} = {value}\n")
        else:
            lines.append(f"{_key(key)} = {_value(value)}\n")
    return "".join(lines + rows)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_text(key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, str) and re.fullmatch(r"(?:[ -~]*\n)+", value) and "'''" not in value:
        return f"'''\n{value}'''"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return toml_text(value)
