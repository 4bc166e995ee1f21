"""From a draft to the file of an event, which nobody may change any more."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.bistro.event.draft import certificate_files, complete
from datacollect.bistro.event.file import read_event
from datacollect.bistro.event.strength import cautions, withstands
from datacollect.bistro.log.entry import SECRET_BYTES
from datacollect.bistro.sealing.sealed import Inner, open_sealed, seal
from datacollect.errors import IdentityError, ProblemError, naming
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

    from datacollect.bistro.event.event import Event

IDENTITY = "AGE-SECRET-KEY-1"


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
    draft: str | PathLike[str], output: str | PathLike[str], identities: Sequence[str] = ()
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

    Raises
    ------
    ProblemError
        The draft breaks a rule, or an identity opens nothing.
    NotWrittenError
        The file cannot be written.
    """
    name = document_name(draft)
    tree = parse_toml(read_text(draft), name)
    with naming(name):
        data = complete(tree, _organiser(tree), os.urandom, _certificates(tree, draft))
        event = read_event(data)
    opened = _opened(event, identities)
    write_atomically(output, data)
    found = cautions(event)
    untried = len(event.recipients) - len(opened)
    if untried:
        those = counted(untried, "recipient was", "recipients were")
        found.append(
            f"{those} not tried: give the identity with --identity; nobody can open what is sealed "
            "for a wrong one."
        )
    return NewEvent(event, tuple(withstands(event)), tuple(found), opened)


def _organiser(tree: dict[str, Any]) -> str:
    key = tree.get("organiser")
    if not isinstance(key, str):
        raise ProblemError(
            "organiser must be the public key of who signs tickets and amendments; `datacollect "
            "keys new organiser.key` makes one"
        )
    return key


def _certificates(tree: dict[str, Any], draft: str | PathLike[str]) -> dict[str, str]:
    folder = folder_of(draft)
    return {name: read_text(Path(folder) / name) for name in certificate_files(tree)}


def _opened(event: Event, identities: Sequence[str]) -> tuple[str, ...]:
    """Return the recipients for whom a trial was sealed, and opened by an identity."""
    texts = {text: name for name in identities for text in _identities(name)}
    if not texts:
        return ()
    opened: dict[str, str] = {}
    inner = Inner(b"{}", bytes(SECRET_BYTES))
    for recipient in event.recipients:
        sealed = io.BytesIO()
        seal(io.BytesIO(b"a trial"), sealed, inner, [recipient])
        for text in texts:
            try:
                open_sealed(io.BytesIO(sealed.getvalue()), io.BytesIO(), [text])
            except IdentityError:
                continue
            opened[text] = recipient
    for text, name in texts.items():
        if text not in opened:
            raise ProblemError(
                f"{document_name(name)}: opens nothing that is sealed for the event: it must be "
                "the identity of one of the recipients; correct recipients in the draft"
            )
    return tuple(dict.fromkeys(opened.values()))


def _identities(name: str) -> list[str]:
    lines = [line.strip() for line in read_bytes(name).decode(errors="replace").splitlines()]
    found = [line for line in lines if line.startswith(IDENTITY)]
    if not found:
        raise ProblemError(
            f"{document_name(name)}: must hold an identity of age, {IDENTITY}…; `age-keygen` "
            "writes one"
        )
    return found
