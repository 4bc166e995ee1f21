"""Places of files: whether what lies there may be replaced, and renaming whole files into them.

A file that lies there is ours as long as it looks as it did when it got its name. What is not, or
was altered since, is kept, unless the user has it overwritten. It is asked twice: before a byte
moves, and when a file is to get its name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from datacollect.transfer.store.attributes import is_as_placed
from datacollect.transfer.store.path_lookup import ABOUT_NAMES, PathFound, PathKind, PathLookup

if TYPE_CHECKING:
    from datacollect.transfer.store.attributes import StoreOptions
    from datacollect.transfer.store.state.state import State

_OVERWRITE = "move it away, or start with --overwrite, which replaces it"


class Taken(NamedTuple):
    """Reason why a place cannot be had; `may_equal`: a file there may be the wanted one."""

    why: str
    may_equal: bool = False


class Places(PathLookup):
    """Places of one destination folder. Not for several threads.

    Parameters
    ----------
    root_fd : int
    state : State
    options : StoreOptions
    """

    def __init__(self, root_fd: int, state: State, options: StoreOptions) -> None:
        super().__init__(root_fd)
        self._state, self._options = state, options

    def taken(self, number: int, source: str, path: str, n_bytes: int) -> Taken | None:
        """Return why a file cannot be placed; None where it can.

        Parameters
        ----------
        number : int
            The source's.
        source, path : str
        n_bytes : int
            The file's size.
        """
        taken = self._judged(self.look(source, path), number, source, path, n_bytes)
        if taken is None and (why := self.folders.why_closed()) is not None:
            return Taken(f"{why}; fix that, and start the same command again")
        return taken

    def is_absent(self, source: str, folder: str) -> bool:
        """Whether a folder of a source's files, empty for that of the source, is not there."""
        parts = (source, *folder.split("/")) if folder else (source,)
        try:
            self.folders.open(parts, make=False)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False

    def place(
        self, number: int, source: str, path: str, n_bytes: int, staging: tuple[int, str]
    ) -> str | None:
        """Rename a whole file to where it belongs; return why it cannot be there, or None.

        `staging` is the descriptor of the folder that it lies in, and its name there.

        Raises
        ------
        OSError
            What is wrong has nothing to do with the name.
        """
        *above, last = (source, *path.split("/"))
        found = self.look(source, path)
        taken = self._judged(found, number, source, path, n_bytes)
        if taken is not None and not (taken.may_equal and self._options.overwrite):
            return taken.why
        fd_from, name = staging
        try:
            if found.kind is PathKind.FOLDER or found.at != f"{source}/{path}":
                self._clear(found, number, staging)
            fd = self.folders.open(tuple(above), make=True)
            os.rename(name, last, src_dir_fd=fd_from, dst_dir_fd=fd)
        except OSError as error:
            if error.errno in ABOUT_NAMES:
                return (
                    f"{source}/{path} cannot be written: {os.strerror(error.errno)}; fix that, "
                    "and start the same command again"
                )
            raise
        self.folders.changed.add(tuple(above))
        return None

    # What is found ----------------------------------------------------------------------------

    def _judged(
        self, found: PathFound, number: int, source: str, path: str, n_bytes: int
    ) -> Taken | None:
        if found.kind is PathKind.NOTHING:
            return None
        if found.kind is PathKind.CLOSED:
            return Taken(
                f"{found.at} cannot be written: {found.why}; fix that, and start the same "
                "command again"
            )
        if found.kind is PathKind.MOUNT:
            return Taken(
                f"{found.at} is a file system of its own, so no file can be renamed into it: "
                f"unmount it, or mount it at {source} itself"
            )
        if found.at == source:
            return Taken(
                f"{source} is {found.kind.value} where the folder of this source belongs; links "
                "are not followed: move it away, or mount its target there"
            )
        if found.at != f"{source}/{path}":
            return self._judged_above(found, number, source)
        if found.kind is PathKind.FILE:
            return self._judged_file(found, number, path, n_bytes)
        if self._options.overwrite:
            return None
        if found.kind is PathKind.FOLDER:
            return Taken(
                f"{found.at} is a folder here, and a file at the source: {_OVERWRITE}, with all "
                "that lies in it"
            )
        return Taken(f"{found.at} exists already and is {found.kind.value}: {_OVERWRITE}")

    def _judged_above(self, found: PathFound, number: int, source: str) -> Taken | None:
        """Judge what lies where a folder is wanted: a file of ours that is gone is replaced."""
        path = found.at.removeprefix(f"{source}/")
        if found.kind is PathKind.FILE and self._is_ours(found, number, path):
            if not self._state.is_expected(number, path):
                return None
            return Taken(f"{found.at} is both a file and a folder at the source")
        if self._options.overwrite and not self._state.is_expected(number, path):
            return None
        return Taken(
            f"{found.at} is {found.kind.value} where a folder belongs"
            + ("; links are not followed: " if found.kind is PathKind.LINK else ": ")
            + _OVERWRITE
        )

    def _judged_file(self, found: PathFound, number: int, path: str, n_bytes: int) -> Taken | None:
        assert found.stat is not None
        if self._is_ours(found, number, path):
            return None
        may_equal = found.stat.st_size == n_bytes
        if self._options.overwrite and not may_equal:
            return None
        return Taken(why_kept(found.at, altered=bool(self._state.stamps(number, path))), may_equal)

    def _is_ours(self, found: PathFound, number: int, path: str) -> bool:
        assert found.stat is not None
        stamps = self._state.stamps(number, path)
        return any(is_as_placed(found.stat, stamp) for stamp in stamps)

    def _clear(self, found: PathFound, number: int, staging: tuple[int, str]) -> None:
        """Remove what is replaced: forgotten first, so that no crash finds it lost."""
        if found.kind is PathKind.NOTHING:
            return
        source, *below = found.at.split("/")
        above, path = (source, *below[:-1]), "/".join(below)
        if found.kind is PathKind.FOLDER:
            self.folders.close()
        fd = self.folders.open(above, make=False)
        self._state.make_way(number, path)
        if found.kind is PathKind.FOLDER:
            os.rename(below[-1], f"replaced-{staging[1]}", src_dir_fd=fd, dst_dir_fd=staging[0])
        else:
            os.unlink(below[-1], dir_fd=fd)
        self.folders.changed.add(above)


def why_kept(at: str, *, altered: bool) -> str:
    """Return why a file that lies at a place is kept."""
    what = "was altered after it came" if altered else "exists already and is another file"
    return f"{at} {what}: {_OVERWRITE}"
