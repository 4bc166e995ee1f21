"""JSON Schemas of problem, schedule, scenario and experiment files, from their tables of fields.

Editors complete and check by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.experiment_fields import (
    EXPERIMENT,
    VALUE,
    AnyValue,
    AxisValues,
    ByLabels,
    Places,
)
from datacollect.fields import PROBLEM, SCHEDULE
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
from datacollect.scenario_fields import SCENARIO, WITH_TOPOLOGY
from datacollect.scenario_kinds import ByKind, Choice, Flag, OneOrTwo, Part, Share

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
    return _document("datacollect problem", PROBLEM)


def schedule_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of schedule files in JSON.

    Examples
    --------
    >>> schedule_schema()["$defs"]["transfer"]["properties"]["hop"]["minimum"]
    0
    """
    return _document("datacollect schedule", SCHEDULE)


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of scenario files, TOML or JSON.

    It checks each value by itself, and that there is either a topology with hosts or a problem.
    What else values say together (the least above the most, nodes that the topology does not
    have) only reading the file, and building what it says, checks.

    Examples
    --------
    >>> schema = scenario_schema()
    >>> schema["$defs"]["run"]["properties"]["seed"]["default"]
    1
    >>> schema["$defs"]["line_topology"]["required"]
    ['kind', 'n_nodes', 'rate_bytes_per_s']
    """
    needless = dict.fromkeys(("topology", "hosts", *WITH_TOPOLOGY), False)
    return {
        **_document("datacollect scenario", SCENARIO),
        "if": {"required": ["problem"]},
        "then": {"properties": needless},
        "else": {"required": ["topology", "hosts"], "properties": {"truth_csv": False}},
    }


def experiment_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of experiment files, TOML or JSON.

    It checks each value by itself. What the scenario says to an axis' values only reading the file
    checks.

    Examples
    --------
    >>> experiment_schema()["$defs"]["seeds"]["properties"]["batch"]["default"]
    5
    """
    return _document("datacollect experiment", EXPERIMENT)


SCHEMAS = {
    "problem": problem_schema,
    "schedule": schedule_schema,
    "scenario": scenario_schema,
    "experiment": experiment_schema,
}


def _document(title: str, table: Table) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    schema = _of_table(table, definitions)
    return {"$schema": DRAFT, "title": title, **schema, "$defs": definitions}


def _of_table(table: Table, definitions: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": table.description,
        "type": "object",
        "properties": {field.name: _of_field(field, definitions) for field in table.fields},
        "required": [field.name for field in table.fields if field.required],
        "additionalProperties": False,
    }


def _of_field(field: Field, definitions: dict[str, Any]) -> dict[str, Any]:
    kind = _of_kind(field.kind, definitions)
    if field.nullable:
        kind = {"anyOf": [kind, {"type": "null"}]}
    schema = {"description": field.description, **kind}
    if field.default is not None and field.default != ():
        schema["default"] = field.default
    return schema


def _of_kind(kind: Kind, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: C901
    match kind:
        case Text(only=()):
            return {"type": "string", "minLength": 1}
        case Text(only=texts):
            return {"enum": list(texts)}
        case Choice(words=words):
            return {"enum": list(words)}
        case Flag():
            return {"type": "boolean"}
        case Share(positive=positive):
            least = "exclusiveMinimum" if positive else "minimum"
            return {"type": "number", least: 0, "maximum": 1}
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
        case OneOrTwo(kind=inner):
            two = _of_kind(ListOf(inner, 2, 2), definitions)
            return {"anyOf": [_of_kind(inner, definitions), two]}
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
        case Table():
            return _reference(kind, definitions)
        case Part(table=table):
            return _reference(table, definitions)
        case ByKind(tables=tables):
            return _of_tables(tables, definitions)
        case Rows(table=table):
            return {"type": "array", "items": _reference(table, definitions)}
        case ByName(table=table):
            return {
                "type": "object",
                "propertyNames": {"minLength": 1},
                "additionalProperties": _reference(table, definitions),
                "minProperties": 1,
            }
        case AnyValue():
            return {}
        case Places():
            return {"type": "object", "propertyNames": {"minLength": 1}}
        case ByLabels():
            labels = {"type": "array", "items": {"type": "string", "minLength": 1}}
            return {"type": "object", "additionalProperties": labels}
        case AxisValues():
            plain = {"type": ["string", "number", "boolean"]}
            one = {"if": {"type": "object"}, "then": _reference(VALUE, definitions), "else": plain}
            return {"type": "array", "items": one, "minItems": 1}
        case _:
            raise AssertionError(f"no schema for {kind!r}")


def _of_tables(
    tables: tuple[tuple[str, Table], ...], definitions: dict[str, Any]
) -> dict[str, Any]:
    # Not oneOf: its messages say that no table fits, these what is wrong with the one named.
    return {
        "type": "object",
        "properties": {"kind": {"enum": [kind for kind, _ in tables]}},
        "required": ["kind"],
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": _reference(table, definitions),
            }
            for kind, table in tables
        ],
    }


def _reference(table: Table, definitions: dict[str, Any]) -> dict[str, Any]:
    name = table.name.removeprefix("the ").replace(" ", "_")
    if name not in definitions:
        definitions[name] = _of_table(table, definitions)
    return {"$ref": f"#/$defs/{name}"}
