"""Changes of a schedule as a whole, and of the limits that it was planned for."""

from __future__ import annotations

import math
import random

from instances.change_sizes import (
    Tree,
    factor_near_1,
    mend_makespan,
    name_of,
    one_of,
    shifted,
    ulps,
)

# Changes of the rest -----------------------------------------------------------------------------


def chunk(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    if schedule["slot_s"] and rng.random() < 0.8:
        return "slots have none"
    hundredth_s = schedule["makespan_s"] / 100
    schedule["chunk_s"] = rng.choice(
        [0.0, 1e9, hundredth_s, ulps(hundredth_s, 1), ulps(hundredth_s, -1)]
        + [hundredth_s * factor for factor in (0.5, 0.999, 1.001, 2.0)]
        + [(schedule["chunk_s"] or 0.01) * factor for factor in (0.5, 1 - 1e-6, 1 + 1e-6, 2.0)]
    )
    return repr(schedule["chunk_s"])


def lag(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """Each hop another time behind the one before, about a chunk; relays may have no room."""
    if schedule["slot_s"]:
        return "slots have none"
    was_s, hundredth_s = schedule["chunk_s"] or 0.0, schedule["makespan_s"] / 100
    lag_s = hundredth_s * rng.choice([0.5, 0.97, 0.97, 0.999, 1.0, 1.03, 2.0])
    for row in schedule["transfers"]:
        for name in ("start_s", "finish_s"):
            row[name] += row["hop"] * (lag_s - was_s)
    mend_makespan(schedule)
    hundredth_s = schedule["makespan_s"] / 100
    schedule["chunk_s"] = rng.choice(
        [lag_s, lag_s, ulps(hundredth_s, -8), hundredth_s, ulps(hundredth_s, 8), lag_s * (1 - 1e-6)]
    )
    relays = sorted({host for row in schedule["transfers"] for host in row["route"][1:-1]})
    if relays and rng.random() < 0.8:
        problem["hosts"][rng.choice(relays)]["storage_bytes"] = 0
    return f"{lag_s!r} with chunk_s {schedule['chunk_s']!r}"


def makespan(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    schedule["makespan_s"] = max(0.0, shifted(rng, schedule["makespan_s"], schedule["makespan_s"]))
    return repr(schedule["makespan_s"])


def slot(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """Another grid under the same instants."""
    if not schedule["slot_s"]:
        schedule["slot_s"], schedule["chunk_s"] = rng.choice([0.1, 0.25, 1.0]), None
    else:
        schedule["slot_s"] *= rng.choice([0.5, 2.0, 1 / 3, factor_near_1(rng)])
        if rng.random() < 0.3:
            schedule["slot_s"] = ulps(schedule["slot_s"], rng.choice([-1, 1]))
    return repr(schedule["slot_s"])


def route(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row = one_of(rng, schedule)
    rows = [other for other in schedule["transfers"] if other["route"] == row["route"]]
    hosts, detour = list(row["route"]), rng.choice(list(problem["hosts"]))
    i = rng.randrange(len(hosts))
    how = rng.choice(["other", "swap", "longer"])
    if how == "other":
        hosts = list(one_of(rng, schedule)["route"])
    elif how == "swap":
        hosts[i - 1], hosts[i] = hosts[i], hosts[i - 1]
    else:
        hosts.insert(i, detour)
    for other in rows if rng.random() < 0.5 else [row]:
        other["route"] = hosts
    return f"{how}: {'-'.join(row['route'])} becomes {'-'.join(hosts)}"


def bad_value(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    name, value = rng.choice(
        [
            ("start_s", -1e-9),
            ("start_s", math.nan),
            ("finish_s", math.inf),
            ("bytes", 0),
            ("bytes", -1),
            ("bytes", 1.5),
            ("offset_bytes", 0.5),
            ("hop", 7),
            ("streams", 0),
            ("streams", 3),
            ("source", "D"),
        ]
    )
    one_of(rng, schedule)[name] = value
    if rng.random() < 0.1:
        schedule["destination"] = "H1"
    return f"{name} {value!r}, to {schedule['destination']}"


# Changes of the problem: the same plan, under limits that just fit it, or just do not. -----------


def bandwidth(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """The capacity of a link, host or shared bottleneck is just what one transfer needs."""
    row, factor = one_of(rng, schedule), factor_near_1(rng)
    rate = row["bytes"] / (row["finish_s"] - row["start_s"]) * factor
    pair = row["route"][row["hop"] : row["hop"] + 2]
    what = rng.choice(["link", "uplink", "downlink", "shared"])
    if what == "link":
        (link,) = [x for x in problem["links"] if [x["from"], x["to"]] == pair]
        link["bandwidth_bytes_per_s"] = [rate] * len(problem.get("periods_s", [0]))
    elif what == "shared":
        links = rng.sample([[x["from"], x["to"]] for x in problem["links"]], k=1)
        links += [pair] if pair not in links else []
        wire = {"name": "new", "bandwidth_bytes_per_s": rate, "links": links}
        problem.setdefault("shared", []).append(wire)
    else:
        problem["hosts"][pair[what == "downlink"]][f"{what}_bytes_per_s"] = rate
    return f"{what} of {name_of(row)} {rate!r}, {factor!r} of what it uses"


def period(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """A link loses bandwidth when a transfer ends, or about then."""
    row = one_of(rng, schedule)
    if len(problem.get("periods_s", [0])) > 1:
        return "there are some"
    at_s = shifted(rng, row["finish_s"], row["finish_s"] - row["start_s"])
    problem["periods_s"] = [0.0, row["finish_s"] if rng.random() < 0.3 else at_s]
    lost = rng.choice([0.0, 0.5, 1 - 2e-6, 1 - 0.5e-6])
    for link in problem["links"]:
        rate, hit = link["bandwidth_bytes_per_s"], rng.random() < 0.5
        rate = rate[0] if isinstance(rate, list) else rate
        link["bandwidth_bytes_per_s"] = [rate, rate * lost if hit else rate]
    return f"{problem['periods_s']}, times {lost!r}"


def release(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row = one_of(rng, schedule)
    at_s = row["start_s"]
    if rng.random() < 0.7:
        at_s = max(0.0, shifted(rng, at_s, row["finish_s"] - at_s))
    problem["hosts"][row["source"]]["release_s"] = at_s
    return f"{row['source']} at {at_s!r}"


def storage(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """A relay's room is about a chunk, a slot, a transfer or nothing."""
    relayed = [row for row in schedule["transfers"] if row["hop"] + 2 < len(row["route"])]
    if not relayed:
        return "no relay"
    row = rng.choice(relayed)
    chunk_bytes = row["bytes"] / (row["finish_s"] - row["start_s"]) * (schedule["chunk_s"] or 0.0)
    room = rng.choice([0, row["bytes"], 2 * row["bytes"], chunk_bytes]) + rng.choice([-1, 0, 1])
    problem["hosts"][row["route"][row["hop"] + 1]]["storage_bytes"] = max(0, round(room))
    return f"{row['route'][row['hop'] + 1]} {max(0, round(room))}"
