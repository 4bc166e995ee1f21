"""Makes an event's file, which nobody may change any more, from a draft."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.event.draft import certificate_files, complete
from datacollect.bistro.formats.event.file import read_event
from datacollect.bistro.formats.event.strength import cautions, withstands
from datacollect.bistro.formats.sealing.identities import opening_identities
from datacollect.bistro.organiser.like_event import like, same_addresses
from datacollect.errors import ProblemError, naming
from datacollect.files.documents import (
    document_name,
    folder_of,
    parse_toml,
    read_bytes,
    read_text,
    write_atomically,
)
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from datacollect.bistro.formats.event.event import Event


@dataclass(frozen=True)
class NewEvent:
    """An event that was written.

    Attributes
    ----------
    event : Event
    withstands, cautions : tuple of str
        Sentences: who would have to lie together for what, and what should be better.
    opened : tuple of str
        Recipients whose identity was given, and has opened a trial.
    """

    event: Event
    withstands: tuple[str, ...]
    cautions: tuple[str, ...]
    opened: tuple[str, ...]


def new_event(
    draft: str | PathLike[str],
    output: str | PathLike[str],
    identities: Sequence[str] = (),
    other: str | PathLike[str] | None = None,
    ports_up: int = 0,
) -> NewEvent:
    """Complete and check a draft, and write the event's file.

    Parameters
    ----------
    draft : path-like
        TOML; files that it names are relative to it.
    output : path-like
        A new file.
    identities : sequence of str
        Files of identities of age, which are tried: each must open what is sealed for the event.
    other : path-like, optional
        Another event's file, from which is taken what the draft leaves out.
    ports_up : int
        As `like` takes it.

    Raises
    ------
    ProblemError
        The draft breaks a rule, or an identity opens nothing.
    NotWrittenError
        The file cannot be written.
    """
    name = document_name(draft)
    tree = parse_toml(read_text(draft), name)
    theirs = b"" if other is None else read_bytes(other)
    if other is not None:
        tree = like(tree, theirs, document_name(other), ports_up)
    with naming(name):
        data = complete(tree, _organiser(tree), os.urandom, _certificates(tree, draft))
        event = read_event(data)
    remedy = "it must be the identity of one of the recipients; correct recipients in the draft"
    opened = opening_identities(identities, event.recipients, remedy)
    tried = dict.fromkeys(opened.values())
    write_atomically(output, data)
    found = cautions(event)
    untried = len(event.recipients) - len(tried)
    if untried:
        those = counted(untried, "recipient was", "recipients were")
        found.append(
            f"{those} not tried: give the identity with --identity; nobody can open what is sealed "
            "for a wrong one."
        )
    if other is not None and (same := same_addresses(event, theirs, document_name(other))):
        found.append(
            f"{', '.join(same)}: {document_name(other)} names the same. A server serves one event: "
            "where both are at work at once give these others, or --ports-up."
        )
    return NewEvent(event, tuple(withstands(event)), tuple(found), tuple(tried))


def _organiser(tree: dict[str, Any]) -> str:
    key = tree.get("organiser")
    if not isinstance(key, str):
        raise ProblemError(
            "organiser must be the public key of the one who signs tickets and amendments; "
            "`datacollect keys new organiser.key` makes one"
        )
    return key


def _certificates(tree: dict[str, Any], draft: str | PathLike[str]) -> dict[str, str]:
    folder = folder_of(draft)
    return {name: read_text(Path(folder) / name) for name in certificate_files(tree)}
