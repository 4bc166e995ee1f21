"""One start of a pull: sources get ready each by itself, and what is ready is planned and fetched.

While bytes flow others get ready; then the round ends once what it has asked for is there, and all
is planned again. Complete is what the state says in the end, never the absence of a complaint.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from datacollect.control.chained.learning import LearningController
from datacollect.errors import InfeasibleError, StoreError
from datacollect.net.fan_out import LOOK_S, Begun, Outcome
from datacollect.transfer.pull.answering import Use, answer_of
from datacollect.transfer.pull.core.books import SourceWork
from datacollect.transfer.pull.core.core import CollectorCore
from datacollect.transfer.pull.far import HowFar, how_far
from datacollect.transfer.pull.planning import (
    largest_piece,
    may_strand,
    planned,
    possible_links,
    problem_of,
    recent_rates,
    says_links,
)
from datacollect.transfer.pull.preparing import Cancelled, Gate, Preparation
from datacollect.transfer.pull.rounds import Round
from datacollect.transfer.pull.telling import Telling
from datacollect.transfer.pull.words import named, unused, why_of
from datacollect.transfer.store.folder.log import without_secrets
from datacollect.transfer.store.history import planned_routes
from datacollect.transfer.store.state.pieces import piece_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacollect.files.choices import RunMethod
    from datacollect.transfer.protocol.source import Reached, Source
    from datacollect.transfer.pull.answer import Pulled
    from datacollect.transfer.pull.config.file import Collection
    from datacollect.transfer.pull.core.patience import Silence
    from datacollect.transfer.pull.planning import Planned
    from datacollect.transfer.sources.agent.network import Network
    from datacollect.transfer.store.folder.log import Log
    from datacollect.transfer.store.store import Store

# So often in one start a source whose files have changed is listed and fetched again.
MOST_RELISTINGS = 3
# Once a source is ready, others that are as quick may join the first plan.
SETTLE_S = 0.5
# A round goes on for so long at least before more is planned; for longer, the more often it was.
REGROUP_S = 1.0
# After a round that has brought nothing.
IDLE_S = 0.5


@dataclass
class Collecting:
    """One start of a collection.

    Parameters
    ----------
    collection : Collection
    sources : mapping of str to Source
        All hosts of the collection: also those that only relay.
    network : Network
    store : Store
    log : Log
    method : str
    watch : callable
        Called several times a second with what looks how far it is.
    tell : callable
        Takes lines that a user wants to know at once.
    """

    collection: Collection
    sources: Mapping[str, Source]
    network: Network
    store: Store
    log: Log
    method: RunMethod
    watch: Callable[[Callable[[], HowFar]], None]
    tell: Callable[[str], None]
    gate: Gate = field(default_factory=Gate)
    reached: dict[str, Reached] = field(default_factory=dict)
    _use: Use = field(default_factory=Use)
    _outcomes: queue.SimpleQueue[Outcome[bool]] = field(default_factory=queue.SimpleQueue)
    _preparing: dict[str, Begun[bool]] = field(default_factory=dict)
    _ready: set[str] = field(default_factory=set)
    _new: set[str] = field(default_factory=set)
    _ended: dict[str, str] = field(default_factory=dict)
    telling: Telling = field(init=False)
    _relistings: Counter[str] = field(default_factory=Counter)
    _last_resorts: set[str] = field(default_factory=set)
    _silences: dict[str, Silence] = field(default_factory=dict)
    _left: dict[str, set[int]] = field(default_factory=dict)
    _late: dict[str, set[int]] = field(default_factory=dict)
    _n_regroups: int = 0

    def __post_init__(self) -> None:
        self.telling = Telling(self.collection.limits, self.tell)

    def run(self, *, plan_only: bool = False, verify: bool = False) -> Pulled:
        """Carry it out; `verify`: read all that has come before again first.

        Raises
        ------
        StoreError
            The destination folder fails, or nothing of all that is wanted fits into it.
        KeyboardInterrupt
            What is verified is recorded.
        """
        try:
            self._begin(verify=verify)
            if plan_only:
                self._plan_only()
            else:
                self._collect()
                for name in sorted(self._ready):
                    self.store.finish(name)
            answer = answer_of(self.store.state, self.sources, self._ended, self.method, self._use)
            self.log.write("pull ends", **answer.to_dict())
            return answer
        finally:
            self.gate.close()

    # Getting ready ----------------------------------------------------------------------------

    def _begin(self, *, verify: bool) -> None:
        """Write down what is wanted, before anybody is asked; then ask all at once."""
        self.log.write("pull begins", method=self.method, folder=str(self.store.folder))
        state = self.store.state
        if self.collection.sources is None:
            wanted = [n for n in self.sources if state.fact(f"serves {n}") != 0]
        else:
            wanted = list(self.collection.sources)
        state.begin_start(wanted)
        lost = self.store.mend()
        if lost:
            self.log.write("files are to be fetched again: they are not there any more", n=lost)
        if verify:
            self._verify()
        self.store.clean()
        for name in self.sources:
            self._prepare(name)

    def _verify(self) -> None:
        """Read all that has come again; what is not as it was is fetched again."""
        found = self.store.verify()
        self.log.write("verified", **found.to_dict())
        for each in [*found.gone, *found.altered]:
            self.tell(f"note: {each.source}/{each.path}: {each.why}; it is fetched again")

    def _prepare(self, name: str) -> None:
        limits = self.collection.limits
        preparation = Preparation(
            self.sources[name],
            self.store,
            self.network,
            self.gate,
            limits.patience_s,
            limits.timeout_s,
            lambda error: self._trouble(name, error),
            lambda reached: self._reached(name, reached),
            self._size_of_pieces,
            self.collection.wanted(name),
            lambda pattern: self.tell(unused(name, pattern)),
            lambda what: self.telling.asking(name, what),
        )
        self._ready.discard(name)
        self._preparing[name] = Begun(name, lambda _: preparation.run(), self._outcomes.put)

    def _reached(self, name: str, reached: Reached) -> bool:
        """Note what a host has said; return whether its files are wanted. From its own thread."""
        self.reached[name] = reached
        ahead_s = reached.clock_ahead_s
        self.log.write(
            "host reached",
            host=name,
            over=list(reached.relays),
            clock_ahead_s=None if ahead_s is None else round(ahead_s, 3),
            relays_to=list(reached.relays_to),
        )
        if self.collection.sources is not None:
            return name in self.collection.sources
        with self.gate:
            self.store.state.set_fact(f"serves {name}", int(reached.serves))
            self.store.state.set_wanted(name, reached.serves)
        return reached.serves

    def _trouble(self, name: str, error: BaseException) -> None:
        """Note why a try has failed, and say so the first time. From the source's own thread."""
        why = why_of(name, error)
        self.log.write("not reached", host=name, why=why)
        with self.gate:
            self.store.state.note_trouble(name, why)
        self.telling.has_failed(name, why)

    def _size_of_pieces(self, name: str) -> int:
        """Return how the files of a source are cut, from what it has listed."""
        given = self.collection.limits.piece_bytes
        if given is not None:
            return given
        return piece_size(self.store.state.wanted_bytes(name))

    def _take(self, outcome: Outcome[bool]) -> None:
        """Take in what became of a source."""
        name, error = outcome.name, outcome.error
        self._preparing.pop(name, None)
        if isinstance(error, StoreError):
            raise error
        if error is None and outcome.value:
            self._ready.add(name)
            self._new.add(name)
            self._left.pop(name, None)
            self._late.pop(name, None)
        if error is None or isinstance(error, Cancelled):
            return
        if self._is_wanted(name):
            self._end(name, why_of(name, error))
        else:
            self.log.write("not reached", host=name, why=why_of(name, error))

    def _watched(self, core: CollectorCore | None = None) -> None:
        """Let whoever watches look how far it is, and say who does not answer."""
        self.telling.look(core)
        self.watch(
            lambda: how_far(
                self.store.state, core, filter(self._is_wanted, list(self._preparing)), self._ended
            )
        )

    def _is_wanted(self, name: str) -> bool:
        return any(each.name == name for each in self.store.state.wanted())

    def _is_awaited(self) -> bool:
        """Whether a host may still change what comes of it: one that is wanted, or not tried yet.

        A relay that is away is tried as long as others have something to do, and no longer.
        """
        return any(
            self._is_wanted(n) or n not in self.telling.failed for n in list(self._preparing)
        )

    def _end(self, name: str, why: str) -> None:
        """Give a source up, and say so at once."""
        self._ended[name] = why = without_secrets(why)
        self.store.state.note_trouble(name, why)
        self.log.write("source given up", source=name, why=why)
        self.tell(f"given up: {named(name, why)}")

    def _await(self, *, everything: bool = False) -> None:
        """Wait until something is ready to be fetched, and what is as quick; or nothing comes."""
        since_s: float | None = None
        while self._is_awaited():
            if self._new and not everything:
                since_s = since_s or time.monotonic()
                left_s = since_s + SETTLE_S - time.monotonic()
                if left_s <= 0:
                    return
            else:
                left_s = LOOK_S
            try:
                self._take(self._outcomes.get(timeout=left_s))
            except queue.Empty:
                for begun in self._preparing.values():
                    begun.look()
                self._watched()
                continue
            if not self._new and self._has_work() and not everything:
                return

    def _has_work(self) -> bool:
        return any(self._needed(name) for name in self._fetchable())

    def _needed(self, name: str) -> frozenset[int]:
        """Return the pieces of a source that are to be fetched; refused ones are not any more."""
        needed = frozenset(self.store.needed(name))
        return needed & self._left[name] if name in self._left else needed

    def _fetchable(self) -> list[str]:
        known = set(self.store.known_sources())
        return sorted(known & self._ready - self._ended.keys())

    # Plan and fetch ---------------------------------------------------------------------------

    def _plan_only(self) -> None:
        self._await(everything=True)
        self._require_any_room()
        if (work := self._work()) and (found := self._plan(work)):
            self._use.predicted_s = found.predicted_s

    def _collect(self) -> None:
        while True:
            self._await()
            self._new.clear()
            work = self._work()
            if work:
                for name in self._round(work):
                    self._relist(name)
            self._require_any_room()
            if not work and not self._is_awaited():
                break
        self.store.settle_rest()

    def _relist(self, name: str) -> None:
        """List a source again whose files have changed meanwhile."""
        if self._relistings[name] >= MOST_RELISTINGS or name in self._ended:
            return
        self._relistings[name] += 1
        self._prepare(name)

    def _require_any_room(self) -> None:
        """Stop where nothing of all that is wanted fits."""
        if self._is_awaited() or self._use.routes:
            return
        put_off = self.store.put_off_sources()
        if put_off and put_off.keys() >= {n for n in self._ready if self._lacks(n)}:
            raise StoreError("; ".join(put_off.values()))

    def _lacks(self, name: str) -> bool:
        return any(row[0] == name for row in self.store.state.waiting()) or name in (
            self.store.put_off_sources()
        )

    def _work(self) -> dict[str, SourceWork]:
        work = {}
        for name in self._fetchable():
            needed = self._needed(name)
            if needed:
                layout = self.store.layout(name)
                pieces = tuple(layout.pieces.tolist()), tuple(layout.piece_bytes.tolist())
                work[name] = SourceWork(*pieces, needed, layout.kin)
        return work

    def _plan(self, work: dict[str, SourceWork]) -> Planned | None:
        """Plan; sources without a way are given up."""
        links = possible_links(self.collection.destination, dict(self.reached))
        rates = recent_rates(self.store.state.rates())
        is_known = says_links(self.collection) or all(
            any(source == name for source, _ in rates) for name in work
        )
        if is_known and not says_links(self.collection):
            links = [link for link in links if link in rates]
        while work:
            resorts = [link for link in links if link[0] in self._last_resorts]
            problem = problem_of(self.collection, work, links, rates, resorts)
            try:
                return planned(
                    problem,
                    self.method,
                    connections=self.collection.limits.connections,
                    piece_bytes=largest_piece(work),
                    is_known=is_known,
                )
            except InfeasibleError as error:
                hosts = [host for host in error.hosts if host in work]
                if not hosts:
                    raise
                for host in hosts:
                    if host not in self._last_resorts and says_links(self.collection):
                        self._last_resorts.add(host)
                    else:
                        self._end(host, f"there is no way from it to the destination: {error}")
                        del work[host]
        return None

    def _round(self, work: dict[str, SourceWork]) -> set[str]:
        """Fetch what is needed; return the sources whose files have changed meanwhile."""
        found = self._plan(work)
        if found is None:
            return set()
        if found.predicted_s is not None and (self._use.predicted_s is None or self._n_regroups):
            self._use.predicted_s = time.monotonic() - self._use.begun_s + found.predicted_s
        self.log.write(
            "planned",
            method=self.method,
            makespan_s=found.predicted_s,
            routes=[list(route.hosts) for route in found.schedule.routes],
            expected=planned_routes(found.schedule) if found.predicted_s is not None else [],
        )
        limits = self.collection.limits
        core = CollectorCore(
            work,
            found.controller,
            in_flight_bytes=limits.in_flight_bytes,
            patience_s=limits.patience_s,
            silences=self._silences,
            late=self._late,
            stranded_after_s=may_strand(self.collection, work, self._last_resorts),
        )
        try:
            changed = Round(
                core,
                self.store,
                lambda source, relays: self.sources[source].open(relays),
                self.log,
                found.plan_rest,
                self._watched,
                self._is_more,
            ).run()
        finally:
            self._note_round(core)
        if isinstance(found.controller, LearningController):
            self._remember(found.controller)
        for name, why in core.given_up.items():
            self._end(name, why)
        if not core.route_bytes and any(core.todo.values()):
            time.sleep(IDLE_S)
        return changed - core.given_up.keys()

    def _note_round(self, core: CollectorCore) -> None:
        self._silences = core.silences()
        self._left |= {name: todo | core.late.put_off[name] for name, todo in core.todo.items()}
        self._late |= core.late.pieces
        self._use.late |= {n: self.store.files_of(n, late) for n, late in self._late.items()}
        self._last_resorts |= core.stranded
        self._use.routes.update(core.route_bytes)
        self._use.refetched.update(core.refetched)
        for hosts, n in core.route_sessions.items():
            self._use.route_sessions[hosts] = max(n, self._use.route_sessions[hosts])

    def _is_more(self, round_s: float) -> bool:
        """Whether more is ready, and the round is to end so that all is planned again."""
        try:
            while True:
                self._take(self._outcomes.get_nowait())
        except queue.Empty:
            pass
        if not self._new or round_s < REGROUP_S * (1 + self._n_regroups):
            return False
        if not any(self._needed(name) for name in self._new & set(self._fetchable())):
            self._new.clear()
            return False
        self._n_regroups += 1
        return True

    def _remember(self, learned: LearningController) -> None:
        """Keep what was learned for the next start, and the prediction that it allowed."""
        self.store.state.set_rates(learned.link_rates())
        if self._use.predicted_s is None and learned.predicted_end_s is not None:
            self._use.predicted_s = learned.predicted_end_s
