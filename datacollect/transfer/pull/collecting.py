"""One start of a pull: sources get ready each by itself; those that are ready are fetched from.

While bytes flow others get ready; then the round ends once what it has asked for is there, and all
is planned again. Complete is what the state says in the end and what lies in the folder then, never
the absence of a complaint.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from datacollect.control.chained.learning import LearningController
from datacollect.files.units import counted, format_bytes
from datacollect.net.fan_out import LOOK_S
from datacollect.transfer.pull.answering import StartUse, answer_of
from datacollect.transfer.pull.core.core import CollectorCore
from datacollect.transfer.pull.planner import Planner
from datacollect.transfer.pull.rounds import Round
from datacollect.transfer.store.history import planned_routes
from datacollect.transfer.store.path_lookup import displaced_files
from datacollect.transfer.store.state.failures import disk_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from datacollect.methods.execution import Execution
    from datacollect.methods.planning_options import PlanningOptions
    from datacollect.transfer.pull.answer import Pulled
    from datacollect.transfer.pull.core.todo import SourceWork
    from datacollect.transfer.pull.hosts import Hosts
    from datacollect.transfer.pull.open_hours import OpenHours
    from datacollect.transfer.pull.slots.in_slots import InSlots
    from datacollect.transfer.pull.slots.spools import Spools
    from datacollect.transfer.store.path_lookup import Displaced

# A round lasts at least this time before more is planned; longer, the more often that was done.
REGROUP_S = 1.0
# After a round that has brought nothing.
IDLE_S = 0.5
# How often those who wait for files that are read again look up.
REREAD_LOOK_S = 0.1
NOT_AS_WRITTEN = "not as it was written"


class Collecting:
    """One start of a collection, by stages: what is listed, planned, under way, done.

    Each has an owner of what is known there: `Hosts`, `Planner`, the `Round` and its core, and
    `StartUse`.

    Parameters
    ----------
    hosts : Hosts
    how : PlanningOptions
    held : callable
        Returns the sources that limits hold back.
    in_slots : callable, optional
        Takes hours and what is used, returns what carries plans in slots out, instead of rounds.
    spools : Spools, optional
        Relays that may keep pieces of the collection.
    """

    def __init__(
        self,
        hosts: Hosts,
        how: PlanningOptions,
        held: Callable[[], frozenset[str]] = frozenset,
        in_slots: Callable[[OpenHours, StartUse], InSlots] | None = None,
        spools: Spools | None = None,
    ) -> None:
        self._held, self._spools = held, spools
        self._hosts, self._store, self._log = hosts, hosts.store, hosts.log
        self._method = how.name
        self._planner = Planner(hosts.collection, how)
        self._hours = self._planner.hours
        hosts.is_closed = self._planner.is_closed
        # When hours change next, in seconds since 1970; what was said of them.
        self._changes_s = math.inf
        self._told: set[str] = set()
        hosts.use = self._use = StartUse()
        self._in_slots = None if in_slots is None else in_slots(self._hours, self._use)
        self._n_regroups, self._has_told_rereads = 0, False
        self._unpromised: set[str] = set()
        time_s = hosts.collection.limits.time_s
        self._until_s = math.inf if time_s is None else time.monotonic() + time_s

    def run(self, *, plan_only: bool = False, verify: bool = False) -> Pulled:
        """Carry it out; `verify`: read all that has come before again first.

        Raises
        ------
        StoreError
            The destination folder fails, or nothing of all that is wanted fits into it.
        KeyboardInterrupt
            What is verified is recorded.
        """
        hosts = self._hosts
        try:
            self._begin(verify=verify)
            if plan_only:
                self._plan_only()
            else:
                self._collect()
                for name in sorted(hosts.ready):
                    self._store.finish(name)
                self._store.clean()  # what was begun of a file that was adopted meanwhile
            self._note_lost()
            self._tell_unpromised()
            state = self._store.state
            if self._spools is not None and not plan_only and state.is_complete():
                self._spools.end()
            answer = answer_of(
                state,
                hosts.sources,
                hosts.ended,
                self._method,
                self._use,
                self._displaced(),
                hosts.compared,
            )
            self._log.write("pull ends", **answer.to_dict())
            return answer
        finally:
            hosts.gate.close()

    def _displaced(self) -> list[Displaced]:
        """Return which files that are done, of what was asked for, are not as they were placed."""
        view, folder = self._hosts.collection.view, self._store.folder
        with disk_errors(folder):
            found = displaced_files(folder, self._store.state)
            return [each for each in found if view.fits(each.file.path)]

    def _begin(self, *, verify: bool) -> None:
        """Write down what is wanted, before anybody is asked; then ask all at once."""
        hosts, state = self._hosts, self._store.state
        self._log.write(
            "pull begins",
            method=self._method,
            folder=str(self._store.folder),
            collection=state.fact("number"),
            destination=hosts.collection.destination,
        )
        if hosts.collection.sources is None:
            wanted = [n for n in hosts.sources if state.fact(f"serves {n}") != 0]
        else:
            wanted = list(hosts.collection.sources)
        state.begin_start(wanted, hosts.collection.view, hosts.collection.wanted_in_all)
        self._store.note_wanted(wanted)
        lost = self._store.mend()
        if lost:
            self._log.write("files are to be fetched again: they no longer exist", n=lost)
        if verify:
            self._verify()
        self._store.clean()
        self._tell_unpromised()
        if self._in_slots is None and not state.is_complete():
            self._tell_never(wanted)
        for name in hosts.sources:
            hosts.ask(name)

    def _tell_never(self, wanted: list[str]) -> None:
        """Say at once of which sources no way is ever open all along: what opens first is late."""
        for name, why in self._planner.never(wanted).items():
            self._hosts.report(f"note: {name}: {why}")

    def _tell_unpromised(self) -> None:
        """Say once of each file system whether what is collected outlasts a loss of power there."""
        for place, what in self._store.unpromised().items():
            if place not in self._unpromised:
                self._unpromised.add(place)
                self._hosts.report(
                    f"note: {place}: its file system does not promise that {what} survive a loss "
                    "of power: after one, start the same command with --verify"
                )

    def _verify(self) -> None:
        """Read all that has come again; what is not as it was is fetched again."""
        found = self._store.verify()
        self._log.write("verified", **found.to_dict())
        for each in [*found.gone, *found.altered]:
            self._hosts.report(f"note: {each.source}/{each.path}: {each.why}; it is fetched again")

    def _plan_only(self) -> None:
        self._hosts.wait(self._until_s, everything=True)
        self._require_any_room()
        work = self._hosts.work()
        if self._in_slots is not None:
            if work:
                self._in_slots.predict(work)
            return
        self._by_hours(work)
        if work and (found := self._plan(work, closed_too=True)) and not self._hours:
            self._use.predicted_s = found.predicted_s
            self._use.promised_s = self._planner.promised_s()
            if found.predicted_s is not None:
                self._use.assumptions = found.schedule.assumptions

    def _collect(self) -> None:
        hosts = self._hosts
        while True:
            hosts.wait(self._until_s)
            if time.monotonic() >= self._until_s:
                hosts.end_all(f"the pull was to end after {hosts.collection.limits.time_s:g} s")
                break
            hosts.new.clear()
            work = hosts.work()
            later: dict[str, float] = {}
            if self._in_slots is None:
                work, later = self._by_hours(work)
            if work:
                for name in self._moved(work):
                    hosts.ask_again(name)
            self._require_any_room()
            if later and not work:
                self._wait_for_hours(min(later.values()))
            elif not work and not hosts.any_awaited() and not self._wait_for_rereads():
                break
        self._store.settle_remaining()

    def _moved(self, work: dict[str, SourceWork]) -> set[str]:
        """Move what can be moved; return the sources whose files have changed meanwhile."""
        if self._in_slots is None:
            return self._round(work)
        return self._in_slots.run(work, lambda: time.monotonic() >= self._until_s)

    def _wait_for_rereads(self) -> bool:
        """Return whether files that were begun before may still turn out to lack something."""
        if self._store.n_rereads == 0:
            self._store.settle_remaining()  # where it doubts a file, it waits for that
            return bool(self._hosts.work())
        if not self._has_told_rereads:
            self._has_told_rereads = True
            n_files = counted(self._store.n_rereads, "unfinished file")
            self._hosts.report(
                f"note: {n_files} from an earlier start, or touched by another program, must be "
                "read again before they get their names"
            )
        time.sleep(REREAD_LOOK_S)
        self._watch(None)
        return True

    def _watch(self, core: CollectorCore | None) -> None:
        self._note_lost()
        self._hosts.look(core)

    def _note_lost(self) -> bool:
        """Tell which parts of unfinished files are fetched again, since they are not there."""
        lost = self._store.take_lost()
        for source, path, n_bytes in lost:
            self._use.refetched[NOT_AS_WRITTEN] += n_bytes
            self._log.write("parts lost", source=source, path=path, bytes=n_bytes)
            self._hosts.report(
                f"note: {source}/{path}: {format_bytes(n_bytes)} of its unfinished file "
                "were altered; they are fetched again"
            )
        return bool(lost)

    def _by_hours(
        self, work: dict[str, SourceWork]
    ) -> tuple[dict[str, SourceWork], dict[str, float]]:
        """Return what can come now, and when other sources open; say so, once each time."""
        hosts = self._hosts
        self._changes_s = self._hours.next_change_s()
        now, later, never = self._planner.by_hours(work, dict(hosts.reached))
        for name, why in never.items():
            hosts.end(name, why)
        for name, opens_s in later.items():
            line = f"{name} is closed by the hours of the collection until "
            line += self._hours.text(opens_s)
            if line not in self._told:
                self._told.add(line)
                self._log.write("closed", source=name, until_s=opens_s)
                hosts.report(f"note: {line}; from then on the pull collects from it again")
        return now, later

    def _wait_for_hours(self, opens_s: float) -> None:
        """Wait until something opens, or a source gets ready."""
        hosts = self._hosts
        while self._hours.now_s() < opens_s and time.monotonic() < self._until_s:
            hosts.take_in()
            hosts.look()
            if hosts.any_new_work() or self._note_lost():
                return
            left_s = min(opens_s - self._hours.now_s(), self._until_s - time.monotonic(), LOOK_S)
            time.sleep(max(left_s, 0.0))

    def _require_any_room(self) -> None:
        if not self._hosts.any_awaited() and not self._use.routes:
            self._hosts.require_any_room()

    def _plan(self, work: dict[str, SourceWork], *, closed_too: bool = False) -> Execution | None:
        """Plan; sources without a route are given up."""
        hosts = self._hosts
        rates = self._store.state.rates()
        return self._planner.plan(
            work, dict(hosts.reached), rates, hosts.end, closed_too=closed_too
        )

    def _round(self, work: dict[str, SourceWork]) -> set[str]:
        """Fetch what is needed; return the sources whose files have changed meanwhile."""
        found = self._plan(work)
        if found is None:
            return set()
        is_due = self._use.is_promise_due(self._n_regroups)
        # A plan counts on what is open now: when what closes meanwhile ends it does not know.
        left_s = found.predicted_s if is_due and not self._hours else None
        between_s: tuple[float, float] | None = None
        if left_s is not None:
            so_far_s = time.monotonic() - self._use.begun_s
            self._use.predicted_s = so_far_s + left_s
            between_s = self._planner.promised_s()
            self._use.promised_s = (
                None if between_s is None else (so_far_s + between_s[0], so_far_s + between_s[1])
            )
        self._log.write(
            "planned",
            method=self._method,
            makespan_s=found.predicted_s,
            promises=left_s is not None,
            between_s=between_s,
            routes=[list(route.hosts) for route in found.schedule.routes],
            expected=planned_routes(found.schedule) if found.predicted_s is not None else [],
        )
        hosts, limits = self._hosts, self._hosts.collection.limits
        core = CollectorCore(
            work,
            found.controller,
            in_flight_bytes=limits.in_flight_bytes,
            patience_s=limits.patience_s,
            timeout_s=limits.timeout_s,
            before=hosts.remains,
            stranded_after_s=self._planner.may_strand(work),
        )
        try:
            changed = Round(
                core,
                self._store,
                lambda source, relays: hosts.sources[source].open(relays),
                self._log,
                found.plan_remaining,
                self._watch,
                self._is_more,
                self._until_s,
                self._held,
            ).run()
        finally:
            self._note_round(core)
        if isinstance(found.controller, LearningController):
            self._remember(found.controller)
        for name, why in core.todo.given_up.items():
            hosts.end(name, why)
        if not core.route_bytes and any(core.todo.pieces.values()):
            time.sleep(IDLE_S)
        return changed - core.todo.given_up.keys()

    def _note_round(self, core: CollectorCore) -> None:
        remains = self._hosts.remains
        core.leave(remains)
        self._planner.last_resorts |= core.stranded
        late = {name: self._store.files_of(name, late) for name, late in remains.late.items()}
        self._use.note(core, late)

    def _is_more(self, round_s: float) -> bool:
        """Return whether more is ready, and the round is to end so that all is planned again."""
        hosts = self._hosts
        if self._hours.now_s() >= self._changes_s:
            return True
        hosts.take_in()
        if not hosts.new or round_s < REGROUP_S * (1 + self._n_regroups):
            return False
        is_more = hosts.any_new_work()
        self._n_regroups += is_more
        return is_more

    def _remember(self, learned: LearningController) -> None:
        """Keep what was learned for the next start, and the prediction that it allowed."""
        self._store.state.set_rates(learned.link_rates())
        is_known = learned.predicted_end_s is not None and not self._hours
        if self._use.predicted_s is None and is_known:
            self._use.predicted_s = learned.predicted_end_s
