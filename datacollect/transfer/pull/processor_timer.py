"""What a pull takes of this host's processors, beside what the profile of the host says."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datacollect.files.kinds import join
from datacollect.machine.identity import machine_mark, machine_name
from datacollect.machine.parts import DISK, GIB, RECEIVES, TLS
from datacollect.problem.profile_limits import profile_at
from datacollect.transfer.pull.answer import ProcessorUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.machine.profile import HostProfile
    from datacollect.transfer.pull.answer import Pulled
    from datacollect.transfer.pull.config.file import Collection

# Of less, listing and planning take most.
LEAST_BYTES = 2**28


@dataclass(frozen=True)
class ProcessorTimer:
    """The time of processors that this process has taken since the pull began.

    Attributes
    ----------
    profile : HostProfile or None
        Of this host; None where the collection names none: then nothing is said.
    begun_s : float
    """

    profile: HostProfile | None
    begun_s: float

    @classmethod
    def of(cls, collection: Collection, tell: Callable[[str], None]) -> ProcessorTimer:
        """Begin; say so once where the profile is that of another machine."""
        name = collection.destination
        said = collection.network["hosts"].get(name, {}).get("profile")
        profile = None
        if said is not None:
            place = join(join("hosts", name), "profile")
            profile = profile_at(said, collection.folder, place)
            if is_of_another(profile):
                tell(
                    f"note: {place} {said} was measured on {profile.name}, and this is "
                    f"{machine_name()}: calibrate here, or the plan counts on another machine"
                )
        return cls(profile, time.process_time())

    def beside(self, answer: Pulled) -> Pulled:
        """Return the answer with what it took, where enough has come to tell."""
        n_bytes = sum(use.n_bytes for use in answer.routes)
        says_s = None if self.profile is None else own_s_per_gib(self.profile)
        if says_s is None or n_bytes < LEAST_BYTES:
            return answer
        took_s = time.process_time() - self.begun_s
        return replace(answer, processor=ProcessorUse(took_s / n_bytes * GIB, says_s))


def own_s_per_gib(profile: HostProfile) -> float | None:
    """Return what a pull's process itself is charged for each 2**30 bytes; None: not known."""
    costs = [profile.parts.cost(work, RECEIVES) for work in (TLS, DISK)]
    own = [None if cost is None else cost.own_s_per_gib for cost in costs]
    known = [each for each in own if each is not None]
    return sum(known) if len(known) == len(own) else None


def is_of_another(profile: HostProfile) -> bool:
    """Whether a profile was measured on another machine than this one."""
    mark = machine_mark()
    if profile.machine is not None and mark is not None:
        return profile.machine != mark
    return profile.name != machine_name()
