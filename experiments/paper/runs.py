"""The runs that the core paper's claims speak of, found by what their scenarios say.

C.-F. Chou, Y.-C. Wan, W. C. Cheng, L. Golubchik, S. Khuller, "A Performance Study of a Large-Scale
Data Collection Problem", WCW 2002. Which experiment a run belongs to, and how its axes are called,
does not matter: what counts is method, background, wrong estimates, and the name of the world
(`paper.worlds`).
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from datacollect.study.report.known_hooks import is_core_papers
from datacollect.study.report.setting_runs import is_plain_direct
from paper.worlds import (
    NOWHERE,
    PIPELINED,
    World,
    differences,
    plan_words,
    probes_words,
    shape_words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from datacollect.study.report.folders import SweepFolder

DIRECT, AS_MANY, BEST_PATH, COORDINATED = "direct", "direct-as-many", "best-path", "coordinated"

# How many sources at a time, in variants of direct: one after another, and so many at once.
AT_A_TIME = (1, 2, 4)
# "And possibly during a predetermined time slot": so many at once.
IN_TIME_SLOTS = (2,)


@dataclass(frozen=True)
class PaperSetting:
    """Background and errors of estimates.

    Attributes
    ----------
    split : str
        Background flows over the two peering wires, such as ``"2:1"``.
    flows : int
    udp : float
        Share of UDP.
    error, other_error : float
        Relative, of estimates over the wire with more background, and over the other one.
    """

    split: str
    flows: int
    udp: float = 0.05
    error: float = 0.0
    other_error: float = 0.0


@dataclass(frozen=True, eq=False)
class PaperRuns:
    """Runs in the paper's setting that differ in nothing but what its claims vary.

    Attributes
    ----------
    world : World
        Its name.
    table : DataFrame
        Complete runs: the columns of the results, and ``way`` (method), ``flows``, ``split`` (such
        as ``"2:1"``), ``udp`` (share), ``error`` (relative, of paths over the wire with more
        background) and ``other_error`` (over the other one).
    n_incomplete : int
        Runs that the time limit ended, which are left out.
    """

    world: World
    table: pd.DataFrame
    n_incomplete: int = 0

    @property
    def words(self) -> str:
        """Engine and size, what is known, and what is left out."""
        left_out = f", without {self.n_incomplete} incomplete runs" if self.n_incomplete else ""
        return f"{self.world.words}{left_out}"

    def flows(self, split: str) -> list[int]:
        """Return the numbers of background flows that were run with a split."""
        return sorted({int(n) for n in self.table.loc[self.table["split"] == split, "flows"]})

    def most_flows(self, split: str) -> int:
        """Return the largest number of background flows with a split; 0 where there are none."""
        return max(self.flows(split), default=0)

    def select(self, way: str, setting: PaperSetting) -> pd.DataFrame:
        """Return the runs of one method in one setting, by seed.

        Direct plans on no estimates: its runs with right ones serve for wrong ones.
        """
        if way.startswith(DIRECT):
            setting = replace(setting, error=0.0, other_error=0.0)
        found = self._by_setting.get((way, *astuple(setting)))
        return self.table.iloc[:0].set_index("seed") if found is None else found

    @cached_property
    def _by_setting(self) -> dict[tuple[Any, ...], pd.DataFrame]:
        """Runs by method and setting: claims ask for each of them again and again."""
        names = ["way", *(field.name for field in fields(PaperSetting))]
        # Of all at once: pandas takes as long for a few rows.
        by_seed = self.table.drop_duplicates([*names, "seed"]).set_index("seed")
        return dict(iter(by_seed.sort_index(kind="stable").groupby(names)))


def paper_runs(sweeps: Sequence[SweepFolder]) -> list[PaperRuns]:
    """Return all runs in the paper's setting, world by world, in the order of `World.rank`.

    Direct and best-path are the same whatever the coordinated plan is like: they stand in each
    world that shares all else. Versions are named where there are several.
    """
    import pandas as pd

    tables = [table for sweep in sweeps if (table := _of_paper(sweep)) is not None]
    if not tables:
        return []
    table = _with_what_first_leaves(pd.concat(tables, ignore_index=True))
    table = table.drop_duplicates(["key", "others"])
    # The fluid engine has one version less than ns-3: engines are no different versions.
    several = table.groupby("engine")["versions"].nunique()
    found = []
    for _, runs in table.groupby(["engine", "scale", "probes", "others", "versions"]):
        first = runs.iloc[0]
        plans = sorted({plan for plan in runs["plan"] if plan}) or [""]
        for plan in plans:
            shape = runs.loc[runs["plan"] == plan, "shape"].max()
            chosen = runs[runs["plan"].isin(["", plan]) & runs["shape"].isin(["", shape])]
            complete = chosen[chosen["complete"]]
            if len(complete):
                world = World(
                    str(first["engine"]),
                    float(first["scale"]),
                    str(first["probes"]),
                    plan,
                    tuple(first["others"]),
                    str(first["versions"]) if several[first["engine"]] > 1 else "",
                )
                found.append(PaperRuns(world, complete, len(chosen) - len(complete)))
    return sorted(found, key=lambda runs: runs.world.rank)


def _with_what_first_leaves(table: pd.DataFrame) -> pd.DataFrame:
    """Beside best-path that begins with another route, what does not ask for it is as it was."""
    import pandas as pd

    found = [table]
    for others in sorted({others for others in table["others"] if any(map(_is_first, others))}):
        usual = tuple(other for other in others if not _is_first(other))
        alike = table[(table["others"] == usual) & (table["way"] != BEST_PATH)]
        found.append(alike.assign(others=[others] * len(alike)))
    return pd.concat(found, ignore_index=True)


def _is_first(other: str) -> bool:
    return other.startswith("method.first = ")


def no_runs() -> PaperRuns:
    """Return a world in which nothing was run."""
    import pandas as pd

    columns = [
        *("way", "flows", "split", "udp", "error", "other_error"),
        *("seed", "connections", "makespan_s"),
    ]
    return PaperRuns(NOWHERE, pd.DataFrame(columns=columns))


def _of_paper(sweep: SweepFolder) -> pd.DataFrame | None:
    table = sweep.table
    names = [axis.name for axis in sweep.axes]
    combinations = table[names].drop_duplicates()
    rows = []
    for labels in combinations.to_dict("records"):
        words = {str(name): str(label) for name, label in labels.items()}
        facts = _facts(sweep.scenario(words))
        if facts is not None:
            facts["others"] += _chosen_seeds(sweep)
            facts["versions"] = version_words(sweep.tree.get("versions") or {})
            rows.append({**words, **{f"_{name}": value for name, value in facts.items()}})
    if not rows:
        return None
    import pandas as pd

    # Underscores keep facts apart from axes of the same name.
    facts_table = pd.DataFrame(rows)
    joined = table.merge(facts_table, on=names) if names else table.merge(facts_table, how="cross")
    new = [column for column in facts_table.columns if column not in names]
    own = [column for column in table.columns if column not in names or column == "method"]
    return joined[[*own, *new]].rename(columns={column: column[1:] for column in new})


def _chosen_seeds(sweep: SweepFolder) -> tuple[str, ...]:
    """Say that seeds were chosen: what was chosen by a condition must not count as drawn."""
    is_chosen = bool((sweep.tree.get("seeds") or {}).get("chosen"))
    return (f"seeds chosen for {sweep.tree['name']}",) if is_chosen else ()


def _facts(scenario: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a claim may ask of a run; None where it is not in the paper's setting."""
    background = scenario.get("background") or {}
    method, scale = scenario.get("method") or {}, float(scenario.get("scale", 1.0))
    way = _way(method)
    if way is None or not is_core_papers(scenario):
        return None
    over, split = background.get("over") or [], background.get("split") or []
    if len(over) != 2 or len(split) != 2:
        return None
    errors = _errors(scenario, over, split)
    if errors is None:
        return None
    return {
        "way": way,
        "flows": int(background.get("flows", 0)),
        "split": f"{split[0]:g}:{split[1]:g}",
        "udp": float(background.get("udp_share", 0.0)),
        "error": errors[0],
        "other_error": errors[1],
        "scale": scale,
        "probes": probes_words(scenario),
        "plan": plan_words(method, scale) if way == COORDINATED else "",
        # Direct with as many connections goes with every plan of that shape, whenever it sends.
        "shape": shape_words(method, scale) if way in (AS_MANY, COORDINATED) else "",
        "others": differences(scenario),
    }


def _way(method: Mapping[str, Any]) -> str | None:
    name = method.get("name", COORDINATED)
    if name == COORDINATED:
        return COORDINATED
    if name == BEST_PATH:
        # Slots, and planned times, are the coordinated method's.
        return BEST_PATH if plan_words(method, 1.0) == PIPELINED else None
    if is_plain_direct(method):
        return DIRECT
    if is_plain_direct({**method, "at_a_time": None, "time_slot_s": None}):
        return direct_in_turns(method["at_a_time"], in_time_slots="time_slot_s" in method)
    by_data = method.get("streams_shared", "by-data") == "by-data"
    is_once = method.get("as_many_times", 1) == 1
    is_as_many = method.get("streams_as") == COORDINATED and by_data and is_once
    return AS_MANY if is_as_many else None


def _errors(
    scenario: Mapping[str, Any], over: Sequence[str], split: Sequence[float]
) -> tuple[float, float] | None:
    """Errors of estimates over the wire with more background, and over the other."""
    perturbations = scenario.get("estimates", {}).get("perturbations") or []
    factors = {p.get("wire"): float(p.get("factor", math.nan)) for p in perturbations}
    if not set(factors) <= set(over):
        return None
    more = over[1] if split[1] > split[0] else over[0]
    less = over[0] if more == over[1] else over[1]
    return round(factors.get(more, 1.0) - 1, 6), round(factors.get(less, 1.0) - 1, 6)


def direct_in_turns(n: int, *, in_time_slots: bool = False) -> str:
    """Return the name of direct with so many sources at a time.

    >>> direct_in_turns(2), direct_in_turns(2, in_time_slots=True)
    ('direct, 2 at a time', 'direct, 2 at a time in time slots')
    """
    return f"{DIRECT}, {n} at a time" + (" in time slots" if in_time_slots else "")


def version_words(versions: Mapping[str, str]) -> str:
    """Return the versions that made runs, as text.

    >>> version_words({"numpy": "2", "ns3": "3.44"})
    'ns3 3.44, numpy 2'
    """
    return ", ".join(f"{name} {word}" for name, word in sorted(versions.items()))
