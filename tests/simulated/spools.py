"""A spool without threads or a network: real store, real seals, a disk that loses what is unsynced.

Random steps: collections order pieces, have them kept, fetch them, let them go, end; the operator
drops, time passes, clocks are set back, the disk is full, power is lost at any write. Whoever
fetches gets what is there, or what a relay makes of it: it changes, cuts or swaps pieces, gives old
ones, has none any more, or stalls. After each step, and each loss:

- what was said to be kept is there and opens, unless it was let go, dropped, too old or ended;
- what a liar gives does not open: the relay is named, once, and the piece counts as kept no more;
- a piece that a relay has lost does not count as kept either, and one that stalls still does;
- what was dropped or too old is counted, once;
- of what has ended nothing is left, and nothing on the disk is known text.
"""

from __future__ import annotations

import random
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from simulated.disk import Disk, DroppingVfs, PowerLoss, files_below

from datacollect.errors import RefusedError, TransferError
from datacollect.files import durability
from datacollect.files.held_folder import Held
from datacollect.transfer.pieces import segments
from datacollect.transfer.pull.slots.spools import KEY_OF, KeptPiece, Spools
from datacollect.transfer.spool import store as stores
from datacollect.transfer.spool.sealing import SealedPiece, new_key, open_sealed, seal
from datacollect.transfer.spool.store import DROPPED, GONE, SpoolStore

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN = b"known to whoever reads the disk "
ISSUER, NAMES, SOURCES = "ed25519:x", ("c1", "c2", "c3"), ("S1", "S2")
RELAY = "K"
LIES = ("changed", "cut", "swapped", "replayed")
LOST, STALLED = "lost", "stalled"
MOST_BYTES, KEPT_S, LENGTHS = 60_000, 1000.0, (1, 700, 1500)


class Wrong(AssertionError):
    """A promise is broken."""


class Known(NamedTuple):
    """A piece that the spool has said that it keeps."""

    piece: SealedPiece
    data: bytes


class Answering:
    """Stands for a conversation with a relay, which answers so.

    Parameters
    ----------
    answer : bytes or Exception
    """

    name = RELAY

    def __init__(self, answer: bytes | Exception) -> None:
        self._answer = answer

    def receive(self, _: int) -> bytes:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class SimulatedSpool:
    """One spool and its collections, by a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder / "spool"
        self.random = random.Random(f"spool {seed}")
        self.disk = Disk(seed, folder)
        self._unlink = Path.unlink
        self.now_s = 1e9
        self.keys = {name: new_key() for name in NAMES}
        self.kept: dict[str, dict[tuple[str, int], Known]] = {name: {} for name in NAMES}
        # Let go or replaced while the power was lost: there or not.
        self.unsure: dict[str, set[tuple[str, int]]] = {name: set() for name in NAMES}
        self.lost: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.until_s: dict[str, float] = {}
        self.old: list[tuple[str, Known, bytes]] = []
        self.n_power_losses = self.n_kept = self.n_lies = 0

    def run(self, n_steps: int = 60) -> None:
        """Take the steps; raise `Wrong` where a promise is broken."""
        vfs = DroppingVfs(self.disk)
        with ExitStack() as patches:
            for module in (segments, durability):
                patches.enter_context(mock.patch.object(module, "os", self.disk))
            patches.enter_context(mock.patch.object(Path, "replace", self._renaming()))
            patches.enter_context(mock.patch.object(Path, "unlink", self._unlinking()))
            patches.enter_context(mock.patch.object(stores, "MOST_SEGMENT_BYTES", 5000))
            patches.callback(vfs.unregister)
            self._start()
            for _ in range(n_steps):
                self._step()
            self._judge()
            for name in NAMES:
                self._end(name)
            self._judge()
            self.store.close()
            left = [path for path in files_below(self.folder) if path.endswith(".segment")]
            if left:
                raise Wrong(f"{self.seed}: {left} outlast all collections")

    def _renaming(self) -> Callable[[Path, Path], Path]:
        """Return what renames by the disk."""

        def replace(path: Path, target: Path) -> Path:
            self.disk.rename(path, target)
            return Path(target)

        return replace

    def _unlinking(self) -> Callable[..., None]:
        """Return what removes files as long as there is power."""

        def gone(path: Path, missing_ok: bool = False) -> None:
            if not self.disk.goes_on():
                raise PowerLoss
            self._unlink(path, missing_ok)

        return gone

    def _start(self) -> None:
        self.disk.room_bytes = None
        self.store = SpoolStore(Held(self.folder), "K", MOST_BYTES)

    def _step(self) -> None:
        steps = (self._keep, self._keep, self._keep, self._fetch, self._fetch, self._let_go)
        rare = (self._pass_time, self._set_back, self._drop, self._end_one, self._restart)
        step = self.random.choice(self.random.choice((steps, steps, steps, rare)))
        if self.random.random() < 0.08:
            self.disk.fails_after = self.random.randint(0, 30)
        self.disk.room_bytes = self.random.choice((None,) * 8 + (0, 500))
        self.disk.partial_writes = self.random.random() < 0.5
        with suppress(PowerLoss):
            step()
        if self.disk.is_dead or (self.disk.fails_after is not None and self.random.random() < 0.3):
            self._lose_power()
        self.disk.fails_after = self.disk.room_bytes = None

    def _lose_power(self) -> None:
        self.n_power_losses += 1
        self.disk.is_dead = True
        self.store._is_committing = False
        self.store._closing.close()
        self.disk.close_all()
        with mock.patch.object(Path, "unlink", self._unlink):
            self.disk.lose_power()
        self.disk.revive()
        self._start()
        self._judge()

    def _restart(self) -> None:
        self.store.close()
        self._start()
        self._judge()

    # Steps ------------------------------------------------------------------------------------

    def _any_name(self) -> str:
        return self.random.choice(NAMES)

    def _keep(self) -> None:
        """Have some pieces kept, as one order; each may be an old one in a new version."""
        name = self._any_name()
        pieces = []
        for _ in range(self.random.randint(1, 6)):
            # Of few lengths: what tells one piece from another is not how long it is.
            data = (KNOWN * 100)[: self.random.choice(LENGTHS)]
            root = self.random.randbytes(32)
            index = self.random.randint(0, 15)
            pieces.append(
                Known(SealedPiece(self.random.choice(SOURCES), index, root, len(data)), data)
            )
        until_s = self.now_s + self.random.uniform(1.0, KEPT_S)
        added = []
        try:
            number = self.store.order(ISSUER, name, until_s, self.now_s)
            for each in pieces:
                self.store.reserve(each.piece.sealed_bytes)
                sealed = seal(self.keys[name], name, each.piece, each.data)
                added.append((each, sealed, self.store.add(number, each.piece, sealed)))
        except RefusedError:
            pass
        finally:
            # What replaces a piece may be there, or what was before, until it is said to be kept.
            self.unsure[name] |= {(e.piece.source, e.piece.index) for e, _, _ in added}
        if self.random.random() < 0.1:
            return  # nobody waits: nothing was promised
        for each, sealed, one in added:
            try:
                self.store.wait(one, self.now_s)
            except RefusedError:
                continue
            if self.disk.is_dead:
                raise PowerLoss
            key = each.piece.source, each.piece.index
            if each is [e for e, _, _ in added if (e.piece.source, e.piece.index) == key][-1]:
                self.kept[name][key] = each
                self.unsure[name].discard(key)
                self.n_kept += 1
                self.old.append((name, each, sealed))

    def _fetch(self) -> None:
        """Fetch a piece from a relay that may lie."""
        name = self._any_name()
        sure = [key for key in self.kept[name] if key not in self.unsure[name]]
        number = self.store.number_of(ISSUER, name)
        if not sure or number is None:
            return
        key = self.random.choice(sure)
        known = self.kept[name][key]
        sealed = self.store.fetch(number, *key, known.piece.root)
        self._destination_takes(
            name, known, sealed, self.random.choice((None, *LIES, LOST, STALLED))
        )

    def _destination_takes(self, name: str, known: Known, sealed: bytes, fault: str | None) -> None:
        """Have the destination receive a piece from a relay that may do something else."""
        said: list[str] = []
        kept = KeptPiece(RELAY, known.piece)
        spools = self._spools_of(name, said)
        spools.kept[known.piece.source][known.piece.index] = kept
        answers: dict[str | None, bytes | Exception] = {
            None: sealed,
            LOST: RefusedError("this agent has no such piece, or no longer", GONE),
            STALLED: TransferError(f"{RELAY}: nothing has come for 20 s"),
        }
        answer = self._lie(name, known, sealed, fault) if fault in LIES else answers[fault]
        opened = None
        # Again: it is named once.
        for _ in range(2):
            with suppress(TransferError):
                opened = spools.receive(Answering(answer), kept)
        counts = known.piece.index in spools.kept[known.piece.source]
        if opened != (known.data if fault is None else None):
            raise Wrong(f"{self.seed}: {known.piece} opens to {opened!r}, {fault}")
        if counts != (fault in (None, STALLED)):
            raise Wrong(f"{self.seed}: {known.piece} counts as kept: {counts}, {fault}")
        if (spools.distrusted, len(said)) != (({RELAY}, 1) if fault in LIES else (set(), 0)):
            raise Wrong(f"{self.seed}: {spools.distrusted}, {said}, {fault}")
        self.n_lies += fault in LIES

    def _spools_of(self, name: str, said: list[str]) -> Spools:
        """Return what a destination knows of relays, with the keys of a collection."""
        facts = {KEY_OF.format(source): self.keys[name].hex() for source in SOURCES}
        state: Any = SimpleNamespace(state=SimpleNamespace(fact=facts.get))
        log: Any = SimpleNamespace(write=lambda *_, **__: None)
        network: Any = SimpleNamespace(number=name, known={})
        collection: Any = None
        return Spools(collection, network, state, log, said.append)

    def _lie(self, name: str, known: Known, sealed: bytes, lie: str | None) -> bytes:
        """Return what a liar gives for a piece."""
        if lie in ("swapped", "replayed"):
            others = [
                other
                for n, k, other in self.old
                if (n, k.piece) != (name, known.piece) and len(other) == len(sealed)
            ]
            if others:
                return self.random.choice(others)
        if lie == "cut":
            return sealed[: self.random.randrange(len(sealed))]
        at = self.random.randrange(len(sealed))
        return sealed[:at] + bytes([sealed[at] ^ 1 << self.random.randrange(8)]) + sealed[at + 1 :]

    def _let_go(self) -> None:
        name = self._any_name()
        number = self.store.number_of(ISSUER, name)
        keys = [key for key in self.kept[name] if self.random.random() < 0.5]
        if number is None:
            return
        self.unsure[name] |= set(keys)
        self.store.forget(number, keys)
        if self.disk.is_dead:
            raise PowerLoss
        for key in keys:
            del self.kept[name][key]
        self.unsure[name] -= set(keys)

    def _pass_time(self) -> None:
        self.now_s += self.random.uniform(0.0, KEPT_S)
        self._expire()

    def _set_back(self) -> None:
        self.now_s -= self.random.choice((5.0, 1e7))
        self._expire()

    def _expire(self) -> None:
        before = {name: self.store.number_of(ISSUER, name) for name in NAMES}
        for name in NAMES:
            self.unsure[name] |= self.kept[name].keys()
        try:
            over = self.store.expire(self.now_s)
        except RefusedError:
            return
        if self.disk.is_dead:
            raise PowerLoss
        for name, number in before.items():
            if number in over or self.store.number_of(ISSUER, name) is None:
                self._gone(name)
            elif number is not None:
                found = self.store.collection(number)
                if found is not None and found.until_s <= self.now_s and found.pieces:
                    raise Wrong(f"{self.seed}: {name} is kept after its time")

    def _drop(self) -> None:
        name = self._any_name()
        number = self.store.number_of(ISSUER, name)
        if number is None:
            return
        before = self.store.collection(number)
        assert before is not None
        self.unsure[name] |= self.kept[name].keys()
        self.store.drop(number, DROPPED)
        if self.disk.is_dead:
            raise PowerLoss
        after = self.store.collection(number)
        assert after is not None
        if after.dropped.pieces != before.dropped.pieces + before.pieces or after.pieces:
            raise Wrong(f"{self.seed}: {before} became {after}: what was dropped is not counted")
        self._gone(name)

    def _end_one(self) -> None:
        self._end(self._any_name())

    def _end(self, name: str) -> None:
        number = self.store.number_of(ISSUER, name)
        if number is None:
            return
        self.unsure[name] |= self.kept[name].keys()
        self.store.end(number)
        if self.disk.is_dead:
            raise PowerLoss
        self._gone(name)
        if self.store.pieces(number) or self.store.collection(number) is not None:
            raise Wrong(f"{self.seed}: something of {name} is left after its end")

    def _gone(self, name: str) -> None:
        self.kept[name], self.unsure[name] = {}, set()

    # Judging ----------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Judge the whole of it."""
        for name in NAMES:
            number = self.store.number_of(ISSUER, name)
            there = (
                {}
                if number is None
                else {(each.source, each.index): each for each in self.store.pieces(number)}
            )
            for key, known in list(self.kept[name].items()):
                if key in self.unsure[name]:
                    if there.get(key) != known.piece:
                        del self.kept[name][key]
                    self.unsure[name].discard(key)
                elif there.get(key) != known.piece:
                    raise Wrong(f"{self.seed}: {key} of {name} was kept, and is not there")
            for key, known in self.kept[name].items():
                assert number is not None
                sealed = self.store.fetch(number, *key, known.piece.root)
                if open_sealed(self.keys[name], name, known.piece, sealed) != known.data:
                    raise Wrong(f"{self.seed}: {key} of {name} is not what was kept")
            self.unsure[name] = set()
        taken = 0
        for path, data in files_below(self.folder).items():
            # SQLite's index of its log, made again, has what memory of this process happens to
            # hold, which here is that of a source, too.
            if KNOWN[:16] in data and not path.endswith("-shm"):
                raise Wrong(f"{self.seed}: {path} holds known text")
            taken += len(data) if ".sqlite" not in path else 0
        if taken > MOST_BYTES:
            raise Wrong(f"{self.seed}: {taken} bytes are taken of {MOST_BYTES}")
