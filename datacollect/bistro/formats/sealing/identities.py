"""Identities of age in files, tried before anything depends on them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.content import SECRET_BYTES
from datacollect.bistro.formats.sealing.sealed import Inner, open_sealed, seal
from datacollect.errors import IdentityError, ProblemError
from datacollect.files.documents import document_name, read_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

IDENTITY = "AGE-SECRET-KEY-1"


def opening_identities(
    files: Sequence[str | PathLike[str]], recipients: Sequence[str], remedy: str
) -> dict[str, str]:
    """Return the identities of files, each with the recipient for whom a trial was opened by it.

    Parameters
    ----------
    files : sequence of path-like
        As ``age-keygen`` writes them.
    recipients : sequence of str
        Of an event.
    remedy : str
        What to do about an identity that opens nothing.

    Raises
    ------
    ProblemError
        A file has no identity, or one that opens nothing.
    """
    texts = {text: file for file in files for text in _identities(file)}
    if not texts:
        return {}
    opened: dict[str, str] = {}
    inner = Inner(b"{}", bytes(SECRET_BYTES))
    for recipient in recipients:
        sealed = io.BytesIO()
        seal(io.BytesIO(b"a trial"), sealed, inner, [recipient])
        for text in texts:
            try:
                open_sealed(io.BytesIO(sealed.getvalue()), io.BytesIO(), [text])
            except IdentityError:
                continue
            opened[text] = recipient
    for text, file in texts.items():
        if text not in opened:
            raise ProblemError(
                f"{document_name(file)}: opens nothing that is sealed for the event: {remedy}"
            )
    return opened


def _identities(file: str | PathLike[str]) -> list[str]:
    lines = [line.strip() for line in read_bytes(file).decode(errors="replace").splitlines()]
    found = [line for line in lines if line.startswith(IDENTITY)]
    if not found:
        raise ProblemError(
            f"{document_name(file)}: must hold an identity of age, {IDENTITY}…; `age-keygen` "
            "writes one"
        )
    return found
