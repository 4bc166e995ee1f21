"""Attributes of files that simulated agents serve: modes, holes, folders.

Half of all seeds have it; in some of them the state is lost between two starts.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3
from simulated.servers import WebSource

from datacollect.transfer.protocol.source import ListedFolder, Page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simulated.sources import Source

    from datacollect.transfer.protocol.source import Listed, Segment

MODES = (0o444, 0o755, 0o640, 0o4711, 0o000)
FOLDERS = (("b", 0o555), ("b/d", 0o700), ("void", 0o755), ("void/inner", 0o511))
FOLDER_TIME_NS = 3 * 10**17 + 1
_ZEROS = re.compile(rb"\0{1024,}")


class Dressing:
    """Attributes of the files of some sources, and whether they are kept.

    Parameters
    ----------
    seed : int
    sources : mapping of str to Source
    """

    def __init__(self, seed: int, sources: Mapping[str, Source]) -> None:
        self.is_on = seed % 2 == 0
        self.draws = random.Random(f"dressing {seed}")
        self.loses_state = self.is_on and self.draws.random() < 0.4
        self._dressed = {
            name: source
            for name, source in sources.items()
            if self.is_on and not isinstance(source, WebSource)
        }
        for source in self._dressed.values():
            for path in source.versions:
                self._make_hole(source, path)

    def _make_hole(self, source: Source, path: str) -> None:
        """Let a file have a hole, or nothing but one."""
        entry, data = source.current(path)
        if len(data) < 2000 or self.draws.random() < 0.4:
            return
        first = self.draws.choice((0, self.draws.randrange(len(data) // 2)))
        last = self.draws.choice((len(data), self.draws.randrange(first, len(data))))
        holed = data[:first] + bytes(last - first) + data[last:]
        source.versions[path][-1] = (entry, holed)

    def pages(self, name: str, pages: Iterable[Page]) -> Iterable[Page]:
        """Return a list with all that there is to tell."""
        if name not in self._dressed:
            return pages
        folders = [ListedFolder(path, mode, FOLDER_TIME_NS) for path, mode in FOLDERS]
        told = [
            page._replace(files=[self._told(name, file) for file in page.files]) for page in pages
        ]
        return [*told, Page((), (), folders)]

    def _told(self, name: str, file: Listed) -> Listed:
        if file.path not in self._dressed[name].versions:
            return file
        data = self._dressed[name].current(file.path)[1]
        holes = [found.span() for found in _ZEROS.finditer(data)]
        if not holes:
            return file._replace(mode=self._mode(file.path))
        ends = [0, *(end for _, end in holes)], [*(begin for begin, _ in holes), len(data)]
        extents = tuple((a, b - a) for a, b in zip(*ends, strict=True) if b > a)
        return file._replace(mode=self._mode(file.path), extents=extents)

    def _mode(self, path: str) -> int:
        return MODES[len(path) % len(MODES)]

    def unkept(self, into: Path) -> list[str]:
        """Return what is not as it was told, in words."""
        wrong = []
        for name, source in self._dressed.items():
            for path in source.versions:
                found = Path(into, name, path).stat()
                if found.st_mtime_ns != source.current(path)[0].mtime_ns:
                    wrong.append(f"the time of {name}/{path}")
                if found.st_mode & 0o7777 != self._mode(path) & 0o777 | 0o600:
                    wrong.append(f"the mode of {name}/{path}")
            for path, mode in FOLDERS:
                found = Path(into, name, path).stat()
                if found.st_mode & 0o7777 != mode | 0o700:
                    wrong.append(f"the mode of {name}/{path}")
                if found.st_mtime_ns != FOLDER_TIME_NS:
                    wrong.append(f"the time of {name}/{path}")
        return wrong


def digests_at(source: Source, segments: Sequence[Segment]) -> list[bytes | None]:
    """What an agent tells of files that lie at the destination already."""
    found: list[bytes | None] = []
    for span, listed in segments:
        data = source.as_listed(listed)
        part = data[span.offset_bytes :][: span.n_bytes]
        found.append(blake3(part).digest() if data == source.current(listed.path)[1] else None)
    return found
