"""Tests of a pair with each window and each number of connections, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from datacollect.measurement.sample_store import DONE, settings_of
from datacollect.measuring.operator.pair_tests import measure_pair
from datacollect.measuring.operator.tcp_tests import TcpSettings
from datacollect.measuring.probes.window_scan import SCAN, Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from datacollect.measuring.plan.budget import Cost
    from datacollect.net.agent_entries import AgentEntry
    from datacollect.net.keys import PrivateKey


@dataclass(frozen=True)
class ScanSettings:
    """Settings of a scan.

    Attributes
    ----------
    windows_bytes : tuple of int or None
        None: as kernels choose; by default up to what they allow where nobody has raised it.
    streams : tuple of int
    seconds : float
        Each test.
    most_bytes : int
        Of each test.
    """

    windows_bytes: tuple[int | None, ...] = (None, 16_000, 64_000, 200_000)
    streams: tuple[int, ...] = (1, 2, 4, 8, 16)
    seconds: float = 10.0
    most_bytes: int = 100_000_000

    tool: ClassVar[str] = SCAN

    @property
    def tests(self) -> list[TcpSettings]:
        """The tests, the fewest connections first.

        Others on the wire take long to come back after many of ours: a test after those finds the
        wire empty.
        """
        return [
            TcpSettings(n, self.seconds, self.most_bytes, window_bytes)
            for n in sorted(self.streams)
            for window_bytes in self.windows_bytes
        ]

    @property
    def cost(self) -> Cost:
        """Return what it takes at most."""
        tests = self.tests
        return tests[0].cost.times(len(tests))


def measure_scan(
    sender: AgentEntry,
    receiver: AgentEntry,
    key: PrivateKey,
    settings: ScanSettings,
    patience_s: float = 600.0,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Measure a pair of hosts, and yield a row for each test.

    Parameters
    ----------
    sender, receiver, key, patience_s, report
        As for `datacollect.measuring.operator.pair_tests.measure_pair`.
    settings : ScanSettings
    """
    for test in settings.tests:
        row = measure_pair(sender, receiver, key, test, patience_s, report)
        yield row | {"tool": SCAN, "streams": test.streams}


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Return what a row of a scan says; of a test that failed that nothing came."""
    rate = row.get("bandwidth_bytes_per_s") if row["ended"] == DONE else None
    return Cell(row["streams"], settings_of(row["settings"]).get("window_bytes"), rate or 0.0)
