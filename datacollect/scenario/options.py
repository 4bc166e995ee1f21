"""Values of [method], [estimates] and [run] with names and types, read once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from datacollect.methods.execution import ExecutionOptions
from datacollect.scenario.fields import UNKNOWN
from datacollect.simulation.control import DELAYED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.files.choices import Control, Engine, Estimator
    from datacollect.scenario.scenario import Scenario

# Keys of [method] that say how a plan is carried out; the others are options of methods.
EXECUTION = [
    each.name for each in fields(ExecutionOptions) if each.name not in ("options", "is_known")
]


def execution_options(scenario: Scenario) -> ExecutionOptions:
    """Read a scenario's [method], and whether its [estimates] say anything.

    Examples
    --------
    >>> from datacollect.scenario.scenario import Scenario
    >>> execution_options(Scenario.from_dict({"problem": "upload.toml"})).timing
    'asap'
    """
    section = dict(scenario.section("method"))
    is_known = not scenario.has_topology or scenario.section("estimates")["kind"] != UNKNOWN
    scaled_slot_s = section.pop("scaled_slot_s")
    if scaled_slot_s is not None:
        section["slot_s"] = scaled_slot_s * float(scenario.sections["scale"])
    execution = {key: section.pop(key) for key in EXECUTION}
    return ExecutionOptions(options=section, is_known=is_known, **execution)


@dataclass(frozen=True)
class Perturbation:
    """One of ``estimates.perturbations``: a wire, and what to multiply estimates over it by."""

    wire: str
    factor: float


@dataclass(frozen=True)
class SharedWire:
    """One of ``estimates.shared``: a wire, and what is known of it."""

    wire: str
    bandwidth_bytes_per_s: float | None
    connections: int | None


@dataclass(frozen=True)
class EstimateOptions:
    """Values of [estimates], which only a scenario with a topology has.

    `datacollect.scenario.fields` says what each key means.
    """

    kind: str
    file: str | None
    engine: Engine | None
    probe_bytes: int
    repeats: int
    give_up_s: float
    how: Estimator
    a: float
    quantile: float
    know_access: bool
    perturbations: tuple[Perturbation, ...]
    shared: tuple[SharedWire, ...]

    @classmethod
    def of(cls, scenario: Scenario) -> EstimateOptions:
        """Read a scenario's [estimates]."""
        section = _without_seed(scenario.section("estimates"))
        return cls(
            **{
                **section,
                "perturbations": tuple(Perturbation(**p) for p in section["perturbations"]),
                "shared": tuple(SharedWire(**wire) for wire in section["shared"] or ()),
            }
        )


@dataclass(frozen=True)
class RunOptions:
    """Values of [run]; `datacollect.scenario.fields` says what each key means."""

    time_limit_s: float
    relay_buffer_bytes: int | None
    stall_s: float
    warm_up_s: float
    udp_on_off: bool
    control: Control

    @classmethod
    def of(cls, scenario: Scenario) -> RunOptions:
        """Read a scenario's [run].

        Examples
        --------
        >>> from datacollect.scenario.scenario import Scenario
        >>> RunOptions.of(Scenario.from_dict({"problem": "upload.toml"})).stall_s
        30.0
        """
        section = _without_seed(scenario.section("run"))
        return cls(**{**section, "control": section["control"] or DELAYED})


def _without_seed(section: Mapping[str, Any]) -> dict[str, Any]:
    """All but the seed, which is no option: `Scenario.number` knows which section's counts."""
    return {key: value for key, value in section.items() if key != "seed"}
