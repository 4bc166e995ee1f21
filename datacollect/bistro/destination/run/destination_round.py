"""One round of a destination: what is new is taken, fetched, opened, judged, logged.

Each step is done durably before the next begins, and asks the register what is to be done: a round
that is killed is gone on with by the next one. What has come is opened while more is on its way.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from datacollect.bistro.destination.run.log_times import SETTLED_S
from datacollect.bistro.destination.run.quotas import Counted
from datacollect.bistro.formats.custody.batches import MOST_BATCH_BYTES, read_batch
from datacollect.bistro.formats.custody.segments import (
    MOST_INDEX_BYTES,
    number_of,
    read_index,
    segment_name,
)
from datacollect.bistro.formats.custody.verdicts import Covered, ranges_of
from datacollect.errors import ProblemError
from datacollect.files.held_folder import not_written
from datacollect.net.fan_out import Meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from datacollect.bistro.destination.holdings import Opening
    from datacollect.bistro.destination.opening import Opener, Result
    from datacollect.bistro.destination.register import Register
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.notes import Note
    from datacollect.net.keys import PrivateKey

# What is small, and fetched before it is known which segments are wanted.
REPORTS = ("batches/*.batch", "segments/*.index")
MOST_LOGGED_AT_ONCE = 1000
# Times of so many entries are kept together: each may be an answer over the network.
MOST_TIMES_AT_ONCE = 100
# So many segments of the bistro with the most are fetched in a round: reports come in between.
MOST_FETCHED_AT_ONCE = 64
# How often it is looked for what has come.
LOOK_S = 0.5


class Log(Protocol):
    """The log of verdicts, `datacollect.bistro.log_service.server.verdict_log.VerdictLog`."""

    def record(self, entries: Sequence[bytes]) -> int | None:
        """Have entries logged; return the size of a published log that holds them, or None."""

    @property
    def published_size(self) -> int:
        """Of the largest that enough witnesses have signed."""


class Times(Protocol):
    """Times of entries in logs: `datacollect.bistro.destination.run.log_times.LogTimes` asks."""

    def __call__(self, entries: Iterable[bytes]) -> Iterable[tuple[bytes, int]]:
        """Return those whose time a log proves, each with that time."""

    @property
    def are_settled(self) -> bool:
        """Return whether the least times of all that was at stake are known."""

    def may_settle(self, now_s: int) -> bool:
        """Return whether times in time fall no more."""

    def settle(self, entries: Iterable[bytes]) -> Iterable[tuple[bytes, int]]:
        """Return the times of entries, asked once more."""


class QuotaRule(Protocol):
    """Rule of quotas, by all logs: `datacollect.bistro.destination.run.quotas.Quotas`."""

    def absent(
        self, known_among: Callable[[Iterable[bytes]], set[bytes]], now_s: int
    ) -> Iterable[tuple[bytes, int]]:
        """Return what never came, with its times."""

    def counted(self, tickets: Iterable[str], now_s: int) -> Counted | None:
        """Return the entries of tickets; None: not known yet."""


@dataclass(frozen=True)
class Destination:
    """Destination, which collects an event.

    Attributes
    ----------
    event : Event
        With the amendments that are known.
    key : PrivateKey
        Of the log of verdicts.
    register : Register
    opener : Opener
        Reads segments where `bring` puts them.
    log : Log
    bring : function
        Takes, by bistro, patterns of the paths that are wanted of it; fetches what it can get, to
        the paths below `opener.segments` and the bistro's name; returns the bistros of which all
        that is wanted came.
    times : Times
    tell : function
        Takes for each bistro the note of what it may let go; called in another thread, too.
    open_all : function
        Opens uploads by the opener, as `datacollect.bistro.destination.opening.OpeningPool` does.
    quotas : QuotaRule or None
        None: logs are not read, and each service alone has kept to the quota.
    """

    event: Event
    key: PrivateKey
    register: Register
    opener: Opener
    log: Log
    bring: Callable[[Mapping[str, Sequence[str]]], Collection[str]]
    times: Times
    tell: Callable[[Mapping[str, Note]], None]
    open_all: Callable[[Opener, Iterable[Opening]], Iterable[Result]]
    quotas: QuotaRule | None = None

    def do_round(self, now_s: int) -> bool:
        """Do all that can be done now; return whether some segments were left for the next round.

        Parameters
        ----------
        now_s : int
            The destination's clock, seconds since 1970.

        Raises
        ------
        StoreError, NotWrittenError, TransferError
            Started again it goes on.
        """
        try:
            return self._done(now_s)
        except OSError as error:
            raise not_written(self.opener.segments.parent, error) from None

    def _done(self, now_s: int) -> bool:
        names = [bistro.name for bistro in self.event.bistros]
        whole = {*self.bring(dict.fromkeys(names, REPORTS))}
        for name in names:
            if not self._take_reports(name, self.opener.segments / name):
                whole.discard(name)
        self.register.held.take_heard(whole, now_s)
        self.register.take_revoked(self.opener.revoked_s)
        self._take_times(self.times(self.register.without_time()))
        if self.times.may_settle(now_s) and not self.times.are_settled:
            self._take_times(self.times.settle(self.register.unsure(SETTLED_S)))
        self.register.judge_times()
        self.register.losses.judge_said(is_final=False)
        is_more = self._fetch(now_s)
        self._judge(now_s)
        # Once nothing more can come, nobody waits for who has a bistro serve him in crumbs.
        if self.times.are_settled and (not is_more or now_s > self.event.collect_until_s):
            self._say_what_counts(now_s)
            self.register.losses.judge_said(is_final=True)
        for name in names:
            self._remove(name)
        return is_more

    def _say_what_counts(self, now_s: int) -> None:
        """Have logged what never came, and which of people's drafts count."""
        counted: Counted | None = Counted(None, is_over=True)
        if self.quotas is not None:
            self.register.take_absent(self.quotas.absent(self.register.known_among, now_s))
            self._log_verdicts()
            counted = self.quotas.counted(self.register.tickets(), now_s)
        if counted is not None:
            # Each is about what is logged, and logged itself before the next.
            while self.register.supersede(counted.logged, is_over=counted.is_over):
                self._log_verdicts()

    def _judge(self, now_s: int) -> None:
        """Open what is here, have logged what became of it, and tell bistros what may go."""
        for result in self.open_all(self.opener, self.register.held.to_open()):
            self.register.opened(*result)
        self._log_verdicts()
        size = self.log.published_size
        if size > 0:
            # Again each time: a note that was lost is made up for.
            names = [bistro.name for bistro in self.event.bistros]
            self.tell({name: self._covered(name, size, now_s) for name in names})

    def _remove(self, bistro: str) -> None:
        """Remove segments of which nothing is needed any more: what was opened lies elsewhere."""
        if numbers := self.register.held.done_with(bistro):
            for number in numbers:
                (self.opener.segments / bistro / segment_name(number)).unlink(missing_ok=True)
            self.register.held.drop_segments(bistro, numbers)

    def _take_times(self, times_s: Iterable[tuple[bytes, int]]) -> None:
        proved = iter(times_s)
        while some := [*islice(proved, MOST_TIMES_AT_ONCE)]:
            self.register.take_times(some)

    def _take_reports(self, bistro: str, folder: Path) -> bool:
        """Take batches and indices that are new, or lie there anew: a bistro may have changed them.

        What was taken does not change by that. Return whether all of them could be taken.
        """
        known, read, are_taken = self.register.held.files_of(bistro), {}, True
        for take, pattern in zip((self._take_batch, self._take_index), REPORTS, strict=True):
            for number, path in _numbered(folder, pattern):
                name, stamp = str(path.relative_to(folder)), _stamp(path)
                if known.get(name) != stamp:
                    try:
                        take(bistro, number, path)
                    except ProblemError as error:
                        are_taken = False
                        self.register.held.take_lie(bistro, f"Its file {name}: {error}.")
                        # What is no report takes no room; unless it changes it does not come again.
                        path.unlink(missing_ok=True)
                    read[name] = stamp
        if read:
            self.register.held.take_files(bistro, read)
        return are_taken

    def _take_batch(self, bistro: str, number: int, path: Path) -> None:
        batch = read_batch(_bounded(path, MOST_BATCH_BYTES), self.event, "it")
        if (batch.bistro, batch.number) != (bistro, number):
            raise ProblemError(f"the file holds batch {batch.number} of {batch.bistro}")
        self.register.held.take_batch(batch, self.opener.ticket_keys)

    def _take_index(self, bistro: str, number: int, path: Path) -> None:
        pieces = read_index(_bounded(path, MOST_INDEX_BYTES), "it")
        self.register.held.take_index(bistro, number, pieces)

    def _fetch(self, now_s: int) -> bool:
        """Fetch what is wanted; where a segment does not come, copies at other bistros are.

        Return whether some was left for the next round.
        """
        absent: set[tuple[str, int]] = set()
        while wanted := self.register.held.to_fetch(absent):
            chosen = some_of_each(wanted, MOST_FETCHED_AT_ONCE)
            left = self._brought_and_judged(chosen, now_s)
            n_chosen = sum(map(len, chosen.values()))
            absent |= left
            # Where nothing has come, the next ones are tried: others wait for nobody.
            if len(left) < n_chosen < sum(map(len, wanted.values())):
                return True
        return False

    def _brought_and_judged(
        self, chosen: Mapping[str, Sequence[int]], now_s: int
    ) -> set[tuple[str, int]]:
        """Fetch segments, and judge what has come while more is on its way."""
        is_over = threading.Event()
        judging = Meanwhile("judging", lambda: self._judge_what_comes(chosen, is_over, now_s))
        try:
            self.bring({name: [*map(segment_name, numbers)] for name, numbers in chosen.items()})
        except BaseException:
            # Whoever is told so may close the register: nobody is at work with it any more.
            is_over.set()
            with suppress(Exception):
                judging.result()
            raise
        is_over.set()
        return judging.result()

    def _judge_what_comes(
        self, chosen: Mapping[str, Sequence[int]], is_over: threading.Event, now_s: int
    ) -> set[tuple[str, int]]:
        """Take and judge segments as they come, until no more will; return which have not come.

        One of another length than its index says has not come.
        """
        left = {(name, number) for name, numbers in chosen.items() for number in numbers}
        wrong: set[tuple[str, int]] = set()
        is_last = False
        while left and not is_last:
            # Asked first: what has come before that is found below.
            is_last = is_over.wait(LOOK_S)
            come = {
                (name, number): path.stat().st_size
                for name, number in left
                if (path := self.opener.segments / name / segment_name(number)).exists()
            }
            left -= come.keys()
            wrong |= {
                each for each, n in come.items() if not self.register.held.take_segment(*each, n)
            }
            if come and not is_last:
                self._judge(now_s)
        return left | wrong

    def _log_verdicts(self) -> None:
        log_verdicts(self.register, self.log)

    def _covered(self, bistro: str, log_size: int, now_s: int) -> Note:
        # First: whoever else takes batches into this register may take one before what is next.
        n_batches = self.register.held.n_batches(bistro)
        segments = ranges_of(self.register.held.covered(bistro, now_s))
        said = Covered(self.event.id, bistro, log_size, n_batches, segments, now_s)
        return said.signed(self.event, self.key)


def log_verdicts(register: Register, log: Log) -> bool:
    """Have all verdicts logged that witnesses sign in time; others are handed in again.

    Return whether none is left.
    """
    while verdicts := register.to_log(MOST_LOGGED_AT_ONCE):
        if log.record([verdict.data for verdict in verdicts]) is None:
            return False
        register.logged(verdicts)
    return True


def some_of_each(wanted: Mapping[str, Collection[int]], most: int) -> dict[str, list[int]]:
    """Return the first of what is wanted of each bistro, in proportion: all end at one time.

    Parameters
    ----------
    wanted : mapping of str to collection of int
        Numbers of segments, by bistro.
    most : int
        Of the bistro with the most.

    Examples
    --------
    >>> some_of_each({"north": range(100), "south": range(10)}, 20)["south"]
    [0, 1]
    """
    largest = max(len(numbers) for numbers in wanted.values())
    return {
        name: sorted(numbers)[: -(-len(numbers) * min(most, largest) // largest)]
        for name, numbers in wanted.items()
    }


def _numbered(folder: Path, pattern: str) -> list[tuple[int, Path]]:
    found = []
    for path in folder.glob(pattern):
        number = number_of(PurePosixPath(path.relative_to(folder).as_posix()))
        if number is not None and path.is_file():
            found.append((number, path))
    return sorted(found)


def _bounded(path: Path, most_bytes: int) -> bytes:
    """Return what is in a file; raise `ProblemError` where that is more than may be."""
    n_bytes = path.stat().st_size
    if n_bytes > most_bytes:
        raise ProblemError(f"the file has {n_bytes} bytes, and may have at most {most_bytes}")
    return path.read_bytes()


def _stamp(path: Path) -> str:
    """Return what differs once something else lies there; no bistro can choose it."""
    found = path.stat()
    return f"{found.st_ino} {found.st_size} {found.st_ctime_ns}"
