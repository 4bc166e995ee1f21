"""How far a collection is: what its folder says, while a pull is at work there or not."""

from __future__ import annotations

import fcntl
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.transfer.collector.paths import STATE_FOLDER
from datacollect.transfer.collector.state import FileState, Missing, State

if TYPE_CHECKING:
    from os import PathLike


@dataclass(frozen=True)
class SourceStatus:
    """How far one source is: files and bytes that are done, that are waited for, missing files."""

    name: str
    done_files: int
    done_bytes: int
    waiting_files: int
    waiting_bytes: int
    missing_files: int


@dataclass(frozen=True)
class Status:
    """How far a collection is.

    Attributes
    ----------
    at_work : bool
        Whether a pull is at work in the folder.
    sources : tuple of SourceStatus
    recorded_bytes : int
        Verified and on disk, also of files that are not whole.
    missing : tuple of Missing
    rates : dict of tuple of str to (float, float)
        Observed on routes: bytes per second, and how long ago in seconds.
    """

    at_work: bool
    sources: tuple[SourceStatus, ...]
    recorded_bytes: int
    missing: tuple[Missing, ...]
    rates: dict[tuple[str, ...], tuple[float, float]]

    @property
    def complete(self) -> bool:
        """Whether all that was listed is there."""
        return not self.missing and not any(source.waiting_files for source in self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "complete": self.complete,
            "at_work": self.at_work,
            "recorded_bytes": self.recorded_bytes,
            "sources": [asdict(source) for source in self.sources],
            "missing": [entry._asdict() for entry in self.missing],
            "rates": [
                {"hosts": list(hosts), "bytes_per_s": rate, "age_s": age_s}
                for hosts, (rate, age_s) in self.rates.items()
            ],
        }


def status_of(folder: str | PathLike[str]) -> Status:
    """Return how far the collection in a folder is.

    Raises
    ------
    ProblemError
        Nothing was ever pulled into the folder.
    """
    inside = Path(folder) / STATE_FOLDER
    if not (inside / "state.sqlite").is_file():
        raise ProblemError(
            f"{folder}: nothing was pulled into it; name the folder of `datacollect pull --into`"
        )
    at_work = _is_locked(inside / "lock")
    state = State(inside / "state.sqlite")
    try:
        sources = tuple(
            SourceStatus(
                name,
                *states.get(FileState.DONE, (0, 0)),
                *states.get(FileState.WAITING, (0, 0)),
                states.get(FileState.MISSING, (0, 0))[0],
            )
            for name, states in sorted(state.counts().items())
        )
        return Status(
            at_work, sources, state.recorded_bytes(), tuple(state.missing()), state.rates()
        )
    finally:
        state.close()


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
