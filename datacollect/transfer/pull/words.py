"""Messages of a pull about its sources while it is at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.errors import TransferError
from datacollect.files.kinds import shown
from datacollect.files.memory import is_memory_short
from datacollect.files.refusals import refusal_of
from datacollect.files.units import format_bytes
from datacollect.net.safe_text import safe_text, without_secrets

if TYPE_CHECKING:
    from datacollect.transfer.store.source_check import Differing

NOTHING_FITS = "no file there matches"


def in_words(error: BaseException) -> str:
    """Return what to say of an error: ours as they are, others as what they are, a mistake here."""
    if isinstance(error, TransferError):
        return without_secrets(str(error))
    if is_memory_short(error):
        return str(refusal_of(error))
    text = safe_text(f"internal error: {type(error).__name__}: {error}; please report it")
    return without_secrets(text)


def why_of(name: str, error: BaseException) -> str:
    """Return why something is wrong with a source, without its name before it.

    >>> why_of("S1", TransferError("S1: cannot be reached"))
    'cannot be reached'
    """
    return in_words(error).removeprefix(f"{name}: ")


def named(name: str, why: str) -> str:
    """Return why something is wrong with a source, and with which, once.

    >>> named("S1", "cannot be reached"), named("S1", "agent 'S1' calls itself 'S2'")
    ('S1: cannot be reached', "agent 'S1' calls itself 'S2'")
    """
    return why if why.startswith((f"{name}:", f"agent {name!r}")) else f"{name}: {why}"


def differs(name: str, file: Differing) -> str:
    """Return what to say of a file that is not what its source has."""
    return (
        f"note: {name}/{file.path}: the source has other bytes in {format_bytes(file.n_bytes)} of "
        "it than arrived; they are fetched again"
    )


def unused(name: str, pattern: str) -> str:
    """Return what to say of a pattern that no file of a source fits."""
    return (
        f"note: {name}: {NOTHING_FITS} {shown(pattern)} of sources.{name}.files; if that "
        "is not meant, correct it"
    )
