"""A schedule's tree broken in many ways, and a problem's tree with any value anywhere."""

from __future__ import annotations

import copy

from hypothesis import strategies as st

SCHEDULE = {
    "format": "datacollect-schedule/1",
    "method": "direct",
    "destination": "D",
    "makespan_s": 2.0,
    "lower_bound_s": 2.0,
    "slot_s": None,
    "chunk_s": 0.0,
    "solver": "none",
    "problem_sha256": "…",
    "transfers": [
        {
            "source": "S1",
            "route": ["S1", "D"],
            "hop": 0,
            "offset_bytes": 0,
            "bytes": 10,
            "start_s": 0.0,
            "finish_s": 2.0,
        }
    ],
}


def altered(place, value):
    tree = copy.deepcopy(SCHEDULE)
    *path, last = place
    inner = tree
    for key in path:
        inner = inner[key]
    inner[last] = value
    return tree


def without(*keys):
    return {key: value for key, value in SCHEDULE.items() if key not in keys}


ROW = ("transfers", 0)
SCHEDULES = {
    "missing keys": (without("solver", "slot_s"), "keys slot_s, solver are missing"),
    "unknown key": (altered(["makespan"], 1), "makespan: unknown key; did you mean 'makespan_s'?"),
    "unknown key of a transfer": (
        altered([*ROW, "offset"], 1),
        "transfers[0].offset: unknown key; did you mean 'offset_bytes'?",
    ),
    "other format": (
        altered(["format"], "x"),
        "format must be \"datacollect-schedule/1\", got 'x'",
    ),
    "negative bytes": (altered([*ROW, "bytes"], -1), "transfers[0].bytes must be a whole number"),
    "half a byte": (altered([*ROW, "bytes"], 0.5), "got 0.5; round it"),
    "text for a time": (altered([*ROW, "start_s"], "0"), "transfers[0].start_s must be a finite"),
    "infinite time": (altered([*ROW, "finish_s"], float("inf")), "must be a finite number of"),
    "no route": (altered([*ROW, "route"], ["S1"]), "route must be a list of at least two hosts"),
    "hop beyond the route": (
        altered([*ROW, "hop"], 1),
        "transfers[0].hop must be below 1, the route's number of hops, got 1",
    ),
    "no streams": (altered([*ROW, "streams"], 0), "must be a whole number >= 1, got 0"),
    "slot of no length": (altered(["slot_s"], 0), "slot_s must be a finite number of seconds > 0"),
    "a table for transfers": (altered(["transfers"], {}), "transfers must be a list of tables"),
    "unknown status": (altered(["status"], "best"), 'must be "optimal" or "heuristic"'),
    "unknown preference": (altered(["prefer"], "speed"), 'prefer must be "relay-bytes" or '),
    "deadline of nothing": (
        altered(["deadline_s"], 0),
        "deadline_s must be a finite number of seconds > 0",
    ),
    "turns of nobody": (
        altered(["turns"], {"order": [], "at_a_time": 0}),
        "turns.at_a_time must be a whole number >= 1, got 0",
    ),
    "turns without an order": (altered(["turns"], {"at_a_time": 1}), "turns: key order is missing"),
    "hysteresis in words": (altered(["hysteresis"], "5 %"), "hysteresis must be a finite number"),
    "a problem": ({"destination": "D", "hosts": {}}, "this is a problem; name the problem file"),
    "a list": ([], "the top level must be a table"),
}


TREE = {
    "destination": "D",
    "periods_s": [0.0, 5.0],
    "hosts": {"S": {"backlog_bytes": 10, "storage_bytes": 5}, "K": {"release_s": 1.0}, "D": {}},
    "links": [
        {"from": "S", "to": "D", "bandwidth_bytes_per_s": [5.0, 0.0], "price_per_gb": 1.0},
        {"from": "S", "to": "K", "bandwidth_bytes_per_s": 5},
    ],
    "shared": [{"name": "x", "bandwidth_bytes_per_s": 5.0, "links": [["S", "D"]]}],
    "held": [{"host": "D", "source": "S", "offset_bytes": 0, "bytes": 3}],
}
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["S", "K", "D", "X", "", "0", "backlog_bytes", 10**400, -(10**400)])
    | st.text(max_size=3)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


def places(tree, place=()):
    yield place
    if isinstance(tree, dict | list):
        for key, inner in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(inner, (*place, key))


def with_value(tree, place, value):
    if not place:
        return value
    tree = copy.deepcopy(tree)
    inner = tree
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return tree
