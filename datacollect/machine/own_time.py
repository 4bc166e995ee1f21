"""Processor time of this program, beside what a profile of the machine says."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.machine.identity import machine_mark, machine_name
from datacollect.machine.parts import DISK, GIB, RECEIVES, TLS

if TYPE_CHECKING:
    from datacollect.machine.profile import HostProfile

# Of less, listing and planning take most.
LEAST_BYTES = 2**30


@dataclass(frozen=True)
class ProcessorUse:
    """Time of processors that a pull took, as far as its own process is charged.

    Attributes
    ----------
    own_s_per_gib : float
        Seconds for each 2**30 bytes that came.
    profile_s_per_gib : float
        What the profile of the machine says of the same.
    """

    own_s_per_gib: float
    profile_s_per_gib: float

    @property
    def text(self) -> str:
        """In words."""
        return (
            f"{self.own_s_per_gib:.2g} s of this program's own per GiB; the profile says "
            f"{self.profile_s_per_gib:.2g}"
        )


class OwnTime:
    """The time of processors that this process takes from now on.

    Parameters
    ----------
    profile : HostProfile or None
        Of this machine; None: then nothing is said.
    """

    def __init__(self, profile: HostProfile | None) -> None:
        self._says_s = None if profile is None else own_s_per_gib(profile)
        self._begun_s = time.process_time()

    def use(self, n_bytes: int) -> ProcessorUse | None:
        """Return what so many bytes have taken; None where they are too few to tell."""
        if self._says_s is None or n_bytes < LEAST_BYTES:
            return None
        took_s = time.process_time() - self._begun_s
        return ProcessorUse(took_s / n_bytes * GIB, self._says_s)


def own_s_per_gib(profile: HostProfile) -> float | None:
    """Return what a pull's process itself is charged for each 2**30 bytes; None: not known."""
    costs = [profile.parts.cost(work, RECEIVES) for work in (TLS, DISK)]
    own = [None if cost is None else cost.own_s_per_gib for cost in costs]
    known = [each for each in own if each is not None]
    return sum(known) if len(known) == len(own) else None


def is_of_another(profile: HostProfile) -> bool:
    """Return whether a profile was measured on another machine than this one."""
    mark = machine_mark()
    if profile.machine is not None and mark is not None:
        return profile.machine != mark
    return profile.name != machine_name()
