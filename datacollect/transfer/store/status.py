"""Status of a collection by its folder, while a pull is at work there or not.

Nothing is written here, but notes of what was read again (`verify_of`), where they can be.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError, StoreError
from datacollect.files.locks import is_locked
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.store.path_lookup import displaced_files
from datacollect.transfer.store.state.holes import data_bytes
from datacollect.transfer.store.state.reading import FileState, Missing, Wanted
from datacollect.transfer.store.state.snapshot import snapshot_of
from datacollect.transfer.store.verifying import verified_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike

    from datacollect.transfer.protocol.patterns import Narrowing
    from datacollect.transfer.store.path_lookup import Displaced
    from datacollect.transfer.store.state.reading import Reading
    from datacollect.transfer.store.verifying import Verified, VerifyProgress


@dataclass(frozen=True)
class SourceStatus:
    """Status of one source.

    Attributes
    ----------
    name : str
    done_files, done_bytes : int
        There, and verified when they came.
    waiting_files, waiting_bytes : int
        Waited for.
    missing_files : int
        That cannot be had, or not be placed.
    wanted : bool
        Whether the last collection file wants it.
    listed : bool
        Whether all that is wanted of it was listed to its end, in the last start that asked for
        all; as asked: what the last start asked for was.
    trouble : str or None
        What was wrong with it the last time.
    """

    name: str
    done_files: int
    done_bytes: int
    waiting_files: int
    waiting_bytes: int
    missing_files: int
    wanted: bool = True
    listed: bool = True
    trouble: str | None = None


@dataclass(frozen=True)
class Status:
    """Status of a collection.

    Attributes
    ----------
    complete : bool
        Whether each source that the last collection file wants was listed to its end, and all its
        files lie in the folder, as they were placed there. As asked: of what the last start asked
        for.
    at_work : bool
        Whether a pull is at work in the folder.
    sources : tuple of SourceStatus
    recorded_bytes : int
        Verified and on disk, also of files that are not whole.
    missing : tuple of Missing
    rates : dict of tuple of str to (float, float)
        Observed on routes: bytes per second, and how long ago in seconds.
    narrowed_to : Narrowing or None
        Which part of the collection the last start asked for; None: all of it.
    complete_as_asked : bool
        Whether all is there that the last start asked for.
    """

    complete: bool
    at_work: bool
    sources: tuple[SourceStatus, ...]
    recorded_bytes: int
    missing: tuple[Missing, ...]
    rates: dict[tuple[str, ...], tuple[float, float]]
    narrowed_to: Narrowing | None = None
    complete_as_asked: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "complete": self.complete,
            "complete_as_asked": self.complete_as_asked,
            "narrowed_to": None if self.narrowed_to is None else asdict(self.narrowed_to),
            "at_work": self.at_work,
            "recorded_bytes": self.recorded_bytes,
            "sources": [asdict(source) for source in self.sources],
            "missing": [entry._asdict() for entry in self.missing],
            "rates": [
                {"hosts": list(hosts), "bytes_per_s": rate, "age_s": age_s}
                for hosts, (rate, age_s) in self.rates.items()
            ],
        }


def status_of(folder: str | PathLike[str], *, as_asked: bool = False) -> Status:
    """Return how far the collection in a folder is. Nothing is written.

    Parameters
    ----------
    folder : path-like
    as_asked : bool, optional
        Answer by what the last start asked for, not by all that the collection wants.

    Raises
    ------
    ProblemError
        Nothing was ever pulled into the folder, or its state is damaged.
    StoreError
        The disk fails.
    """
    at_work = is_locked(Path(folder) / STATE_FOLDER / "lock")
    state = _state_of(folder)
    try:
        view = state.last_view()
        if as_asked:
            state.look_through(view)
        displaced = list(displaced_files(Path(folder), state))
        if as_asked:
            displaced = [each for each in displaced if view.fits(each.file.path)]
        missing = [Missing(each.source, each.file.path, each.why) for each in displaced]
        return Status(
            state.is_complete() and not displaced,
            at_work,
            tuple(_sources(state, displaced)),
            state.recorded_bytes() - sum(data_bytes(each.file) for each in displaced),
            tuple(sorted([*state.missing(), *missing], key=lambda each: each[:2])),
            state.rates(),
            None if view.is_all else view,
            _is_complete_as_asked(state, view, displaced),
        )
    except OSError as error:
        raise _unreadable(folder, error) from error
    finally:
        state.close()


def _is_complete_as_asked(state: Reading, view: Narrowing, displaced: Iterable[Displaced]) -> bool:
    state.look_through(view)
    return state.is_complete() and not any(view.fits(each.file.path) for each in displaced)


def verify_of(
    folder: str | PathLike[str], report: Callable[[VerifyProgress], None] = lambda _: None
) -> Verified:
    """Read all files again that have come into a folder, and compare them with what came.

    Raises
    ------
    ProblemError
        Nothing was ever pulled into the folder, or its state is damaged.
    StoreError
        The disk fails.
    """
    state = _state_of(folder)
    try:
        return verified_files(Path(folder), state, report)
    except OSError as error:
        raise _unreadable(folder, error) from error
    finally:
        state.close()


def _unreadable(folder: str | PathLike[str], error: OSError) -> StoreError:
    return StoreError(f"{folder}: cannot be read: {error.strerror}; fix that")


def _state_of(folder: str | PathLike[str]) -> Reading:
    path = Path(folder) / STATE_FOLDER / "state.sqlite"
    try:
        is_there = path.exists()
    except OSError as error:
        what = f"{path}: cannot be read: {error.strerror}; ask as the user who pulls"
        raise ProblemError(what) from error
    state = snapshot_of(path) if is_there else None
    with ExitStack() as unless_given_out:
        if state is not None:
            unless_given_out.callback(state.close)
        if state is None or not (state.n_starts() or state.source_names()):
            raise ProblemError(
                f"{folder}: no pull has written into this folder; name the folder of `datacollect "
                "pull --into`"
            )
        unless_given_out.pop_all()
    return state


def _sources(state: Reading, displaced: Iterable[Displaced]) -> Iterator[SourceStatus]:
    """Yield what is known of sources: of those that are wanted, and of which anything is there."""
    n_displaced: Counter[str] = Counter()
    displaced_bytes: Counter[str] = Counter()
    for each in displaced:
        n_displaced[each.source] += 1
        displaced_bytes[each.source] += each.file.n_bytes
    counts, wanted = state.counts(), {each.name: each for each in state.wanted()}
    for name in sorted({*counts, *wanted}):
        states = counts.get(name, {})
        last = wanted.get(name, Wanted(name, False, None))
        nothing = (0, 0)
        n_done, done_bytes = states.get(FileState.DONE, nothing)
        n_missing = states.get(FileState.MISSING, nothing)[0]
        yield SourceStatus(
            name,
            n_done - n_displaced[name],
            done_bytes - displaced_bytes[name],
            *states.get(FileState.WAITING, nothing),
            n_missing + states.get(FileState.KEPT, nothing)[0] + n_displaced[name],
            name in wanted,
            last.is_listed,
            last.why,
        )
