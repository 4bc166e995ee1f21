"""Names of several files that are handed in together: texts that any system can make a file of.

A name may have folders, with "/" between. What a destination calls the file on its disk is its own
choice; here stands what no name may be, whoever reads it.
"""

from __future__ import annotations

import re

MOST_NAME_BYTES = 1024
MOST_PART_BYTES = 255
MOST_PARTS = 16
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


def name_fault(name: str) -> str | None:
    r"""Say why a file of several may not have a name; None: it may.

    >>> name_fault("src/Übung 1.txt")
    >>> name_fault("../a"), name_fault("a//b")
    ('has a part that is ..', 'has an empty part')
    """
    if len(name.encode()) > MOST_NAME_BYTES:
        return f"has more than {MOST_NAME_BYTES} bytes"
    if _CONTROL.search(name):
        return "has a control character or a backslash"
    parts = name.split("/")
    if len(parts) > MOST_PARTS:
        return f"has more than {MOST_PARTS} parts"
    for part in parts:
        if part in ("", ".", ".."):
            return f"has a part that is {part}" if part else "has an empty part"
        if len(part.encode()) > MOST_PART_BYTES:
            return f"has a part of more than {MOST_PART_BYTES} bytes"
    return None


class FileNames:
    """The names of one hand-in so far: no two are the same, none is a folder of another.

    Examples
    --------
    >>> names = FileNames()
    >>> names.fault("a/b"), names.fault("a/b"), names.fault("a")
    (None, 'stands twice', 'is a folder of another')
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._folders: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def fault(self, name: str) -> str | None:
        """Take one more name, or say why it may not be."""
        if why_not := name_fault(name):
            return why_not
        folders = {name[:at] for at, letter in enumerate(name) if letter == "/"}
        if name in self._names:
            return "stands twice"
        if name in self._folders or not folders.isdisjoint(self._names):
            return "is a folder of another" if name in self._folders else "lies in another file"
        self._names.add(name)
        self._folders |= folders
        return None
