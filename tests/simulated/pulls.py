"""One collection by seed: the real core, controllers, store and state; all else is simulated.

A `SimulatedPull` is started again and again, as `datacollect pull` is, until all is there: while
troubles last, power fails, disks fill, sources change and reset, relays vanish. What is real is the
code of `datacollect.transfer.pull` below its threads: sessions are stepped one at a time, in
the order of the simulated clock, and groups are committed when the clock says so.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import apsw
from simulated.clocks import STEPS_S
from simulated.disk import Disk, DroppingVfs, PowerLoss
from simulated.dressing import Dressing, digests_at
from simulated.judging import Judging, Wrong
from simulated.servers import WebSource, servers_among
from simulated.sources import TROUBLES, Source, Trouble
from simulated.stepped import Stepped

from datacollect.errors import DatacollectError, TransferError
from datacollect.files import durability
from datacollect.methods.planning_options import PlanningOptions
from datacollect.transfer.pull import planning, sessions
from datacollect.transfer.pull.config.file import Limits
from datacollect.transfer.pull.core import messages
from datacollect.transfer.pull.core.core import CollectorCore, SourceWork
from datacollect.transfer.pull.core.todo import Remains
from datacollect.transfer.store import attributes, comparing, places, preparing, store
from datacollect.transfer.store.folder import opening, paths, syncing
from datacollect.transfer.store.incoming import unfinished
from datacollect.transfer.store.incoming.worker import Worker
from datacollect.transfer.store.store import PieceKey, Store, StoreOptions

if TYPE_CHECKING:
    from collections.abc import Callable

DESTINATION = "D"
TICK_S, COMMIT_S, LONGEST_S = 0.25, 0.4, 3000.0
PIECE_BYTES = 1024
IN_FLIGHT_BYTES = 8 * PIECE_BYTES
# Below the time-out of 20 s, above the ten after which others have their turn.
FIRST_BYTES_S, FIRST_WITH_TIMES = (0.0, 0.0, 10.5, 19.0), 1000
ON_DISK = (
    attributes,
    comparing,
    durability,
    opening,
    paths,
    places,
    preparing,
    store,
    syncing,
    unfinished,
)


class SimulatedPull(Judging):
    """A collection, its sources, its folder and all that goes wrong, by seed.

    A small one has few files of few pieces: less happens in it, and many more can be had.
    """

    def __init__(
        self, seed: int, folder: Path, *, is_small: bool = False, web: bool = False
    ) -> None:
        self.seed, self.folder = seed, folder
        self.draws = random.Random(f"pull {seed}")
        draw = self.draws
        self.trouble = draw.choice(TROUBLES)
        names = ("S1", "S2", "S3")[: draw.randint(1, 2 if is_small else 3)]
        servers = servers_among(names, seed) if web else ()
        self.sources: dict[str, Source] = {
            name: (WebSource if name in servers else Source)(
                name, random.Random(f"{name} {seed}"), self.trouble, is_small=is_small
            )
            for name in names
        }
        # What was added later draws for itself: seeds that once failed stay what they were.
        self.times = random.Random(f"times {seed}") if seed >= FIRST_WITH_TIMES else None
        for source in self.sources.values() if self.times and is_small else ():
            source.first_byte_s = self.times.choice(FIRST_BYTES_S)
        self.dressing = Dressing(seed, self.sources)
        self.relays = ("R1", "R2")[: draw.randint(0, 2)]
        self.method = draw.choice(("direct", "best-path", "coordinated", "adaptive"))
        self.knows_links = draw.random() < 0.5
        self.connections = draw.choice((2, 5, 16))
        self.n_bad_starts = draw.choice((1, 1, 2) if is_small else (0, 1, 2, 4))
        # Where little happens, the power fails early or not at all.
        self.until_failure = (5, 30, 60) if is_small else (5, 30, 100, 300)
        self.into = folder / "into"
        self.disk = Disk(seed, folder)
        self.log = hashlib.sha256()
        self.n_starts = self.n_power_losses = self.n_recorded = 0
        self.whys: list[str] = []

    def run(self) -> None:
        """Start until all is there; judge after each start."""
        vfs = DroppingVfs(self.disk)
        try:
            with (
                self._on_disk(),
                mock.patch.object(syncing, "_syncfs", self.disk.sync_all),
                # A third have their groups synced all at once, as many small files are.
                mock.patch.object(syncing, "MANY", 0 if self.seed % 3 == 1 else syncing.MANY),
                mock.patch.object(Worker, "add", lambda self, job: self._do(job)),
                # A buffer for each session: pieces are small here.
                mock.patch.object(sessions, "MOST_BYTES", PIECE_BYTES),
            ):
                for number in range(self.n_bad_starts):
                    self._bad_start(number)
                self._good_starts()
        finally:
            vfs.unregister()

    def _on_disk(self) -> ExitStack:
        """Have all that touches the folder go through the simulated disk."""
        patches = ExitStack()
        for module in ON_DISK:
            patches.enter_context(mock.patch.object(module, "os", self.disk))
        return patches

    def _bad_start(self, number: int) -> None:
        draw, disk = self.draws, self.disk
        if draw.random() < 0.7:
            disk.fails_after = draw.choice(self.until_failure) + draw.randint(0, 100)
        disk.room_bytes = draw.choice((None, None, 0, 3000, 20_000))
        disk.partial_writes = draw.random() < 0.5
        self._start(is_bad=True)
        self._judge_names()
        if self.dressing.loses_state and draw.random() < 0.5:
            for path in (self.into / ".datacollect").glob("state.sqlite*"):
                path.unlink()

    def _good_starts(self) -> None:
        self.disk.room_bytes = self.disk.fails_after = None
        for source in self.sources.values():
            source.is_up, source.trouble = True, Trouble(hostile_names=self.trouble.hostile_names)
        for _ in range(3):
            if self._start(is_bad=False):
                break
        else:
            raise Wrong(f"seed {self.seed}: it does not come to an end: {self.whys}")
        self._judge_end()

    # One start -------------------------------------------------------------------------------

    def _start(self, *, is_bad: bool) -> bool:
        """Return whether everything is there."""
        self.n_starts += 1
        opened: Store | None = None
        try:
            # Where the state is lost, what a source has changed since is no file of ours any more.
            opened = Store(self.into, StoreOptions(overwrite=self.dressing.loses_state))
            one = Start(self, opened, is_bad)
            return one.run()
        except PowerLoss:
            pass
        except (TransferError, apsw.Error, DatacollectError) as error:
            self.whys.append(str(error))
            if not is_bad:
                raise Wrong(f"seed {self.seed}: fails without trouble: {error}") from error
        finally:
            was_lost = self.disk.is_dead
            if was_lost:
                self.n_power_losses += 1
                self.disk.lose_power()
            if opened is not None:
                with suppress(DatacollectError):
                    opened.state.close()
            self.disk.close_all()
            if was_lost:
                for name in ("state.sqlite-shm",):
                    Path(self.into, ".datacollect", name).unlink(missing_ok=True)
                self.disk.revive()
        return False


class Start:
    """One start of a pull: lists, plans, and carries rounds out on a simulated clock."""

    def __init__(self, pull: SimulatedPull, opened: Store, is_bad: bool) -> None:
        self.pull, self.store, self.is_bad = pull, opened, is_bad
        self.draws = pull.draws
        self.now_s = 0.0
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.n_events = 0
        self.threads: dict[int, Any] = {}
        self.stepping: set[int] = set()
        self.hops: dict[int, int] = {}
        self.lost_relays: set[str] = set()
        self.changed: set[str] = set()
        self.failure: str | None = None
        self.core: CollectorCore | None = None
        # What rounds leave to the next, by sources: as `Collecting` does.
        self.given_up: set[str] = set()
        self.put_off: dict[str, set[int]] = {}
        self.remains = Remains()

    def run(self) -> bool:
        self.pull.judge_done(self.store)
        self.store.state.begin_start(self.pull.sources)
        for source in self.pull.sources.values():
            source.begin_start()
        self.store.mend()
        if not self.pull.disk.is_dead:
            self.pull.judge_mended(self.store)
        self._list(self.pull.sources)
        self.store.clean()
        n_relistings = 0
        while True:
            self._round()
            if self.failure is not None:
                raise TransferError(self.failure)
            if self.changed and n_relistings < 3:
                n_relistings += 1
                self._list(sorted(self.changed))
            elif not any(self.put_off.values()):
                break
        for name in self.pull.sources:
            self.store.finish(name)
        return not self.store.state.waiting() and not self._needed()

    def _needed(self) -> bool:
        return any(self.store.needed(name) for name in self.store.known_sources())

    def _list(self, names: Any) -> None:
        for name in names:
            self.remains.listed(name)
            listing = self.store.listing(name)
            source = self.pull.sources[name]
            pages = source.listed(self.store.known(name))
            for page in self.pull.dressing.pages(name, pages):
                listing.take(page)
            listing.end()
            rows = self.store.prepare(name, PIECE_BYTES, apart=source.apart)
            if rows:
                self.store.compare(name, rows, lambda segments, s=source: digests_at(s, segments))
            self.store.know(name)

    # A round ---------------------------------------------------------------------------------

    def _work(self) -> dict[str, SourceWork]:
        work = {}
        for name in sorted(set(self.store.known_sources()) - self.given_up):
            layout = self.store.layout(name)
            needed = self.remains.needed(name, self.store.needed(name))
            if needed:
                cut = tuple(layout.pieces.tolist()), tuple(layout.piece_bytes.tolist())
                work[name] = SourceWork(*cut, needed, layout.kin)
        return work

    def _round(self) -> None:
        self.changed, self.put_off = set(), {}
        work = self._work()
        if not work:
            self._commit()
            return
        problem = planning.problem_of(self._collection(), work, self._links(), {})
        found = planning.planned(
            problem,
            PlanningOptions(self.pull.method),
            connections=self.pull.connections,
            piece_bytes=PIECE_BYTES,
            is_known=self.pull.knows_links,
        )
        self.plan_remaining = found.plan_remaining
        self.core = CollectorCore(
            work,
            found.controller,
            in_flight_bytes=IN_FLIGHT_BYTES,
            patience_s=200.0,
            before=self.remains,
        )
        self.heap.clear()
        self.threads.clear()
        self.stepping.clear()  # their steps were in the heap
        self.hops.clear()
        self.now_s = 0.0
        self._at(TICK_S, self._tick)
        self._at(COMMIT_S, self._commit_again)
        if self.is_bad:
            self._at(self.draws.uniform(0, 3), self._trouble)
        if self.pull.times is not None:
            self._at(self.pull.times.uniform(0, 10), self._set_clock)
        self._obey(self.core.start())
        while self.core.finished is None and self.heap:
            self.now_s, _, act = heapq.heappop(self.heap)
            if self.now_s > LONGEST_S:
                raise Wrong(f"seed {self.pull.seed}: nothing moves any more")
            act()
        for thread in self.threads.values():
            thread.end()
        self._commit()
        self._note_round(self.core)
        if not self.is_bad and self.core.todo.given_up:
            raise Wrong(f"seed {self.pull.seed}: gave up {self.core.todo.given_up}")

    def _note_round(self, core: CollectorCore) -> None:
        self.given_up |= core.todo.given_up.keys()
        put_off = core.todo.put_off
        self.put_off = {n: pieces for n, pieces in put_off.items() if n not in self.given_up}
        core.leave(self.remains)

    def _collection(self) -> Any:
        network: dict[str, Any] = {"hosts": {}, "links": [], "bandwidth_csv": None, "shared": []}
        if self.pull.knows_links:
            network["links"] = [
                {"from": a, "to": b, "bandwidth_bytes_per_s": 10_000.0 + 1000 * len(a + b)}
                for a, b in self._links()
            ]
        hosts = (*self.pull.sources, *self.pull.relays)
        return SimpleNamespace(
            network=network,
            destination=DESTINATION,
            hosts=hosts,
            sources=None,
            folder=Path(),
            timezone=None,
            limits=Limits(),
        )

    def _links(self) -> list[tuple[str, str]]:
        links = [(name, DESTINATION) for name in (*self.pull.sources, *self.pull.relays)]
        return links + [(s, r) for s in self.pull.sources for r in self.pull.relays]

    def _at(self, time_s: float, act: Callable[[], None]) -> None:
        self.n_events += 1
        heapq.heappush(self.heap, (time_s, self.n_events, act))

    def _tell(self, event: Any) -> None:
        if self.core is not None and self.core.finished is None:
            self._obey(self.core.handle(event))

    def _tick(self) -> None:
        self._at(self.now_s + TICK_S, self._tick)
        arrived = {n: t.received_bytes for n, t in self.threads.items() if not t.is_over}
        self._tell(messages.CollectorTicked(self.now_s, arrived))

    def _trouble(self) -> None:
        """Something happens to a source or a relay; more of it later."""
        self._at(self.now_s + self.draws.expovariate(1 / 3), self._trouble)
        source = self.draws.choice(list(self.pull.sources.values()))
        what = self.draws.randrange(4)
        if what == 0 and source.trouble.changes:
            source.change_something()
        elif what == 1 and self.draws.random() < 0.3:
            source.is_up = not source.is_up
        elif what == 2 and self.pull.relays:
            self.lost_relays ^= {self.draws.choice(self.pull.relays)}
            for thread in self.threads.values():
                if self.lost_relays & set(thread.relays) and thread._peer is not None:
                    thread._peer.abort()
                    self._step_soon(thread)

    def _set_clock(self) -> None:
        """An agent's clock is set, back or ahead, whatever goes on there; again in a minute."""
        times, names = self.pull.times, sorted(self.pull.sources)
        self.pull.sources[times.choice(names)].clock.set_s += times.choice(STEPS_S)
        self._at(self.now_s + times.uniform(30, 90), self._set_clock)

    # Commits ---------------------------------------------------------------------------------

    def _commit_again(self) -> None:
        self._at(self.now_s + COMMIT_S, self._commit_again)
        self._commit()

    def _commit(self) -> None:
        """Have the store record what is pending, by the very code of its thread."""
        self.store._recorder.drain(self._recorded)
        self._require_power()

    def _recorded(self, pieces: list[PieceKey], failure: Exception | None) -> None:
        if failure is not None:
            self.failure = str(failure)
            self._tell(messages.StoreFailed(self.now_s, str(failure)))
        else:
            self.pull.n_recorded += len(pieces)
            self._tell(messages.Recorded(self.now_s, tuple(pieces)))

    def _require_power(self) -> None:
        if self.pull.disk.is_dead:
            raise PowerLoss

    # Actions ---------------------------------------------------------------------------------

    def _obey(self, actions: list[Any]) -> None:
        for action in actions:
            self.pull.log.update(f"{self.now_s:.9g} {action!r}\n".encode())
            match action:
                case messages.OpenSession():
                    self._open(action)
                case messages.Request() | messages.Ask():
                    if action.piece not in self.core.todo.pieces[action.source]:
                        raise Wrong(f"seed {self.pull.seed}: {action} asks for what is there")
                    thread = self.threads[action.session]
                    thread.wanted.put(action)
                    self._step_soon(thread)
                    self._judge_budget()
                case messages.CloseSession(session):
                    thread = self.threads[session]
                    self.hops.pop(session, None)
                    thread.end()
                    self._step_soon(thread)
                case messages.Wake(time_s, tag):
                    at = max(time_s, self.now_s)
                    self._at(at, lambda tag=tag: self._tell(messages.Woken(self.now_s, tag)))
                case messages.Plan(number, progress):
                    self._plan(number, progress)
                case messages.Retire(source, files, why):
                    self.changed.add(source)
                    self.store.retire(source, files, why)
                case messages.Unreadable(source, files):
                    self.store.unreadable(source, files)
                case messages.SetAside(_, file, why):
                    self.store.set_aside(file, why)
                case messages.Abandon(source, piece, why):
                    self.store.abandon(source, piece, why)
            self._require_power()

    def _plan(self, number: int, progress: Any) -> None:
        try:
            schedule = self.plan_remaining(progress)
        except DatacollectError:
            schedule = None
        planned = lambda: self._tell(messages.Planned(self.now_s, number, schedule))  # noqa: E731
        self._at(self.now_s + self.draws.uniform(0, 1), planned)

    def _open(self, wanted: messages.OpenSession) -> None:
        source = self.pull.sources[wanted.source]
        thread = Stepped(wanted, lambda *_: source.peer(), self.store, self)
        thread.rate_bytes_per_s = self.draws.choice((2_000.0, 10_000.0, 50_000.0))
        self.threads[wanted.session] = thread
        self.hops[wanted.session] = 1 + len(wanted.relays)
        open_hops = sum(self.hops.values())
        if open_hops > self._most_hops():
            raise Wrong(f"seed {self.pull.seed}: {open_hops} connections at a time")
        self._at(self.now_s + self.draws.uniform(0.01, 0.5), thread.begin)

    def _most_hops(self) -> int:
        """Each route has one chain at least, and a spare one where it is broken.

        Three sources have three routes each at the most.
        """
        return max(self.pull.connections, 16) + 2 * len(self.pull.sources)

    def _judge_budget(self) -> None:
        under_way = self.core.under_way
        asked = sum(session.asked_bytes for session in under_way.values())
        most = IN_FLIGHT_BYTES + PIECE_BYTES * len(under_way)
        if asked != under_way.asked_bytes or asked > most:
            raise Wrong(f"seed {self.pull.seed}: {asked} bytes in flight, at most {most}")

    def _step_soon(self, thread: Stepped) -> None:
        number = thread._opening.session
        if number not in self.stepping and thread.has_begun and not thread.is_over:
            self.stepping.add(number)
            self._at(self.now_s + thread.wait_s(), thread.step)
