"""Files that are handed in together: which ones they are, and what each is called there.

A folder stands for all files in it, whose names then have folders. What would not be taken is
refused here, before anything is sealed.
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.file_names import (
    MOST_PART_BYTES,
    PROOF_SUFFIX,
    TOO_MANY_FOLDERS,
    FileNames,
    name_fault,
)
from datacollect.bistro.formats.sealing.keep import SUFFIX, Source, is_keep
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, naming_unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def sources_of(paths: Sequence[Path], most: int) -> list[Source]:
    """Return the files that some paths name, ordered by what they are called.

    Parameters
    ----------
    paths : sequence of Path
        Files, and folders, which stand for all that is in them.
    most : int
        How many files the event takes.

    Raises
    ------
    ProblemError
        One is none, or cannot be called so, or two would have one name, or they are too many.
    """
    found: list[Source] = []
    for path in paths:
        with naming_unread(path):
            for source in _files_at(path):
                found.append(source)
                if len(found) > most:
                    raise _too_many(len(paths), most)
    if not found:
        raise ProblemError(f"{document_name(paths[0])}: no file is in it; put one there")
    found.sort(key=lambda source: source.name.encode())
    _require_names(found)
    return found


def _too_many(n_paths: int, most: int) -> ProblemError:
    what = "the folder has" if n_paths == 1 else "these are"
    return ProblemError(
        f"{what} more than {most} files, as many as the event takes at once; pack them into one "
        "file, as with tar or zip"
    )


def _files_at(path: Path) -> Iterator[Source]:
    """Yield a file, or all of a folder, of which each kind of thing is told."""
    if not path.is_dir():
        yield Source(_text(path.name), path)
        return
    for folder, folders, names in os.walk(path, onerror=_not_walked):
        folders.sort()
        for name in (*names, *(each for each in folders if Path(folder, each).is_symlink())):
            file = Path(folder, name)
            _require_plain(file)
            yield Source(_text(os.fspath(path.name / file.relative_to(path))), file)


def _not_walked(error: OSError) -> None:
    raise error


def _require_plain(file: Path) -> None:
    if file.is_symlink() or not file.is_file():
        raise ProblemError(
            f"{document_name(file)}: is not a regular file; take it out of the folder, or put what "
            "it stands for in its place"
        )
    if file.name.endswith(SUFFIX) and is_keep(file):
        raise ProblemError(
            f"{document_name(file)}: was written when something was handed in, and holds secrets "
            "of yours; move it out of the folder"
        )


def _text(name: str) -> str:
    # Systems have names that are no text.
    return os.fsencode(name).decode(errors="replace")


def _require_names(sources: Sequence[Source]) -> None:
    names, alike = FileNames(), dict[str, Source]()
    for source in sources:
        place, folded = document_name(source.path), _folded(source.name)
        other = alike.setdefault(folded, source)
        if other is not source:
            raise ProblemError(
                f"{document_name(other.path)} and {place} would both be called {source.name!r}, or "
                "so that many systems take them for one; rename one, or hand in the folder that "
                "holds both"
            )
        # Also for systems that take two names for one: proofs may lie on such a disk.
        if why_not := name_fault(source.name) or names.clash(folded):
            is_many = why_not == TOO_MANY_FOLDERS
            remedy = "pack them into one file, as with tar or zip" if is_many else "rename it"
            raise ProblemError(f"{place}: its name {why_not}; {remedy}")
        room = MOST_PART_BYTES - len(PROOF_SUFFIX)
        if len(source.path.name.encode(errors="replace")) > room:
            raise ProblemError(
                f"{place}: its name has more than {room} bytes: its proof is kept as "
                f"NAME{PROOF_SUFFIX}; rename it"
            )


def _folded(name: str) -> str:
    """Return what a name is for a system that tells neither case nor how letters are composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def joint_name(paths: Sequence[Path]) -> str:
    """Return what is kept of several paths is called after: whatever their order.

    >>> joint_name([Path("b/two.txt"), Path("a/one.txt")]), joint_name([Path("thesis/")])
    ('one.txt+1', 'thesis')
    """
    first, *others = sorted(path.name or path.resolve().name for path in paths)
    return f"{first}+{len(others)}" if others else first
