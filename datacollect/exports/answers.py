"""Parts of a piece that are not appended yet: their script is at work, or was killed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# In what curl dumps, and in the log of rclone.
_ANSWER = re.compile(r"^(?:.* DEBUG : )?HTTP/[\d.]+ (\d+).*\n((?:[^\s:]+:.*\n)*)\n", re.MULTILINE)
_FIELD = re.compile(r"^([^\s:]+):[ \t]*(.*)$", re.MULTILINE)


def proved_bytes(mark: Path, offset_bytes: int, n_bytes: int, file_bytes: int) -> tuple[int, int]:
    """Return where in its piece that begins and, if the headers show that it fits, its bytes.

    The script judges it more strictly before it appends it (``http.sh``, ``rclone.sh``); what it
    refuses it fetches again.

    Parameters
    ----------
    mark : Path
        Of the piece, beside which lie what has come and what its server has said.
    offset_bytes, n_bytes, file_bytes : int
        The piece's place in the file, and the file's size.
    """
    try:
        begun = int(mark.with_name(mark.name + ".at").read_text())
        head = mark.with_name(mark.name + ".head").read_text(encoding="latin-1")
        came = mark.with_name(mark.name + ".new").stat().st_size
    except (OSError, ValueError):
        return 0, 0
    is_all = begun == 0 and n_bytes == file_bytes
    fits = _fits(head, offset_bytes + begun, file_bytes, is_all=is_all)
    return begun, min(came, n_bytes - begun) if fits else 0


def _fits(head: str, begin: int, file_bytes: int, *, is_all: bool) -> bool:
    if head.startswith("{"):  # what rclone says of a file
        return bool(re.search(rf'"Size": {file_bytes},', head))
    answers = _ANSWER.findall(head.replace("\r\n", "\n"))
    # Of file:// there are headers alone.
    status, lines = answers[-1] if answers else ("file", head.replace("\r\n", "\n"))
    fields: dict[str, str] = dict(
        re.findall(r"^([^\s:]+):[ \t]*(.*)$", lines.lower(), re.MULTILINE)
    )
    if fields.get("content-encoding", "identity") != "identity":
        return False
    if status == "206":
        begins = f"bytes {begin}-"
        content_range = fields.get("content-range", "")
        return content_range.startswith(begins) and content_range.endswith(f"/{file_bytes}")
    has_size = fields.get("content-length") == str(file_bytes)
    return has_size and (status == "file" or (status == "200" and is_all))
