"""Lists of the sizes of which a log has published checkpoints: who copies it asks for each.

A list has the sizes within one stretch of `STRETCH` entries, in rising order, a line each: it does
not change any more once the log has outgrown its stretch, and can be a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacollect.bistro.formats.log.checkpoints import SIZE_STOP, whole
from datacollect.errors import ProblemError
from datacollect.files.kinds import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STRETCH = 4096
MOST_SIZES_BYTES = 20 * STRETCH


def sizes_path(size: int) -> str:
    """Return where the list that may have a size is served, below the log's URL.

    >>> sizes_path(5000)
    'sizes/1'
    """
    return f"sizes/{size // STRETCH}"


def sizes_data(sizes: Iterable[int]) -> bytes:
    r"""Return a list as it is served.

    >>> sizes_data([0, 7])
    b'0\n7\n'
    """
    return "".join(f"{size}\n" for size in sizes).encode()


def read_sizes(data: bytes, stretch: int, place: str = "the list of sizes") -> Sequence[int]:
    """Return the sizes of a stretch; raise `ProblemError` where the list is none of it."""
    lines = data.decode(errors="replace").split("\n")
    sizes = [whole(line, place, SIZE_STOP) for line in lines[:-1]]
    in_stretch = range(stretch * STRETCH, (stretch + 1) * STRETCH)
    wrong = [
        line
        for line, size, before in zip(lines, sizes, (-1, *sizes), strict=False)
        if size not in in_stretch or size <= before
    ]
    if lines[-1] or wrong:
        raise ProblemError(
            f"{place} must have sizes from {in_stretch.start} to {in_stretch[-1]} in rising order, "
            f"a line each, got {shown((*wrong, lines[-1])[0])}"
        )
    return sizes
