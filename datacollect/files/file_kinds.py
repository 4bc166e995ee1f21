"""Kinds of files that people write, beside those of the core: wings' and other packages'.

Another package brings a kind as an entry point of the group ``datacollect.files``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacollect.files.registry import Registry
from datacollect.wings import FILES as OWN

if TYPE_CHECKING:
    from datacollect.files.fields import Document


@dataclass(frozen=True)
class FileKind:
    """A kind of files.

    Attributes
    ----------
    name : str
        What ``datacollect schema`` calls it.
    document : Document
    """

    name: str
    document: Document


FILE_KINDS = Registry("kind of file", "datacollect.files", FileKind, OWN)
