"""Bistros: real cores and stores on a simulated clock and network; and those that lie.

A loss of power leaves of what waits for the disk all or nothing: a group is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

import numpy as np
from bistro.simulation.world import EVENT, World
from instances.custody import commitment_of
from instances.events import key_of, owners_signature

from datacollect.bistro.formats.custody.batches import (
    FIRST,
    ROW,
    Batch,
    read_batch,
    row_of,
    sign_batch,
)
from datacollect.bistro.formats.custody.bistro_receipt import BistroReceipt
from datacollect.bistro.formats.custody.segments import number_of
from datacollect.bistro.formats.custody.verdicts import read_covered
from datacollect.bistro.formats.event.statements import push_statement
from datacollect.bistro.formats.log.entry import Commitment
from datacollect.bistro.formats.receipt.upload_wish import Admission
from datacollect.bistro.person.pushing import Begin, End, Look, Step
from datacollect.bistro.upload_server import messages, requests
from datacollect.bistro.upload_server.core import Accepting
from datacollect.bistro.upload_server.messages import Append, Cut, Drop, Refuse, Tell, Upload
from datacollect.bistro.upload_server.store import UploadStore
from datacollect.errors import RefusedError
from datacollect.files.held_folder import Held
from datacollect.net.http_asking import Answer

Reply = Callable[[Answer], None]
TICK_S = 1.0
DISK_BYTES = 2**40
BLOCK_BYTES = 120
EXPIRE_S = 20.0


class Bistro:
    """An honest bistro; it loses its power now and then.

    Parameters
    ----------
    world : World
    number : int
        In the event.
    folder : Path
        Its own is made below.
    victims : set of bytes
        Entries that a liar treats in another way.
    on_drop : function
        Told which entries' data go.
    """

    is_honest = True

    def __init__(
        self,
        world: World,
        number: int,
        folder: Path,
        victims: set[bytes],
        on_drop: Callable[[Bistro, set[bytes]], None],
    ) -> None:
        self.world, self.victims, self._on_drop = world, victims, on_drop
        self.listed = EVENT.bistros[number]
        self.name, self.key = self.listed.name, key_of(self.listed.name)
        self.folder = folder / self.name
        self.most_bytes = world.random.choice(world.rooms)
        self.core: Accepting | None = None
        self.n_crashes = self._n_requests = 0
        self._start()
        self._tick()
        if world.has_faults:
            for _ in range(world.random.choice((0, 0, 1, 2, 3))):
                world.after(world.random.uniform(0, world.healed_s), self.crash)

    def hear(self, commitment: Commitment) -> None:
        """Take note of what somebody's receipt shows."""

    # Power and disk -----------------------------------------------------------------------------

    def _start(self) -> None:
        self.store = UploadStore(Held(self.folder), EVENT, self.listed, self.key)
        self.admission = Admission(EVENT, self.listed.key, self.most_bytes)
        kept = self.store.kept(self._now_s)
        self.core = Accepting(EVENT, self.name, self.most_bytes, EXPIRE_S, kept, self.store)
        self._bytes: dict[str, bytearray] = {}
        self._group: list | None = None
        self._replies: list[Callable[[], None]] = []

    def crash(self) -> None:
        """Lose the power."""
        if self.core is None:
            return
        self.n_crashes += 1
        if self._group and self.world.random.random() < 0.5:
            # It has come to the disk, and nobody was answered.
            self.store.commit(self._group)
        self.end()
        self.world.after(self.world.random.uniform(0.1, 4.0), self._start)

    def end(self) -> None:
        """Let go of the folder."""
        if self.core is not None:
            self.store.close()
            self.core = None

    @property
    def _now_s(self) -> float:
        return self.world.now().unix_s

    def _later(self, delay_s: float, do: Callable[[], None]) -> None:
        """Do something unless the power is lost before."""
        core = self.core
        self.world.after(delay_s, lambda: do() if self.core is core else None)

    def _tick(self) -> None:
        if self.core is not None:
            self._told(messages.Ticked(self._now_s, DISK_BYTES))
        self.world.after(TICK_S, self._tick)

    def _told(self, event: messages.Event, data: bytes = b"") -> Refuse | Tell | None:
        assert self.core is not None
        answer: Refuse | Tell | None = None
        for action in self.core.handle(event):
            if isinstance(action, Refuse | Tell):
                answer = action
            elif not isinstance(action, Cut):
                if isinstance(action, Drop):
                    self._on_drop(self, self._entries_in(action.numbers))
                self.store.add(action, data if isinstance(action, Append) else b"")
                self._commit_soon()
        return answer

    def _entries_in(self, segments: tuple[int, ...]) -> set[bytes]:
        """Return what lies there, and was not carried on to another segment."""
        assert self.core is not None
        found = set()
        for number in segments:
            rows = self.store._read(
                "SELECT entry, upload FROM pieces WHERE segment = ? AND upload IS NOT NULL",
                (number,),
            )
            for entry, upload in rows:
                unfinished = self.core._uploads.get(upload)
                if unfinished is None or number in unfinished.segments:
                    found.add(entry)
        return found

    def _commit_soon(self) -> None:
        if self._group is None:
            self._group = []
            self._later(self.world.random.uniform(0.001, 0.02), self._begin_commit)

    def _begin_commit(self) -> None:
        self._group, replies = self.store.take(), self._replies
        self._replies = []
        self._later(self.world.random.uniform(0.001, 0.02), lambda: self._end_commit(replies))

    def _end_commit(self, replies: list[Callable[[], None]]) -> None:
        assert self._group is not None
        assert self.core is not None
        whole = self.store.commit(self._group)
        self._group = None
        if whole:
            self.core.handle(messages.Settled(whole))
        for reply in replies:
            reply()
        if self._replies:
            self._commit_soon()

    def _once_kept(self, reply: Callable[[], None]) -> None:
        self._replies.append(reply)
        self._commit_soon()

    # Pushes -------------------------------------------------------------------------------------

    def tus(self, step: Step, metadata: str, size: int, data: bytes, reply: Reply) -> None:
        """Answer a step of a push; `data`: all that comes with it, of giving up its signature."""
        if self.core is None:
            return
        self._n_requests += 1
        request = self._n_requests
        try:
            if isinstance(step, Begin):
                self._create(request, metadata, size, data, reply)
            elif isinstance(step, Look):
                answer = self._told(messages.LookAsked(request, _id(step.path)))
                self._once_kept(lambda: reply(self._answer(200, answer)))
            elif isinstance(step, End):
                answer = self._told(messages.EndAsked(request, _id(step.path), data))
                self._once_kept(lambda: reply(self._answer(204, answer)))
            else:
                self._write(request, _id(step.path), step.offset, data, 204, reply)
        except RefusedError as error:
            reply(Answer(error.status, str(error).encode()))

    def _create(self, request: int, metadata: str, size: int, data: bytes, reply: Reply) -> None:
        wish = self.admission.wish_of(metadata, size, self._now_s)
        upload_id = self.world.random.randbytes(8).hex()
        answer = self._told(messages.CreateAsked(request, self._now_s, wish, upload_id, DISK_BYTES))
        if isinstance(answer, Tell) and data and not answer.upload.offset:
            self._write(request, answer.upload.id, 0, data, 201, reply)
        else:
            self._once_kept(lambda: reply(self._answer(201, answer)))

    def _write(
        self, request: int, upload: str, offset: int, data: bytes, status: int, reply: Reply
    ) -> None:
        refused = self._told(messages.WriteAsked(request, upload, offset, len(data)))
        if refused is not None:
            self._once_kept(lambda: reply(self._answer(status, refused)))
            return
        self._held(upload, offset)
        self._receive(request, upload, data, status, reply)

    def _held(self, upload: str, offset: int) -> None:
        """Know again the bytes that have come before."""
        if upload not in self._bytes or len(self._bytes[upload]) != offset:
            self._bytes[upload] = bytearray(b"".join(self.store.bytes_of(upload)))
        assert len(self._bytes[upload]) == offset

    def _receive(self, request: int, upload: str, data: bytes, status: int, reply: Reply) -> None:
        """Take the next block; now and then the connection ends before."""
        block, rest = data[:BLOCK_BYTES], data[BLOCK_BYTES:]
        is_cut = (
            self.world.at_s < self.world.healed_s
            and self.world.random.random() < self.world.loss / 4
        )
        if block and not is_cut:
            refused = self._told(messages.Arrived(request, self._now_s, len(block)), block)
            if refused is not None:
                reply(self._answer(status, refused))
                return
            self._bytes[upload] += block
            delay_s = self.world.random.choice((0.0, 0.0, 0.0, 0.05))
            self._later(delay_s, lambda: self._receive(request, upload, rest, status, reply))
            return
        digest = sha256(self._bytes[upload]).digest()
        answer = self._told(messages.WriteEnded(request, self._now_s, digest))
        if not is_cut:
            self._once_kept(lambda: reply(self._answer(status, answer)))

    def _answer(self, status: int, answer: Refuse | Tell | None) -> Answer:
        assert answer is not None
        if isinstance(answer, Refuse):
            return Answer(answer.status, answer.text.encode())
        upload = answer.upload
        headers = {"upload-offset": str(upload.offset), "location": f"/tus/{upload.id}"}
        if upload.is_whole:
            headers["datacollect-receipt"] = self.receipt(upload)
        return Answer(status, b"", None, headers)

    def receipt(self, upload: Upload) -> str:
        """Return the token that says what is held."""
        assert upload.sha256 is not None
        assert upload.batch is not None
        assert upload.time_s is not None
        wish = upload.wish
        return BistroReceipt(
            *(EVENT.id, self.name, wish.commitment.entry, wish.size, upload.sha256),
            *(wish.sealed_anew, upload.batch, upload.time_s),
        ).signed(self.key)

    # The destination and auditors ---------------------------------------------------------------

    def covered(self, note: bytes) -> None:
        """Take the destination's word that data may go."""
        if self.core is not None:
            self._told(requests.CoveredSaid(0, self._now_s, read_covered(note, EVENT)))

    def fetch(
        self, wanted: Sequence[str], here: Path, reply: Callable[[dict[str, bytes]], None]
    ) -> None:
        """Give files that fit patterns, and are not there yet."""
        if self.core is not None:
            reply(
                {
                    path: data
                    for pattern in wanted
                    for path, data in self.served(pattern).items()
                    if not (here / path).exists()
                }
            )

    def tell_facts(self, reply: Callable[[dict[str, float]], None]) -> None:
        """Say how loaded it is."""
        if self.core is not None:
            free_bytes = self.core.free_bytes(DISK_BYTES)
            stored_bytes = self.core.stored_bytes
            reply({"stored_bytes": stored_bytes, "free_bytes": free_bytes, "wait_s": 0.0})

    def served(self, pattern: str) -> dict[str, bytes]:
        """Return what is fetched from it, by path."""
        root = self.folder / "served"
        return {
            f"{path.parent.name}/{path.name}": path.read_bytes()
            for path in sorted(root.glob(pattern))
        }

    def shown(self) -> list[bytes]:
        """Return the batches that an auditor gets of it."""
        return [*self.served("batches/*.batch").values()]


def _id(path: str) -> str:
    return path.rpartition("/")[2]


def _number(path: str) -> int:
    number = number_of(PurePosixPath(path))
    assert number is not None
    return number


def _with(rows: np.ndarray, row: tuple) -> np.ndarray:
    found = np.zeros(len(rows) + 1, ROW)
    found[:-1], found[-1] = rows, row
    return found


class LyingBistro(Bistro):
    """`has_lied` once what it has signed, and auditors see, does not fit together."""

    is_honest = False
    has_lied = False


class Losing(LyingBistro):
    """Loses what it has acknowledged."""

    def served(self, pattern: str) -> dict[str, bytes]:
        return {
            path: data
            for path, data in super().served(pattern).items()
            if not self._is_victims(path)
        }

    def _is_victims(self, path: str) -> bool:
        is_segment = path.endswith(".segment")
        return is_segment and bool(self._entries_in((_number(path),)) & self.victims)


class Altering(Losing):
    """Serves other bytes than it has signed for."""

    def served(self, pattern: str) -> dict[str, bytes]:
        return {
            path: bytes(len(data)) if self._is_victims(path) else data
            for path, data in Bistro.served(self, pattern).items()
        }


class Hiding(LyingBistro):
    """Never shows one of its batches."""

    def served(self, pattern: str) -> dict[str, bytes]:
        return {
            path: data
            for path, data in super().served(pattern).items()
            if not (path.endswith(".batch") and _number(path) == 1)
        }


class Resigning(LyingBistro):
    """Serves other rows than those of what it has taken, in a chain that fits together."""

    def __init__(self, *how) -> None:
        self._signed: dict[int, Batch] = {}
        self._n_segments: dict[int, int] = {}
        super().__init__(*how)

    def served(self, pattern: str) -> dict[str, bytes]:
        found = super().served(pattern)
        for path in found:
            if path.endswith(".batch"):
                found[path] = self._again(_number(path), found[path]).data
        return found

    def _again(self, number: int, data: bytes) -> Batch:
        if number not in self._signed:
            batch = read_batch(data, EVENT)
            self._n_segments[number] = batch.n_segments
            previous = self._signed[number - 1].digest if number else FIRST
            rows = self.rows(batch.rows)
            self._signed[number] = self.sign(number, previous, rows, batch.time_s)
        return self._signed[number]

    def sign(self, number: int, previous: bytes, rows: np.ndarray, time_s: int) -> Batch:
        n_segments = self._n_segments.get(number, 0)
        return sign_batch(EVENT, self.name, number, previous, time_s, rows, self.key, n_segments)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return what it reports instead."""
        return rows

    def _invented(self) -> tuple:
        commitment = commitment_of(EVENT, f"{self.world.random.random()}")
        number = int.from_bytes(commitment.entry[:7], "big")
        said = push_statement(EVENT.id, self.listed.key, commitment.entry, bytes(32), 1, bytes(16))
        signature = owners_signature(said, commitment.owner)
        return row_of(commitment, 1, bytes(32), bytes(16), 0, signature, upload=number)


class Inventing(Resigning):
    """Reports uploads that nobody has committed to."""

    def rows(self, rows: np.ndarray) -> np.ndarray:
        self.has_lied = True
        entry, *rest = self._invented()
        return _with(rows, (bytes(reversed(entry)), *rest))


class Stuffing(Resigning):
    """Reports uploads that it has committed to itself, and that no log has."""

    def rows(self, rows: np.ndarray) -> np.ndarray:
        return _with(rows, self._invented())


class Attributing(Resigning):
    """Reports junk as if somebody had sealed it anew, of whom it has a receipt, and no key."""

    def __init__(self, *how) -> None:
        self._heard: list[Commitment] = []
        super().__init__(*how)

    def hear(self, commitment: Commitment) -> None:
        self._heard.append(commitment)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        self.has_lied = True
        random = self.world.random
        digest = random.randbytes(32)
        forged = [bytes(64), self.key.sign(digest), *(bytes(row["signature"]) for row in rows)]
        commitment = random.choice(self._heard)
        return _with(rows, row_of(commitment, 4, digest, bytes(16), 0, random.choice(forged)))


class Skipping(Resigning):
    """Signs receipts, and reports nothing of it."""

    def rows(self, rows: np.ndarray) -> np.ndarray:
        is_told = [row["entry"].tobytes() not in self.victims for row in rows]
        return rows[np.array(is_told, bool)]


class Forking(Resigning):
    """Shows auditors another last batch."""

    def shown(self) -> list[bytes]:
        batches = super().shown()
        if batches:
            self.has_lied = True
            last = self._signed[max(self._signed)]
            other = self.sign(last.number, last.previous, last.rows[:0], last.time_s + 1)
            batches.append(other.data)
        return batches


class Unchaining(Resigning):
    """Puts another first batch into its chain afterwards."""

    def shown(self) -> list[bytes]:
        batches = super().shown()
        if len(batches) > 1:
            self.has_lied = True
            batches[0] = self.sign(0, FIRST, self._signed[0].rows[:0], 1).data
        return batches


class HoldingOther(LyingBistro):
    """Signs that it holds other bytes than were committed to."""

    def receipt(self, upload: Upload) -> str:
        if upload.wish.commitment.entry in self.victims:
            upload = replace(upload, sha256=bytes(32))
        return super().receipt(upload)


class Boasting(LyingBistro):
    """Says whatever draws people, or drives them away."""

    def tell_facts(self, reply: Callable[[dict[str, float]], None]) -> None:
        stored, free, wait_s = self.world.random.choice([(0, 2**50, 0.0), (2**50, 0, 1e6)])
        reply({"stored_bytes": stored, "free_bytes": free, "wait_s": wait_s})


class Refusing(LyingBistro):
    """Has no room for anybody."""

    def tus(self, step: Step, metadata: str, size: int, data: bytes, reply: Reply) -> None:
        reply(Answer(507, b'{"why": "full"}'))


class Lax(LyingBistro):
    """Takes what is late, too."""

    def tus(self, step: Step, metadata: str, size: int, data: bytes, reply: Reply) -> None:
        self.admission._require_in_time = lambda *_: None
        super().tus(step, metadata, size, data, reply)


LYING_BISTROS = (
    *(Losing, Altering, Inventing, Stuffing, Hiding, Forking, Unchaining, Skipping),
    *(HoldingOther, Boasting, Refusing, Lax, Attributing),
)
