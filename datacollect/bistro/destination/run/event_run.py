"""A destination from its file to its end: rounds, the log of verdicts, the table of loads."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.destination.keys import (
    read_tickets,
    require_key,
    revoked_tickets,
    ticket_keys,
)
from datacollect.bistro.destination.marking import mark_keys
from datacollect.bistro.destination.opening import Opener, OpeningPool
from datacollect.bistro.destination.place import Place, verdicts_folder
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.register_reading import reading
from datacollect.bistro.destination.run.bistro_asking import BistroAsking
from datacollect.bistro.destination.run.bringing import Bringing, read_network
from datacollect.bistro.destination.run.destination_round import Destination, log_verdicts
from datacollect.bistro.destination.run.evidence import files_not_here
from datacollect.bistro.destination.run.kept_files import FILES, fault_of
from datacollect.bistro.destination.run.load_telling import LoadTelling
from datacollect.bistro.destination.run.log_times import LogTimes
from datacollect.bistro.destination.run.logged_entries import LoggedEntries, read_over_http
from datacollect.bistro.destination.run.missing_list import (
    ShownReceipts,
    hidden_rows,
    missing_list,
)
from datacollect.bistro.destination.run.overview_server import overview_page
from datacollect.bistro.destination.run.quotas import Quotas
from datacollect.bistro.destination.run.standing import (
    BistroStanding,
    LogStanding,
    Standing,
    contacts_before,
    counted_kinds,
    write_standing,
)
from datacollect.bistro.formats.assignment.collecting import problem_of as problem_of_receipts
from datacollect.bistro.formats.event.amendments import amended
from datacollect.bistro.formats.event.file import read_event, require_current
from datacollect.bistro.formats.receipt.verify import published
from datacollect.bistro.formats.sealing.identities import opening_identities
from datacollect.bistro.http.config import DestinationConfig, Listening, ServiceConfig
from datacollect.bistro.http.published import Saved, amendments_of
from datacollect.bistro.log_service.server.verdict_log import VerdictLog
from datacollect.errors import InfeasibleError, ProblemError, naming
from datacollect.files.documents import document_name, read_bytes
from datacollect.methods.coordinated.coordinated import coordinated
from datacollect.net.http_asking import Asker
from datacollect.net.keys import read_private_key
from datacollect.net.tls import web_context
from datacollect.transfer.pull.planning import problem_of, says_links

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.event.tickets import Admitted
    from datacollect.problem.problem import Problem
    from datacollect.transfer.pull.config.file import Collection


# What was said is said again after this time, if it is still so.
SAY_AGAIN_S = 3600.0
# So many different lines about one host, or about none, are read in that time.
MOST_LINES = 50


class SayingOnce:
    """Says what is new; what was said is said again after a while, if it is still so.

    Somebody whose answers are never the same fills no log: of what is said about one of `names`,
    so many lines are told in an hour, and the last says so.

    Parameters
    ----------
    report : callable
        Takes lines.
    names : sequence of str
        Of hosts; may be replaced by more of them.

    Examples
    --------
    >>> said = SayingOnce(print, ["north"])
    >>> for _ in range(2):
    ...     said("north: does not answer")
    north: does not answer
    """

    def __init__(self, report: Callable[[str], None], names: Sequence[str]) -> None:
        self._report, self.names = report, names
        self._said_s: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def __call__(self, line: str) -> None:
        """Take a line, from any thread."""
        now_s = time.monotonic()
        name = next((each for each in self.names if each in line), "")
        said_s = self._said_s[name]
        for old, at_s in [*said_s.items()]:
            if now_s - at_s > SAY_AGAIN_S:
                said_s.pop(old, None)
        if line in said_s or len(said_s) >= MOST_LINES:
            return
        said_s[line] = now_s
        self._report(line)
        if len(said_s) == MOST_LINES:
            self._report(
                f"{name or 'others'}: further messages about it within the hour are left out"
            )


class Tickets:
    """Reads the organiser's folder of tickets when it has changed.

    Parameters
    ----------
    folder : Path or None
        None: the event admits everybody.
    report : callable
        Told what is wrong with a ticket that came later: those known before are gone on with.
    """

    def __init__(self, folder: Path | None, report: Callable[[str], None]) -> None:
        self._folder, self._report = folder, report
        self._written_ns = -1
        self._found: dict[str, Admitted] | None = None

    def of(self, event: Event) -> dict[str, Admitted] | None:
        """Return them by number; None: the event admits everybody.

        Raises
        ------
        ProblemError
            The first time: there are none, or one is of another event, or damaged.
        """
        if self._folder is None:
            return None
        written_ns = self._folder.stat().st_mtime_ns if self._folder.is_dir() else -2
        if written_ns != self._written_ns:
            try:
                self._found = read_tickets(self._folder, event)
                self._written_ns = written_ns
            except ProblemError as error:
                if self._found is None:
                    raise
                self._report(f"{error}; the tickets known before still count")
        return self._found


def predicted_s(waiting: Iterable[tuple[bytes, str, int]], network: Problem | None) -> float | None:
    """Return how long the coordinated plan takes for what waits; None: nobody knows.

    Parameters
    ----------
    waiting : iterable of (bytes, str, int)
        Entries, the bistros that hold them, their bytes; an entry may be at several.
    network : Problem or None
        Hosts and links; a bistro that it does not name is left out.
    """
    if network is None:
        return None
    import pandas as pd

    receipts = pd.DataFrame(waiting, columns=["entry", "bistro", "bytes"]).assign(time_s=0.0)
    receipts = receipts[receipts["bistro"].isin(network.names)]
    if receipts.empty:
        return 0.0
    try:
        return coordinated(problem_of_receipts(receipts, network)).makespan_s
    except InfeasibleError:
        return None


# The table of loads says how things are, whatever else is going on.
LOADS_EVERY_S = 10.0
# A service that takes longer is asked in the next round.
SERVICE_S = 5.0
# For each second that it takes to look how far the event is, so many seconds of rounds.
LOOKS_FOR = 10.0
# Each file is looked at on the disk: that takes longer, and changes less.
DISK_LOOKS_FOR = 100.0


@dataclass(frozen=True)
class _Given:
    """Facts that do not change while an event is run."""

    event: Event
    event_file: Path
    event_data: bytes
    config: DestinationConfig
    identities: tuple[str, ...]
    collector: Path
    network: Collection | None
    problem: Problem | None
    tls: ssl.SSLContext


def run_event(
    event_file: str | PathLike[str],
    destination_file: str | PathLike[str],
    ready: Callable[[str | None, str | None], None],
    report: Callable[[str], None],
    *,
    once: bool = False,
    page: int | None = None,
    begun: Callable[[VerdictLog], None] = lambda _: None,
) -> Standing:
    """Collect what was handed in, and say what became of it, until all is settled.

    It ends by itself once nothing more can come: after the event's ``collect_until``. Interrupted
    anywhere, it is gone on with by the same call.

    Parameters
    ----------
    event_file, destination_file : path-like
    ready : callable
        Told where the log of verdicts is read, and where the organiser's page is, or None, once
        all is there.
    report : callable
        Takes lines that somebody would want to know at once; from other threads, too.
    once : bool
        Do what can be done now, and stop.
    page : int, optional
        Port of this host's loopback for the organiser's page; 0: any free one. None: there is none.
    begun : callable
        Given the log, for who has its certificate reread.

    Returns
    -------
    Standing
        How far the event is.

    Raises
    ------
    ProblemError
        A file, a key or a folder is not what it should be.
    StoreError, NotWrittenError, TransferError
        The disk, the database or a process fails; started again it goes on.
    """
    given = _given(event_file, destination_file)
    config, said = given.config, SayingOnce(report, _names(given.event))
    with ExitStack() as stack:
        config.folder.mkdir(parents=True, exist_ok=True)
        saved = Saved(given.event, given.event_file, config.folder)
        now_s = int(time.time())
        event, answering = _amended(given, saved, said)
        require_key(event, config, document_name(destination_file))
        marks = mark_keys(given.event, config, document_name(destination_file))
        log = stack.enter_context(_verdict_log(given, event, said))
        begun(log)
        services = {
            each.url: stack.enter_context(Asker(each.url, given.tls, SERVICE_S))
            for each in given.event.services
        }
        asking = BistroAsking(event, said)
        loads = stack.enter_context(
            LoadTelling(
                config.key,
                asking,
                given.problem,
                given.tls,
                said,
                LOADS_EVERY_S,
                contacts_before(config.folder, event.id.hex()),
            )
        )
        seen = (
            ShownReceipts(config.receipts, given.event_data, said),
            LoggedEntries(partial(read_over_http, tls=given.tls), said),
        )
        tickets = Tickets(config.tickets if event.admission == "tickets" else None, said)
        pool = stack.enter_context(OpeningPool(config.workers))
        overview = None if page is None else stack.enter_context(overview_page(config.folder, page))
        ready(log.url, None if overview is None else overview.url)
        times = LogTimes(event, services, said)
        if given.event.has_marks and marks is None:
            said("note: mark_key is lost: drafts count as they are pushed, by each service's quota")
        quotas = Quotas(event, seen[1], marks)
        here = Place.of(config.folder)
        with closing(Register(config.register, event, here)) as register:
            # What was moved here, or copied, is looked for where it lies now.
            register.take_over(lambda f: fault_of(config.folder, f.file, f) is None)
        look_s, standing = -math.inf, None
        disk_s, n_not_here = -math.inf, 0
        while event.cancelled is None:
            loads.asking = asking = BistroAsking(event, said)
            loads.await_answers()
            known = tickets.of(given.event)
            quotas.ticket_keys = ticket_keys(known or {})
            quotas.shown = partial(_signed_for, seen[0], event)
            revoked_s = {} if known is None else revoked_tickets(known, event)
            quotas.revoked_s = revoked_s
            with closing(Register(config.register, event, here)) as register:
                register.held.take_heard(answering, now_s)
                seen[1].kept = register.logs
                quotas.may_hold = partial(_may_any_hold, register, event)
                quotas.proved = register.proved
                destination = Destination(
                    event,
                    config.key,
                    register,
                    Opener(
                        given.identities,
                        None if known is None else ticket_keys(known),
                        config.folder / "segments",
                        config.folder / FILES,
                        revoked_s,
                        marks,
                        event.most_files,
                    ),
                    log,
                    Bringing(
                        event,
                        given.collector,
                        config.folder / "segments",
                        said,
                        config.method,
                        given.network,
                    ),
                    times,
                    asking.tell_covered,
                    pool.open_all,
                    quotas,
                )
                began_s = time.monotonic()
                is_more = destination.do_round(now_s)
                if once or time.monotonic() >= look_s:
                    looked_s = time.monotonic()
                    if once or looked_s >= disk_s:
                        with reading(config.register, event.id.hex()) as rows:
                            n_not_here = files_not_here(rows, here, config.folder)
                        taken_s = time.monotonic() - looked_s
                        disk_s = looked_s + DISK_LOOKS_FOR * taken_s
                    standing = _stand(given, register, times, loads, log, seen, n_not_here)
                    # Where much is to be counted, that is a small part of all work.
                    look_s = looked_s + LOOKS_FOR * (time.monotonic() - looked_s)
            # What comes to its end while a round is at work is for the next one to say.
            is_settled = standing is not None and standing.is_settled and quotas.is_over(now_s)
            if not is_more and standing is not None and (once or is_settled):
                return standing
            if not is_more:
                time.sleep(max(config.every_s - (time.monotonic() - began_s), 0.0))
            now_s = int(time.time())
            event, answering = _amended(given, saved, said)
            times.event = quotas.event = event
            require_key(event, config, document_name(destination_file))
            said.names = _names(event)
        said(
            f"{event.cancelled_text}; nothing more is collected, and what lies here stays. What "
            "was collected is still published, and shown until collecting was to end; stop this "
            "earlier if nobody needs its proof any more"
        )
        while True:
            with closing(Register(config.register, event, here)) as register:
                is_published = log_verdicts(register, log)
                looked_s = time.monotonic()
                with reading(config.register, event.id.hex()) as rows:
                    n_not_here = files_not_here(rows, here, config.folder)
                taken_s = time.monotonic() - looked_s
                standing = _stand(given, register, times, loads, log, seen, n_not_here)
            if once or (is_published and quotas.is_over(int(time.time()))):
                return standing
            time.sleep(max(config.every_s, DISK_LOOKS_FOR * taken_s))


def _signed_for(shown: ShownReceipts, event: Event) -> frozenset[bytes]:
    """Return the entries of which people have shown that a bistro has signed for them."""
    return frozenset(entry for entry, words in shown.of(event).items() if words)


def _may_any_hold(register: Register, event: Event, since_s: int) -> bool:
    """Return whether some bistro may hold what is not known of.

    One that a silent service knows, too.
    """
    return not register.held.have_all_said(_names(event), since_s)


def _given(event_file: str | PathLike[str], destination_file: str | PathLike[str]) -> _Given:
    """Read and check all that is given."""
    config = DestinationConfig.from_file(destination_file)
    name = document_name(event_file)
    event_data = read_bytes(event_file)
    event = read_event(event_data, name)
    require_current(event, name)
    if event.verdicts is None:
        raise ProblemError(
            f"{name}: has no [verdicts], so nobody could prove what became of submissions; an "
            "event needs a log of verdicts to be collected"
        )
    remedy = "it must be the identity of one of the event's recipients"
    identities = opening_identities(config.identities, event.recipients, remedy)
    if event.admission == "tickets" and config.tickets is None:
        raise ProblemError(
            f"{document_name(destination_file)}: tickets must be the folder of everybody's "
            "tickets, since the event asks for them; `datacollect event tickets` wrote it"
        )
    network = None if config.collection is None else read_network(config.collection, event)
    collector = config.collector
    if collector is None:
        assert network is not None
        collector = network.key
    read_private_key(collector)
    problem = None
    if network is not None and config.collection is not None and says_links(network):
        with naming(document_name(config.collection)):
            problem = problem_of(network, {}, [], {})
    return _Given(
        event,
        Path(event_file),
        event_data,
        config,
        tuple(identities),
        collector,
        network,
        problem,
        web_context(),
    )


def _verdict_log(given: _Given, event: Event, report: Callable[[str], None]) -> VerdictLog:
    assert event.verdicts is not None
    config = given.config
    folder = verdicts_folder(config.folder, event.verdicts, event)
    if event.ended_verdicts and not folder.is_dir():
        raise ProblemError(
            f"{folder}: no such folder: the log of verdicts must begin with the verdicts of the "
            "one before; `datacollect event recover` makes it"
        )
    service = ServiceConfig(
        event,
        given.event_data,
        config.key,
        config.listening or Listening(("localhost", 0), None),
        folder,
        0,
        config.behind,
        config.mirrors,
    )
    return VerdictLog(service, report, is_served=config.listening is not None)


def _amended(
    given: _Given, saved: Saved, report: Callable[[str], None]
) -> tuple[Event, tuple[str, ...]]:
    """Return the event as its logs have it changed by now, and the services that have answered.

    What was known stays known.
    """
    found = amendments_of(given.event, [each.url for each in given.event.services], given.tls)
    for url, why in found.troubles.items():
        report(f"{url}: {why}")
    if published(given.event, found.amendments, []):
        saved.add(found.amendments)
    event = amended(given.event, published(given.event, saved.amendments, []))
    return event, (*found.by_url,)


def _stand(
    given: _Given,
    register: Register,
    times: LogTimes,
    loads: LoadTelling,
    log: VerdictLog,
    seen: tuple[ShownReceipts, LoggedEntries],
    n_not_here: int,
) -> Standing:
    """Look how far the event is, and leave that in the folder."""
    (shown, logs), event = seen, times.event
    now_s = int(time.time())
    said = shown.of(event)
    missing = missing_list(
        (each for each in register.incomplete() if each.time_s is not None),
        said,
        logs.known(event, now_s),
        register.known_among,
        register.losses.lost_since(),
    )
    hidden = hidden_rows(
        said, lambda entry: register.known(entry).bistros, register.held.last_batch
    )
    counts = register.counts()
    each_s, arrivals = register.arrivals()
    standing = Standing(
        event=event.id.hex(),
        name=event.name,
        time_s=now_s,
        deadline_s=event.deadline_s,
        collect_until_s=event.collect_until_s,
        **counts._asdict(),
        missing=counted_kinds(missing),
        lies=tuple((lie.who, lie.text) for lie in (*register.held.lies(), *hidden)),
        bistros=tuple(
            BistroStanding(name, told["stored_bytes"], told["free_bytes"], told["oldest_s"])
            for name, told in sorted(loads.facts.items())
        ),
        predicted_s=predicted_s(register.waiting(), given.problem),
        verdicts_url=log.url,
        n_verdicts=max(log.published_size, 0),
        logs=tuple(LogStanding(url, size) for url, size in sorted(loads.log_sizes.items())),
        arrivals=tuple(arrivals),
        arrivals_each_s=each_s,
        is_whole=times.are_settled and not register.to_log(1),
        contacts={each.name: loads.heard_s.get(each.name) for each in event.bistros},
        latest_s=event.latest_s,
        unread=logs.unread(event),
        event_file=str(given.event_file.resolve()),
        not_here=n_not_here,
        never_came=register.n_absent(),
        cancelled=event.cancelled,
        log_lacks=log.lacks,
    )
    write_standing(standing, missing, given.config.folder)
    return standing


def _names(event: Event) -> tuple[str, ...]:
    """Return by what lines say whom they are about."""
    return (*(each.url for each in event.services), *(each.name for each in event.bistros))
