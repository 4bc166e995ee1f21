"""Time of all processors, whoever was charged for it: soft interrupts are nobody's own."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

PROC = Path("/proc")
STAT = PROC / "stat"
# For how long it is looked what others do, at a time.
LOOK_S = 0.25
# What /proc/stat counts in.
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

# Columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What a guest takes
# is in user and nice; what the host of this virtual machine took away is no use to us either.
_IDLE = (3, 4)
_STOLEN = 7
_COLUMNS = 8
# Of a line of /proc/PID/stat after the program's name: its flags, with that of the kernel's own
# threads, and its times, with those of the programs that it has waited for (proc(5)).
_FLAGS, _TIMES = 6, slice(11, 15)
_OF_KERNEL = 0x00200000


def busy_ticks(text: str) -> dict[int, int]:
    r"""Return how long each processor was busy, in ticks of the kernel, by what /proc/stat says.

    >>> busy_ticks("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 50 4 5 6 0 0\nintr 1\n")
    {0: 21}
    """
    return {
        number: sum(columns) - sum(columns[i] for i in _IDLE if i < len(columns))
        for number, columns in _columns_of(text).items()
    }


def _columns_of(text: str) -> dict[int, list[int]]:
    return {
        int(name[3:]): [int(number) for number in numbers[:_COLUMNS]]
        for name, *numbers in map(str.split, text.splitlines())
        if name.startswith("cpu") and name != "cpu"
    }


def others_ticks(proc: Path = PROC) -> int:
    """Return how long all other programs have had processors so far, in ticks of the kernel.

    A program counts with those that it has waited for, so nobody is missed who ends. Whom this
    program has started, and waited for, counts as this one; the kernel's own threads do not count:
    they also write what this program has left to them.

    Parameters
    ----------
    proc : Path, optional
    """
    ticks = 0
    for of in proc.iterdir():
        if of.name.isdigit() and int(of.name) != os.getpid():
            with suppress(OSError):  # it has ended, and whoever waits for it has its time
                text = (of / "stat").read_text(encoding="utf-8", errors="replace")
                words = text.rpartition(")")[2].split()
                if not int(words[_FLAGS]) & _OF_KERNEL:
                    ticks += sum(map(int, words[_TIMES]))
    return ticks


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

    def watched(self, others: Callable[[], int] = others_ticks) -> Callable[[], float]:
        """Begin to watch others; return what tells the part of all processors that they had since.

        That is what other programs were charged for, `others_ticks`, and what the host of this
        virtual machine took away. Unlike `others`, it may be asked while this program works, and
        misses no burst; it does not see programs of other containers.

        Parameters
        ----------
        others : callable, optional

        Raises
        ------
        ProblemError
            The system does not tell.
        """

        def so_far() -> tuple[float, int, int]:
            try:
                columns = _columns_of(self.stat.read_text(encoding="ascii")).values()
                stolen = sum(sum(each[_STOLEN:]) for each in columns)
                return self.clock_s(), others() + stolen, len(columns)
            except (OSError, ValueError, LookupError) as error:
                raise _untold(self.stat, error) from None

        begun_s, before, _ = so_far()

        def since() -> float:
            now_s, after, n_processors = so_far()
            there_was_s = max(now_s - begun_s, TICK_S) * max(n_processors, 1)
            return min(max((after - before) * TICK_S / there_was_s, 0.0), 1.0)

        return since


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
