"""Names of files that others list: which of them can be written as they are."""

from __future__ import annotations

import unicodedata

# The collector's own, in the destination folder.
STATE_FOLDER = ".datacollect"

LONGEST_NAME_BYTES, LONGEST_PATH_BYTES, DEEPEST = 255, 4000, 200


def why_not_written(path: str) -> str | None:
    r"""Return why a listed path cannot be written as it is; None where it can.

    Examples
    --------
    >>> why_not_written("run7/a.tar") is None
    True
    >>> why_not_written("a/../../etc/passwd")
    "its name holds '..'"
    >>> why_not_written("a\0b")
    'its name holds a NUL character'
    """
    try:
        n_bytes = len(path.encode())
    except UnicodeEncodeError:
        return "its name is not Unicode text"
    if "\0" in path:
        return "its name holds a NUL character"
    if path.startswith("/"):
        return "its name is absolute"
    if n_bytes > LONGEST_PATH_BYTES:
        return f"its name has {n_bytes} bytes, more than {LONGEST_PATH_BYTES}"
    parts = path.split("/")
    if len(parts) > DEEPEST:
        return f"it lies {len(parts)} folders deep, more than {DEEPEST}"
    return next((why for part in parts if (why := _why_not_part(part))), None)


def _why_not_part(part: str) -> str | None:
    if part in ("", ".", ".."):
        return f"its name holds {part!r}" if part else "its name holds an empty part"
    # Only what begins like it is worth the way through Unicode's tables.
    plain = part if part.isascii() else unicodedata.normalize("NFKC", part)
    if plain.startswith(".") and plain.casefold() == STATE_FOLDER:
        return f"{STATE_FOLDER} is the collector's own name"
    if len(part.encode()) > LONGEST_NAME_BYTES:
        return f"a part of its name has more than {LONGEST_NAME_BYTES} bytes"
    return None
