"""Configuration of tests in an agent's file, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.transfer.agent.config.file import AgentConfig

# What the host's interfaces have carried: it tells what others do there, too, and is no test.
COUNTERS = "counters"


@dataclass(frozen=True)
class MeasureConfig:
    """Tests that an agent takes part in; see ``MEASURE`` of `datacollect.measuring.agent.table`.

    Attributes
    ----------
    operators : frozenset of str
        Public keys.
    tools : tuple of str
    bytes_per_hour : int
    rate_bytes_per_s : float or None
    hours : tuple of int and int, or None
        From the first to the second, by the host's clock.
    udp_port : int or None
        Where packet pairs arrive; None or 0: nowhere.
    used : Path
        Where it is counted what tests have taken.
    lock : Path
        Held by the kernel while a test runs; agents with one ``state`` share it.
    """

    operators: frozenset[str]
    tools: tuple[str, ...]
    bytes_per_hour: int
    rate_bytes_per_s: float | None
    hours: tuple[int, int] | None
    udp_port: int | None
    used: Path
    lock: Path

    @property
    def served(self) -> None:
        """Nothing is served for it."""

    @property
    def own(self) -> tuple[Path, ...]:
        """Return what it keeps."""
        return (self.used, self.lock)


def measure_of(config: AgentConfig) -> MeasureConfig | None:
    """Return what an agent's file says of tests; None where it takes part in none."""
    found = config.tables.get("measure")
    assert found is None or isinstance(found, MeasureConfig)
    return found
