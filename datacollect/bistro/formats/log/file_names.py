"""Names of several files that are handed in together: texts that any system can make a file of.

A name may have folders, with "/" between. What a destination calls the file on its disk is its own
choice; here stands what no name may be, whoever reads it. A file's proof is kept under its name
with ``.proof`` behind it, beside those of the others: none of these is a folder of another.
"""

from __future__ import annotations

import re

MOST_NAME_BYTES = 1024
MOST_PART_BYTES = 255
MOST_PARTS = 16
# Of all names together: each is made on the disks of the person and of the destination.
MOST_FOLDERS = 10_000
# Behind a file's name: what its proof is called.
PROOF_SUFFIX = ".proof"
TOO_MANY_FOLDERS = f"makes more than {MOST_FOLDERS} folders with the others"
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
    >>> names.fault("a.proof/b"), names.fault("a.proof")
    (None, 'is a folder of another')
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._folders: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def fault(self, name: str) -> str | None:
        """Take one more name, or say why it may not be."""
        return name_fault(name) or self.clash(name)

    def clash(self, name: str) -> str | None:
        """Take one more name that may be one, or say why it may not stand beside the others."""
        folders = {name[:at] for at, letter in enumerate(name) if letter == "/"}
        if name in self._names:
            return "stands twice"
        if name in self._folders or not folders.isdisjoint(self._names):
            return "is a folder of another" if name in self._folders else "lies in another file"
        if f"{name}{PROOF_SUFFIX}" in self._folders:
            return f"is, with {PROOF_SUFFIX} behind it, a folder of another"
        of_proofs = (each for each in folders if each.endswith(PROOF_SUFFIX))
        if any(each.removesuffix(PROOF_SUFFIX) in self._names for each in of_proofs):
            return f"lies in a folder that is called like the {PROOF_SUFFIX} of another"
        if len(self._folders) + len(folders - self._folders) > MOST_FOLDERS:
            return TOO_MANY_FOLDERS
        self._names.add(name)
        self._folders |= folders
        return None
