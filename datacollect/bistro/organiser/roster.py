"""Rosters: the people of an event, from a table of one's own or one that a school's system exports.

Names are read as people have them. What a person's files are called follows from the name alone, so
that whoever runs a command again finds them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, read_bytes, text_of
from datacollect.files.kinds import shown
from datacollect.files.tables import open_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from datacollect.files.tables import TextTable

COLUMN = "person"
# Columns as exports call them, in lower case: Moodle in three languages, HotCRP, Gradescope, lists.
_WHOLE = (COLUMN, "name", "full name", "student", "vollständiger name", "nom complet")
_FIRST = ("first name", "first", "given name", "vorname", "prénom")
_LAST = ("last name", "surname", "last", "family name", "nachname", "nom de famille", "nom")
_EMAIL = (
    "email",
    "email address",
    "e-mail",
    "e-mail-adresse",
    "mail",
    "adresse de courriel",
    "courriel",
)
_GROUP = ("group", "groups", "class", "gruppe", "gruppen", "klasse", "groupe", "groupes", "classe")

LONGEST_NAME = 300
# What names files on every system as it is: no separators, nothing hidden, nothing too long.
_AS_IT_IS = re.compile(r"[^\W_][\w.@+ ,'’()&-]*")
_STEM_BYTES = 120
# Windows takes these for devices, whatever follows a dot.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Person:
    """One of the people.

    Attributes
    ----------
    name : str
        As the roster has it; different for each.
    email, group : str
        Empty where the roster has none.
    """

    name: str
    email: str = ""
    group: str = ""

    @property
    def stem(self) -> str:
        """Return what the person's files are called, before their ending."""
        return file_stem(self.name)


def file_stem(name: str) -> str:
    """Return what a person's files are called: the name, or where it cannot name a file its like.

    >>> file_stem("O'Neil"), file_stem("Müller, Jan")
    ("O'Neil", 'Müller, Jan')
    >>> file_stem("a/b")
    'a_b-c14cddc0'
    """
    is_long = len(name.encode()) > _STEM_BYTES
    if _AS_IT_IS.fullmatch(name) and not (
        is_long or name.endswith((".", " ")) or _DEVICES.fullmatch(name)
    ):
        return name
    readable = re.sub(r"[^\w@+,-]+", "_", name).lstrip("_.,+@-").rstrip("_.") or "person"
    short = readable.encode()[: _STEM_BYTES - 9].decode(errors="ignore")
    return f"{short}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def read_people(path: str | PathLike[str]) -> list[Person]:
    """Return the people of a table; raise `ProblemError` where one stands there twice.

    Parameters
    ----------
    path : path-like
        CSV with a column of names, such as ``person``, or with first and last names; columns of
        e-mail addresses and groups are read where they are. Two of one name are told apart by
        their addresses.
    """
    name = document_name(path)
    try:
        text = text_of(read_bytes(path), name)
    except ProblemError as error:
        raise ProblemError(f"{error}; a spreadsheet writes such a table as 'CSV UTF-8'") from None
    table = open_table(text, name, COLUMN)
    people = list(_people(table, name))
    doubles = Counter(person.name.casefold() for _, person in people)
    found: dict[str, tuple[int, Person]] = {}
    twice = []
    for line, person in people:
        if doubles[person.name.casefold()] > 1 and person.email:
            told = f"{person.name} ({person.email})"
            person = Person(told, person.email, person.group)
        # Some file systems take capitals for the same.
        first, before = found.setdefault(person.stem.casefold(), (line, person))
        if first != line:
            twice.append(f"{before.name!r} in lines {first} and {line}")
    if twice:
        more = f" and {len(twice) - 5} more" if len(twice) > 5 else ""
        raise ProblemError(
            f"{name}: each person must be listed once, got {', '.join(twice[:5])}{more}; leave "
            "one of each out, or tell them apart, such as by a column email"
        )
    return [person for _, person in found.values()]


def require_named(name: str, people: Collection[str], where: str) -> None:
    """Raise `ProblemError` where a list of people does not name somebody.

    >>> require_named("Ann", ["Ann", "Bob"], "the list")
    """
    if name in people:
        return
    known = get_close_matches(name, people, 1)
    hint = f"; did you mean {known[0]!r}?" if known else "; write the name as it stands there"
    raise ProblemError(f"{where} must name {shown(name)}, and names nobody of that name{hint}")


def _people(table: TextTable, name: str) -> Iterator[tuple[int, Person]]:
    at = _columns(table.header)
    whole = at.get(_WHOLE)
    parts = [whole] if whole is not None else [at[kind] for kind in (_FIRST, _LAST) if kind in at]
    if not parts:
        raise ProblemError(
            f"{name}, line {1 + table.skipped_lines}: must have the column {COLUMN}, or first and "
            f"last name, got {shown(', '.join(table.header))}; it holds a name or number for each "
            "person"
        )
    for line, row in table.rows():
        said = " ".join(" ".join(row[i] for i in parts).split())
        if not said or len(said) > LONGEST_NAME or not said.isprintable():
            raise ProblemError(
                f"{name}, line {line}: {COLUMN} must be a name or number of at most "
                f"{LONGEST_NAME} letters, got {shown(said)}; write one, or remove the line"
            )
        others = [row[at[kind]].strip() if kind in at else "" for kind in (_EMAIL, _GROUP)]
        yield line, Person(said, *others)


def _columns(header: Sequence[str]) -> Mapping[tuple[str, ...], int]:
    """Return where each kind of column stands, by the first of its names that is there."""
    lower = [column.strip().casefold() for column in header]
    return {
        kind: lower.index(found)
        for kind in (_WHOLE, _FIRST, _LAST, _EMAIL, _GROUP)
        if (found := _first(kind, lower)) is not None
    }


def _first(names: Iterable[str], header: Sequence[str]) -> str | None:
    return next((name for name in names if name in header), None)
