"""Kinds that only scenario files hold: pairs, tables by their kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.kinds import Choice, Kind, ListOf, Schema, plain, wrong

if TYPE_CHECKING:
    from datacollect.files.fields import Table


@dataclass(frozen=True)
class OneOrTwo:
    """A value, or two of them: both directions of a wire, or the least and the most."""

    kind: Kind

    def read(self, value: Any, place: str) -> Any:
        """Return the value, or a tuple of two."""
        value = plain(value)
        if isinstance(value, list | tuple):
            rule = "must be one value or a list of two"
            return tuple(ListOf(self.kind, 2, 2, rule).read(value, place))
        return self.kind.read(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of one or two."""
        return {"anyOf": [self.kind.schema(), ListOf(self.kind, 2, 2).schema()]}


@dataclass(frozen=True)
class ByKind:
    """A table whose key ``kind`` says which other keys it has."""

    tables: tuple[tuple[str, Table], ...]

    def read(self, value: Any, place: str) -> dict[str, Any]:
        """Return the fields of the table that the kind names."""
        tables = dict(self.tables)
        if not isinstance(value, Mapping):
            raise wrong(place, "must be a table of keys and values", value, f"write [{place}]")
        if "kind" not in value:
            raise ProblemError(f"{place}: key kind is missing; add it, one of {', '.join(tables)}")
        kind = Choice(tuple(tables)).read(value["kind"], f"{place}.kind")
        return tables[kind].read(value, place)

    def schema(self) -> Schema:
        """Return the JSON Schema of the tables, by their kind."""
        # Not oneOf: its messages say that no table fits, these what is wrong with the one named.
        return {
            "type": "object",
            "properties": {"kind": {"enum": [kind for kind, _ in self.tables]}},
            "required": ["kind"],
            "allOf": [
                {
                    "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                    "then": table.schema(),
                }
                for kind, table in self.tables
            ],
        }
