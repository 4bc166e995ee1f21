"""Changes of a schedule's transfers: their instants and their bytes."""

from __future__ import annotations

import random

from instances.change_sizes import (
    Tree,
    factor_near_1,
    maybe_mend,
    name_of,
    one_of,
    same_bytes,
    shifted,
    some_bytes,
    ulps,
)

# Changes of instants -----------------------------------------------------------------------------


def nothing(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    return ""


def shift(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row = one_of(rng, schedule)
    scale_s = row["finish_s"] - row["start_s"]
    rows = same_bytes(schedule, row) if rng.random() < 0.3 else [row]
    names = rng.choice([["start_s"], ["finish_s"], ["start_s", "finish_s"]])
    state = rng.getstate()
    for moved in rows:
        for name in names:
            rng.setstate(state)  # all by the same
            moved[name] = shifted(rng, moved[name], scale_s)
    return f"{names} of {name_of(row)}, {len(rows)} rows{maybe_mend(rng, schedule)}"


def shift_hop(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """All transfers of one hop of a route, by about a chunk or a slot."""
    row = one_of(rng, schedule)
    scale_s = schedule["chunk_s"] or schedule["slot_s"] or row["finish_s"] - row["start_s"]
    state = rng.getstate()
    for other in schedule["transfers"]:
        if (other["source"], other["route"]) == (row["source"], row["route"]) and (
            other["hop"] == row["hop"]
        ):
            for name in ("start_s", "finish_s"):
                rng.setstate(state)
                other[name] = shifted(rng, other[name], scale_s)
    return name_of(row) + maybe_mend(rng, schedule)


def scale(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    factor, with_steps = factor_near_1(rng), rng.random() < 0.8
    for row in schedule["transfers"]:
        row["start_s"] *= factor
        row["finish_s"] *= factor
    if with_steps:
        for name in ("slot_s", "chunk_s"):
            if schedule[name] is not None:
                schedule[name] *= factor
    return f"{factor!r}, slot and chunk {with_steps}{maybe_mend(rng, schedule)}"


def later(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    by_s = rng.choice([1e-9, 0.1, 1.0, 1e3, 1e9])
    if schedule["slot_s"]:
        by_s = round(by_s / schedule["slot_s"]) * schedule["slot_s"]
    for row in schedule["transfers"]:
        row["start_s"] += by_s
        row["finish_s"] += by_s
    return f"{by_s!r}{maybe_mend(rng, schedule)}"


def hurry(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """One transfer is faster by about the tolerance."""
    row, factor = one_of(rng, schedule), factor_near_1(rng)
    row["finish_s"] = row["start_s"] + (row["finish_s"] - row["start_s"]) / factor
    return f"{name_of(row)}, {factor!r}{maybe_mend(rng, schedule)}"


def no_time(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """A transfer takes no time, or a few ulp."""
    row, n = one_of(rng, schedule), rng.choice([0, 1, 1, 2, 4, 8])
    if rng.random() < 0.5:
        row["finish_s"] = ulps(row["start_s"], n)
    else:
        row["start_s"] = ulps(row["finish_s"], -n)
    return f"{name_of(row)}, {n} ulp{maybe_mend(rng, schedule)}"


def overlap(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row, other = one_of(rng, schedule), one_of(rng, schedule)
    lasts_s = row["finish_s"] - row["start_s"]
    row["start_s"] = other["start_s"]
    row["finish_s"] = row["start_s"] + lasts_s
    return f"{name_of(row)} with {name_of(other)}{maybe_mend(rng, schedule)}"


# Changes of bytes --------------------------------------------------------------------------------


def move_bytes(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """From a transfer to the one that follows it on the same hop, or from one to any."""
    row = one_of(rng, schedule)
    n = some_bytes(rng, row["bytes"])
    for other in schedule["transfers"]:
        same = all(other[name] == row[name] for name in ("source", "route", "hop"))
        if same and other["offset_bytes"] == row["offset_bytes"] + row["bytes"]:
            row["bytes"] -= n
            other["offset_bytes"] -= n
            other["bytes"] += n
            return f"{n} from {name_of(row)} to the next"
    other = one_of(rng, schedule)
    row["bytes"] -= n
    other["bytes"] += n
    return f"{n} from {name_of(row)} to {name_of(other)}"


def drop(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row = one_of(rng, schedule)
    schedule["transfers"].remove(row)
    return name_of(row) + maybe_mend(rng, schedule)


def duplicate(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row = one_of(rng, schedule)
    schedule["transfers"].append(dict(row))
    return name_of(row)


def change_bytes(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row, name = one_of(rng, schedule), rng.choice(["offset_bytes", "bytes"])
    by = rng.choice([-1, 1, -row[name]])
    row[name] += by
    return f"{name} of {name_of(row)} by {by}"


def split(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """In two, one after the other, at a byte or near it in time."""
    row = one_of(rng, schedule)
    rows = same_bytes(schedule, row) if rng.random() < 0.5 else [row]
    if row["bytes"] < 2:
        return "one byte only"
    n = rng.choice([1, rng.randint(1, row["bytes"] - 1), row["bytes"] - 1])
    off = rng.choice([0.0, 0.0, 1e-9, 0.9e-6, 1.1e-6, 0.01])
    for whole in rows:
        rest = dict(whole)
        lasts_s = whole["finish_s"] - whole["start_s"]
        cut_s = whole["start_s"] + lasts_s * min(1.0, n / whole["bytes"] * (1 + off))
        whole["bytes"], whole["finish_s"] = n, cut_s
        rest["offset_bytes"] += n
        rest["bytes"] -= n
        rest["start_s"] = cut_s
        schedule["transfers"].append(rest)
    return f"{name_of(row)} after {n} bytes, {len(rows)} rows, time off by {off!r}"


def side_by_side(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """In two at the same time."""
    row = one_of(rng, schedule)
    rows = same_bytes(schedule, row) if rng.random() < 0.5 else [row]
    if row["bytes"] < 2:
        return "one byte only"
    n = rng.randint(1, row["bytes"] - 1)
    for whole in rows:
        schedule["transfers"].append(
            dict(whole, offset_bytes=whole["offset_bytes"] + n, bytes=whole["bytes"] - n)
        )
        whole["bytes"] = n
    return f"{name_of(row)} at {n} bytes, {len(rows)} rows"


def merge(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    row = one_of(rng, schedule)
    for other in schedule["transfers"]:
        same = all(other[name] == row[name] for name in ("source", "route", "hop"))
        if same and other["offset_bytes"] == row["offset_bytes"] + row["bytes"]:
            row["bytes"] += other["bytes"]
            row["finish_s"] = max(row["finish_s"], other["finish_s"])
            row["start_s"] = min(row["start_s"], other["start_s"])
            schedule["transfers"].remove(other)
            return f"{name_of(row)} with the next"
    return "none follows"


def one_byte_each(rng: random.Random, problem: Tree, schedule: Tree) -> str:
    """The last bytes of a transfer, one by one within a short time."""
    row = one_of(rng, schedule)
    n = min(row["bytes"] - 1, rng.choice([2, 2, 10, 10, 10, 100, 100, 1000]))
    if n < 1:
        return "one byte only"
    lasts_s = row["finish_s"] - row["start_s"]
    fair_s = lasts_s * n / row["bytes"]
    span_s = min(lasts_s / 2, rng.choice([1e-6, fair_s, fair_s * 0.99999, fair_s / 2]))
    row["bytes"] -= n
    row["finish_s"] -= span_s
    starts_s, first = row["finish_s"], row["offset_bytes"] + row["bytes"]
    # Side by side all the time, one after the other, or with pauses between.
    together, busy = rng.random() < 0.2, rng.choice([1.0, 1.0, 1.0, 0.5, 1e-3])
    for i in range(n):
        a, b = (0, n) if together else (i, i + busy)
        piece = {
            "offset_bytes": first + i,
            "bytes": 1,
            "start_s": starts_s + span_s * (a / n),
            "finish_s": starts_s + span_s * (b / n),
        }
        schedule["transfers"].append(row | piece)
    how = "at once" if together else f"busy {busy!r}"
    return f"{n} of {name_of(row)} in {span_s!r} s, {how}{maybe_mend(rng, schedule)}"
