"""Pulling a collection: contact, list, plan, fetch, then look at what has changed meanwhile."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.control.learning import LearningController
from datacollect.errors import InfeasibleError, ProblemError, TransferError, nearest_hint
from datacollect.methods.names import ADAPTIVE
from datacollect.signing import read_private_key
from datacollect.transfer.collector.answer import Pulled, RouteUse
from datacollect.transfer.collector.books import SourceWork
from datacollect.transfer.collector.config import Collection
from datacollect.transfer.collector.contacts import Contacts, new_collection_number
from datacollect.transfer.collector.core import CollectorCore
from datacollect.transfer.collector.history import planned_routes
from datacollect.transfer.collector.inventory import Listing, pages_of
from datacollect.transfer.collector.log import Log, without_secrets
from datacollect.transfer.collector.paths import STATE_FOLDER
from datacollect.transfer.collector.peers import AgentPeer
from datacollect.transfer.collector.pieces import piece_size
from datacollect.transfer.collector.planning import (
    METHODS,
    planned,
    possible_links,
    problem_of,
    says_links,
    warm_up,
)
from datacollect.transfer.collector.rounds import Round
from datacollect.transfer.collector.servers import Servers
from datacollect.transfer.collector.state import FileState, Missing
from datacollect.transfer.collector.store import Store
from datacollect.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike
    from typing import Any

    from datacollect.choices import RunMethod
    from datacollect.transfer.collector.peers import Peer
    from datacollect.transfer.collector.planning import Planned

# So often in one start files that have changed are listed and fetched again.
MOST_ROUNDS = 4
# Rates that were observed longer ago are learned anew.
OLDEST_RATES_S = 24 * 3600.0
# Room that is left free, for the state and for others.
SPARE_BYTES = 16 * 2**20


def pull(
    collection: Collection | str | PathLike[str] | Mapping[str, Any],
    into: str | PathLike[str],
    method: RunMethod = ADAPTIVE,
    *,
    plan_only: bool = False,
    watch: Callable[[CollectorCore], None] | None = None,
) -> Pulled:
    """Collect for real: fetch, verify and keep every file of a collection.

    Files of source ``S`` arrive as ``into/S/path``. Whatever ends it, started again it goes on;
    what is verified is not fetched again. Files that have changed at their source since, and new
    ones, are fetched.

    Parameters
    ----------
    collection : Collection, path-like or mapping
        A collection file, or what it says.
    into : path-like
        The destination folder; made where it is absent.
    method : str, optional
        ``adaptive``, ``coordinated``, ``best-path`` or ``direct``.
    plan_only : bool, optional
        List and plan, move nothing.
    watch : callable, optional
        Called several times a second with the core, to show what is going on.

    Returns
    -------
    Pulled

    Raises
    ------
    ProblemError
        The collection, its key or the folder are not what they should be.
    InfeasibleError
        No source has a way to the destination.
    TransferError
        There is no room, or the disk fails.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.pull("nowhere.toml", "here")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
    """
    if method not in METHODS:
        raise ProblemError(
            f"method must be one of {', '.join(METHODS)}, got {method!r}"
            + nearest_hint(str(method), METHODS)
        )
    if not isinstance(collection, Collection):
        if isinstance(collection, (str, Path)) or hasattr(collection, "__fspath__"):
            collection = Collection.from_file(collection)
        else:
            collection = Collection.from_dict(collection)
    key = read_private_key(collection.key)
    store = Store(Path(into))
    try:
        log = Log(store.folder / STATE_FOLDER / "log.jsonl")
        try:
            number = store.state.fact("number") or new_collection_number()
            store.state.set_fact("number", number)
            contacts = Contacts(collection, key, number)
            servers = Servers(collection, contacts)
            return _Pull(collection, store, contacts, servers, log, method, watch).run(plan_only)
        finally:
            log.close()
    finally:
        store.close()


@dataclass
class _Pull:
    """One start of a collection."""

    collection: Collection
    store: Store
    contacts: Contacts
    servers: Servers
    log: Log
    method: RunMethod
    watch: Callable[[CollectorCore], None] | None
    begun_s: float = field(default_factory=time.monotonic)
    unreached: dict[str, str] = field(default_factory=dict)
    piece_bytes: int = 0
    predicted_s: float | None = None
    routes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    route_sessions: Counter[tuple[str, ...]] = field(default_factory=Counter)
    refetched: Counter[str] = field(default_factory=Counter)

    def run(self, plan_only: bool) -> Pulled:
        self.log.write("pull begins", method=self.method, folder=str(self.store.folder))
        lost = self.store.mend()
        if lost:
            self.log.write("files are to be fetched again: they are not there any more", n=lost)
        # Others' answers take their time, and imports for planning a second or two.
        prepares = threading.Thread(
            target=warm_up, args=(self.collection, self.method), daemon=True
        )
        prepares.start()
        sources = self._contact()
        self._list(sources)
        self.store.clean()
        prepares.join()
        if plan_only:
            if (work := self._work()) and (found := self._plan(work)):
                self.predicted_s = found.predicted_s
            return self._answer()
        again = self._round()
        for _ in range(MOST_ROUNDS - 1):
            late = self._late_sources()
            if not again | late:
                break
            self._list(again | late)
            again = self._round()
        return self._answer()

    # Contact and list -------------------------------------------------------------------------

    def _contact(self) -> set[str]:
        """Ask all agents; return the sources that can be listed."""
        troubles = self._ask((*self.collection.agents, *self.collection.servers))
        for name, why in troubles.items():
            self.log.write("agent not reached", agent=name, why=why)
        for name, contact in self.contacts.known.items():
            self.log.write(
                "agent reached",
                agent=name,
                over=list(contact.relays),
                clock_ahead_s=round(contact.clock_ahead_s + time.monotonic() - time.time(), 3),
                relays_to=list(contact.facts.relays_to),
            )
            self.store.state.set_fact(f"serves {name}", int(contact.facts.serves))
        wanted = self.collection.sources
        if wanted is None:
            serving = {n for n, contact in self.contacts.known.items() if contact.facts.serves}
            silent = {n for n in troubles if self.store.state.fact(f"serves {n}") != 0}
            wanted_names = serving | silent
        else:
            wanted_names = set(wanted)
        self.unreached = {n: why for n, why in troubles.items() if n in wanted_names}
        return wanted_names - self.unreached.keys()

    def _ask(self, names: Iterable[str]) -> dict[str, str]:
        """Ask agents, then other servers, which may be reached through them."""
        servers = self.collection.servers
        agents = [name for name in names if name not in servers]
        troubles = self.contacts.ask_all(agents) if agents else {}
        return troubles | self.servers.ask_all([name for name in names if name in servers])

    def _list(self, sources: Iterable[str]) -> None:
        """List sources, all at a time, and lay out what is new."""
        lists: dict[str, Listing] = {}

        def take(name: str) -> None:
            try:
                listing = Listing(self.store.state, name, self.store.folding)
                if name in self.collection.servers:
                    listing.take([self.servers.page(name, self.store.state.known_files(name))])
                else:
                    relays = self.contacts.known[name].relays
                    session, ticket = self.contacts.connect(name, relays)
                    with session:
                        listing.take(pages_of(session, ticket))
                lists[name] = listing
            except TransferError as error:
                self.unreached[name] = str(error)

        threads = [threading.Thread(target=take, args=(name,), daemon=True) for name in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._compare_and_lay_out(sorted(lists))

    def _compare_and_lay_out(self, sources: list[str]) -> None:
        state = self.store.state
        numbers = {name: state.source_id(name) for name in sources}
        total = 0
        for name, number in numbers.items():
            n_files, n_bytes = state.listed_bytes(number)
            self.log.write("listed", source=name, files=n_files, bytes=n_bytes)
            total += n_bytes
            state.end_listing(number)
        self._require_room()
        self.piece_bytes = (
            self.piece_bytes or self.collection.limits.piece_bytes or piece_size(total)
        )
        for name, number in numbers.items():
            # A request to another server is for one file, and so is a piece.
            apart = name in self.collection.servers
            self.store.know(name, state.lay_new_files(number, self.piece_bytes, apart=apart))

    def _require_room(self) -> None:
        """Say that there is no room before a byte moves."""
        needed = sum(n_bytes for _, _, n_bytes in self.store.state.waiting())
        needed = max(0, needed - self.store.begun_bytes())
        free = self.store.free_bytes() - SPARE_BYTES
        if needed > free:
            raise TransferError(
                f"{self.store.folder}: must have room for {format_bytes(needed)} more, has "
                f"it for {format_bytes(max(0, free))}; make room, name another folder with --into, "
                "or collect in parts, by patterns in [sources.NAME]"
            )

    def _late_sources(self) -> set[str]:
        """Return sources that were not reached before, and are now."""
        late: set[str] = set()
        deadline_s = self.begun_s + self.collection.limits.patience_s
        hosts = (*self.collection.agents, *self.collection.servers)
        while names := [n for n in self.unreached if n in hosts]:
            troubles = self._ask(names)
            late |= set(names) - troubles.keys()
            self.unreached |= troubles
            for name in late:
                self.unreached.pop(name, None)
            if late or time.monotonic() >= deadline_s:
                break
            time.sleep(0.5)
        return late

    # Plan and fetch ---------------------------------------------------------------------------

    def _work(self) -> dict[str, SourceWork]:
        work = {}
        for name in self.store.known_sources():
            layout = self.store.layout(name)
            needed = frozenset(self.store.needed(name))
            if needed:
                pieces = tuple(layout.pieces.tolist()), tuple(layout.piece_bytes.tolist())
                work[name] = SourceWork(*pieces, needed)
        return work

    def _plan(self, work: dict[str, SourceWork]) -> Planned | None:
        """Plan; sources without a way are set aside."""
        work = dict(work)
        links = possible_links(self.collection.destination, self.contacts.known)
        rates = self._remembered()
        is_known = says_links(self.collection) or all(
            any(source == name for source, _ in rates) for name in work
        )
        if is_known and not says_links(self.collection):
            links = [link for link in links if link in rates]
        while work:
            problem = problem_of(self.collection, work, links, rates)
            try:
                found = planned(
                    problem,
                    self.method,
                    connections=self.collection.limits.connections,
                    piece_bytes=self.piece_bytes,
                    is_known=is_known,
                )
            except InfeasibleError as error:
                hosts = [host for host in error.hosts if host in work]
                if not hosts:
                    raise
                for host in hosts:
                    self.unreached[host] = f"there is no way from it to the destination: {error}"
                    del work[host]
            else:
                return found
        return None

    def _round(self) -> set[str]:
        """Fetch what is needed; return the sources whose files have changed meanwhile."""
        work = self._work()
        found = self._plan(work) if work else None
        if found is None:
            self.store.settle_rest()
            return set()
        if self.predicted_s is None and found.predicted_s is not None:
            self.predicted_s = time.monotonic() - self.begun_s + found.predicted_s
        work = {name: each for name, each in work.items() if name not in self.unreached}
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
        )
        try:
            changed = Round(
                core, self.store, self._open_peer, self.log, found.plan_rest, self.watch
            ).run()
        finally:
            self.routes.update(core.route_bytes)
            self.refetched.update(core.refetched)
            for hosts, n in core.route_sessions.items():
                self.route_sessions[hosts] = max(n, self.route_sessions[hosts])
        if isinstance(found.controller, LearningController):
            self._remember(found.controller)
        for name, why in core.given_up.items():
            self.unreached[name] = why
        return changed - core.given_up.keys()

    def _remember(self, learned: LearningController) -> None:
        """Keep what was learned for the next start, and the prediction that it allowed."""
        self.store.state.set_rates(learned.link_rates())
        if self.predicted_s is None and learned.predicted_end_s is not None:
            self.predicted_s = learned.predicted_end_s

    def _remembered(self) -> dict[tuple[str, str], float]:
        """Return what was observed on links not too long ago."""
        return {
            (hosts[0], hosts[1]): rate
            for hosts, (rate, age_s) in self.store.state.rates().items()
            if age_s <= OLDEST_RATES_S and rate > 0
        }

    def _open_peer(self, source: str, relays: tuple[str, ...]) -> Peer:
        if source in self.collection.servers:
            return self.servers.open_peer(source, relays)
        session, ticket = self.contacts.connect(source, relays)
        return AgentPeer(session, ticket)

    # The end ----------------------------------------------------------------------------------

    def _answer(self) -> Pulled:
        state = self.store.state
        counts = state.counts().values()
        done = [each[FileState.DONE] for each in counts if FileState.DONE in each]
        missing = [*state.missing()]
        waiting = {name: (n, size) for name, n, size in state.waiting()}
        for name in sorted(self.unreached.keys() | waiting.keys()):
            why = self.unreached.get(name, "not fetched yet")
            n, size = waiting.get(name, (0, 0))
            what = f"{n} files, {format_bytes(size)}" if n else "all of it"
            missing.append(Missing(name, "", without_secrets(f"{what}: {why}")))
        routes = [
            RouteUse(hosts[0], hosts, n_bytes, self.route_sessions[hosts])
            for hosts, n_bytes in self.routes.items()
        ]
        answer = Pulled(
            complete=not missing,
            n_bytes=sum(n_bytes for _, n_bytes in done),
            n_files=sum(n for n, _ in done),
            predicted_makespan_s=self.predicted_s,
            makespan_s=time.monotonic() - self.begun_s,
            method=self.method,
            routes=tuple(routes),
            refetched={why: n for why, n in self.refetched.items() if n},
            missing=tuple(missing),
            assurances=self.servers.assurances(state),
        )
        self.log.write("pull ends", **answer.to_dict())
        return answer
