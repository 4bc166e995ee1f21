"""What [method], [estimates] and [run] say, as values with names and types, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.control.connections import Recovery
from datacollect.errors import ProblemError
from datacollect.methods.choice import METHODS, BestPathOptions, CoordinatedOptions, DirectOptions
from datacollect.methods.names import EARLY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.methods.choice import MethodOptions
    from datacollect.scenario.scenario import Scenario


@dataclass(frozen=True)
class ExecutionOptions:
    """What [method] says: how a collection is planned, and how the plan is carried out.

    `datacollect.scenario.fields` says what each key means.
    """

    name: str
    slot_s: float | None
    chunk_s: float | None
    finish: str | None
    solver: str
    time_limit_s: float | None
    derate: float | None
    timing: str
    lanes: int
    shared_connections: bool
    open_ahead_s: float
    pace: bool
    replan_s: float | None
    window_bytes: int | None
    streams: int
    total_streams: int | None
    streams_as: str | None
    streams_shared: str
    at_a_time: int | None
    order: tuple[str, ...] | None
    stall_patience_s: float
    retry_s: float
    most_retries: int

    @classmethod
    def of(cls, scenario: Scenario) -> ExecutionOptions:
        """Read a scenario's [method].

        Examples
        --------
        >>> from datacollect.scenario.scenario import Scenario
        >>> ExecutionOptions.of(Scenario.from_dict({"problem": "upload.toml"})).timing
        'asap'
        """
        section = dict(scenario.section("method"))
        order, scaled_slot_s = section["order"], section.pop("scaled_slot_s")
        if scaled_slot_s is not None:
            section["slot_s"] = scaled_slot_s * float(scenario.sections["scale"])
        return cls(**{**section, "order": None if order is None else tuple(order)})

    def planning(self, name: str | None = None) -> MethodOptions:
        """Return the options of the method, or of another method with the same shape.

        Examples
        --------
        >>> from datacollect.scenario.scenario import Scenario
        >>> how = ExecutionOptions.of(Scenario.from_dict({"problem": "upload.toml"}))
        >>> how.planning("best-path")
        BestPathOptions(slot_s=None, chunk_s=None, hysteresis=1.05, solver='auto', derate=1.0)
        """
        solver, derate = self.solver, self.derate or 1.0
        match name or self.name:
            case "direct":
                return DirectOptions(self.order, self.at_a_time, solver=solver, derate=derate)
            case "best-path":
                return BestPathOptions(self.slot_s, self.chunk_s, solver=solver, derate=derate)
            case "coordinated":
                return CoordinatedOptions(
                    self.slot_s,
                    self.chunk_s,
                    solver=solver,
                    time_limit_s=self.time_limit_s,
                    derate=derate,
                    finish=self.finish or EARLY,
                )
        raise ProblemError(f"method.name must be one of {', '.join(METHODS)}, got {name!r}")

    @property
    def recovery(self) -> Recovery:
        """What to do about connections that are stuck or gone."""
        return Recovery(
            stall_patience_s=self.stall_patience_s,
            retry_s=self.retry_s,
            most_retries=self.most_retries,
        )


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
    """What [estimates] says, which only a scenario with a topology has.

    `datacollect.scenario.fields` says what each key means.
    """

    kind: str
    file: str | None
    engine: str | None
    probe_bytes: int
    repeats: int
    give_up_s: float
    how: str
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
    """What [run] says; `datacollect.scenario.fields` says what each key means."""

    time_limit_s: float
    relay_buffer_bytes: int | None
    stall_s: float
    warm_up_s: float
    udp_on_off: bool

    @classmethod
    def of(cls, scenario: Scenario) -> RunOptions:
        """Read a scenario's [run].

        Examples
        --------
        >>> from datacollect.scenario.scenario import Scenario
        >>> RunOptions.of(Scenario.from_dict({"problem": "upload.toml"})).stall_s
        30.0
        """
        return cls(**_without_seed(scenario.section("run")))


def _without_seed(section: Mapping[str, Any]) -> dict[str, Any]:
    """All but the seed, which is no option: `Scenario.number` knows which section's counts."""
    return {key: value for key, value in section.items() if key != "seed"}
