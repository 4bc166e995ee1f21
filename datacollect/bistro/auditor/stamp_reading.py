"""Holds the times of an event's entries against stamps of outside authorities."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.bistro.formats.receipt.counted_time import kth_smallest
from datacollect.bistro.formats.receipt.evidence import two_heads
from datacollect.bistro.formats.receipt.stamps import MOST_STAMPS_BYTES, read_stamps
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes
from datacollect.net.http_asking import Asker

if TYPE_CHECKING:
    from datacollect.bistro.auditor.log_reading import WholeLog
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.receipt.evidence import Lie
    from datacollect.bistro.formats.receipt.stamps import Stamp

# Logs are stamped each minute; an authority that is away for a while is no lie of anybody.
MOST_AFTER_S = 600


@dataclass(frozen=True)
class Stamped:
    """Entries whose times stamps confirm, and others.

    Attributes
    ----------
    n_stamps : int
        On which two authorities agree.
    n_borne_out, n_far, n_unstamped : int
        Entries: that were there within ten minutes of the time that witnesses say; seen by the
        authorities only later; never seen by them.
    most_after_s : int or None
        How much later than witnesses say at most, of those that are borne out.
    """

    n_stamps: int
    n_borne_out: int
    n_far: int
    n_unstamped: int
    most_after_s: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "stamps": self.n_stamps,
            "borne_out": self.n_borne_out,
            "far": self.n_far,
            "unstamped": self.n_unstamped,
            "most_after_s": self.most_after_s,
        }


def stamps_at(place: str) -> list[Stamp]:
    """Return the stamps of a file, or at a URL.

    Raises
    ------
    ProblemError, TransferError
        They cannot be read.
    """
    if not place.startswith(("https://", "http://")):
        return read_stamps(read_bytes(place), document_name(place))
    with Asker(place) as asker:
        answer = asker.get("", MOST_STAMPS_BYTES)
    if answer.status != 200:
        raise ProblemError(
            f"--stamps: {place} must be a file of stamps, but the server answers {answer.status}; "
            "give the address of an event's page, followed by /stamps.jsonl"
        )
    return read_stamps(answer.body, place)


def held_against(
    stamps: list[Stamp], wholes: dict[str, WholeLog], event: Event
) -> tuple[Stamped, list[Lie]]:
    """Return what stamps bear out of the logs' times, and who has signed another log than it shows.

    Parameters
    ----------
    stamps : list of Stamp
    wholes : dict of str to WholeLog
        The logs that were read, by their origin.
    event : Event
    """
    lies: list[Lie] = []
    n_stamps = n_borne_out = n_far = n_unstamped = 0
    after_s: list[int] = []
    for whole in wholes.values():
        own = [each for each in stamps if each.signed.is_of(whole.log.key)]
        lies += two_heads(whole.log, [each.signed for each in own], event)
        timed = [(each.signed.checkpoint.size, each.time_s(event)) for each in own]
        counting = sorted((size, time_s) for size, time_s in timed if time_s is not None)
        n_stamps += len(counting)
        sizes, times_s = _earliest(counting)
        begin = 0
        for end, time_s in _times(whole, event):
            at = bisect_left(sizes, end)
            if at == len(sizes):
                n_unstamped += end - begin
            elif times_s[at] - time_s > MOST_AFTER_S:
                n_far += end - begin
            else:
                n_borne_out += end - begin
                after_s.append(max(times_s[at] - time_s, 0))
            begin = end
    found = Stamped(n_stamps, n_borne_out, n_far, n_unstamped, max(after_s, default=None))
    return found, lies


def _times(whole: WholeLog, event: Event) -> list[tuple[int, int]]:
    """Return sizes of the log, growing, and by when witnesses say that it had each."""
    found = []
    for each in whole.checkpoints:
        times = cosigned_times(each.note, event.witness_keys)
        time_s = kth_smallest(times.values(), event.quorum)
        if time_s is not None:
            found.append((each.checkpoint.size, time_s))
    sizes, times_s = _earliest(sorted(found))
    return [*zip(sizes, times_s, strict=True)]


def _earliest(rows: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return sizes, growing, and for each the earliest time of one that is as large, or larger."""
    sizes: list[int] = []
    times_s: list[int] = []
    for size, time_s in reversed(rows):
        earliest = min(time_s, times_s[-1]) if times_s else time_s
        if sizes and sizes[-1] == size:
            times_s[-1] = earliest
        else:
            sizes.append(size)
            times_s.append(earliest)
    return sizes[::-1], times_s[::-1]
