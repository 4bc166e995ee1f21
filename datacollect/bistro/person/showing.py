"""Proofs for people to show, ``NAME.proof``: on the disk before anybody hears of the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from datacollect.bistro.formats.receipt.content_proof import proof_of_content
from datacollect.bistro.formats.sealing.keep import MODE
from datacollect.errors import ProblemError
from datacollect.files.documents import document_name, naming_unread, read_bytes, written_durably

if TYPE_CHECKING:
    from pathlib import Path

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
    if os.path.lexists(place):
        with naming_unread(place):
            is_other = read_bytes(place) != proof.data
        if is_other:
            raise ProblemError(
                f"{document_name(place)}: is not the proof of what is handed in, and is left as it "
                "is; move it elsewhere, or name another folder with -o"
            )
        return
    with written_durably(place) as beside:
        # Who reads it can test guesses of the file: its owner decides who may.
        beside.touch(MODE)
        beside.write_bytes(proof.data)


def what_it_shows(place: Path) -> str:
    """Say what showing a proof reveals."""
    return (
        f"{document_name(place)} shows, beside the receipt and the file, that this file is what "
        "was handed in; anyone who sees it can test guesses of what is in the file; until the "
        "file is collected, it shows only that the file existed"
    )
