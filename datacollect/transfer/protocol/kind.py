"""A kind of source: what collection files say of its hosts, and what makes sources of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from datacollect.errors import RefusedError
    from datacollect.files.fields import Table
    from datacollect.net.dialling import RelayHop
    from datacollect.transfer.protocol.source import Source
    from datacollect.transfer.rates.pacer import Pacer

    # Takes the relays of a session, the nearest first; returns the limits that it keeps to.
    PacerOf: TypeAlias = Callable[[tuple[str, ...]], Pacer | None]


def nothing_said(_: object) -> None:
    """Say that an entry tells nothing of which files its source has."""


def unlimited(_: tuple[str, ...]) -> None:
    """Say that a session over any relays has no limits."""


class Relays(Protocol):
    """The agents of a collection, of which some relay."""

    def ways_to(self, name: str) -> list[tuple[str, ...]]:
        """Return the relays on each way to a host, the nearest first: none, then each by itself."""

    def hops(self, relays: tuple[str, ...], to: str) -> list[RelayHop]:
        """Return the relays on a way, each with its ticket."""

    def relay_refused(self, relays: tuple[str, ...], error: RefusedError) -> None:
        """Learn from a relay's refusal, if it is about time, before the next try."""


class Surroundings(NamedTuple):
    """Context of a source besides its own entry.

    Attributes
    ----------
    network : Relays
        The agents of the collection.
    patterns : sequence of str or None
        Which files are wanted; None: all.
    timeout_s, patience_s : float
        How long to wait for a connection or the begin of an answer; for anything at all.
    pacer_of : callable
        Takes the relays of a session, the nearest first; returns the `Pacer` by which the session
        receives the bytes of files, None where there are no limits.
    """

    network: Relays
    patterns: Sequence[str] | None
    timeout_s: float
    patience_s: float
    pacer_of: PacerOf = unlimited


@dataclass(frozen=True)
class SourceKind:
    """A kind of source. Its name is the key under which collection files have its hosts.

    Attributes
    ----------
    table : Table
        The fields of a host.
    text : str
        What the key is for.
    read : callable
        Takes a host's name, the values of the fields and the folder of the file; returns an entry.
    make : callable
        Takes an entry and its surroundings; returns a
        `datacollect.transfer.protocol.source.Source`.
    said : callable, optional
        Takes an entry; returns a short text that changes where the entry names another source, or
        other files; None: its source alone says which files it has.
    """

    table: Table
    text: str
    read: Callable[[str, Mapping[str, Any], Path], Any]
    make: Callable[[Any, Surroundings], Source]
    said: Callable[[Any], str | None] = nothing_said
