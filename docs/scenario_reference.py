"""Write the tables of all keys into the docs: `python docs/scenario_reference.py`.

They are made from the declarations that also read scenario files; a test compares them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.files.fields import Field, Part, Rows
from datacollect.files.kinds import Choice, Flag, Instant, ListOf, Number, Share, Text, Whole
from datacollect.scenario.fields import SCENARIO
from datacollect.scenario.kinds import ByKind, OneOrTwo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from datacollect.files.fields import Table
    from datacollect.files.kinds import Kind

PAGE = Path(__file__).parent / "scenario_keys.md"
BEGIN = "At the top, besides the tables below:\n"
HEAD = "| key | value | default | |\n|---|---|---|---|\n"


def reference() -> str:
    """Return the tables of all keys: the top, the sections, the kinds of topology."""
    top = [field for field in SCENARIO.fields if not isinstance(field.kind, ByKind | Part)]
    found = list(_tables_within(SCENARIO, ""))
    networks = [table for table in found if table[0].lstrip("`[").startswith("topology")]
    sections = [table for table in found if table not in networks]
    return (
        f"{BEGIN}\n{_rows(field for field in top if not field.name.startswith('$'))}"
        f"{_tables(sections)}\n## Kinds of topologies\n{_tables(networks)}"
    )


def with_reference(page: str) -> str:
    """Return the page with its tables, which run to its end, made again."""
    before, begin, _ = page.partition(BEGIN)
    assert begin, f"no line {BEGIN!r}"
    return before + reference()


def _tables_within(table: Table, place: str) -> Iterator[tuple[str, str, Table]]:
    """The heading, the key and the table of each table within a table, in order."""
    for field in table.fields:
        inner = f"{place}.{field.name}" if place else field.name
        match field.kind:
            case Part(table=part):
                yield f"`[{inner}]`", field.name, part
                yield from _tables_within(part, inner)
            case Rows(table=row):
                yield f"`[[{inner}]]`", field.name, row
                yield from _tables_within(row, inner)
            case ByKind(tables=tables):
                for kind, one in tables:
                    yield f'`[{inner}]` with `kind = "{kind}"`', field.name, one
                    yield from _tables_within(one, inner)


def _headed(found: list[tuple[str, str, Table]]) -> Iterator[tuple[str, Table]]:
    """Each table once; one that stands at several places goes by its key."""
    headings = defaultdict(set)
    for heading, _, table in found:
        headings[table.name].add(heading)
    shown = set()
    for heading, key, table in found:
        if table.name not in shown:
            shown.add(table.name)
            yield (heading if len(headings[table.name]) == 1 else f"`{key}`"), table


def _tables(found: list[tuple[str, str, Table]]) -> str:
    return "".join(
        f"\n{heading}: {_lower(table.description)}\n\n{_rows(table.fields)}"
        for heading, table in _headed(found)
    )


def _rows(fields: Iterable[Field]) -> str:
    rows = (
        f"| `{f.name}` | {_value(f.kind)} | {_default(f)} | {f.description} |\n" for f in fields
    )
    return HEAD + "".join(rows)


def _value(kind: Kind) -> str:
    match kind:
        case Choice(words=words):
            return ", ".join(f"`{word}`" for word in words)
        case Part():
            return "table"
        case Rows():
            return "tables"
        case ListOf():
            return "list"
        case OneOrTwo(kind=inner):
            return f"{_value(inner)}, or two"
        case Share():
            return "number, at most 1"
        case Flag():
            return "true, false"
        case Number():
            return "number"
        case Instant():
            return "number, or clock time"
        case Whole():
            return "whole number"
        case Text():
            return "text"
    raise AssertionError(f"no words for {kind!r}")


def _default(field: Field) -> str:
    value: Any = field.default
    if field.required:
        return "required"
    if value is None or value == ():
        return "–"
    if isinstance(value, dict):
        return "as below"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{value}`"
    return f"{int(value):_}" if value == int(value) else f"{value:g}"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
