"""Pulls in time slots: what a plan stores at a relay waits there, sealed, for a later slot.

A plan says which pieces each hop moves in which slot; here each hop of a slot has a thread. What
has not moved by the end of its slot, whatever the reason, is planned again from where all lies, on
the same grid of slots.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict, deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import (
    DatacollectError,
    InfeasibleError,
    ProblemError,
    RefusedError,
    StoreError,
)
from datacollect.net.fan_out import LOOK_S, start_thread
from datacollect.transfer.protocol.source import Verdict
from datacollect.transfer.pull.slots.happened import LATE_PART
from datacollect.transfer.pull.slots.slot_planning import relays_in, slotted_plan, slotted_problem
from datacollect.transfer.store.state.pieces import MOST_BYTES
from datacollect.transfer.store.store import PieceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacollect.methods.planning_options import PlanningOptions
    from datacollect.problem.problem import Problem
    from datacollect.transfer.protocol.kind import PacerOf
    from datacollect.transfer.protocol.source import Peer
    from datacollect.transfer.pull.answering import StartUse
    from datacollect.transfer.pull.core.todo import SourceWork
    from datacollect.transfer.pull.hosts import Hosts
    from datacollect.transfer.pull.open_hours import OpenHours
    from datacollect.transfer.pull.slots.happened import Happened
    from datacollect.transfer.pull.slots.slot_planning import HopTask, SlotPlan
    from datacollect.transfer.pull.slots.spools import KeptPiece, Spools

# Of one order to a relay; of requests that are not answered.
ORDER_PIECES, ORDER_BYTES, AHEAD = 64, 32 * 2**20, 8
# A source is given up of which nothing has moved in so many slots that were planned for it, and for
# longer than the patience with sources.
MOST_TRIES = 5
# Beside `LATE_PART`, after which a plan neither begins nor goes on in a slot: what the last plan
# took, and more, is allowed for.
PLANNING_SPARE = 1.5
# A piece is given up whose answers were no good so often.
MOST_PIECE_TRIES = 5
# Plans of more slots take minutes, or all memory.
MOST_SLOTS = 5000
# What is kept outlasts the plan by so long.
SPARE_S = 2 * 86_400.0
NO_ROOM, CHANGED = 507, "(409)"


class SlotOutcome(NamedTuple):
    """Outcome of a slot: whether all has moved, and sources to be listed again."""

    is_as_planned: bool
    changed: set[str]


class InSlots:
    """Carries plans in slots out, one after the other, on one grid.

    Parameters
    ----------
    hosts : Hosts
    how : PlanningOptions
    slot_s : float
    hours : OpenHours
    spools : Spools
    use : StartUse
    happened : Happened
        Takes what each hop has moved.
    pacer_of : callable
        Returns what what comes from a host directly keeps to.
    """

    def __init__(
        self,
        hosts: Hosts,
        how: PlanningOptions,
        slot_s: float,
        hours: OpenHours,
        spools: Spools,
        use: StartUse,
        happened: Happened,
        pacer_of: PacerOf,
    ) -> None:
        self._pacer_of, self._keep_s = pacer_of, SPARE_S
        self._hosts, self._store, self._how = hosts, hosts.store, how
        self._slot_s, self._hours, self._spools = slot_s, hours, spools
        self._use, self._happened = use, happened
        self._grid_s: float | None = None
        # Relays without room, and what they kept when they said so.
        self._full: dict[str, int] = {}
        # By source: planned slots in which nothing has moved, one behind the other, and since when.
        self._vain: Counter[str] = Counter()
        self._vain_since_s: dict[str, float] = {}
        self._plan_s = 0.0
        self._piece_tries: Counter[PieceKey] = Counter()
        self._why: dict[str, str] = {}

    def run(self, work: dict[str, SourceWork], is_over: Callable[[], bool]) -> set[str]:
        """Plan, and carry out until all has moved or something is not as planned.

        Returns
        -------
        set of str
            Sources whose files have changed.

        Raises
        ------
        StoreError
            The destination's disk fails.
        """
        self._require_slot()
        self._spools.look()
        self._spools.forget_unneeded({name: each.needed for name, each in work.items()})
        begins_s = self._next_boundary_s(self._plan_s)
        begun_s = time.monotonic()
        found = self._plan(work, begins_s)
        now_s = time.monotonic()
        self._plan_s = PLANNING_SPARE * (now_s - begun_s)
        # Its first slot must not be half over: then there is a plan for a later one.
        if found is None or now_s > begins_s + LATE_PART * self._slot_s:
            return set()
        problem, plan = found
        self._happened.planned(problem, _unix_s(begins_s), work)
        changed: set[str] = set()
        for slot, tasks in plan.tasks.items():
            slot_begins_s = begins_s + slot * self._slot_s
            if not self._wait_until(slot_begins_s, is_over):
                break
            # What came late into one slot must not leave in the same.
            if time.monotonic() > slot_begins_s + LATE_PART * self._slot_s:
                break
            outcome = self._carry_out(tasks, slot_begins_s, is_over)
            changed |= outcome.changed
            if not outcome.is_as_planned:
                break
        return changed

    def predict(self, work: dict[str, SourceWork]) -> None:
        """Plan alone: note when all would have come."""
        self._require_slot()
        self._spools.look()
        self._spools.forget_unneeded({name: each.needed for name, each in work.items()})
        begins_s = time.monotonic()
        found = self._plan(work, begins_s)
        if found is not None:
            self._use.waits = found[1].waits(_unix_s(begins_s))

    def _require_slot(self) -> None:
        """Refuse slots in which nothing could be asked and answered, and too many of them."""
        self._require_few()
        answers = {n: each.answer_s for n, each in self._hosts.network.known.items()}
        slowest = max(answers, key=answers.__getitem__, default=None)
        if slowest is not None and self._slot_s < answers[slowest]:
            raise ProblemError(
                f"--slot must be at least a round trip, got {self._slot_s:g} s, and {slowest} "
                f"answers after {answers[slowest]:.2g} s; take slots of several seconds"
            )

    def _require_few(self) -> None:
        last = self._hours.last_opening()
        if last is None:
            return
        (tail, head), opens_s = last
        left_s = opens_s - self._hours.now_s()
        if left_s > MOST_SLOTS * self._slot_s:
            raise ProblemError(
                f"--slot is too short, got {self._slot_s:g} s: {left_s / self._slot_s:.0f} slots "
                f"pass until {tail} -> {head} opens at {self._hours.text(opens_s)}, and plans have "
                f'at most {MOST_SLOTS}; take --slot "{math.ceil(left_s / MOST_SLOTS)} s" or longer'
            )

    def _next_boundary_s(self, after_s: float) -> float:
        """Return when a slot of the grid begins, so long from now; the first grid begins now."""
        now_s = time.monotonic()
        if self._grid_s is None:
            unix_s = time.time()
            self._grid_s = now_s - (unix_s - self._happened.begins_s(unix_s))
        n_slots = math.ceil((now_s + after_s - self._grid_s) / self._slot_s)
        return self._grid_s + n_slots * self._slot_s

    def _plan(
        self, work: dict[str, SourceWork], begins_s: float
    ) -> tuple[Problem, SlotPlan] | None:
        """Plan from where all lies; sources without a way are given up."""
        collection = self._hosts.collection
        begins = datetime.fromtimestamp(_unix_s(begins_s), UTC)
        links = self._hours.file_links(closed_too=True) or collection.network["links"]
        relays = relays_in(links, self._spools.relays(), collection.destination)
        rooms = {name: float(self._full.get(name, math.inf)) for name in relays}
        while work:
            kept = {
                source: {index: each.relay for index, each in of.items() if each.relay in relays}
                for source, of in self._spools.kept.items()
                if source in work
            }
            problem = slotted_problem(collection, self._hours, work, kept, rooms, begins)
            try:
                plan = slotted_plan(problem, self._how, self._slot_s, work)
            except InfeasibleError as error:
                lost = [host for host in error.hosts if host in work] or list(work)
                for host in lost:
                    self._hosts.end(
                        host,
                        f"no route leads from it to the destination, in slots of {self._slot_s:g} "
                        f"s, by relays that keep pieces ({', '.join(sorted(relays)) or 'none'}): "
                        f"{error}",
                    )
                    del work[host]
                continue
            schedule = plan.schedule
            self._hosts.log.write(
                "planned",
                method=schedule.method,
                makespan_s=schedule.makespan_s,
                promises=False,
                routes=[list(route.hosts) for route in schedule.routes],
                expected=[],
            )
            if self._use.predicted_s is None:
                so_far_s = begins_s - self._use.begun_s
                self._use.predicted_s = so_far_s + schedule.makespan_s
            self._keep_s = schedule.makespan_s + SPARE_S
            return problem, plan
        return None

    def _wait_until(self, until_s: float, is_over: Callable[[], bool]) -> bool:
        """Wait for a slot; False where all is to be planned again."""
        while (left_s := until_s - time.monotonic()) > 0:
            self._hosts.take_in()
            self._hosts.look()
            if is_over() or self._hosts.any_new_work():
                return False
            time.sleep(min(left_s, LOOK_S))
        return not is_over()

    # A slot ---------------------------------------------------------------------------------------

    def _carry_out(
        self, tasks: Sequence[HopTask], begins_s: float, is_over: Callable[[], bool]
    ) -> SlotOutcome:
        """Move what a slot is to move; what was begun in it comes to its end."""
        slot = _Slot(
            self._hosts,
            self._spools,
            self._happened,
            self._pacer_of,
            begins_s,
            begins_s + self._slot_s,
            self._keep_s,
            is_over,
        )
        self._store.start(slot.recorded)
        try:
            threads = [
                threading.Thread(
                    target=slot.move, args=(task,), name=f"hop-{task.tail}", daemon=True
                )
                for task in tasks
            ]
            for each in threads:
                start_thread(each)
            while any(each.is_alive() for each in threads):
                self._hosts.look()
                self._store.look()
                slot.cut_stalled(self._hosts.collection.limits.patience_s)
                for each in threads:
                    each.join(LOOK_S / len(threads))
        finally:
            slot.stop()
            self._store.stop(rereads=False)
        if slot.failure is not None:
            raise slot.failure
        return self._judge(tasks, slot)

    def _judge(self, tasks: Sequence[HopTask], slot: _Slot) -> SlotOutcome:
        """Count what has moved, and what has not and why; let relays forget what has come."""
        self._spools.came(slot.from_relays())
        for relay in slot.stalled:
            self._spools.note_stalled(relay)
        for hosts, n_bytes in slot.route_bytes.items():
            self._use.routes[hosts] += n_bytes
            self._use.route_sessions[hosts] = max(1, self._use.route_sessions[hosts])
        for relay in slot.without_room:
            kept = [each for of in self._spools.kept.values() for each in of.values()]
            self._full[relay] = sum(e.piece.n_bytes for e in kept if e.relay == relay)
        for key, why in slot.no_good.items():
            self._piece_tries[key] += 1
            self._hosts.log.write("answer refused", source=key.source, why=why)
            if self._piece_tries[key] >= MOST_PIECE_TRIES:
                self._store.abandon(key.source, key.piece, why)
        is_as_planned = True
        for task in tasks:
            moved = slot.moved[task]
            is_as_planned &= moved == len(task.pieces)
            if moved:
                self._vain.pop(task.source, None)
                self._vain_since_s.pop(task.source, None)
                self._full.pop(task.tail, None)
                continue
            self._vain[task.source] += 1
            self._vain_since_s.setdefault(task.source, time.monotonic())
            self._why[task.source] = slot.why.get(task, "nothing has moved in its slot")
            self._hosts.log.write("slot in vain", source=task.source, why=self._why[task.source])
        for source, n in list(self._vain.items()):
            silent_s = time.monotonic() - self._vain_since_s[source]
            is_over = n >= MOST_TRIES and silent_s > self._hosts.collection.limits.patience_s
            if is_over and source not in self._hosts.ended:
                self._hosts.end(source, f"nothing moved in {n} slots: {self._why[source]}")
        return SlotOutcome(is_as_planned and not slot.changed, slot.changed)


def _unix_s(monotonic_s: float) -> float:
    """Return an instant of the clock that never jumps, in seconds since 1970."""
    return time.time() + monotonic_s - time.monotonic()


class _Slot:
    """Moves of one slot: each hop in a thread of its own."""

    def __init__(
        self,
        hosts: Hosts,
        spools: Spools,
        happened: Happened,
        pacer_of: PacerOf,
        begins_s: float,
        ends_s: float,
        keep_s: float,
        is_over: Callable[[], bool],
    ) -> None:
        self._pacer_of = pacer_of
        self._hosts, self._spools, self._happened = hosts, spools, happened
        self._ends_s, self._keep_s = ends_s, keep_s
        self._begun_s, self._is_pull_over = _unix_s(begins_s), is_over
        self._lock = threading.Lock()
        # What ends a hop, and when an answer to it has last come.
        self._to_abort: dict[HopTask, Callable[[], None]] = {}
        self._heard_s: dict[HopTask, float] = {}
        self._is_over = False
        self._recorded: set[PieceKey] = set()
        self._fetched: dict[PieceKey, str] = {}
        self.failure: Exception | None = None
        self.moved: Counter[HopTask] = Counter()
        self.why: dict[HopTask, str] = {}
        self.no_good: dict[PieceKey, str] = {}
        self.changed: set[str] = set()
        self.without_room: set[str] = set()
        self.stalled: set[str] = set()
        self.route_bytes: Counter[tuple[str, ...]] = Counter()

    @property
    def _is_time(self) -> bool:
        return not (self._is_over or self._is_pull_over()) and time.monotonic() < self._ends_s

    def recorded(self, pieces: list[PieceKey], failure: Exception | None) -> None:
        """Hear from the store's thread."""
        with self._lock:
            self._recorded.update(pieces)
            self.failure = self.failure or failure

    def from_relays(self) -> dict[str, list[tuple[str, int]]]:
        """Return what has come from relays and is recorded, by relay."""
        found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for key, relay in self._fetched.items():
            if key in self._recorded:
                found[relay].append(key)
        return found

    def stop(self) -> None:
        """Let whatever is under way fail."""
        with self._lock:
            self._is_over = True
            to_abort, self._to_abort = self._to_abort, {}
        for abort in to_abort.values():
            abort()

    def cut_stalled(self, patience_s: float) -> None:
        """End hops to the destination of which, after the slot, nothing whole comes for so long.

        Whoever sends a byte a second never times out. Orders to relays have a deadline.
        """
        now_s = time.monotonic()
        if now_s < self._ends_s:
            return
        with self._lock:
            stalled = [
                task
                for task in self._to_abort
                if task.head == self._hosts.collection.destination
                and now_s > self._heard_s[task] + patience_s
            ]
            to_abort = [self._to_abort.pop(task) for task in stalled]
        for task, abort in zip(stalled, to_abort, strict=True):
            self.why[task] = f"{task.tail}: no whole piece has arrived for {patience_s:g} s"
            if task.tail != task.source and not self.moved[task]:
                self.stalled.add(task.tail)
            abort()

    def _abort_by(self, task: HopTask, abort: Callable[[], None]) -> None:
        with self._lock:
            is_over = self._is_over
            self._to_abort[task], self._heard_s[task] = abort, time.monotonic()
        if is_over:
            abort()

    def _heard(self, task: HopTask) -> None:
        with self._lock:
            self._heard_s[task] = time.monotonic()

    def move(self, task: HopTask) -> None:
        """Move the pieces of one hop; why not all of them have moved is noted."""
        try:
            if task.head != self._hosts.collection.destination:
                self._store_at_relay(task)
            elif task.tail == task.source:
                self._fetch_from_source(task)
            else:
                self._fetch_from_relay(task)
            with self._lock:
                self._to_abort.pop(task, None)
        except StoreError as error:
            self.failure = self.failure or error
        except (DatacollectError, OSError) as error:
            self.why.setdefault(task, str(error))
            if isinstance(error, RefusedError) and error.status == NO_ROOM:
                self.without_room.add(task.head)

    def _note(self, task: HopTask, pieces: Sequence[int]) -> None:
        """Note that pieces move, before they count as moved anywhere."""
        self._happened.moved(task, pieces, self._begun_s)

    def _count(self, task: HopTask, hosts: tuple[str, ...], n_bytes: int) -> None:
        with self._lock:
            self.moved[task] += 1
            if n_bytes:
                self.route_bytes[hosts] += n_bytes

    # To a relay -----------------------------------------------------------------------------------

    def _store_at_relay(self, task: HopTask) -> None:
        sizes = self._hosts.store.layout(task.source).piece_bytes
        left = deque(task.pieces)
        with self._hosts.network.converse(task.head) as conversation:
            self._abort_by(task, conversation.abort)
            while left and self._is_time:
                batch: list[int] = []
                n_bytes = 0
                while left and len(batch) < ORDER_PIECES and (not batch or n_bytes < ORDER_BYTES):
                    batch.append(left.popleft())
                    n_bytes += int(sizes[batch[-1]])
                self._note(task, batch)
                refused = self._spools.order(conversation, task.source, batch, self._keep_s)
                kept = [piece for piece in batch if piece not in refused]
                self._note(task, kept)  # now, which may be in the next slot
                for _ in kept:
                    self._count(task, (), 0)
                if refused:
                    self._note_refused(task, refused)

    def _note_refused(self, task: HopTask, refused: Mapping[int, str]) -> None:
        self.why[task] = next(iter(refused.values()))
        if any("no room" in why for why in refused.values()):
            self.without_room.add(task.head)
        if any(CHANGED in why for why in refused.values()):
            self.changed.add(task.source)

    # From a relay ---------------------------------------------------------------------------------

    def _fetch_from_relay(self, task: HopTask) -> None:
        kept = self._spools.kept[task.source]
        left = deque(kept[piece] for piece in task.pieces if piece in kept)
        asked: deque[KeptPiece] = deque()
        pacer = self._pacer_of((task.tail,))
        with self._hosts.network.converse(task.tail, pacer) as conversation:
            self._abort_by(task, conversation.abort)
            while asked or (left and self._is_time):
                if left and len(asked) < AHEAD and self._is_time:
                    self._spools.request(conversation, left[0])
                    asked.append(left.popleft())
                    continue
                each = asked.popleft()
                try:
                    data = self._spools.receive(conversation, each)
                except RefusedError as error:
                    self.why[task] = str(error)
                    self._heard(task)
                    continue
                self._heard(task)
                self._put(task, each.piece.index, data, each.relay)

    def _put(self, task: HopTask, piece: int, data: bytes, relay: str) -> None:
        """Write a piece that a relay has kept; its hash is right, or it had not opened."""
        from blake3 import blake3

        key = PieceKey(task.source, piece)
        spans = [segment.span for segment in self._hosts.store.segments(key)]
        if sum(span.n_bytes for span in spans) != len(data):
            return  # some of its files are waited for no more
        self._note(task, [piece])
        self._hosts.store.put(key, spans, memoryview(data), blake3(data).digest())
        self._fetched[key] = relay
        self._count(task, (task.source, task.tail, task.head), len(data))

    # From a source --------------------------------------------------------------------------------

    def _fetch_from_source(self, task: HopTask) -> None:
        store, left = self._hosts.store, deque(task.pieces)
        peer = self._hosts.sources[task.source].open(())
        self._abort_by(task, peer.abort)
        asked: deque[int] = deque()
        buffer = memoryview(bytearray(MOST_BYTES))
        try:
            while asked or (left and self._is_time):
                if left and self._is_time:
                    segments = store.segments(PieceKey(task.source, left[0]))
                    if not segments:
                        self._note(task, [left.popleft()])
                        self._count(task, (), 0)
                        continue
                    if len(asked) < AHEAD and (not asked or peer.has_room(segments)):
                        peer.request(segments)
                        asked.append(left.popleft())
                        continue
                self._receive(task, peer, asked.popleft(), buffer)
        finally:
            peer.close()

    def _receive(self, task: HopTask, peer: Peer, piece: int, buffer: memoryview) -> None:
        key = PieceKey(task.source, piece)
        spans = [segment.span for segment in self._hosts.store.segments(key)]
        answer = peer.receive(buffer)
        self._heard(task)
        if answer.verdict is Verdict.VERIFIED:
            self._note(task, [piece])
            self._hosts.store.put(key, spans, buffer[: answer.n_bytes], answer.digest)
            self._count(task, (task.source, task.head), answer.n_bytes)
            return
        self.why[task] = answer.why or answer.verdict.value
        self.no_good[key] = self.why[task]
        if answer.verdict is Verdict.CHANGED:
            self.changed.add(task.source)
