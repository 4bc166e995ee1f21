"""Scenarios drawn from the declarations of their fields, and made to fit together."""

from __future__ import annotations

from hypothesis import strategies as st

from datacollect.files.fields import Part, Rows
from datacollect.files.host_names import fault_of
from datacollect.files.kinds import Choice, Flag, Instant, ListOf, Number, Share, Text, Whole
from datacollect.scenario.fields import ALWAYS, SCENARIO, WITH_TOPOLOGY
from datacollect.scenario.kinds import ByKind, OneOrTwo

names = st.text(min_size=1, max_size=3).filter(lambda name: not fault_of(name))


def values_of(kind):
    """What a kind of value accepts."""
    match kind:
        case Choice(words=words) | Text(only=words) if words:
            return st.sampled_from(words)
        case Text():
            return names
        case Flag():
            return st.booleans()
        case Whole(minimum=least, stop=stop):
            return st.integers(least, stop - 1) | st.just(float(least))
        case Share(positive=positive):
            return st.floats(0, 1, exclude_min=positive) | st.just(1)
        case Number(positive=positive):
            return st.floats(0, 1e12, exclude_min=positive) | st.integers(1, 10**20)
        case Instant(number):
            return values_of(number) | st.just("08:00")
        case OneOrTwo(kind=inner):
            return values_of(inner) | st.lists(values_of(inner), min_size=2, max_size=2)
        case ListOf(kind=inner, shortest=shortest):
            return st.lists(values_of(inner), min_size=shortest, max_size=3)
        case Rows(table=table):
            return st.lists(trees_of(table), max_size=2)
        case Part(table=table):
            return trees_of(table)
        case ByKind(tables=tables):
            return st.one_of([trees_of(table) for _, table in tables])
    raise AssertionError(f"no values for {kind!r}")


def trees_of(table):
    """What a table accepts: keys that are required, and some of the others."""
    kinds = {field.name: values_of(field.kind) for field in table.fields}
    required = {field.name for field in table.fields if field.required}
    return st.fixed_dictionaries(
        {name: kinds[name] for name in kinds if name in required},
        optional={name: kinds[name] for name in kinds if name not in required},
    )


SHAPES = ("slot_s", "scaled_slot_s", "replan_s")
TURNS = ("streams", "total_streams", "streams_as", "at_a_time", "time_slot_s", "order")


def fitting(tree, *, with_problem):
    """Leave out, or add, what breaks the rules on values that belong together."""
    if with_problem or not {"topology", "hosts"} <= tree.keys():
        top = ("$schema", "format", "name", "scale", "truth_csv", *ALWAYS)
        tree = {"problem": "p.toml"} | {key: tree[key] for key in top if key in tree}
    else:
        tree = {key: value for key, value in tree.items() if key not in ("problem", "truth_csv")}
        _fit_hosts(tree["hosts"])
        _fit_sections({name: tree.get(name, {}) for name in WITH_TOPOLOGY})
    method = tree.get("method", {})
    for one, other in (
        ("slot_s", "chunk_s"),
        ("slot_s", "scaled_slot_s"),
        ("scaled_slot_s", "chunk_s"),
        ("total_streams", "streams_as"),
        ("connections", "connections_as"),
    ):
        if one in method:
            method.pop(other, None)
    if method.get("time_slot_s") is not None:
        method["at_a_time"] = 2
        for key in ("streams", "total_streams", "streams_as"):
            method.pop(key, None)
    if "replan_s" in method:
        for key in ("name", "timing", "pace", "slot_s", "scaled_slot_s"):
            method.pop(key, None)
    _fit_relays(method, tree.get("estimates", {}))
    # Last: what went before may have taken the name away.
    if method.get("name") != "adaptive" or "connections" in method:
        method.pop("as_many_times", None)
    return tree


def _fit_relays(method, estimates):
    """Chains pull shares of routes: at no times, in no slots, whatever the connections of a hop."""
    if estimates.get("kind") == "unknown":
        estimates |= {"perturbations": [], "shared": []}
        method["relays"] = "chains"
        method.pop("connections_as", None)
    over_chains = method.get("relays") == "chains"
    if over_chains and method.get("name") != "adaptive":
        for key in ("timing", "pace", "lanes", "shared_connections", *SHAPES, *TURNS):
            method.pop(key, None)
    if not over_chains and method.get("name") != "adaptive" and "replan_s" not in method:
        method.pop("piece_bytes", None)


def _fit_hosts(hosts):
    hosts["sources"] = hosts["sources"] or [{}]
    for entry in (hosts["destination"], *hosts["sources"], *hosts.get("relays", [])):
        if "at" in entry:
            entry.pop("domain", None)
            entry.pop("among", None)


def _fit_sections(sections):
    background, backlog, estimates = (
        sections[name] for name in ("background", "backlog", "estimates")
    )
    if background.get("least_mean_s", 0.2) > background.get("most_mean_s", 3.0):
        background.update(least_mean_s=1.0, most_mean_s=2.0)
    for pair in background.get("pairs", []):
        pair.pop("rate_bytes_per_s", None)
        if pair.get("kind") == "udp":
            pair["rate_bytes_per_s"] = 5.0
    backlog.pop("most_bytes", None)
    if "least_bytes" in backlog:
        backlog["most_bytes"] = backlog["least_bytes"]
    estimates.pop("file", None)
    if estimates.get("kind") == "given":
        estimates["file"] = "grid.csv"
    for wire in estimates.get("shared", []):
        if "bandwidth_bytes_per_s" in wire:
            wire.pop("connections", None)


scenarios = st.builds(
    lambda tree, with_problem: fitting(tree, with_problem=with_problem),
    trees_of(SCENARIO),
    st.booleans(),
)
