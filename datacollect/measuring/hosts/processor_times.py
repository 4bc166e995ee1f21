"""Time of all processors, whoever was charged for it: soft interrupts are nobody's own."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

STAT = Path("/proc/stat")
# For how long it is looked what others do, at a time.
LOOK_S = 0.25
# What /proc/stat counts in.
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# Columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What a guest takes
# is in user and nice; what the host of this virtual machine took away is no use to us either.
_IDLE = (3, 4)
_COLUMNS = 8


def busy_ticks(text: str) -> dict[int, int]:
    r"""Return how long each processor was busy, in ticks of the kernel, by what /proc/stat says.

    >>> busy_ticks("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 50 4 5 6 0 0\nintr 1\n")
    {0: 21}
    """
    found = {}
    for line in text.splitlines():
        name, *numbers = line.split()
        if name.startswith("cpu") and name != "cpu":
            columns = [int(number) for number in numbers[:_COLUMNS]]
            found[int(name[3:])] = sum(columns) - sum(columns[i] for i in _IDLE if i < len(columns))
    return found


@dataclass(frozen=True)
class ProcessorTimes:
    """Times for which processors have been busy.

    Parameters
    ----------
    numbers : collection of int, optional
        The processors that count; by default those that this process may use.
    stat : Path, optional
    clock_s : callable, optional
    sleep : callable, optional
    """

    numbers: Collection[int] | None = None
    stat: Path = STAT
    clock_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def busy_s(self) -> Mapping[int, float]:
        """Return the seconds for which each processor was busy so far.

        Raises
        ------
        ProblemError
            The system does not tell, as some containers do not.
        """
        try:
            ticks = busy_ticks(self.stat.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise _untold(self.stat, error) from None
        numbers = allowed_processors() if self.numbers is None else self.numbers
        found = {number: ticks[number] for number in numbers if number in ticks}
        if not found:
            raise _untold(self.stat, None)
        return {number: n_ticks * TICK_S for number, n_ticks in found.items()}

    def others(self, look_s: float = LOOK_S) -> float:
        """Look for a while, doing nothing; return the part of all processors that was busy."""
        before, begun_s = self.busy_s(), self.clock_s()
        self.sleep(look_s)
        after, took_s = self.busy_s(), self.clock_s() - begun_s
        busy_s = sum(after[number] - before[number] for number in after)
        return min(max(busy_s / (took_s * len(after)), 0.0), 1.0)


def allowed_processors() -> list[int]:
    """Return the numbers of the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _untold(stat: Path, error: Exception | None) -> ProblemError:
    why = getattr(error, "strerror", None) or "it lists none of this program's processors"
    return ProblemError(
        f"{stat} does not say how busy processors are: {why}; calibrate outside of the container"
    )
