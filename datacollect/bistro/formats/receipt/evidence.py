"""Evidence of misbehaviour: signed statements held against a log that all can read.

Whoever reads a log whole, as an auditor does, compares with it every checkpoint and every word of a
service that people hold. What is found here is evidence, for its signatures cannot be denied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import cosigned_times
from datacollect.bistro.formats.log.tree import leaf_hash, tree_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from datacollect.bistro.formats.event.amendments import Amendment
    from datacollect.bistro.formats.event.event import Event
    from datacollect.bistro.formats.log.acknowledgement import Acknowledgement
    from datacollect.bistro.formats.log.checkpoints import SignedCheckpoint
    from datacollect.bistro.formats.log.notes import VerifierKey
    from datacollect.bistro.formats.log.tree import Nodes


@dataclass(frozen=True)
class Lie:
    """Statement that somebody has signed and not kept.

    Attributes
    ----------
    who : str
        Name of the key: a log's origin, a witness's name, ``"organiser"``.
    text : str
        A sentence.
    """

    who: str
    text: str


@dataclass(frozen=True)
class ReadLog:
    """A log as an auditor has read it.

    Attributes
    ----------
    key : VerifierKey
    head : SignedCheckpoint
        The largest that it shows; verified by whoever has read it.
    node : function
        Reads its tree, as `datacollect.bistro.formats.log.tree` says.
    is_final : bool
        Whether the event is over: what is not in it now never comes.
    """

    key: VerifierKey
    head: SignedCheckpoint
    node: Nodes
    is_final: bool = False

    @property
    def size(self) -> int:
        """Entries of the log."""
        return self.head.checkpoint.size


def two_heads(log: ReadLog, checkpoints: Iterable[SignedCheckpoint], event: Event) -> list[Lie]:
    """Return who has signed a checkpoint of a log that is not a beginning of what it shows.

    A service that shows some people another log is found by the first of them who compares; so are
    the witnesses that have signed both heads. A larger head than the log shows is one that it has
    taken back.
    """
    lies = []
    for other in checkpoints:
        if not other.is_of(log.key):
            continue
        size = other.checkpoint.size
        if size > log.size:
            lies.append(
                Lie(log.key.name, f"It has signed {size} entries, but shows only {log.size}.")
            )
        elif tree_root(size, log.node) != other.checkpoint.root:
            lies += _forked(log.key, log.head, other, event)
    return lies


def forks_among(
    log: VerifierKey, checkpoints: Iterable[SignedCheckpoint], event: Event
) -> list[Lie]:
    """Return who has signed two checkpoints of one size that differ: the log need not be there."""
    first: dict[int, SignedCheckpoint] = {}
    lies = []
    for other in checkpoints:
        if other.is_of(log):
            one = first.setdefault(other.checkpoint.size, other)
            if one.checkpoint.root != other.checkpoint.root:
                lies += _forked(log, one, other, event)
    return lies


def _forked(
    log: VerifierKey, one: SignedCheckpoint, other: SignedCheckpoint, event: Event
) -> list[Lie]:
    keys = event.witness_keys
    both = cosigned_times(one.note, keys).keys() & cosigned_times(other.note, keys).keys()
    size = other.checkpoint.size
    return [Lie(log.name, f"It has signed two logs that differ within {size}.")] + [
        Lie(witness.name, f"It has signed both of two heads of {log.name}.")
        for witness in keys
        if witness.key in both
    ]


def hidden_log(
    log: VerifierKey,
    checkpoints: Iterable[SignedCheckpoint],
    words: Iterable[tuple[bytes, Acknowledgement]],
    *,
    is_over: bool,
) -> list[Lie]:
    """Return what a service has signed that shows no log; words count once the event is over."""
    size = max((each.checkpoint.size for each in checkpoints if each.is_of(log)), default=0)
    if size:
        return [Lie(log.name, f"It has signed {size} entries, but shows no log.")]
    return [
        Lie(log.name, f"It has acknowledged entry {word.index}, and shows no log.")
        for entry, word in words
        if is_over and word.is_by(log, entry)
    ]


def broken_words(log: ReadLog, words: Iterable[tuple[bytes, Acknowledgement]]) -> list[Lie]:
    """Return the words of a service that its log does not keep.

    Parameters
    ----------
    log : ReadLog
    words : iterable of (bytes, Acknowledgement)
        Each with the entry that it is about.
    """
    lies = []
    for entry, word in words:
        if not word.is_by(log.key, entry):
            continue
        if word.index >= log.size:
            if log.is_final:
                lies.append(
                    Lie(
                        log.key.name,
                        f"It has acknowledged entry {word.index}, but never logged it.",
                    )
                )
        elif log.node(0, word.index) != leaf_hash(entry):
            lies.append(
                Lie(
                    log.key.name,
                    f"It has acknowledged an entry {word.index}, but logged another one there.",
                )
            )
    return lies


def clocks_set_back(checkpoints: Sequence[SignedCheckpoint], event: Event) -> list[Lie]:
    """Return the witnesses that have signed a larger log earlier than a smaller one.

    The checkpoints are of one log.
    """
    latest: dict[str, int] = {}
    lies: dict[str, Lie] = {}
    by_size = sorted(checkpoints, key=_size)
    for _, same in groupby(by_size, key=_size):
        # All of one size together: a witness may sign one twice.
        times = [cosigned_times(each.note, event.witness_keys) for each in same]
        for witness in event.witness_keys:
            found = [each[witness.key] for each in times if witness.key in each]
            if found and min(found) < latest.get(witness.key, 0):
                text = "It has signed a larger log with an earlier time than a smaller one."
                lies[witness.key] = Lie(witness.name, text)
            latest[witness.key] = max([*found, latest.get(witness.key, 0)])
    return list(lies.values())


def _size(signed: SignedCheckpoint) -> int:
    return signed.checkpoint.size


def contradictions(amendments: Sequence[Amendment]) -> list[Lie]:
    """Return the numbers under which the organiser has published two amendments."""
    by_number: dict[int, bytes] = {}
    return [
        Lie("organiser", f"There are two amendments {each.number} that differ.")
        for each in amendments
        if by_number.setdefault(each.number, each.entry) != each.entry
    ]
