"""Forgets a person once an event is over: files, names, what tells whose a ticket is.

What is to be done is written first, and each step may be done again: interrupted anywhere, the same
call goes on. Verdicts, entries and numbers of tickets stay: logs have them for ever, and without
the list of tickets they name nobody.
"""

from __future__ import annotations

import glob
import json
import shutil
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from datacollect.bistro.destination.accepting import (
    ACCEPTED,
    LIST_FILE,
    read_accepted,
    write_accepted,
)
from datacollect.bistro.destination.file_sets import LIST as FILE_LIST
from datacollect.bistro.destination.file_sets import remove_left
from datacollect.bistro.destination.place import Place
from datacollect.bistro.destination.register import Register
from datacollect.bistro.destination.register_reading import reading
from datacollect.bistro.destination.reminding import SENT_FILE
from datacollect.bistro.destination.run.kept_files import FILES
from datacollect.bistro.destination.run.standing import LOCK, is_at_work
from datacollect.bistro.formats.custody.segments import segment_name
from datacollect.bistro.formats.event.tickets import TICKET_SUFFIX, Ticket
from datacollect.bistro.formats.receipt.receipt import read_receipt
from datacollect.bistro.organiser.roster import file_stem, require_named
from datacollect.bistro.organiser.ticket_files import (
    FORGOTTEN,
    LINK_SUFFIX,
    LIST,
    read_ticket_list,
    write_ticket_list,
)
from datacollect.bistro.person.items import RECEIPT_SUFFIX
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    read_bytes,
    write_owned,
    written_durably,
)
from datacollect.files.durability import synchronise
from datacollect.files.held_folder import Held, not_written

if TYPE_CHECKING:
    from pathlib import Path

    from datacollect.bistro.destination.run.standing import Standing
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.http.config import DestinationConfig

JOURNAL, FORMAT = "forgetting.json", "datacollect-forgetting/1"
NUMBER_DIGITS = 16
# Of names of files that are being written, which are cut.
MOST_STEM_LETTERS = 20


@dataclass(frozen=True)
class Plan:
    """Files and entries that are to be forgotten.

    Attributes
    ----------
    person : str
    tickets : tuple of str
        Numbers of the person's tickets.
    entries : tuple of str
        What was handed in with them, hexadecimal.
    files : tuple of str
        Collected ones, below ``files``.
    segments : tuple of (str, int)
        Fetched segments in which sealed bytes of theirs lie.
    left : tuple of str
        Sentences on what others still have.
    """

    person: str
    tickets: tuple[str, ...]
    entries: tuple[str, ...]
    files: tuple[str, ...]
    segments: tuple[tuple[str, int], ...]
    left: tuple[str, ...]

    @property
    def stem(self) -> str:
        """Return what the person's files are called."""
        return file_stem(self.person)


def forget(
    config: DestinationConfig, tickets: Path, person: str, standing: Standing, event: Event
) -> Plan:
    """Forget a person; return what that was, and what others still have.

    Parameters
    ----------
    config : DestinationConfig
    tickets : Path
        Folder of the tickets.
    person : str
        A name as ``tickets.csv`` has it.
    standing : Standing
        What `event run` has left.
    event : Event

    Raises
    ------
    ProblemError
        It is too soon, a destination is at work, or nobody has that name.
    StoreError, NotWrittenError
        The disk or the database fails; the same call goes on.
    """
    if standing.cancelled is None and time.time() <= standing.collect_until_s:
        raise ProblemError(
            "nobody can be forgotten while files are collected: which of a person's drafts counts "
            f"is decided after {event.clock_text(standing.collect_until_s)}; forget afterwards"
        )
    if is_at_work(config.folder):
        raise ProblemError(
            f"{document_name(config.folder)}: `datacollect event run` is running there; stop it, "
            "and run this again"
        )
    with ExitStack() as held:
        # Nobody collects, accepts or forgets meanwhile: each would write what the other has read.
        for folder in ((config.folder / LOCK).parent, config.folder / ACCEPTED):
            held.enter_context(closing(Held(folder)))
        return _forgotten(config, tickets, person, event)


def _forgotten(config: DestinationConfig, tickets: Path, person: str, event: Event) -> Plan:
    begun = _begun(config.folder)
    if begun is not None and begun.person != person:
        raise ProblemError(
            f"{document_name(config.folder / JOURNAL)}: forgetting {begun.person!r} was "
            "interrupted; first run `datacollect event forget` again for that person"
        )
    plan = begun or _planned(config, tickets, person, event)
    if begun is None:
        _write_journal(config.folder, plan)
    try:
        for step in STEPS:
            step(plan, config, tickets, event)
        (config.folder / JOURNAL).unlink()
        synchronise(config.folder)
    except OSError as error:
        raise not_written(config.folder, error) from error
    return plan


def _begun(folder: Path) -> Plan | None:
    path = folder / JOURNAL
    if not path.exists():
        return None
    try:
        tree = json.loads(read_bytes(path))
        if tree.pop("format") != FORMAT:
            raise ValueError
        segments = tuple((name, number) for name, number in tree.pop("segments"))
        person = tree.pop("person")
        rest = {key: tuple(value) for key, value in tree.items()}
        return Plan(person=person, segments=segments, **rest)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ProblemError(
            f"{document_name(path)}: is damaged; remove it, and run this again for the person for "
            "whom it was begun"
        ) from None


def _write_journal(folder: Path, plan: Plan) -> None:
    with written_durably(folder / JOURNAL) as beside:
        data = json.dumps({"format": FORMAT, **asdict(plan)}, ensure_ascii=False)
        write_owned(beside, data.encode(), mode=0o600)


def _planned(config: DestinationConfig, tickets: Path, person: str, event: Event) -> Plan:
    rows = read_ticket_list(tickets / LIST)
    accepted = [each.person for each in read_accepted(config.folder)]
    require_named(person, [*(row.person for row in rows), *accepted], document_name(tickets / LIST))
    mine = {row.number for row in rows if row.person == person}
    here, entries, files, left = Place.of(config.folder), [], [], []
    with reading(config.register, event.id.hex()) as found:
        for row in found:
            if row.ticket not in mine:
                continue
            entries.append(row.entry)
            files += [kept.file for place, kept in row.kept if place.is_same(here)]
            if row.file is not None and not row.kept:
                files.append(row.file)
            left += [
                f"{place.host} has a copy, {place.folder}/{FILES}/{_all_of(kept.file)}: remove it "
                "there"
                for place, kept in row.kept
                if not place.is_same(here)
            ]
    with closing(Register(config.register, event, here)) as register:
        segments = register.held.segments_of(entries)
        for name in sorted({bistro for bistro, _, _, _ in segments}):
            is_told = all(covered for bistro, _, _, covered in segments if bistro == name)
            said = (
                "was told that it may delete it, and does so after its keep_s"
                if is_told
                else "was not yet told that it may delete it, and does so at keep_until"
            )
            left.append(f"bistro {name} has had a sealed copy; it {said}")
    return Plan(
        person,
        tuple(sorted(mine)),
        tuple(sorted(entry.hex() for entry in entries)),
        tuple(dict.fromkeys(files)),
        tuple((name, number) for name, number, is_here, _ in segments if is_here),
        tuple(left),
    )


def _all_of(file: str) -> str:
    """Return what is to be removed of a draft: of several files the folder that holds them all.

    >>> _all_of("4af1/a.pdf"), _all_of("4af1/.files.json")
    ('4af1/a.pdf', '4af1')
    """
    above, _, name = file.rpartition("/")
    return above if name == FILE_LIST else file


# Steps: each may be done again --------------------------------------------------------------------


def _register(plan: Plan, config: DestinationConfig, _: Path, event: Event) -> None:
    """Have the register name no file of theirs, and have none of them fetched again."""
    with closing(Register(config.register, event, Place.of(config.folder))) as register:
        register.forget([bytes.fromhex(entry) for entry in plan.entries])


def _files(plan: Plan, config: DestinationConfig, _: Path, __: Event) -> None:
    """Remove the files, with the folders of their entries: also those that no register names."""
    names = {file.partition("/")[0] for file in plan.files}
    for name in sorted(names.union(plan.entries)):
        _remove(config.folder / FILES / name)
    _remove(config.folder / FILES / ACCEPTED / plan.stem)
    known = read_accepted(config.folder)
    rest = [each for each in known if each.person != plan.person]
    if rest != known:
        write_accepted(config.folder, rest)


def _segments(plan: Plan, config: DestinationConfig, _: Path, event: Event) -> None:
    """Remove fetched segments; should others' bytes there be wanted, they are fetched again."""
    with closing(Register(config.register, event, Place.of(config.folder))) as register:
        for bistro, number in plan.segments:
            path = config.folder / "segments" / bistro / segment_name(number)
            path.unlink(missing_ok=True)
            register.held.drop_segments(bistro, [number])


def _reminders(plan: Plan, config: DestinationConfig, _: Path, __: Event) -> None:
    """Forget to whom reminders went."""
    path = config.folder / SENT_FILE
    if not path.exists():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    rest = [line for line in lines if not _is_of(line, plan.person)]
    if rest != lines:
        with written_durably(path) as beside:
            write_owned(beside, b"".join(rest), mode=0o600)


def _is_of(line: bytes, person: str) -> bool:
    try:
        return bool(json.loads(line)["person"] == person)
    except (ValueError, KeyError, TypeError):
        return True  # the cut line of who was killed: it may be anybody's


def _receipts(plan: Plan, config: DestinationConfig, _: Path, __: Event) -> None:
    """Remove receipts that were shown of these entries: the names of such files are people's."""
    if config.receipts is None or not config.receipts.is_dir():
        return
    for path in sorted(config.receipts.rglob(f"*{RECEIPT_SUFFIX}")):
        with suppress(ProblemError):
            if read_receipt(read_bytes(path), document_name(path)).entry.hex() in plan.entries:
                path.unlink()


def _tickets(plan: Plan, _: DestinationConfig, tickets: Path, __: Event) -> None:
    """Give tickets names that name nobody: by them is known which drafts count."""
    stem = glob.escape(plan.stem)
    (tickets / f"{plan.stem}{LINK_SUFFIX}").unlink(missing_ok=True)
    for pattern in (f"{stem}{TICKET_SUFFIX}", f"{stem}.revoked-????????{TICKET_SUFFIX}"):
        for path in sorted(tickets.glob(pattern)):
            number = Ticket.from_file(path).number.hex()
            if number in plan.tickets:
                path.rename(tickets / f"{_nameless(number)}{TICKET_SUFFIX}")
    synchronise(tickets)


def _ticket_list(plan: Plan, _: DestinationConfig, tickets: Path, __: Event) -> None:
    """Have the list of tickets name nobody for these."""
    rows = read_ticket_list(tickets / LIST)
    if not any(row.person == plan.person for row in rows):
        return
    nameless = [
        row._replace(person=_nameless(row.number)) if row.person == plan.person else row
        for row in rows
    ]
    write_ticket_list(tickets / LIST, nameless)


def _left_over(plan: Plan, config: DestinationConfig, tickets: Path, __: Event) -> None:
    """Remove what killed processes were writing: it may hold her file, or her name."""
    folder, files = config.folder, config.folder / FILES
    stem = glob.escape(plan.stem[:MOST_STEM_LETTERS])
    for place, pattern in (
        (files, ".*.tmp"),
        (files / ACCEPTED, ".*.tmp"),
        (folder / ACCEPTED, f".{LIST_FILE}.*.tmp"),
        (folder, f".{SENT_FILE}.*.tmp"),
        (folder, f".{JOURNAL}.*.tmp"),
        (tickets, f".{LIST}.*.tmp"),
        (tickets, f".{stem}*.tmp"),
    ):
        for path in sorted(place.glob(pattern)):
            remove_left(path)


# The list comes last: by it an interrupted call, whose journal was lost, can be begun again.
STEPS = (_register, _files, _segments, _reminders, _receipts, _left_over, _tickets, _ticket_list)


def _nameless(number: str) -> str:
    return f"{FORGOTTEN}{number[:NUMBER_DIGITS]}"


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
        synchronise(folder.parent)
