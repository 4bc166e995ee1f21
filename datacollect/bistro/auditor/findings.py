"""Findings of an audit of verdicts and batches: evidence against one, or against one of several."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollect.bistro.formats.receipt.evidence import Lie
from datacollect.files.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

DESTINATION = "destination"
SERVICES = "services"
MOST_EXAMPLES = 5

# Signed by one and not kept; `{}` says how many entries.
REFUSED_COLLECTED = "It has reported {} as collected, and later as refused."
SUPERSEDES_ITSELF = "It has reported {} as superseded by the very same entry."
SUPERSEDED_BY_NOTHING = (
    "It has reported {} as superseded by other entries, but it had not collected those."
)
LACKS_ROW = "It has signed receipts for {}, and other rows in the batches that they name."
OPENS_NOTHING = "It has signed rows for {} that open no commitment."
NOT_HANDED_IN = "It has signed rows for {} that lack the owner's signature: nobody handed that in."
HOLDS_OTHER = "It has signed that it holds other bytes than were committed to, for {}."

# One of several has failed, and nothing that is signed says which.
NO_VERDICT = (
    "{}: acknowledged in time by the server that holds the upload, but there is no verdict."
)
SAID_LATE = "{}: refused as late, though a log proves them in time."
SAID_ABSENT = "{}: reported as never arrived, though a bistro has signed that it holds them."
NOT_LOGGED = "{}: reported as held, but in no log."
JUDGED_NOT_LOGGED = "{}: collected, but in no log."
DISPLACED_NOT_LOGGED = (
    "{}: superseded by an entry that never arrived and that no log shows in time."
)


@dataclass(frozen=True)
class Finding:
    """Something that does not fit together.

    Attributes
    ----------
    text : str
        One of the sentences of this module.
    between : tuple of str
        One of these has failed; a single name is evidence against it.
    n_entries : int
        How many entries it is about.
    examples : tuple of bytes
        The first of them.
    """

    text: str
    between: tuple[str, ...]
    n_entries: int
    examples: tuple[bytes, ...]

    @property
    def sentence(self) -> str:
        """The sentence."""
        many = counted(self.n_entries, "entry", "entries")
        return f"{self.text.format(many)} The first: {self.examples[0].hex()}."


@dataclass(frozen=True)
class Dispute:
    """Failure of one of several; nothing that is signed says which of them.

    Attributes
    ----------
    between : tuple of str
        Names of bistros, ``"destination"``, ``"services"``, origins of logs.
    text : str
        A sentence.
    n_entries : int
    examples : tuple of str
        The first entries, hexadecimal digits.
    """

    between: tuple[str, ...]
    text: str
    n_entries: int
    examples: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "between": list(self.between),
            "text": self.text,
            "entries": self.n_entries,
            "examples": list(self.examples),
        }


def finding(text: str, between: Iterable[str], entries: list[bytes]) -> list[Finding]:
    """Return what is found of some entries; nothing where there are none."""
    if not entries:
        return []
    return [Finding(text, tuple(between), len(entries), tuple(entries[:MOST_EXAMPLES]))]


def united(findings: Iterable[Finding]) -> tuple[list[Lie], list[Dispute]]:
    """Put the findings of all partitions together: evidence against one, and disputes."""
    numbers: Counter[tuple[tuple[str, ...], str]] = Counter()
    examples: dict[tuple[tuple[str, ...], str], list[bytes]] = {}
    for each in findings:
        key = (each.between, each.text)
        numbers[key] += each.n_entries
        examples.setdefault(key, []).extend(each.examples)
    whole = [
        Finding(text, between, numbers[between, text], tuple(sorted(found)[:MOST_EXAMPLES]))
        for (between, text), found in sorted(examples.items())
    ]
    lies = [Lie(each.between[0], each.sentence) for each in whole if len(each.between) == 1]
    disputes = [
        Dispute(
            each.between,
            each.sentence,
            each.n_entries,
            tuple(entry.hex() for entry in each.examples),
        )
        for each in whole
        if len(each.between) > 1
    ]
    return lies, disputes
