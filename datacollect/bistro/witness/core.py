"""State machine of a witness (sans I/O): requests in, decisions out (c2sp.org/tlog-witness, 2025).

For each log it remembers the largest checkpoint that it has signed. It signs another one only where
that is proved to hold the first, and only where its own clock can be trusted: a witness that signed
one time too late could never sign again, for its times never go back. What a decision says is to be
kept is to be on the disk before the answer leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from datacollect.bistro.formats.log.checkpoints import cosign, witness_key
from datacollect.bistro.formats.log.tree import EMPTY_ROOT, is_consistent
from datacollect.bistro.formats.log.witnessing import SIZE_TYPE, AddCheckpoint
from datacollect.errors import ProblemError
from datacollect.net.buckets import bucket_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.bistro.formats.log.checkpoints import Checkpoint
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.now import Now
    from datacollect.net.buckets import Bucket
    from datacollect.net.keys import PrivateKey

# How far the clock may move against the monotonic one: a little at once, what clocks drift, and
# however long a witness runs, so much: it could be led astray by steps that are each small.
JUMP_S = 1.0
DRIFT = 1e-3
MOST_MOVED_S = 10.0

# How often a log is signed for: each costs a disk's write. Whoever asks again within so long, which
# anybody can with what is published, gets the same answer.
LOG_PER_S, LOG_AT_ONCE = 5.0, 50.0
AGAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """The largest checkpoint of a log that a witness has signed."""

    size: int
    root: bytes


NOTHING_SEEN = Seen(0, EMPTY_ROOT)


@dataclass(frozen=True, slots=True)
class Cosigned:
    """It signs. Keep all that stands here, wait until it is on the disk, then answer 200.

    Where it cannot be kept, the answer must not leave; the witness need not be told.

    Attributes
    ----------
    origin : str
        Which log.
    seen : Seen
        Its largest checkpoint from now on.
    time_s : int
        The latest time that the witness has signed, whole seconds since 1970.
    answer : bytes
    """

    origin: str
    seen: Seen
    time_s: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """It does not sign: answer so.

    Attributes
    ----------
    status : int
        HTTP's.
    answer : bytes
    content_type : str
    is_evidence : bool
        Whether the request shows, by the log's own signature, that the log has lied: keep it.
    """

    status: int
    answer: bytes
    content_type: str = "text/plain; charset=utf-8"
    is_evidence: bool = False


Decision: TypeAlias = Cosigned | Refused


class WitnessCore:
    """State machine of a witness: what it has signed, and what it may sign next.

    Parameters
    ----------
    name : str
    key : PrivateKey
    logs : iterable of VerifierKey
        Those that it knows; the name of a log's key is its origin.
    seen : mapping of str to Seen
        What it had kept, by origin.
    last_s : int
        The latest time that it had signed; 0: none.
    now : Now
        From here on the two clocks must agree.
    """

    def __init__(
        self,
        name: str,
        key: PrivateKey,
        logs: Iterable[VerifierKey],
        seen: Mapping[str, Seen],
        last_s: int,
        now: Now,
    ) -> None:
        self.key = witness_key(name, key.public)
        self._private = key
        self._logs = {log.name: log for log in logs}
        self._seen = dict(seen)
        self._last_s = last_s
        self._started = now
        self._answered: dict[str, tuple[str, Cosigned]] = {}
        self._buckets: dict[str, Bucket] = {}

    def add_checkpoint(self, body: bytes, now: Now) -> Decision:
        """Decide about a request; a decision to sign counts at once, whether it can be kept or not.

        Whoever asks again, after an answer that was lost, gets the same decision for a while, and
        is signed for again, at the time then, later.
        """
        try:
            asked = AddCheckpoint.parse(body)
        except ProblemError as error:
            return _refused(400, str(error))
        head = asked.signed.checkpoint
        log = self._logs.get(head.origin)
        if log is None:
            return _refused(404, "this log is not known here; add its key to `logs`")
        if not asked.signed.is_of(log):
            return _refused(403, "the checkpoint is not signed by the log's key")
        return self._judged(asked, head) or self._signed(asked, head, now)

    def _judged(self, asked: AddCheckpoint, head: Checkpoint) -> Refused | None:
        """Refuse what is not proved to hold all that was signed before."""
        if asked.old_size > head.size:
            return _refused(400, "the old size is larger than the checkpoint's")
        seen = self._seen.get(head.origin, NOTHING_SEEN)
        if asked.old_size != seen.size:
            return Refused(409, f"{seen.size}\n".encode(), SIZE_TYPE)
        if head.size == seen.size and head.root != seen.root:
            return Refused(409, f"{seen.size}\n".encode(), SIZE_TYPE, is_evidence=True)
        if not is_consistent(seen.size, seen.root, head.size, head.root, asked.proof):
            return _refused(422, "the proof of consistency does not hold")
        return None

    def _signed(self, asked: AddCheckpoint, head: Checkpoint, now: Now) -> Decision:
        fault = self.clock_fault(now)
        if fault:
            return _refused(503, fault)
        time_s = int(now.unix_s)
        text = asked.signed.note.text
        before = self._answered.get(head.origin)
        if before and before[0] == text and time_s < before[1].time_s + AGAIN_S:
            return before[1]
        bucket = bucket_of(self._buckets, head.origin, LOG_PER_S, LOG_AT_ONCE)
        if not bucket.take(now.monotonic_s):
            return _refused(429, "this log asks too often; try again later")
        line = cosign(text, time_s, self.key.name, self._private)
        self._seen[head.origin] = Seen(head.size, head.root)
        self._last_s = time_s
        decision = Cosigned(head.origin, self._seen[head.origin], time_s, line.line.encode())
        self._answered[head.origin] = text, decision
        return decision

    def clock_fault(self, now: Now) -> str:
        """Say why no time can be signed now; nothing where one can.

        The clock must not have moved against the monotonic one since the start: not back, and not
        ahead, from where no witness can return. Whoever sets it right starts the witness again.
        """
        if not now.is_synchronised:
            return "the clock here is not synchronised"
        if int(now.unix_s) < self._last_s:
            return f"the clock here is {self._last_s - now.unix_s:.0f} s behind what it has signed"
        passed_s = now.monotonic_s - self._started.monotonic_s
        moved_s = now.unix_s - self._started.unix_s - passed_s
        if abs(moved_s) > min(JUMP_S + DRIFT * passed_s, MOST_MOVED_S):
            return f"the clock here has jumped by {moved_s:.1f} s; it must be checked"
        return ""


def _refused(status: int, why: str) -> Refused:
    return Refused(status, f"{why}\n".encode())
