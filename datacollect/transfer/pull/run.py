"""Pulling a collection: ``dc.pull``."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError, StoreError, naming
from datacollect.files.kinds import join
from datacollect.files.memory import require_addresses
from datacollect.files.with_units import DURATION, in_units
from datacollect.machine.own_time import OwnTime, is_of_another
from datacollect.methods.choice import METHODS
from datacollect.methods.options.names import ADAPTIVE
from datacollect.methods.places import require_fit
from datacollect.methods.planning_options import PlanningOptions
from datacollect.net.host_marks import IN_PULL, marked
from datacollect.net.keys import read_private_key
from datacollect.problem.profile_limits import profile_at
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.protocol.kind import Surroundings
from datacollect.transfer.pull.collecting import Collecting
from datacollect.transfer.pull.config.file import Collection
from datacollect.transfer.pull.held import is_late, shown_by, why_late
from datacollect.transfer.pull.hosts import Hosts
from datacollect.transfer.pull.planning import warm_up
from datacollect.transfer.pull.preparing import Gate
from datacollect.transfer.pull.route_limits import RouteLimits
from datacollect.transfer.pull.slots.happened import Happened
from datacollect.transfer.pull.slots.in_slots import InSlots
from datacollect.transfer.pull.slots.slot_planning import require_links
from datacollect.transfer.pull.slots.spools import Spools
from datacollect.transfer.sources.agent.network import Network
from datacollect.transfer.sources.kinds import AGENTS, KINDS
from datacollect.transfer.store.folder.log import LOG_FILE, Log
from datacollect.transfer.store.history import start_of
from datacollect.transfer.store.promises import KeptPull
from datacollect.transfer.store.promises import keep as keep_pull
from datacollect.transfer.store.state.failures import LESS_CONNECTIONS
from datacollect.transfer.store.store import Store, StoreOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from typing import Any

    from datacollect.files.choices import RunMethod
    from datacollect.files.quantities import Seconds
    from datacollect.machine.profile import HostProfile
    from datacollect.net.keys import PrivateKey
    from datacollect.transfer.protocol.source import Source
    from datacollect.transfer.pull.answer import Pulled
    from datacollect.transfer.pull.answering import StartUse
    from datacollect.transfer.pull.open_hours import OpenHours
    from datacollect.transfer.pull.progress.pull_progress import PullProgress
    from datacollect.transfer.rates.pacer import Pacer


# What a pull takes where addresses are limited: for pieces under way, and threads besides those of
# connections, for sources, the store, plans.
BUFFERS_BYTES, OTHER_THREADS = 64 * 2**20, 8


def pull(
    collection: Collection | str | PathLike[str] | Mapping[str, Any],
    into: str | PathLike[str],
    method: RunMethod = ADAPTIVE,
    *,
    plan_only: bool = False,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    verify: bool = False,
    with_source: bool = False,
    overwrite: bool = False,
    keep: bool = False,
    modes: bool = True,
    times: bool = True,
    slot_s: Seconds | None = None,
    watch: Callable[[Callable[[], PullProgress]], None] | None = None,
    tell: Callable[[str], None] | None = None,
    log: Callable[[Mapping[str, Any]], None] | None = None,
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
        List and plan, move nothing. Nothing is changed, but what is known of sources by what they
        list.
    include, exclude : sequence of str, optional
        Patterns, as ``files`` in a collection, for all sources: of what the collection wants, only
        files that some of ``include`` fit and none of ``exclude``. What they leave out stays as it
        is, and wanted: another start without them fetches it.
    verify : bool, optional
        Read all that has come before again, and fetch what is not as it was verified.
    with_source : bool, optional
        With `verify`: also compare what is there with what the sources have now, by their hashes
        (of web servers by the sha256 of a manifest), and fetch the parts that differ.
    overwrite : bool, optional
        Replace what lies where a file belongs and is not the collection's, or was altered;
        otherwise it is kept, and the file is named as missing.
    keep : bool, optional
        Let verified files count that their server does not confirm any more, whether it refuses
        them or sends something that may be no file; otherwise they are kept, too, and named as
        missing.
    modes, times : bool, optional
        Whether files and folders get the permission bits and times that they have at their source.
    slot_s : float or str, optional
        Store and forward in slots of so long: what a plan has a relay store waits there, sealed,
        for a later slot. By default nothing waits at relays.
    watch : callable, optional
        Called several times a second with what looks how far it is, which takes a moment: whoever
        shows that calls it, as often as it is wanted, and gets files and bytes, done and of all.
    tell : callable, optional
        Takes lines that somebody would want to know at once, such as why a source is not reached.
    log : callable, optional
        Takes what is written to the log, as it is written.

    Returns
    -------
    Pulled

    Raises
    ------
    ProblemError
        The collection, its key or the folder are not what they should be.
    InfeasibleError
        No source has a route to the destination.
    TransferError
        There is no room, or the disk fails.

    Examples
    --------
    >>> import datacollect as dc
    >>> dc.pull("nowhere.toml", "here")
    Traceback (most recent call last):
    datacollect.errors.ProblemError: nowhere.toml: no such file; check the path
    """
    with naming("method"):
        spec = METHODS.get(method)
        spec.required_controller()
    if not isinstance(collection, Collection):
        if isinstance(collection, (str, Path)) or hasattr(collection, "__fspath__"):
            collection = Collection.from_file(collection)
        else:
            collection = Collection.from_dict(collection)
    if with_source and not verify:
        raise ProblemError(
            "with_source (--with-source) compares what verify (--verify) has read; ask for both"
        )
    slot_s = in_units(slot_s, DURATION, "slot_s")
    if slot_s is not None:
        if not slot_s > 0:
            raise ProblemError(f"slot_s (--slot) must be > 0, got {slot_s:g}")
        require_links(collection)
    how = PlanningOptions(method, collection.planning)
    require_fit(spec, how.options, "pull", "planning.{}".format)
    collection = _only(collection, include, exclude)
    key = read_private_key(collection.key)
    # All that a pull needs is imported before anybody is asked: later there may be no room for it.
    warm_up(collection, how)
    require_addresses(
        BUFFERS_BYTES,
        f"a pull over {collection.limits.connections} connections",
        n_threads=collection.limits.connections + OTHER_THREADS,
        or_else=LESS_CONNECTIONS,
    )
    options = StoreOptions(overwrite=overwrite, keep=keep, modes=modes, times=times)
    store = Store(Path(into), options, is_dry=plan_only)
    gate = Gate()
    try:
        written = Log(store.folder / STATE_FOLDER / LOG_FILE, log or _unheard)
        try:
            limits = RouteLimits(collection)
            sources, network = _sources_of(collection, key, _number(store), limits)
            tell, watch = tell or _unheard, watch or _unheard
            hosts = Hosts(
                collection,
                sources,
                network,
                store,
                written,
                watch,
                tell,
                gate,
                compared={} if with_source else None,
            )
            own = OwnTime(profile_of_destination(collection, tell))
            with marked(IN_PULL):
                spools = Spools(collection, network, store, written, tell)
                happened, in_slots = None, None
                if slot_s is not None:
                    happened = Happened(store.folder / STATE_FOLDER, slot_s)
                    in_slots = _in_slots(hosts, how, slot_s, spools, happened, limits)
                collecting = Collecting(hosts, how, limits.held, in_slots, spools)
                answer = collecting.run(plan_only=plan_only, verify=verify)
                if happened is not None and answer.complete and not plan_only:
                    _write_happened(happened, tell)
                came = sum(use.n_bytes for use in answer.routes)
                answer = replace(answer, processor=own.use(came), slot_s=slot_s)
                if plan_only or not answer.routes:
                    return answer
                return _held_to_its_word(answer, store.folder, written, collection, tell)
        finally:
            written.close()
    finally:
        gate.leave_last(store.close)


def _write_happened(happened: Happened, tell: Callable[[str], None]) -> None:
    try:
        happened.write()
    except StoreError as error:
        # All that was to come is there: that it is not written down is no failure of the pull.
        tell(f"note: the record of slots could not be written: {error}")


def _in_slots(
    hosts: Hosts,
    how: PlanningOptions,
    slot_s: float,
    spools: Spools,
    happened: Happened,
    limits: RouteLimits,
) -> Callable[[OpenHours, StartUse], InSlots]:
    """Return what makes what carries plans in slots out."""

    def make(hours: OpenHours, use: StartUse) -> InSlots:
        def pacer_of(relays: tuple[str, ...]) -> Pacer | None:
            return limits.pacer_of(relays[0], ())

        return InSlots(hosts, how, slot_s, hours, spools, use, happened, pacer_of)

    return make


def profile_of_destination(
    collection: Collection, tell: Callable[[str], None]
) -> HostProfile | None:
    """Return the profile of this host, if the collection names one; say where it is another's."""
    name = collection.destination
    said = collection.network["hosts"].get(name, {}).get("profile")
    if said is None:
        return None
    place = join(join("hosts", name), "profile")
    profile = profile_at(said, collection.folder, place)
    if is_of_another(profile):
        tell(
            f"note: {place}: {said} was measured on another machine, {profile.name}; the plan "
            "counts on what that one can do: calibrate here"
        )
    return profile


def _held_to_its_word(
    answer: Pulled,
    folder: Path,
    written: Log,
    collection: Collection,
    tell: Callable[[str], None],
) -> Pulled:
    """Say why a start took longer than promised, and keep what was promised and what came."""
    history = start_of(folder / STATE_FOLDER / LOG_FILE, written.begins_at)
    took_s, end = answer.makespan_s, collection.destination
    if answer.complete and is_late(took_s, answer.predicted_makespan_s, answer.promised_p90_s):
        answer = replace(answer, why=why_late(history, end))
    pull = KeptPull(
        time.time(),
        answer.method,
        answer.complete,
        answer.predicted_makespan_s,
        answer.promised_p10_s,
        answer.promised_p90_s,
        took_s,
        answer.why,
        shown_by(history, end),
    )
    try:
        keep_pull(folder, pull)
    except OSError as error:
        # All that was to come is there: that it is not written down is no failure of the pull.
        tell(f"note: the promise of this pull could not be saved: {error.strerror}")
    return answer


def _unheard(_: object) -> None:
    """Ignore a report that nobody wants."""


def _only(
    collection: Collection, include: Sequence[str] | None, exclude: Sequence[str]
) -> Collection:
    for name, patterns in (("include", include or ()), ("exclude", exclude)):
        if isinstance(patterns, str):
            raise ProblemError(f"{name} must be a list of patterns, got {patterns!r}; put it in []")
        if "" in patterns:
            raise ProblemError(f"{name}: a pattern must not be empty; write ** for all files")
    return replace(
        collection,
        include=None if include is None else tuple(include),
        exclude=tuple(exclude),
    )


def _number(store: Store) -> str:
    """Return what the collection is called in tickets: the same in all starts."""
    number: str | None = store.state.fact("number")
    if number is None:
        number = secrets.token_hex(8)
        store.state.set_fact("number", number)
    return number


def _sources_of(
    collection: Collection, key: PrivateKey, number: str, routes: RouteLimits
) -> tuple[dict[str, Source], Network]:
    """Return all hosts of a collection by name, and the routes through those that relay."""
    limits = collection.limits
    network = Network(
        collection.entries[AGENTS],
        key,
        number,
        timeout_s=limits.timeout_s,
        connections=limits.connections,
    )
    sources = {
        name: KINDS.get(kind).make(
            entry,
            Surroundings(
                network,
                collection.patterns(name),
                limits.timeout_s,
                limits.patience_s,
                partial(routes.pacer_of, name),
            ),
        )
        for kind, entries in collection.entries.items()
        for name, entry in entries.items()
    }
    return sources, network
