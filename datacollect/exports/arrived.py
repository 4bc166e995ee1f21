"""What has arrived: read from the folders in which exported scripts work."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.byte_ranges import ByteRanges
from datacollect.documents import PROGRESS_FORMAT
from datacollect.errors import ProblemError
from datacollect.exports.templates import folder_of_host
from datacollect.problem.manifest import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.problem.manifest import Files

STATE = ".datacollect"
_RANGE = re.compile(r"(\d+)-(\d+)(\.part)?")


@dataclass(frozen=True, eq=False)
class Arrived:
    """What a host has of others' data.

    Attributes
    ----------
    host : str
    is_destination : bool
    started_s : float or None
        When its script began this plan, in seconds since 1970; None where none was.
    ranges : dict of str to ByteRanges
        By source, places in its backlog.
    """

    host: str
    is_destination: bool
    started_s: float | None
    ranges: dict[str, ByteRanges]


def read_arrived(folder: str, manifest: Mapping[str, Files], host: str | None = None) -> Arrived:
    """Look into a folder for what of a manifest's files has arrived there.

    Complete files count by their size. What is still arriving counts by the marks that exported
    scripts leave, and by the length of the parts that they append to.

    Parameters
    ----------
    folder : str
    manifest : mapping of str to Files
    host : str, optional
        Whose folder it is, where no script has worked there: the destination.

    Raises
    ------
    ProblemError
        It is no folder, or nothing says whose it is.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ProblemError(f"{folder}: is no folder; name the one in which the script worked")
    about = _about(root)
    name = about.get("host", host)
    if name is None:
        raise ProblemError(
            f"{folder}: no exported script has worked there; --host HOST says whose folder it is"
        )
    partial = root / about.get("partial", ".")
    is_destination = "host" not in about or about["host"] == about.get("destination")
    ranges: dict[str, ByteRanges] = {}
    for source, files in manifest.items():
        if source == name:
            continue
        there = ByteRanges()
        place = folder_of_host(source)
        marks = _marks(partial / place)
        end = 0
        for path, size in zip(files.paths, files.n_bytes.tolist(), strict=True):
            begin, end = end, end + size
            if is_destination and _size(root / place / path) == size:
                there.add(begin, size)
                continue
            for offset, n_bytes in marks.get(path, ()):
                there.add(begin + offset, min(n_bytes, size - offset))
        if there.total_bytes:
            ranges[source] = there
    return Arrived(name, is_destination, _started(root), ranges)


def progress_tree(arrived: Iterable[Arrived], at_s: float | None) -> dict[str, Any]:
    """Return the tree of a progress file.

    What the destination has counts there only; what several relays have, at the first of them.

    Parameters
    ----------
    arrived : iterable of Arrived
    at_s : float or None
        Seconds from the plan's start; None: since the first of their scripts was started.
    """
    hosts = sorted(arrived, key=lambda each: not each.is_destination)
    starts = [each.started_s for each in hosts if each.started_s is not None]
    if at_s is None:
        at_s = max(0.0, time.time() - min(starts)) if starts else 0.0
    known: dict[str, ByteRanges] = {}
    held = []
    for each in hosts:
        for source, ranges in each.ranges.items():
            before = known.setdefault(source, ByteRanges())
            for low, length in ranges.ranges():
                for offset, n_bytes in before.missing(low, length):
                    entry = {"host": each.host, "source": source, "offset_bytes": offset}
                    held.append(entry | {"bytes": n_bytes})
            for low, length in ranges.ranges():
                before.add(low, length)
    tree: dict[str, Any] = {"format": PROGRESS_FORMAT, "at_s": round(at_s, 3)}
    return tree | ({"held": held} if held else {})


def progress_toml(tree: Mapping[str, Any]) -> str:
    """Return the text of a progress file.

    >>> print(progress_toml({"format": "datacollect-progress/1", "at_s": 2.0, "held": [
    ...     {"host": "D", "source": "S", "offset_bytes": 0, "bytes": 5}]}))
    format = "datacollect-progress/1"
    at_s = 2.0
    <BLANKLINE>
    [[held]]
    host = "D"
    source = "S"
    offset_bytes = 0
    bytes = 5
    """
    lines = [f"format = {_quoted(tree['format'])}", f"at_s = {tree['at_s']}"]
    for entry in tree.get("held", ()):
        lines += ["", "[[held]]", f"host = {_quoted(entry['host'])}"]
        lines += [f"source = {_quoted(entry['source'])}"]
        lines += [f"{key} = {entry[key]}" for key in ("offset_bytes", "bytes")]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    # JSON's strings are TOML's, but for the delete character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _about(root: Path) -> dict[str, str]:
    try:
        tree = json.loads((root / STATE / "export.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: str(value) for key, value in tree.items()} if isinstance(tree, dict) else {}


def _started(root: Path) -> float | None:
    try:
        return float((root / STATE / "started").read_text())
    except (OSError, ValueError):
        return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1


def _marks(folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Return by path what marks and parts say has arrived: offset, bytes."""
    found: dict[str, list[tuple[int, int]]] = {}
    for where, _, names in os.walk(folder):
        for name in names:
            file, mark, text = name.rpartition(MARK)
            parsed = _RANGE.fullmatch(text)
            if not (mark and parsed):
                continue
            path = Path(where, file).relative_to(folder).as_posix()
            n_bytes = int(parsed[2])
            if parsed[3]:
                n_bytes = min(n_bytes, Path(where, name).stat().st_size)
            found.setdefault(path, []).append((int(parsed[1]), n_bytes))
    return found
