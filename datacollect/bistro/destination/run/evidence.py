"""Evidence that an event is collected: files on this disk, logs read, nobody silent.

What the register says was so once. Files are looked at where they should lie, on this machine; what
nobody has looked for, and numbers that are old, are no evidence.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.bistro.destination.missing import LOST_SINCE, WITHOUT_DATA, WITHOUT_UPLOAD
from datacollect.bistro.destination.run.kept_files import (
    ABSENT,
    CHANGED,
    OTHER_LENGTH,
    PUT_BACK,
    fault_of,
)
from datacollect.bistro.formats.custody.verdicts import COLLECTED, DOES_NOT_OPEN, LATE, REFUSED
from datacollect.files.units import counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from datacollect.bistro.destination.missing import Missing
    from datacollect.bistro.destination.place import Place
    from datacollect.bistro.destination.register_reading import Row
    from datacollect.bistro.destination.run.standing import Standing

# Numbers of longer ago are none of now: the deadline may have been moved since.
FRESH_FOR_S = 3600
# So many entries are named; all are counted.
MOST_NAMED = 100

RUN = "`datacollect event run` continues"
UPLOAD_AGAIN = "ask its person to run `datacollect upload` again, while files are still collected"
RECOVER = (
    "where no newer copy is there, stop `datacollect event run`, let `datacollect event recover` "
    "make it, and start again"
)
SEND_AGAIN = "ask its person to run `datacollect upload --elsewhere`"
FROM_COPY = (
    f"{RUN} where bistros still hold it; otherwise restore it from a copy, or ask its person for "
    "it, whose receipt proves that it was collected"
)


@dataclass(frozen=True)
class Lack:
    """Reason why an event does not count as collected.

    Attributes
    ----------
    kind : str
        For programs: it does not change.
    n : int
        How many entries it is about; 0: about all.
    who : str
        By whose doing: a bistro, a service, a machine, people, the destination.
    since_s : int or None
        Since when, seconds since 1970; None: nobody knows.
    text : str
        What is missing, in words.
    remedy : str
        What to do.
    entries : tuple of str
        Some of them, hexadecimal.
    """

    kind: str
    n: int
    who: str
    since_s: int | None
    text: str
    remedy: str
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Evidence that was found.

    Attributes
    ----------
    here : Place
        Where it was looked.
    n_here : int
        Files that lie here as they should.
    n_unmeasured : int
        Of these, those of which an earlier version has kept neither machine nor length.
    is_read : bool
        Whether files were read again, and their hashes compared.
    lacks : tuple of Lack
        None of them: all is collected.
    """

    here: Place
    n_here: int
    n_unmeasured: int
    is_read: bool
    lacks: tuple[Lack, ...]

    @property
    def exit_code(self) -> int:
        """0 where nothing is lacking."""
        return 1 if self.lacks else 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "here": asdict(self.here),
            "files_here": self.n_here,
            "files_unmeasured": self.n_unmeasured,
            "verified": self.is_read,
            "lacking": [asdict(each) for each in self.lacks],
        }


@dataclass
class _Tally:
    n: int = 0
    entries: list[str] = field(default_factory=list)
    since_s: int | None = None

    def add(self, entry: str, since_s: int | None = None) -> None:
        self.n += 1
        if len(self.entries) < MOST_NAMED:
            self.entries.append(entry)
        if since_s is not None:
            self.since_s = since_s if self.since_s is None else min(self.since_s, since_s)

    def lack(self, kind: str, who: str, text: str, remedy: str, since_s: int | None = None) -> Lack:
        since_s = self.since_s if since_s is None else since_s
        return Lack(kind, self.n, who, since_s, text, remedy, tuple(self.entries))


class _Files:
    """State of the files that were collected."""

    def __init__(self, here: Place, folder: Path, *, is_read: bool) -> None:
        self._here, self._folder, self._is_read = here, folder, is_read
        self.n_here = self.n_unmeasured = 0
        self.faults: defaultdict[str, _Tally] = defaultdict(_Tally)
        self.elsewhere: defaultdict[Place, _Tally] = defaultdict(_Tally)

    def look(self, row: Row) -> None:
        if row.is_forgotten:
            return
        kept = next((file for place, file in row.kept if place.is_same(self._here)), None)
        if kept is None and row.kept:
            self.elsewhere[row.kept[-1][0]].add(row.entry.hex())
            return
        file = row.file if kept is None else kept.file
        if file is None:
            self.faults[ABSENT].add(row.entry.hex())
            return
        fault = fault_of(self._folder, file, kept, is_read=self._is_read)
        if fault is not None:
            self.faults[fault.kind].add(row.entry.hex(), fault.since_s)
            return
        self.n_here += 1
        self.n_unmeasured += kept is None

    def lacks(self) -> list[Lack]:
        host, found = self._here.host, []
        says = {
            ABSENT: "collected, and no longer there",
            OTHER_LENGTH: "not the length that it had when collected",
            CHANGED: "not the content that it had when collected",
        }
        for kind, tally in sorted(self.faults.items()):
            text = f"{counted(tally.n, 'file')}: {says[kind]}, on {host} in {self._folder}/files"
            found.append(tally.lack(f"file {kind}", host, text, PUT_BACK))
        return found + elsewhere_lacks(self.elsewhere)


def elsewhere_lacks(places: dict[Place, _Tally]) -> list[Lack]:
    """Return that files lie at other places."""
    return [
        tally.lack(
            "elsewhere",
            place.host,
            f"{counted(tally.n, 'file')}: the files lie on {place.host} in {place.folder}; "
            "whether they are here, too, is not known",
            "ask on that host; `datacollect event run` takes over files that were copied here",
        )
        for place, tally in sorted(places.items())
    ]


def files_not_here(rows: Iterable[Row], here: Place, folder: Path) -> int:
    """Return how many files that were collected do not lie here, as long as they were written."""
    files = _Files(here, folder, is_read=False)
    for row in rows:
        if row.word == COLLECTED:
            files.look(row)
    return sum(each.n for each in (*files.faults.values(), *files.elsewhere.values()))


def evidence_without_standing(rows: Iterable[Row], here: Place) -> Evidence:
    """Return what a register shows where nothing was ever collected into this folder."""
    places: defaultdict[Place, _Tally] = defaultdict(_Tally)
    for row in rows:
        if row.kept and not any(place.is_same(here) for place, _ in row.kept):
            places[row.kept[-1][0]].add(row.entry.hex())
    return Evidence(here, 0, 0, False, tuple(elsewhere_lacks(places)))


def evidence_of(
    standing: Standing,
    missing: Sequence[Missing] | None,
    rows: Iterable[Row],
    here: Place,
    folder: Path,
    *,
    now_s: int,
    is_running: bool,
    is_read: bool = False,
    moved_to_s: int | None = None,
) -> Evidence:
    """Look whether all is collected.

    Parameters
    ----------
    standing : Standing
        What a destination has left.
    missing : sequence of Missing or None
        What it has listed; None: that list is not there.
    rows : iterable of Row
        Of the register.
    here : Place
        This machine, and the destination's folder.
    folder : Path
        The latter.
    now_s : int
        Seconds since 1970.
    is_running : bool
        Whether a destination is at work in the folder.
    is_read : bool
        Whether files are read again.
    moved_to_s : int or None
        Until when entries are in time, seconds since 1970, where a destination did not know it yet.

    Raises
    ------
    StoreError
        The disk fails.
    """
    latest_s = standing.deadline_s if standing.latest_s is None else standing.latest_s
    latest_s = max(latest_s, moved_to_s or 0)
    files = _Files(here, folder, is_read=is_read)
    unlogged, moved = _Tally(), _Tally()
    waiting: defaultdict[tuple[str, ...], _Tally] = defaultdict(_Tally)
    listed = {each.entry: each for each in missing or ()}
    n_in_time = 0
    for row in _remembered(rows, listed):
        is_in_time = row.time_s is None or row.time_s <= latest_s
        n_in_time += is_in_time
        if row.word == COLLECTED:
            files.look(row)
        was_here = row.entry in listed and listed[row.entry].kind == LOST_SINCE
        if was_here and not row.word:
            continue
        if not row.word and is_in_time:
            waiting[row.bistros].add(row.entry.hex(), row.time_s)
        elif (row.word, row.why) == (REFUSED, LATE):
            if is_in_time:
                moved.add(row.entry.hex(), row.time_s)
        elif row.word and not row.is_logged:
            unlogged.add(row.entry.hex())
        if row.why != DOES_NOT_OPEN:
            listed.pop(row.entry, None)
    lacks = [
        *_too_soon(standing, latest_s, now_s, n_in_time),
        *(_unread(standing, latest_s) if now_s > latest_s else ()),
        *files.lacks(),
        *_waiting(waiting),
        *_listed(standing, listed.values(), now_s, is_listed=missing is not None),
        *_judged(standing, unlogged, moved),
    ]
    unknown = [each for each in lacks if each.kind in MAY_BE_ANYWHERE]
    if unknown:
        lacks += _silent(standing, unknown)
    lacks += [
        Lack(
            "lie",
            0,
            who,
            None,
            f"{who} has signed or served what cannot be true",
            "tell its operator, and the organiser",
        )
        for who in dict.fromkeys(who for who, _ in standing.lies)
    ]
    if moved_to_s is not None:
        text = "the deadline has moved since, and entries were not yet judged by the new one"
        lacks.append(Lack("deadline moved", 0, "the organiser", standing.time_s, text, RUN))
    if now_s - standing.time_s > FRESH_FOR_S and not is_running:
        age = format_duration(now_s - standing.time_s)
        text = f"these numbers are old, written {age} ago: nothing is running now"
        lacks.append(Lack("old", 0, "the destination", standing.time_s, text, RUN))
    return Evidence(here, files.n_here, files.n_unmeasured, is_read, tuple(lacks))


def _remembered(rows: Iterable[Row], listed: dict[bytes, Missing]) -> Iterator[Row]:
    """Yield rows without those that nobody opens any more: their person was forgotten before."""
    for row in rows:
        if row.is_forgotten and not row.word:
            listed.pop(row.entry, None)
        else:
            yield row


def evidence_of_cancelled(
    standing: Standing, rows: Iterable[Row], here: Place, folder: Path, *, is_read: bool
) -> Evidence:
    """Look for what was collected before an event was cancelled: of the rest nothing will be there.

    Parameters and errors are those of `evidence_of`.
    """
    files, unlogged = _Files(here, folder, is_read=is_read), _Tally()
    for row in rows:
        if row.word == COLLECTED:
            files.look(row)
        if row.word and not row.is_logged and (row.word, row.why) != (REFUSED, LATE):
            unlogged.add(row.entry.hex())
    text = f"the event was cancelled: {standing.cancelled}: nothing more is collected"
    remedy = "what lies here stays"
    lacks = (
        *files.lacks(),
        *_judged(standing, unlogged, _Tally()),
        Lack(CANCELLED, 0, "the organiser", None, text, remedy),
    )
    return Evidence(here, files.n_here, files.n_unmeasured, is_read, lacks)


CANCELLED = "cancelled"
WAITING, UNREAD = "waiting", "log not read"
# Of these some silent bistro may have a copy.
MAY_BE_ANYWHERE = (WAITING, LOST_SINCE, WITHOUT_DATA, WITHOUT_UPLOAD, DOES_NOT_OPEN, UNREAD)


def _too_soon(standing: Standing, latest_s: int, now_s: int, n_in_time: int) -> list[Lack]:
    if now_s <= latest_s:
        text = f"the deadline is in {format_duration(latest_s - now_s)}: more may be handed in"
        return [Lack("deadline", 0, "people", None, text, "wait for it")]
    if not n_in_time and not standing.is_settled:
        text = "no entry is known to be in time yet"
        return [Lack("nothing", 0, "people", latest_s, text, "wait for what people hand in")]
    return []


def _unread(standing: Standing, latest_s: int) -> list[Lack]:
    if standing.unread is None:
        text = (
            "an earlier version wrote this, and did not record whether logs were read to their ends"
        )
        return [Lack(UNREAD, 0, "the destination", latest_s, text, RUN)]
    return [
        Lack(
            UNREAD,
            0,
            url,
            latest_s,
            f"{url}: its log was not read to the end that witnesses have signed: it may name more",
            "it is read a minute after the deadline; if it does not answer then, ask its "
            "operator to start it",
        )
        for url in standing.unread
    ]


def _waiting(waiting: dict[tuple[str, ...], _Tally]) -> list[Lack]:
    found = []
    for bistros, tally in sorted(waiting.items()):
        who = ", ".join(bistros) or "the destination"
        text = f"{counted(tally.n, 'entry', 'entries')} of {who}: not collected yet, or not judged"
        remedy = f"{RUN}; where it does not come, {SEND_AGAIN}"
        found.append(tally.lack(WAITING, who, text, remedy))
    return found


def _listed(
    standing: Standing, listed: Iterable[Missing], now_s: int, *, is_listed: bool
) -> list[Lack]:
    found: defaultdict[tuple[str, str], _Tally] = defaultdict(_Tally)
    for each in listed:
        # What does not open may come sealed anew, until then.
        if each.kind != DOES_NOT_OPEN or now_s <= standing.collect_until_s:
            who = ", ".join(each.bistros) or "people"
            if each.kind == LOST_SINCE:
                who = "the destination"
            found[each.kind, who].add(each.entry.hex())
    if not is_listed:
        for kind, n in standing.missing.items():
            found[kind, "the destination"] = _Tally(n)
    return [
        tally.lack(
            kind,
            who,
            f"{counted(tally.n, 'entry', 'entries')} of {who}: {kind}",
            _remedy(kind, who),
            standing.deadline_s,
        )
        for (kind, who), tally in sorted(found.items())
    ]


def _remedy(kind: str, who: str) -> str:
    remedies = {WITHOUT_UPLOAD: UPLOAD_AGAIN, LOST_SINCE: FROM_COPY}
    return remedies.get(kind) or f"ask {who}, or {SEND_AGAIN}"


def _judged(standing: Standing, unlogged: _Tally, moved: _Tally) -> list[Lack]:
    found = []
    if unlogged.n:
        text = (
            f"{counted(unlogged.n, 'verdict')}: not in the log of verdicts that enough witnesses "
            "have signed"
        )
        remedy = RUN
        if standing.log_lacks:
            # Witnesses sign nothing more; however long it runs, nothing is published.
            text, remedy = f"{text}: {standing.log_lacks}", RECOVER
        found.append(unlogged.lack("not published", "the destination", text, remedy))
    if moved.n:
        text = (
            f"{counted(moved.n, 'entry', 'entries')}: refused as late, and in time since the "
            "deadline was moved"
        )
        found.append(moved.lack("late no more", "the destination", text, RUN))
    return found


def _silent(standing: Standing, unknown: Sequence[Lack]) -> list[Lack]:
    found = []
    for name in standing.silent:
        n = sum(each.n for each in unknown if name in each.who.split(", ") or each.who == "people")
        text = f"{name} is silent, and may hold what is missing"
        remedy = f"ask its operator to start it; where it is lost, {SEND_AGAIN}"
        found.append(Lack("silent", n, name, standing.contacts[name], text, remedy))
    return found
