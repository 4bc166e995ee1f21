"""What the core of handing in is told, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datacollect.net.http_asking import Answer

# What is told; `now_s` is a monotonic clock's.


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What has become of a question; `answer` None: there was none, `why` says it in words."""

    now_s: float
    to: Question
    answer: Answer | None
    why: str = ""


# What is asked for.


@dataclass(frozen=True, slots=True)
class Commit:
    """Send the entry to a service of the event, by its index: ``POST /commit``."""

    service: int


@dataclass(frozen=True, slots=True)
class AskProof:
    """Ask a service for the proof of the entry: ``GET /proof/HEX``."""

    service: int


@dataclass(frozen=True, slots=True)
class AskAuthority:
    """Ask an outside authority of the event, by its index, for a token over the entry."""

    authority: int


@dataclass(frozen=True, slots=True)
class Save:
    """Have the receipt on the disk before anything else is done."""


Event: TypeAlias = Ticked | Answered
Question: TypeAlias = Commit | AskProof | AskAuthority
Action: TypeAlias = Question | Save
