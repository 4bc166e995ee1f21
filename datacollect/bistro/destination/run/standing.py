"""Status of an event, which the destination leaves in its folder for whoever asks."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from datacollect.bistro.destination.missing import Missing
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, parse_json, write_atomically
from datacollect.files.held_folder import not_written
from datacollect.files.locks import is_locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

STANDING_FILE, MISSING_FILE = "status.json", "missing.csv"
FORMAT = "datacollect-event-status/1"
# So long after the last moment nothing is under way any more, whatever clocks say.
SETTLES_AFTER_S = 60
# A bistro is asked every ten seconds.
SILENT_AFTER_S = 60
# Held by who is at work: that of the log of verdicts.
LOCK = "verdicts/lock"


@dataclass(frozen=True)
class BistroStanding:
    """Status that a bistro reports; times in seconds since 1970, None: there is none."""

    name: str
    stored_bytes: int
    free_bytes: int
    oldest_s: float | None


@dataclass(frozen=True)
class LogStanding:
    """Number of entries that a service's log has published."""

    url: str
    size: int


@dataclass(frozen=True)
class Standing:
    """Status of an event.

    Attributes
    ----------
    event, name : str
        Its id, and what people call it.
    time_s : int
        When this was so, by the destination's clock, seconds since 1970.
    deadline_s, collect_until_s : int
    in_time, late : int
        Entries that bistros have reported.
    collected, refused, superseded, waiting : int
        What became of them.
    missing : dict of str to int
        Entries in time that are not here, by what shows that they should be; the list of them is
        in ``missing.csv``.
    lies : tuple of (str, str)
        Who has signed what cannot be, and what.
    bistros : tuple of BistroStanding
        Those that have answered.
    predicted_s : float or None
        How long the rest takes to fetch, by the plan on what is known of links.
    verdicts_url : str or None
        Where the log of verdicts is read.
    n_verdicts : int
        Entries of it that enough witnesses have signed.
    logs : tuple of LogStanding
        Of the services that have answered.
    arrivals : tuple of (int, int)
        When entries stood in a log, seconds since 1970, and how many from then on for
        `arrivals_each_s`; times at which none did are left out.
    arrivals_each_s : int
    is_whole : bool
        Whether it is known which drafts count, and all that is to be said stands in the log of
        verdicts.
    contacts : dict of str to int or None
        By bistro of the event: when it has last answered, seconds since 1970; None: never.
    latest_s : int or None
        Until when entries are in time, seconds since 1970; None: an earlier version has not said.
    unread : tuple of str or None
        The services whose logs were not read to their signed ends, since it was over; None: an
        earlier version has not said.
    event_file : str or None
        The event's file, absolute; None: an earlier version has not said.
    not_here : int
        Files of those collected that did not lie in the destination's folder, as long as they were
        written.
    never_came : int
        Of the refused ones, those that no bistro had when there was no time left.
    cancelled : str or None
        Why the event has ended for good; None: it has not, or an earlier version has not said.
    log_lacks : str
        What the folder lacks of the log of verdicts that witnesses have signed, in words: they sign
        nothing more until it is there. Empty: nothing known.
    """

    event: str
    name: str
    time_s: int
    deadline_s: int
    collect_until_s: int
    in_time: int
    late: int
    collected: int
    refused: int
    superseded: int
    waiting: int
    missing: dict[str, int]
    lies: tuple[tuple[str, str], ...]
    bistros: tuple[BistroStanding, ...]
    predicted_s: float | None
    verdicts_url: str | None
    n_verdicts: int
    logs: tuple[LogStanding, ...]
    arrivals: tuple[tuple[int, int], ...]
    arrivals_each_s: int
    is_whole: bool
    contacts: dict[str, int | None] = field(default_factory=dict)
    latest_s: int | None = None
    unread: tuple[str, ...] | None = None
    event_file: str | None = None
    not_here: int = 0
    never_came: int = 0
    cancelled: str | None = None
    log_lacks: str = ""

    @property
    def silent(self) -> tuple[str, ...]:
        """The bistros that had not answered for long, or never, when this was so."""
        since_s = self.time_s - SILENT_AFTER_S
        return tuple(name for name, at_s in self.contacts.items() if at_s is None or at_s < since_s)

    @property
    def is_settled(self) -> bool:
        """Return whether nothing can change any more."""
        return self.is_whole and self.time_s > self.collect_until_s + SETTLES_AFTER_S

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        lies = [{"who": who, "text": text} for who, text in self.lies]
        return {"format": FORMAT, **asdict(self), "lies": lies, "silent": list(self.silent)}


def write_standing(standing: Standing, missing: Iterable[Missing], folder: Path) -> None:
    """Write both files; whoever reads meanwhile has the old or the new ones.

    Parameters
    ----------
    standing : Standing
    missing : iterable of Missing
    folder : Path

    Raises
    ------
    NotWrittenError
    """
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("entry", "evidence", "bistros", "ticket"))
    for each in missing:
        rows.writerow((each.entry.hex(), each.kind, " ".join(each.bistros), each.ticket or ""))
    write_atomically(folder / MISSING_FILE, out.getvalue().encode())
    data = json.dumps(standing.to_dict(), indent=1, ensure_ascii=False) + "\n"
    write_atomically(folder / STANDING_FILE, data.encode())


def read_standing(folder: Path) -> Standing:
    """Return what the destination has left there.

    Raises
    ------
    ProblemError
        Nothing was ever done there, or the file is none.
    StoreError
        The disk fails.
    """
    path = folder / STANDING_FILE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise ProblemError(
            f"{document_name(folder)}: nothing was collected there yet; `datacollect event run` "
            "starts collecting"
        ) from None
    except OSError as error:
        raise not_written(folder, error) from error
    name = document_name(path)
    tree = parse_json(data.decode(errors="replace"), name)
    try:
        is_one = tree.pop("format") == FORMAT
        tree.pop("silent", None)
        lies = tuple((row["who"], row["text"]) for row in tree.pop("lies"))
        bistros = tuple(BistroStanding(**row) for row in tree.pop("bistros"))
        logs = tuple(LogStanding(**row) for row in tree.pop("logs"))
        arrivals = tuple((at_s, n) for at_s, n in tree.pop("arrivals"))
        unread = tree.pop("unread", None)
        found = Standing(
            **tree,
            unread=None if unread is None else tuple(unread),
            lies=lies,
            bistros=bistros,
            logs=logs,
            arrivals=arrivals,
        )
        if is_one:
            return found
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    raise ProblemError(
        f"{name}: must be what `datacollect event run` has written, {FORMAT}; run it once more"
    )


def read_missing(folder: Path) -> list[Missing] | None:
    """Return what the destination has listed there; None: the list is not there, or is none.

    Raises
    ------
    StoreError
        The disk fails.
    """
    try:
        with (folder / MISSING_FILE).open(encoding="ascii", newline="") as file:
            return [
                Missing(
                    bytes.fromhex(row["entry"]),
                    row["evidence"],
                    tuple(row["bistros"].split()),
                    row["ticket"] or None,
                )
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise not_written(folder, error) from error
    except (KeyError, TypeError, ValueError, AttributeError, csv.Error):
        return None


def is_at_work(folder: Path) -> bool:
    """Return whether a destination is collecting into a folder now."""
    return is_locked(folder / LOCK)


def contacts_before(folder: Path, event: str) -> dict[str, int]:
    """Return when bistros of an event have last answered, as an earlier start has left it."""
    with suppress(ProblemError):
        found = read_standing(folder)
        if found.event == event:
            return {name: at_s for name, at_s in found.contacts.items() if at_s is not None}
    return {}


def counted_kinds(missing: Sequence[Missing]) -> dict[str, int]:
    """Return how many are missing, by the kind of evidence.

    >>> counted_kinds([])
    {}
    """
    return dict(Counter(each.kind for each in missing))
