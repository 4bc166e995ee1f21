"""The problem file's JSON Schema, made from the table of fields; editors check by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.fields import PROBLEM
from datacollect.kinds import (
    ByName,
    Forecast,
    ListOf,
    Number,
    Rows,
    Starts,
    Table,
    Text,
    Whole,
)

if TYPE_CHECKING:
    from datacollect.kinds import Field, Kind

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def problem_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of problem files, TOML or JSON.

    It checks each value by itself. What values say together (hosts that links name, forecasts as
    long as periods_s) only reading the file checks.

    Examples
    --------
    >>> schema = problem_schema()
    >>> schema["required"]
    ['destination', 'hosts']
    >>> schema["$defs"]["host"]["properties"]["release_s"]["default"]
    0.0
    """
    definitions: dict[str, Any] = {}
    schema = _of_table(PROBLEM, definitions)
    return {
        "$schema": DRAFT,
        "title": "datacollect problem",
        **schema,
        "$defs": definitions,
    }


def _of_table(table: Table, definitions: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": table.description,
        "type": "object",
        "properties": {field.name: _of_field(field, definitions) for field in table.fields},
        "required": [field.name for field in table.fields if field.required],
        "additionalProperties": False,
    }


def _of_field(field: Field, definitions: dict[str, Any]) -> dict[str, Any]:
    schema = {"description": field.description, **_of_kind(field.kind, definitions)}
    if field.default is not None and field.default != ():
        schema["default"] = field.default
    return schema


def _of_kind(kind: Kind, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: C901
    match kind:
        case Text(only=()):
            return {"type": "string", "minLength": 1}
        case Text(only=texts):
            return {"enum": list(texts)}
        case Whole(minimum=minimum, stop=None):
            return {"type": "integer", "minimum": minimum}
        case Whole(minimum=minimum, stop=stop):
            return {"type": "integer", "minimum": minimum, "exclusiveMaximum": stop}
        case Number(signed=True):
            return {"type": "number"}
        case Number(positive=True):
            return {"type": "number", "exclusiveMinimum": 0}
        case Number():
            return {"type": "number", "minimum": 0}
        case Forecast(number=number):
            one = _of_kind(number, definitions)
            return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
        case Starts():
            first, later = {"const": 0}, {"type": "number", "exclusiveMinimum": 0}
            return {"type": "array", "prefixItems": [first], "items": later, "minItems": 1}
        case ListOf(kind=inner, shortest=shortest, longest=longest):
            schema = {"type": "array", "items": _of_kind(inner, definitions)}
            bounds = {"minItems": shortest or None, "maxItems": longest}
            return schema | {key: bound for key, bound in bounds.items() if bound is not None}
        case Rows(table=table):
            return {"type": "array", "items": _reference(table, definitions)}
        case ByName(table=table):
            return {
                "type": "object",
                "propertyNames": {"minLength": 1},
                "additionalProperties": _reference(table, definitions),
                "minProperties": 1,
            }
        case _:
            raise AssertionError(f"no schema for {kind!r}")


def _reference(table: Table, definitions: dict[str, Any]) -> dict[str, Any]:
    name = table.name.removeprefix("the ").replace(" ", "_")
    if name not in definitions:
        definitions[name] = _of_table(table, definitions)
    return {"$ref": f"#/$defs/{name}"}
