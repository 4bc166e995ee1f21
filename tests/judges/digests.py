"""Digests of simulation runs: what is recorded of one, where, and how it is compared.

`record_digests.py` records them; `simulation/test_digests.py` compares. On the platform that
recorded them all of a run has to be the same to the last digit: its tables, and the settings that
shaped it. Elsewhere numbers are compared to 1e-9, counts included.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from instances.digest_runs import RUNS, carried_out

FOLDER = Path(__file__).resolve().parents[1] / "simulation"
TABLES = ("storage", "routes", "background", "wires", "connections")
LOGGED = ("asked_s", "opened_s", "first_byte_s", "last_byte_s", "closed_s")
LOGGED += ("bytes", "stalls", "retransmissions")
RELATIVE = 1e-9

# What a run's settings say about the machine, the clock and versions, not about the simulation.
OF_THE_MACHINE = {"cpu_s", "plan_time_s", "peak_memory_bytes", "version", "versions"}

# What the last digits depend on. ns-3 is compiled where it is installed.
PACKAGES = {"fluid": ("numpy", "scipy", "pandas", "networkx", "ortools")}
PACKAGES["ns3"] = (*PACKAGES["fluid"], "ns3", "cppyy", "cppyy-cling")


def file_of(engine):
    """The file with an engine's digests."""
    return FOLDER / f"digests_{engine}.json"


def read(engine):
    """The recorded platform and runs of an engine; none before the first recording."""
    if not file_of(engine).exists():
        return {"platform": {}, "runs": {}}
    return json.loads(file_of(engine).read_text(encoding="utf-8"))


def write(engine, recorded):
    """Write an engine's digests: a line for each part of a run, so that a change shows which."""
    lines = ["{", ' "about": "made by tests/record_digests.py",']
    lines += [f' "platform": {json.dumps(recorded["platform"])},', ' "runs": {']
    last = len(recorded["runs"])
    for number, (name, run) in enumerate(recorded["runs"].items(), 1):
        parts = [f"   {json.dumps(key)}: {json.dumps(part)}" for key, part in run.items()]
        lines += [f"  {json.dumps(name)}: {{", *(f"{part}," for part in parts[:-1]), parts[-1]]
        lines.append("  }" + "," * (number < last))
    text = "\n".join([*lines, " }", "}", ""])
    file_of(engine).write_text(text, encoding="utf-8")


def platform_of(engine):
    """Return what results may depend on in their last digits, as a tree."""
    packages = {}
    for name in PACKAGES[engine]:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "libc": " ".join(platform.libc_ver()),
        "python": ".".join(platform.python_version_tuple()[:2]),
        # numpy takes other code, with other rounding, where the processor can do more.
        "simd": np.show_config(mode="dicts")["SIMD Extensions"].get("found", []),
        "packages": packages,
    }


def run_case(engine, name):
    """Carry a run out, and return what is recorded of it."""
    with tempfile.TemporaryDirectory() as folder:
        return parts_of(carried_out(engine, RUNS[engine][name](), Path(folder)))


# What is recorded of a run --------------------------------------------------------------------


def parts_of(run):
    """Return a run's numbers by part, and hashes of its tables and settings."""
    settings = run.settings
    peaks = run.peak_storage_bytes()
    phases = run.background.groupby(["kind", "phase"])
    measured = settings["measurement"] or {}
    found = {
        "result": {
            "complete": run.complete,
            "makespan_s": run.makespan_s,
            "collected_bytes": run.collected_bytes,
            "events": run.events,
            "finish_s": run.source_finish_s,
        },
        "plan": {
            "predicted_makespan_s": settings["predicted_makespan_s"],
            "connections": settings["connections"],
            "replanning": settings["replanning"],
            "measured": {key: measured.get(key) for key in ("probes", "bytes", "simulated_s")},
        },
        # Most own bytes, most of others', byte-seconds of both.
        "storage": {
            host: [*peaks.loc[host], *byte_seconds(curve, peaks.columns)]
            for host, curve in run.storage.groupby("host")
        },
        "routes": {
            f"{row['source']}: {row['from']} > {row['to']}": row["bytes"]
            for row in run.routes.to_dict("records")
        },
        "background": {
            f"{kind} {phase}": math.fsum(rates)
            for (kind, phase), rates in phases["goodput_bytes_per_s"]
        },
        "wires": sums(run.wires, "utilisation", "dropped_packets"),
        "log": sums(run.connections, *LOGGED),
        "names": names_of(run),
        "sha256": hashes_of(run),
    }
    return json.loads(json.dumps(plain(found)))


def names_of(run):
    """Return the columns of each table, and a hash of the settings' keys: alike on any platform."""
    paths = json.dumps(list(keys_below(plain(run.settings))))
    columns = {name: list(getattr(run, name).columns) for name in TABLES}
    return {**columns, "settings": hashlib.sha256(paths.encode()).hexdigest()}


def keys_below(tree, above=""):
    """Yield the path of each key in a tree of dicts and lists."""
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield f"{above}.{key}"
            yield from keys_below(tree[key], f"{above}.{key}")
    elif isinstance(tree, list):
        for i, item in enumerate(tree):
            yield from keys_below(item, f"{above}[{i}]")


def hashes_of(run):
    """Return hashes of each table and of the settings, floats to the last digit."""
    trees = {name: list(getattr(run, name).to_dict("list").items()) for name in TABLES}
    trees["settings"] = run.settings
    return {
        name: hashlib.sha256(json.dumps(plain(tree), sort_keys=True).encode()).hexdigest()
        for name, tree in trees.items()
    }


def byte_seconds(curve, columns):
    """What was stored times how long: does not change where an instant is listed twice."""
    length_s = np.diff(curve["time_s"])
    return [
        math.fsum(length_s * (curve[name].to_numpy()[1:] + curve[name].to_numpy()[:-1]) / 2)
        for name in columns
    ]


def sums(table, *columns):
    """Sums of a table's columns, and how many rows have a value there."""
    return {name: [math.fsum(table[name].dropna()), int(table[name].count())] for name in columns}


def plain(value):
    """Return a tree in Python's own types, without what is the machine's; not a number is None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): plain(item) for k, item in value.items() if k not in OF_THE_MACHINE}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


# Comparison -----------------------------------------------------------------------------------


def differences(recorded, found, *, exactly):
    """Say where a run differs from what was recorded of it, a line each.

    Parameters
    ----------
    recorded, found : dict
        As `parts_of` returns them.
    exactly : bool
        To the last digit, hashes included; else numbers to 1e-9, and no hashes.
    """
    lines = []
    for part in found:
        if part != "sha256" or exactly:
            _compare(recorded.get(part), found[part], part, exactly, lines)
    return lines


def _compare(old, new, place, exactly, lines):
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            _compare(old.get(key), new.get(key), f"{place}.{key}", exactly, lines)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, pair in enumerate(zip(old, new, strict=True)):
            _compare(*pair, f"{place}[{i}]", exactly, lines)
    elif not (old == new if exactly else _near(old, new)):
        lines.append(f"{place}: recorded {old!r}, got {new!r}")


def _near(old, new):
    if isinstance(old, int | float) and isinstance(new, int | float):
        return math.isclose(old, new, rel_tol=RELATIVE, abs_tol=RELATIVE)
    return old == new
