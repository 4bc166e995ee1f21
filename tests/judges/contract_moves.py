"""Moves that the contract's judge counts in: exact fractions, and the two roundings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

Tree = Mapping[str, Any]
Route = tuple[str, tuple[str, ...]]  # source and hosts

RELATIVE = Fraction(1, 10**6)
# Two decimals that stand for equal numbers, each rounded once to a double, differ by no more.
WRITTEN = Fraction(1, 2**52)


class Broken(Exception):
    """A rule that the schedule breaks."""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


@dataclass(frozen=True)
class Move:
    """A transfer; instants in seconds."""

    source: str
    hosts: tuple[str, ...]
    hop: int
    offset: int
    n_bytes: int
    start: Fraction
    finish: Fraction
    streams: int = 1

    @property
    def route(self) -> Route:
        return self.source, self.hosts

    @property
    def link(self) -> tuple[str, str]:
        return self.hosts[self.hop], self.hosts[self.hop + 1]

    @property
    def end(self) -> int:
        return self.offset + self.n_bytes

    @cached_property
    def rate(self) -> Fraction:
        """Bytes per second: transfer, 'between two instants, at constant rate'."""
        return self.n_bytes / (self.finish - self.start)

    def instant(self, byte: int) -> Fraction:
        """When it is done with all bytes before this one."""
        return self.start + (byte - self.offset) / self.rate

    def __str__(self) -> str:
        return (
            f"bytes {self.offset} to {self.end} of {self.source!r}, hop {self.hop} of "
            f"{'-'.join(self.hosts)}, {float(self.start)!r} s to {float(self.finish)!r} s"
        )


def move_of(row: Tree) -> Move:
    """The transfer of a schedule file's row."""
    numbers = (int(row[name]) for name in ("hop", "offset_bytes", "bytes"))
    start, finish = Fraction(row["start_s"]), Fraction(row["finish_s"])
    streams = int(row.get("streams", 1))
    return Move(row["source"], tuple(row["route"]), *numbers, start, finish, streams)


def snapped(at: Fraction, slot: Fraction) -> Fraction:
    """The point of the grid that is written so; the same instant where there is none."""
    nearest = round(at / slot) * slot
    return nearest if abs(at - nearest) <= at * WRITTEN else at
