"""Opening the destination folder: for one pull at a time, with room for what is not whole yet."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from datacollect.errors import FULL, NotWrittenError, ProblemError
from datacollect.files.durability import promise_of
from datacollect.files.locks import take_lock
from datacollect.files.refusals import MEND_DISK, refusal_of
from datacollect.transfer.protocol.file_names import STATE_FOLDER
from datacollect.transfer.store.folder.paths import FOLDER_FLAGS, mount_of, sub_folder

if TYPE_CHECKING:
    from pathlib import Path

INCOMING = "incoming"
# Whoever asks for the status holds the lock for an instant; a pull holds it for longer.
LOCK_S = 1.0


class OpenedFolder(NamedTuple):
    """Descriptors of the folder, of its state's folder, and of the lock that is held."""

    root_fd: int
    state_fd: int
    lock_fd: int

    def close(self) -> None:
        """Let others have the folder."""
        for fd in (self.state_fd, self.root_fd, self.lock_fd):
            let_go(fd)


def let_go(fd: int) -> None:
    """Close a folder or a lock: what may fail with it was made sure of, or given up, before."""
    with suppress(OSError):
        os.close(fd)


def open_folder(folder: Path) -> OpenedFolder:
    """Open the folder, made where it is absent, and hold its lock.

    Raises
    ------
    NotWrittenError
        It cannot be made or written.
    ProblemError
        Another pull is at work in it.
    """
    fds: list[int] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fds.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        fds.append(sub_folder(fds[0], STATE_FOLDER))
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fds.append(os.open("lock", flags, 0o600, dir_fd=fds[1]))
        _take(fds[2], folder)
    except BaseException as error:
        for fd in fds:
            os.close(fd)
        if isinstance(error, OSError):
            raise unusable(folder, error) from None
        raise
    return OpenedFolder(*fds)


def unusable(folder: Path, error: OSError) -> NotWrittenError:
    """Return what to say where the folder, or what belongs to it, cannot be opened."""
    reason, remedy = refusal_of(error)
    if error.errno in FULL:
        what, remedy = "cannot be written", f"{remedy or MEND_DISK}, and start again"
    else:
        what, remedy = "is not a folder that can be written to", "name another with --into"
    return NotWrittenError(f"{folder}: {what}: {reason}; {remedy}", error.errno)


def _take(lock_fd: int, folder: Path) -> None:
    if not take_lock(lock_fd, LOCK_S):
        raise ProblemError(
            f"{folder}: another pull is running in this folder; wait until it ends, or name "
            "another folder"
        )


class Staging:
    """Places of unfinished files: in the file system of the folder that they are for.

    A file gets its name by being renamed, which no file system does into another. So where the
    folder of a source is one of its own, its unfinished files lie in there.

    Parameters
    ----------
    root_fd, state_fd : int
        Of the destination folder, and of the state's folder in it.

    Attributes
    ----------
    promises : dict of str to Promise
        Of the file systems that were seen: of the destination folder under no name, of sources that
        have one of their own under theirs.
    """

    def __init__(self, root_fd: int, state_fd: int) -> None:
        self._root_fd = root_fd
        self._usual_fd = sub_folder(state_fd, INCOMING)
        self.promises = {"": promise_of(self._usual_fd)}
        self._own_fds: dict[str, int] = {}
        self._lock = threading.Lock()

    def of(self, source: str) -> int:
        """Return the descriptor of the folder for a source's unfinished files.

        Raises
        ------
        OSError
            It cannot be made.
        """
        with self._lock:
            known = self._own_fds.get(source)
            if known is None:
                known = self._own_fds[source] = self._open(source)
                if known != self._usual_fd:
                    self.promises[source] = promise_of(known)
            return known

    def is_apart(self, source: str) -> bool:
        """Return whether a source's unfinished files lie in a file system of its own."""
        return self.of(source) != self._usual_fd

    def all(self) -> list[int]:
        """Return the descriptors of all that are open."""
        with self._lock:
            return [self._usual_fd, *{*self._own_fds.values()} - {self._usual_fd}]

    def close(self) -> None:
        """Close all."""
        for fd in self.all():
            let_go(fd)

    def _open(self, source: str) -> int:
        usual = mount_of(self._usual_fd)
        with suppress(FileNotFoundError):
            try:
                fd = os.open(source, FOLDER_FLAGS, dir_fd=self._root_fd)
            except NotADirectoryError:  # a link or a file: nothing can be placed there
                return self._usual_fd
            try:
                return self._within(fd) if mount_of(fd).is_other(usual) else self._usual_fd
            finally:
                os.close(fd)
        if not mount_of(self._root_fd).is_other(usual):
            return self._usual_fd
        with suppress(FileExistsError):
            os.mkdir(source, dir_fd=self._root_fd)
        fd = os.open(source, FOLDER_FLAGS, dir_fd=self._root_fd)
        try:
            return self._within(fd)
        finally:
            os.close(fd)

    def _within(self, fd: int) -> int:
        inside = sub_folder(fd, STATE_FOLDER)
        try:
            return sub_folder(inside, INCOMING)
        finally:
            os.close(inside)
