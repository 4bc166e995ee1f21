"""Real pulls in an emulated network, beside what planner and engines predict for the same network.

    python tests/testbed/demo.py [--flows 8] [--megabytes 3] [--pairs 1] [--no-ns3] [-o demo]

Two domains, two peering wires of 5 Mbit/s, seven sources, one relay, one destination, each in a
network namespace of its own with real TCP (`testbed.bed`). The sources' files are collected by
real agents and `datacollect pull`: direct, direct with as many connections as the coordinated plan
has, by best paths, coordinated, adaptive. First without others, then beside background flows, three
over the first wire for one over the second. Writes a table to standard output and into the folder,
as JSON too, and a picture. Needs root, or namespaces for ordinary users.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testbed.bed import Bed, why_no_bed
from testbed.networks import two_domains
from testbed.pulling import BedAgents

from datacollect.scenario.carry_out import carry_out
from datacollect.scenario.knowledge import planning_problem

if TYPE_CHECKING:
    from datacollect.scenario.setting import Setting

# Of a frame of 1514 bytes TCP carries 1448; the bound is what both wires, or one, can carry.
PAYLOAD = 1448 / 1514
WIRE_BYTES_PER_S = 625_000.0
# Until others' flows have found their rates.
WARM_UP_S = 4.0


class Way(NamedTuple):
    """A way to collect: its name here, the method, and what a scenario says besides."""

    name: str
    method: str
    more: dict[str, Any]


WAYS = (
    Way("direct", "direct", {}),
    Way("direct, as many", "direct", {"streams_as": "coordinated"}),
    Way("best-path", "best-path", {}),
    Way("coordinated", "coordinated", {}),
    Way("adaptive", "adaptive", {"connections_as": "coordinated"}),
)


class Row(NamedTuple):
    """Times of one way, for real and as predicted, in seconds; None where nothing says so."""

    way: str
    flows: int
    connections: int
    planned_s: float
    fluid_s: float
    ns3_s: float | None
    real_s: list[float]
    sent_again_bytes: list[int]


def setting_of(flows: int, megabytes: float, seed: int) -> Setting:
    """The network, its sources' data and others' flows."""
    return two_domains(
        flows=flows,
        split=(3, 1),
        backlog_bytes=round(megabytes * 1e6),
        seed=seed,
        estimates={"kind": "exact"},
    )


def predictions(setting: Setting, way: Way, *, with_ns3: bool) -> tuple[int, float, Any, Any]:
    """Return connections, and the seconds that the plan, the fluid engine and ns-3 promise."""
    values = {"method.name": way.method, **{f"method.{k}": v for k, v in way.more.items()}}
    scenario = setting.scenario.with_values(values)
    fluid = carry_out(scenario, engine="fluid", setting=setting)
    ns3_s = None
    if with_ns3:
        ns3_s = carry_out(scenario, engine="ns3", setting=setting).run.makespan_s
    return fluid.connections, fluid.schedule.makespan_s, fluid.run.makespan_s, ns3_s


def measured(
    ways: list[Way], flows: int, megabytes: float, n_pairs: int, *, with_ns3: bool
) -> list[Row]:
    """Collect in all ways in turn, so many times; each time with other background flows."""
    rows: dict[str, Row] = {}
    for seed in range(1, n_pairs + 1):
        setting = setting_of(flows, megabytes, seed)
        problem, _ = planning_problem(setting, "fluid")
        if not rows:
            for way in ways:
                found = predictions(setting, way, with_ns3=with_ns3)
                rows[way.name] = Row(way.name, flows, *found, [], [])
        with Bed(setting.network) as bed, tempfile.TemporaryDirectory() as folder:
            agents = BedAgents(bed, setting, problem, Path(folder))
            if flows:
                bed.start_background(seed, congestion="reno")
                time.sleep(WARM_UP_S)
            for way in ways:
                row, into = rows[way.name], Path(folder, f"{way.name} {seed}")
                said = agents.pull(way.method, row.connections, into=into)
                differ = agents.differences(into)
                if not said["complete"] or differ:
                    sys.exit(f"{way.name}: not all is there: {said['missing']} {differ}")
                row.real_s.append(said["makespan_s"])
                row.sent_again_bytes.append(said["refetched_bytes"])
                note(f"flows {flows}, seed {seed}: {way.name}: {said['makespan_s']:.1f} s")
                agents.clear(into)
    return list(rows.values())


def table(rows: list[Row], megabytes: float) -> str:
    """All rows as Markdown; the bound is for both wires."""
    bound_s = 7e6 * megabytes / (2 * WIRE_BYTES_PER_S * PAYLOAD)
    lines = [
        f"{megabytes:g} MB at each source: {bound_s:.1f} s at least over two wires, 2x over one.",
        "",
        "| others | way | connections | plan, s | fluid, s | ns-3, s | real, s | sent twice |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [seconds(value) for value in (row.planned_s, row.fluid_s, row.ns3_s)]
        again = statistics.mean(row.sent_again_bytes) / (7e6 * megabytes)
        lines.append(
            f"| {row.flows} | {row.way} | {row.connections} | {' | '.join(cells)} | "
            f"{real(row.real_s)} | {100 * again:.1f} % |"
        )
    return "\n".join(lines)


def seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def real(values: list[float]) -> str:
    """Mean, and the range where there are several."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ({min(values):.1f}–{max(values):.1f})"


def draw(rows: list[Row], path: Path) -> None:
    """One panel for each number of others' flows, a group of bars for each way."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    groups = sorted({row.flows for row in rows})
    figure, axes = plt.subplots(1, len(groups), figsize=(6 * len(groups), 4), squeeze=False)
    for axis, flows in zip(axes[0], groups, strict=True):
        here = [row for row in rows if row.flows == flows]
        series = {
            "plan": [row.planned_s for row in here],
            "fluid engine": [row.fluid_s for row in here],
            "ns-3": [row.ns3_s or 0.0 for row in here],
            "real": [statistics.mean(row.real_s) for row in here],
        }
        for i, (name, values) in enumerate(series.items()):
            axis.bar([x + 0.2 * i for x in range(len(here))], values, 0.2, label=name)
        axis.set_xticks([x + 0.3 for x in range(len(here))], [row.way for row in here], rotation=20)
        axis.set_title(f"{flows} flows of others" if flows else "without others")
        axis.set_ylabel("makespan, seconds")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", type=int, default=8, help="of others, in the second part")
    parser.add_argument("--megabytes", type=float, default=3.0, help="of each source")
    parser.add_argument("--pairs", type=int, default=1, help="times that each way is taken")
    parser.add_argument("--no-ns3", action="store_true", help="leave ns-3 out")
    parser.add_argument("--ways", nargs="+", choices=[w.name for w in WAYS], help="these only")
    parser.add_argument("--only", type=int, help="with so many flows only")
    parser.add_argument("-o", dest="folder", type=Path, default=Path("demo"))
    options = parser.parse_args()
    if (why := why_no_bed()) is not None:
        sys.exit(f"no test bed can be made here: {why}")
    with_ns3 = not options.no_ns3 and has_ns3()
    parts = (0, options.flows) if options.only is None else (options.only,)
    ways = [way for way in WAYS if options.ways is None or way.name in options.ways]
    rows = [
        row
        for flows in parts
        for row in measured(ways, flows, options.megabytes, options.pairs, with_ns3=with_ns3)
    ]
    options.folder.mkdir(parents=True, exist_ok=True)
    text = table(rows, options.megabytes)
    (options.folder / "testbed.md").write_text(text + "\n", encoding="utf-8")
    facts = json.dumps([row._asdict() for row in rows], indent=1)
    (options.folder / "testbed.json").write_text(facts + "\n", encoding="utf-8")
    draw(rows, options.folder / "testbed.png")
    sys.stdout.write(f"{text}\n\nThe picture is in {options.folder / 'testbed.png'}\n")


def has_ns3() -> bool:
    from datacollect.errors import SimulationError
    from datacollect.simulation.ns3.process import check_installed

    try:
        check_installed()
    except SimulationError as error:
        note(f"without ns-3: {error}")
        return False
    return True


if __name__ == "__main__":
    main()
