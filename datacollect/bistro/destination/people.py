"""The organiser's table: who has handed in what, what became of it, and who has nothing yet.

The register knows entries and numbers of tickets; the organiser's list knows whose these are. What
is called collected lies on this disk, as long as it was written.
"""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from datacollect.bistro.destination.file_sets import LIST, safe_name
from datacollect.bistro.destination.losses import KeptFile
from datacollect.bistro.destination.missing import WITHOUT_UPLOAD
from datacollect.bistro.destination.run.kept_files import FILES, PUT_BACK, fault_of, set_at
from datacollect.bistro.formats.custody.verdicts import COLLECTED, LATE, NEVER_CAME, SUPERSEDED
from datacollect.bistro.formats.event.marks import MarkedEntries
from datacollect.files.held_folder import not_written
from datacollect.files.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from datacollect.bistro.destination.accepting import Accepted
    from datacollect.bistro.destination.marking import MarkKeys
    from datacollect.bistro.destination.missing import Missing
    from datacollect.bistro.destination.place import Place
    from datacollect.bistro.destination.register_reading import Row

# What became of a draft, the best first: a person's state is that of the best one.
HERE = "collected"
# What has come by mail or stick: there is no proof of it.
BY_HAND = "accepted by hand"
NOT_HERE = "collected, and not here"
HELD = "held, not collected yet"
PROMISED = "timestamp, not sent yet"
REFUSED = "refused"
TOO_LATE = "late"
DROPPED = "superseded"
NOTHING = "nothing yet"
# Removed for good, with all that named the person.
GONE = "forgotten"
# Nothing more is wanted.
DONE = (HERE, BY_HAND, GONE)
STATES = (*DONE, NOT_HERE, HELD, PROMISED, REFUSED, TOO_LATE, DROPPED, NOTHING)


class DraftFile(NamedTuple):
    """One of several files of a draft: as its person calls it, where it lies, its bytes."""

    name: str
    file: str
    n_bytes: int


@dataclass(frozen=True)
class Draft:
    """One file of somebody's, or several that came as one, and what became of it.

    Attributes
    ----------
    entry : bytes
        Empty of what was accepted by hand.
    state : str
        One of `STATES`.
    name : str
        As the person calls it, or the first of several; empty as long as it is sealed, or where the
        list of several is lost.
    why : str
        Of what is refused; how it has come, of what was accepted by hand; what to do about a list
        of several files that is lost.
    time_s : int or None
        By when logs prove it, seconds since 1970; or when it had come, as the organiser says.
    late_s : int or None
        How much later than the deadline; None: it is in time, or its time is not known.
    bistros : tuple of str
        Who holds it, of what is not collected.
    file : str or None
        Below the destination's ``files``; of several files the list of them.
    n_bytes : int or None
        Of all its files; None: nobody knows.
    parts : tuple of DraftFile
        All of several files; one alone is not in it.
    """

    entry: bytes
    state: str
    name: str = ""
    why: str = ""
    time_s: int | None = None
    late_s: int | None = None
    bistros: tuple[str, ...] = ()
    file: str | None = None
    n_bytes: int | None = None
    parts: tuple[DraftFile, ...] = ()

    @property
    def files(self) -> tuple[DraftFile, ...]:
        """All files that lie here, or lay, one or several."""
        if self.parts or self.file is None or not self.name:
            return self.parts
        return (DraftFile(self.name, self.file, self.n_bytes or 0),)

    @property
    def text(self) -> str:
        """What people are shown of it, on one line."""
        size = "" if self.n_bytes is None else f" ({format_bytes(self.n_bytes)})"
        if len(self.parts) > 1:
            size = f" ({len(self.parts)} files, {format_bytes(self.n_bytes or 0)})"
            return f"{self.name} and {len(self.parts) - 1} more{size}"
        return f"{self.name}{size}" if self.name else ""


@dataclass(frozen=True)
class HandedIn:
    """Drafts that somebody has handed in, by the time at which they were proved."""

    person: str
    group: str = ""
    email: str = ""
    drafts: tuple[Draft, ...] = ()

    @property
    def state(self) -> str:
        """State of the best of the drafts."""
        if len(self.drafts) == 1:
            return self.drafts[0].state
        return min((each.state for each in self.drafts), key=STATES.index, default=NOTHING)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "person": self.person,
            "group": self.group,
            "email": self.email,
            "state": self.state,
            "files": [
                {
                    "entry": each.entry.hex(),
                    "name": each.name,
                    "state": each.state,
                    "why": each.why,
                    "time_s": each.time_s,
                    "late_s": each.late_s,
                    "bistros": list(each.bistros),
                    "file": None if each.file is None else f"{FILES}/{each.file}",
                    "bytes": each.n_bytes,
                    "parts": [
                        {"name": name, "file": f"{FILES}/{file}", "bytes": n_bytes}
                        for name, file, n_bytes in each.parts
                    ],
                }
                for each in self.drafts
            ],
        }


def handed_in(
    people: Iterable[HandedIn],
    tickets: Mapping[str, str],
    rows: Iterable[Row],
    missing: Iterable[Missing],
    here: Place,
    folder: Path,
    *,
    latest_s: int,
    marks: MarkKeys | None = None,
    ticket_keys: Mapping[str, str] | None = None,
) -> list[HandedIn]:
    """Return what each of the people has handed in, in their order.

    Parameters
    ----------
    people : iterable of HandedIn
        Without drafts.
    tickets : mapping of str to str
        Whose each number of a ticket is.
    rows : iterable of Row
        Of the register.
    missing : iterable of Missing
        What is not here, of what logs or bistros have.
    here : Place
        This machine, and the destination's folder.
    folder : Path
        That folder.
    latest_s : int
        Until when entries are in time.
    marks, ticket_keys : optional
        By which it is found whose a timestamp is that nothing was sent for: the destination's, and
        the public keys of tickets by their numbers.

    Raises
    ------
    StoreError
        The disk fails.
    """
    drafts: dict[str, list[Draft]] = defaultdict(list)
    # Whose these are no bistro has said: timestamps alone, and what never came. Marks say it.
    nameless = {each.entry: Draft(each.entry, PROMISED) for each in missing if _is_bare(each)}
    for row in rows:
        draft = _draft(row, here, folder, latest_s)
        if not row.ticket:
            nameless[row.entry] = draft
        elif row.ticket in tickets:
            drafts[tickets[row.ticket]].append(draft)
            nameless.pop(row.entry, None)
    keys = ticket_keys or {}
    # Nearly all that was never sent is of people of whom nothing has come: they are tried first.
    likely = sorted(keys, key=lambda ticket: tickets.get(ticket) in drafts)
    for entry, ticket in _marked([*nameless], marks, likely, keys).items():
        if ticket in tickets:
            drafts[tickets[ticket]].append(nameless[entry])
    return [
        HandedIn(each.person, each.group, each.email, _by_time(drafts[each.person]))
        if each.person in drafts
        else each
        for each in people
    ]


def _by_time(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    # Nearly all lists have one at most: not even a function is made for these.
    return tuple(drafts if len(drafts) < 2 else sorted(drafts, key=lambda one: one.time_s or 0))


def with_accepted(
    people: Iterable[HandedIn], accepted: Iterable[Accepted], folder: Path, latest_s: int
) -> list[HandedIn]:
    """Return people with what was accepted of them by hand; who was named nowhere else, too.

    Parameters
    ----------
    people : iterable of HandedIn
    accepted : iterable of Accepted
    folder : Path
        Of the destination.
    latest_s : int
        Until when files are in time.

    Raises
    ------
    StoreError
        The disk fails.
    """
    found = {each.person: each for each in people}
    for each in accepted:
        one = found.get(each.person, HandedIn(each.person))
        kept = KeptFile(each.file, each.n_bytes, bytes.fromhex(each.sha256))
        state = BY_HAND if fault_of(folder, each.file, kept) is None else NOT_HERE
        late_s = each.came_s - latest_s if each.came_s > latest_s else None
        known = (each.name, each.how, each.came_s, late_s, (), each.file, each.n_bytes)
        draft = Draft(b"", state, *known)
        found[each.person] = replace(one, drafts=_by_time((*one.drafts, draft)))
    return [*found.values()]


def _is_bare(one: Missing) -> bool:
    return one.kind == WITHOUT_UPLOAD


def _draft(row: Row, here: Place, folder: Path, latest_s: int) -> Draft:
    late_s = None
    if row.time_s is not None and row.time_s > latest_s:
        late_s = row.time_s - latest_s
    kept = next((kept for place, kept in row.kept if place.is_same(here)), None)
    state = _state(row, folder, kept, is_late=late_s is not None)
    why = row.why if state in (REFUSED, TOO_LATE) and row.word else ""
    name, n_bytes, parts = _files_of(row, folder, kept)
    if state == NOT_HERE and row.file is not None and not name:
        why = f"{FILES}/{row.file}, the list of its files, is missing or damaged; {PUT_BACK}"
    about = (row.time_s, late_s, row.bistros, row.file)
    return Draft(row.entry, state, name, why, *about, n_bytes, parts)


def _state(row: Row, folder: Path, kept: KeptFile | None, *, is_late: bool) -> str:
    if row.is_forgotten:
        return GONE
    if row.word == COLLECTED:
        is_here = row.file is not None and fault_of(folder, row.file, kept) is None
        return HERE if is_here else NOT_HERE
    if row.word == SUPERSEDED:
        return DROPPED
    if row.word:
        return TOO_LATE if row.why == LATE else REFUSED
    if is_late:
        return TOO_LATE
    return HELD if row.bistros else PROMISED


def _files_of(
    row: Row, folder: Path, kept: KeptFile | None
) -> tuple[str, int | None, tuple[DraftFile, ...]]:
    """Return what a draft's only or first file is called, bytes of all, and each of several."""
    if row.file is None:
        return "", None, ()
    above, _, name = row.file.rpartition("/")
    if name != LIST:
        return row.name or name, None if kept is None else kept.n_bytes, ()
    parts = tuple(
        DraftFile(each.name, f"{above}/{each.file}", each.n_bytes)
        for each in set_at(folder, row.file)
    )
    if not parts:
        return "", None, ()
    return parts[0].name, sum(each.n_bytes for each in parts), parts


def _marked(
    entries: Sequence[bytes],
    marks: MarkKeys | None,
    likely: Sequence[str],
    ticket_keys: Mapping[str, str],
) -> dict[bytes, str]:
    """Return of which tickets entries are, as far as their marks say.

    Tickets are tried in their order, until whose each is is known: a key costs 0.1 ms.
    """
    if not entries or marks is None:
        return {}
    marked = MarkedEntries(np.array(entries, dtype="S32"))
    found: dict[bytes, str] = {}
    keys = marks.each_of(ticket_keys[ticket] for ticket in likely)
    for ticket, mark in zip(likely, keys, strict=True):
        if mark is not None:
            found.update({entries[i]: ticket for i in marked.of(mark).tolist()})
        if len(found) == len(entries):
            break
    return found


def link_files(people: Iterable[HandedIn], folder: Path, into: Path) -> int:
    """Make ``INTO/PERSON/NAME`` for each collected file, links to where it lies; return how many.

    Of several files of one draft names may have folders, which are made.

    A link that is there and leads elsewhere is made anew; what is no link is left alone, and the
    file gets another name.

    Parameters
    ----------
    people : iterable of HandedIn
        ``person`` names a folder: `datacollect.bistro.organiser.roster.file_stem` of the name.
    folder : Path
        Of the destination.
    into : Path

    Raises
    ------
    NotWrittenError
        The links cannot be made.
    """
    n_made = 0
    try:
        for each in people:
            taken: dict[Path, set[str]] = defaultdict(set)
            for draft in each.drafts:
                if draft.state not in DONE or draft.file is None:
                    continue
                links = [(_called(draft, part), part.file) for part in draft.files]
                folders = {above for path, _ in links for above in path.parents}
                top = _top(into / each.person, draft, folders)
                # All of them first: no link takes the name of one.
                for above in folders:
                    (top / above).mkdir(parents=True, exist_ok=True)
                for path, file in links:
                    place = top / path.parent
                    lies = folder.absolute() / FILES / file
                    target = os.path.relpath(lies, place.absolute())
                    _link(place, path.name, target, taken[place])
                    n_made += 1
    except OSError as error:
        raise not_written(into, error) from error
    return n_made


def _called(draft: Draft, part: DraftFile) -> Path:
    """Return what the link to a file is called: of several as they lie, where none are alike."""
    return Path(part.file.partition("/")[2] if draft.parts else safe_name(part.name))


def _top(place: Path, draft: Draft, folders: Collection[Path]) -> Path:
    """Return where a draft's folders can be: where none has the name of something else."""
    own = draft.entry.hex()[:8]
    tops = chain([place], (place / (own if n == 1 else f"{own} ({n})") for n in count(1)))
    return next(top for top in tops if not any(_is_taken(top / each, place) for each in folders))


def _is_taken(path: Path, place: Path) -> bool:
    return path != place and (path.is_symlink() or (path.exists() and not path.is_dir()))


def _link(place: Path, name: str, target: str, taken: set[str]) -> None:
    stem, dot, ending = name.rpartition(".")
    for n in range(1, 10_000):
        called = name if n == 1 else f"{stem} ({n}).{ending}" if dot and stem else f"{name} ({n})"
        path = place / called
        is_others = path.exists() and not path.is_symlink()
        if called.casefold() in taken or is_others:
            continue
        taken.add(called.casefold())
        with suppress(OSError):
            if str(path.readlink()) == target:
                return
            path.unlink()
        path.symlink_to(target)
        return


def counted(people: Iterable[HandedIn]) -> dict[str, int]:
    """Return how many people are in which state, the best first.

    >>> counted([HandedIn("Ann"), HandedIn("Bob")])
    {'nothing yet': 2}
    """
    states = [each.state for each in people]
    return {state: n for state in STATES if (n := states.count(state))}


# What is refused without the person's doing is no reason to remind; these two are.
def lacks_upload(one: HandedIn) -> bool:
    """Return whether somebody has nothing that is on its way: no file, or a timestamp alone.

    >>> lacks_upload(HandedIn("Ann")), lacks_upload(HandedIn("Bob", drafts=(Draft(b"", HELD),)))
    (True, False)
    """
    return one.state in (NOTHING, PROMISED) or all(
        each.state == REFUSED and each.why == NEVER_CAME for each in one.drafts
    )
