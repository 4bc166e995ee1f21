"""The rule of time: by when an entry stood in a log, whatever fewer than k witnesses say.

A time is the k-th smallest of the times at which distinct known keys have cosigned a checkpoint
that holds the entry. Where fewer than k of them lie, at least one honest witness had seen it by
then. The clock of the reader plays no part, nor does that of the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.formats.log.proofs import LogProof


def kth_smallest(times_s: Iterable[int], k: int) -> int | None:
    """Return the k-th smallest time, None where there are fewer.

    >>> kth_smallest([30, 0, 10, 20], 3), kth_smallest([0, 10], 3)
    (20, None)
    """
    times = sorted(times_s)
    return times[k - 1] if len(times) >= k else None


@dataclass(frozen=True)
class ProvedTime:
    """Time that a proof proves of an entry.

    Attributes
    ----------
    log : str
        Origin.
    time_s : int or None
        By when it stood there, whole seconds since 1970.
    why_not : str
        Where it proves nothing: why.
    """

    log: str
    time_s: int | None
    why_not: str = ""


def proved_time(proof: LogProof, entry: bytes, event: Event) -> ProvedTime:
    """Return by when an entry stood in a log of the event, by a proof."""
    found = checkpoint_time(proof.signed, event)
    if not proof.includes(entry) and event.log_of(found.log) is not None:
        return ProvedTime(found.log, None, "it is the proof of another entry, or of none")
    return found


def checkpoint_time(signed: SignedCheckpoint, event: Event) -> ProvedTime:
    """Return by when all that a checkpoint holds stood in a log of the event."""
    origin = signed.checkpoint.origin
    log = event.log_of(origin)
    if log is None:
        return ProvedTime(origin, None, "it is of a log that is none of the event's")
    return head_time(log, signed, event)


def time_in(log: VerifierKey, proof: LogProof, entry: bytes, event: Event) -> ProvedTime:
    """Return by when an entry stood in that log, by a proof; the event's witnesses count."""
    if not proof.includes(entry):
        return ProvedTime(log.name, None, "it is the proof of another entry, or of none")
    return head_time(log, proof.signed, event)


def verdict_time(proof: LogProof, verdict: bytes, event: Event) -> ProvedTime:
    """Return by when a verdict stood in the event's log of verdicts, or in one that has ended.

    What an ended log had proved by then stands; what it says later does not count.
    """
    for ended in event.ended_verdicts:
        if proof.signed.is_of(ended.log):
            found = time_in(ended.log, proof, verdict, event)
            if found.time_s is None or ended.ended_s is None or found.time_s <= ended.ended_s:
                return found
            why_not = "another log of verdicts had replaced this one by then"
            return ProvedTime(found.log, None, why_not)
    if event.verdicts is None:
        return ProvedTime(proof.signed.checkpoint.origin, None, "the event has no log of verdicts")
    return time_in(event.verdicts, proof, verdict, event)


def head_time(log: VerifierKey, signed: SignedCheckpoint, event: Event) -> ProvedTime:
    """Return by when all that a checkpoint holds stood in that log; the event's witnesses count."""
    origin = signed.checkpoint.origin
    if not signed.is_of(log):
        return ProvedTime(origin, None, "its checkpoint is not signed by the log's key")
    times = cosigned_times(signed.note, event.witness_keys)
    time_s = kth_smallest(times.values(), event.quorum)
    if time_s is None:
        said = counted(len(times), "witness has", "witnesses have")
        return ProvedTime(origin, None, f"{said} signed it, and {event.quorum} make a time")
    return ProvedTime(origin, time_s)
