"""Worlds: runs that differ in nothing but what the paper's claims vary, and the names they go by.

What claims are judged in is chosen by these names, never by how many runs there are. A name says
engine, size, how the coordinated plan is shaped and carried out, what it knows, and all else in
which the scenario differs from the base scenario (`paper.base`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paper.base import BASE

if TYPE_CHECKING:
    from collections.abc import Mapping

# The paper's coordinated method is slotted, each transfer at its planned time; it does not say how
# long slots are. Fixed before anything was run: of full size, and shorter in proportion.
PAPER_SLOT_S = 100.0

PIPELINED = "pipelined"

# What the claims vary, or a name says in words of its own; all else is listed where it differs.
SAID = {
    "background": ("flows", "split", "udp_share"),
    "estimates": ("perturbations", "kind", "how", "probe_bytes"),
    "method": (
        *("name", "streams", "streams_as", "total_streams", "streams_shared"),
        *("connections", "connections_as", "slot_s", "scaled_slot_s", "timing", "at_a_time"),
        *("as_many_times", "time_slot_s"),
    ),
    "run": ("seed",),
}


@dataclass(frozen=True, order=True)
class World:
    """The name of a world, in parts.

    Attributes
    ----------
    engine : str
        Empty where there are no runs.
    scale : float
        Factor on the paper's amounts of data.
    probes : str
        Their size and the estimator; or how else bandwidths are known.
    plan : str
        How coordinated plans are shaped and carried out; empty where none was.
    others : tuple of str
        Where else it differs from the base scenario.
    versions : str
        What made the runs, where there are several.
    """

    engine: str
    scale: float
    probes: str
    plan: str
    others: tuple[str, ...] = ()
    versions: str = ""

    @property
    def is_papers(self) -> bool:
        """Whether coordinated is the paper's: in slots of the length fixed, at planned times."""
        return self.plan == _carried_out(_slots(PAPER_SLOT_S * self.scale), "planned")

    @property
    def is_judged(self) -> bool:
        """Whether claims are judged in it: the base scenario, by the paper's method or by ours."""
        return not self.others and (self.is_papers or self.plan == PIPELINED)

    @property
    def method(self) -> str:
        """Whose coordinated method it is."""
        if not self.plan:
            return ""
        whose = "the paper's" if self.is_papers else "ours"
        return f"{whose}: {self.plan}"

    @property
    def words(self) -> str:
        """Engine, size, what is known, and what else differs."""
        if not self.engine:
            return ""
        size = "full size" if self.scale == 1 else f"scale {self.scale:g}"
        engine = "ns-3" if self.engine == "ns3" else f"{self.engine} engine"
        versions = [self.versions] if self.versions else []
        return ", ".join([engine, size, self.probes, *self.others, *versions])

    @property
    def rank(self) -> tuple[Any, ...]:
        """Order: packets before fluid, large before small, 5 MB before less, the paper's first."""
        return (
            *(self.engine != "ns3", -self.scale, len(self.others), self.others),
            *(not self.probes.startswith("probes of 5 MB, mean"), self.probes),
            *(not self.is_papers, self.plan != PIPELINED, self.plan, self.versions),
        )


NOWHERE = World("", 1.0, "", "")


def plan_words(method: Mapping[str, Any], scale: float) -> str:
    """Return how a plan is shaped and carried out, from what [method] says.

    >>> plan_words({"scaled_slot_s": 100.0, "timing": "planned"}, 0.1)
    'slots of 10 s at planned times'
    >>> plan_words({}, 0.1), plan_words({"slot_s": 2.0}, 0.1)
    ('pipelined', 'slots of 2 s as soon as possible')
    """
    timing, shape = str(method.get("timing", "asap")), shape_words(method, scale)
    if shape != PIPELINED:
        return _carried_out(shape, timing)
    return PIPELINED if timing == "asap" else f"{PIPELINED}, planned times"


def shape_words(method: Mapping[str, Any], scale: float) -> str:
    """Return how a plan is shaped, which decides how many connections it opens.

    >>> shape_words({"scaled_slot_s": 100.0, "timing": "planned"}, 0.1), shape_words({}, 1.0)
    ('slots of 10 s', 'pipelined')
    """
    slot_s, scaled_s = method.get("slot_s"), method.get("scaled_slot_s")
    if slot_s is None and scaled_s is not None:
        slot_s = scaled_s * scale
    return PIPELINED if slot_s is None else _slots(float(slot_s))


def _slots(slot_s: float) -> str:
    return f"slots of {slot_s:g} s"


def _carried_out(shape: str, timing: str) -> str:
    return f"{shape} {'at planned times' if timing == 'planned' else 'as soon as possible'}"


def probes_words(scenario: Mapping[str, Any]) -> str:
    """Return what the planner knows, from what a scenario says.

    >>> probes_words({"scale": 0.1, "estimates": {"kind": "measured", "how": "ewma"}})
    'probes of 0.5 MB, ewma'
    >>> probes_words({"scale": 0.1, "probe_scale": 1, "estimates": {"how": "mean"}})
    'probes of 5 MB, mean'
    """
    estimates = scenario.get("estimates") or {}
    kind = estimates.get("kind", "measured")
    if kind != "measured":
        return f"{kind} bandwidths"
    scale = scenario.get("probe_scale", scenario.get("scale", 1.0))
    mb = float(estimates.get("probe_bytes", 5_000_000)) * float(scale) / 1e6
    return f"probes of {mb:g} MB, {estimates.get('how', 'ewma')}"


def differences(scenario: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where else a scenario differs from the base scenario, by place.

    >>> from paper.base import BASE
    >>> scenario = {**BASE, "transport": {**BASE["transport"], "variant": "Cubic"}}
    >>> differences(scenario)
    ('transport.variant = "Cubic"',)
    """
    found = []
    for table, base in BASE.items():
        part = scenario.get(table) or {}
        said = SAID.get(table, ())
        for key in dict.fromkeys((*base, *part)):
            if key in said or part.get(key) == base.get(key):
                continue
            value = json.dumps(part[key], sort_keys=True) if key in part else "left out"
            found.append(f"{table}.{key} = {value}")
    return tuple(found)
