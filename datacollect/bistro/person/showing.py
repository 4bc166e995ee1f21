"""Proofs for people to show, ``NAME.proof``: on the disk before anybody hears of the file."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.file_names import PROOF_SUFFIX
from datacollect.bistro.formats.receipt.content_proof import proof_of_content, proofs_of_files
from datacollect.bistro.formats.sealing.keep import MODE
from datacollect.errors import ProblemError
from datacollect.files.documents import (
    document_name,
    naming_unread,
    not_written,
    read_bytes,
    written_durably,
)
from datacollect.files.durability import synchronise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacollect.bistro.formats.receipt.content_proof import ContentProof
    from datacollect.bistro.formats.sealing.keep import Kept


def save_proof(place: Path, kept: Kept, entry: bytes) -> None:
    """Have the proof of what is kept on the disk, if there is one.

    It says nothing that the ``.keep`` does not: what an earlier start has not written, or somebody
    has lost, is made again.

    Parameters
    ----------
    place : Path
        Where it is to stand.
    kept : Kept
    entry : bytes
        What is committed to by it.

    Raises
    ------
    ProblemError
        Something else counts instead.
    NotWrittenError
        It cannot be written.
    """
    proof = proof_of_content(entry, kept.inner)
    if proof is None:
        return
    if _stands(place, proof):
        return
    _write(place, proof)


def _stands(place: Path, proof: ContentProof) -> bool:
    """Whether a proof is there already; raise `ProblemError` where something else is."""
    if not os.path.lexists(place):
        return False
    with naming_unread(place):
        is_other = read_bytes(place) != proof.data
    if is_other:
        raise ProblemError(
            f"{document_name(place)}: is not the proof of what is handed in, and is left as it "
            "is; move it elsewhere, or name another folder with -o"
        )
    return True


def save_proofs(folder: Path, kept: Kept, entry: bytes) -> None:
    """Have the proofs of several files on the disk, each by its file's name in one folder.

    Parameters
    ----------
    folder : Path
        Made where it is absent.
    kept : Kept
    entry : bytes
        What is committed to by it.

    Raises
    ------
    ProblemError
        Something else stands in the place of one.
    NotWrittenError
        One cannot be written.
    """
    rows = zip(kept.files, proofs_of_files(entry, kept.inner, kept.files), strict=True)
    proofs = {proof_place(Path(), each.name): proof for each, proof in rows}
    if not os.path.lexists(folder):
        _write_new(folder, proofs)
        return
    for place, proof in proofs.items():
        if not _stands(folder / place, proof):
            _make(folder / place.parent)
            _write(folder / place, proof)


def _write_new(folder: Path, proofs: Mapping[Path, ContentProof]) -> None:
    """Write a folder of proofs, which is there as a whole or not at all."""
    # Whoever hands it in is alone: nobody else writes here, what stands here was never ended. Names
    # may be as long as they can be, and begin alike.
    whose = hashlib.sha256(os.fsencode(folder.name)).hexdigest()[:16]
    beside = folder.with_name(f".{whose}.proofs.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        for place, proof in proofs.items():
            (beside / place).parent.mkdir(parents=True, exist_ok=True)
            (beside / place).touch(MODE)
            (beside / place).write_bytes(proof.data)
        # Behind all the writing, the first sync does most of the work of the others.
        folders = {beside / parent for place in proofs for parent in place.parents}
        for path in (*(beside / place for place in proofs), *folders):
            synchronise(path)
        beside.rename(folder)
        synchronise(folder.parent)
    except OSError as error:
        raise not_written(folder, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(folder, error) from None


def _write(place: Path, proof: ContentProof) -> None:
    with written_durably(place) as beside:
        # Who reads it can test guesses of the file: its owner decides who may.
        beside.touch(MODE)
        beside.write_bytes(proof.data)


def proof_place(folder: Path, name: str) -> Path:
    """Return where the proof of one of several files stands."""
    return folder / f"{name}{PROOF_SUFFIX}"


def what_it_shows(place: Path, n_files: int = 1) -> str:
    """Say what showing a proof reveals; of several files, their folder has one for each."""
    if n_files > 1:
        return (
            f"{document_name(place)} has a proof for each file. Beside the receipt and that file, "
            "a proof shows that this file is one of those handed in, and how many there are. "
            "Anyone who sees it can test guesses of what is in that file. Until all are collected, "
            "it shows only that the file existed."
        )
    return (
        f"{document_name(place)} shows, beside the receipt and the file, that this file is the "
        "one handed in. Anyone who sees the proof can test guesses of what is in the file. Until "
        "the file is collected, it shows only that the file existed."
    )
