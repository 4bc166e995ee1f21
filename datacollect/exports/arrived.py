"""Progress of exported scripts: data that have arrived, read from the folders they work in."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datacollect.errors import ProblemError
from datacollect.exports.templates import folder_of_host
from datacollect.files.documents import PROGRESS_FORMAT, toml_text
from datacollect.numbers.byte_ranges import ByteRanges
from datacollect.problem.manifest import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from datacollect.problem.manifest import Files


# Parts of a piece that are not appended yet: their script is at work, or was killed ------------

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
    fields: dict[str, str] = dict(_FIELD.findall(lines.lower()))
    if fields.get("content-encoding", "identity") != "identity":
        return False
    if status == "206":
        begins = f"bytes {begin}-"
        content_range = fields.get("content-range", "")
        return content_range.startswith(begins) and content_range.endswith(f"/{file_bytes}")
    has_size = fields.get("content-length") == str(file_bytes)
    return has_size and (status == "file" or (status == "200" and is_all))


STATE = ".datacollect"
# Scripts of this version kept no proof of what they fetched.
WITHOUT_PROOF = "datacollect-export/1"
_RANGE = re.compile(r"(\d+)-(\d+)(\.part|\.tmp|\.at)?")
_MARK = re.compile(r"datacollect-piece/1 (\d+) (\d+) ([0-9a-f]{64})\n")


@dataclass(frozen=True, eq=False)
class Arrived:
    """Others' data at a host.

    Attributes
    ----------
    host : str
    is_destination : bool
    started_s : float or None
        When its script began this plan, in seconds since 1970; None where none was.
    ranges : dict of str to ByteRanges
        By source, places in its backlog.
    unproved_bytes : int
        What tools have begun of files whose SHA-256 is not known: their scripts go on with it, but
        nothing shows that it fits what another tool would fetch.
    """

    host: str
    is_destination: bool
    started_s: float | None
    ranges: dict[str, ByteRanges]
    unproved_bytes: int = 0


@dataclass(frozen=True)
class BegunRange:
    """A range of a file that is not whole yet.

    Attributes
    ----------
    path : Path
        Of the mark, or of what has come of it.
    offset_bytes, n_bytes : int
        Its place in the file.
    sha256 : str or None
        Of its bytes, by its mark; None where it is still arriving.
    is_whole_file : bool
        Whether a tool that fetches whole files only has begun it, which proves its own bytes.
    """

    path: Path
    offset_bytes: int
    n_bytes: int
    sha256: str | None
    is_whole_file: bool = False


def read_arrived(folder: str, manifest: Mapping[str, Files], host: str | None = None) -> Arrived:
    """Look into a folder for what of a manifest's files has arrived there.

    Complete files count by their size. What is still arriving counts by the marks that exported
    scripts leave where the data are there, and by the length of what they have begun.

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
    place = ScriptFolder.of(folder, host)
    ranges: dict[str, ByteRanges] = {}
    unproved_bytes = 0
    for source, files in manifest.items():
        if source == place.host:
            continue
        there = ByteRanges()
        begun = place.begun(source, files)
        end = 0
        for path, size, known in zip(
            files.paths, files.n_bytes.tolist(), files.sha256, strict=True
        ):
            begin, end = end, end + size
            if place.is_destination and size_of(place.complete(source, path)) == size:
                there.add(begin, size)
                continue
            for each in begun.get(path, ()):
                if each.is_whole_file and not known:
                    unproved_bytes += each.n_bytes
                elif each.sha256 is None or _is_there(place.partial(source, path), each):
                    there.add(
                        begin + each.offset_bytes, min(each.n_bytes, size - each.offset_bytes)
                    )
        if there.total_bytes:
            ranges[source] = there
    return Arrived(place.host, place.is_destination, _started(place.root), ranges, unproved_bytes)


@dataclass(frozen=True)
class ScriptFolder:
    """A folder in which exported scripts work.

    Attributes
    ----------
    root : Path
    host : str
    is_destination : bool
    folder : str
        Within it, where files lie that are not whole yet.
    has_proof : bool
        Whether scripts kept proof of what they fetched.
    """

    root: Path
    host: str
    is_destination: bool
    folder: str
    has_proof: bool

    @classmethod
    def of(cls, folder: str, host: str | None) -> ScriptFolder:
        """Return whose folder it is, as its scripts say, or else `host`.

        Raises
        ------
        ProblemError
            It is no folder, or nothing says whose it is.
        """
        root = Path(folder)
        if not root.is_dir():
            raise ProblemError(
                f"{folder}: is not a folder; name the one in which the script worked"
            )
        about = _about(root)
        name = about.get("host", host)
        if name is None:
            raise ProblemError(
                f"{folder}: no exported script has worked in this folder; --host HOST says whose "
                "folder it is"
            )
        is_destination = "host" not in about or about["host"] == about.get("destination")
        has_proof = about.get("format") != WITHOUT_PROOF
        return cls(root, name, is_destination, about.get("partial", "."), has_proof)

    def complete(self, source: str, path: str) -> Path:
        """Return where a file lies once all of it is there."""
        return self.root / folder_of_host(source) / path

    def partial(self, source: str, path: str) -> Path:
        """Return where it lies before."""
        return self.root / self.folder / folder_of_host(source) / path

    def begun(self, source: str, files: Files) -> dict[str, list[BegunRange]]:
        """Return by path what has been begun of a source's files."""
        found: dict[str, list[BegunRange]] = {}
        if not self.has_proof:
            return found
        sizes = dict(zip(files.paths, files.n_bytes.tolist(), strict=True))
        folder = self.root / self.folder / folder_of_host(source)
        for where, folders, names in os.walk(folder):
            for name in (*names, *folders):
                file, mark, text = name.rpartition(MARK)
                path = Path(where, file).relative_to(folder).as_posix()
                parsed = _RANGE.fullmatch(text)
                if not (mark and parsed and path in sizes):
                    continue
                begun = None
                with suppress(FileNotFoundError):  # a script at work puts it in its place meanwhile
                    begun = _begun(Path(where, name), int(parsed[1]), int(parsed[2]), sizes[path])
                if begun is not None:
                    found.setdefault(path, []).append(begun)
            folders[:] = [name for name in folders if MARK not in name]
        return found


def _begun(path: Path, offset_bytes: int, n_bytes: int, file_bytes: int) -> BegunRange | None:
    """Read a mark, or look at what has come of a range; None where that proves nothing."""
    # What a relay sent is proved by the whole piece alone.
    if path.suffix in (".part", ".at") and path.with_suffix(".ready").exists():
        return None
    if path.suffix == ".part":
        return BegunRange(path, offset_bytes, min(n_bytes, size_of(path)), None)
    if path.suffix == ".at":
        first, came = proved_bytes(path.with_suffix(""), offset_bytes, n_bytes, file_bytes)
        return BegunRange(path, offset_bytes + first, came, None)
    if path.suffix == ".tmp":
        sizes = [size_of(each) for each in path.iterdir() if each.suffix != ".aria2"]
        return BegunRange(path, offset_bytes, min(n_bytes, max(sizes, default=0)), None, True)
    parsed = _MARK.fullmatch(path.read_text(encoding="ascii", errors="replace"))
    if parsed is None or (int(parsed[1]), int(parsed[2])) != (offset_bytes, n_bytes):
        return None
    return BegunRange(path, offset_bytes, n_bytes, parsed[3])


def _is_there(whole: Path, begun: BegunRange) -> bool:
    """Return whether the data of a mark are there: not cut off, and no hole that a purge left."""
    end = begun.offset_bytes + begun.n_bytes
    if size_of(whole) < end:
        return False
    with suppress(FileNotFoundError):  # it is put in its place meanwhile
        with whole.open("rb") as file:
            has_hole = os.lseek(file.fileno(), begun.offset_bytes, os.SEEK_HOLE) < end
        if not has_hole:
            return True
        # Some file systems make holes of zeros that were written.
        return sha256_of_range(whole, begun.offset_bytes, begun.n_bytes) == begun.sha256
    return False


def sha256_of_range(path: Path, offset_bytes: int, n_bytes: int) -> str:
    """Return the SHA-256 of a range of a file, in hexadecimal, or of what there is of it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(offset_bytes)
        while n_bytes and (block := file.read(min(n_bytes, 2**20))):
            digest.update(block)
            n_bytes -= len(block)
    return digest.hexdigest()


def size_of(path: Path) -> int:
    """Return a file's size; -1 where there is none."""
    with suppress(FileNotFoundError):  # it goes in this moment
        return path.stat().st_size if path.is_file() else -1
    return -1


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
    lines = [f"format = {toml_text(tree['format'])}", f"at_s = {tree['at_s']}"]
    for entry in tree.get("held", ()):
        lines += ["", "[[held]]", f"host = {toml_text(entry['host'])}"]
        lines += [f"source = {toml_text(entry['source'])}"]
        lines += [f"{key} = {entry[key]}" for key in ("offset_bytes", "bytes")]
    return "\n".join(lines)


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
