"""JSON Schemas of all files that people write, from their fields.

Editors complete and check by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.fields import EVENT
from datacollect.bistro.http.config_fields import DESTINATION, SERVICE, WITNESS
from datacollect.commands.named_entries import note_fault
from datacollect.files.fields import Table
from datacollect.measuring.plan.hosts_file import HOSTS
from datacollect.problem.fields import PROBLEM
from datacollect.scenario.fields import SCENARIO, WITH_TOPOLOGY
from datacollect.schedule.data.fields import SCHEDULE
from datacollect.study.fields import EXPERIMENT
from datacollect.transfer.agent.config.fields import AGENT
from datacollect.transfer.pull.config.fields import collection_with
from datacollect.transfer.sources.kinds import KINDS

if TYPE_CHECKING:
    from datacollect.files.kinds import Schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def problem_schema() -> Schema:
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


def schedule_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of schedule files in JSON.

    Examples
    --------
    >>> schedule_schema()["$defs"]["transfer"]["properties"]["hop"]["minimum"]
    0
    """
    return _document("datacollect schedule", SCHEDULE)


def scenario_schema() -> Schema:
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


def experiment_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of experiment files, TOML or JSON.

    It checks each value by itself. What the scenario says to an axis' values only reading the file
    checks.

    Examples
    --------
    >>> experiment_schema()["$defs"]["seeds"]["properties"]["batch"]["default"]
    5
    """
    return _document("datacollect experiment", EXPERIMENT)


def agent_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of agents' files, TOML.

    Examples
    --------
    >>> agent_schema()["$defs"]["table_limits"]["properties"]["sessions"]["default"]
    1000
    """
    return _document("datacollect agent", AGENT)


def collection_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of collection files, TOML or JSON.

    It checks each value by itself. What values say together (fingerprint or ca, which files a
    server has) only reading the file checks.

    Examples
    --------
    >>> collection_schema()["$defs"]["limits"]["properties"]["connections"]["default"]
    16
    """
    return _document("datacollect collection", collection_with(KINDS.usable_names(note_fault)))


def event_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of events' files, TOML.

    It checks each value by itself. What values say together (deadline before collect_until, one
    key for one purpose, a quorum that the witnesses can be) only reading the file checks.

    Examples
    --------
    >>> event_schema()["properties"]["lag_s"]["default"]
    10
    """
    return _document("datacollect event", EVENT)


def service_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of services' files, TOML.

    Examples
    --------
    >>> service_schema()["properties"]["workers"]["default"]
    0
    """
    return _document("datacollect service", SERVICE)


def witness_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of witnesses' files, TOML.

    Examples
    --------
    >>> witness_schema()["properties"]["clock"]["enum"]
    ['kernel', 'trusted']
    """
    return _document("datacollect witness", WITNESS)


def destination_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of destinations' files, TOML.

    Examples
    --------
    >>> destination_schema()["properties"]["every_s"]["default"]
    10.0
    """
    return _document("datacollect destination", DESTINATION)


def hosts_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of files of measured hosts, TOML or JSON.

    Examples
    --------
    >>> hosts_schema()["required"]
    ['format', 'destination', 'hosts']
    """
    return _document("datacollect hosts", HOSTS)


SCHEMAS = {
    "problem": problem_schema,
    "schedule": schedule_schema,
    "scenario": scenario_schema,
    "experiment": experiment_schema,
    "agent": agent_schema,
    "collection": collection_schema,
    "event": event_schema,
    "service": service_schema,
    "witness": witness_schema,
    "destination": destination_schema,
    "hosts": hosts_schema,
}


def _document(title: str, table: Table) -> Schema:
    definitions: Schema = {}
    schema = _with_names(table.definition(), definitions)
    return {"$schema": DRAFT, "title": title, **schema, "$defs": definitions}


def _with_names(tree: Any, definitions: Schema) -> Any:
    """Return the tree with names for the tables that it refers to; they join the definitions."""
    if isinstance(tree, Table):
        name = tree.name.removeprefix("the ").replace(" ", "_")
        if name not in definitions:
            definitions[name] = _with_names(tree.definition(), definitions)
        return f"#/$defs/{name}"
    if isinstance(tree, dict):
        return {key: _with_names(value, definitions) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_with_names(value, definitions) for value in tree]
    return tree
