"""Promises of pulls and what came of them, kept in their folder: a line of JSON for each start.

A line is appended at the end of a start that brought something, and read by who wants to know how
far pulls are held to their word, and what hosts were seen to carry. What a start that was killed,
or a full disk, has left of a line is no line; the next one begins anew behind it.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.files.documents import peer_json
from datacollect.files.durability import sync
from datacollect.problem.link_table import LAST_SINCE_1970_S
from datacollect.transfer.protocol.file_names import STATE_FOLDER

if TYPE_CHECKING:
    from os import PathLike

FORMAT = "datacollect-promise/1"
FILE = "history.jsonl"


@dataclass(frozen=True)
class ShownRate:
    """Rate that a pull has shown of a link, or of a host that sends or receives over all its links.

    Attributes
    ----------
    tail, head : str
        The link; of a host that sends, the head is empty, of one that receives, the tail.
    bytes_per_s : float
        The highest median over five seconds.
    """

    tail: str
    head: str
    bytes_per_s: float


@dataclass(frozen=True)
class KeptPull:
    """One start of a pull.

    Attributes
    ----------
    ended_s : float
        Seconds since 1970.
    method : str
    complete : bool
        Whether all that was asked for is there: else it is not known how long it would have taken.
    promised_s, p10_s, p90_s : float or None
        From the start on; None where nothing was promised.
    took_s : float
    why : tuple of str
        Why it took other than promised, by what the pull has measured.
    shown : tuple of ShownRate
    """

    ended_s: float
    method: str
    complete: bool
    promised_s: float | None
    p10_s: float | None
    p90_s: float | None
    took_s: float
    why: tuple[str, ...] = ()
    shown: tuple[ShownRate, ...] = ()

    @property
    def held(self) -> bool | None:
        """Return whether it ended within what was promised; None where that cannot be said."""
        if not self.complete or self.p10_s is None or self.p90_s is None:
            return None
        return self.p10_s <= self.took_s <= self.p90_s


@dataclass(frozen=True)
class KeptPulls:
    """All starts that are kept of a folder, and how many lines of it say nothing."""

    pulls: tuple[KeptPull, ...]
    n_damaged: int = 0

    @property
    def judged(self) -> tuple[KeptPull, ...]:
        """Those of which it can be said whether the interval held."""
        return tuple(pull for pull in self.pulls if pull.held is not None)

    @property
    def n_held(self) -> int:
        """Of how many the interval held."""
        return sum(pull.held is True for pull in self.pulls)


def keep(folder: Path, pull: KeptPull) -> None:
    """Append a start; when this returns it is on the disk.

    Raises
    ------
    OSError
        It cannot be written; what was kept before stays.
    """
    path = folder / STATE_FOLDER / FILE
    text = json.dumps({"format": FORMAT, **asdict(pull)}) + "\n"
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        is_cut = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        data = ("\n" * is_cut + text).encode()
        try:
            if file.write(data) != len(data):
                raise OSError(28, os.strerror(28))
            sync(file.fileno())
        except OSError:
            # A part of a line would be in the way of nobody, but it is no use either.
            with suppress(OSError):
                os.ftruncate(file.fileno(), size)
            raise


def kept_pulls(folder: str | PathLike[str]) -> KeptPulls:
    """Return all starts that are kept of a folder; none where no start has ended there.

    Raises
    ------
    ProblemError
        There is no such folder of a pull, or it cannot be read.
    """
    state = Path(folder) / STATE_FOLDER
    if not state.is_dir():
        raise ProblemError(
            f"{folder}: no pull has ever begun in this folder; name the folder of `datacollect "
            "pull --into`"
        )
    try:
        data = (state / FILE).read_bytes()
    except FileNotFoundError:
        return KeptPulls(())
    except OSError as error:
        raise ProblemError(f"{state / FILE}: cannot be read: {error.strerror}") from None
    lines = [line for line in data.split(b"\n") if line.strip()]
    found = [_read(line) for line in lines]
    pulls = tuple(pull for pull in found if pull is not None)
    return KeptPulls(pulls, len(found) - len(pulls))


def _read(line: bytes) -> KeptPull | None:
    """Return what a line says; None where that is nothing that a pull has written."""
    tree = peer_json(line)
    if not isinstance(tree, dict) or tree.pop("format", None) != FORMAT:
        return None
    try:
        shown = tuple(ShownRate(**row) for row in tree.pop("shown"))
        pull = KeptPull(**{**tree, "why": tuple(map(str, tree["why"]))}, shown=shown)
        if not isinstance(pull.complete, bool) or pull.ended_s > LAST_SINCE_1970_S:
            return None
        times = [pull.ended_s, pull.took_s, pull.promised_s, pull.p10_s, pull.p90_s]
        rates = [row.bytes_per_s for row in shown]
        if not all(map(_is_amount, [x for x in times if x is not None] + rates)):
            return None
        names = [name for row in shown for name in (row.tail, row.head)]
        if not all(isinstance(name, str) for name in [pull.method, *names]):
            return None
    except (KeyError, TypeError):
        return None
    return pull


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0
