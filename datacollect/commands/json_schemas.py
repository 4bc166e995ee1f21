"""JSON Schemas of all files that people write, from their fields.

Editors complete and check by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datacollect.commands.named_entries import note_fault
from datacollect.files.fields import Table
from datacollect.files.file_kinds import FILE_KINDS
from datacollect.machine.profile import PROFILE
from datacollect.problem.fields import PROBLEM
from datacollect.scenario.fields import SCENARIO, WITH_TOPOLOGY
from datacollect.schedule.data.fields import SCHEDULE
from datacollect.simulation.hosts.fields import HOST_SIMULATION
from datacollect.study.fields import EXPERIMENT
from datacollect.transfer.agent.config.fields import agent_with
from datacollect.transfer.agent.config.tables import usable_tables
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
    return _document("datacollect agent", agent_with(usable_tables(note_fault)))


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


def host_simulation_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of files of simulated hosts, TOML or JSON.

    It checks each value by itself. What values say together (a stream that the card carries)
    only reading the file checks.

    Examples
    --------
    >>> host_simulation_schema()["$defs"]["nic"]["properties"]["buffer_bytes"]["default"]
    65536
    """
    return _document("datacollect host-simulation", HOST_SIMULATION)


def profile_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of profiles of machines, TOML or JSON.

    Examples
    --------
    >>> profile_schema()["$defs"]["cost"]["properties"]["forced"]["default"]
    False
    """
    return _document("datacollect host profile", PROFILE)


SCHEMAS = {
    "problem": problem_schema,
    "schedule": schedule_schema,
    "scenario": scenario_schema,
    "experiment": experiment_schema,
    "agent": agent_schema,
    "collection": collection_schema,
    "host-profile": profile_schema,
    "host-simulation": host_simulation_schema,
}


def kinds_of_files() -> tuple[str, ...]:
    """Return the kinds of files that are ours.

    >>> kinds_of_files()[:3]
    ('problem', 'schedule', 'scenario')
    """
    return (*SCHEMAS, *FILE_KINDS.own)


def schema_of(kind: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a kind of files.

    It checks each value by itself. What values say together (an event's deadline before
    collect_until) only reading the file checks.

    Raises
    ------
    ProblemError
        There is no such kind, or it is not installed.

    Examples
    --------
    >>> schema_of("event")["properties"]["lag_s"]["default"]
    10
    >>> schema_of("hosts")["required"]
    ['format', 'destination', 'hosts']
    """
    if kind in SCHEMAS:
        return SCHEMAS[kind]()
    return _document(f"datacollect {kind}", FILE_KINDS.get(kind).document)


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
