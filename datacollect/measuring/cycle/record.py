"""Record of a cycle beside its samples, so that it goes on where it was killed.

A test is done where its part is in the folder: parts are there whole or not at all, and a test has
the same name in all starts, so no row is lost and none is there twice.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from datacollect.errors import NotWrittenError, ProblemError
from datacollect.files.documents import peer_json, written_durably
from datacollect.files.locks import take_lock
from datacollect.files.refusals import MAKE_ROOM, refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from datacollect.measuring.plan.rounds import Pair

Rounds: TypeAlias = "tuple[tuple[Pair, ...], ...]"

FORMAT = "datacollect-cycle/1"
FILE, LOCK = "cycle.json", "cycle.lock"


@dataclass(frozen=True)
class CycleRecord:
    """A cycle, as it was planned.

    Attributes
    ----------
    number : int
        From 0 in each folder of samples.
    begun_s : float
        Seconds since 1970.
    asked : dict
        What it is for: another is another cycle.
    light : tuple of rounds
        Tests that load no wire.
    loading : tuple of rounds, or None
        The others; None until what the light ones say is known.
    rates_bytes_per_s : dict
        What was expected of pairs, when it was planned.
    is_over : bool
    """

    number: int
    begun_s: float
    asked: dict[str, Any]
    light: Rounds
    loading: Rounds | None
    rates_bytes_per_s: dict[Pair, float]
    is_over: bool = False

    def test_id(self, *parts: object) -> str:
        """Return the name of a test of this cycle, and of no other.

        >>> CycleRecord(3, 1.5e9, {}, (), None, {}).test_id("tcp", 0, 2)
        'cycle-3-1500000000-tcp-0-2'
        """
        return self.tests_begin + "-".join(map(str, parts))

    @property
    def tests_begin(self) -> str:
        """Return how the names of all its tests begin."""
        return f"cycle-{self.number}-{int(self.begun_s)}-"


def read_record(folder: Path) -> CycleRecord | None:
    """Return the last cycle of a folder of samples, None where there was none.

    Raises
    ------
    ProblemError
        Its file is damaged.
    """
    try:
        tree = peer_json((folder / FILE).read_bytes())
        if tree.pop("format") != FORMAT:
            raise ValueError
        rates = {(tail, head): rate for tail, head, rate in tree.pop("rates_bytes_per_s")}
        light, loading = (_rounds(tree.pop(name)) for name in ("light", "loading"))
        return CycleRecord(**tree, light=light or (), loading=loading, rates_bytes_per_s=rates)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ProblemError(
            f"{folder / FILE}: is not a record of a cycle of this version; move it away, and a new "
            "cycle begins"
        ) from None


def write_record(folder: Path, record: CycleRecord) -> None:
    """Keep a cycle's plan; when this returns it is on the disk.

    Raises
    ------
    NotWrittenError
        It cannot be written; what was kept before stays.
    """
    rates = [(*pair, rate) for pair, rate in record.rates_bytes_per_s.items()]
    tree = {"format": FORMAT, **asdict(replace(record, rates_bytes_per_s={}))}
    text = json.dumps(tree | {"rates_bytes_per_s": rates})
    with written_durably(folder / FILE) as beside:
        beside.write_text(text, encoding="utf-8")


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold a folder of samples against other cycles, by a lock that ends with this process.

    Raises
    ------
    ProblemError
        Another cycle is at work there.
    """
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with _writing(folder):
            is_free = take_lock(held)
        if not is_free:
            raise ProblemError(
                f"{folder}: another cycle is running in this folder; wait until it ends, or name "
                "another folder by -o"
            )
        yield
    finally:
        os.close(held)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason, remedy = refusal_of(error)
        raise NotWrittenError(
            f"{folder}: cannot be written: {reason}; {remedy or MAKE_ROOM}, or name another "
            "folder by -o",
            error.errno,
        ) from None


def _rounds(tree: Any) -> Rounds | None:
    if tree is None:
        return None
    return tuple(tuple((tail, head) for tail, head in one) for one in tree)
